// Blocks that rows run side by side.

#include "engine/verify/verify.h"

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/lowering/sliced_models.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

constexpr const char *kTwoLayers = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24";

/// Two stages of two devices each, which communicate inside their blocks.
std::string pairedStages(const std::string &rows)
{
    return "mesh tp=2 pp=2\nsplit all : heads over tp\nmicro-batches 4\nstage layer:1 : 1\nplace layer:1 : "
           "pp=1\n"
           "place layer:0 : pp=0\n"
        + rows;
}

/// (pass and micro-batch, pass and micro-batch) of blocks of which a device runs pieces in turn.
std::set<std::pair<std::string, std::string>> turnsOn(const ExecutionPlan &plan, std::size_t device)
{
    std::map<std::string, std::pair<std::size_t, std::size_t>> span; // first and last place
    const DeviceProgram &program = plan.devices[device];
    for (std::size_t i = 0; i < program.schedule.size(); ++i) {
        const Segment &segment = program.segments[static_cast<std::size_t>(program.schedule[i].segment)];
        if (!isPass(segment.kind))
            continue;
        const std::string name = std::string(segment.kind == SegmentKind::Forward ? "F" : "B")
            + std::to_string(program.schedule[i].microBatch);
        span.try_emplace(name, i, i).first->second.second = i;
    }
    std::set<std::pair<std::string, std::string>> turns;
    for (const auto &[a, mine] : span)
        for (const auto &[b, theirs] : span)
            if (mine.first < theirs.second && theirs.first < mine.second && a > b)
                turns.emplace(a, b);
    return turns;
}

TEST(Interleave, RunsTheBlocksOfARowPieceByPiece)
{
    const GraphSnapshot graph = trainingStep(kTwoLayers);
    for (const char *schedule : {"schedule 1f1b", "schedule gpipe", "schedule sequential", ""}) {
        SCOPED_TRACE(schedule);
        const auto plan = loweredRows(graph,
            pairedStages("interleave forward stage 0 with backward at -2\n" + std::string(schedule)), 4);
        ASSERT_TRUE(plan) << describe(plan.error());
        const std::set<std::pair<std::string, std::string>> expected{{"F2", "B0"}, {"F3", "B1"}};
        EXPECT_EQ(turnsOn(*plan, 0), expected);
        EXPECT_TRUE(turnsOn(*plan, 1).empty());
        const auto report = verify(*plan);
        ASSERT_TRUE(report && report->ok()) << report->failure->reason;
    }
}

TEST(Interleave, OfEveryStageIsCombined1F1BWhereOffsetsSuit)
{
    const GraphSnapshot graph = trainingStep(kTwoLayers);
    const auto rows = loweredRows(graph,
        pairedStages(
            "interleave forward stage 0 with backward at -2\ninterleave forward stage 1 with backward at -1"),
        4);
    ASSERT_TRUE(rows) << describe(rows.error());
    const auto combined = loweredRows(graph, pairedStages("schedule combined-1f1b"), 4);
    ASSERT_TRUE(combined) << describe(combined.error());
    for (const std::size_t device : {0U, 1U, 2U, 3U})
        EXPECT_EQ(turnsOn(*rows, device), turnsOn(*combined, device));
}

TEST(Interleave, PairsSlicesOfBlocks)
{
    const GraphSnapshot graph = trainingStep(kTwoLayers);
    const auto plan = loweredRows(graph,
        pairedStages(
            "schedule 1f1b\nslice all : sequence by 2\ninterleave forward stage 0 with backward at -2"),
        4);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto turns = turnsOn(*plan, 0);
    EXPECT_TRUE(turns.contains({"F2", "B0"}));
    EXPECT_TRUE(turns.contains({"F3", "B1"}));
    const auto report = verify(*plan);
    ASSERT_TRUE(report && report->ok()) << report->failure->reason;
}

TEST(Interleave, IsRefusedWhereBlocksWaitForOneAnother)
{
    const GraphSnapshot graph = trainingStep(kTwoLayers);
    const auto says = [&](const std::string &rows, const std::string &words) {
        const std::string why = refusalOf(graph, pairedStages(rows), 4);
        EXPECT_NE(why.find(words), std::string::npos) << rows << ": " << why;
    };
    says("interleave forward stage 0 with backward", "one of them waits for the other");
    says("interleave forward stage 0 with backward at +1\ninterleave forward stage 1 with backward at +1",
        "the schedule, or what other rows pair");
    says("interleave forward stage 0 with backward stage 1 at -1", "run on different devices");
    says("interleave forward stage 0 with weight-gradient at -1", "no stage that is named has both");
    says("interleave forward stage 2 with backward at -1", "there is no stage 2");
    says("interleave forward with backward at -4", "no two micro-batches are 4 apart");
    says("interleave forward with forward", "beside itself");
    says("interleave forward stage 0 with backward at -2\ninterleave forward stage 0 with backward at -3",
        "with another block already");
    says("schedule combined-1f1b\ninterleave forward stage 0 with backward at -1",
        "with another block already");
}

TEST(Interleave, ChangesTheOrderAlone)
{
    const GraphSnapshot graph = trainingStep(kTwoLayers);
    const auto planOf = [&](const std::string &rows) {
        const auto completion = completePlan(graph, 4, *parseTable(pairedStages(rows)));
        EXPECT_TRUE(completion && !firstError(*completion));
        return completion->plan;
    };
    const Plan before = planOf("");
    const Plan after = planOf("interleave forward stage 0 with backward at -2");
    EXPECT_NE(before.interleaved, after.interleaved);
    EXPECT_TRUE(isSameButForOrder(before, after));
}

} // namespace
} // namespace planloom
