#include "engine/frontend/onnx/import_onnx.h"

#include "tests/engine/frontend/onnx_file.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace planloom {
namespace {

using testing_support::GraphRunner;
using testing_support::OnnxFile;
using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;

ImportOptions unfused()
{
    ImportOptions options;
    options.fuse = false;
    return options;
}

/// Imports without fusing; fails the test on errors.
Graph imported(const OnnxFile &file, const ImportOptions &options = unfused())
{
    auto graph = importOnnxBytes(file.bytes(), {}, options);
    EXPECT_TRUE(graph) << describe(graph.error());
    return graph ? *std::move(graph) : Graph{};
}

std::vector<std::string> kinds(const Graph &graph)
{
    std::vector<std::string> names;
    for (const Operator &op : graph.operators)
        names.emplace_back(nameOf(op.kind));
    return names;
}

const Operator *findKind(const Graph &graph, OperatorKind kind)
{
    for (const Operator &op : graph.operators) {
        if (op.kind == kind)
            return &op;
    }
    ADD_FAILURE() << "no " << nameOf(kind);
    return nullptr;
}

const Tensor *findTensor(const Graph &graph, const std::string &name)
{
    for (const Tensor &tensor : graph.tensors) {
        if (tensor.name == name)
            return &tensor;
    }
    ADD_FAILURE() << "no tensor " << name;
    return nullptr;
}

/// Runs the graph on the given inputs and returns output `index`.
Reals computed(const Graph &graph, const std::vector<Reals> &inputs, std::size_t index = 0)
{
    GraphRunner runner(graph);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        for (std::size_t k = 0; k < inputs[i].size(); ++k)
            runner.set(graph.inputs[i], static_cast<std::int64_t>(k), inputs[i][k]);
    }
    EXPECT_TRUE(runner.run());
    return runner.all(graph.outputs[index]);
}

void expectNear(const Reals &actual, const Reals &expected, double tolerance = 1e-5)
{
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
        EXPECT_NEAR(actual[i], expected[i], tolerance) << "element " << i;
}

TEST(ImportOnnx, NamesOperatorsByTheirNodesAndKeepsTensorNames)
{
    OnnxFile file;
    file.input("x", {2, 3}).weight("h.0.c_fc.weight", {4, 3}).weight("h.0.c_fc.bias", {4});
    file.node("Gemm", {"x", "h.0.c_fc.weight", "h.0.c_fc.bias"}, {"a"}, "/h.0/c_fc/Gemm").set("transB", 1);
    file.node("Relu", {"a"}, {"b"});
    file.node("Relu", {"b"}, {"y"});
    file.output("y");
    const Graph graph = imported(file);
    ASSERT_EQ(kinds(graph), (std::vector<std::string>{"Linear", "Relu", "Relu"}));
    EXPECT_EQ(graph.operators[0].name, "h.0.c_fc.Gemm");
    EXPECT_EQ(graph.operators[0].sources, (std::vector<SourceNode>{{"/h.0/c_fc/Gemm", "Gemm"}}));
    EXPECT_EQ(graph.operators[1].name, "Relu_0");
    EXPECT_EQ(graph.operators[2].name, "Relu_1");
    EXPECT_EQ(findTensor(graph, "h.0.c_fc.weight")->role, TensorRole::Weight);
    EXPECT_EQ(graph.at(graph.outputs[0]).name, "y");
    EXPECT_FALSE(graph.loss.valid());
}

TEST(ImportOnnx, GivesEqualNamesToNoTwoOperators)
{
    OnnxFile file;
    file.input("x", {2});
    file.node("Relu", {"x"}, {"a"}, "/n");
    file.node("Relu", {"a"}, {"b"}, "n_2");
    file.node("Relu", {"b"}, {"y"}, "n");
    file.output("y");
    const Graph graph = imported(file);
    ASSERT_EQ(graph.operators.size(), 3U);
    EXPECT_NE(graph.operators[0].name, graph.operators[2].name);
    EXPECT_NE(graph.operators[1].name, graph.operators[2].name);
}

TEST(ImportOnnx, GemmWithFactorsAndTransposesComputesAlphaABPlusBetaC)
{
    for (const int transA : {0, 1}) {
        for (const int transB : {0, 1}) {
            for (const float beta : {0.0F, 1.0F, 0.5F}) {
                OnnxFile file;
                file.input("a", transA != 0 ? Integers{2, 3} : Integers{3, 2});
                file.weight("b", transB != 0 ? Integers{2, 2} : Integers{2, 2}, {1, 2, 3, 4})
                    .weight("c", {3, 1}, {10, 20, 30});
                file.node("Gemm", {"a", "b", "c"}, {"y"}, "g")
                    .set("transA", transA)
                    .set("transB", transB)
                    .set("alpha", 2.0F)
                    .set("beta", beta);
                file.output("y");
                // Row-major a with value i + 1 at element i.
                Reals expected;
                const double b[2][2] = {{1, 2}, {3, 4}};
                for (int i = 0; i < 3; ++i) {
                    for (int j = 0; j < 2; ++j) {
                        double sum = 0;
                        for (int k = 0; k < 2; ++k)
                            sum += (transA != 0 ? k * 3 + i + 1 : i * 2 + k + 1)
                                * (transB != 0 ? b[j][k] : b[k][j]);
                        expected.push_back(2 * sum + static_cast<double>(beta) * 10 * (i + 1));
                    }
                }
                expectNear(computed(imported(file), {{1, 2, 3, 4, 5, 6}}), expected);
            }
        }
    }
}

TEST(ImportOnnx, ChainsOfSumMeanMinAndMax)
{
    for (const std::string type : {"Sum", "Mean", "Min", "Max"}) {
        OnnxFile file;
        file.input("a", {2}).input("b", {2}).input("c", {1});
        file.node(type, {"a", "b", "c"}, {"y"}, "n");
        file.output("y");
        const Reals expected = type == "Sum" ? Reals{9, 1}
            : type == "Mean"                 ? Reals{3, 1.0 / 3}
            : type == "Min"                  ? Reals{2, -4}
                                             : Reals{4, 3};
        expectNear(computed(imported(file), {{4, -4}, {2, 2}, {3}}), expected);
    }
}

