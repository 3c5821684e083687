// What the dimensions of the zoo's models and of those beside this checkout are, against their architectures.

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "engine/frontend/zoo/zoo.h"
#include "engine/graph/dimensions/dimension_classes.h"
#include "tests/model_folder.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <set>

namespace planloom {
namespace {

const std::filesystem::path kShared = modelFolder().parent_path();

/// The model with its training step, where it has one.
Graph trained(Graph forward)
{
    auto step = buildTrainingStep(forward, {.optimizer = OperatorKind::AdamWStep});
    return step ? *std::move(step) : std::move(forward);
}

Graph zoo(std::string_view spec)
{
    auto model = buildZooModel(spec);
    EXPECT_TRUE(model) << describe(model.error());
    return trained(*std::move(model));
}

/// "batch 2 | heads 2 4": extents of the classes that operators have, of the meanings asked for. Pieces of
/// others (what is left of a shifted image or sequence) are left out.
std::string extentsOf(const DimensionClasses &found, const std::set<DimensionMeaning> &asked)
{
    std::map<DimensionMeaning, std::set<std::int64_t>> extents;
    for (const DimensionClass &itself : found.classes) {
        if (itself.meaning != DimensionMeaning::Unknown && itself.operators > 0 && !itself.piece)
            extents[itself.meaning].insert(itself.extent);
    }
    std::string text;
    for (const auto &[meaning, sizes] : extents) {
        if (asked.count(meaning) == 0)
            continue;
        text += (text.empty() ? "" : " | ") + std::string(nameOf(meaning));
        for (const std::int64_t size : sizes)
            text += " " + std::to_string(size);
    }
    return text;
}

const std::set<DimensionMeaning> kAsked{DimensionMeaning::Batch, DimensionMeaning::Sequence,
    DimensionMeaning::Heads, DimensionMeaning::HeadSize, DimensionMeaning::Hidden,
    DimensionMeaning::FeedForward, DimensionMeaning::Projection, DimensionMeaning::Vocabulary,
    DimensionMeaning::Classes, DimensionMeaning::Expert, DimensionMeaning::Channels, DimensionMeaning::Height,
    DimensionMeaning::Width};

/// No operator has one class twice, every class fits what it is of, backward operators have their forward's.
void expectSound(const Graph &graph, const DimensionClasses &found)
{
    ASSERT_EQ(found.ofOperator.size(), graph.operators.size());
    ASSERT_EQ(found.ofTensor.size(), graph.tensors.size());
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        ASSERT_EQ(found.ofOperator[i].size(), op.annotation.dimensions.size()) << op.name;
        std::set<DimensionClassId> seen;
        for (std::size_t d = 0; d < op.annotation.dimensions.size(); ++d) {
            const DimensionClassId id = found.ofOperator[i][d];
            if (!id)
                continue;
            EXPECT_EQ(found.at(id).extent, op.annotation.dimensions[d].size) << op.name;
            EXPECT_TRUE(seen.insert(id).second) << op.name << " has " << found.at(id).name << " twice";
        }
        if (op.direction == Direction::Backward && op.mirror) {
            EXPECT_EQ(found.ofOperator[i], found.ofOperator[static_cast<std::size_t>(op.mirror.index)])
                << op.name;
        }
    }
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        const Tensor &tensor = graph.tensors[i];
        for (std::size_t d = 0; d < tensor.type.shape.size(); ++d) {
            if (const DimensionClassId id = found.ofTensor[i][d]) {
                EXPECT_EQ(found.at(id).extent, tensor.type.shape[d]) << tensor.name;
            }
        }
    }
    for (const DimensionClass &itself : found.classes) {
        std::int64_t product = 1;
        for (const DimensionClassId factor : itself.factors)
            product *= found.at(factor).extent;
        EXPECT_TRUE(itself.factors.empty() || product == itself.extent) << itself.name;
    }
}

struct ModelCase {
    const char *model; ///< "zoo:..", or a file below shared/.
    const char *expected;
};

class DimensionsOf : public testing::TestWithParam<ModelCase>
{
};

