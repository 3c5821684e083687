// What single nodes of the file compute once they are canonical operators, against values worked out by hand.

#include "engine/frontend/onnx/import_onnx.h"

#include "tests/engine/frontend/onnx_file.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <cmath>

namespace planloom {
namespace {

using testing_support::GraphRunner;
using testing_support::OnnxFile;
using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;

/// Imports, runs on `inputs` and compares output `index`.
void expectValues(const OnnxFile &file, const std::vector<Reals> &inputs, const Reals &expected,
    const Shape &shape, std::size_t index = 0)
{
    ImportOptions options;
    options.fuse = false;
    auto graph = importOnnxBytes(file.bytes(), {}, options);
    ASSERT_TRUE(graph) << describe(graph.error());
    ASSERT_EQ(graph->inputs.size(), inputs.size());
    GraphRunner runner(*graph);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        for (std::size_t k = 0; k < inputs[i].size(); ++k)
            runner.set(graph->inputs[i], static_cast<std::int64_t>(k), inputs[i][k]);
    }
    ASSERT_TRUE(runner.run());
    EXPECT_EQ(graph->at(graph->outputs[index]).type.shape, shape);
    const Reals actual = runner.all(graph->outputs[index]);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < actual.size(); ++i)
        EXPECT_NEAR(actual[i], expected[i], 1e-5) << "element " << i;
}

TEST(ImportOperators, ResizeAndUpsampleByScalesAndSizes)
{
    OnnxFile upsample(9);
    upsample.input("x", {1, 1, 1, 2}).weight("s", {4}, {1, 1, 2, 2});
    upsample.node("Upsample", {"x", "s"}, {"y"}).set("mode", "nearest");
    upsample.output("y");
    expectValues(upsample, {{1, 2}}, {1, 1, 2, 2, 1, 1, 2, 2}, {1, 1, 2, 4});

    OnnxFile attribute(7); // scales as an attribute
    attribute.input("x", {1, 1, 1, 2});
    auto node = attribute.node("Upsample", {"x"}, {"y"}).set("mode", "nearest");
    auto *scales = node.proto->add_attribute();
    scales->set_name("scales");
    scales->set_type(onnx::AttributeProto::FLOATS);
    for (const float scale : {1.0F, 1.0F, 1.0F, 2.0F})
        scales->add_floats(scale);
    attribute.output("y");
    expectValues(attribute, {{1, 2}}, {1, 1, 2, 2}, {1, 1, 1, 4});

    OnnxFile sizes(13); // half-pixel coordinates by default
    sizes.input("x", {1, 1, 1, 2}).list("size", {1, 1, 1, 4});
    sizes.node("Resize", {"x", "", "", "size"}, {"y"}).set("mode", "linear");
    sizes.output("y");
    expectValues(sizes, {{0, 4}}, {0, 1, 3, 4}, {1, 1, 1, 4});
}

TEST(ImportOperators, ReductionsOverNoAxesDoWhatTheyDoToEachElement)
{
    const std::vector<std::pair<const char *, Reals>> expected{{"ReduceSum", {-2, 3}},
        {"ReduceMean", {-2, 3}}, {"ReduceMax", {-2, 3}}, {"ReduceMin", {-2, 3}}, {"ReduceProd", {-2, 3}},
        {"ReduceL1", {2, 3}}, {"ReduceL2", {2, 3}}, {"ReduceSumSquare", {4, 9}},
        {"ReduceLogSumExp", {-2, 3}}};
    for (const auto &[type, values] : expected) {
        SCOPED_TRACE(type);
        OnnxFile file(18);
        file.input("x", {2});
        file.node(type, {"x"}, {"y"}).set("noop_with_empty_axes", 1);
        file.output("y");
        expectValues(file, {{-2, 3}}, values, {2});
    }
    OnnxFile logs(18);
    logs.input("x", {2});
    logs.node("ReduceLogSum", {"x"}, {"y"}).set("noop_with_empty_axes", 1);
    logs.output("y");
    expectValues(logs, {{1, std::exp(2.0)}}, {0, 2}, {2});
}