TEST(ImportOnnx, SoftmaxBeforeOpset13NormalisesAllDimensionsFromTheAxis)
{
    OnnxFile old(11);
    old.input("x", {1, 2, 2});
    old.node("Softmax", {"x"}, {"y"}, "s");
    old.output("y");
    EXPECT_EQ(kinds(imported(old)), (std::vector<std::string>{"Reshape", "Softmax", "Reshape"}));
    expectNear(computed(imported(old), {{0, 0, 0, 0}}), {0.25, 0.25, 0.25, 0.25});

    OnnxFile recent(13);
    recent.input("x", {1, 2, 2});
    recent.node("Softmax", {"x"}, {"y"}, "s");
    recent.output("y");
    EXPECT_EQ(kinds(imported(recent)), std::vector<std::string>{"Softmax"});
    expectNear(computed(imported(recent), {{0, 0, 0, 0}}), {0.5, 0.5, 0.5, 0.5});
}

TEST(ImportOnnx, AttentionsOfTheFilesOwn)
{
    const auto attending = [](const std::vector<std::int64_t> &q, const std::vector<std::int64_t> &kv) {
        OnnxFile file(23);
        file.input("q", q).input("k", kv).input("v", kv);
        return file;
    };
    OnnxFile apart = attending({1, 2, 2, 1}, {1, 1, 2, 1});
    apart.node("Attention", {"q", "k", "v"}, {"y"}, "a").set("scale", 1.0F).set("is_causal", 1);
    apart.output("y");
    const Graph graph = imported(apart);
    EXPECT_EQ(kinds(graph), std::vector<std::string>{"Attention"});
    EXPECT_EQ(graph.operators[0].attributes.integer("causal"), 1);
    // The first query of each head sees the first key alone; scores 0 weigh both keys alike.
    expectNear(computed(graph, {{3, 0, -2, 0}, {1, 5}, {10, 20}}), {10, 15, 10, 15});

    // Heads side by side, and the scale that is not written: 1 / sqrt(4).
    OnnxFile joined = attending({1, 1, 8}, {1, 2, 4});
    joined.node("Attention", {"q", "k", "v"}, {"y"}, "a").set("q_num_heads", 2).set("kv_num_heads", 1);
    joined.output("y");
    const Graph heads = imported(joined);
    EXPECT_EQ(kinds(heads),
        (std::vector<std::string>{"Reshape", "Transpose", "Reshape", "Transpose", "Reshape", "Transpose",
            "Attention", "Transpose", "Reshape"}));
    const double near = 1 / (1 + std::exp(-1.0)); // scores 1 and 0
    expectNear(
        computed(heads, {{2, 0, 0, 0, 0, 2, 0, 0}, {1, 0, 0, 0, 0, 1, 0, 0}, {1, 0, 0, 0, 0, 0, 0, 0}}),
        {near, 0, 0, 0, 1 - near, 0, 0, 0});

    // Scores 10 and -10 are capped to 1 and -1.
    OnnxFile capped = attending({1, 1, 1, 1}, {1, 1, 2, 1});
    capped.node("Attention", {"q", "k", "v"}, {"y"}, "a").set("softcap", 1.0F);
    capped.output("y");
    const double first = 1 / (1 + std::exp(-2 * std::tanh(10.0)));
    expectNear(computed(imported(capped), {{10}, {1, -1}, {1, 0}}), {first});
}

TEST(ImportOnnx, MeanCrossEntropyIsSumOverCount)
{
    OnnxFile file;
    file.input("scores", {3, 2}).input("labels", {3}, OnnxFile::kInt64);
    file.node("SoftmaxCrossEntropyLoss", {"scores", "labels"}, {"loss", "log"}, "/loss/L")
        .set("reduction", "mean")
        .set("ignore_index", -100);
    file.output("loss").output("log");
    const Graph graph = imported(file);
    EXPECT_EQ(kinds(graph),
        (std::vector<std::string>{"LogSoftmax", "ClassStatistics", "ClassLoss", "CountValid", "Div"}));
    const Operator *statistics = findKind(graph, OperatorKind::ClassStatistics);
    const Operator *entropy = findKind(graph, OperatorKind::ClassLoss);
    EXPECT_EQ(statistics->name, entropy->name + ".statistics"); // rows about the loss still find it
    EXPECT_EQ(statistics->attributes.integer("ignore_index"), -100);
    EXPECT_EQ(toString(statistics->annotation), "n c+, n -> log-sum-exp: n, n");
    EXPECT_EQ(graph.loss, graph.outputs[0]);
    EXPECT_EQ(findKind(graph, OperatorKind::Div)->name, "loss.L");
    EXPECT_EQ(findKind(graph, OperatorKind::CountValid)->attributes.integer("ignore_index"), -100);
    const double high = std::log(1 + std::exp(-1.0));
    const double low = std::log(1 + std::exp(1.0));
    expectNear(computed(graph, {{1, 0, 0, 1, 5, 5}, {0, 0, -100}}), {(high + low) / 2});
    expectNear(computed(graph, {{1, 0, 0, 1, 5, 5}, {0, 0, -100}}, 1),
        {-high, -low, -low, -high, -std::log(2.0), -std::log(2.0)});
}

TEST(ImportOnnx, ClassWeightsEnterSumAndCount)
{
    OnnxFile file;
    file.input("scores", {2, 2}).input("labels", {2}, OnnxFile::kInt64).weight("w", {2}, {1, 3});
    file.node("LogSoftmax", {"scores"}, {"p"}, "p").set("axis", 1);
    file.node("NegativeLogLikelihoodLoss", {"p", "labels", "w"}, {"loss"}, "n");
    file.output("loss");
    const double high = std::log(1 + std::exp(-1.0));
    expectNear(computed(imported(file), {{1, 0, 0, 1}, {0, 1}}), {(high + 3 * high) / 4});
}