TEST_P(DimensionsOf, AreThoseOfTheArchitecture)
{
    const std::string name = GetParam().model;
    Graph graph;
    if (isZooSpec(name)) {
        graph = zoo(name);
    } else {
        const auto file = kShared / (name + ".onnx");
        if (!std::filesystem::exists(file))
            GTEST_SKIP() << "the model set is not at " << kShared;
        ImportOptions options;
        if (name.find("dynamic") != std::string::npos)
            options.dimensions["batch"] = 2;
        auto forward = importOnnxFile(file, options);
        ASSERT_TRUE(forward) << describe(forward.error());
        graph = trained(*std::move(forward));
    }
    const DimensionClasses found = analyseDimensions(graph);
    expectSound(graph, found);
    EXPECT_EQ(extentsOf(found, kAsked), GetParam().expected);
}

const ModelCase kModels[] = {
    // The zoo.
    {"zoo:gpt",
        "batch 8 | sequence 1024 | heads 12 | head-size 64 | hidden 768 | feed-forward 3072 | "
        "projection 3 | vocabulary 50257"},
    {"zoo:llama",
        "sequence 2048 | heads 32 | head-size 64 128 | hidden 4096 | feed-forward 11008 | "
        "vocabulary 32000"},
    {"zoo:t5",
        "batch 4 | sequence 512 | heads 16 | head-size 64 | hidden 1024 | feed-forward 4096 | "
        "vocabulary 32128"},
    {"zoo:swin",
        "batch 8 | sequence 49 196 784 3136 | heads 6 12 24 48 | head-size 32 | "
        "hidden 192 384 768 1536 3072 | feed-forward 768 1536 3072 6144 | classes 1000 | "
        "channels 3 | height 2 4 7 8 14 28 56 | width 2 4 7 8 14 28 56"},
    {"zoo:evoformer", "sequence 128 256 | heads 4 8 | head-size 32 | hidden 128 256 | feed-forward 512 1024"},
    {"zoo:resnet",
        "batch 32 | classes 1000 | channels 3 64 128 256 512 1024 2048 | height 7 14 28 56 112 | "
        "width 7 14 28 56 112"},
    {"zoo:vgg",
        "batch 32 | hidden 4096 | classes 1000 | channels 3 64 128 256 512 | "
        "height 7 14 28 56 112 224 | width 7 14 28 56 112 224"},
    {"zoo:moe",
        "batch 8 | sequence 1024 | heads 12 | head-size 64 | hidden 768 | feed-forward 3072 | "
        "vocabulary 50257 | expert 8"},
    {"zoo:mlp", "batch 64 | hidden 1024 | classes 10"},
    // shared/models: configurations in its README.
    {"models/bert_large_full",
        "batch 8 | sequence 512 | heads 16 | head-size 64 | hidden 1024 | feed-forward 4096 | "
        "vocabulary 30522"},
    {"models/bert_tiny",
        "batch 2 | sequence 16 | heads 4 | head-size 16 | hidden 64 | feed-forward 128 | "
        "vocabulary 150"},
    {"models/bert_tiny_opset17",
        "batch 2 | sequence 16 | heads 4 | head-size 16 | hidden 64 | feed-forward 128 | "
        "vocabulary 150"},
    {"models/evoformer_48_full",
        "sequence 128 256 | heads 4 8 | head-size 32 | hidden 128 256 | feed-forward 512 1024"},
    {"models/evoformer_tiny", "sequence 5 8 | heads 2 4 | head-size 4 6 | hidden 16 24 | feed-forward 32 48"},
    {"models/gpt2_small_full",
        "batch 8 | sequence 1024 | heads 12 | head-size 64 | hidden 768 | feed-forward 3072 | "
        "projection 3 | vocabulary 50257"},
    {"models/gpt2_small_full_inputs",
        "batch 8 | sequence 1024 | heads 12 | head-size 64 | hidden 768 | feed-forward 3072 | "
        "projection 3 | vocabulary 50257"},
    {"models/gpt2_tiny",
        "batch 2 | sequence 16 | heads 4 | head-size 16 | hidden 64 | feed-forward 256 | "
        "projection 3 | vocabulary 160"},
    {"models/gpt2_xl_full",
        "batch 4 | sequence 1024 | heads 25 | head-size 64 | hidden 1600 | feed-forward 6400 | "
        "projection 3 | vocabulary 50257"},
    {"models/gpt3_175b_full",
        "sequence 2048 | heads 96 | head-size 128 | hidden 12288 | feed-forward 49152 | "
        "projection 3 | vocabulary 50257"},
    {"models/gpt3_1p3b_full",
        "batch 2 | sequence 2048 | heads 32 | head-size 64 | hidden 2048 | feed-forward 8192 | "
        "projection 3 | vocabulary 50257"},
    {"models/light_resnet50",
        "classes 1000 | channels 3 64 128 256 512 1024 2048 | height 7 14 28 56 112 | "
        "width 7 14 28 56 112"},
    {"models/resnet50_full",
        "batch 32 | classes 1000 | channels 3 64 128 256 512 1024 2048 | height 7 14 28 56 112 | "
        "width 7 14 28 56 112"},
    {"models/resnet50_tiny",
        "batch 4 | classes 10 | channels 3 4 6 8 12 16 24 32 48 | height 2 4 8 16 32 | "
        "width 2 4 8 16 32"},
    {"models/resnet50_tiny_eval",
        "batch 4 | classes 10 | channels 3 4 6 8 12 16 24 32 48 | height 2 4 8 16 | width 2 4 8 16"},
    {"models/swin_1b_full",
        "batch 2 | sequence 576 2304 9216 36864 | heads 14 28 56 112 | head-size 32 | "
        "hidden 448 896 1792 3584 7168 | feed-forward 1792 3584 7168 14336 | "
        "projection 3 | classes 1000 | channels 3 | height 2 4 8 12 24 48 96 192 | "
        "width 2 4 8 12 24 48 96 192"},
    {"models/swin_large_full",
        "batch 8 | sequence 144 576 2304 9216 | heads 6 12 24 48 | head-size 32 | "
        "hidden 192 384 768 1536 3072 | feed-forward 768 1536 3072 6144 | "
        "projection 3 | classes 1000 | channels 3 | height 2 4 6 8 12 24 48 96 | "
        "width 2 4 6 8 12 24 48 96"},
    {"models/swin_tiny",
        "batch 2 | sequence 16 64 256 | heads 2 4 | head-size 8 | hidden 16 32 64 | "
        "feed-forward 64 128 | projection 3 | classes 10 | channels 3 | height 2 4 8 16 | "
        "width 2 4 8 16"},
    {"models/t5_3b_full",
        "batch 2 | sequence 512 | heads 32 | head-size 128 | hidden 1024 | feed-forward 16384 | "
        "vocabulary 32128"},
    {"models/t5_large_full",
        "batch 4 | sequence 512 | heads 16 | head-size 64 | hidden 1024 | feed-forward 4096 | "
        "vocabulary 32128"},
    {"models/t5_tiny",
        "batch 2 | sequence 8 12 | heads 4 | head-size 12 | hidden 48 | feed-forward 96 | "
        "vocabulary 120"},
    // shared/models-modern
    {"models-modern/bert_dynamic",
        "batch 2 | sequence 12 | heads 4 | head-size 12 | hidden 48 | feed-forward 96 | "
        "vocabulary 192"},
    {"models-modern/bert_fp16",
        "batch 2 | sequence 12 | heads 4 | head-size 12 | hidden 48 | feed-forward 96 | "
        "vocabulary 192"},
    {"models-modern/gemma3_dynamo",
        "batch 2 | sequence 12 | heads 2 4 | head-size 16 | hidden 48 | feed-forward 96 | "
        "vocabulary 192"},
    {"models-modern/gpt2_dynamo",
        "batch 2 | sequence 12 | heads 4 | head-size 12 | hidden 48 | feed-forward 192 | "
        "projection 3 | vocabulary 192"},
    {"models-modern/llama_bf16",
        "batch 2 | sequence 12 | heads 2 4 | head-size 12 | hidden 48 | feed-forward 96 | "
        "vocabulary 192"},
    {"models-modern/llama_dynamo",
        "batch 2 | sequence 12 | heads 2 4 | head-size 12 | hidden 48 | feed-forward 96 | "
        "vocabulary 192"},
    {"models-modern/llama_dynamo_unoptimized",
        "batch 2 | sequence 12 | heads 2 4 | head-size 12 | hidden 48 | feed-forward 96 | "
        "vocabulary 192"},
    {"models-modern/llama_opset23",
        "batch 2 | sequence 12 | heads 2 4 | head-size 12 | hidden 48 | feed-forward 96 | "
        "vocabulary 192"},
    {"models-modern/lstm_dynamo", "batch 2 | sequence 8 | hidden 32 48 | projection 128 | vocabulary 192"},
    {"models-modern/qwen3_moe_dynamo",
        "batch 2 | sequence 12 | heads 2 4 | head-size 16 | hidden 48 | feed-forward 32 | "
        "projection 64 | vocabulary 192 | expert 4"},
    {"models-modern/vit_dynamo",
        "batch 2 | sequence 17 | heads 4 | head-size 12 | hidden 48 | feed-forward 96 | "
        "classes 10 | channels 3 | height 4 | width 4"},
    {"models-modern/vit_opset23",
        "batch 2 | sequence 17 | heads 4 | head-size 12 | hidden 48 | feed-forward 96 | "
        "classes 10 | channels 3 | height 4 | width 4"},
};

