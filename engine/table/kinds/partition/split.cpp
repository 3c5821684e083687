#include "engine/table/kinds/partition/split.h"

#include "engine/table/json_members.h"
#include "engine/table/kinds/partition/joined.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

/// "[by N | into N,N,..] [over AXIS]"
Result<void> parseAmount(TextCursor &cursor, SplitStep &step)
{
    if (cursor.takeWord("by")) {
        TRY(const auto parts, cursor.integer("a number of parts", 1, kMostCount));
        step.parts = static_cast<std::int32_t>(parts);
    } else if (step.kind == SplitKind::Dimension && cursor.takeWord("into")) {
        do {
            TRY(const auto size, cursor.integer("the size of a part", 1, kMostExtent));
            step.sizes.push_back(size);
        } while (cursor.take(','));
    }
    if (cursor.takeWord("over")) {
        TRY(step.axis, cursor.word("the name of a mesh axis"));
    }
    if (step.parts == 0 && step.sizes.empty() && step.axis.empty())
        return cursor.expected(step.kind == SplitKind::Dimension
                ? "'by' and a number of parts, 'into' and sizes, or 'over' and a mesh axis"
                : "'by' and a number of parts, or 'over' and a mesh axis");
    return {};
}

Result<SplitStep> parseStep(TextCursor &cursor)
{
    SplitStep step;
    if (cursor.takeWord("value")) {
        step.kind = SplitKind::Value;
    } else if (cursor.takeWord("replicate")) {
        step.kind = SplitKind::Replicate;
    } else {
        TRY(step.dimension, parseDimension(cursor));
    }
    TRY_VOID(parseAmount(cursor, step));
    return step;
}

std::string amountOf(const SplitStep &step)
{
    std::string text;
    if (!step.sizes.empty())
        text += " into " + joined(step.sizes, ",", [](std::int64_t size) { return std::to_string(size); });
    else if (step.parts > 0)
        text += " by " + std::to_string(step.parts);
    if (!step.axis.empty())
        text += " over " + asWord(step.axis);
    return text;
}

const char *nameOf(SplitKind kind)
{
    switch (kind) {
    case SplitKind::Dimension:
        return "dimension";
    case SplitKind::Replicate:
        return "replicate";
    case SplitKind::Value:
        return "value";
    }
    return "";
}

nlohmann::json toJson(const SplitStep &step)
{
    nlohmann::json json{{"split", nameOf(step.kind)}};
    if (step.kind == SplitKind::Dimension)
        json["dimension"] = planloom::toJson(step.dimension);
    if (!step.sizes.empty())
        json["sizes"] = step.sizes;
    else if (step.parts > 0)
        json["parts"] = step.parts;
    if (!step.axis.empty())
        json["axis"] = step.axis;
    return json;
}

Result<SplitStep> readStep(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireObject(json, where));
    TRY_VOID(requireMembers(json, {"split", "dimension", "sizes", "parts", "axis"}, where));
    SplitStep step;
    TRY(const std::string kind, textAt(json, "split", where));
    if (kind == "dimension") {
        TRY(step.dimension, dimensionAt(json, where));
    } else if (kind == "replicate") {
        step.kind = SplitKind::Replicate;
    } else if (kind == "value") {
        step.kind = SplitKind::Value;
    } else {
        return wrong(where + "/split", "expected dimension, replicate or value");
    }
    TRY(step.axis, textAt(json, "axis", where, ""));
    if (json.contains("sizes")) {
        TRY(const nlohmann::json *list, listAt(json, "sizes", where));
        if (step.kind != SplitKind::Dimension || json.contains("parts"))
            return wrong(where + "/sizes", "expected sizes only for a dimension, and without parts");
        for (const nlohmann::json &size : *list) {
            if (!size.is_number_integer() || size < 1 || size > kMostExtent)
                return wrong(where + "/sizes", "expected sizes from 1 to " + std::to_string(kMostExtent));
            step.sizes.push_back(size.get<std::int64_t>());
        }
    } else {
        TRY(step.parts, countAt(json, "parts", where, 1, 0));
    }
    if (step.parts == 0 && step.sizes.empty() && step.axis.empty())
        return wrong(where, "expected parts, sizes or an axis");
    return step;
}

/// "replicate SELECTOR : by 2" is "split SELECTOR : replicate by 2".
bool isReplicate(const OpTransRule &rule)
{
    return rule.steps.size() == 1 && rule.steps.front().kind == SplitKind::Replicate;
}

} // namespace

const char *RuleTraits<OpTransRule>::wordOf(const OpTransRule &rule)
{
    return isReplicate(rule) ? "replicate" : "split";
}

Result<OpTransRule> RuleTraits<OpTransRule>::parse(TextCursor &cursor, std::string_view word)
{
    OpTransRule rule;
    if (word == "replicate") {
        rule.steps.push_back({.kind = SplitKind::Replicate});
        TRY_VOID(parseAmount(cursor, rule.steps.back()));
        return rule;
    }
    for (;;) {
        TRY(SplitStep step, parseStep(cursor));
        rule.steps.push_back(std::move(step));
        if (cursor.takeWord("then"))
            continue;
        if (!cursor.takeWord("or"))
            return rule;
        if (rule.steps.back().axis.empty())
            return cursor.expected("'over' and a mesh axis before 'or'");
    }
}

std::string RuleTraits<OpTransRule>::print(const OpTransRule &rule)
{
    if (isReplicate(rule))
        return amountOf(rule.steps.front()).substr(1);
    std::string text;
    const SplitStep *before = nullptr;
    for (const SplitStep &step : rule.steps) {
        if (before != nullptr)
            text += !step.axis.empty() && step.axis == before->axis ? " or " : " then ";
        before = &step;
        text += (step.kind == SplitKind::Dimension ? planloom::print(step.dimension)
                                                   : std::string(nameOf(step.kind)))
            + amountOf(step);
    }
    return text;
}

void RuleTraits<OpTransRule>::write(const OpTransRule &rule, nlohmann::json &json)
{
    auto &steps = json["steps"] = nlohmann::json::array();
    for (const SplitStep &step : rule.steps)
        steps.push_back(toJson(step));
}

Result<OpTransRule> RuleTraits<OpTransRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json, {"type", "steps"}, where));
    OpTransRule rule;
    TRY(const nlohmann::json *steps, listAt(json, "steps", where));
    for (const nlohmann::json &item : *steps) {
        TRY(SplitStep step, readStep(item, where + "/steps/" + std::to_string(rule.steps.size())));
        rule.steps.push_back(std::move(step));
    }
    return rule;
}

} // namespace planloom
