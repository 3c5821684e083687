// Nodes that are made of several operators compute what the same written out in simpler nodes computes.

#include "engine/frontend/onnx/import_onnx.h"

#include "tests/engine/frontend/onnx_file.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

namespace planloom {
namespace {

using testing_support::GraphRunner;
using testing_support::OnnxFile;
using Integers = std::vector<std::int64_t>;
using Reals = std::vector<double>;

Graph importedAsWritten(const OnnxFile &file)
{
    ImportOptions options;
    options.fuse = false;
    auto graph = importOnnxBytes(file.bytes(), {}, options);
    EXPECT_TRUE(graph) << describe(graph.error());
    return graph ? *std::move(graph) : Graph{};
}

/// Both files, on the same random inputs, return the same.
void expectSameResults(const OnnxFile &one, const OnnxFile &other)
{
    GraphRunner left(importedAsWritten(one), 1, 4);
    GraphRunner right(importedAsWritten(other), 2, 4);
    right.takeFrom(left);
    ASSERT_TRUE(left.run());
    ASSERT_TRUE(right.run());
    ASSERT_FALSE(left.graph().outputs.empty());
    ASSERT_EQ(left.graph().outputs.size(), right.graph().outputs.size());
    for (std::size_t k = 0; k < left.graph().outputs.size(); ++k) {
        const TensorId a = left.graph().outputs[k];
        const TensorId b = right.graph().outputs[k];
        ASSERT_EQ(left.graph().at(a).type.shape, right.graph().at(b).type.shape);
        const Reals found = left.all(a);
        const Reals wanted = right.all(b);
        for (std::size_t i = 0; i < found.size(); ++i)
            ASSERT_NEAR(found[i], wanted[i], 2e-5) << "element " << i << " of output " << k;
    }
}

/// Imports, runs on `inputs` and returns the first output.
Reals resultOf(const OnnxFile &file, const std::vector<Reals> &inputs)
{
    GraphRunner runner(importedAsWritten(file));
    EXPECT_EQ(runner.graph().inputs.size(), inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        for (std::size_t k = 0; k < inputs[i].size(); ++k)
            runner.set(runner.graph().inputs[i], static_cast<std::int64_t>(k), inputs[i][k]);
    }
    EXPECT_TRUE(runner.run());
    return runner.all(runner.graph().outputs.front());
}

void expectNumbers(const Reals &found, const Reals &wanted)
{
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i], wanted[i], 1e-5) << "element " << i;
}

OnnxFile::Node contributed(OnnxFile &file, const std::string &type, const std::vector<std::string> &inputs,
    const std::vector<std::string> &outputs)
{
    auto node = file.node(type, inputs, outputs, "node");
    node.proto->set_domain("com.microsoft");
    return node;
}

// --- Attention
// ----------------------------------------------------------------------------------------------

struct AttentionNode {
    const char *name;
    std::vector<std::string> inputs{"q", "k", "v"};
    std::function<void(OnnxFile &)> feed{};
    std::function<void(OnnxFile::Node &)> set{};
};

std::vector<AttentionNode> attentionNodes()
{
    const auto mask = [](const Integers &shape, int type) {
        return [shape, type](OnnxFile &file) { file.input("m", shape, type); };
    };
    const auto window = [](std::int64_t left, std::int64_t right, std::int64_t causal = 0) {
        return [=](OnnxFile::Node &node) {
            node.set("left_window_size", left).set("right_window_size", right).set("is_causal", causal);
        };
    };
    const auto past = [](OnnxFile &file) { file.input("pk", {2, 2, 3, 4}).input("pv", {2, 2, 3, 4}); };
    const auto lengths = [](OnnxFile &file) { file.list("n", {5, 3}); };
    const std::vector<std::string> withPast{"q", "k", "v", "", "pk", "pv"};
    const std::vector<std::string> withLengths{"q", "k", "v", "", "", "", "n"};
    return {{"plain"}, {"scaled", {"q", "k", "v"}, {}, [](auto &node) { node.set("scale", 0.3F); }},
        {"causal", {"q", "k", "v"}, {}, [](auto &node) { node.set("is_causal", 1); }},
        {"soft-capped", {"q", "k", "v"}, {}, [](auto &node) { node.set("softcap", 0.5F); }},
        {"additive mask", {"q", "k", "v", "m"}, mask({5, 6}, OnnxFile::kFloat)},
        {"boolean mask of heads", {"q", "k", "v", "m"}, mask({2, 4, 5, 6}, OnnxFile::kBool)},
        {"mask of fewer keys", {"q", "k", "v", "m"}, mask({5, 4}, OnnxFile::kFloat)},
        {"window to the left", {"q", "k", "v"}, {}, window(2, -1)},
        {"window to both sides", {"q", "k", "v"}, {}, window(1, 1)},
        {"window of two sizes", {"q", "k", "v"}, {}, window(1, 2)},
        {"causal window", {"q", "k", "v"}, {}, window(1, 2, 1)}, {"past", withPast, past},
        {"causal past", withPast, past, window(-1, -1, 1)},
        {"window over the past", withPast, past, window(2, 1)}, {"lengths", withLengths, lengths},
        {"causal lengths", withLengths, lengths, window(-1, -1, 1)},
        {"window within lengths", withLengths, lengths, window(1, 1)}};
}

