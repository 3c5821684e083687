#include "engine/table/kinds/place/device_sharing.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<DeviceSharingRule> RuleTraits<DeviceSharingRule>::parse(TextCursor &cursor, std::string_view word)
{
    const bool apart = word == words[1];
    if (!cursor.takeWord(apart ? "from" : "with"))
        return cursor.expected(apart ? "'from' and the second selector" : "'with' and the second selector");
    TRY(Selector second, parseSelector(cursor));
    return DeviceSharingRule{apart, std::move(second)};
}

std::string RuleTraits<DeviceSharingRule>::print(const DeviceSharingRule &rule)
{
    return (rule.apart ? "from " : "with ") + toString(rule.second);
}

void RuleTraits<DeviceSharingRule>::write(const DeviceSharingRule &rule, nlohmann::json &json)
{
    json["second"] = toString(rule.second);
    if (rule.apart)
        json["apart"] = true;
}

Result<DeviceSharingRule> RuleTraits<DeviceSharingRule>::read(
    const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "second", "apart"}, where));
    DeviceSharingRule rule;
    TRY(rule.second, selectorAt(json, "second", where));
    TRY(rule.apart, flagAt(json, "apart", where, false));
    return rule;
}

} // namespace planloom
