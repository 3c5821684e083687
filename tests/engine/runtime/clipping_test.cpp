// Gradients clipped by their global norm: the definition, and the same under every plan.

#include "engine/design/models/reference.h"
#include "engine/gallery/gallery.h"
#include "engine/runtime/run.h"
#include "engine/runtime/training/check.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/lowering/models_for_tests.h"
#include "tests/engine/lowering/random_plans.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

namespace planloom {
namespace {

constexpr const char *kClippedGpt = "zoo:gpt?layers=4&hidden=32&heads=4&seq=16&batch=8&vocab=64";
constexpr double kClipRate = 0.1;
constexpr double kClipEpsilon = 0.01; ///< So large that AdamW's first step depends on the gradient's size.

GraphSnapshot clippedStep(
    const std::string &model, double clipNorm, OperatorKind optimizer = OperatorKind::AdamWStep)
{
    const auto forward = buildZooModel(model);
    EXPECT_TRUE(forward) << describe(forward.error());
    auto step = buildTrainingStep(*forward,
        {.optimizer = optimizer, .learningRate = kClipRate, .epsilon = kClipEpsilon, .clipNorm = clipNorm});
    EXPECT_TRUE(step) << describe(step.error());
    return std::make_shared<const Graph>(*std::move(step));
}

RunOptions clippingRun(std::int32_t steps, std::int32_t threads = 0)
{
    RunOptions options;
    options.steps = steps;
    options.randomWeights = true;
    options.keepGradients = true;
    options.threads = threads;
    return options;
}

RunOutcome runOfClipping(const GraphSnapshot &graph, std::int32_t steps)
{
    const auto plan = loweredRows(graph, "", 1);
    EXPECT_TRUE(plan) << describe(plan.error());
    auto outcome = plan ? runOnCpu(*plan, clippingRun(steps)) : Result<RunOutcome>{plan.error()};
    EXPECT_TRUE(outcome) << describe(outcome.error());
    return outcome ? *std::move(outcome) : RunOutcome{};
}

std::vector<float> floatsOf(const TensorData &array)
{
    std::vector<float> values(array.bytes.size() / sizeof(float));
    std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
    return values;
}

double normOf(const NamedArrays &gradients)
{
    double sum = 0;
    for (const auto &[name, array] : gradients)
        for (const float g : floatsOf(array))
            sum += static_cast<double>(g) * g;
    return std::sqrt(sum);
}

/// What is left of a step that was proven, and run like the model on one device; empty if it holds.
void expectClippedLikeTheModel(const ExecutionPlan &plan)
{
    const auto proof = verify(plan);
    ASSERT_TRUE(proof) << describe(proof.error());
    ASSERT_TRUE(proof->ok()) << proof->failure->reason;
    const RunOptions options = clippingRun(2);
    const auto got = runOnCpu(plan, options);
    ASSERT_TRUE(got) << describe(got.error());
    const auto reference = referenceOf(plan);
    ASSERT_TRUE(reference) << describe(reference.error());
    const auto check = checkAgainst(**reference, plan, *got, options);
    ASSERT_TRUE(check) << describe(check.error());
    EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError << " at "
                           << check->firstDifference;
}

// torch.nn.utils.clip_grad_norm_, then torch.optim.SGD or AdamW.
TEST(Clipping, ScalesAllGradientsByOneFactorBeforeTheUpdate)
{
    constexpr double kMostNorm = 0.25;
    for (const OperatorKind optimizer : {OperatorKind::SgdStep, OperatorKind::AdamWStep}) {
        const RunOutcome free = runOfClipping(clippedStep(kClippedGpt, 0, optimizer), 1);
        const RunOutcome clipped = runOfClipping(clippedStep(kClippedGpt, kMostNorm, optimizer), 1);
        const double norm = normOf(free.gradients);
        ASSERT_GT(norm, 2 * kMostNorm);
        const double factor = kMostNorm / (norm + 1e-6);
        const auto stepOf = [&](double g) {
            return optimizer == OperatorKind::SgdStep ? kClipRate * g
                                                      : kClipRate * g / (std::abs(g) + kClipEpsilon);
        };
        ASSERT_EQ(free.weights.size(), clipped.weights.size());
        for (const auto &[name, array] : clipped.weights) {
            const std::vector<float> gradient = floatsOf(free.gradients.at(name));
            const std::vector<float> after = floatsOf(array);
            const std::vector<float> afterFree = floatsOf(free.weights.at(name));
            for (std::size_t i = 0; i < after.size(); ++i)
                ASSERT_NEAR(after[i], afterFree[i] + stepOf(gradient[i]) - stepOf(gradient[i] * factor), 2e-6)
                    << name << " " << i;
        }
    }
}

TEST(Clipping, LeavesSmallGradientsAsTheyAreToTheBit)
{
    const RunOutcome free = runOfClipping(clippedStep(kClippedGpt, 0), 3);
    const RunOutcome clipped = runOfClipping(clippedStep(kClippedGpt, 1e6), 3);
    EXPECT_EQ(free.losses, clipped.losses);
    for (const auto &[name, array] : clipped.weights)
        EXPECT_TRUE(array.bytes == free.weights.at(name).bytes) << name;
}

TEST(Clipping, UnderEveryPlanOfTheGalleryIsThatOfOneDevice)
{
    constexpr std::int32_t kDevices = 4;
    const GraphSnapshot graph = clippedStep(kClippedGpt, 0.05);
    int ran = 0;
    std::vector<std::string> entries{"zero1", "zero2:micro-batches=2", "zero3:micro-batches=2",
        "pipeline:schedule=1f1b,micro-batches=4", "3d:dp=1,tp=2,pp=2,micro-batches=2",
        "3d:dp=2,tp=2,pp=1,micro-batches=2,zero=3", "tensor-parallel:micro-batches=2"};
    for (const GalleryEntry &entry : builtInGallery().entries)
        entries.push_back(entry.name);
    for (const std::string &entry : entries) {
        SCOPED_TRACE(entry);
        const auto table = galleryTable(entry, graph, kDevices);
        const auto plan =
            table ? loweredRows(graph, print(*table), kDevices) : Result<ExecutionPlan>{table.error()};
        if (!plan) { // does not apply, and says why
            EXPECT_NE(plan.error().code, ErrorCode::Internal) << describe(plan.error());
            continue;
        }
        expectClippedLikeTheModel(*plan);
        ++ran;
        const auto once = runOnCpu(*plan, clippingRun(2, 1));
        const auto again = runOnCpu(*plan, clippingRun(2, 3));
        ASSERT_TRUE(once && again);
        EXPECT_EQ(once->losses, again->losses);
        for (const auto &[name, array] : once->weights)
            EXPECT_TRUE(array.bytes == again->weights.at(name).bytes) << name;
    }
    EXPECT_GT(ran, 10);
    std::printf("%d plans ran\n", ran);
}

TEST(Clipping, IsJudgedInDoublePrecision)
{
    const GraphSnapshot graph = clippedStep(kClippedGpt, 0.05);
    const auto reference = loweredRows(graph, "", 1);
    const auto table = galleryTable("zero2:micro-batches=2", graph, 4);
    ASSERT_TRUE(reference && table);
    const auto plan = loweredRows(graph, print(*table), 4);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto got = runOnCpu(*plan, clippingRun(2));
    ASSERT_TRUE(got) << describe(got.error());
    const auto report = checkAgainst(*reference, *plan, *got, clippingRun(2));
    ASSERT_TRUE(report) << describe(report.error());
    EXPECT_TRUE(report->ok) << report->worstTensor;
    ASSERT_TRUE(report->inDouble);
    EXPECT_LT(*report->inDouble, 1e-12);
}

TEST(Clipping, OfScaledNarrowGradientsIsThatOfOneDevice)
{
    const GraphSnapshot graph = clippedStep(kClippedGpt, 0.05);
    for (const char *gallery :
        {"data-parallel", "zero1", "zero2:micro-batches=2", "zero3", "tensor-parallel"})
        for (const char *precision : {"precision all : bf16", "precision all : fp16"}) {
            SCOPED_TRACE(std::string(gallery) + " " + precision);
            const auto table = galleryTable(gallery, graph, 4);
            ASSERT_TRUE(table) << describe(table.error());
            const auto plan = loweredRows(graph, print(*table) + "\n" + precision + "\n", 4);
            ASSERT_TRUE(plan) << describe(plan.error());
            expectClippedLikeTheModel(*plan);
        }
}

TEST(Clipping, OfWholeReplicasIsThatOfOneDevice)
{
    const GraphSnapshot graph = clippedStep(kClippedGpt, 0.05);
    for (const char *gallery :
        {"data-parallel", "3d:dp=2,tp=2,pp=1,micro-batches=2", "zero1", "zero2", "zero3"}) {
        SCOPED_TRACE(gallery);
        const auto table = galleryTable(gallery, graph, 4);
        ASSERT_TRUE(table) << describe(table.error());
        const auto completion = completePlan(graph, 4, *table, {.units = UseUnits::WherePossible});
        ASSERT_TRUE(completion) << describe(completion.error());
        ASSERT_FALSE(firstError(*completion));
        const auto plan = lower(completion->plan, *clusterNamed("cpu:4"));
        ASSERT_TRUE(plan) << describe(plan.error());
        EXPECT_GT(plan->units.count, 1);
        expectClippedLikeTheModel(*plan);
    }
}

TEST(Clipping, OfRandomPlansIsThatOfOneDevice)
{
    const Model model(clippedStep("zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24", 0.05));
    int ran = 0;
    const auto [first, end] = seedsToTry("PLANLOOM_CLIPPED_PLANS", 12);
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const RandomCase drawn = randomCase(*model.graph, seed,
            {.touched = 0.15, .wholeBatches = true, .precisions = seed % 4 == 3, .weightVersions = false});
        SCOPED_TRACE(testing::Message() << drawn.devices << " devices\n" << print(drawn.table));
        const RandomOutcome outcome = carryOut(model, drawn);
        if (!outcome.lowered)
            continue;
        expectClippedLikeTheModel(*outcome.lowered);
        ++ran;
    }
    EXPECT_GT(ran, 0);
    std::printf("%d plans ran\n", ran);
}

/// The first instruction of device 0 that `wanted` names.
template<typename Wanted> Instruction *findInstruction(ExecutionPlan &plan, const Wanted &wanted)
{
    for (Segment &segment : plan.devices.front().segments.edit())
        for (Instruction &instruction : segment.instructions)
            if (wanted(instruction))
                return &instruction;
    return nullptr;
}

TEST(Clipping, ByThePartOfTheNormThatADeviceHasIsNotProven)
{
    const GraphSnapshot graph = clippedStep(kClippedGpt, 0.05);
    const auto table = galleryTable("zero1", graph, 4);
    auto plan = loweredRows(graph, print(*table), 4);
    ASSERT_TRUE(plan) << describe(plan.error());
    Instruction *clip = findInstruction(*plan, [&](const Instruction &instruction) {
        return instruction.kind == InstructionKind::Kernel
            && graph->at(instruction.op).kind == OperatorKind::ClipFactor;
    });
    ASSERT_NE(clip, nullptr);
    Instruction *reduce = findInstruction(*plan, [&](const Instruction &instruction) {
        return instruction.kind == InstructionKind::AllReduce && instruction.outputs == clip->inputs;
    });
    ASSERT_NE(reduce, nullptr);
    const std::int32_t own = reduce->inputs.front();
    clip->inputs = {own}; // its share of the norm
    reduce->deaths = {};
    clip->deaths.push_back(own);
    const auto proof = verify(*plan);
    ASSERT_TRUE(proof);
    ASSERT_FALSE(proof->ok());
    EXPECT_NE(proof->failure->reason.find("clip needs"), std::string::npos) << proof->failure->reason;
}

TEST(Clipping, ByANormThatLeavesAGradientOutIsNotProven)
{
    Graph graph = *clippedStep(kClippedGpt, 0.05);
    const auto squares = std::find_if(graph.operators.begin(), graph.operators.end(),
        [](const Operator &op) { return op.kind == OperatorKind::SquareSum; });
    ASSERT_NE(squares, graph.operators.end());
    squares->inputs = std::next(squares)->inputs; // one counts twice, the other not at all
    squares->annotation = std::next(squares)->annotation;
    const auto plan = loweredRows(std::make_shared<const Graph>(std::move(graph)), "", 1);
    ASSERT_TRUE(plan) << describe(plan.error());
    const auto proof = verify(*plan);
    ASSERT_TRUE(proof);
    ASSERT_FALSE(proof->ok());
    EXPECT_NE(proof->failure->reason.find("times"), std::string::npos) << proof->failure->reason;
}

} // namespace
} // namespace planloom
