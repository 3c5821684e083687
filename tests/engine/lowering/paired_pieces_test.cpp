// Rows that order pieces of two blocks that run side by side.

#include "engine/graph/dimensions/batch.h"
#include "engine/lowering/order/paired_pieces.h"
#include "engine/lowering/order/sequence.h"
#include "engine/verify/verify.h"

#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

#include <random>

namespace planloom {
namespace {

/// Two blocks; the first one's cuts are marks 0 to 9, the second one's 10 to 19, as operators' places
/// between.
std::vector<BlockInfo> twoBlocks(std::vector<std::int32_t> first, std::vector<std::int32_t> second)
{
    std::vector<BlockInfo> blocks(2);
    blocks[0].cuts = std::move(first);
    blocks[1].cuts = std::move(second);
    return blocks;
}

/// "a-3 b-12 a3-": pieces in their order, from mark to mark.
std::string piecesOf(const Result<std::vector<BlockRun>> &runs)
{
    if (!runs)
        return runs.error().message;
    std::string text;
    for (const BlockRun &run : *runs) {
        text += text.empty() ? "" : " ";
        text += run.block == 0 ? "a" : "b";
        text +=
            (run.from < 0 ? "" : std::to_string(run.from)) + "-" + (run.to < 0 ? "" : std::to_string(run.to));
    }
    return text;
}

TEST(PairedPieces, AlternateAtAnEvenPace)
{
    EXPECT_EQ(
        piecesOf(pairedPieces(twoBlocks({2, 4}, {12, 14}), {0, 0}, {1, 0})), "a-2 b-12 a2-4 b12-14 a4- b14-");
    EXPECT_EQ(piecesOf(pairedPieces(twoBlocks({2}, {11, 12, 13}), {0, 0}, {1, 0})),
        "b-11 a-2 b11-12 b12-13 a2- b13-");
    EXPECT_EQ(piecesOf(pairedPieces(twoBlocks({}, {}), {0, 0}, {1, 0})), "a- b-");
}

TEST(PairedPieces, GoBeforeAndBehindOthersByRows)
{
    const auto blocks = twoBlocks({2, 4}, {12, 14});
    const auto with = [&](const std::vector<PieceOrder> &orders) {
        return piecesOf(pairedPieces(blocks, {0, 0}, {1, 0}, orders));
    };
    const RowId row{3};
    // All of a's second piece before b's second one: what stands between them comes along, no more.
    EXPECT_EQ(with({{true, 4, 12, row}}), "a-2 b-12 a2-4 b12-14 a4- b14-");
    EXPECT_EQ(with({{true, -1, 12, row}}), "a-2 b-12 a2-4 a4- b12-14 b14-");
    EXPECT_EQ(with({{true, -1, -1, row}}), "a-2 a2-4 a4- b-12 b12-14 b14-");
    EXPECT_EQ(with({{false, -1, 4, row}}), "a-2 b-12 a2-4 b12-14 b14- a4-");
    EXPECT_EQ(with({{false, -1, -1, row}}), "b-12 b12-14 b14- a-2 a2-4 a4-");
    // Two rows at once.
    EXPECT_EQ(with({{true, 4, -1, row}, {false, 14, 4, row}}), "a-2 a2-4 b-12 b12-14 a4- b14-");
}

TEST(PairedPieces, AreCutWhereARowPartsThem)
{
    const auto blocks = twoBlocks({4}, {14});
    const auto with = [&](const std::vector<PieceOrder> &orders) {
        return piecesOf(pairedPieces(blocks, {0, 0}, {1, 0}, orders));
    };
    EXPECT_EQ(with({{true, 6, -1, RowId{0}}}), "a-4 a4-6 b-14 a6- b14-");
    EXPECT_EQ(with({{false, 12, 2, RowId{0}}}), "a-2 b-12 a2-4 b12-14 a4- b14-");
    // Where nothing comes between, nothing is parted.
    EXPECT_EQ(with({{true, 2, 12, RowId{0}}}), "a-4 b-14 a4- b14-");
}

TEST(PairedPieces, RefuseRowsInACircle)
{
    const auto runs = pairedPieces(
        twoBlocks({2, 4}, {12, 14}), {0, 0}, {1, 0}, {{true, 4, 12, RowId{5}}, {false, 14, 2, RowId{7}}});
    ASSERT_FALSE(runs);
    EXPECT_NE(runs.error().message.find("row 6"), std::string::npos) << runs.error().message;
    EXPECT_EQ(runs.error().where, "row:7/rule");
}

/// Which operators of the passes a device runs, in its order: "F2 name".
std::vector<std::string> kernelsIn(const ExecutionPlan &plan, std::size_t device)
{
    std::vector<std::string> kernels;
    const DeviceProgram &program = plan.devices[device];
    for (const ScheduleEntry &entry : program.schedule) {
        const Segment &segment = program.segments[static_cast<std::size_t>(entry.segment)];
        if (!isPass(segment.kind))
            continue;
        const std::size_t end =
            entry.end < 0 ? segment.instructions.size() : static_cast<std::size_t>(entry.end);
        for (auto i = static_cast<std::size_t>(entry.begin); i < end; ++i)
            if (segment.instructions[i].kind == InstructionKind::Kernel)
                kernels.push_back(
                    std::to_string(entry.microBatch) + " " + plan.graph->at(segment.instructions[i].op).name);
    }
    return kernels;
}

constexpr const char *kPairedStages =
    "mesh tp=2 pp=2\nsplit all : heads over tp\nmicro-batches 4\nstage layer:1 : 1\n"
    "place layer:1 : pp=1\nplace layer:0 : pp=0\nschedule combined-1f1b\n";
constexpr const char *kModelOfPairs = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24";

TEST(PairedPieces, FollowRowsOfSingleOperators)
{
    const GraphSnapshot graph = trainingStep(kModelOfPairs);
    const auto place = [](const std::vector<std::string> &kernels, const std::string &name) {
        return std::find(kernels.begin(), kernels.end(), name) - kernels.begin();
    };
    const auto plain = loweredRows(graph, kPairedStages, 4);
    ASSERT_TRUE(plain) << describe(plain.error());
    const auto before = kernelsIn(*plain, 0);
    const std::string last = "h.0.mlp.c_proj";
    const std::string first = "h.0.mlp.c_proj'";
    ASSERT_LT(place(before, "2 " + last), static_cast<std::ptrdiff_t>(before.size()));
    ASSERT_LT(place(before, "0 " + first), place(before, "2 " + last)) << "nothing to order otherwise";
    const auto ordered = loweredRows(
        graph, std::string(kPairedStages) + "order name:" + last + " before name:" + first + " at -2", 4);
    ASSERT_TRUE(ordered) << describe(ordered.error());
    for (const std::size_t device : {0U, 2U}) {
        const auto after = kernelsIn(*ordered, device);
        EXPECT_LT(place(after, "2 " + last), place(after, "0 " + first));
        EXPECT_LT(place(after, "3 " + last), place(after, "1 " + first));
    }
    EXPECT_EQ(kernelsIn(*ordered, 1), kernelsIn(*plain, 1)) << "another stage";
    const auto report = verify(*ordered);
    ASSERT_TRUE(report && report->ok()) << report->failure->reason;
    // For one micro-batch alone.
    const auto once = loweredRows(graph,
        std::string(kPairedStages) + "order name:" + last + " before name:" + first + " at -2 of 2", 4);
    ASSERT_TRUE(once) << describe(once.error());
    const auto after = kernelsIn(*once, 0);
    EXPECT_LT(place(after, "2 " + last), place(after, "0 " + first));
    EXPECT_GT(place(after, "3 " + last), place(after, "1 " + first));
}

TEST(PairedPieces, OfRowsInACircleAreRefusedWithTheRow)
{
    const GraphSnapshot graph = trainingStep(kModelOfPairs);
    const std::string why = refusalOf(graph,
        std::string(kPairedStages)
            + "order name:h.0.mlp.c_proj before name:h.0.mlp.c_proj' at -2\n"
              "order name:h.0.attn.c_attn' before name:h.0.attn.c_attn at +2",
        4);
    EXPECT_NE(why.find("side by side"), std::string::npos) << why;
    EXPECT_NE(why.find("row 8"), std::string::npos) << why;
}

TEST(PairedPieces, OfAScheduleAreNamedWhereARowCannotHoldBesideThem)
{
    const GraphSnapshot graph = trainingStep("zoo:gpt?layers=4&hidden=16&heads=4&seq=8&batch=8&vocab=24");
    const auto table = galleryTable("pipeline:stages=2,micro-batches=8,schedule=dualpipev", graph, 2);
    ASSERT_TRUE(table) << describe(table.error());
    const std::string why = refusalOf(graph, print(*table) + "\norder layer:0 before layer:3 at -2\n", 2);
    EXPECT_NE(why.find("blocks that dualpipev runs side by side"), std::string::npos) << why;
    EXPECT_NE(why.find("or choose another schedule"), std::string::npos) << why;
}

TEST(PairedPieces, OfANewRowNeedNoNewPrograms)
{
    const GraphSnapshot graph = trainingStep(kModelOfPairs);
    const auto planOf = [&](const std::string &rows) {
        const auto completion = completePlan(graph, 4, *parseTable(rows));
        EXPECT_TRUE(completion && !firstError(*completion));
        return completion->plan;
    };
    const Cluster cluster = *clusterNamed("cpu:4");
    const std::string row = "order name:h.0.mlp.c_proj before name:h.0.mlp.c_proj' at -2";
    const Plan before = planOf(kPairedStages);
    const Plan after = planOf(kPairedStages + row);
    ASSERT_TRUE(isSameButForOrder(before, after));
    const auto materialized = materialize(before, cluster, costModelOf(cluster));
    ASSERT_TRUE(materialized);
    const auto moved = sequence(*materialized, after);
    ASSERT_TRUE(moved && *moved);
    EXPECT_EQ(kernelsIn(**moved, 0), kernelsIn(*loweredRows(graph, kPairedStages + row, 4), 0));
    // Where nothing ran side by side before, programs do not know where they may be cut.
    std::string apart = kPairedStages;
    apart.replace(apart.find("combined-"), 9, "");
    const auto whole = materialize(planOf(apart), cluster, costModelOf(cluster));
    ASSERT_TRUE(whole);
    const auto unknown = sequence(*whole, after);
    ASSERT_TRUE(unknown) << describe(unknown.error());
    EXPECT_FALSE(*unknown);
}

} // namespace
} // namespace planloom
