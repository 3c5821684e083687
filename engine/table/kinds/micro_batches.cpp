#include "engine/table/kinds/micro_batches.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<MicroBatchesRule> RuleTraits<MicroBatchesRule>::parse(TextCursor &cursor, std::string_view)
{
    TRY(const auto count, cursor.integer("a number of micro-batches", 1, kMostCount));
    return MicroBatchesRule{static_cast<std::int32_t>(count), cursor.takeWord("whole")};
}

std::string RuleTraits<MicroBatchesRule>::print(const MicroBatchesRule &rule)
{
    return std::to_string(rule.count) + (rule.whole ? " whole" : "");
}

void RuleTraits<MicroBatchesRule>::write(const MicroBatchesRule &rule, nlohmann::json &json)
{
    json["count"] = rule.count;
    if (rule.whole)
        json["whole"] = true;
}

Result<MicroBatchesRule> RuleTraits<MicroBatchesRule>::read(
    const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "count", "whole"}, where));
    TRY(const auto count, countAt(json, "count", where, 1));
    TRY(const bool whole, flagAt(json, "whole", where, false));
    return MicroBatchesRule{count, whole};
}

} // namespace planloom
