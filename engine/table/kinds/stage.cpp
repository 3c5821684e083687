#include "engine/table/kinds/stage.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<StageRule> RuleTraits<StageRule>::parse(TextCursor &cursor, std::string_view)
{
    TRY(const auto index, cursor.integer("the number of a stage", 0, kMostCount));
    return StageRule{static_cast<std::int32_t>(index)};
}

std::string RuleTraits<StageRule>::print(const StageRule &rule)
{
    return std::to_string(rule.index);
}

void RuleTraits<StageRule>::write(const StageRule &rule, nlohmann::json &json)
{
    json["index"] = rule.index;
}

Result<StageRule> RuleTraits<StageRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "index"}, where));
    TRY(const auto index, countAt(json, "index", where, 0));
    return StageRule{index};
}

} // namespace planloom
