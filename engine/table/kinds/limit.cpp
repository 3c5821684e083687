#include "engine/table/kinds/limit.h"

#include "engine/table/json_members.h"
#include "engine/table/table_quantity.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

const char *nameOf(LimitRule::Kind kind)
{
    return kind == LimitRule::Kind::Memory ? "memory" : "time";
}

Result<LimitRule> RuleTraits<LimitRule>::parse(TextCursor &cursor, std::string_view)
{
    LimitRule rule;
    if (cursor.takeWord("time"))
        rule.kind = LimitRule::Kind::Time;
    else if (!cursor.takeWord("memory"))
        return cursor.expected("'memory' or 'time', as in limit memory 40GiB or limit time 50ms");
    cursor.skipSpaces();
    const auto quantity = readQuantity(rule.kind, cursor.rest());
    if (!quantity)
        return cursor.at(cursor.position(), quantity.error().message, quantity.error().advice);
    rule.value = quantity->value;
    cursor.rewind(cursor.position() + quantity->length);
    return rule;
}

std::string RuleTraits<LimitRule>::print(const LimitRule &rule)
{
    return std::string(nameOf(rule.kind)) + ' ' + printQuantity(rule.kind, rule.value);
}

void RuleTraits<LimitRule>::write(const LimitRule &rule, nlohmann::json &json)
{
    json[rule.kind == LimitRule::Kind::Memory ? "bytes" : "nanoseconds"] = rule.value;
}

Result<LimitRule> RuleTraits<LimitRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "bytes", "nanoseconds"}, where));
    const bool time = json.contains("nanoseconds");
    if (time && json.contains("bytes"))
        return wrong(where, "expected bytes or nanoseconds, not both");
    LimitRule rule{.kind = time ? LimitRule::Kind::Time : LimitRule::Kind::Memory};
    TRY(rule.value, integerAt(json, time ? "nanoseconds" : "bytes", where, 1, kMostQuantity));
    return rule;
}

} // namespace planloom