TEST(ImportOperators, OneHotTopKCumSumTrilu)
{
    OnnxFile oneHot;
    oneHot.input("i", {2}, OnnxFile::kInt64).list("depth", {3}).weight("values", {2}, {-1, 5});
    oneHot.node("OneHot", {"i", "depth", "values"}, {"y"}).set("axis", 0);
    oneHot.output("y");
    expectValues(oneHot, {{2, 0}}, {-1, 5, -1, -1, 5, -1}, {3, 2});

    OnnxFile topK;
    topK.input("x", {2, 3}).list("k", {2});
    topK.node("TopK", {"x", "k"}, {"y", "i"}).set("axis", -1).set("largest", 0);
    topK.output("y").output("i");
    expectValues(topK, {{3, 1, 2, 0, 9, -1}}, {1, 2, -1, 0}, {2, 2});
    expectValues(topK, {{3, 1, 2, 0, 9, -1}}, {1, 2, 2, 0}, {2, 2}, 1);

    OnnxFile sums;
    sums.input("x", {2, 3}).list("axis", {-1});
    sums.node("CumSum", {"x", "axis"}, {"y"}).set("reverse", 1).set("exclusive", 1);
    sums.output("y");
    expectValues(sums, {{1, 2, 3, 4, 5, 6}}, {5, 3, 0, 11, 6, 0}, {2, 3});

    OnnxFile triangle;
    triangle.input("x", {2, 3}).list("k", {1});
    triangle.node("Trilu", {"x", "k"}, {"y"});
    triangle.output("y");
    expectValues(triangle, {{1, 2, 3, 4, 5, 6}}, {0, 2, 3, 0, 0, 6}, {2, 3});
}

TEST(ImportOperators, GatheringAndScattering)
{
    OnnxFile gather;
    gather.input("x", {2, 3}).list("i", {-1, 0});
    gather.node("Gather", {"x", "i"}, {"y"}).set("axis", 1);
    gather.output("y");
    expectValues(gather, {{1, 2, 3, 4, 5, 6}}, {3, 1, 6, 4}, {2, 2});

    OnnxFile elements;
    elements.input("x", {2, 2});
    *elements.graph().add_initializer() = OnnxFile::integers("i", {2, 2}, {0, 0, 1, -2});
    elements.node("GatherElements", {"x", "i"}, {"y"}).set("axis", -1);
    elements.output("y");
    expectValues(elements, {{1, 2, 3, 4}}, {1, 1, 4, 3}, {2, 2});

    OnnxFile nd;
    nd.input("x", {2, 2});
    *nd.graph().add_initializer() = OnnxFile::integers("i", {2, 2}, {1, 0, 0, 1});
    nd.node("GatherND", {"x", "i"}, {"y"});
    nd.output("y");
    expectValues(nd, {{1, 2, 3, 4}}, {3, 2}, {2});

    OnnxFile scatter(11);
    scatter.input("x", {3}).input("u", {2}).list("i", {2, 0});
    scatter.node("ScatterElements", {"x", "i", "u"}, {"y"}).set("axis", 0);
    scatter.output("y");
    expectValues(scatter, {{1, 2, 3}, {7, 8}}, {8, 2, 7}, {3});

    OnnxFile add(16);
    add.input("x", {3}).input("u", {2});
    *add.graph().add_initializer() = OnnxFile::integers("i", {2, 1}, {1, 1});
    add.node("ScatterND", {"x", "i", "u"}, {"y"}).set("reduction", "add");
    add.output("y");
    expectValues(add, {{1, 2, 3}, {7, 8}}, {1, 17, 3}, {3});

    OnnxFile compress;
    compress.input("x", {2, 3});
    onnx::TensorProto flags;
    flags.set_data_type(OnnxFile::kBool);
    flags.add_dims(3);
    for (const int flag : {1, 0, 1})
        flags.add_int32_data(flag);
    compress.node("Constant", {}, {"c"}).set("value", flags);
    compress.node("Compress", {"x", "c"}, {"y"}).set("axis", 1);
    compress.output("y");
    expectValues(compress, {{1, 2, 3, 4, 5, 6}}, {1, 3, 4, 6}, {2, 2});
}

TEST(ImportOperators, PartsOfADimension)
{
    OnnxFile equal(11);
    equal.input("x", {1, 4});
    equal.node("Split", {"x"}, {"a", "b"}).set("axis", -1);
    equal.node("Sub", {"b", "a"}, {"y"});
    equal.output("y");
    expectValues(equal, {{1, 2, 10, 20}}, {9, 18}, {1, 2});

    OnnxFile given(13);
    given.input("x", {4}).list("sizes", {1, 3});
    given.node("Split", {"x", "sizes"}, {"a", "y"});
    given.output("y");
    expectValues(given, {{1, 2, 3, 4}}, {2, 3, 4}, {3});

    OnnxFile uneven(18);
    uneven.input("x", {5});
    uneven.node("Split", {"x"}, {"a", "y"}).set("num_outputs", 2);
    uneven.output("y");
    expectValues(uneven, {{1, 2, 3, 4, 5}}, {4, 5}, {2});
}

