#include "engine/table/kinds/partition/limit.h"

#include "engine/table/rule_form.h"
#include "engine/table/table_quantity.h"
#include "engine/table/text_cursor.h"

namespace planloom {

namespace {

constexpr std::array kKinds{LimitRule::Kind::Memory, LimitRule::Kind::Time, LimitRule::Kind::Traffic};
constexpr const char *kAnyLink = "link"; ///< `LimitRule::links` of "per link".

/// Of JSON.
const char *keyOf(LimitRule::Kind kind)
{
    constexpr std::array kKeys{"bytes", "nanoseconds", "sent_bytes"};
    return kKeys[static_cast<std::size_t>(kind)];
}

void describeQuantity(RuleForm &form, LimitRule &rule)
{
    if (!form.reads())
        return form.say(printQuantity(rule.kind, rule.value));
    if (form.failed())
        return;
    const std::size_t place = form.place();
    auto quantity = readQuantity(rule.kind, form.cursor().rest());
    if (!quantity)
        return form.fail(form.cursor().at(place, quantity.error().message, quantity.error().advice));
    rule.value = quantity->value;
    form.cursor().rewind(place + quantity->length);
}

} // namespace

const char *nameOf(LimitRule::Kind kind)
{
    constexpr std::array kNames{"memory", "time", "traffic"};
    return kNames[static_cast<std::size_t>(kind)];
}

void RuleTraits<LimitRule>::describe(RuleForm &form, LimitRule &rule)
{
    if (form.isText()) {
        form.choice({}, rule.kind, kKinds,
            "'memory', 'time' or 'traffic', as in limit memory 40GiB or limit time 50ms");
        describeQuantity(form, rule);
    } else {
        int found = 0;
        for (const auto kind : kKinds)
            if (form.holds(keyOf(kind), kind == rule.kind)) {
                rule.kind = kind;
                ++found;
            }
        if (found > 1)
            form.expected({}, "one of bytes, nanoseconds and sent_bytes");
        form.number(keyOf(rule.kind), rule.value, {{}, 1, kMostQuantity});
    }
    if (rule.kind != LimitRule::Kind::Traffic)
        return form.refuse("links", "links beside sent_bytes alone");
    if (form.isText() && form.takes("per", rule.links == kAnyLink)) {
        form.word(kAnyLink, "'link', as in limit traffic 2GiB per link");
        rule.links = kAnyLink;
    } else if (form.has("on", "links", !rule.links.empty())) {
        form.name("links", rule.links, "a level of links: device, card, node, or one that the cluster names");
        form.takes("links");
    }
}

} // namespace planloom