TEST(ImportOnnx, BatchNormalizationTrainsByModeOrByItsOutputs)
{
    for (const std::int64_t opset : {9, 14}) {
        for (const bool training : {false, true}) {
            OnnxFile file(opset);
            file.input("x", {2, 1, 1})
                .weight("s", {1}, {2})
                .weight("b", {1}, {1})
                .weight("m", {1}, {10})
                .weight("v", {1}, {4});
            std::vector<std::string> outputs{"y"};
            if (training)
                outputs.insert(outputs.end(), {"rm", "rv"});
            auto node = file.node("BatchNormalization", {"x", "s", "b", "m", "v"}, outputs, "bn")
                            .set("epsilon", 0.0F)
                            .set("momentum", 0.75F);
            if (opset == 14)
                node.set("training_mode", training ? 1 : 0);
            file.output("y");
            if (training)
                file.output("rm").output("rv");
            const Graph graph = imported(file);
            if (!training) {
                EXPECT_EQ(kinds(graph), std::vector<std::string>{"BatchNormalize"});
                EXPECT_EQ(findTensor(graph, "m")->role, TensorRole::Buffer);
                EXPECT_EQ(findTensor(graph, "s")->role, TensorRole::Weight);
                expectNear(computed(graph, {{10, 14}}), {1, 5});
                continue;
            }
            EXPECT_EQ(findKind(graph, OperatorKind::BatchMean)->attributes.integer("count"), 2);
            expectNear(computed(graph, {{4, 8}}), {-1, 3});
            expectNear(computed(graph, {{4, 8}}, 1), {0.75 * 10 + 0.25 * 6});
            expectNear(computed(graph, {{4, 8}}, 2), {0.75 * 4 + 0.25 * 4});
        }
    }
}

TEST(ImportOnnx, DropoutStaysOnlyWhereItTrains)
{
    const auto file = [](bool training, float ratio) {
        OnnxFile file;
        file.input("x", {4});
        file.node("Constant", {}, {"r"}).set("value", OnnxFile::floats("", {}, {ratio}));
        onnx::TensorProto mode;
        mode.set_data_type(OnnxFile::kBool);
        mode.add_int32_data(training ? 1 : 0);
        file.node("Constant", {}, {"t"}).set("value", mode);
        file.node("Dropout", {"x", "r", "t"}, {"a", "unused"}, "d0");
        file.node("Dropout", {"a", "r", "t"}, {"b"}, "d1");
        file.node("Relu", {"b"}, {"y"}, "relu");
        file.output("y");
        return file;
    };
    EXPECT_EQ(kinds(imported(file(false, 0.5F))), std::vector<std::string>{"Relu"});
    EXPECT_EQ(kinds(imported(file(true, 0.0F))), std::vector<std::string>{"Relu"});
    const Graph graph = imported(file(true, 0.25F));
    ASSERT_EQ(kinds(graph), (std::vector<std::string>{"Dropout", "Dropout", "Relu"}));
    EXPECT_EQ(graph.operators[0].attributes.real("ratio"), 0.25);
    EXPECT_NE(graph.operators[0].attributes.integer("seed"), graph.operators[1].attributes.integer("seed"));
    ImportOptions options = unfused();
    options.dropoutRatio = 0.5;
    EXPECT_EQ(imported(file(true, 0.0F), options).operators[0].attributes.real("ratio"), 0.5);
    EXPECT_EQ(kinds(imported(file(false, 0.5F), options)), std::vector<std::string>{"Relu"});
}

TEST(ImportOnnx, FoldsShapeArithmetic)
{
    OnnxFile file(13);
    file.input("x", {2, 6, 4});
    file.node("Shape", {"x"}, {"shape"});
    file.node("Constant", {}, {"zero"}).set("value", OnnxFile::integers("", {}, {0}));
    file.node("Constant", {}, {"two"}).set("value", OnnxFile::integers("", {}, {2}));
    file.node("Gather", {"shape", "zero"}, {"batch"}).set("axis", 0);
    file.node("Constant", {}, {"last"}).set("value", OnnxFile::integers("", {}, {-1}));
    file.node("Gather", {"shape", "last"}, {"width"}).set("axis", 0);
    file.node("Mul", {"width", "two"}, {"doubled"});
    file.list("axes", {0}).list("free", {-1});
    file.node("Unsqueeze", {"batch", "axes"}, {"b1"});
    file.node("Unsqueeze", {"doubled", "axes"}, {"d1"});
    file.node("Concat", {"b1", "free", "d1"}, {"target"}).set("axis", 0);
    file.node("Reshape", {"x", "target"}, {"r"}, "reshape");
    file.node("Relu", {"r"}, {"y"}, "relu");
    file.output("y");
    const Graph graph = imported(file);
    ASSERT_EQ(kinds(graph), (std::vector<std::string>{"Reshape", "Relu"}));
    EXPECT_EQ(graph.at(graph.outputs[0]).type.shape, (Shape{2, 3, 8}));
    EXPECT_EQ(graph.operators[0].inputs.size(), 1U);
    EXPECT_EQ(graph.tensors.size(), 3U);
}

TEST(ImportOnnx, ReadsListsFromAttributesBeforeAndFromInputsSinceTheirOpset)
{
    OnnxFile old(9);
    old.input("x", {4, 3});
    old.node("Slice", {"x"}, {"s"})
        .set("starts", Integers{1})
        .set("ends", Integers{-1})
        .set("axes", Integers{0});
    old.node("Unsqueeze", {"s"}, {"u"}).set("axes", Integers{0});
    old.node("Squeeze", {"u"}, {"q"}).set("axes", Integers{0});
    old.node("Pad", {"q"}, {"p"}).set("pads", Integers{0, 1, 0, 0}).set("value", 9.0F);
    old.node("ReduceSum", {"p"}, {"t"}).set("axes", Integers{-1}).set("keepdims", 0);
    old.node("Clip", {"t"}, {"y"}).set("max", 22.0F);
    old.output("y");
    OnnxFile recent(13);
    recent.input("x", {4, 3})
        .list("one", {1})
        .list("end", {-1})
        .list("zero", {0})
        .list("pads", {0, 1, 0, 0})
        .list("axis", {-1});
    recent.weight("nine", {}, {9}).weight("cap", {}, {22});
    recent.node("Slice", {"x", "one", "end", "zero"}, {"s"});
    recent.node("Unsqueeze", {"s", "zero"}, {"u"});
    recent.node("Squeeze", {"u", "zero"}, {"q"});
    recent.node("Pad", {"q", "pads", "nine"}, {"p"});
    recent.node("ReduceSum", {"p", "axis"}, {"t"}).set("keepdims", 0);
    recent.node("Clip", {"t", "", "cap"}, {"y"});
    recent.output("y");
    for (const OnnxFile *file : {&old, &recent}) {
        const Graph graph = imported(*file);
        EXPECT_EQ(kinds(graph),
            (std::vector<std::string>{"Slice", "Reshape", "Reshape", "Pad", "ReduceSum", "Clip"}));
        expectNear(computed(graph, {{0, 0, 0, 1, 2, 3, 4, 5, 6, 0, 0, 0}}), {15, 22});
    }
}

