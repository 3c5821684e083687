// Stages in lanes: Chimera's order, rows that name a lane, plan files, and what is refused.

#include "engine/lowering/program/execution_plan_json.h"
#include "engine/verify/verify.h"

#include "tests/engine/lowering/block_text.h"
#include "tests/engine/lowering/models_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

constexpr const char *kGptOfFour = "zoo:gpt?layers=4&hidden=16&heads=4&seq=8&batch=8&vocab=24";

/// Two lanes of as many stages as devices, each from one end.
std::string bothWays(std::int32_t stages)
{
    std::string rows = "lanes all : 2\nmicro-batches 2\n";
    for (std::int32_t s = 0; s < stages; ++s) {
        const std::string stage = std::to_string(s);
        rows += "stage layer:" + stage + " : " + stage + "\nplace layer:" + stage + " : devices " + stage
            + "," + std::to_string(stages - 1 - s) + "\n";
    }
    return rows;
}

std::size_t placeIn(const std::string &blocks, const std::string &block)
{
    return (" " + blocks + " ").find(" " + block + " ");
}

TEST(Lanes, OfChimeraRunFromBothEnds)
{
    const GraphSnapshot graph = trainingStep(kGptOfFour);
    const auto plan = loweredRows(graph, bothWays(4) + "schedule chimera", 4);
    ASSERT_TRUE(plan) << describe(plan.error());
    EXPECT_EQ(blocksOn(*plan, 0), "F0a F1a F0b B0b F1b B1b B0a B1a");
    EXPECT_EQ(blocksOn(*plan, 1), "F0a F0b F1a F1b B0b B0a B1b B1a");
    EXPECT_EQ(blocksOn(*plan, 2), "F0b F0a F1b F1a B0a B0b B1a B1b");
    EXPECT_EQ(blocksOn(*plan, 3), "F0b F1b F0a B0a F1a B1a B0b B1b");
}

TEST(Lanes, KeepToThemselves)
{
    const GraphSnapshot graph = trainingStep(kGptOfFour);
    const auto plan = loweredRows(graph, bothWays(4) + "schedule gpipe", 4);
    ASSERT_TRUE(plan) << describe(plan.error());
    for (std::size_t device = 0; device < 4; ++device)
        for (const Segment &segment : plan->devices[device].segments) {
            if (!isPass(segment.kind))
                continue;
            const auto own = static_cast<std::int32_t>(device);
            EXPECT_EQ(segment.stage.index, segment.lane == 0 ? own : 3 - own);
            // Half of every micro-batch, with a copy of the weights: nothing is asked of the other lane.
            for (const Instruction &instruction : segment.instructions)
                EXPECT_LT(instruction.group, 0) << device << " " << segment.stage.index;
        }
}

TEST(Lanes, CanBeOrderedApart)
{
    const GraphSnapshot graph = trainingStep(kGptOfFour);
    const std::string rows = bothWays(2) + "schedule gpipe\n"
        + "place layer:2 : devices 1,0\nstage layer:2 : 1\nplace layer:3 : devices 1,0\nstage layer:3 : 1\n";
    for (const bool first : {true, false}) {
        const std::string row = first
            ? "order forward & layer:0 in lane 0 before forward & layer:1 in lane 1"
            : "order forward & layer:1 in lane 1 before forward & layer:0 in lane 0 at +1";
        const auto plan = loweredRows(graph, rows + row, 2);
        ASSERT_TRUE(plan) << describe(plan.error());
        const std::string blocks = blocksOn(*plan, 0);
        EXPECT_LT(placeIn(blocks, first ? "F1a" : "F0b"), placeIn(blocks, first ? "F1b" : "F1a")) << blocks;
        const auto report = verify(*plan);
        ASSERT_TRUE(report && report->ok()) << report->failure->reason;
    }
    // The other way round there is a circle: the second stage waits for the first of its own lane.
    EXPECT_NE(refusalOf(graph,
                  rows
                      + "order forward & layer:1 in lane 1 before forward & layer:0 in lane 0\n"
                        "order forward & layer:1 in lane 0 before forward & layer:0 in lane 1",
                  2),
        "");
}

TEST(Lanes, ThatNoStageHasAreRefusedInRows)
{
    const GraphSnapshot graph = trainingStep(kGptOfFour);
    const std::string missing =
        refusalOf(graph, bothWays(4) + "order forward & layer:0 in lane 2 before forward & layer:3", 4);
    EXPECT_NE(missing.find("runs nothing in lane 2: its stage has 2 lanes and 1 slice"), std::string::npos)
        << missing;
    const std::string slice =
        refusalOf(graph, bothWays(4) + "order forward & layer:0 in slice 1 before forward & layer:3", 4);
    EXPECT_NE(slice.find("runs nothing in slice 1"), std::string::npos) << slice;
    EXPECT_NE(
        refusalOf(graph,
            bothWays(4) + "interleave forward stage 0 in lane 3 with backward stage 3 in lane 1 at -1", 4),
        "");
}

TEST(Lanes, WithoutAWordAreOrderedLaneByLane)
{
    const GraphSnapshot graph = trainingStep(kGptOfFour);
    const auto plan = loweredRows(
        graph, bothWays(4) + "schedule gpipe\norder backward & layer:3 before forward & layer:3 at +1", 4);
    ASSERT_TRUE(plan) << describe(plan.error());
    EXPECT_LT(placeIn(blocksOn(*plan, 3), "B0a"), placeIn(blocksOn(*plan, 3), "F1a"));
    EXPECT_LT(placeIn(blocksOn(*plan, 0), "B0b"), placeIn(blocksOn(*plan, 0), "F1b"));
}

TEST(Lanes, WhatCannotBeInThemIsRefused)
{
    const GraphSnapshot graph = trainingStep(kGptOfFour);
    const auto says = [&](const std::string &rows, std::int32_t devices, const std::string &what) {
        const std::string refusal = refusalOf(graph, rows, devices);
        EXPECT_NE(refusal.find(what), std::string::npos) << rows << ": " << refusal;
    };
    says("lanes all : 2\nmesh dp=2", 2, "say no axis of it");
    says("mesh dp=2\nlanes all : over dp\nplace all : devices 0,1", 2, "which has no axis 'dp'");
    says("lanes all : 2\nplace all : devices 0,1,2", 3, "");
    says(bothWays(4) + "schedule zb-h1", 4, "takes stages without lanes");
    says("lanes all : 2\nplace all : devices 0,1\ncoshard all : batch by 2", 2, "");
}

TEST(Lanes, StandInPlanFiles)
{
    const GraphSnapshot graph = trainingStep(kGptOfFour);
    const auto plan = loweredRows(graph, bothWays(4) + "schedule chimera", 4);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto read = executionPlanFromJson(toJson(*plan));
    ASSERT_TRUE(read) << describe(read.error());
    EXPECT_EQ(read->partitions, plan->partitions);
    EXPECT_EQ(read->devices, plan->devices);
}

} // namespace
} // namespace planloom
