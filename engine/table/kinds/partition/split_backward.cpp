#include "engine/table/kinds/partition/split_backward.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<SplitBackwardRule> RuleTraits<SplitBackwardRule>::parse(TextCursor &, std::string_view)
{
    return SplitBackwardRule{};
}

std::string RuleTraits<SplitBackwardRule>::print(const SplitBackwardRule &)
{
    return {};
}

void RuleTraits<SplitBackwardRule>::write(const SplitBackwardRule &, nlohmann::json &) { }

Result<SplitBackwardRule> RuleTraits<SplitBackwardRule>::read(
    const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type"}, where));
    return SplitBackwardRule{};
}

} // namespace planloom