TEST(ImportOnnx, SlicesBackwardsAndClamps)
{
    OnnxFile file;
    file.input("x", {5}).list("start", {-1}).list("end", {-100}).list("axis", {0}).list("step", {-2});
    file.node("Slice", {"x", "start", "end", "axis", "step"}, {"y"}, "s");
    file.output("y");
    expectNear(computed(imported(file), {{0, 1, 2, 3, 4}}), {4, 2, 0});
}

TEST(ImportOnnx, ResolvesPaddingByName)
{
    for (const char *pad : {"SAME_UPPER", "SAME_LOWER"}) {
        OnnxFile file;
        file.input("x", {1, 1, 4}).weight("w", {1, 1, 2}, {1, 10});
        file.node("Conv", {"x", "w"}, {"y"}, "c").set("auto_pad", pad);
        file.output("y");
        const bool upper = std::string(pad) == "SAME_UPPER";
        const Graph graph = imported(file);
        EXPECT_EQ(
            graph.operators[0].attributes.integers("pads"), upper ? (Integers{0, 1}) : (Integers{1, 0}));
        expectNear(computed(graph, {{1, 2, 3, 4}}), upper ? Reals{21, 32, 43, 4} : Reals{10, 21, 32, 43});
    }
}

TEST(ImportOnnx, ConvTransposeReachesTheOutputShape)
{
    OnnxFile file;
    file.input("x", {1, 1, 3}).weight("w", {1, 1, 3}, {1, 1, 1});
    file.node("ConvTranspose", {"x", "w"}, {"y"}, "c")
        .set("strides", Integers{2})
        .set("output_shape", Integers{6});
    file.output("y");
    const Graph graph = imported(file);
    EXPECT_EQ(graph.at(graph.outputs[0]).type.shape, (Shape{1, 1, 6}));
}

TEST(ImportOnnx, EinsumGetsAnExplicitEquationWithoutEllipsis)
{
    OnnxFile file;
    file.input("a", {2, 5, 3, 4}).input("b", {2, 5, 4, 3});
    file.node("Einsum", {"a", "b"}, {"c"}, "e").set("equation", "... i j, ...jk -> ...ik");
    file.node("Einsum", {"c"}, {"y"}, "f").set("equation", "abij");
    file.output("y");
    const Graph graph = imported(file);
    EXPECT_EQ(graph.operators[0].attributes.text("equation"), "ABij,ABjk->ABik");
    EXPECT_EQ(graph.operators[1].attributes.text("equation"), "abij->abij");
}

TEST(ImportOnnx, ReductionsKnowTheirAxesAndCount)
{
    OnnxFile file(13);
    file.input("x", {2, 3, 4, 5});
    file.node("ReduceMean", {"x"}, {"a"}, "r").set("axes", Integers{-1, 1}).set("keepdims", 1);
    file.node("GlobalAveragePool", {"a"}, {"b"}, "g");
    file.node("ReduceMax", {"b"}, {"y"}, "m").set("keepdims", 0);
    file.output("y");
    const Graph graph = imported(file);
    EXPECT_EQ(graph.operators[0].attributes.integers("axes"), (Integers{1, 3}));
    EXPECT_EQ(graph.operators[0].attributes.integer("count"), 15);
    EXPECT_EQ(graph.operators[1].kind, OperatorKind::ReduceMean);
    EXPECT_EQ(graph.operators[1].attributes.integer("count"), 4);
    EXPECT_EQ(graph.operators[2].attributes.integers("axes"), (Integers{0, 1, 2, 3}));
    EXPECT_TRUE(graph.at(graph.outputs[0]).type.shape.empty());
}

TEST(ImportOnnx, NormalisationsWithUnusualScalesAreTakenApart)
{
    OnnxFile file;
    file.input("x", {1, 4}).weight("s", {1}, {2}).weight("b", {4}, {1, 1, 1, 1});
    file.node("LayerNormalization", {"x", "s", "b"}, {"y", "mean", "inverse"}, "ln").set("epsilon", 0.0F);
    file.output("y").output("mean").output("inverse");
    const Graph graph = imported(file);
    expectNear(computed(graph, {{-1, 1, -1, 1}}), {-1, 3, -1, 3});
    expectNear(computed(graph, {{3, 5, 3, 5}}, 1), {4});
    expectNear(computed(graph, {{0, 4, 0, 4}}, 2), {0.5});

    OnnxFile group(18);
    group.input("x", {1, 4, 1}).weight("s", {2}, {1, 10}).weight("b", {2}, {0, 5});
    group.node("GroupNormalization", {"x", "s", "b"}, {"y"}, "gn").set("num_groups", 2).set("epsilon", 0.0F);
    group.output("y");
    expectNear(computed(imported(group), {{1, 3, 4, 8}}), {-1, 1, -5, 15});
}

TEST(ImportOnnx, ConstantsAreBuffersAndInitializersWeights)
{
    OnnxFile file;
    file.input("x", {2, 3})
        .weight("p", {3})
        .weight("h.attn_mask", {2, 3})
        .weight("two", {}, {2})
        .list("i", {0, 1, 1});
    file.node("Constant", {}, {"c"}).set("value", OnnxFile::floats("", {3}, {1, 2, 3}));
    file.node("Mul", {"x", "p"}, {"a"});
    file.node("Add", {"a", "h.attn_mask"}, {"b"});
    file.node("Pow", {"b", "two"}, {"d"});
    file.node("Add", {"d", "c"}, {"e"});
    file.node("Gather", {"e", "i"}, {"y"}).set("axis", 1);
    file.output("y");
    const Graph graph = imported(file);
    EXPECT_EQ(findTensor(graph, "p")->role, TensorRole::Weight);
    for (const char *name : {"h.attn_mask", "two", "c", "i"})
        EXPECT_EQ(findTensor(graph, name)->role, TensorRole::Buffer) << name;
}

TEST(ImportOnnx, OperatorsOnWeightsAreNotFolded)
{
    OnnxFile file;
    file.input("x", {1, 2}).weight("w", {3, 2});
    file.node("Transpose", {"w"}, {"t"}, "t").set("perm", Integers{1, 0});
    file.node("MatMul", {"x", "t"}, {"y"}, "m");
    file.output("y");
    EXPECT_EQ(kinds(imported(file)), (std::vector<std::string>{"Transpose", "MatMul"}));
}

