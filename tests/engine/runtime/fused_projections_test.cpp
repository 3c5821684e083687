// Models whose projections are one product each (queries, keys and values; gate and up), under plans that cut
// every part: proven, run, and compared with the model as it is written, on one device.

#include "engine/frontend/fuse.h"
#include "engine/frontend/part_projections.h"
#include "engine/frontend/training.h"
#include "engine/frontend/zoo_parts.h"
#include "engine/lowering/execution_plan_json.h"
#include "engine/lowering/lower.h"
#include "engine/plan/complete.h"
#include "engine/runtime/check.h"
#include "engine/table/table_text.h"
#include "engine/verify/verify.h"
#include "tests/engine/gallery/gallery_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <ostream>

namespace planloom {
namespace {

constexpr std::int64_t kSamples = 4;
constexpr std::int64_t kTokens = 6;
constexpr std::int64_t kWidth = 16;
constexpr std::int64_t kHeads = 4;

/// [b s 3h] cut as GPT-2 does it.
std::vector<TensorId> cutThenHeads(ZooBuilder &b, TensorId all)
{
    const std::vector<std::int64_t> sizes(3, kWidth);
    auto parts = b.add(OperatorKind::Split, {all}, attributesOf({{"axis", 2}, {"sizes", sizes}}));
    parts.resize(3);
    for (TensorId &part : parts)
        part = b.splitHeads(part, kHeads, "part");
    return parts;
}

/// [b s 3h] cut as ViT and Swin do it.
std::vector<TensorId> headsThenSelected(ZooBuilder &b, TensorId all)
{
    const TensorId apart = b.reshape(all, {kSamples, kTokens, 3, kHeads, kWidth / kHeads});
    const TensorId turned = b.transpose(apart, {2, 0, 3, 1, 4});
    std::vector<TensorId> parts;
    for (std::int64_t place = 0; place < 3; ++place)
        parts.push_back(b.one(OperatorKind::Gather, {turned, b.constant("place", integerData({}, {place}))},
            attributesOf({{"axis", 0}})));
    return parts;
}

Graph fusedTransformer()
{
    ZooBuilder b("fused");
    const TensorId labels = b.input("labels", {DataType::Int64, {kSamples, kTokens}});
    TensorId x = b.input("x", {DataType::Float32, {kSamples, kTokens, kWidth}});
    x = b.linear(x, kWidth, "embed");
    for (int layer = 0; layer < 2; ++layer) {
        const auto inside = b.scope("h." + std::to_string(layer));
        const bool transposed = layer == 1;
        const TensorId all = b.linear(b.layerNorm(x, "ln_1"), 3 * kWidth, "qkv", true, transposed);
        const auto parts = layer == 0 ? cutThenHeads(b, all) : headsThenSelected(b, all);
        const ZooAttention form{.scale = 1 / std::sqrt(static_cast<double>(kWidth / kHeads)), .causal = true};
        const TensorId context = b.mergeHeads(b.attention(parts[0], parts[1], parts[2], form), "context");
        x = b.one(OperatorKind::Add, {x, b.linear(context, kWidth, "proj")});
        const TensorId both = b.linear(b.layerNorm(x, "ln_2"), 48, "gate_up", false, transposed);
        const std::vector<std::int64_t> halves(2, 24);
        const auto pieces =
            b.add(OperatorKind::Split, {both}, attributesOf({{"axis", 2}, {"sizes", halves}}));
        const TensorId inner = b.one(OperatorKind::Mul, {b.one(OperatorKind::Silu, {pieces[0]}), pieces[1]});
        x = b.one(OperatorKind::Add, {x, b.linear(inner, kWidth, "down", false)});
    }
    const TensorId loss = b.meanLoss(b.linear(x, 10, "head"), labels);
    auto graph = b.finish({loss}, loss);
    EXPECT_TRUE(graph) << describe(graph.error());
    return *std::move(graph);
}

GraphSnapshot stepOfFused(bool parted)
{
    Graph forward = fusedTransformer();
    if (parted) {
        EXPECT_EQ(partProjections(forward), 4);
        annotateOperators(forward);
    }
    auto step = buildTrainingStep(forward);
    EXPECT_TRUE(step) << describe(step.error());
    return std::make_shared<const Graph>(*std::move(step));
}

struct FusedPlan {
    const char *gallery;
    const char *rows;
    std::int32_t devices;
    std::int32_t ways; ///< That every weight of a fused projection is cut.
};

std::ostream &operator<<(std::ostream &out, const FusedPlan &plan)
{
    return out << plan.gallery << " " << plan.rows;
}

class FusedProjections : public testing::TestWithParam<FusedPlan>
{
};

TEST_P(FusedProjections, AreCutPartByPartAndGiveTheModel)
{
    const FusedPlan &given = GetParam();
    const GraphSnapshot graph = stepOfFused(true);
    ConstraintTable table;
    if (*given.gallery != '\0') {
        const auto rows = galleryTable(given.gallery, graph, given.devices);
        ASSERT_TRUE(rows) << describe(rows.error());
        table = *rows;
    } else {
        const auto rows = parseTable(given.rows);
        ASSERT_TRUE(rows) << describe(rows.error());
        table = *rows;
    }
    const auto completion = completePlan(graph, given.devices, table);
    ASSERT_TRUE(completion && !firstError(*completion)) << describe(*firstError(*completion));
    const auto plan = lower(completion->plan, *clusterNamed("cpu:" + std::to_string(given.devices)));
    ASSERT_TRUE(plan) << describe(plan.error());

    std::int32_t loads = 0;
    for (const DeviceProgram &device : plan->devices) {
        for (const Instruction &instruction : device.setup) {
            for (const std::int32_t output : instruction.outputs) {
                const BufferInfo &buffer = device.buffers[static_cast<std::size_t>(output)];
                const Tensor &tensor = graph->at(buffer.tensor);
                if (instruction.kind != InstructionKind::Load || tensor.role != TensorRole::Weight
                    || tensor.fileShape.empty())
                    continue;
                ++loads;
                EXPECT_EQ(elementCount(buffer.index), elementCount(tensor.type.shape) / given.ways)
                    << tensor.name;
            }
        }
    }
    EXPECT_GT(loads, 0);

    const auto again = executionPlanFromJson(toJson(*plan)); // as a runner reads it
    ASSERT_TRUE(again) << describe(again.error());
    for (std::size_t i = 0; i < graph->tensors.size(); ++i)
        EXPECT_EQ(again->graph->tensors[i].fileShape, graph->tensors[i].fileShape);

    const auto report = verify(*plan);
    ASSERT_TRUE(report) << describe(report.error());
    ASSERT_TRUE(report->ok()) << report->failure->reason;
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    const auto outcome = runOnCpu(*plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    // Held against the model as it is written: names and shapes outside are the same.
    const auto whole = completePlan(stepOfFused(false), 1, ConstraintTable{});
    ASSERT_TRUE(whole);
    const auto reference = lower(whole->plan, *clusterNamed("cpu:1"));
    ASSERT_TRUE(reference) << describe(reference.error());
    const auto check = checkAgainst(*reference, *plan, *outcome, options);
    ASSERT_TRUE(check) << describe(check.error());
    EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
    const auto expected = runOnCpu(*reference, options);
    ASSERT_TRUE(expected) << describe(expected.error());
    ASSERT_EQ(outcome->gradients.size(), expected->gradients.size());
    for (const auto &[name, array] : expected->gradients) {
        ASSERT_TRUE(outcome->gradients.contains(name)) << name;
        EXPECT_EQ(outcome->gradients.at(name).type, array.type) << name;
    }
}

constexpr FusedPlan kFusedPlans[] = {{"single", "", 1, 1}, {"tensor-parallel", "", 2, 2},
    {"tensor-parallel", "", 4, 4}, {"3d:dp=2,tp=2,pp=2,micro-batches=2", "", 8, 2},
    {"", "mesh tp=2\nsplit all : heads over tp\nsplit all : feed-forward over tp", 2, 2}};

INSTANTIATE_TEST_SUITE_P(Plans, FusedProjections, testing::ValuesIn(kFusedPlans), [](const auto &info) {
    std::string name = std::to_string(info.index) + "_";
    for (const char letter : std::string(info.param.gallery))
        name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
    return name;
});

} // namespace
} // namespace planloom