OnnxFile attentionFile(const AttentionNode &written, bool withScores)
{
    OnnxFile file(25);
    file.input("q", {2, 4, 5, 4}).input("k", {2, 2, 6, 4}).input("v", {2, 2, 6, 4});
    if (written.feed)
        written.feed(file);
    std::vector<std::string> outputs{"y"};
    if (withScores)
        outputs.insert(outputs.end(), {"", "", "scores"});
    auto node = file.node("Attention", written.inputs, outputs, "a");
    if (written.set)
        written.set(node);
    file.output("y");
    if (withScores) { // read, but not returned
        file.node("Identity", {"scores"}, {"same"});
        file.node("ReduceSum", {"same"}, {"sum"}).set("keepdims", 0);
        file.node("Sub", {"sum", "sum"}, {"nothing"});
        file.node("Add", {"y", "nothing"}, {"z"});
        file.graph().mutable_output(0)->set_name("z");
    }
    return file;
}

TEST(ImportSame, AttentionInOneOperatorAndInSteps)
{
    for (const AttentionNode &written : attentionNodes()) {
        SCOPED_TRACE(written.name);
        const OnnxFile whole = attentionFile(written, false);
        const OnnxFile steps = attentionFile(written, true);
        expectSameResults(whole, steps);
    }
}

TEST(ImportSame, AttentionReturnsTheKeysOfAllSteps)
{
    OnnxFile file(25);
    file.input("q", {1, 1, 1, 1}).input("k", {1, 1, 1, 1}).input("v", {1, 1, 1, 1});
    file.input("pk", {1, 1, 2, 1}).input("pv", {1, 1, 2, 1});
    file.node("Attention", {"q", "k", "v", "", "pk", "pv"}, {"y", "all", "values"}, "a");
    file.output("all").output("y").output("values");
    expectNumbers(resultOf(file, {{0}, {3}, {30}, {1, 2}, {10, 20}}), {1, 2, 3});
}

// --- rotation
// -----------------------------------------------------------------------------------------------

OnnxFile rotation(bool interleaved, bool positions, bool heads)
{
    OnnxFile file(23);
    file.input("x", heads ? Integers{2, 2, 3, 6} : Integers{2, 3, 12});
    const Integers angles = positions ? Integers{4, 2} : Integers{2, 3, 2};
    file.input("c", angles).input("s", angles);
    std::vector<std::string> inputs{"x", "c", "s"};
    if (positions) {
        file.input("p", {2, 3}, OnnxFile::kInt64);
        inputs.push_back("p");
    }
    file.node("RotaryEmbedding", inputs, {"y"}, "r")
        .set("interleaved", interleaved ? 1 : 0)
        .set("rotary_embedding_dim", 4)
        .set("num_heads", heads ? 0 : 2);
    file.output("y");
    return file;
}