TEST(ImportOnnx, LargeConstantsWhereWeightsStandAreWeights)
{
    OnnxFile file(9);
    file.input("x", {1, 8, 4, 4}).list("shape", {8, 8, 1, 1});
    file.node("ConstantOfShape", {"shape"}, {"w"}).set("value", OnnxFile::floats("", {1}, {0.5F}));
    file.node("Conv", {"x", "w"}, {"c"}, "c");
    file.node("ConstantOfShape", {"shape"}, {"k"}).set("value", OnnxFile::floats("", {1}, {0.5F}));
    file.node("Add", {"w2", "k"}, {"y"});
    file.node("Reshape", {"c", "r"}, {"w2"});
    file.list("r", {8, 8, 2, 1});
    file.output("y");
    const Graph graph = imported(file);
    EXPECT_EQ(findTensor(graph, "w")->role, TensorRole::Weight);
    EXPECT_EQ(findTensor(graph, "k")->role, TensorRole::Buffer);
    EXPECT_EQ(findTensor(graph, "w")->data, findTensor(graph, "k")->data) << "equal fills share their memory";
}

TEST(ImportOnnx, InputsThatAreInitializersTooAreWeights)
{
    OnnxFile file(9);
    file.input("x", {1, 2}).input("w", {2, 3}).weight("w", {2, 3});
    file.node("MatMul", {"x", "w"}, {"y"}, "m");
    file.output("y");
    const Graph graph = imported(file);
    EXPECT_EQ(graph.inputs.size(), 1U);
    EXPECT_EQ(findTensor(graph, "w")->role, TensorRole::Weight);
}

TEST(ImportOnnx, ParametersLeftOutOfTheFileAreFoundAmongItsInputs)
{
    OnnxFile file;
    file.input("ids", {2, 4}, OnnxFile::kInt64)
        .input("wte.weight", {10, 3})
        .input("mask.bias", {4}, OnnxFile::kInt64);
    file.input("proj", {3, 5}).input("scale", {2, 4, 5});
    file.node("Add", {"ids", "mask.bias"}, {"i"});
    file.node("Gather", {"wte.weight", "i"}, {"e"});
    file.node("MatMul", {"e", "proj"}, {"p"});
    file.node("Mul", {"p", "scale"}, {"y"});
    file.output("y");
    const Graph graph = imported(file);
    ASSERT_EQ(graph.inputs.size(), 2U);
    EXPECT_EQ(graph.at(graph.inputs[1]).name, "scale");
    EXPECT_EQ(findTensor(graph, "wte.weight")->role, TensorRole::Weight);
    EXPECT_EQ(findTensor(graph, "proj")->role, TensorRole::Weight);
    EXPECT_EQ(findTensor(graph, "mask.bias")->role, TensorRole::Buffer);
    ASSERT_FALSE(graph.notes.empty());
    EXPECT_NE(graph.notes.front().find("3 inputs"), std::string::npos);
}

TEST(ImportOnnx, SymbolicDimensionsTakeTheSizesGiven)
{
    OnnxFile file;
    file.input("x", {1, -1, 3});
    file.graph()
        .mutable_input(0)
        ->mutable_type()
        ->mutable_tensor_type()
        ->mutable_shape()
        ->mutable_dim(0)
        ->set_dim_param("batch");
    file.node("Relu", {"x"}, {"y"});
    file.output("y");
    const auto missing = importOnnxBytes(file.bytes(), {});
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().message,
        "the file leaves 2 sizes of its inputs open: 'batch' (x.0, 1 and more); 'x.1' (x.1, 1 and more)");
    EXPECT_EQ(missing.error().advice, "give a size to each, as in --dim batch=8 --dim x.1=128");
    const auto open = onnxDimensions(file.bytes(), {});
    ASSERT_TRUE(open) << describe(open.error());
    ASSERT_EQ(open->size(), 2U);
    EXPECT_EQ(open->front(),
        (InputDimension{.name = "batch", .suggested = 8, .places = {"x.0"}, .aliases = {"x.0"}}));
    ImportOptions options = unfused();
    options.dimensions = {{"batch", 4}, {"x.1", 7}};
    const Graph graph = imported(file, options);
    EXPECT_EQ(graph.tensors[0].type.shape, (Shape{4, 7, 3}));
    ASSERT_EQ(graph.dimensions.size(), 2U);
    EXPECT_EQ(graph.dimensions[0].size, 4);
    EXPECT_EQ(graph.dimensions[1].size, 7);
    options.dimensions["x.0"] = 5;
    const auto twice = importOnnxBytes(file.bytes(), {}, options);
    ASSERT_FALSE(twice);
    EXPECT_NE(twice.error().message.find("which has two sizes: 4 and 5"), std::string::npos);
    options.dimensions.erase("x.0");
    options.dimensions["heads"] = 2;
    const auto unknown = importOnnxBytes(file.bytes(), {}, options);
    ASSERT_FALSE(unknown);
    EXPECT_NE(unknown.error().message.find("'heads'"), std::string::npos);
    options.dimensions = {{"batch", 0}, {"x.1", 7}};
    EXPECT_FALSE(importOnnxBytes(file.bytes(), {}, options));
}

TEST(ImportOnnx, TheLossIsTheOutputNamedOrCalledLoss)
{
    OnnxFile file;
    file.input("x", {4});
    file.node("ReduceSum", {"x"}, {"loss"}).set("keepdims", 0);
    file.node("ReduceMean", {"x"}, {"other"}).set("keepdims", 0);
    file.node("Relu", {"x"}, {"wide"});
    file.output("wide").output("loss").output("other");
    EXPECT_EQ(imported(file).loss, imported(file).outputs[1]);
    ImportOptions options = unfused();
    options.lossOutput = "other";
    const Graph graph = imported(file, options);
    EXPECT_EQ(graph.at(graph.loss).name, "other");
    options.lossOutput = "wide";
    EXPECT_EQ(importOnnxBytes(file.bytes(), {}, options).error().code, ErrorCode::InvalidInput);
    options.lossOutput = "absent";
    EXPECT_EQ(importOnnxBytes(file.bytes(), {}, options).error().code, ErrorCode::NotFound);
}

