#include "engine/table/kinds/order/in_flight.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<InFlightRule> RuleTraits<InFlightRule>::parse(TextCursor &cursor, std::string_view)
{
    InFlightRule rule;
    TRY(const auto count,
        cursor.integer("a number of micro-batches in flight, as in-flight 3", 1, kMostCount));
    rule.count = static_cast<std::int32_t>(count);
    if (cursor.takeWord("stage")) {
        TRY(const auto stage, cursor.integer("the number of a stage", 0, kMostCount));
        rule.stage = static_cast<std::int32_t>(stage);
    }
    return rule;
}

std::string RuleTraits<InFlightRule>::print(const InFlightRule &rule)
{
    return std::to_string(rule.count) + (rule.stage >= 0 ? " stage " + std::to_string(rule.stage) : "");
}

void RuleTraits<InFlightRule>::write(const InFlightRule &rule, nlohmann::json &json)
{
    json["count"] = rule.count;
    if (rule.stage >= 0)
        json["stage"] = rule.stage;
}

Result<InFlightRule> RuleTraits<InFlightRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "count", "stage"}, where));
    InFlightRule rule;
    TRY(rule.count, countAt(json, "count", where, 1));
    TRY(rule.stage, countAt(json, "stage", where, 0, -1));
    return rule;
}

} // namespace planloom
