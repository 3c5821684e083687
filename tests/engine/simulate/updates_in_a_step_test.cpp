// Pipelines that update within the step, against counts by hand: with versions of the weights they are not
// flushed.

#include "engine/lowering/order/in_flight.h"
#include "engine/simulate/simulate.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/simulate/memory_peak.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

constexpr std::int64_t kForward = 1'000'000; // nanoseconds of a layer
constexpr std::int64_t kBackward = 2'000'000;
constexpr std::int64_t kStages = 4;

/// Nothing takes time but the four equal layers, one a stage.
CostModel layersAlone(const Cluster &cluster)
{
    CostModel costs = costModelOf(cluster);
    costs.kernel = [](const KernelQuery &query) {
        if (query.op.kind != OperatorKind::Linear)
            return 0.0;
        return (query.op.direction == Direction::Forward ? kForward : kBackward) * 1e-9;
    };
    costs.leastKernel = {};
    costs.load = {};
    costs.collective = [](CollectiveKind, Bytes, GroupShape) { return 0.0; };
    costs.copy = [](Bytes, std::int32_t) { return 0.0; };
    return costs;
}

struct Stepped {
    ExecutionPlan plan{};
    Timeline timeline{};
};

Stepped steppedPipeline(const std::string &rows)
{
    static const GraphSnapshot graph =
        trainingStep("zoo:mlp?layers=4&input=16&hidden=16&classes=16&batch=64");
    std::string all = rows + "\n";
    for (int stage = 0; stage < kStages; ++stage) {
        const std::string s = std::to_string(stage);
        all += "stage in:layers." + s + " : " + s + "\nplace in:layers." + s + " : devices " + s + "\n";
    }
    const auto table = parseTable(all);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, kStages, *table);
    EXPECT_TRUE(completion && !firstError(*completion)) << all;
    const Cluster cluster = *clusterNamed("dgx-a100:4");
    const CostModel costs = layersAlone(cluster);
    auto plan = lower(completion->plan, cluster, costs);
    EXPECT_TRUE(plan) << describe(plan.error());
    const auto report = verify(*plan);
    EXPECT_TRUE(report && report->ok()) << report->failure->reason;
    auto timeline = simulate(*plan, cluster, costs);
    EXPECT_TRUE(timeline) << describe(timeline.error());
    return {*std::move(plan), *std::move(timeline)};
}

/// Of m micro-batches through p stages at once: (m + p - 1)(f + b).
std::int64_t unflushed(std::int64_t microBatches)
{
    return (microBatches + kStages - 1) * (kForward + kBackward);
}

constexpr const char *kStashing =
    "weight-versions in:layers.0 : 4\nweight-versions in:layers.1 : 3\nweight-versions in:layers.2 : 2";

TEST(UpdatesInAStep, FlushThePipelineWithoutVersions)
{
    // Every update waits for its micro-batches alone to go through: 1F1B, so many times.
    EXPECT_EQ(steppedPipeline("schedule 1f1b\nmicro-batches 16").timeline.step.count(), unflushed(16));
    for (const std::int64_t every : {1, 4, 8}) {
        const auto step =
            steppedPipeline("schedule 1f1b\nmicro-batches 16 update every " + std::to_string(every));
        EXPECT_EQ(step.timeline.step.count(), 16 / every * unflushed(every)) << every;
    }
}

TEST(UpdatesInAStep, LeaveThePipelineFullWithVersions)
{
    for (const std::int64_t count : {4, 8, 16}) {
        const std::string rows = "schedule 1f1b\nmicro-batches " + std::to_string(count) + " update every ";
        const auto pipeDream = steppedPipeline(rows + "1\n" + kStashing);
        EXPECT_EQ(pipeDream.timeline.step.count(), unflushed(count)) << count;
        EXPECT_EQ(mostInFlight(pipeDream.plan), (std::vector<std::int32_t>{4, 3, 2, 1}));
        const auto doubled = steppedPipeline(rows + "4\nweight-versions all : 2");
        EXPECT_EQ(doubled.timeline.step.count(), unflushed(count)) << count;
    }
}

/// One version less than micro-batches are in flight: the first stage waits for its update each time, one
/// forward and one backward block of the others: its period grows from f + b by as much as the bubble asks.
TEST(UpdatesInAStep, WaitWhereAVersionIsMissing)
{
    const std::string rows = "schedule 1f1b\nmicro-batches 16 update every 1\n";
    const auto all = steppedPipeline(rows + kStashing);
    const auto fewer = steppedPipeline(rows
        + "weight-versions in:layers.0 : 3\nweight-versions in:layers.1 : 3\n"
          "weight-versions in:layers.2 : 2");
    EXPECT_GT(fewer.timeline.step.count(), all.timeline.step.count());
    EXPECT_EQ(mostInFlight(fewer.plan).front(), 3);
}

TEST(UpdatesInAStep, HoldTheGradientsOfOne)
{
    const auto one = steppedPipeline("schedule 1f1b\nmicro-batches 16");
    const auto many =
        steppedPipeline("schedule 1f1b\nmicro-batches 16 update every 1\n" + std::string(kStashing));
    constexpr std::int64_t kNumbers = 16 * 16 + 16;
    for (std::size_t stage = 0; stage < kStages; ++stage) {
        EXPECT_EQ(most(one.timeline.memory[stage], MemoryKind::Gradient) <= 2 * kNumbers * 4, true);
        EXPECT_EQ(most(many.timeline.memory[stage], MemoryKind::Gradient), kNumbers * 4) << stage;
        EXPECT_EQ(
            many.timeline.memory[stage].bytes.back()[static_cast<std::size_t>(MemoryKind::Gradient)], 0);
        const auto weight = static_cast<std::size_t>(MemoryKind::Weight);
        EXPECT_EQ(many.timeline.memory[stage].bytes.front()[weight],
            static_cast<std::int64_t>(kStages - stage) * kNumbers * 4 + (stage == 3 ? 4 : 0));
    }
}

/// The order of the first device, micro-batch by micro-batch: PipeDream's 1F1B with an update behind each
/// backward block.
TEST(UpdatesInAStep, FollowTheirBackwardBlocks)
{
    const auto step =
        steppedPipeline("schedule 1f1b\nmicro-batches 8 update every 1\n" + std::string(kStashing));
    std::string order;
    const DeviceProgram &first = step.plan.devices[0];
    for (const ScheduleEntry &entry : first.schedule) {
        const SegmentKind kind = first.segments[static_cast<std::size_t>(entry.segment)].kind;
        const char *name = kind == SegmentKind::Forward ? "F"
            : kind == SegmentKind::Backward             ? "B"
            : kind == SegmentKind::Optimizer            ? "U"
                                                        : nullptr;
        if (name && entry.begin == 0)
            order += name + std::to_string(entry.microBatch) + " ";
    }
    EXPECT_EQ(order, "F0 F1 F2 F3 B0 U0 F4 B1 U1 F5 B2 U2 F6 B3 U3 F7 B4 U4 B5 U5 B6 U6 B7 U7 ");
}

} // namespace
} // namespace planloom