TEST(ImportOnnx, OutputsThatAreInputsOrConstantsGetAnOperator)
{
    OnnxFile file;
    file.input("x", {2});
    file.node("Identity", {"x"}, {"same"});
    file.node("Constant", {}, {"c"}).set("value", OnnxFile::floats("", {1}, {3}));
    file.node("Relu", {"x"}, {"r"});
    file.node("Identity", {"r"}, {"copy"});
    file.output("same").output("c").output("r").output("copy");
    const Graph graph = imported(file);
    ASSERT_EQ(graph.outputs.size(), 4U);
    const char *names[] = {"same", "c", "r", "copy"};
    for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(graph.at(graph.outputs[i]).name, names[i]);
        EXPECT_EQ(graph.at(graph.outputs[i]).role, TensorRole::Activation);
    }
    expectNear(computed(graph, {{-1, 2}}, 0), {-1, 2});
    expectNear(computed(graph, {{-1, 2}}, 1), {3});
    expectNear(computed(graph, {{-1, 2}}, 3), {0, 2});
}

TEST(ImportOnnx, DeadOperatorsAndUnusedTensorsGo)
{
    OnnxFile file;
    file.input("x", {2}).input("unused", {1}).weight("w", {2}).weight("dead", {2});
    file.node("Add", {"x", "dead"}, {"d"});
    file.node("Add", {"x", "w"}, {"y"});
    file.output("y");
    const Graph graph = imported(file);
    EXPECT_EQ(graph.operators.size(), 1U);
    EXPECT_EQ(graph.inputs.size(), 2U) << "inputs stay, used or not";
    EXPECT_EQ(graph.tensors.size(), 4U);
}

/// One weight of queries, keys and values, as it is exported for grouped-query attention (one behind the
/// other) and for multi-query attention (heads, the last two of keys and values).
OnnxFile fusedHeads(bool multiQuery)
{
    OnnxFile file;
    file.input("x", {2, 3, 4}).weight("qkv.weight", {multiQuery ? 12 : 16, 4});
    file.node("Transpose", {"qkv.weight"}, {"w"}).set("perm", Integers{1, 0});
    file.node("MatMul", {"x", "w"}, {"y"}, "/qkv/MatMul");
    file.list("axis", {multiQuery ? 2 : -1});
    const auto slice = [&file](const std::string &name, std::int64_t begin, std::int64_t end) {
        file.list(name + ".begin", {begin}).list(name + ".end", {end});
        file.node("Slice", {name[0] == 'h' ? "heads" : "y", name + ".begin", name + ".end", "axis"}, {name});
    };
    if (multiQuery) {
        file.list("shape", {2, 3, 6, 2});
        file.node("Reshape", {"y", "shape"}, {"heads"});
        slice("h.queries", 0, -2);
        file.list("place.k", {-2});
        *file.graph().add_initializer() = OnnxFile::integers("place.v", {}, {-1});
        file.list("apart", {2, 3, 1, 2});
        file.node("Gather", {"heads", "place.k"}, {"keys"}).set("axis", 2);
        file.node("Gather", {"heads", "place.v"}, {"gathered"}).set("axis", 2);
        file.node("Reshape", {"gathered", "apart"}, {"values"});
        file.node("Mul", {"h.queries", "keys"}, {"both"});
        file.node("Add", {"both", "values"}, {"out"});
    } else {
        slice("queries", 0, 8);
        slice("keys", 8, 12);
        slice("values", 12, std::numeric_limits<std::int64_t>::max());
        file.node("Mul", {"keys", "values"}, {"both"});
        file.node("Concat", {"queries", "both"}, {"out"}).set("axis", 2);
    }
    return file.output("out");
}

TEST(ImportOnnx, FusedProjectionsOfUnequalPartsAreDivided)
{
    for (const bool multiQuery : {false, true}) {
        SCOPED_TRACE(multiQuery);
        const OnnxFile file = fusedHeads(multiQuery);
        const Graph whole = imported(file);
        const Graph divided = imported(file, {});
        const std::int64_t rows = multiQuery ? 12 : 16;
        const Tensor *queries = findTensor(divided, "qkv.weight.part.0");
        const Tensor *others = findTensor(divided, "qkv.weight.part.1");
        ASSERT_TRUE(queries && others);
        EXPECT_EQ(queries->type.shape, (Shape{8, 4}));
        EXPECT_EQ(others->type.shape, (Shape{2, (rows - 8) / 2, 4}));
        EXPECT_EQ(others->fileShape, (Shape{rows - 8, 4}));
        EXPECT_EQ(others->filePart, (FilePart{"qkv.weight", {rows, 4}, 0, 8}));
        Reals x;
        for (int i = 0; i < 24; ++i)
            x.push_back(0.1 * i - 1);
        expectNear(computed(divided, {x}), computed(whole, {x}));
    }
}

TEST(ImportOnnx, NodesInAnyOrderAreSorted)
{
    OnnxFile file;
    file.input("x", {2});
    file.node("Relu", {"b"}, {"y"}, "last");
    file.node("Neg", {"x"}, {"a"}, "first");
    file.node("Abs", {"a"}, {"b"}, "middle");
    file.output("y");
    EXPECT_EQ(kinds(imported(file)), (std::vector<std::string>{"Neg", "Abs", "Relu"}));
}

TEST(ImportOnnx, IfWithAKnownConditionIsItsBranch)
{
    for (const bool condition : {false, true}) {
        OnnxFile file;
        file.input("x", {2});
        onnx::TensorProto flag;
        flag.set_data_type(OnnxFile::kBool);
        flag.add_int32_data(condition ? 1 : 0);
        file.node("Constant", {}, {"c"}).set("value", flag);
        onnx::GraphProto then;
        OnnxFile::addNode(then, "Neg", {"x"}, {"t"}, "then");
        then.add_output()->set_name("t");
        onnx::GraphProto otherwise;
        OnnxFile::addNode(otherwise, "Abs", {"x"}, {"t"}, "else");
        otherwise.add_output()->set_name("t");
        file.node("If", {"c"}, {"r"}, "if").set("then_branch", then).set("else_branch", otherwise);
        file.node("Relu", {"r"}, {"y"}, "relu");
        file.output("y");
        EXPECT_EQ(kinds(imported(file)), (std::vector<std::string>{condition ? "Neg" : "Abs", "Relu"}));
    }
}

TEST(ImportOnnx, LoopsOfKnownLengthAreUnrolled)
{
    OnnxFile file;
    file.input("x", {2});
    *file.graph().add_initializer() = OnnxFile::integers("n", {}, {3});
    onnx::GraphProto body;
    for (const char *name : {"i", "go", "s"})
        body.add_input()->set_name(name);
    OnnxFile::addNode(body, "Identity", {"go"}, {"again"});
    OnnxFile::addNode(body, "Add", {"s", "x"}, {"next"}, "add");
    OnnxFile::addNode(body, "Identity", {"next"}, {"row"});
    for (const char *name : {"again", "next", "row"})
        body.add_output()->set_name(name);
    file.node("Loop", {"n", "", "x"}, {"sum", "rows"}, "loop").set("body", body);
    file.output("sum").output("rows");
    const Graph graph = imported(file);
    expectNear(computed(graph, {{1, 2}}), {4, 8});
    expectNear(computed(graph, {{1, 2}}, 1), {2, 4, 3, 6, 4, 8});
}

