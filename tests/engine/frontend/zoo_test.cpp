#include "engine/frontend/zoo/zoo.h"

#include "engine/frontend/training/training.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace planloom {
namespace {

std::int64_t parameters(const Graph &graph)
{
    std::int64_t count = 0;
    for (const Tensor &tensor : graph.tensors) {
        if (tensor.role == TensorRole::Weight)
            count += elementCount(tensor.type.shape);
    }
    return count;
}

std::int64_t parametersOf(const std::string &spec)
{
    const auto graph = buildZooModel(spec);
    EXPECT_TRUE(graph) << describe(graph.error());
    return graph ? parameters(*graph) : -1;
}

TEST(Zoo, ParameterCountsArePublishedOnes)
{
    EXPECT_EQ(parametersOf("zoo:gpt"), 124'439'808); // GPT-2
    EXPECT_EQ(parametersOf("zoo:gpt?layers=48&hidden=1600&heads=25"), 1'557'611'200); // GPT-2 XL
    EXPECT_EQ(
        parametersOf("zoo:gpt?layers=96&hidden=12288&heads=96&seq=2048&batch=1"), 174'604'259'328); // GPT-3
    EXPECT_EQ(parametersOf("zoo:llama"), 6'738'415'616); // LLaMA-7B
    EXPECT_EQ(parametersOf("zoo:llama?layers=80&hidden=8192&heads=64&kv_heads=8&ffn=28672"),
        68'976'648'192); // Llama-2-70B
    EXPECT_EQ(parametersOf("zoo:t5"), 737'668'096); // T5-large
    EXPECT_EQ(parametersOf("zoo:swin?image=384&window=12"), 196'735'516); // Swin-L
    EXPECT_EQ(parametersOf("zoo:evoformer"), 87'936'384); // OpenFold's stack
    EXPECT_EQ(parametersOf("zoo:resnet"), 25'557'032);
    EXPECT_EQ(parametersOf("zoo:resnet?depth=18"), 11'689'512);
    EXPECT_EQ(parametersOf("zoo:resnet?depth=34"), 21'797'672);
    EXPECT_EQ(parametersOf("zoo:resnet?depth=152"), 60'192'808);
    EXPECT_EQ(parametersOf("zoo:vgg"), 138'357'544);
    EXPECT_EQ(parametersOf("zoo:vgg?depth=19"), 143'667'240);
    // 3D U-Net's 19,069,955 have biases of convolutions; here are those of up-convolutions, and batch norm's.
    EXPECT_EQ(parametersOf("zoo:unet3d?channels=3&classes=3"), 19'069'955 - 2'336 + 896 + 4'672);
    EXPECT_EQ(parametersOf("zoo:cosmoflow"), 8'907'556);
    EXPECT_EQ(parametersOf("zoo:mlp?layers=3&input=5&hidden=7&classes=2"), 6 * 7 + 8 * 7 + 8 * 2);
}

TEST(Zoo, MixtureParametersAreThoseOfItsExperts)
{
    for (const std::int64_t experts : {2, 8}) {
        const std::int64_t h = 16;
        const std::int64_t f = 4 * h;
        const std::int64_t attention = 4 * (h * h + h);
        const std::int64_t dense = 2 * h * f + f + h;
        const std::int64_t mixture = experts * dense + h * experts;
        const std::int64_t total = 50 * h + 8 * h + 4 * (attention + 4 * h) + 2 * dense + 2 * mixture + 2 * h;
        EXPECT_EQ(parametersOf("zoo:moe?layers=4&hidden=16&heads=2&seq=8&batch=2&vocab=50&experts="
                      + std::to_string(experts)),
            total);
    }
}

TEST(Zoo, LlamasOfExpertsHaveThoseOfMixtralAndOlmoe)
{
    EXPECT_EQ(parametersOf("zoo:llama?kv_heads=8&ffn=14336&experts=8"), 46'702'792'704); // Mixtral-8x7B
    EXPECT_EQ(parametersOf("zoo:llama?layers=16&hidden=2048&heads=16&ffn=1024&vocab=50304&experts=64&top_k=8"
                           "&qk_norm=1"),
        6'919'161'856); // OLMoE-1B-7B
}

TEST(Zoo, DeepSeeksAndNemotronsHaveThoseOfTheirReports)
{
    EXPECT_EQ(parametersOf("zoo:deepseek"), 671'026'404'352); // DeepSeek-V3 without its further token
    EXPECT_EQ(parametersOf("zoo:deepseek?layers=60&hidden=5120&ffn=1536&experts=160&top_k=6&shared=2&dense=1"
                           "&dense_ffn=12288&vocab=102400&sigmoid=0"),
        235'741'434'880); // DeepSeek-V2
    // Nemotron-4 15B: 3.1 billion of embeddings, 12.5 billion beside them (arXiv:2402.16819, table 1).
    const std::int64_t nemotron =
        parametersOf("zoo:llama?layers=32&hidden=6144&heads=48&kv_heads=8&ffn=24576&vocab=256000&gated=0");
    EXPECT_EQ(nemotron / 100'000'000, 156);
    EXPECT_EQ(parametersOf("zoo:llama?layers=2&hidden=64&heads=4&ffn=96&vocab=50&tied=1") + 50 * 64,
        parametersOf("zoo:llama?layers=2&hidden=64&heads=4&ffn=96&vocab=50"));
    EXPECT_EQ(parametersOf("zoo:gpt?layers=2&hidden=64&heads=4&seq=8&vocab=50&tied=0") - 50 * 64,
        parametersOf("zoo:gpt?layers=2&hidden=64&heads=4&seq=8&vocab=50"));
}

/// DeepSeek-V3's form: first layers without mixtures, and a module that predicts one token further.
TEST(Zoo, LlamasMayBeginWithoutMixturesAndPredictFurther)
{
    const std::int64_t h = 16;
    const std::int64_t around = 4 * h * h + 2 * h; // attention and norms of a layer
    const std::int64_t mixture = around + 4 * h + 4 * 3 * h * 8;
    const std::int64_t module = 2 * h + 2 * h * h + mixture + h; // its norms, projection, layer
    EXPECT_EQ(parametersOf("zoo:llama?layers=3&hidden=16&heads=4&ffn=8&seq=8&batch=2&vocab=20&experts=4"
                           "&dense=1&dense_ffn=24&mtp=2"),
        2 * 20 * h + around + 3 * h * 24 + 2 * mixture + h + 2 * module);
}

TEST(Zoo, QueriesKeysAndValuesOfGptAreOneWeightOrThree)
{
    const std::string small = "zoo:gpt?layers=1&hidden=16&heads=2&seq=8&batch=2&vocab=20";
    const auto namesOf = [](const Graph &graph) {
        std::set<std::string> names;
        for (const Operator &op : graph.operators) {
            if (op.kind == OperatorKind::Linear)
                names.insert(op.name);
        }
        return names;
    };
    const auto fused = buildZooModel(small);
    const auto apart = buildZooModel(small + "&fused=0");
    ASSERT_TRUE(fused && apart);
    EXPECT_EQ(parameters(*fused), parameters(*apart));
    EXPECT_EQ(namesOf(*fused),
        (std::set<std::string>{
            "h.0.attn.c_attn", "h.0.attn.c_proj", "h.0.mlp.c_fc", "h.0.mlp.c_proj", "lm_head"}));
    EXPECT_EQ(namesOf(*apart),
        (std::set<std::string>{"h.0.attn.q_attn", "h.0.attn.k_attn", "h.0.attn.v_attn", "h.0.attn.c_proj",
            "h.0.mlp.c_fc", "h.0.mlp.c_proj", "lm_head"}));
    const auto weight = std::find_if(fused->tensors.begin(), fused->tensors.end(),
        [](const Tensor &tensor) { return tensor.name == "h.0.attn.c_attn.weight"; });
    ASSERT_NE(weight, fused->tensors.end());
    EXPECT_EQ(weight->type.shape, (Shape{16, 3, 16})); // parts can be cut by heads
    EXPECT_EQ(weight->fileShape, (Shape{16, 48})); // as GPT-2's files have it
}

const std::vector<std::string> kSmallModels{
    "zoo:gpt?layers=2&hidden=16&heads=2&seq=8&batch=2&vocab=20&dropout=0.1",
    "zoo:gpt?layers=2&hidden=16&heads=2&seq=8&batch=2&vocab=20&fused=0",
    "zoo:llama?layers=2&hidden=16&heads=4&kv_heads=2&ffn=24&seq=8&batch=2&vocab=20",
    "zoo:llama?layers=2&hidden=16&heads=4&ffn=8&seq=8&batch=2&vocab=20&experts=4&qk_norm=1",
    "zoo:llama?layers=2&hidden=16&heads=4&ffn=8&seq=8&batch=2&vocab=20&experts=4&dense=1&dense_ffn=24&mtp=2",
    "zoo:llama?layers=2&hidden=16&heads=4&ffn=24&seq=8&batch=2&vocab=20&gated=0&tied=1",
    "zoo:deepseek?layers=2&hidden=16&heads=2&q_lora=8&kv_lora=6&nope=4&rope=4&v_head=6&ffn=8&seq=8&batch=2"
    "&vocab=20&experts=8&top_k=2&groups=4&top_groups=2&dense=1&dense_ffn=24&mtp=1",
    "zoo:deepseek?layers=2&hidden=16&heads=2&q_lora=0&kv_lora=6&nope=4&rope=4&v_head=6&ffn=8&seq=8&batch=2"
    "&vocab=20&experts=4&top_k=2&sigmoid=0&shared=2&dense=0",
    "zoo:t5?layers=2&hidden=16&heads=2&d_kv=8&ffn=32&src=8&tgt=6&batch=2&vocab=20&dropout=0.1",
    "zoo:swin?layers=2&hidden=8&heads=2&window=2&image=32&patch=2&classes=5&batch=2&dropout=0.1",
    "zoo:evoformer?layers=2&msa=8&pair=8&single=6&seqs=3&residues=4&heads=2&pair_heads=2&head_width=4&"
    "triangle=6",
    "zoo:resnet?depth=18&width=2&image=64&classes=5&batch=4",
    "zoo:resnet?depth=50&width=2&image=64&classes=5&batch=4",
    "zoo:vgg?depth=11&width=4&head=8&image=32&classes=5&batch=2",
    "zoo:unet3d?levels=3&width=2&volume=8&channels=1&classes=3&batch=2",
    "zoo:cosmoflow?stages=2&width=2&volume=8&channels=1&head=8&batch=2&dropout=0.1",
    "zoo:moe?layers=2&hidden=16&heads=2&seq=8&batch=2&vocab=20&experts=4",
    "zoo:mlp?layers=3&hidden=8&input=6&batch=4"};

TEST(Zoo, SmallModelsAreValidAndTrainEveryWeight)
{
    for (const std::string &spec : kSmallModels) {
        SCOPED_TRACE(spec);
        const auto graph = buildZooModel(spec);
        ASSERT_TRUE(graph) << describe(graph.error());
        const auto valid = validate(*graph);
        EXPECT_TRUE(valid) << describe(valid.error());
        const auto training = buildTrainingStep(*graph, {.optimizer = OperatorKind::AdamWStep});
        ASSERT_TRUE(training) << describe(training.error());
        const auto validTraining = validate(*training);
        EXPECT_TRUE(validTraining) << describe(validTraining.error());
        std::set<TensorId> updated;
        for (const Operator &op : training->operators) {
            if (op.direction == Direction::Optimizer)
                updated.insert(op.inputs[0]);
        }
        for (std::size_t i = 0; i < graph->tensors.size(); ++i) {
            if (graph->tensors[i].role == TensorRole::Weight) {
                EXPECT_TRUE(updated.contains(TensorId{static_cast<std::int32_t>(i)}))
                    << graph->tensors[i].name;
            }
        }
    }
}

TEST(Zoo, EveryOperatorIsAnnotated)
{
    for (const std::string &spec : kSmallModels) {
        const auto graph = buildZooModel(spec);
        ASSERT_TRUE(graph) << describe(graph.error());
        for (const Operator &op : graph->operators)
            EXPECT_EQ(op.annotationProblem, "") << spec << ": " << op.name;
    }
}

TEST(Zoo, SmallModelsRunAndTheirGradientsAreDifferencesOfTheLoss)
{
    constexpr double kStep = 1e-6;
    for (const std::string &spec : kSmallModels) {
        SCOPED_TRACE(spec);
        const auto forward = buildZooModel(spec);
        ASSERT_TRUE(forward) << describe(forward.error());
        auto training = buildTrainingStep(*forward);
        ASSERT_TRUE(training) << describe(training.error());
        const Graph graph = testing_support::inDouble(*training);
        testing_support::GraphRunner runner(graph, 5);
        ASSERT_TRUE(runner.run());
        ASSERT_TRUE(std::isfinite(runner.get(graph.loss)));
        std::vector<std::pair<TensorId, TensorId>> gradients; // with the weight
        for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
            const Tensor &tensor = graph.tensors[i];
            if (tensor.role == TensorRole::Gradient && graph.at(tensor.of).role == TensorRole::Weight)
                gradients.emplace_back(TensorId{static_cast<std::int32_t>(i)}, tensor.of);
        }
        ASSERT_FALSE(gradients.empty());
        std::mt19937 random(7);
        for (int sample = 0; sample < 12; ++sample) {
            const auto [gradient, weight] = gradients[random() % gradients.size()];
            const std::int64_t element =
                static_cast<std::int64_t>(random()) % elementCount(graph.at(weight).type.shape);
            const double value = runner.get(weight, element);
            double losses[2];
            for (const int side : {0, 1}) {
                testing_support::GraphRunner moved = runner;
                moved.set(weight, element, value + (side == 0 ? -kStep : kStep));
                ASSERT_TRUE(moved.run());
                losses[side] = moved.get(graph.loss);
            }
            const double difference = (losses[1] - losses[0]) / (2 * kStep);
            EXPECT_NEAR(runner.get(gradient, element), difference, 1e-5 * std::max(1.0, std::abs(difference)))
                << graph.at(gradient).name << " element " << element;
        }
    }
}

TEST(Zoo, LayersAreCopiesOfOneAnother)
{
    const auto graph = buildZooModel("zoo:gpt?layers=4&hidden=16&heads=2&seq=8&vocab=20");
    ASSERT_TRUE(graph);
    std::set<std::int32_t> classes;
    int layers = 0;
    for (const Scope &scope : graph->scopes) {
        if (scope.name.rfind("h.", 0) == 0) {
            ++layers;
            classes.insert(scope.copyClass);
        }
    }
    EXPECT_EQ(layers, 4);
    EXPECT_EQ(classes.size(), 1U);
    EXPECT_GE(*classes.begin(), 0);
}

TEST(Zoo, DefaultsOfEveryFamilyBuild)
{
    for (const ZooFamily &family : zooFamilies()) {
        const auto graph = buildZooModel("zoo:" + family.name);
        EXPECT_TRUE(graph) << family.name << ": " << describe(graph.error());
        for (const ZooParameter &parameter : family.parameters) {
            EXPECT_GE(parameter.fallback, parameter.least) << family.name << " " << parameter.name;
            EXPECT_LE(parameter.fallback, parameter.most) << family.name << " " << parameter.name;
        }
    }
}

TEST(Zoo, PublishedModelsHaveThePublishedNumbersOfParameters)
{
    EXPECT_EQ(parametersOf("zoo:llama-2-7b"), 6'738'415'616);
    EXPECT_EQ(parametersOf("zoo:llama-2-13b"), 13'015'864'320);
    EXPECT_EQ(parametersOf("zoo:llama-2-70b"), 68'976'648'192);
    EXPECT_EQ(parametersOf("zoo:llama-3-8b"), 8'030'261'248);
    EXPECT_EQ(parametersOf("zoo:llama-3-70b"), 70'553'706'496);
    EXPECT_EQ(parametersOf("zoo:llama-3-405b"), 405'853'388'800);
    EXPECT_EQ(parametersOf("zoo:mixtral-8x7b"), 46'702'792'704);
    EXPECT_EQ(parametersOf("zoo:qwen3-30b-a3b"), 30'532'122'624);
    EXPECT_EQ(parametersOf("zoo:qwen3-235b-a22b"), 235'093'634'560);
    EXPECT_EQ(parametersOf("zoo:deepseek-v3"), 671'026'404'352);
    EXPECT_EQ(parametersOf("zoo:deepseek-v2"), 235'741'434'880);
    // Its biases and sinks are what is missing (arXiv:2508.10925, table 1: 116.83 and 20.91 billion).
    EXPECT_NEAR(static_cast<double>(parametersOf("zoo:gpt-oss-120b")), 116.83e9, 0.002 * 116.83e9);
    EXPECT_NEAR(static_cast<double>(parametersOf("zoo:gpt-oss-20b")), 20.91e9, 0.002 * 20.91e9);
}

TEST(Zoo, PublishedModelsTakeOtherSizes)
{
    const auto graph = buildZooModel("zoo:gpt-oss-120b?layers=4&seq=256");
    ASSERT_TRUE(graph) << describe(graph.error());
    std::vector<std::int64_t> windows;
    for (const Operator &op : graph->operators)
        if (op.kind == OperatorKind::Attention)
            windows.push_back(op.attributes.integer("window", 0));
    EXPECT_EQ(windows, (std::vector<std::int64_t>{128, 0, 128, 0}));
}

TEST(Zoo, RefusesWhatItDoesNotKnowAndSaysWhatItKnows)
{
    const auto family = buildZooModel("zoo:gtp");
    ASSERT_FALSE(family);
    EXPECT_EQ(family.error().code, ErrorCode::InvalidInput);
    for (const ZooFamily &known : zooFamilies())
        EXPECT_NE(family.error().advice.find(known.name), std::string::npos) << known.name;

    const auto parameter = buildZooModel("zoo:mlp?layrs=3");
    ASSERT_FALSE(parameter);
    EXPECT_EQ(parameter.error().where, "zoo:mlp/layrs");
    EXPECT_NE(parameter.error().advice.find("layers"), std::string::npos);

    for (const char *spec : {"gpt", "zoo:", "zoo:?", "zoo:gpt?layers", "zoo:gpt?layers=", "zoo:gpt?layers=0",
             "zoo:gpt?layers=1.5", "zoo:gpt?layers=1e9", "zoo:gpt?layers=nan", "zoo:gpt?layers=3x",
             "zoo:gpt?=3", "zoo:gpt?heads=5", "zoo:gpt?batch=65536&seq=262144",
             "zoo:gpt?batch=64&seq=4194304&heads=768", "zoo:llama?kv_heads=3", "zoo:llama?experts=3&top_k=4",
             "zoo:llama?hidden=32&heads=32", "zoo:llama?hidden=30&heads=4", "zoo:llama?head_dim=3",
             "zoo:t5?buckets=6", "zoo:swin?image=200", "zoo:swin?window=5", "zoo:resnet?depth=20",
             "zoo:vgg?image=100", "zoo:unet3d?volume=20", "zoo:cosmoflow?volume=48", "zoo:moe?top_k=9",
             "zoo:mlp?dropout=1"}) {
        const auto graph = buildZooModel(spec);
        ASSERT_FALSE(graph) << spec;
        EXPECT_EQ(graph.error().code, ErrorCode::InvalidInput) << spec;
        EXPECT_FALSE(graph.error().message.empty()) << spec;
    }
}

} // namespace
} // namespace planloom
