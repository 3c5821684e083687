// Models whose projections are one product each (queries, keys and values; gate and up), under plans that cut
// every part: proven, run, and compared with the model as it is written, on one device.

#include "engine/frontend/passes/fuse/fuse.h"
#include "engine/frontend/passes/projections/part_projections.h"
#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo_parts.h"
#include "engine/lowering/lower.h"
#include "engine/lowering/program/execution_plan_json.h"
#include "engine/plan/complete.h"
#include "engine/runtime/devices/box_copy.h"
#include "engine/runtime/training/check.h"
#include "engine/table/table_text.h"
#include "engine/verify/same_model.h"
#include "engine/verify/verify.h"
#include "tests/engine/gallery/gallery_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <ostream>

#include <unistd.h>

namespace planloom {
namespace {

constexpr std::int64_t kSamples = 4;
constexpr std::int64_t kTokens = 6;
constexpr std::int64_t kWidth = 16;
constexpr std::int64_t kHeads = 8;

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

/// What the fused projections of a model hold.
enum class Parts {
    Equal, ///< As many heads of keys and values as of queries.
    Grouped, ///< Half as many, behind all queries, or each group's beside its queries.
    OneHead, ///< One head of keys and values.
};

/// [b s (H + 2G) d]: heads of queries, keys and values as dimension 2, cut into three.
std::vector<TensorId> cutHeads(ZooBuilder &b, TensorId all, std::int64_t keyHeads)
{
    const std::int64_t size = kWidth / kHeads;
    const TensorId heads = b.reshape(all, {kSamples, kTokens, kHeads + 2 * keyHeads, size});
    std::vector<TensorId> parts;
    std::int64_t begin = 0;
    for (const std::int64_t count : {kHeads, keyHeads, keyHeads}) {
        const TensorId part = b.one(OperatorKind::Slice, {heads},
            attributesOf({{"starts", std::vector<std::int64_t>{0, 0, begin, 0}},
                {"steps", std::vector<std::int64_t>(4, 1)}}),
            {}, {{DataType::Float32, {kSamples, kTokens, count, size}}});
        parts.push_back(b.transpose(part, {0, 2, 1, 3}));
        begin += count;
    }
    return parts;
}

/// [b s G (H/G + 2) d]: the queries of a group of heads, then its keys and its values (Megatron-LM).
std::vector<TensorId> cutGroups(ZooBuilder &b, TensorId all, std::int64_t keyHeads)
{
    const std::int64_t size = kWidth / kHeads;
    const std::int64_t queries = kHeads / keyHeads;
    const TensorId groups = b.reshape(all, {kSamples, kTokens, keyHeads, queries + 2, size});
    auto parts = b.add(OperatorKind::Split, {groups},
        attributesOf({{"axis", 3}, {"sizes", std::vector<std::int64_t>{queries, 1, 1}}}));
    parts.resize(3);
    for (std::size_t i = 0; i < 3; ++i) {
        const TensorId heads = b.reshape(parts[i], {kSamples, kTokens, i == 0 ? kHeads : keyHeads, size});
        parts[i] = b.transpose(heads, {0, 2, 1, 3});
    }
    return parts;
}

/// Layers cut their fused projections in different ways, from weights that lie in different ways.
std::vector<TensorId> queriesKeysValues(ZooBuilder &b, TensorId x, Parts parts, int layer)
{
    const bool transposed = layer % 2 == 1;
    const std::int64_t keyHeads = parts == Parts::Grouped ? kHeads / 2 : 1;
    if (parts != Parts::Equal) {
        const std::int64_t columns = kWidth + 2 * keyHeads * kWidth / kHeads;
        const TensorId all = b.linear(x, columns, "qkv", true, transposed);
        if (parts == Parts::Grouped && layer == 2)
            return cutGroups(b, all, keyHeads);
        if (layer == 1)
            return cutHeads(b, all, keyHeads);
        const std::int64_t narrow = keyHeads * kWidth / kHeads;
        const std::vector<std::int64_t> sizes{kWidth, narrow, narrow};
        auto pieces = b.add(OperatorKind::Split, {all}, attributesOf({{"axis", 2}, {"sizes", sizes}}));
        pieces.resize(3);
        for (std::size_t i = 0; i < 3; ++i)
            pieces[i] = b.splitHeads(pieces[i], i == 0 ? kHeads : keyHeads, "part");
        return pieces;
    }
    const TensorId all = b.linear(x, 3 * kWidth, "qkv", true, transposed);
    return transposed ? headsThenSelected(b, all) : cutThenHeads(b, all);
}

Graph fusedTransformer(Parts parts)
{
    ZooBuilder b("fused");
    const TensorId labels = b.input("labels", {DataType::Int64, {kSamples, kTokens}});
    TensorId x = b.input("x", {DataType::Float32, {kSamples, kTokens, kWidth}});
    x = b.linear(x, kWidth, "embed");
    const int layers = parts == Parts::Grouped ? 3 : 2;
    for (int layer = 0; layer < layers; ++layer) {
        const auto inside = b.scope("h." + std::to_string(layer));
        const bool transposed = layer == 1;
        const auto heads = queriesKeysValues(b, b.layerNorm(x, "ln_1"), parts, layer);
        const ZooAttention form{.scale = 1 / std::sqrt(static_cast<double>(kWidth / kHeads)), .causal = true};
        const TensorId context = b.mergeHeads(b.attention(heads[0], heads[1], heads[2], form), "context");
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

GraphSnapshot stepOfFused(Parts parts, bool parted)
{
    Graph forward = fusedTransformer(parts);
    if (parted) {
        // Both layers' gate and up, and qkv, or what is divided and the keys and values of that; the columns
        // of layers whose groups lie one after another are cut as they are.
        EXPECT_EQ(partProjections(forward), parts == Parts::Equal ? 4 : parts == Parts::Grouped ? 7 : 6);
        annotateOperators(forward);
    }
    auto step = buildTrainingStep(forward);
    EXPECT_TRUE(step) << describe(step.error());
    return std::make_shared<const Graph>(*std::move(step));
}

struct FusedPlan {
    Parts parts;
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
    const GraphSnapshot graph = stepOfFused(given.parts, true);
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

    const auto ofFused = [](const Tensor &tensor) {
        return tensor.filePart || !tensor.fileShape.empty() || tensor.name.find("qkv") != std::string::npos;
    };
    const auto isOneHead = [&](const Tensor &tensor) { // keys and values, for all queries: whole, or in parts
        return given.parts == Parts::OneHead && tensor.filePart && tensor.filePart->begin > 0;
    };
    std::int32_t loads = 0;
    for (const DeviceProgram &device : plan->devices) {
        for (const Instruction &instruction : device.setup) {
            for (const std::int32_t output : instruction.outputs) {
                const BufferInfo &buffer = device.buffers[static_cast<std::size_t>(output)];
                const Tensor &tensor = graph->at(buffer.tensor);
                if (instruction.kind != InstructionKind::Load || tensor.role != TensorRole::Weight
                    || !ofFused(tensor))
                    continue;
                ++loads;
                if (isOneHead(tensor)) {
                    EXPECT_LE(elementCount(buffer.index), elementCount(tensor.type.shape)) << tensor.name;
                } else {
                    EXPECT_EQ(elementCount(buffer.index), elementCount(tensor.type.shape) / given.ways)
                        << tensor.name;
                }
            }
        }
    }
    EXPECT_GT(loads, 0);

    const auto again = executionPlanFromJson(toJson(*plan)); // as a runner reads it
    ASSERT_TRUE(again) << describe(again.error());
    for (std::size_t i = 0; i < graph->tensors.size(); ++i) {
        EXPECT_EQ(again->graph->tensors[i].fileShape, graph->tensors[i].fileShape);
        EXPECT_EQ(again->graph->tensors[i].filePart, graph->tensors[i].filePart);
    }

    const auto report = verify(*plan);
    ASSERT_TRUE(report) << describe(report.error());
    ASSERT_TRUE(report->ok()) << report->failure->reason;
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    const auto outcome = runOnCpu(*plan, options);
    ASSERT_TRUE(outcome) << describe(outcome.error());
    // Held against the model as it is written: names and shapes outside are the same.
    const auto whole = completePlan(stepOfFused(given.parts, false), 1, ConstraintTable{});
    ASSERT_TRUE(whole);
    const auto reference = lower(whole->plan, *clusterNamed("cpu:1"));
    ASSERT_TRUE(reference) << describe(reference.error());
    const auto check = checkAgainst(*reference, *plan, *outcome, options);
    ASSERT_TRUE(check) << describe(check.error());
    EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;
    const auto expected = runOnCpu(*reference, options);
    ASSERT_TRUE(expected) << describe(expected.error());
    ASSERT_EQ(outcome->gradients.size(), expected->gradients.size());
    ASSERT_EQ(outcome->weights.size(), expected->weights.size());
    for (const auto &[name, array] : expected->gradients) {
        ASSERT_TRUE(outcome->gradients.contains(name)) << name;
        EXPECT_EQ(outcome->gradients.at(name).type, array.type) << name;
        ASSERT_TRUE(outcome->weights.contains(name)) << name;
    }
}

constexpr const char *kHeadsAndFeatures =
    "mesh tp=2\nsplit all : heads over tp\nsplit all : feed-forward over tp";

constexpr FusedPlan kFusedPlans[] = {{Parts::Equal, "single", "", 1, 1},
    {Parts::Equal, "tensor-parallel", "", 2, 2}, {Parts::Equal, "tensor-parallel", "", 4, 4},
    {Parts::Equal, "3d:dp=2,tp=2,pp=2,micro-batches=2", "", 8, 2},
    {Parts::Equal, "", kHeadsAndFeatures, 2, 2}, {Parts::Grouped, "single", "", 1, 1},
    {Parts::Grouped, "tensor-parallel", "", 2, 2}, {Parts::Grouped, "tensor-parallel", "", 4, 4},
    {Parts::Grouped, "3d:dp=2,tp=2,pp=2,micro-batches=2", "", 8, 2}, {Parts::OneHead, "single", "", 1, 1},
    {Parts::OneHead, "tensor-parallel", "", 2, 2}, {Parts::OneHead, "tensor-parallel", "", 4, 4}};

INSTANTIATE_TEST_SUITE_P(Plans, FusedProjections, testing::ValuesIn(kFusedPlans), [](const auto &info) {
    std::string name = std::to_string(info.index) + "_";
    for (const char letter : std::string(info.param.gallery))
        name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
    return name;
});

/// `forward` with weights of numbers that are all in one file.
Graph withWeightsIn(const std::filesystem::path &path, Graph forward)
{
    std::ofstream file(path, std::ios::binary);
    std::int64_t offset = 0;
    for (Tensor &tensor : forward.tensors) {
        if (tensor.role != TensorRole::Weight)
            continue;
        std::vector<float> values(static_cast<std::size_t>(elementCount(tensor.type.shape)));
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = 0.01F * static_cast<float>((i * 31 + static_cast<std::size_t>(offset)) % 23) - 0.1F;
        const auto length = static_cast<std::int64_t>(values.size() * sizeof(float));
        file.write(reinterpret_cast<const char *>(values.data()), length);
        tensor.data = nullptr;
        tensor.external = ExternalData{path.string(), offset, length, true};
        offset += length;
    }
    return forward;
}

Result<RunOutcome> outcomeOf(Graph forward, const char *rows, std::int32_t devices)
{
    annotateOperators(forward);
    TRY(auto step, buildTrainingStep(forward));
    TRY(const auto table, parseTable(rows));
    TRY(const auto completion, completePlan(std::make_shared<const Graph>(std::move(step)), devices, table));
    TRY(const auto plan, lower(completion.plan, *clusterNamed("cpu:" + std::to_string(devices))));
    RunOptions options;
    options.keepGradients = true;
    return runOnCpu(plan, options);
}

TEST(FileParts, AreReadFromTheFileBesideTheModel)
{
    const auto path = std::filesystem::temp_directory_path()
        / ("planloom_file_parts_" + std::to_string(::getpid()) + ".bin");
    for (const Parts parts : {Parts::Grouped, Parts::OneHead}) {
        const Graph whole = withWeightsIn(path, fusedTransformer(parts));
        Graph parted = whole;
        ASSERT_GT(partProjections(parted), 0);
        const auto expected = outcomeOf(whole, "", 1);
        ASSERT_TRUE(expected) << describe(expected.error());
        const auto got = outcomeOf(parted, kHeadsAndFeatures, 2);
        ASSERT_TRUE(got) << describe(got.error());
        const auto check = compareOutcomes(*got, *expected);
        ASSERT_TRUE(check) << describe(check.error());
        EXPECT_TRUE(check->ok) << check->worstTensor << " " << check->worstError;

        std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
        const auto cut = outcomeOf(parted, "", 1);
        ASSERT_FALSE(cut);
        EXPECT_EQ(cut.error().code, ErrorCode::Io);
    }
    std::filesystem::remove(path);
}

TEST(FileParts, OfAPlanMustBeThoseOfTheModel)
{
    const GraphSnapshot model = stepOfFused(Parts::Grouped, true);
    EXPECT_EQ(differenceOf(*model, *model), "");
    std::int32_t parts = 0;
    for (std::size_t i = 0; i < model->tensors.size(); ++i) {
        if (!model->tensors[i].filePart)
            continue;
        ++parts;
        for (const auto &change :
            {+[](FilePart &part) { part.name += "2"; }, +[](FilePart &part) { part.begin ^= 1; }}) {
            Graph plan = *model;
            change(*plan.tensors[i].filePart);
            EXPECT_NE(differenceOf(plan, *model).find(model->tensors[i].name), std::string::npos);
        }
    }
    EXPECT_GT(parts, 0);
}

} // namespace
} // namespace planloom