TEST(ImportOnnx, ValuesWithoutElementsAreComputedWith)
{
    OnnxFile product; // a sum over nothing
    product.input("x", {2, 3}).list("begin", {1}).list("axis", {1});
    product.node("Slice", {"x", "begin", "begin", "axis"}, {"none"});
    product.node("Transpose", {"none"}, {"turned"});
    product.node("MatMul", {"none", "turned"}, {"zeros"});
    product.list("rows", {0});
    product.node("Slice", {"x", "begin", "begin", "rows"}, {"no_rows"});
    product.node("Concat", {"x", "no_rows"}, {"same"}).set("axis", 0);
    product.node("ReduceSum", {"same", "axis"}, {"sums"}).set("keepdims", 1);
    product.node("Add", {"zeros", "sums"}, {"y"});
    product.output("y");
    expectNear(computed(imported(product), {{1, 2, 3, 4, 5, 6}}), {6, 6, 15, 15});

    OnnxFile scatter;
    scatter.input("x", {2, 3}).weight("updates", {0, 3}, {});
    *scatter.graph().add_initializer() = OnnxFile::integers("places", {0, 1}, {});
    scatter.node("ScatterND", {"x", "places", "updates"}, {"y"});
    scatter.output("y");
    expectNear(computed(imported(scatter), {{1, 2, 3, 4, 5, 6}}), {1, 2, 3, 4, 5, 6});
}

TEST(ImportOnnx, ScansAreUnrolledInEitherDirection)
{
    onnx::GraphProto body;
    for (const char *name : {"s", "x"})
        body.add_input()->set_name(name);
    OnnxFile::addNode(body, "Add", {"s", "x"}, {"next"}, "add");
    OnnxFile::addNode(body, "Identity", {"next"}, {"row"});
    for (const char *name : {"next", "row"})
        body.add_output()->set_name(name);
    for (const std::int64_t backward : {0, 1}) {
        OnnxFile file;
        file.input("s", {2}).input("x", {2, 3});
        file.node("Scan", {"s", "x"}, {"sum", "rows"}, "scan")
            .set("body", body)
            .set("num_scan_inputs", 1)
            .set("scan_input_axes", std::vector<std::int64_t>{1})
            .set("scan_input_directions", std::vector<std::int64_t>{backward})
            .set("scan_output_axes", std::vector<std::int64_t>{-1})
            .set("scan_output_directions", std::vector<std::int64_t>{1});
        file.output("sum").output("rows");
        const Graph graph = imported(file);
        const std::vector<double> start{10, 20};
        const std::vector<double> columns{1, 2, 3, 4, 5, 6};
        expectNear(computed(graph, {start, columns}), {16, 35});
        expectNear(computed(graph, {start, columns}, 1),
            backward != 0 ? std::vector<double>{16, 15, 13, 35, 31, 26}
                          : std::vector<double>{16, 13, 11, 35, 29, 24});
    }
    OnnxFile uneven;
    uneven.input("s", {2}).input("x", {3, 2}).input("z", {4, 2});
    uneven.node("Scan", {"s", "x", "z"}, {"sum"}, "scan").set("body", body).set("num_scan_inputs", 2);
    uneven.output("sum");
    const auto refused = importOnnxBytes(uneven.bytes(), {}, unfused());
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("3 and 4 long"), std::string::npos);
}

/// What depends on data, an operator of nobody, and what is made of them: (x, mask) -> (y, count).
OnnxFile fileWithObstacles()
{
    OnnxFile file;
    file.input("x", {2, 3}).input("mask", {6}, onnx::TensorProto_DataType_BOOL);
    file.weight("w.weight", {3, 4});
    file.node("MatMul", {"x", "w.weight"}, {"h"}, "product");
    file.node("Unique", {"mask"}, {"places"}, "places");
    file.node("Shape", {"places"}, {"shape"}, "size");
    file.node("Mystery", {"h"}, {"m"}, "mystery").proto->set_domain("some.vendor");
    file.node("Relu", {"m"}, {"y"}, "relu");
    file.output("y").output("shape");
    return file;
}

TEST(ImportOnnx, WhatCannotBeReadIsKeptToBeLookedAt)
{
    const std::string bytes = fileWithObstacles().bytes();
    ASSERT_FALSE(importOnnxBytes(bytes, {}));
    ImportOptions options;
    options.look = true;
    const auto graph = importOnnxBytes(bytes, {}, options);
    ASSERT_TRUE(graph) << describe(graph.error());
    std::vector<std::string> obstacles;
    for (const Obstacle &each : graph->obstacles) {
        obstacles.push_back(each.op);
        EXPECT_FALSE(each.message.empty());
        EXPECT_FALSE(each.advice.empty()) << each.message;
    }
    EXPECT_EQ(obstacles, (std::vector<std::string>{"places", "mystery"}))
        << "not what only follows from them";
    std::map<std::string, std::string> types;
    for (const Operator &op : graph->operators) {
        types[op.name] = op.kind == OperatorKind::Unknown ? op.attributes.text("onnx_type") : nameOf(op.kind);
        for (const TensorId id : op.outputs)
            EXPECT_EQ(graph->at(id).typeKnown, op.kind != OperatorKind::Unknown) << op.name;
    }
    EXPECT_EQ(types["mystery"], "Mystery");
    EXPECT_EQ(types["relu"], "Relu");
    EXPECT_EQ(types["size"], "Shape");
    EXPECT_EQ(types.size(), 5U);
    EXPECT_FALSE(graph->loss);
}

TEST(ImportOnnx, ResultsThatAreNotKnownBeforeARunAreLookedAt)
{
    OnnxFile file; // how many rows data choose
    file.input("mask", {6}, onnx::TensorProto_DataType_BOOL);
    file.node("NonZero", {"mask"}, {"places"}, "places");
    file.node("Shape", {"places"}, {"shape"}, "size");
    file.output("shape");
    ASSERT_FALSE(importOnnxBytes(file.bytes(), {}));
    ImportOptions options;
    options.look = true;
    const auto graph = importOnnxBytes(file.bytes(), {}, options);
    ASSERT_TRUE(graph) << describe(graph.error());
    ASSERT_EQ(graph->obstacles.size(), 1U);
    EXPECT_NE(graph->obstacles[0].message.find("how many rows data choose"), std::string::npos);
}

