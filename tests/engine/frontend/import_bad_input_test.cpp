// Damaged, contradictory and hostile models: an error that names the place, or a graph that is valid; never a
// crash.

#include "engine/frontend/onnx/import_onnx.h"

#include "tests/engine/frontend/onnx_file.h"
#include "tests/engine/frontend/operator_examples.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <stop_token>

namespace planloom {
namespace {

using testing_support::OnnxFile;
using Integers = std::vector<std::int64_t>;

/// The error a model is refused with; fails the test if it is not.
Error refusal(const std::string &bytes, const ImportOptions &options = {})
{
    const auto graph = importOnnxBytes(bytes, {}, options);
    EXPECT_FALSE(graph) << "was imported";
    if (graph)
        return {};
    EXPECT_FALSE(graph.error().message.empty());
    EXPECT_NE(graph.error().code, ErrorCode::Internal) << describe(graph.error());
    return graph.error();
}

Error refusal(const OnnxFile &file, const ImportOptions &options = {})
{
    return refusal(file.bytes(), options);
}

bool mentions(const Error &error, const std::string &text)
{
    const bool found = describe(error).find(text) != std::string::npos;
    EXPECT_TRUE(found) << "'" << text << "' is not in: " << describe(error);
    return found;
}

/// A small model with most kinds of content: weights, lists, constants, an inner graph.
OnnxFile sample()
{
    OnnxFile file;
    file.input("x", {2, 4, 6}).weight("w", {6, 6}).weight("b", {6}).list("shape", {8, -1}).list("axes", {1});
    file.node("MatMul", {"x", "w"}, {"m"}, "/h.0/fc/MatMul");
    file.node("Add", {"m", "b"}, {"a"}, "/h.0/fc/Add");
    file.node("Softmax", {"a"}, {"s"}, "/h.0/Softmax").set("axis", -1);
    file.node("Reshape", {"s", "shape"}, {"r"}, "/h.0/Reshape");
    file.node("Gemm", {"r", "w", "b"}, {"g"}, "/h.0/Gemm").set("transB", 1).set("alpha", 0.5F);
    onnx::TensorProto flag;
    flag.set_data_type(OnnxFile::kBool);
    flag.add_int32_data(1);
    file.node("Constant", {}, {"c"}).set("value", flag);
    onnx::GraphProto branch;
    OnnxFile::addNode(branch, "Relu", {"g"}, {"t"}, "relu");
    branch.add_output()->set_name("t");
    file.node("If", {"c"}, {"i"}, "if").set("then_branch", branch).set("else_branch", branch);
    file.node("ReduceMean", {"i"}, {"loss"}, "/loss/Mean").set("keepdims", 0);
    file.output("loss");
    return file;
}

TEST(ImportBadInput, TheSampleItselfIsFine)
{
    const auto graph = importOnnxBytes(sample().bytes(), {});
    ASSERT_TRUE(graph) << describe(graph.error());
    EXPECT_TRUE(graph->loss.valid());
}

TEST(ImportBadInput, FilesThatAreNoModels)
{
    mentions(refusal(""), "empty");
    mentions(refusal(std::string("this is a text, not a model")), "plain text");
    EXPECT_EQ(importOnnxBytes("# A heading\n", {}, {}, "README.md").error().where, "README.md");
    refusal(std::string(1000, '\0'));
    refusal(std::string(1000, '\xff'));
    mentions(refusal(onnx::ModelProto().SerializeAsString() + std::string("\x08\x07", 2)), "no ONNX graph");
    EXPECT_EQ(importOnnxFile("/nonexistent/model.onnx").error().code, ErrorCode::NotFound);
    EXPECT_EQ(importOnnxFile(std::filesystem::temp_directory_path()).error().code, ErrorCode::InvalidInput);
    ImportOptions small;
    small.mostFileBytes = 10;
    EXPECT_EQ(refusal(sample(), small).code, ErrorCode::ResourceLimit);
}

TEST(ImportBadInput, EveryTruncationIsRefusedOrValid)
{
    const std::string bytes = sample().bytes();
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        const auto graph = importOnnxBytes(std::string_view(bytes).substr(0, length), {});
        if (graph) {
            ASSERT_TRUE(validate(*graph)) << length;
        } else {
            ASSERT_NE(graph.error().code, ErrorCode::Internal) << length << " " << describe(graph.error());
        }
    }
    // Within the graph, the place of the cut is named.
    const Error cut = refusal(bytes.substr(0, bytes.size() / 2));
    EXPECT_EQ(cut.where, "model.onnx");
    mentions(cut, ", at byte ");
}

TEST(ImportBadInput, RandomDamageIsRefusedOrValid)
{
    const std::string bytes = sample().bytes();
    std::mt19937 random(5);
    for (int round = 0; round < 4000; ++round) {
        std::string damaged = bytes;
        const int changes = 1 + static_cast<int>(random() % 4);
        for (int i = 0; i < changes; ++i) {
            const std::size_t at = random() % damaged.size();
            switch (random() % 3) {
            case 0:
                damaged[at] = static_cast<char>(random());
                break;
            case 1:
                damaged[at] = static_cast<char>(damaged[at] ^ (1U << (random() % 8)));
                break;
            default:
                damaged.erase(at, 1 + random() % 3);
                break;
            }
        }
        ImportOptions options;
        options.mostFoldedBytes = 1 << 20;
        options.mostOperators = 10'000;
        const auto graph = importOnnxBytes(damaged, {}, options);
        if (graph) {
            ASSERT_TRUE(validate(*graph)) << round;
        } else {
            ASSERT_NE(graph.error().code, ErrorCode::Internal) << round << " " << describe(graph.error());
        }
    }
}

TEST(ImportBadInput, CirclesNameTheirNodes)
{
    OnnxFile file;
    file.input("x", {2});
    file.node("Add", {"x", "c"}, {"a"}, "first");
    file.node("Relu", {"a"}, {"b"}, "second");
    file.node("Neg", {"b"}, {"c"}, "third");
    file.node("Abs", {"c"}, {"y"}, "beside");
    file.output("y");
    const Error error = refusal(file);
    for (const char *name : {"'first'", "'second'", "'third'"})
        mentions(error, name);
    EXPECT_EQ(error.message.find("beside"), std::string::npos);

    OnnxFile self;
    self.input("x", {2});
    self.node("Add", {"x", "y"}, {"y"}, "own");
    self.output("y");
    mentions(refusal(self), "'own'");
}

TEST(ImportBadInput, NamesMadeTwiceOrNever)
{
    OnnxFile twice;
    twice.input("x", {2});
    twice.node("Relu", {"x"}, {"y"}, "n1");
    twice.node("Abs", {"x"}, {"y"}, "n2");
    twice.output("y");
    const Error error = refusal(twice);
    mentions(error, "'n1'");
    mentions(error, "'n2'");

    OnnxFile shadow;
    shadow.input("x", {2}).weight("w", {2});
    shadow.node("Relu", {"x"}, {"w"}, "n1");
    shadow.output("w");
    mentions(refusal(shadow), "'w'");

    OnnxFile stored;
    stored.input("x", {2}).weight("w", {2}).weight("w", {2});
    stored.node("Add", {"x", "w"}, {"y"});
    stored.output("y");
    mentions(refusal(stored), "'w'");

    OnnxFile inputs;
    inputs.input("x", {2}).input("x", {2});
    inputs.node("Relu", {"x"}, {"y"});
    inputs.output("y");
    mentions(refusal(inputs), "'x'");

    OnnxFile never;
    never.input("x", {2});
    never.node("Add", {"x", "nothing"}, {"y"}, "n1");
    never.output("y");
    mentions(refusal(never), "'nothing'");

    OnnxFile output;
    output.input("x", {2});
    output.node("Relu", {"x"}, {"y"});
    output.output("z");
    mentions(refusal(output), "'z'");

    OnnxFile attribute;
    attribute.input("x", {2});
    attribute.node("Softmax", {"x"}, {"y"}, "n1").set("axis", 0).set("axis", 0);
    attribute.output("y");
    mentions(refusal(attribute), "'axis'");
}

TEST(ImportBadInput, ShapesThatCannotBe)
{
    for (const Integers &shape : {Integers{-1, 2}, Integers{std::int64_t{1} << 40, std::int64_t{1} << 40}}) {
        OnnxFile file;
        auto *tensor = file.input("x", {2}).graph().add_initializer();
        tensor->set_name("w");
        tensor->set_data_type(OnnxFile::kFloat);
        for (const std::int64_t extent : shape)
            tensor->add_dims(extent);
        file.node("Add", {"x", "w"}, {"y"});
        file.output("y");
        mentions(refusal(file), "'w'");
    }
    OnnxFile huge;
    huge.input("x", {std::int64_t{1} << 40, std::int64_t{1} << 40});
    huge.node("Relu", {"x"}, {"y"});
    huge.output("y");
    mentions(refusal(huge), "'x'");
    OnnxFile zero;
    zero.input("x", {0, 2});
    zero.node("Relu", {"x"}, {"y"});
    zero.output("y");
    mentions(refusal(zero), "'x.0'");
    OnnxFile product;
    product.input("x", {1});
    product.list("shape", {std::int64_t{1} << 40, std::int64_t{1} << 40});
    product.node("Expand", {"x", "shape"}, {"y"}, "bomb");
    product.output("y");
    mentions(refusal(product), "bomb");
    OnnxFile misfit;
    misfit.input("x", {2, 3}).weight("w", {4, 5});
    misfit.node("MatMul", {"x", "w"}, {"y"}, "product");
    misfit.output("y");
    mentions(refusal(misfit), "product");
}

TEST(ImportBadInput, TensorsWithTooFewOrTooManyValues)
{
    for (const std::size_t count : {0U, 3U, 5U}) {
        OnnxFile file;
        file.input("x", {4}).weight("w", {4}, std::vector<float>(count, 1.0F));
        file.node("Add", {"x", "w"}, {"y"});
        file.output("y");
        mentions(refusal(file), "'w'");
        file.graph().mutable_initializer(0)->clear_float_data();
        file.graph().mutable_initializer(0)->set_raw_data(std::string(count * 4, '\0'));
        mentions(refusal(file), "'w'");
    }
    OnnxFile huge; // declared, but not there
    huge.input("x", {4}).weight("w", {1'000'000, 1'000'000}, {});
    huge.node("Add", {"x", "w"}, {"y"});
    huge.output("y");
    mentions(refusal(huge), "'w'");
}

TEST(ImportBadInput, TypesThatPlanloomHasNot)
{
    OnnxFile tensor;
    tensor.input("x", {2}).weight("w", {2});
    tensor.graph().mutable_initializer(0)->set_data_type(onnx::TensorProto::COMPLEX64);
    tensor.node("Add", {"x", "w"}, {"y"});
    tensor.output("y");
    mentions(refusal(tensor), "complex64");
    OnnxFile strings;
    strings.input("x", {2}, onnx::TensorProto::STRING);
    strings.node("Identity", {"x"}, {"y"});
    strings.output("y");
    mentions(refusal(strings), "string");
    OnnxFile sequence;
    sequence.input("x", {2});
    sequence.graph().mutable_input(0)->mutable_type()->mutable_sequence_type();
    sequence.node("Identity", {"x"}, {"y"});
    sequence.output("y");
    mentions(refusal(sequence), "a sequence");
    OnnxFile made;
    made.input("x", {2});
    made.node("Optional", {"x"}, {"s"}, "pack");
    made.node("OptionalGetElement", {"s"}, {"y"});
    made.output("y");
    EXPECT_EQ(refusal(made).code, ErrorCode::NotSupported);
    OnnxFile mixed;
    mixed.input("x", {2}).input("i", {2}, OnnxFile::kInt64);
    mixed.node("Add", {"x", "i"}, {"y"}, "mixed");
    mixed.output("y");
    mentions(refusal(mixed), "mixed");
    OnnxFile number;
    number.input("x", {2}, 9999);
    number.node("Relu", {"x"}, {"y"});
    number.output("y");
    refusal(number);
}

TEST(ImportBadInput, AttributesOfTheWrongKindOrValue)
{
    OnnxFile kind;
    kind.input("x", {2, 3});
    kind.node("Softmax", {"x"}, {"y"}, "soft").set("axis", "last");
    kind.output("y");
    mentions(refusal(kind), "'axis'");
    OnnxFile axis;
    axis.input("x", {2, 3});
    axis.node("Softmax", {"x"}, {"y"}, "soft").set("axis", 2);
    axis.output("y");
    mentions(refusal(axis), "axis 2");
    OnnxFile permutation;
    permutation.input("x", {2, 3});
    permutation.node("Transpose", {"x"}, {"y"}, "turn").set("perm", Integers{0, 0});
    permutation.output("y");
    mentions(refusal(permutation), "'perm'");
    OnnxFile empty; // says it is an integer, holds none
    empty.input("x", {2, 3});
    auto node = empty.node("Softmax", {"x"}, {"y"}, "soft").set("axis", 1);
    node.proto->mutable_attribute(0)->clear_i();
    empty.output("y");
    mentions(refusal(empty), "'axis'");
    for (const char *name : {"strides", "pads", "dilations", "kernel_shape"}) {
        OnnxFile window;
        window.input("x", {1, 1, 5, 5}).weight("w", {1, 1, 2, 2});
        window.node("Conv", {"x", "w"}, {"y"}, "conv").set(name, Integers{-3, 0});
        window.output("y");
        mentions(refusal(window), name);
    }
}

TEST(ImportBadInput, MissingInputsOfEveryOperatorAreNoCrash)
{
    for (const char *type :
        {"Abs", "Add", "Where", "Clip", "Cast", "CastLike", "Pow", "Sum", "Max", "Dropout", "MatMul", "Gemm",
            "Einsum", "Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool", "BatchNormalization",
            "InstanceNormalization", "LayerNormalization", "GroupNormalization", "LRN", "LpNormalization",
            "MeanVarianceNormalization", "SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss", "LSTM",
            "GRU", "RNN", "ReduceSum", "ReduceMean", "ArgMax", "GlobalAveragePool", "GlobalLpPool", "Softmax",
            "LogSoftmax", "Hardmax", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand",
            "Tile", "Concat", "Split", "Slice", "Pad", "Gather", "GatherElements", "GatherND",
            "ScatterElements", "ScatterND", "OneHot", "TopK", "CumSum", "Trilu", "Resize", "Upsample",
            "DepthToSpace", "SpaceToDepth", "ReverseSequence", "Constant", "ConstantOfShape", "Shape", "Size",
            "Range", "EyeLike", "NonZero", "Compress", "If", "Loop", "Identity", "Gelu", "PRelu", "Mod",
            "BitShift", "Attention", "RotaryEmbedding", "TensorScatter", "GridSample", "AffineGrid", "Col2Im",
            "CenterCropPad", "DequantizeLinear", "QuantizeLinear", "DynamicQuantizeLinear", "BitwiseAnd",
            "BitwiseNot", "Shrink", "SequenceAt", "SequenceConstruct", "SequenceInsert", "SequenceErase",
            "SequenceLength", "SplitToSequence", "ConcatFromSequence", "com.microsoft.FusedMatMul",
            "com.microsoft.QuickGelu", "com.microsoft.SkipLayerNormalization",
            "com.microsoft.SkipSimplifiedLayerNormalization", "com.microsoft.RotaryEmbedding",
            "com.microsoft.MultiHeadAttention", "com.microsoft.GroupQueryAttention"}) {
        SCOPED_TRACE(type);
        const std::string_view written = type;
        const std::size_t dot = written.rfind('.');
        const std::string domain(dot == std::string_view::npos ? std::string_view{} : written.substr(0, dot));
        const std::string name(dot == std::string_view::npos ? written : written.substr(dot + 1));
        for (const std::int64_t opset : {7, 9, 13, 17, 21}) {
            for (int present = 0; present < 8; ++present) {
                for (const Integers &shape : {Integers{}, Integers{3}, Integers{2, 3, 4}}) {
                    OnnxFile file(opset);
                    file.input("x", shape)
                        .weight("scalar", {})
                        .list("list", {0, 1})
                        .input("i", shape, OnnxFile::kInt64);
                    const char *fillers[] = {"x", "list", "scalar", "i"};
                    std::vector<std::string> inputs;
                    for (int i = 0; i < 4; ++i)
                        inputs.push_back((present >> (i % 3) & 1) != 0 ? fillers[(i + present) % 4] : "");
                    file.node(name, inputs, {"y", "z"}, "node").proto->set_domain(domain);
                    file.output("y");
                    const auto graph = importOnnxBytes(file.bytes(), {});
                    if (graph) {
                        ASSERT_TRUE(validate(*graph));
                    } else {
                        ASSERT_NE(graph.error().code, ErrorCode::Internal) << describe(graph.error());
                    }
                }
            }
        }
    }
}

TEST(ImportBadInput, SequencesInPlaceOfTensorsAreNoCrash)
{
    onnx::GraphProto body; // of a Loop that ends at once
    for (const char *name : {"count", "goes_on", "state"})
        body.add_input()->set_name(name);
    for (const char *name : {"goes_on", "state"})
        body.add_output()->set_name(name);
    for (const auto &example : testing_support::kOperatorExamples) {
        SCOPED_TRACE(example.type);
        for (const char *first : {"s", "x"}) {
            OnnxFile file(25);
            file.input("x", {2, 3}).list("none", {0});
            file.node("SequenceConstruct", {"x", "x"}, {"s"});
            file.node(example.type, {first, "s", "s"}, {"y", "z"}, "node").set("body", body);
            file.output("y");
            const auto graph = importOnnxBytes(file.bytes(), {});
            if (graph)
                ASSERT_TRUE(validate(*graph));
            else
                ASSERT_NE(graph.error().code, ErrorCode::Internal) << describe(graph.error());
        }
    }
    OnnxFile loop(25);
    loop.input("x", {2, 3});
    *loop.graph().add_initializer() = OnnxFile::integers("none", {}, {0});
    loop.node("SequenceConstruct", {"x", "x"}, {"s"});
    loop.node("Loop", {"none", "", "s"}, {"y"}, "loop").set("body", body);
    loop.output("y");
    EXPECT_EQ(refusal(loop).code, ErrorCode::NotSupported);
}

TEST(ImportBadInput, DeepNestingAndEndlessLoopsEnd)
{
    onnx::GraphProto inner;
    OnnxFile::addNode(inner, "Identity", {"x"}, {"t"});
    inner.add_output()->set_name("t");
    for (int depth = 0; depth < 60; ++depth) {
        onnx::GraphProto outer;
        OnnxFile::addNode(outer, "If", {"c"}, {"t"}).set("then_branch", inner).set("else_branch", inner);
        outer.add_output()->set_name("t");
        inner = outer;
        if (inner.ByteSizeLong() > 1'000'000)
            break;
    }
    OnnxFile nested;
    nested.input("x", {1});
    onnx::TensorProto flag;
    flag.set_data_type(OnnxFile::kBool);
    flag.add_int32_data(1);
    nested.node("Constant", {}, {"c"}).set("value", flag);
    nested.node("If", {"c"}, {"y"}).set("then_branch", inner).set("else_branch", inner);
    nested.output("y");
    importOnnxBytes(nested.bytes(), {}).has_value(); // either is fine; it ends

    // Loops in loops in loops, each of a thousand iterations.
    onnx::GraphProto body;
    for (const char *name : {"i", "go", "s"})
        body.add_input()->set_name(name);
    OnnxFile::addNode(body, "Add", {"s", "x"}, {"n"});
    OnnxFile::addNode(body, "Identity", {"go"}, {"g"});
    body.add_output()->set_name("g");
    body.add_output()->set_name("n");
    for (int depth = 0; depth < 3; ++depth) {
        onnx::GraphProto outer;
        for (const char *name : {"i", "go", "s"})
            outer.add_input()->set_name(name);
        OnnxFile::addNode(outer, "Loop", {"count", "", "s"}, {"n"}).set("body", body);
        OnnxFile::addNode(outer, "Identity", {"go"}, {"g"});
        outer.add_output()->set_name("g");
        outer.add_output()->set_name("n");
        body = outer;
    }
    OnnxFile loops;
    loops.input("x", {1});
    *loops.graph().add_initializer() = OnnxFile::integers("count", {}, {1000});
    loops.node("Loop", {"count", "", "x"}, {"y"}).set("body", body);
    loops.output("y");
    ImportOptions options;
    options.mostOperators = 20'000;
    EXPECT_EQ(refusal(loops, options).code, ErrorCode::ResourceLimit);
}

TEST(ImportBadInput, ConstantsThatGrowWithoutEndStaySmall)
{
    OnnxFile file;
    file.input("x", {1});
    file.node("Constant", {}, {"c0"}).set("value", OnnxFile::floats("", {1, 1}, {1}));
    file.list("twice", {1, 8});
    std::string last = "c0";
    for (int i = 1; i < 14; ++i) {
        const std::string next = "c" + std::to_string(i);
        file.node("Tile", {last, "twice"}, {next});
        last = next;
    }
    file.node("Add", {last, "x"}, {"y"});
    file.output("y");
    ImportOptions options;
    options.fuse = false;
    const auto graph = importOnnxBytes(file.bytes(), {}, options);
    ASSERT_TRUE(graph) << describe(graph.error());
    std::size_t held = 0;
    for (const Tensor &tensor : graph->tensors)
        held += tensor.data ? tensor.data->bytes.size() : 0;
    EXPECT_LE(held, options.mostFoldedBytes);
    EXPECT_GT(graph->operators.size(), 1U);
}

TEST(ImportBadInput, MillionsOfEmptyMessagesAreRefused)
{
    std::string nodes;
    for (int i = 0; i < 1'000'000; ++i)
        nodes += std::string("\x0a\x00", 2); // field 1 of GraphProto, empty
    std::string bytes("\x08\x08\x3a", 3);
    for (std::size_t rest = nodes.size(); rest > 0; rest >>= 7U)
        bytes += static_cast<char>((rest & 0x7fU) | (rest > 0x7fU ? 0x80U : 0U));
    EXPECT_EQ(refusal(bytes + nodes).code, ErrorCode::ResourceLimit);
}

TEST(ImportBadInput, StoppingIsAnError)
{
    OnnxFile file;
    file.input("x", {1});
    std::string last = "x";
    for (int i = 0; i < 600; ++i) {
        const std::string next = "v" + std::to_string(i);
        file.node("Relu", {last}, {next});
        last = next;
    }
    file.output(last);
    std::stop_source source;
    source.request_stop();
    ImportOptions options;
    options.stop = source.get_token();
    EXPECT_EQ(refusal(file, options).code, ErrorCode::Cancelled);
}

TEST(ImportBadInput, OpsetsThatAreMissingOrTooOld)
{
    for (const std::int64_t opset : {-1, 0, 5}) {
        OnnxFile file(opset);
        file.input("x", {1});
        file.node("Relu", {"x"}, {"y"});
        file.output("y");
        EXPECT_EQ(refusal(file).code, ErrorCode::NotSupported);
    }
}

} // namespace
} // namespace planloom
