#include "engine/table/kinds/place/place.h"

#include "engine/table/json_members.h"
#include "engine/table/kinds/partition/joined.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<OpAssignRule> RuleTraits<OpAssignRule>::parse(TextCursor &cursor, std::string_view)
{
    OpAssignRule rule;
    cursor.skipSpaces();
    bool wasQuoted = false;
    TRY(std::string word, cursor.word("'devices' and a list, 'mesh', or coordinates as pp=0", wasQuoted));
    if (cursor.peek() != '=' && !wasQuoted) {
        if (word == "mesh")
            return rule;
        if (word == "devices") {
            do {
                TRY(const auto device, cursor.integer("a device number", 0, kMostCount));
                rule.devices.push_back({static_cast<std::int32_t>(device)});
            } while (cursor.take(','));
            return rule;
        }
    }
    while (true) {
        TRY_VOID(cursor.require('=', "and the place along the axis"));
        TRY(const auto index, cursor.integer("the place along the axis", 0, kMostCount));
        rule.coordinates.push_back({std::move(word), static_cast<std::int32_t>(index)});
        if (!cursor.take(','))
            return rule;
        TRY(word, cursor.word("another coordinate as tp=0"));
    }
}

std::string RuleTraits<OpAssignRule>::print(const OpAssignRule &rule)
{
    if (!rule.devices.empty())
        return "devices " + joined(rule.devices, ",", [](DeviceId d) { return std::to_string(d.index); });
    if (rule.coordinates.empty())
        return "mesh";
    return joined(rule.coordinates, ",",
        [](const AxisCoordinate &c) { return asWord(c.axis) + "=" + std::to_string(c.index); });
}

void RuleTraits<OpAssignRule>::write(const OpAssignRule &rule, nlohmann::json &json)
{
    for (const DeviceId device : rule.devices)
        json["devices"].push_back(device.index);
    for (const AxisCoordinate &c : rule.coordinates)
        json["coordinates"].push_back({{"axis", c.axis}, {"index", c.index}});
}

Result<OpAssignRule> RuleTraits<OpAssignRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "devices", "coordinates"}, where));
    OpAssignRule rule;
    if (json.contains("devices")) {
        TRY(const nlohmann::json *devices, listAt(json, "devices", where));
        if (json.contains("coordinates"))
            return wrong(where, "expected devices or coordinates, not both");
        for (const nlohmann::json &device : *devices) {
            if (!device.is_number_integer() || device < 0 || device > kMostCount)
                return wrong(where + "/devices", "expected device numbers from 0");
            rule.devices.push_back({device.get<std::int32_t>()});
        }
    } else if (json.contains("coordinates")) {
        TRY(const nlohmann::json *coordinates, listAt(json, "coordinates", where));
        for (const nlohmann::json &c : *coordinates) {
            TRY_VOID(requireObject(c, where + "/coordinates"));
            TRY(std::string axis, textAt(c, "axis", where + "/coordinates"));
            TRY(const auto index, countAt(c, "index", where + "/coordinates", 0));
            rule.coordinates.push_back({std::move(axis), index});
        }
    }
    return rule;
}

} // namespace planloom