TEST(ImportOnnx, OperatorsItDoesNotKnowAreKeptWholeIfTheirTypesAreDeclared)
{
    OnnxFile file;
    file.input("x", {2, 3});
    file.node("Mystery", {"x"}, {"m"}, "mystery").proto->set_domain("some.vendor");
    file.node("Relu", {"m"}, {"y"});
    file.output("y");
    const auto refused = importOnnxBytes(file.bytes(), {}, unfused());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::NotSupported);
    OnnxFile::declare(*file.graph().add_value_info(), "m", OnnxFile::kFloat, {5});
    const Graph graph = imported(file);
    ASSERT_EQ(kinds(graph), (std::vector<std::string>{"Unknown", "Relu"}));
    EXPECT_EQ(graph.operators[0].attributes.text("onnx_type"), "some.vendor.Mystery");
    EXPECT_FALSE(graph.operators[0].annotationProblem.empty());
    EXPECT_FALSE(hasKernel(graph.operators[0]));
}

TEST(ImportOnnx, ValuesThatAreNotFiniteGiveANote)
{
    OnnxFile file;
    file.input("x", {2}).weight("w", {2}, {1, NAN});
    file.node("Mul", {"x", "w"}, {"y"});
    file.output("y");
    const Graph graph = imported(file);
    ASSERT_EQ(graph.notes.size(), 1U);
    EXPECT_NE(graph.notes[0].find("'w'"), std::string::npos);
}

TEST(ImportOnnx, LargeConstantsStayOperators)
{
    OnnxFile file;
    file.input("x", {1}).weight("one", {1}).list("shape", {1024, 1024, 1024});
    file.node("ConstantOfShape", {"shape"}, {"big"});
    file.node("Constant", {}, {"c"}).set("value", OnnxFile::floats("", {1, 1, 1}, {2}));
    file.node("Expand", {"c", "shape"}, {"wide"});
    file.node("Add", {"big", "wide"}, {"sum"});
    file.node("Mul", {"sum", "x"}, {"y"});
    file.output("y");
    EXPECT_EQ(kinds(imported(file)), (std::vector<std::string>{"Fill", "Expand", "Add", "Mul"}));
}

// --- constants folded by code of the importer equal what the kernels make of the same values as inputs
// -----------

TEST(ImportOnnx, FoldingEqualsComputing)
{
    struct Case {
        const char *type;
        std::vector<Reals> inputs;
        std::vector<Integers> shapes;
        std::vector<std::pair<std::string, std::int64_t>> integers{};
        std::vector<std::pair<std::string, Integers>> lists{};
    };
    const Case cases[] = {{"Add", {{1, 2, 3, 4}, {10, 20}}, {{2, 2}, {2}}},
        {"Sub", {{1, 2}, {3}}, {{2}, {1}}}, {"Mul", {{1, 2}, {3, 4}}, {{2, 1}, {2}}},
        {"Div", {{1, -2}, {4, 3}}, {{2}, {2}}}, {"Pow", {{1.5, 2}, {2, 3}}, {{2}, {2}}},
        {"Neg", {{1, -2}}, {{2}}}, {"Sqrt", {{4, 2}}, {{2}}}, {"Exp", {{0, 1}}, {{2}}},
        {"Tanh", {{0.5, -1}}, {{2}}}, {"Erf", {{0.5, -1}}, {{2}}}, {"Sigmoid", {{0.5, -1}}, {{2}}},
        {"Floor", {{0.5, -1.5}}, {{2}}}, {"Round", {{0.5, 1.5}}, {{2}}}, {"Sign", {{0, -3}}, {{2}}},
        {"Max", {{1, 5}, {3, 2}}, {{2}, {2}}}, {"Min", {{1, 5}, {3, 2}}, {{2}, {2}}},
        {"Transpose", {{1, 2, 3, 4, 5, 6}}, {{1, 2, 3}}, {}, {{"perm", {2, 0, 1}}}},
        {"Concat", {{1, 2, 3, 4}, {5, 6}}, {{2, 2}, {2, 1}}, {{"axis", 1}}},
        {"ReduceSum", {{1, 2, 3, 4}}, {{2, 2}}},
        {"ReduceMean", {{1, 2, 3, 4}}, {{2, 2}}, {}, {{"axes", {0}}}},
        {"ReduceMax", {{1, 2, 3, 4}}, {{2, 2}}, {{"keepdims", 0}}, {{"axes", {1}}}},
        {"ReduceMin", {{1, 2, 3, 4}}, {{2, 2}}, {}, {{"axes", {1}}}},
        {"ReduceProd", {{1, 2, 3, 4}}, {{2, 2}}, {}, {{"axes", {0}}}},
        {"Trilu", {{1, 2, 3, 4, 5, 6}}, {{2, 3}}, {{"upper", 0}}},
        {"Softmax", {{1, 2, 3, 4}}, {{2, 2}}, {{"axis", 0}}}};
    for (const Case &test : cases) {
        SCOPED_TRACE(test.type);
        std::vector<Reals> results;
        for (const bool constant : {false, true}) {
            OnnxFile file;
            std::vector<std::string> names;
            for (std::size_t i = 0; i < test.inputs.size(); ++i) {
                names.push_back("v" + std::to_string(i));
                if (constant)
                    file.node("Constant", {}, {names.back()})
                        .set("value",
                            OnnxFile::floats(
                                "", test.shapes[i], {test.inputs[i].begin(), test.inputs[i].end()}));
                else
                    file.input(names.back(), test.shapes[i]);
            }
            auto node = file.node(test.type, names, {"y"}, "n");
            for (const auto &[name, value] : test.integers)
                node.set(name, value);
            for (const auto &[name, value] : test.lists)
                node.set(name, value);
            file.output("y");
            const Graph graph = imported(file);
            ASSERT_EQ(graph.operators.size(), 1U);
            EXPECT_EQ(graph.operators[0].kind == OperatorKind::Identity, constant);
            results.push_back(computed(graph, constant ? std::vector<Reals>{} : test.inputs));
        }
        expectNear(results[1], results[0], 1e-6);
    }
}

} // namespace
} // namespace planloom