INSTANTIATE_TEST_SUITE_P(Models, DimensionsOf, testing::ValuesIn(kModels), [](const auto &info) {
    std::string name;
    for (const char c : std::string(info.param.model))
        name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
    return name;
});

std::string nameAt(
    const Graph &graph, const DimensionClasses &found, std::string_view op, std::string_view identifier)
{
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (graph.operators[i].name != op)
            continue;
        const auto at = findDimension(graph.operators[i].annotation, identifier);
        return at ? displayName(found, OperatorId{static_cast<std::int32_t>(i)}, *at) : "no such identifier";
    }
    return "no such operator";
}

TEST(Dimensions, QueriesAndKeysStayApartWhereTheyMeet)
{
    const Graph graph = zoo("zoo:gpt?layers=1&hidden=16&heads=4&seq=8&batch=2&vocab=24");
    const DimensionClasses found = analyseDimensions(graph);
    const auto at = [&](const char *op, const char *identifier) {
        return nameAt(graph, found, op, identifier);
    };
    // a h s e^, a h t^ e^, a h t^ f^ -> a h s f^, a h s, a h s t^
    EXPECT_EQ(at("h.0.attn.attention", "a"), "batch");
    EXPECT_EQ(at("h.0.attn.attention", "h"), "heads");
    EXPECT_EQ(at("h.0.attn.attention", "s"), "sequence");
    EXPECT_EQ(at("h.0.attn.attention", "e"), "head-size");
    EXPECT_EQ(at("h.0.attn.attention", "t"), "key sequence");
    EXPECT_EQ(at("h.0.attn.attention", "f"), "head-size");
    EXPECT_EQ(at("h.0.attn.attention'", "t"), "key sequence");
    EXPECT_EQ(at("h.0.attn.c_proj", "k"), "(heads head-size)");
    EXPECT_EQ(at("h.0.attn.c_proj", "n"), "hidden");
    EXPECT_EQ(at("h.0.mlp.c_fc", "n"), "feed-forward");
    EXPECT_EQ(at("h.0.mlp.c_fc'", "n"), "feed-forward"); // as the forward's
    EXPECT_EQ(at("no", "n"), "no such operator");
}