TEST(ImportOperators, ReshapeCopiesInfersAndFlattens)
{
    OnnxFile file;
    file.input("x", {2, 3, 4}).list("s", {0, -1}).list("t", {-1});
    file.node("Reshape", {"x", "s"}, {"a"});
    file.node("Flatten", {"x"}, {"b"}).set("axis", -1);
    file.node("Reshape", {"x", "t"}, {"c"});
    file.output("a").output("b").output("c");
    Reals values;
    for (int i = 0; i < 24; ++i)
        values.push_back(i);
    expectValues(file, {values}, values, {2, 12}, 0);
    expectValues(file, {values}, values, {6, 4}, 1);
    expectValues(file, {values}, values, {24}, 2);
}

TEST(ImportOperators, ClipTakesBoundsFromAttributesConstantsAndValues)
{
    OnnxFile file;
    file.input("x", {3}).input("low", {}).weight("high", {}, {2});
    file.node("Clip", {"x", "low", "high"}, {"y"});
    file.output("y");
    expectValues(file, {{-5, 0, 5}, {-1}}, {-1, 0, 2}, {3});
    OnnxFile old(9);
    old.input("x", {3});
    old.node("Clip", {"x"}, {"y"}).set("min", -1.0F).set("max", 3.4028235e38F);
    old.output("y");
    expectValues(old, {{-5, 0, 5}}, {-1, 0, 5}, {3});
}

TEST(ImportOperators, ActivationsHaveOnnxsDefaults)
{
    const auto check = [](const char *type, const Reals &expected) {
        SCOPED_TRACE(type);
        OnnxFile file(18);
        file.input("x", {2});
        file.node(type, {"x"}, {"y"});
        file.output("y");
        expectValues(file, {{-2, 2}}, expected, {2});
    };
    check("Elu", {std::exp(-2.0) - 1, 2});
    check("Celu", {std::exp(-2.0) - 1, 2});
    check("LeakyRelu", {-0.02, 2});
    check("ThresholdedRelu", {0, 2});
    check("Selu", {1.0507009873554805 * 1.6732632423543772 * (std::exp(-2.0) - 1), 2 * 1.0507009873554805});
    check("HardSigmoid", {0.1, 0.9});
    check("HardSwish", {-2.0 / 6, 10.0 / 6});
    check("Softplus", {std::log1p(std::exp(-2.0)), std::log1p(std::exp(2.0))});
    check("Gelu", {-1 + std::erf(std::sqrt(2.0)), 1 + std::erf(std::sqrt(2.0))});
    check("Hardmax", {0, 1});
}

TEST(ImportOperators, PoolingWithPaddingAndCeiling)
{
    OnnxFile average;
    average.input("x", {1, 1, 4});
    average.node("AveragePool", {"x"}, {"y"}).set("kernel_shape", Integers{2}).set("auto_pad", "SAME_UPPER");
    average.output("y");
    expectValues(average, {{1, 2, 3, 5}}, {1.5, 2.5, 4, 5}, {1, 1, 4});
    OnnxFile largest;
    largest.input("x", {1, 1, 5});
    largest.node("MaxPool", {"x"}, {"y"})
        .set("kernel_shape", Integers{2})
        .set("strides", Integers{2})
        .set("ceil_mode", 1);
    largest.output("y");
    expectValues(largest, {{1, 2, 3, 5, 4}}, {2, 5, 4}, {1, 1, 3});
    OnnxFile global;
    global.input("x", {1, 2, 2});
    global.node("GlobalLpPool", {"x"}, {"y"}).set("p", 3);
    global.node("GlobalMaxPool", {"x"}, {"z"});
    global.output("y").output("z");
    expectValues(global, {{1, -2, 3, 4}}, {std::cbrt(9.0), std::cbrt(91.0)}, {1, 2, 1});
    expectValues(global, {{1, -2, 3, 4}}, {1, 4}, {1, 2, 1}, 1);
}

