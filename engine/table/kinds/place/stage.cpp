#include "engine/table/kinds/place/stage.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<StageRule> RuleTraits<StageRule>::parse(TextCursor &cursor, std::string_view)
{
    TRY(const auto index, cursor.integer("the number of a stage", 0, kMostCount));
    StageRule rule{static_cast<std::int32_t>(index)};
    if (cursor.takeWord("of")) {
        TRY(const auto count,
            cursor.integer("a number of stages, above that of the stage", index + 1, kMostCount));
        rule.count = static_cast<std::int32_t>(count);
    }
    return rule;
}

std::string RuleTraits<StageRule>::print(const StageRule &rule)
{
    return std::to_string(rule.index) + (rule.count > 0 ? " of " + std::to_string(rule.count) : "");
}

void RuleTraits<StageRule>::write(const StageRule &rule, nlohmann::json &json)
{
    json["index"] = rule.index;
    if (rule.count > 0)
        json["of"] = rule.count;
}

Result<StageRule> RuleTraits<StageRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "index", "of"}, where));
    StageRule rule;
    TRY(rule.index, countAt(json, "index", where, 0));
    TRY(rule.count, countAt(json, "of", where, std::int64_t{rule.index} + 1, 0));
    return rule;
}

} // namespace planloom
