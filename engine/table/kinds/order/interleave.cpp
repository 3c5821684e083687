#include "engine/table/kinds/order/interleave.h"

#include "engine/table/json_members.h"
#include "engine/table/kinds/order/block_part.h"
#include "engine/table/text_cursor.h"

#include <nlohmann/json.hpp>

namespace planloom {

namespace {

constexpr std::array kAllPasses{Pass::Forward, Pass::Backward, Pass::InputGradient, Pass::WeightGradient};
constexpr const char *kPassNames = "forward, backward, input-gradient or weight-gradient";

Result<Pass> parsePass(TextCursor &cursor)
{
    for (const Pass pass : kAllPasses)
        if (cursor.takeWord(nameOf(pass)))
            return pass;
    return cursor.expected(kPassNames);
}

/// "stage 2"; -1 where there is none.
Result<std::int32_t> parseStage(TextCursor &cursor)
{
    if (!cursor.takeWord("stage"))
        return -1;
    TRY(const auto stage, cursor.integer("the number of a stage", 0, kMostCount));
    return static_cast<std::int32_t>(stage);
}

/// "in lane 1"; -1 where there is none.
Result<std::int32_t> parseLane(TextCursor &cursor)
{
    const std::size_t before = cursor.position();
    TRY(const BlockPart part, parseBlockPart(cursor));
    if (part.slice >= 0) {
        cursor.rewind(before);
        return cursor.expected("no slice: slices are paired in their order");
    }
    return part.lane;
}

Result<Pass> passAt(const nlohmann::json &json, const char *member, const std::string &where)
{
    TRY(const std::string name, textAt(json, member, where));
    for (const Pass pass : kAllPasses)
        if (name == nameOf(pass))
            return pass;
    return wrong(where + "/" + member, std::string("expected ") + kPassNames);
}

} // namespace

const char *nameOf(Pass pass)
{
    switch (pass) {
    case Pass::Forward:
        return "forward";
    case Pass::Backward:
        return "backward";
    case Pass::InputGradient:
        return "input-gradient";
    case Pass::WeightGradient:
        return "weight-gradient";
    }
    return "";
}

Result<InterleaveRule> RuleTraits<InterleaveRule>::parse(TextCursor &cursor, std::string_view)
{
    InterleaveRule rule;
    TRY(rule.first, parsePass(cursor));
    TRY(rule.stage, parseStage(cursor));
    TRY(rule.lane, parseLane(cursor));
    if (!cursor.takeWord("with"))
        return cursor.expected("'with' and the other pass");
    TRY(rule.second, parsePass(cursor));
    const std::size_t before = cursor.position();
    TRY(rule.secondStage, parseStage(cursor));
    if (rule.secondStage >= 0 && rule.stage < 0) {
        cursor.rewind(before);
        return cursor.expected("no stage: the other pass is of every stage");
    }
    if (rule.secondStage < 0)
        rule.secondStage = rule.stage;
    TRY(rule.secondLane, parseLane(cursor));
    if (cursor.takeWord("at")) {
        TRY(const auto offset, cursor.integer("a micro-batch offset as -1", -kMostCount, kMostCount));
        rule.microBatchOffset = static_cast<std::int32_t>(offset);
    }
    return rule;
}

std::string RuleTraits<InterleaveRule>::print(const InterleaveRule &rule)
{
    std::string text = nameOf(rule.first);
    if (rule.stage >= 0)
        text += " stage " + std::to_string(rule.stage);
    text += toString(BlockPart{.lane = rule.lane});
    text += std::string(" with ") + nameOf(rule.second);
    if (rule.secondStage != rule.stage)
        text += " stage " + std::to_string(rule.secondStage);
    text += toString(BlockPart{.lane = rule.secondLane});
    if (rule.microBatchOffset != 0)
        text += std::string(" at ") + (rule.microBatchOffset > 0 ? "+" : "")
            + std::to_string(rule.microBatchOffset);
    return text;
}

void RuleTraits<InterleaveRule>::write(const InterleaveRule &rule, nlohmann::json &json)
{
    json["first"] = nameOf(rule.first);
    json["second"] = nameOf(rule.second);
    if (rule.stage >= 0)
        json["stage"] = rule.stage;
    if (rule.secondStage != rule.stage)
        json["second_stage"] = rule.secondStage;
    json["micro_batch_offset"] = rule.microBatchOffset;
    writeBlockPart({.lane = rule.lane}, "", json);
    writeBlockPart({.lane = rule.secondLane}, "second_", json);
}

Result<InterleaveRule> RuleTraits<InterleaveRule>::read(const nlohmann::json &json, const std::string &where)
{
    TRY_VOID(requireMembers(json,
        {"type", "first", "second", "stage", "second_stage", "micro_batch_offset", "lane", "second_lane"},
        where));
    InterleaveRule rule;
    TRY(rule.first, passAt(json, "first", where));
    TRY(rule.second, passAt(json, "second", where));
    TRY(rule.stage, countAt(json, "stage", where, 0, -1));
    TRY(rule.secondStage, countAt(json, "second_stage", where, 0, rule.stage));
    if (rule.stage < 0 && rule.secondStage >= 0)
        return wrong(where + "/second_stage", "expected a stage for both, or for none");
    TRY(rule.microBatchOffset, countAt(json, "micro_batch_offset", where, -kMostCount, 0));
    TRY(rule.lane, countAt(json, "lane", where, 0, -1));
    TRY(rule.secondLane, countAt(json, "second_lane", where, 0, -1));
    return rule;
}

} // namespace planloom