/// Attention as it is where nothing has made one operator of it.
TEST(Dimensions, OfAttentionsInSeveralOperatorsAreNamedTheSame)
{
    GraphBuilder builder("written out");
    const TensorId x = builder.input("x", {DataType::Float32, {2, 8, 16}});
    const auto heads = [&](std::string_view name, std::vector<std::int64_t> permutation) {
        const TensorId w = builder.weight(std::string(name) + ".weight", {16, 16});
        const TensorId all = builder.one(OperatorKind::Linear, {x, w}, {}, name);
        return builder.one(OperatorKind::Transpose, {builder.reshape(all, {2, 8, 4, 4})},
            attributesOf({{"permutation", std::move(permutation)}}));
    };
    const TensorId query = heads("q", {0, 2, 1, 3});
    const TensorId key = heads("k", {0, 2, 3, 1});
    const TensorId value = heads("v", {0, 2, 1, 3});
    const TensorId scores = builder.one(OperatorKind::MatMul, {query, key}, {}, "scores");
    const TensorId shares = builder.one(OperatorKind::Softmax, {scores}, attributesOf({{"axis", 3}}));
    const TensorId context = builder.one(OperatorKind::MatMul, {shares, value}, {}, "context");
    const auto graph = builder.finish({context}, {});
    ASSERT_TRUE(graph) << describe(graph.error());
    const DimensionClasses found = analyseDimensions(*graph);
    const auto at = [&](const char *op, const char *identifier) {
        return nameAt(*graph, found, op, identifier);
    };
    // a b m k+, a b k+ n -> a b m n
    EXPECT_EQ(at("scores", "a"), "batch");
    EXPECT_EQ(at("scores", "b"), "heads");
    EXPECT_EQ(at("scores", "m"), "sequence");
    EXPECT_EQ(at("scores", "k"), "head-size");
    EXPECT_EQ(at("scores", "n"), "key sequence");
    EXPECT_EQ(at("context", "k"), "key sequence");
    EXPECT_EQ(at("context", "n"), "head-size");
}

