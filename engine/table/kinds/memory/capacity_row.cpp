#include "engine/table/kinds/memory/capacity_row.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<CapacityRule> RuleTraits<CapacityRule>::parse(TextCursor &cursor, std::string_view)
{
    CapacityRule rule;
    TRY(rule.name, cursor.word("an operator or all, with its room, as in capacity all = 1.25x"));
    TRY_VOID(cursor.require('=', "and the room"));
    TRY(const std::string room, cursor.word("the room: 1.25x, 128 or all"));
    TRY(rule.capacity, capacityNamed(room));
    return rule;
}

std::string RuleTraits<CapacityRule>::print(const CapacityRule &rule)
{
    return asWord(rule.name) + " = " + asWord(toString(rule.capacity));
}

void RuleTraits<CapacityRule>::write(const CapacityRule &rule, nlohmann::json &json)
{
    json["name"] = rule.name;
    json["room"] = toString(rule.capacity);
}

Result<CapacityRule> RuleTraits<CapacityRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "name", "room"}, where));
    CapacityRule rule;
    TRY(rule.name, textAt(json, "name", where));
    TRY(const std::string room, textAt(json, "room", where));
    auto capacity = capacityNamed(room);
    if (!capacity) {
        Error wrong = std::move(capacity).error();
        wrong.where = where + "/room";
        return wrong;
    }
    rule.capacity = *capacity;
    return rule;
}

} // namespace planloom
