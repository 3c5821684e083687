#include "engine/search/bounds/path_bound.h"

#include "engine/schedule/schedule_templates.h"
#include "engine/search/time/step_estimate.h"
#include "engine/table/table_text.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace planloom {
namespace {

double takes(const LongestWay &way, const std::vector<StageTime> &stages, const std::vector<StageSend> &sends,
    bool splits)
{
    double seconds = 0;
    for (std::size_t s = 0; s < stages.size(); ++s)
        seconds += way.stages[s].forward * stages[s].forward
            + way.stages[s].backward * (stages[s].backward + (splits ? 0 : stages[s].weights))
            + way.stages[s].weights * stages[s].weights + way.stages[s].ahead * stages[s].ahead;
    for (std::size_t i = 0; i < sends.size(); ++i)
        seconds +=
            way.sends[i].forward * sends[i].forwardAhead + way.sends[i].backward * sends[i].backwardAhead;
    if (way.into >= 0) {
        const StageSend &into = sends[static_cast<std::size_t>(way.into)];
        seconds += way.intoBackward ? into.backwardAhead : into.forwardAhead;
    }
    return seconds;
}

/// What lies on the longest way to the last block is all of the time.
TEST(PathBound, TheLongestWayTakesAsLongAsThePipeline)
{
    std::mt19937 random(3);
    std::uniform_real_distribution<double> any(0.1, 2);
    for (const auto &[schedule, perRank] : {std::pair{ScheduleKind::OneFOneB, 1}, {ScheduleKind::GPipe, 1},
             {ScheduleKind::Interleaved, 2}, {ScheduleKind::ZeroBubbleH1, 1}})
        for (int times = 0; times < 20; ++times) {
            std::vector<StageTime> stages;
            std::vector<StageSend> sends;
            for (int s = 0; s < 4 * perRank; ++s) {
                stages.push_back({any(random), any(random), any(random), times % 2 * 6 * any(random)});
                for (int to = s + 1; to < std::min(s + 3, 4 * perRank); ++to)
                    if (to == s + 1 || random() % 3 == 0)
                        sends.push_back(
                            {s, to, any(random) / 4, any(random) / 4, any(random) / 8, any(random) / 8});
            }
            std::vector<PlayedBlock> blocks;
            const auto played = playPipeline(schedule, stages, sends, SendOrder::Any, 4, 8, true, &blocks);
            ASSERT_TRUE(played);
            double longest = 0;
            for (std::size_t b = 0; b < blocks.size(); ++b) {
                const auto to = static_cast<std::int32_t>(b);
                const bool splits = schedule == ScheduleKind::ZeroBubbleH1;
                const auto way = [&](bool including) {
                    return takes(longestWay(blocks, to, including, stages.size(), sends.size()), stages,
                        sends, splits);
                };
                EXPECT_NEAR(way(false), blocks[b].start, 1e-9);
                longest = std::max(longest, way(true));
            }
            EXPECT_NEAR(longest, played->makespan, 1e-9);
        }
}

/// Stages of one replica may lie on one node where those of another lie on two: the slowest counts.
TEST(PathBound, WhatIsSentTakesAsLongAsInTheSlowestReplica)
{
    const Model model(tinyGpt(12));
    const Cluster cluster = *clusterNamed("dgx-h100:12"); // eight devices on the first node
    const CostModel costs = costModelOf(cluster);
    const auto space = searchSpaceOf(model, cluster, 12, {});
    ASSERT_TRUE(space);
    auto estimator = StepEstimator::make(model, cluster, 12, {}, *space, costs, PrecisionPreset::Float32);
    ASSERT_TRUE(estimator);
    const Configuration configuration{
        .replicas = 2, .ranks = 6, .microBatches = 1, .schedule = ScheduleKind::OneFOneB};
    ASSERT_TRUE((*estimator)->boundOf(configuration, {}));
    const MeshPlaces places = meshPlaces(configuration, *space, cluster, 12);
    const LinkTimes links(configuration, places, costs, cluster);
    constexpr std::int64_t kBytes = 1 << 20;
    const auto sends = links.sendsOf({{0, 1, false, {{kBytes}}, {}}, {1, 2, false, {{kBytes}}, {{kBytes}}}});
    const auto seconds = [&](std::int32_t a, std::int32_t b) {
        return costs.collective(CollectiveKind::SendRecv, Bytes{kBytes}, groupShape(cluster, {{a}, {b}}));
    };
    ASSERT_LT(seconds(1, 2), seconds(7, 8));
    EXPECT_EQ(sends[0].forward, seconds(0, 1)); // devices 0 and 1, 6 and 7
    EXPECT_EQ(sends[1].forward, seconds(7, 8)); // 1 and 2, 7 and 8
    EXPECT_EQ(sends[1].backward, seconds(7, 8));
}

/// One after the other, so far as a pass has nothing else to do first; a rank is sent nothing twice.
TEST(PathBound, BlocksBeginWhenTheyNeedNotWait)
{
    using Sent = StageLink::Sent;
    EXPECT_EQ(sentAhead({Sent{.before = 0}, Sent{.before = 1}}, {2, 4}).seconds, 5);
    EXPECT_EQ(sentAhead({Sent{.before = 0}, Sent{.before = 1}}, {2, 4}).by, 1);
    EXPECT_EQ(sentAhead({Sent{.before = 0}, Sent{.before = 9}}, {2, 4}).seconds, 2);
    EXPECT_EQ(sentAhead({Sent{.before = 0}, Sent{.before = 9}}, {2, 4}).by, 0);
    EXPECT_EQ(sentAhead({Sent{.before = 7}}, {2}).seconds, 0);
    EXPECT_EQ(sentAhead({Sent{.before = 7}}, {2}).by, -1);

    const Model model(tinyGpt());
    const Cluster cluster = *clusterNamed("dgx2-v100:2");
    const CostModel costs = costModelOf(cluster);
    const auto space = searchSpaceOf(model, cluster, 2, {});
    ASSERT_TRUE(space);
    auto estimator = StepEstimator::make(model, cluster, 2, {}, *space, costs, PrecisionPreset::Float32);
    ASSERT_TRUE(estimator);
    const Configuration configuration{
        .ranks = 2, .stagesPerRank = 2, .microBatches = 2, .schedule = ScheduleKind::Interleaved};
    ASSERT_TRUE((*estimator)->boundOf(configuration, {}));
    const MeshPlaces places = meshPlaces(configuration, *space, cluster, 2);
    const LinkTimes links(configuration, places, costs, cluster);
    const auto sends = links.sendsOf({{0, 1, false, {{1 << 20}}, {{1 << 20}}},
        {0, 3, false, {{.bytes = 1 << 20, .earlier = {1}}}, {{1 << 20}}}});
    EXPECT_GT(sends[0].forward, 0);
    EXPECT_EQ(sends[1].forward, 0) << "stage 1 has it, on the same rank";
    EXPECT_EQ(sends[1].backward, sends[0].backward) << "each gives its own gradients";
}

/// Of the only partition there is, in time and in memory: reductions of all stages of a rank, in buckets or
/// one by one, those of a weight that the first and the last stage share, and what is updated behind them.
TEST(PathBound, TheOnlyPartitionTakesLittleMoreThanItsLongestWay)
{
    const Model model(zooTraining("zoo:gpt?layers=8&hidden=512&heads=8&seq=128&vocab=50304&batch=16"));
    const Cluster cluster = *clusterNamed("dgx2-v100:32");
    const CostModel costs = costModelOf(cluster);
    ConstraintTable rows;
    auto row = parseRow("replicate all : over tp");
    ASSERT_TRUE(row);
    rows.rows.push_back(*std::move(row));
    const auto space = searchSpaceOf(model, cluster, 32, rows);
    ASSERT_TRUE(space);
    auto made = StepEstimator::make(model, cluster, 32, rows, *space, costs, PrecisionPreset::Float16);
    ASSERT_TRUE(made);
    StepEstimator &estimator = **made;
    using enum ScheduleKind;
    for (const Configuration &configuration : {Configuration{.replicas = 16, .shards = 2, .zero = 1},
             Configuration{.replicas = 4, .ranks = 4, .shards = 2, .microBatches = 4, .schedule = OneFOneB},
             Configuration{.replicas = 8,
             .ranks = 2,
             .shards = 2,
             .stagesPerRank = 2,
             .microBatches = 2,
             .schedule = Interleaved,
             .zero = 1},
             Configuration{.replicas = 2,
             .ranks = 4,
             .shards = 2,
             .microBatches = 8,
             .schedule = ZeroBubbleH1,
             .zero = 2},
             Configuration{
                 .replicas = 8, .ranks = 2, .shards = 2, .microBatches = 2, .schedule = OneFOneB, .zero = 3},
             Configuration{.ranks = 4, .shards = 2, .microBatches = 8, .schedule = ZeroBubbleH1}}) {
        SCOPED_TRACE(toString(configuration));
        ASSERT_TRUE(estimator.boundOf(configuration, {}));
        const PartitionProblem &problem = estimator.problemOf(configuration);
        ASSERT_TRUE(problem.isDecided());
        const std::vector<std::int32_t> only(problem.operatorCount(), 0);
        const auto estimate = estimator.estimateWith(configuration, only);
        ASSERT_TRUE(estimate);
        const StagePlan &stages = *estimate->stages;
        const MeshPlaces places = meshPlaces(configuration, *space, cluster, 32);
        const Reductions reductions(configuration, places, costs, cluster, problem);
        const auto least =
            leastStages(problem, stages, splitsBackward(configuration.schedule), configuration.zero < 2);
        ASSERT_TRUE(least);
        const OperatorTimes waits;
        PathBound bound(configuration, problem, stages, reductions,
            LinkTimes(configuration, places, costs, cluster), *least, waits, true);
        const OperatorTimes times = timesOf(problem, only);
        ASSERT_TRUE(bound.add(
            only, stageFigures(problem, only, times, stages), stageLinks(problem, stages, only, times)));
        const auto found = bound.solve({});
        ASSERT_TRUE(found);
        const auto peak = estimator.stagedPeakOf(configuration, {});
        ASSERT_TRUE(peak);
        EXPECT_LE(*peak, estimate->peakBytes);
        EXPECT_GT(static_cast<double>(*peak), 0.9 * static_cast<double>(estimate->peakBytes));
        EXPECT_LE(found->bound, estimate->seconds * (1 + 1e-9));
        // What layers wait for one another's weights and gradients is in no bound.
        const double near = configuration.zero >= 2 ? 0.8 : configuration.replicas < 16 ? 0.97 : 0.92;
        EXPECT_GT(found->bound, estimate->seconds * near);
    }
}

/// No partition, however it was come by, takes less than the bounds say.
void expectBelowRandomPartitions(const GraphSnapshot &graph, std::int32_t devices = 8,
    PrecisionPreset precision = PrecisionPreset::Float32)
{
    const Model model(graph);
    const Cluster cluster = *clusterNamed("dgx2-v100:" + std::to_string(devices));
    const CostModel costs = costModelOf(cluster);
    const auto space = searchSpaceOf(model, cluster, devices, {});
    ASSERT_TRUE(space);
    auto estimator = StepEstimator::make(model, cluster, devices, {}, *space, costs, precision);
    ASSERT_TRUE(estimator);
    std::mt19937 random(5);
    int tried = 0;
    int tight = 0;
    for (std::size_t c = 0; c < space->configurations.size(); c += 7) {
        const Configuration &configuration = space->configurations[c];
        const auto bound = (*estimator)->stagedBoundOf(configuration, {});
        if (!bound)
            continue;
        SCOPED_TRACE(toString(configuration));
        double most = bound->seconds;
        double least = std::numeric_limits<double>::infinity();
        for (int path = 0; path < 6; ++path) {
            const auto along = (*estimator)->estimateAlongPaths(configuration, space->memoryLimit, {});
            ASSERT_TRUE(along);
            most = std::max(most, along->bound);
            least = std::min(least, along->seconds);
        }
        tight += most > 0.95 * least ? 1 : 0;
        const PartitionProblem &problem = (*estimator)->problemOf(configuration);
        for (int times = 0; times < 20; ++times) {
            std::vector<std::int32_t> choice;
            for (std::size_t i = 0; i < problem.operatorCount(); ++i)
                choice.push_back(static_cast<std::int32_t>(random() % problem.choiceCount(i)));
            if (!std::isfinite(problem.costOf({}, choice)))
                continue;
            const auto estimate = (*estimator)->estimateWith(configuration, choice);
            ASSERT_TRUE(estimate);
            EXPECT_LE(most, estimate->seconds * (1 + 1e-9));
            EXPECT_LE(bound->peakBytes, estimate->peakBytes);
        }
        EXPECT_LE(most, least * (1 + 1e-9));
        ++tried;
    }
    EXPECT_GT(tried, 30);
    EXPECT_GT(tight, tried / 2);
}

TEST(PathBound, NoPartitionOfATransformerIsBelow)
{
    expectBelowRandomPartitions(tinyGpt(8));
}

/// Scale units gather what was updated as the step begins.
TEST(PathBound, NoPartitionOfScaleUnitsIsBelow)
{
    expectBelowRandomPartitions(tinyGpt(32), 32, PrecisionPreset::Float16);
}

/// Operators that read one tensor, so many that no table holds all their choices.
TEST(PathBound, NoPartitionOfManyReadersIsBelow)
{
    GraphBuilder builder("readers");
    const TensorId x = builder.input("x", {DataType::Float32, {8, 64}});
    const TensorId shared =
        builder.one(OperatorKind::Linear, {x, builder.weight("w", {64, 64}), {}}, {}, "shared");
    TensorId sum = shared;
    for (int i = 0; i < 10; ++i) {
        const std::string name = std::to_string(i);
        const TensorId read = builder.one(
            OperatorKind::Linear, {shared, builder.weight("w" + name, {64, 64}), {}}, {}, "read" + name);
        sum = builder.one(OperatorKind::Add, {sum, read}, {}, "sum" + name);
    }
    const TensorId loss = builder.one(OperatorKind::ReduceSum, {sum},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1}}, {"keepdims", std::int64_t{0}}}), "loss");
    auto forward = builder.finish({}, loss);
    ASSERT_TRUE(forward) << describe(forward.error());
    auto graph = buildTrainingStep(*forward, {});
    ASSERT_TRUE(graph) << describe(graph.error());
    expectBelowRandomPartitions(planloom::shared(*std::move(graph)));
}

} // namespace
} // namespace planloom
