#include "engine/table/kinds/partition/limit.h"

#include "engine/table/json_members.h"
#include "engine/table/table_quantity.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

constexpr const char *kAnyLink = "link"; ///< `LimitRule::links` of "per link".

/// Of JSON.
const char *keyOf(LimitRule::Kind kind)
{
    constexpr std::array kKeys{"bytes", "nanoseconds", "sent_bytes"};
    return kKeys[static_cast<std::size_t>(kind)];
}

} // namespace

const char *nameOf(LimitRule::Kind kind)
{
    constexpr std::array kNames{"memory", "time", "traffic"};
    return kNames[static_cast<std::size_t>(kind)];
}

Result<LimitRule> RuleTraits<LimitRule>::parse(TextCursor &cursor, std::string_view)
{
    LimitRule rule;
    if (cursor.takeWord("time"))
        rule.kind = LimitRule::Kind::Time;
    else if (cursor.takeWord("traffic"))
        rule.kind = LimitRule::Kind::Traffic;
    else if (!cursor.takeWord("memory"))
        return cursor.expected("'memory', 'time' or 'traffic', as in limit memory 40GiB or limit time 50ms");
    cursor.skipSpaces();
    const auto quantity = readQuantity(rule.kind, cursor.rest());
    if (!quantity)
        return cursor.at(cursor.position(), quantity.error().message, quantity.error().advice);
    rule.value = quantity->value;
    cursor.rewind(cursor.position() + quantity->length);
    if (rule.kind != LimitRule::Kind::Traffic)
        return rule;
    if (cursor.takeWord("per")) {
        if (!cursor.takeWord("link"))
            return cursor.expected("'link', as in limit traffic 2GiB per link");
        rule.links = kAnyLink;
    } else if (cursor.takeWord("on")) {
        TRY(rule.links, cursor.word("a level of links: device, card, node, or one that the cluster names"));
        cursor.takeWord("links");
    }
    return rule;
}

std::string RuleTraits<LimitRule>::print(const LimitRule &rule)
{
    std::string text = std::string(nameOf(rule.kind)) + ' ' + printQuantity(rule.kind, rule.value);
    if (rule.links == kAnyLink)
        text += " per link";
    else if (!rule.links.empty())
        text += " on " + asWord(rule.links);
    return text;
}

void RuleTraits<LimitRule>::write(const LimitRule &rule, nlohmann::json &json)
{
    json[keyOf(rule.kind)] = rule.value;
    if (!rule.links.empty())
        json["links"] = rule.links;
}

Result<LimitRule> RuleTraits<LimitRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "bytes", "nanoseconds", "sent_bytes", "links"}, where));
    LimitRule rule;
    int kinds = 0;
    for (const auto kind : {LimitRule::Kind::Memory, LimitRule::Kind::Time, LimitRule::Kind::Traffic})
        if (json.contains(keyOf(kind))) {
            rule.kind = kind;
            ++kinds;
        }
    if (kinds > 1)
        return wrong(where, "expected one of bytes, nanoseconds and sent_bytes");
    if (rule.kind != LimitRule::Kind::Traffic && json.contains("links"))
        return wrong(where, "expected links beside sent_bytes alone");
    TRY(rule.links, textAt(json, "links", where, ""));
    TRY(rule.value, integerAt(json, keyOf(rule.kind), where, 1, kMostQuantity));
    return rule;
}

} // namespace planloom