TEST(ImportOperators, NormalisationsOfOtherKinds)
{
    OnnxFile mvn;
    mvn.input("x", {2, 1, 1, 2});
    mvn.node("MeanVarianceNormalization", {"x"}, {"y"});
    mvn.output("y");
    expectValues(mvn, {{1, 3, 1, 3}}, {-1, 1, -1, 1}, {2, 1, 1, 2});
    OnnxFile lp;
    lp.input("x", {2, 2});
    lp.node("LpNormalization", {"x"}, {"y"}).set("p", 1);
    lp.output("y");
    expectValues(lp, {{1, 3, -2, 2}}, {0.25, 0.75, -0.5, 0.5}, {2, 2});
    OnnxFile instance;
    instance.input("x", {1, 2, 2}).weight("s", {2}, {1, 2}).weight("b", {2}, {0, 1});
    instance.node("InstanceNormalization", {"x", "s", "b"}, {"y"}).set("epsilon", 0.0F);
    instance.output("y");
    expectValues(instance, {{1, 3, 10, 30}}, {-1, 1, -1, 3}, {1, 2, 2});
    OnnxFile rms(23);
    rms.input("x", {1, 2}).weight("s", {2}, {1, 2});
    rms.node("RMSNormalization", {"x", "s"}, {"y"}).set("epsilon", 0.0F);
    rms.output("y");
    expectValues(rms, {{1, 7}}, {0.2, 2.8}, {1, 2});
}

TEST(ImportOperators, MovingBlocksAndSequences)
{
    OnnxFile blocks;
    blocks.input("x", {1, 4, 1, 1});
    blocks.node("DepthToSpace", {"x"}, {"d"}).set("blocksize", 2);
    blocks.node("SpaceToDepth", {"d"}, {"y"}).set("blocksize", 2);
    blocks.output("d").output("y");
    expectValues(blocks, {{1, 2, 3, 4}}, {1, 2, 3, 4}, {1, 1, 2, 2}, 0);
    expectValues(blocks, {{1, 2, 3, 4}}, {1, 2, 3, 4}, {1, 4, 1, 1}, 1);
    OnnxFile reverse;
    reverse.input("x", {3, 2}).list("lengths", {2, 3});
    reverse.node("ReverseSequence", {"x", "lengths"}, {"y"});
    reverse.output("y");
    expectValues(reverse, {{1, 2, 3, 4, 5, 6}}, {3, 6, 1, 4, 5, 2}, {3, 2});
}

TEST(ImportOperators, PowCastsItsExponentAndCastsChangeTypes)
{
    OnnxFile file;
    file.input("x", {2}).list("two", {2, 3});
    file.node("Pow", {"x", "two"}, {"p"});
    file.node("Cast", {"p"}, {"i"}).set("to", OnnxFile::kInt64);
    file.node("Cast", {"i"}, {"y"}).set("to", OnnxFile::kFloat);
    file.output("y");
    expectValues(file, {{1.5, 2}}, {2, 8}, {2});
}

TEST(ImportOperators, KnownRangesMasksAndPositionsFold)
{
    OnnxFile file;
    file.input("x", {2, 2});
    for (const auto &[name, value] : {std::pair("start", 1), std::pair("limit", 9), std::pair("delta", 2)})
        *file.graph().add_initializer() = OnnxFile::integers(name, {}, {value});
    file.node("Range", {"start", "limit", "delta"}, {"r"}); // 1 3 5 7
    file.list("shape", {2, 2}).list("five", {5});
    file.node("Reshape", {"r", "shape"}, {"m"});
    file.node("Less", {"m", "five"}, {"less"}); // 1 1 0 0
    file.node("NonZero", {"less"}, {"where"}); // rows 0 0, columns 0 1
    file.node("Cast", {"where"}, {"f"}).set("to", OnnxFile::kFloat);
    file.node("Mul", {"x", "f"}, {"y"});
    file.output("y");
    ImportOptions options;
    options.fuse = false;
    const auto graph = importOnnxBytes(file.bytes(), {}, options);
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_EQ(graph->operators.size(), 1U);
    expectValues(file, {{2, 3, 4, 5}}, {0, 0, 0, 5}, {2, 2});
}

TEST(ImportOperators, HalfPrecisionConstantsFoldWithTheirOwnRounding)
{
    // 1 + 2^-11 lies between two halves and rounds to even, 1; 65504 is the largest half.
    OnnxFile file;
    file.input("x", {3});
    onnx::TensorProto half;
    half.set_data_type(onnx::TensorProto::FLOAT16);
    half.add_dims(3);
    for (const int bits : {0x3c00, 0x7bff, 0x0001})
        half.add_int32_data(bits);
    onnx::TensorProto step;
    step.set_data_type(onnx::TensorProto::FLOAT16);
    step.add_int32_data(0x1000); // 2^-11
    file.node("Constant", {}, {"h"}).set("value", half);
    file.node("Constant", {}, {"s"}).set("value", step);
    file.node("Add", {"h", "s"}, {"sum"});
    file.node("Cast", {"sum"}, {"f"}).set("to", OnnxFile::kFloat);
    file.node("Add", {"x", "f"}, {"y"});
    file.output("y");
    expectValues(file, {{0, 0, 0}}, {1, 65504, std::ldexp(1.0, -24) + std::ldexp(1.0, -11)}, {3});
}

