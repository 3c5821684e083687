#include "engine/table/kinds/partition/attention.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

Result<AttentionRule> RuleTraits<AttentionRule>::parse(TextCursor &cursor, std::string_view)
{
    for (const AttentionMode mode : {AttentionMode::Fused, AttentionMode::Plain}) {
        if (cursor.takeWord(nameOf(mode)))
            return AttentionRule{mode};
    }
    return cursor.expected("fused or plain");
}

std::string RuleTraits<AttentionRule>::print(const AttentionRule &rule)
{
    return nameOf(rule.mode);
}

void RuleTraits<AttentionRule>::write(const AttentionRule &rule, nlohmann::json &json)
{
    json["mode"] = nameOf(rule.mode);
}

Result<AttentionRule> RuleTraits<AttentionRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "mode"}, where));
    TRY(const std::string name, textAt(json, "mode", where));
    if (const auto mode = attentionModeNamed(name))
        return AttentionRule{*mode};
    return wrong(where + "/mode", "expected fused or plain");
}

} // namespace planloom
