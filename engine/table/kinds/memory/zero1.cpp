#include "engine/table/kinds/memory/zero1.h"

#include "engine/table/json_members.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace planloom {

namespace {

constexpr std::int32_t kMostAhead = 64; ///< Layers: more than that is all of them.

} // namespace

const char *RuleTraits<OptimizerShardingRule>::wordOf(const OptimizerShardingRule &rule)
{
    if (rule.chosen)
        return words[4];
    return rule.stage == 0 ? words[3] : words[static_cast<std::size_t>(std::clamp(rule.stage, 1, 3)) - 1];
}

Result<OptimizerShardingRule> RuleTraits<OptimizerShardingRule>::parse(
    TextCursor &cursor, std::string_view word)
{
    OptimizerShardingRule rule;
    if (word == words[4]) {
        if (cursor.takeWord("never"))
            return OptimizerShardingRule{.stage = 0};
        if (!cursor.takeWord("solver"))
            return cursor.expected("solver or never; else say zero1, zero2 or zero3");
        rule.chosen = true;
        return rule;
    }
    rule.stage = word.back() - '0';
    if (rule.stage == 0)
        return rule;
    if (cursor.takeWord("over")) {
        TRY(rule.axis, cursor.word("the name of a mesh axis"));
    }
    if (cursor.takeWord("by")) {
        TRY(const auto parts, cursor.integer("a number of parts", 1, kMostCount));
        rule.parts = static_cast<std::int32_t>(parts);
    }
    if (rule.stage == 3) {
        rule.keep = cursor.takeWord("keep");
        if (cursor.takeWord("prefetch")) {
            TRY(const auto ahead, cursor.integer("a number of layers", 0, kMostAhead));
            rule.prefetch = static_cast<std::int32_t>(ahead);
        }
    }
    return rule;
}

std::string RuleTraits<OptimizerShardingRule>::print(const OptimizerShardingRule &rule)
{
    if (rule.chosen)
        return "solver";
    std::string text;
    const auto add = [&text](const std::string &words) { text += (text.empty() ? "" : " ") + words; };
    if (!rule.axis.empty())
        add("over " + asWord(rule.axis));
    if (rule.parts > 0)
        add("by " + std::to_string(rule.parts));
    if (rule.keep)
        add("keep");
    if (rule.prefetch != OptimizerShardingRule{}.prefetch)
        add("prefetch " + std::to_string(rule.prefetch));
    return text;
}

void RuleTraits<OptimizerShardingRule>::write(const OptimizerShardingRule &rule, nlohmann::json &json)
{
    if (rule.chosen) {
        json["when"] = "solver";
        return;
    }
    if (!rule.axis.empty())
        json["axis"] = rule.axis;
    if (rule.parts > 0)
        json["parts"] = rule.parts;
    if (rule.stage != 1)
        json["stage"] = rule.stage;
    if (rule.keep)
        json["keep"] = true;
    if (rule.prefetch != OptimizerShardingRule{}.prefetch)
        json["prefetch"] = rule.prefetch;
}

Result<OptimizerShardingRule> RuleTraits<OptimizerShardingRule>::read(
    const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "axis", "parts", "stage", "keep", "prefetch", "when"}, where));
    OptimizerShardingRule rule;
    if (json.contains("when")) {
        TRY(const std::string when, textAt(json, "when", where));
        if (when != "solver" || json.size() > 2)
            return wrong(where + "/when", "expected solver, and nothing beside it");
        rule.chosen = true;
        return rule;
    }
    TRY(rule.axis, textAt(json, "axis", where, ""));
    TRY(rule.parts, countAt(json, "parts", where, 1, 0));
    TRY(rule.stage, countAt(json, "stage", where, 0, 1));
    TRY(rule.keep, flagAt(json, "keep", where, false));
    TRY(rule.prefetch, countAt(json, "prefetch", where, 0, rule.prefetch));
    if (rule.stage > 3 || rule.prefetch > kMostAhead
        || (rule.stage < 3 && (rule.keep || json.contains("prefetch")))
        || (rule.stage == 0 && (!rule.axis.empty() || rule.parts > 0)))
        return Error{ErrorCode::InvalidInput,
            "expected a stage from 0 to 3, axis and parts only above 0, and keep and prefetch (0 to "
                + std::to_string(kMostAhead) + ") only with stage 3",
            {}, where};
    return rule;
}

} // namespace planloom
