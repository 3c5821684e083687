#include "engine/table/kinds/order/order.h"

#include "engine/table/json_members.h"
#include "engine/table/kinds/order/micro_batch_pairs.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<OpOrderRule> RuleTraits<OpOrderRule>::parse(TextCursor &cursor, std::string_view)
{
    OpOrderRule rule;
    TRY(rule.part, parseBlockPart(cursor));
    if (!cursor.takeWord("before"))
        return cursor.expected("'before' and the second selector");
    TRY(rule.second, parseSelector(cursor));
    TRY(rule.secondPart, parseBlockPart(cursor));
    TRY_VOID(parseMicroBatches(cursor, rule));
    return rule;
}

std::string RuleTraits<OpOrderRule>::print(const OpOrderRule &rule)
{
    // What stands before it is the row's selector and a space.
    const std::string part = toString(rule.part);
    return (part.empty() ? part : part.substr(1) + " ") + "before " + toString(rule.second)
        + toString(rule.secondPart) + printMicroBatches(rule);
}

void RuleTraits<OpOrderRule>::write(const OpOrderRule &rule, nlohmann::json &json)
{
    json["second"] = toString(rule.second);
    json["micro_batch_offset"] = rule.microBatchOffset;
    if (rule.microBatch >= 0)
        json["micro_batch"] = rule.microBatch;
    writeBlockPart(rule.part, "", json);
    writeBlockPart(rule.secondPart, "second_", json);
}

Result<OpOrderRule> RuleTraits<OpOrderRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json,
        {"type", "second", "micro_batch_offset", "micro_batch", "lane", "slice", "second_lane",
            "second_slice"},
        where));
    OpOrderRule rule;
    TRY(rule.second, selectorAt(json, "second", where));
    TRY(rule.microBatchOffset, countAt(json, "micro_batch_offset", where, -kMostCount, 0));
    TRY(rule.microBatch, countAt(json, "micro_batch", where, 0, -1));
    TRY(rule.part, blockPartAt(json, "", where));
    TRY(rule.secondPart, blockPartAt(json, "second_", where));
    return rule;
}

} // namespace planloom