/// The same of the first four elements of each head, pair by pair.
OnnxFile rotationWritten(bool interleaved, bool positions, bool heads)
{
    OnnxFile file(23);
    file.input("x", heads ? Integers{2, 2, 3, 6} : Integers{2, 3, 12});
    const Integers angles = positions ? Integers{4, 2} : Integers{2, 3, 2};
    file.input("c", angles).input("s", angles);
    if (positions) {
        file.input("p", {2, 3}, OnnxFile::kInt64);
        file.node("Gather", {"c", "p"}, {"cp"});
        file.node("Gather", {"s", "p"}, {"sp"});
    }
    const std::string cosine = positions ? "cp" : "c";
    const std::string sine = positions ? "sp" : "s";
    // [b s heads e]
    if (heads)
        file.node("Transpose", {"x"}, {"h"}).set("perm", Integers{0, 2, 1, 3});
    else
        file.list("apart", {2, 3, 2, 6}).node("Reshape", {"x", "apart"}, {"h"});
    file.list("a2", {2});
    file.node("Unsqueeze", {cosine, "a2"}, {"cu"});
    file.node("Unsqueeze", {sine, "a2"}, {"su"});
    *file.graph().add_initializer() =
        OnnxFile::integers("first", {2}, interleaved ? Integers{0, 2} : Integers{0, 1});
    *file.graph().add_initializer() =
        OnnxFile::integers("second", {2}, interleaved ? Integers{1, 3} : Integers{2, 3});
    *file.graph().add_initializer() = OnnxFile::integers("rest", {2}, {4, 5});
    for (const char *part : {"first", "second", "rest"})
        file.node("Gather", {"h", part}, {std::string("h_") + part}).set("axis", 3);
    file.node("Mul", {"h_first", "cu"}, {"fc"});
    file.node("Mul", {"h_second", "su"}, {"ss"});
    file.node("Sub", {"fc", "ss"}, {"real"});
    file.node("Mul", {"h_first", "su"}, {"fs"});
    file.node("Mul", {"h_second", "cu"}, {"sc"});
    file.node("Add", {"fs", "sc"}, {"imaginary"});
    file.node("Concat", {"real", "imaginary", "h_rest"}, {"joined"}).set("axis", 3);
    *file.graph().add_initializer() = OnnxFile::integers(
        "places", {6}, interleaved ? Integers{0, 2, 1, 3, 4, 5} : Integers{0, 1, 2, 3, 4, 5});
    file.node("Gather", {"joined", "places"}, {"placed"}).set("axis", 3);
    if (heads)
        file.node("Transpose", {"placed"}, {"y"}).set("perm", Integers{0, 2, 1, 3});
    else
        file.list("flat", {2, 3, 12}).node("Reshape", {"placed", "flat"}, {"y"});
    file.output("y");
    return file;
}

TEST(ImportSame, RotaryEmbeddingAndItsProducts)
{
    for (const bool interleaved : {false, true}) {
        for (const bool positions : {false, true}) {
            for (const bool heads : {false, true}) {
                SCOPED_TRACE(testing::Message() << interleaved << positions << heads);
                expectSameResults(
                    rotation(interleaved, positions, heads), rotationWritten(interleaved, positions, heads));
            }
        }
    }
}

// --- com.microsoft
// ------------------------------------------------------------------------------------------

TEST(ImportSame, FusedMatMulAndItsSteps)
{
    OnnxFile fused(20);
    fused.input("a", {2, 4, 3}).input("b", {2, 5, 4});
    contributed(fused, "FusedMatMul", {"a", "b"}, {"y"}).set("transA", 1).set("transB", 1).set("alpha", 0.5F);
    fused.output("y");
    OnnxFile written(20);
    written.input("a", {2, 4, 3}).input("b", {2, 5, 4}).weight("half", {}, {0.5F});
    written.node("Transpose", {"a"}, {"at"}).set("perm", Integers{0, 2, 1});
    written.node("Transpose", {"b"}, {"bt"}).set("perm", Integers{0, 2, 1});
    written.node("MatMul", {"at", "bt"}, {"p"});
    written.node("Mul", {"p", "half"}, {"y"});
    written.output("y");
    expectSameResults(fused, written);
}

TEST(ImportSame, SkipNormalizationsAndTheirSums)
{
    for (const bool simplified : {false, true}) {
        SCOPED_TRACE(simplified);
        OnnxFile fused(23);
        fused.input("x", {2, 3, 4}).input("skip", {2, 3, 4}).weight("g", {4}).weight("b", {4});
        std::vector<std::string> inputs{"x", "skip", "g"};
        if (!simplified)
            inputs.push_back("b");
        contributed(fused, simplified ? "SkipSimplifiedLayerNormalization" : "SkipLayerNormalization", inputs,
            {"y", "", "", "sum"})
            .set("epsilon", 1e-5F);
        fused.output("y").output("sum");
        OnnxFile written(23);
        written.input("x", {2, 3, 4}).input("skip", {2, 3, 4}).weight("g", {4}).weight("b", {4});
        written.node("Add", {"x", "skip"}, {"sum"});
        inputs.erase(inputs.begin(), inputs.begin() + 2);
        inputs.insert(inputs.begin(), "sum");
        written.node(simplified ? "RMSNormalization" : "LayerNormalization", inputs, {"y"})
            .set("epsilon", 1e-5F);
        written.output("y").output("sum");
        expectSameResults(fused, written);
    }
}