TEST(Dimensions, AreNamedBesideAnEinsumOfOneValue)
{
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 4, 6, 3}});
    const TensorId y = b.add(OperatorKind::Attention, {x, x, x}).front();
    const TensorId turned = b.one(OperatorKind::Einsum, {y}, attributesOf({{"equation", "bhse->bshe"}}));
    const auto graph = b.finish({turned});
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(extentsOf(analyseDimensions(*graph), {DimensionMeaning::Heads}), "heads 4");
}

TEST(Dimensions, QueryHeadsThatShareAKeyHeadAreCutWithIt)
{
    const Graph graph = zoo("zoo:llama?layers=1&hidden=32&heads=8&kv_heads=2&ffn=16&seq=8&batch=2&vocab=24");
    const DimensionClasses found = analyseDimensions(graph);
    EXPECT_EQ(nameAt(graph, found, "layers.0.self_attn.attention", "g"), "heads");
    std::map<std::string, std::int64_t> heads;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const OperatorId id{static_cast<std::int32_t>(i)};
        const auto meant = findMeant(found, graph, id, DimensionMeaning::Heads);
        if (meant.identifier >= 0)
            heads[graph.operators[i].name] = meant.extent;
    }
    const auto of = [&](const std::string &name) { return heads["layers.0.self_attn." + name]; };
    EXPECT_EQ(of("q_proj"), 8);
    EXPECT_EQ(of("query.rotary"), 8);
    EXPECT_EQ(of("k_proj"), 2);
    EXPECT_EQ(of("v_proj"), 2);
    EXPECT_EQ(of("attention"), 2); // four heads of queries each go with one of keys
    EXPECT_EQ(of("o_proj"), 8);
}

TEST(Dimensions, MeantIsTheOutermostThatMayBeCut)
{
    const Graph graph = zoo("zoo:gpt?layers=1&hidden=16&heads=4&seq=8&batch=2&vocab=24");
    const DimensionClasses found = analyseDimensions(graph);
    int seen = 0;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        const OperatorId id{static_cast<std::int32_t>(i)};
        const auto letter = [&](DimensionMeaning meaning) {
            const auto meant = findMeant(found, graph, id, meaning);
            return meant.identifier < 0
                ? std::string(meant.frozen ? "whole" : "none")
                : op.annotation.dimensions[static_cast<std::size_t>(meant.identifier)].name
                    + std::to_string(meant.extent);
        };
        if (op.name == "h.0.attn.attention") {
            ++seen;
            EXPECT_EQ(letter(DimensionMeaning::Sequence), "s8");
            EXPECT_EQ(letter(DimensionMeaning::Heads), "h4");
            EXPECT_EQ(letter(DimensionMeaning::Hidden), "none");
        } else if (op.name == "h.0.attn.c_proj") {
            ++seen;
            EXPECT_EQ(letter(DimensionMeaning::Heads), "k4"); // of 16
        } else if (op.kind == OperatorKind::LayerNorm) {
            EXPECT_EQ(letter(DimensionMeaning::Hidden), "whole");
        }
    }
    EXPECT_EQ(seen, 2);
}

