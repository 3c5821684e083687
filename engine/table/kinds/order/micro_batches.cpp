#include "engine/table/kinds/order/micro_batches.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<MicroBatchesRule> RuleTraits<MicroBatchesRule>::parse(TextCursor &cursor, std::string_view)
{
    TRY(const auto count, cursor.integer("a number of micro-batches", 1, kMostCount));
    MicroBatchesRule rule{static_cast<std::int32_t>(count), cursor.takeWord("whole")};
    if (cursor.takeWord("update")) {
        if (!cursor.takeWord("every"))
            return cursor.expected("every");
        TRY(const auto every, cursor.integer("a number of micro-batches", 1, kMostCount));
        rule.updateEvery = static_cast<std::int32_t>(every);
    }
    return rule;
}

std::string RuleTraits<MicroBatchesRule>::print(const MicroBatchesRule &rule)
{
    return std::to_string(rule.count) + (rule.whole ? " whole" : "")
        + (rule.updateEvery > 0 ? " update every " + std::to_string(rule.updateEvery) : "");
}

void RuleTraits<MicroBatchesRule>::write(const MicroBatchesRule &rule, nlohmann::json &json)
{
    json["count"] = rule.count;
    if (rule.whole)
        json["whole"] = true;
    if (rule.updateEvery > 0)
        json["update_every"] = rule.updateEvery;
}

Result<MicroBatchesRule> RuleTraits<MicroBatchesRule>::read(
    const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "count", "whole", "update_every"}, where));
    TRY(const auto count, countAt(json, "count", where, 1));
    TRY(const bool whole, flagAt(json, "whole", where, false));
    TRY(const auto every, countAt(json, "update_every", where, 1, 0));
    return MicroBatchesRule{count, whole, every};
}

} // namespace planloom