TEST(ImportSame, MultiHeadAttentionAndAttention)
{
    OnnxFile contributedFile(25);
    contributedFile.input("q", {2, 3, 8})
        .input("k", {2, 5, 8})
        .input("v", {2, 5, 8})
        .input("m", {2, 2, 3, 5});
    contributed(contributedFile, "MultiHeadAttention", {"q", "k", "v", "", "", "m"}, {"y"})
        .set("num_heads", 2);
    contributedFile.output("y");
    OnnxFile own(25);
    own.input("q", {2, 3, 8}).input("k", {2, 5, 8}).input("v", {2, 5, 8}).input("m", {2, 2, 3, 5});
    own.node("Attention", {"q", "k", "v", "m"}, {"y"}).set("q_num_heads", 2).set("kv_num_heads", 2);
    own.output("y");
    expectSameResults(contributedFile, own);
}

TEST(ImportSame, GroupQueryAttentionAndItsRotationAndAttention)
{
    OnnxFile grouped(25);
    grouped.input("q", {2, 3, 16})
        .input("k", {2, 3, 8})
        .input("v", {2, 3, 8})
        .input("c", {5, 2})
        .input("s", {5, 2});
    grouped.list("lengths", {2, 2}).list("total", {3});
    contributed(grouped, "GroupQueryAttention", {"q", "k", "v", "", "", "lengths", "total", "c", "s"}, {"y"})
        .set("num_heads", 4)
        .set("kv_num_heads", 2)
        .set("do_rotary", 1)
        .set("local_window_size", 2);
    grouped.output("y");
    OnnxFile own(25);
    own.input("q", {2, 3, 16})
        .input("k", {2, 3, 8})
        .input("v", {2, 3, 8})
        .input("c", {5, 2})
        .input("s", {5, 2});
    *own.graph().add_initializer() = OnnxFile::integers("p", {2, 3}, {0, 1, 2, 0, 1, 2});
    own.node("RotaryEmbedding", {"q", "c", "s", "p"}, {"qr"}).set("num_heads", 4);
    own.node("RotaryEmbedding", {"k", "c", "s", "p"}, {"kr"}).set("num_heads", 2);
    own.node("Attention", {"qr", "kr", "v"}, {"y"})
        .set("q_num_heads", 4)
        .set("kv_num_heads", 2)
        .set("is_causal", 1)
        .set("left_window_size", 1);
    own.output("y");
    expectSameResults(grouped, own);
}

TEST(ImportSame, CachesOfContributedAttentionsAreRefused)
{
    OnnxFile cached(20);
    cached.input("q", {1, 1, 4}).input("k", {1, 1, 4}).input("v", {1, 1, 4}).input("past", {1, 1, 2, 4});
    cached.list("lengths", {2}).list("total", {3});
    contributed(cached, "GroupQueryAttention", {"q", "k", "v", "past", "past", "lengths", "total"}, {"y"})
        .set("num_heads", 1)
        .set("kv_num_heads", 1);
    cached.output("y");
    const auto graph = importOnnxBytes(cached.bytes(), {});
    ASSERT_FALSE(graph);
    EXPECT_EQ(graph.error().code, ErrorCode::NotSupported);
    EXPECT_NE(graph.error().message.find("cache"), std::string::npos) << describe(graph.error());
}

// --- sequences, empty values
// --------------------------------------------------------------------------------

TEST(ImportSame, SplitToSequenceAndSplit)
{
    OnnxFile sequence(20);
    sequence.input("x", {5, 2});
    *sequence.graph().add_initializer() = OnnxFile::integers("each", {}, {2});
    *sequence.graph().add_initializer() = OnnxFile::integers("last", {}, {-1});
    *sequence.graph().add_initializer() = OnnxFile::integers("first", {}, {0});
    sequence.node("SplitToSequence", {"x", "each"}, {"s"}).set("axis", 0);
    sequence.node("SequenceAt", {"s", "last"}, {"a"});
    sequence.node("SequenceErase", {"s", "first"}, {"t"});
    sequence.node("SequenceInsert", {"t", "a", "first"}, {"u"});
    sequence.node("ConcatFromSequence", {"u"}, {"y"}).set("axis", 0);
    sequence.output("y");
    expectNumbers(resultOf(sequence, {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}), {8, 9, 4, 5, 6, 7, 8, 9});
    OnnxFile outside(20);
    outside.input("x", {4, 2});
    *outside.graph().add_initializer() = OnnxFile::integers("third", {}, {4});
    outside.node("SplitToSequence", {"x"}, {"s"}).set("axis", 0);
    outside.node("SequenceAt", {"s", "third"}, {"y"});
    outside.output("y");
    EXPECT_FALSE(importOnnxBytes(outside.bytes(), {}));
}