/// x -> Linear -> + x: one class would be the operator's input and output at once.
TEST(Dimensions, SquareResidualsDoNotTieAnOperatorsInputToItsOutput)
{
    GraphBuilder builder("residual");
    const TensorId x = builder.input("x", {DataType::Float32, {4, 8}});
    const TensorId w = builder.weight("w", {8, 8});
    const TensorId y = builder.one(OperatorKind::Linear, {x, w, {}}, {}, "y");
    const TensorId z = builder.one(OperatorKind::Add, {x, y}, {}, "z");
    const auto graph = builder.finish({z}, {});
    ASSERT_TRUE(graph) << describe(graph.error());
    const DimensionClasses found = analyseDimensions(*graph);
    expectSound(*graph, found);
    EXPECT_NE(found.ofTensor[static_cast<std::size_t>(x.index)][1],
        found.ofTensor[static_cast<std::size_t>(y.index)][1]);
    EXPECT_EQ(found.ofTensor[static_cast<std::size_t>(x.index)][1],
        found.ofTensor[static_cast<std::size_t>(z.index)][1]);
}

TEST(Dimensions, AReshapeThereAndBackIsTheSameClass)
{
    GraphBuilder builder("windows");
    const TensorId x = builder.input("x", {DataType::Float32, {3, 12, 5}});
    const TensorId a = builder.reshape(x, {3, 4, 3, 5}, "a");
    const TensorId b = builder.reshape(a, {12, 15}, "b");
    const TensorId c = builder.reshape(b, {3, 12, 5}, "c");
    const auto graph = builder.finish({c}, {});
    ASSERT_TRUE(graph) << describe(graph.error());
    const DimensionClasses found = analyseDimensions(*graph);
    expectSound(*graph, found);
    EXPECT_EQ(
        found.ofTensor[static_cast<std::size_t>(x.index)], found.ofTensor[static_cast<std::size_t>(c.index)]);
    EXPECT_EQ(found.at(found.ofTensor[static_cast<std::size_t>(x.index)][1]).factors.size(), 2u);
}

/// Ten thousand operators take tens of milliseconds, and twice as many about twice that.
TEST(Dimensions, AreFoundInTimeNearlyLinearInTheGraph)
{
    const auto seconds = [](const Graph &graph) {
        double best = 1e9;
        for (int i = 0; i < 3; ++i) {
            const auto start = std::chrono::steady_clock::now();
            const DimensionClasses found = analyseDimensions(graph);
            best = std::min(best,
                std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()
                    + 1e-12 * double(found.classes.size()));
        }
        return best;
    };
    const Graph some = zoo("zoo:gpt?layers=50&hidden=64&heads=4&seq=16&vocab=160");
    const Graph many = zoo("zoo:gpt?layers=200&hidden=64&heads=4&seq=16&vocab=160");
    EXPECT_GT(many.operators.size(), 10000u);
    RecordProperty("operators", static_cast<int>(many.operators.size()));
    const double time = seconds(many);
    RecordProperty("microseconds", static_cast<int>(time * 1e6));
    EXPECT_LT(time, 16 * seconds(some) + 0.05); // quadratic would be 16 times as long
    EXPECT_LT(time, 2.0);
}

TEST(Dimensions, MeaningsHaveNamesOfTheirOwn)
{
    std::set<std::string> names;
    for (int i = 1; i < kDimensionMeaningCount; ++i) {
        const auto meaning = static_cast<DimensionMeaning>(i);
        EXPECT_TRUE(names.insert(nameOf(meaning)).second);
        EXPECT_EQ(dimensionMeaningNamed(nameOf(meaning)), meaning);
    }
    EXPECT_FALSE(dimensionMeaningNamed("unknown"));
    EXPECT_FALSE(dimensionMeaningNamed("Heads"));
}

} // namespace
} // namespace planloom
