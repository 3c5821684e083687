// What replicas cut among themselves (ZeRO, arXiv:1910.02054): any number of scale units, and devices of a
// unit beside them as one group.

#include "engine/lowering/program/execution_plan_json.h"
#include "engine/plan/complete.h"
#include "tests/engine/runtime/like_the_model.h"

#include <algorithm>
#include <string>
#include <tuple>

namespace planloom {
namespace {

constexpr const char *kSharedGpt = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=20&vocab=24";

Result<ExecutionPlan> loweredInUnits(
    const GraphSnapshot &graph, const std::string &rows, std::int32_t devices, Plan *decided = nullptr)
{
    TRY(const auto table, parseTable(rows));
    TRY(auto completion, completePlan(graph, devices, table, {.units = UseUnits::WherePossible}));
    if (const auto failed = firstError(completion))
        return *failed;
    if (decided)
        *decided = completion.plan;
    return lower(completion.plan, *clusterNamed("cpu:" + std::to_string(devices)));
}

/// Of states, persistent, on a device.
std::int64_t stateBytes(const ExecutionPlan &plan, std::size_t device)
{
    std::int64_t bytes = 0;
    for (const BufferInfo &buffer : plan.devices[device].buffers)
        if (buffer.persistent && buffer.memory == MemoryKind::OptimizerState)
            bytes += sizeOf(buffer).count;
    return bytes;
}

/// (stage, replicas, precision)
class SharedUpdates : public testing::TestWithParam<std::tuple<int, int, std::string>>
{
};

TEST_P(SharedUpdates, AnyNumberOfUnitsSharesThemOut)
{
    const auto &[stage, replicas, precision] = GetParam();
    const GraphSnapshot graph = trainingStep(kSharedGpt);
    // Of 20 samples: 5 and 20 replicas divide the batch and no dimension of a weight.
    const std::string rows = "mesh dp=" + std::to_string(replicas)
        + "\nsplit all : batch over dp\nprecision all : " + precision + "\nzero" + std::to_string(stage)
        + " weight:* over dp\n";
    Plan decided;
    const auto plan = loweredInUnits(graph, rows, replicas, &decided);
    ASSERT_TRUE(plan) << describe(plan.error());
    ASSERT_EQ(plan->units.count, replicas);
    const auto whole = loweredInUnits(graph, "precision all : " + precision, 1);
    ASSERT_TRUE(whole) << describe(whole.error());
    // Padded: of a dimension of 16, 5 replicas keep 4 each, and 20 of one of 48 keep 3: a quarter more.
    EXPECT_LE(static_cast<double>(stateBytes(*plan, 0)),
        1.26 * static_cast<double>(stateBytes(*whole, 0)) / replicas);
    for (std::size_t o = 0; o < graph->operators.size(); ++o) {
        if (graph->operators[o].kind != OperatorKind::AdamWStep)
            continue;
        EXPECT_EQ(unitParts(decided.decisions[o].partition), replicas) << graph->operators[o].name;
    }
    const auto read = executionPlanFromJson(toJson(*plan));
    ASSERT_TRUE(read) << describe(read.error());
    EXPECT_EQ(toJson(*read), toJson(*plan));
    expectLikeTheModel(graph, *plan, "precision all : " + precision);
}

INSTANTIATE_TEST_SUITE_P(Stages, SharedUpdates,
    testing::Combine(testing::Values(1, 2, 3), testing::Values(5, 20), testing::Values("fp32", "bf16")));

/// (stage, precision, whether replicas are units)
class GroupsOfAxes : public testing::TestWithParam<std::tuple<int, std::string, bool>>
{
};

TEST_P(GroupsOfAxes, ReplicasAlongSeveralAxesShareAsOne)
{
    const auto &[stage, precision, inUnits] = GetParam();
    const GraphSnapshot graph = trainingStep(kSharedGpt);
    const std::string mesh = "mesh dp=2 cp=2 tp=2\nsplit all : batch over dp\nsplit all : sequence over cp\n"
                             "precision all : "
        + precision + "\n";
    const std::string zero = "zero" + std::to_string(stage) + " weight:* over dp";
    const auto lowered = [&](const std::string &rows) {
        return inUnits ? loweredInUnits(graph, mesh + rows, 8) : loweredRows(graph, mesh + rows, 8);
    };
    const auto alone = lowered("");
    const auto overOne = lowered(zero);
    const auto overBoth = lowered(zero + " and cp");
    for (const auto *plan : {&alone, &overOne, &overBoth})
        ASSERT_TRUE(*plan) << describe(plan->error());
    EXPECT_EQ(overBoth->units.count, inUnits ? 2 : 1);
    for (std::size_t device = 0; device < overBoth->devices.size(); ++device) {
        EXPECT_EQ(2 * stateBytes(*overOne, device), stateBytes(*alone, device));
        EXPECT_EQ(4 * stateBytes(*overBoth, device), stateBytes(*alone, device));
    }
    expectLikeTheModel(graph, *overBoth, "precision all : " + precision);
}

INSTANTIATE_TEST_SUITE_P(Stages, GroupsOfAxes,
    testing::Combine(testing::Values(1, 2, 3), testing::Values("fp32", "bf16"), testing::Bool()));

} // namespace
} // namespace planloom