TEST(ImportSame, EmptySlicesAddNothing)
{
    OnnxFile file(20);
    file.input("x", {2, 3}).list("from", {3}).list("to", {9}).list("axis", {1}).list("sizes", {0, 2, 1});
    file.node("Slice", {"x", "from", "to", "axis"}, {"none"});
    file.node("Split", {"x", "sizes"}, {"empty", "two", "one"}).set("axis", 1);
    file.node("Concat", {"one", "none", "empty", "two"}, {"y"}).set("axis", 1);
    file.output("y");
    expectNumbers(resultOf(file, {{1, 2, 3, 4, 5, 6}}), {3, 1, 2, 6, 4, 5});
    OnnxFile returned(20);
    returned.input("x", {2, 3}).list("from", {3}).list("to", {9}).list("axis", {1});
    returned.node("Slice", {"x", "from", "to", "axis"}, {"none"});
    returned.output("none");
    const auto graph = importOnnxBytes(returned.bytes(), {});
    ASSERT_FALSE(graph);
    EXPECT_NE(graph.error().message.find("no output of the model has elements"), std::string::npos)
        << describe(graph.error());
}

// --- caches, images, quantisation
// ---------------------------------------------------------------------------

TEST(ImportSame, TensorScatterWritesFromPlacesOfItsOwn)
{
    for (const bool circular : {false, true}) {
        OnnxFile file(24);
        file.input("cache", {2, 3, 1}).input("update", {2, 2, 1}).list("at", {0, circular ? 2 : 1});
        file.node("TensorScatter", {"cache", "update", "at"}, {"y"})
            .set("mode", circular ? "circular" : "linear");
        file.output("y");
        const Reals second = circular ? Reals{40, 5, 30} : Reals{4, 30, 40};
        Reals wanted{10, 20, 3};
        wanted.insert(wanted.end(), second.begin(), second.end());
        expectNumbers(resultOf(file, {{1, 2, 3, 4, 5, 6}, {10, 20, 30, 40}}), wanted);
    }
}

TEST(ImportSame, BlocksAndCropsAndGrids)
{
    OnnxFile blocks(18); // 2 x 2 blocks of a 3 x 3 image: the middle is summed four times
    blocks.input("x", {1, 4, 4}).list("image", {3, 3}).list("block", {2, 2});
    blocks.node("Col2Im", {"x", "image", "block"}, {"y"});
    blocks.output("y");
    expectNumbers(resultOf(blocks, {Reals(16, 1.0)}), {1, 2, 1, 2, 4, 2, 1, 2, 1});
    OnnxFile crop(18);
    crop.input("x", {3, 2}).list("shape", {2, 5});
    crop.node("CenterCropPad", {"x", "shape"}, {"y"});
    crop.output("y");
    expectNumbers(resultOf(crop, {{1, 2, 3, 4, 5, 6}}), {0, 1, 2, 0, 0, 0, 3, 4, 0, 0});
    OnnxFile grid(20); // the unmoved image
    grid.input("x", {1, 1, 2, 3}).weight("theta", {1, 2, 3}, {1, 0, 0, 0, 1, 0}).list("size", {1, 1, 2, 3});
    grid.node("AffineGrid", {"theta", "size"}, {"g"});
    grid.node("GridSample", {"x", "g"}, {"y"});
    grid.output("y");
    expectNumbers(resultOf(grid, {{1, 2, 3, 4, 5, 6}}), {1, 2, 3, 4, 5, 6});
    OnnxFile kept(19); // 4 x 2, no larger than 2 x 2: 2 x 1
    kept.input("x", {1, 1, 4, 2}).list("size", {2, 2}).list("axes", {2, 3});
    kept.node("Resize", {"x", "", "", "size"}, {"y"})
        .set("mode", "linear")
        .set("keep_aspect_ratio_policy", "not_larger")
        .set("axes", Integers{2, 3});
    kept.output("y");
    expectNumbers(resultOf(kept, {{1, 1, 3, 3, 5, 5, 7, 7}}), {2, 6});
}

TEST(ImportSame, QuantisedNumbersAreRoundedAndCut)
{
    OnnxFile file(21);
    file.input("x", {6}).weight("scale", {}, {2});
    onnx::TensorProto zero;
    zero.set_name("zero");
    zero.set_data_type(onnx::TensorProto::UINT8);
    zero.add_int32_data(128);
    *file.graph().add_initializer() = zero;
    file.node("QuantizeLinear", {"x", "scale", "zero"}, {"q"});
    file.node("DequantizeLinear", {"q", "scale", "zero"}, {"y"});
    file.output("y");
    // Halves go to the even number; what uint8 cannot hold is cut.
    expectNumbers(resultOf(file, {{0, 3, 5, -3, 1000, -1000}}), {0, 4, 4, -4, 254, -256});
}

} // namespace
} // namespace planloom
