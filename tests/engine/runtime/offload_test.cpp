// Plans that keep states or activations in host memory: proven, run, and compared with the model on one
// device; and what they hold on the host.

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/lowering/lower.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/plan/complete.h"
#include "engine/runtime/training/check.h"
#include "engine/simulate/simulate.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"
#include "tests/engine/lowering/random_tables.h"
#include "tests/engine/runtime/model_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <ostream>
#include <random>

namespace planloom {
namespace {

struct OffloadingPlan {
    const char *model;
    const char *rows;
    std::int32_t devices;
};

std::ostream &operator<<(std::ostream &out, const OffloadingPlan &plan)
{
    return out << plan.model << " " << plan.rows;
}

/// Copies without latency, so that each is launched alone: the most that can go wrong.
Cluster promptCluster(std::int32_t devices)
{
    Cluster cluster = *clusterNamed("cpu:" + std::to_string(devices));
    cluster.device.hostLatency.value = 0;
    return cluster;
}

ExecutionPlan offloadingPlanOf(const GraphSnapshot &graph, const std::string &rows, std::int32_t devices)
{
    const auto table = parseTable(rows);
    EXPECT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, devices, *table);
    EXPECT_TRUE(completion) << describe(completion.error());
    EXPECT_FALSE(firstError(*completion)) << describe(*firstError(*completion));
    auto plan = lower(completion->plan, promptCluster(devices));
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

std::int64_t hostCopiesIn(const ExecutionPlan &plan, InstructionKind kind)
{
    std::int64_t count = 0;
    for (const DeviceProgram &device : plan.devices)
        for (const Segment &segment : device.segments)
            count += std::count_if(segment.instructions.begin(), segment.instructions.end(),
                [&](const Instruction &instruction) { return instruction.kind == kind; });
    return count;
}

void expectOffloadedIsTheModel(const ExecutionPlan &plan)
{
    const auto report = verify(plan);
    ASSERT_TRUE(report) << describe(report.error());
    ASSERT_TRUE(report->ok()) << report->failure->reason;
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    options.poison = true;
    options.steps = 2; // what one step writes back, the next one fetches
    const auto outcome = runOnCpu(plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const ExecutionPlan reference = offloadingPlanOf(plan.graph, "", 1);
    const auto check = checkAgainst(reference, plan, *outcome, options);
    ASSERT_TRUE(check) << describe(check.error());
    EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
}

class OffloadRows : public testing::TestWithParam<OffloadingPlan>
{
};

TEST_P(OffloadRows, GiveAPlanThatIsTheModel)
{
    const OffloadingPlan &given = GetParam();
    const GraphSnapshot graph = trainingStepOf(given.model, OperatorKind::AdamWStep);
    if (!graph)
        GTEST_SKIP() << "the model set is not at " << kModelFiles;
    const ExecutionPlan plan = offloadingPlanOf(graph, given.rows, given.devices);
    EXPECT_GT(hostCopiesIn(plan, InstructionKind::Offload), 0);
    EXPECT_GT(hostCopiesIn(plan, InstructionKind::Fetch), 0);
    expectOffloadedIsTheModel(plan);
    // Its file says it all.
    const auto again = executionPlanFromJson(toJson(plan));
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(again->devices, plan.devices);
    const auto timeline = simulate(plan, promptCluster(given.devices));
    ASSERT_TRUE(timeline) << describe(timeline.error());
    EXPECT_GT(timeline->hostPeak.front().count, 0);
}

constexpr const char *kGpt2Offloaded = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=4&vocab=24";
constexpr const char *kT5Offloaded = "zoo:t5?layers=1&hidden=16&heads=4&src=8&tgt=4&batch=4&vocab=24";
constexpr const char *kBothOffloaded = "offload all : states\noffload all : activations";
constexpr const char *kBothOffloadedOverTwo =
    "mesh x=2\nsplit all : batch over x\noffload all : states\noffload all : activations";

const OffloadingPlan kOffloading[] = {{kGpt2Offloaded, "offload all : states", 1},
    {kGpt2Offloaded, "offload all : activations", 1},
    {kGpt2Offloaded, "offload all : states\noffload all : activations", 1},
    {kGpt2Offloaded, "micro-batches 4\noffload all : states\noffload layer:0 : activations", 1},
    {kGpt2Offloaded,
        "micro-batches 2\nstage layer:1 : 1\nschedule 1f1b\noffload all : states\noffload all : activations",
        2},
    {kGpt2Offloaded, "mesh x=2\nsplit all : heads over x\noffload all : activations\noffload all : states",
        2},
    {kGpt2Offloaded, "mesh x=2\nsplit all : sequence over x\noffload all : activations", 2},
    {kGpt2Offloaded, "mesh dp=2\nsplit all : batch over dp\nzero1 all over dp\noffload all : states", 2},
    {kGpt2Offloaded, "recompute layer:* per layer\noffload all : activations", 1},
    {kT5Offloaded, "offload all : states\noffload all : activations", 1},
    {kT5Offloaded, "mesh x=2\nsplit all : batch over x\noffload all : states\noffload all : activations", 2},
    {"gpt2_tiny", kBothOffloaded, 1}, {"gpt2_tiny", kBothOffloadedOverTwo, 2}, {"t5_tiny", kBothOffloaded, 1},
    {"t5_tiny", kBothOffloadedOverTwo, 2}, {"swin_tiny", kBothOffloaded, 1},
    {"swin_tiny", kBothOffloadedOverTwo, 2}, {"evoformer_tiny", kBothOffloaded, 1},
    {"evoformer_tiny", "mesh x=2\nsplit all : heads over x\noffload all : activations", 2}};

INSTANTIATE_TEST_SUITE_P(Models, OffloadRows, testing::ValuesIn(kOffloading), [](const auto &info) {
    std::string name = std::to_string(info.index) + "_";
    for (const char letter : std::string(info.param.rows))
        name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
    return name;
});

TEST(Offload, KeepsMasterWeightsOnTheHost)
{
    const GraphSnapshot graph = trainingStepOf(kGpt2Offloaded, OperatorKind::AdamWStep);
    const ExecutionPlan plan = offloadingPlanOf(graph, "precision all : bf16\noffload all : states", 1);
    std::int64_t parameters = 0;
    for (const Operator &op : graph->operators)
        if (op.direction == Direction::Optimizer)
            parameters += elementCount(graph->at(op.inputs.front()).type.shape);
    const auto report = verify(plan);
    ASSERT_TRUE(report && report->ok()) << report->failure->reason;
    const auto timeline = simulate(plan, promptCluster(1));
    ASSERT_TRUE(timeline) << describe(timeline.error());
    EXPECT_EQ(timeline->hostPeak.front().count, parameters * 12); // the weight and two states in fp32
    RunOptions options;
    options.steps = 2;
    options.randomWeights = true;
    options.keepGradients = true;
    const auto outcome = runOnCpu(plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    const ExecutionPlan reference = offloadingPlanOf(graph, "precision all : bf16", 1);
    const auto check = checkAgainst(reference, plan, *outcome, options);
    ASSERT_TRUE(check) << describe(check.error());
    EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
}

TEST(Offload, OfRandomTablesIsTheModel)
{
    std::mt19937 random(11);
    int offloaded = 0;
    for (const char *model : {kGpt2Offloaded, kT5Offloaded}) {
        const GraphSnapshot graph = trainingStepOf(model, OperatorKind::AdamWStep);
        for (int round = 0; round < 16; ++round) {
            SCOPED_TRACE(testing::Message() << model << ", round " << round);
            ConstraintTable table = randomTable(*graph, 3, random, {.touched = 0.3});
            table.rows.push_back(
                Row{.selector = selectAll(), .rule = OffloadRule{OffloadedKind::Activations}});
            table.rows.push_back(Row{.selector = selectAll(), .rule = OffloadRule{OffloadedKind::States}});
            const auto completion = completePlan(graph, 3, table);
            ASSERT_TRUE(completion) << describe(completion.error());
            if (firstError(*completion))
                continue;
            const auto plan = lower(completion->plan, promptCluster(3));
            if (!plan)
                continue; // refused with a reason, as without these rows
            offloaded += hostCopiesIn(*plan, InstructionKind::Fetch) > 0 ? 1 : 0;
            expectOffloadedIsTheModel(*plan);
        }
    }
    EXPECT_GT(offloaded, 12);
}

} // namespace
} // namespace planloom