TEST(ImportOperators, RecurrentNetworksKeepTheirThreeOutputs)
{
    OnnxFile file;
    file.input("x", {2, 1, 1}).weight("w", {1, 1, 1}, {1}).weight("r", {1, 1, 1}, {0.5F});
    file.node("RNN", {"x", "w", "r"}, {"y", "h"}).set("hidden_size", 1);
    file.output("y").output("h");
    ImportOptions options;
    options.fuse = false;
    const auto graph = importOnnxBytes(file.bytes(), {}, options);
    ASSERT_TRUE(graph) << describe(graph.error());
    ASSERT_EQ(graph->operators.size(), 2U); // what the input's weights make of it can be split by itself
    EXPECT_EQ(graph->operators[0].kind, OperatorKind::Linear);
    EXPECT_EQ(graph->operators[1].kind, OperatorKind::Rnn);
    EXPECT_EQ(graph->at(graph->outputs[0]).type.shape, (Shape{2, 1, 1, 1}));
    EXPECT_EQ(graph->at(graph->outputs[1]).type.shape, (Shape{1, 1, 1}));
    if (hasKernel(graph->operators[0])) {
        const double first = std::tanh(1.0);
        expectValues(file, {{1, 2}}, {first, std::tanh(2 + 0.5 * first)}, {2, 1, 1, 1});
    }
}

/// A model with the function y = LeakyRelu(x, slope) + z of the domain "mine".
OnnxFile withFunction()
{
    OnnxFile file;
    auto *function = file.model.add_functions();
    function->set_name("Leaky");
    function->set_domain("mine");
    for (const char *name : {"a", "b"})
        function->add_input(name);
    function->add_output("r");
    auto *leak = function->add_node();
    leak->set_op_type("LeakyRelu");
    leak->add_input("a");
    leak->add_output("t");
    auto *slope = leak->add_attribute();
    slope->set_name("alpha");
    slope->set_type(onnx::AttributeProto::FLOAT);
    slope->set_ref_attr_name("slope");
    auto *sum = function->add_node();
    sum->set_op_type("Add");
    sum->add_input("t");
    sum->add_input("b");
    sum->add_output("r");
    return file;
}

TEST(ImportOperators, FunctionsOfTheFileAreReplacedByTheirNodes)
{
    OnnxFile file = withFunction();
    file.input("x", {2}).input("t", {2});
    file.node("Leaky", {"x", "t"}, {"u"}, "/m/call").set("slope", 0.5F).proto->set_domain("mine");
    file.node("Leaky", {"u", "x"}, {"y"}, "/m/again").proto->set_domain("mine");
    file.output("y");
    // u = (-1 + 3, 2 + 5); y = u + x
    expectValues(file, {{-2, 2}, {3, 5}}, {0, 9}, {2});
    ImportOptions options;
    options.fuse = false;
    const auto graph = importOnnxBytes(file.bytes(), {}, options);
    ASSERT_TRUE(graph) << describe(graph.error());
    ASSERT_EQ(graph->operators.size(), 5U); // the last gives the model's output its name
    EXPECT_EQ(graph->operators[4].kind, OperatorKind::Identity);
    EXPECT_EQ(graph->operators[0].name, "m.call.LeakyRelu");
    EXPECT_EQ(graph->operators[3].name, "m.again.Add");
}

TEST(ImportOperators, FunctionsThatCallThemselvesAreRefused)
{
    OnnxFile file = withFunction();
    auto *self = file.model.mutable_functions(0)->mutable_node(0);
    self->set_op_type("Leaky");
    self->set_domain("mine");
    self->add_input("b");
    file.input("x", {2});
    file.node("Leaky", {"x", "x"}, {"y"}, "call").proto->set_domain("mine");
    file.output("y");
    const auto graph = importOnnxBytes(file.bytes(), {});
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.error().code, ErrorCode::ResourceLimit);
}

} // namespace
} // namespace planloom
