// What a plan says of its batch is held against the graph: whether its micro-batches cut the batch or each
// are a whole one is the plan's choice, everything else follows from it.

#include "engine/verify/verify.h"
#include "tests/engine/verify/verified_plans.h"

#include "engine/lowering/program/execution_plan_json.h"
#include "engine/runtime/run.h"
#include "engine/runtime/training/check.h"

#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/verify/unpartitioned.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

namespace planloom {
namespace {

constexpr std::int32_t kMicroBatches = 4;

ExecutionPlan inMicroBatches(bool whole)
{
    auto plan = unpartitionedPlan(gpt(), kMicroBatches, whole);
    EXPECT_TRUE(plan) << describe(plan.error());
    return *std::move(plan);
}

/// The plan that a file without "whole_batches" gives; values are put back, which files do not hold.
ExecutionPlan withoutTheChoice(const ExecutionPlan &whole)
{
    nlohmann::json document = nlohmann::json::parse(toJson(whole));
    document["batch"].erase("whole_batches");
    auto plan = executionPlanFromJson(document.dump());
    EXPECT_TRUE(plan) << describe(plan.error());
    plan->graph = whole.graph;
    return *std::move(plan);
}

TEST(BatchRoles, APlanThatSaysNothingIsCutIsRejected)
{
    const ExecutionPlan plan = withoutTheChoice(inMicroBatches(true));
    for (const std::int32_t dimension : plan.batch.operatorDimension)
        ASSERT_EQ(dimension, -1);
    for (const std::int32_t dimension : plan.batch.tensorDimension)
        ASSERT_EQ(dimension, -1);
    // It would run, and every micro-batch would add the whole batch's loss.
    const double loss = outcomeOf(inMicroBatches(false)).losses[0];
    ASSERT_NEAR(outcomeOf(plan).losses[0], kMicroBatches * loss, 1e-4 * loss);

    const auto report = verify(plan);
    ASSERT_TRUE(report) << describe(report.error());
    ASSERT_FALSE(report->ok());
    EXPECT_NE(report->failure->reason.find("batch"), std::string::npos) << report->failure->reason;
}

TEST(BatchRoles, TheReportSaysWhichStepItProvedAndBothAreTheModels)
{
    const RunOutcome once = outcomeOf(*unpartitionedPlan(gpt(), 1, false));
    for (const bool whole : {false, true}) {
        SCOPED_TRACE(whole ? "whole batches" : "cut");
        const ExecutionPlan plan = inMicroBatches(whole);
        const auto report = verify(plan);
        ASSERT_TRUE(report) << describe(report.error());
        ASSERT_TRUE(report->ok()) << report->failure->reason;
        EXPECT_EQ(report->wholeBatches, whole);
        EXPECT_EQ(report->microBatches, kMicroBatches);
        // Whole batches of the same samples: their mean is the batch's loss, to the factor.
        const auto check = compareOutcomes(outcomeOf(plan), once);
        ASSERT_TRUE(check) << describe(check.error());
        EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
    }
}

TEST(BatchRoles, EveryFieldIsHeldAgainstTheGraph)
{
    for (const bool whole : {false, true}) {
        SCOPED_TRACE(whole ? "whole batches" : "cut");
        const ExecutionPlan plan = inMicroBatches(whole);
        ASSERT_EQ(reasonOf(plan), "");
        const auto expectRejected = [&](const char *field, const auto &edit) {
            ExecutionPlan mutant = plan;
            edit(mutant.batch);
            EXPECT_NE(reasonOf(mutant).find("batch"), std::string::npos) << field << ": " << reasonOf(mutant);
        };
        expectRejected("whole", [](BatchInfo &batch) { batch.wholeBatches = !batch.wholeBatches; });
        expectRejected("size", [](BatchInfo &batch) { ++batch.size; });
        expectRejected("most", [](BatchInfo &batch) { --batch.mostMicroBatches; });
        for (std::size_t t = 0; t < plan.graph->tensors.size(); ++t) {
            for (int role = 0; role <= 4; ++role)
                if (role != static_cast<int>(plan.batch.tensorRole[t]))
                    expectRejected(
                        "role", [&](BatchInfo &b) { b.tensorRole[t] = static_cast<BatchRole>(role); });
            expectRejected("tensor dimension", [&](BatchInfo &b) { b.tensorDimension[t] ^= 1; });
        }
        for (std::size_t o = 0; o < plan.graph->operators.size(); ++o) {
            expectRejected("operator dimension", [&](BatchInfo &b) { b.operatorDimension[o] ^= 1; });
            expectRejected("once", [&](BatchInfo &b) { b.oncePerStep[o] = !b.oncePerStep[o]; });
        }
        expectRejected("roles cut off", [](BatchInfo &batch) { batch.tensorRole.pop_back(); });
        expectRejected("dimensions cut off", [](BatchInfo &batch) { batch.tensorDimension.clear(); });
        expectRejected("operators cut off", [](BatchInfo &batch) { batch.operatorDimension.pop_back(); });
        expectRejected("once cut off", [](BatchInfo &batch) { batch.oncePerStep.clear(); });
    }
}

TEST(BatchRoles, MicroBatchesThatDoNotDivideTheBatchAreRejected)
{
    ExecutionPlan plan = inMicroBatches(false);
    plan.microBatches = 3;
    EXPECT_NE(reasonOf(plan).find("cannot be cut in 3"), std::string::npos) << reasonOf(plan);
    plan.microBatches = 1 << 20; // and nothing is set up for them
    plan.batch = wholeBatchInfo(*plan.graph);
    EXPECT_NE(reasonOf(plan).find("too short"), std::string::npos) << reasonOf(plan);
}

TEST(BatchRoles, TheMeansFactorHasToEnterWithTheLossesGradient)
{
    const auto seedOf = [](Graph &graph) -> Tensor & {
        for (Tensor &tensor : graph.tensors)
            if (tensor.role == TensorRole::Buffer && tensor.of.valid() && tensor.of == graph.loss)
                return tensor;
        ADD_FAILURE() << "no gradient of the loss";
        return graph.tensors.front();
    };
    for (const bool whole : {false, true}) {
        ExecutionPlan plan = inMicroBatches(whole);
        Graph graph = *plan.graph;
        seedOf(graph).of = TensorId{}; // the runtime no longer knows what to divide
        plan.graph = std::make_shared<const Graph>(std::move(graph));
        EXPECT_EQ(reasonOf(plan).find("divided by the micro-batches") != std::string::npos, whole)
            << reasonOf(plan);
    }
}

TEST(BatchRoles, WholeBatchesAreFedAnewToEveryMicroBatch)
{
    ExecutionPlan plan = inMicroBatches(true);
    int changed = 0;
    for (DeviceProgram &device : plan.devices)
        for (BufferInfo &buffer : device.buffers.edit())
            if (plan.graph->at(buffer.tensor).role == TensorRole::Input) {
                buffer.perMicroBatch = false;
                ++changed;
            }
    ASSERT_GT(changed, 0);
    EXPECT_NE(reasonOf(plan), "");
}

} // namespace
} // namespace planloom
