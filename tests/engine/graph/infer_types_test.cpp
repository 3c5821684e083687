#include "engine/graph/operators/catalogue.h"
#include "tests/engine/graph/parts_for_tests.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

namespace planloom {

namespace {

using Pairs = std::vector<std::pair<std::string, Attribute>>;

TensorType bools(Shape shape)
{
    return {DataType::Bool, std::move(shape)};
}

Result<std::vector<TensorType>> infer(OperatorKind kind, const Pairs &attributes,
    const std::vector<TensorType> &inputs, const std::vector<TensorType> &declared = {})
{
    Attributes all;
    for (const auto &[name, value] : attributes)
        all.set(name, value);
    return inferTypes(kind, all, inputs, std::vector<bool>(inputs.size(), true), declared);
}

/// "float32[2 3], int64[2]", or "error at <where>: ...".
std::string text(const Result<std::vector<TensorType>> &types)
{
    if (!types)
        return "error at " + types.error().where;
    std::string result;
    for (const TensorType &type : *types)
        result += (result.empty() ? "" : ", ") + std::string(nameOf(type.dataType)) + toString(type.shape);
    return result;
}

} // namespace

TEST(InferTypes, Elementwise)
{
    using enum OperatorKind;
    EXPECT_EQ(text(infer(Relu, {}, {floats({2, 3})})), "float32[2 3]");
    EXPECT_EQ(text(infer(Add, {}, {floats({2, 1, 4}), floats({3, 1})})), "float32[2 3 4]");
    EXPECT_EQ(text(infer(Less, {}, {floats({2}), floats({})})), "bool[2]");
    EXPECT_EQ(text(infer(Where, {}, {bools({2, 1}), floats({3}), floats({})})), "float32[2 3]");
    EXPECT_EQ(text(infer(Cast, {}, {floats({2})}, {integers({9})})), "int64[2]");
    EXPECT_EQ(text(infer(IsNaN, {}, {floats({2})})), "bool[2]");
    EXPECT_EQ(text(infer(Pow, {}, {floats({2}), integers({})})), "float32[2]");
    EXPECT_EQ(text(infer(Add, {}, {floats({2}), floats({3})})), "error at input:1");
    EXPECT_EQ(text(infer(Add, {}, {floats({2}), integers({2})})), "error at input:1");
    EXPECT_EQ(text(infer(Add, {}, {floats({2})})), "error at input:1");
    EXPECT_EQ(text(infer(Exp, {}, {integers({2})})), "error at input:0");
    EXPECT_EQ(text(infer(And, {}, {floats({2}), floats({2})})), "error at input:0");
    EXPECT_EQ(text(infer(PRelu, {}, {floats({2}), floats({3, 2})})), "error at input:1");
    EXPECT_EQ(text(infer(Where, {}, {floats({2}), floats({2}), floats({2})})), "error at input:0");
}

TEST(InferTypes, Products)
{
    using enum OperatorKind;
    EXPECT_EQ(text(infer(MatMul, {}, {floats({2, 3, 5}), floats({5, 7})})), "float32[2 3 7]");
    EXPECT_EQ(text(infer(MatMul, {}, {floats({5}), floats({5})})), "float32[]");
    EXPECT_EQ(text(infer(MatMul, {}, {floats({2, 3}), floats({4, 5})})), "error at input:1");
    EXPECT_EQ(text(infer(MatMul, {}, {floats({2, 3, 4}), floats({3, 4, 5})})), "error at input:1");
    EXPECT_EQ(
        text(infer(Linear, {{"transposed", number(1)}}, {floats({2, 8}), floats({16, 8}), floats({16})})),
        "float32[2 16]");
    EXPECT_EQ(text(infer(Linear, {}, {floats({2, 8}), floats({8, 16}), floats({8})})), "error at input:2");
    EXPECT_EQ(text(infer(Linear, {}, {floats({2, 8}), floats({8, 3, 4}), floats({3, 4})})), "float32[2 3 4]");
    EXPECT_EQ(text(infer(Linear, {{"transposed", number(1)}}, {floats({2, 8}), floats({3, 4, 8})})),
        "float32[2 3 4]");
    EXPECT_EQ(text(infer(Linear, {}, {floats({2, 8}), floats({8, 3, 4}), floats({12})})), "error at input:2");
    EXPECT_EQ(text(infer(Linear, {}, {floats({2, 8}), floats({8, 3, 4, 2})})), "error at input:1");
    EXPECT_EQ(text(infer(Einsum, {{"equation", std::string("bij, bjk -> bik")}},
                  {floats({2, 3, 4}), floats({2, 4, 5})})),
        "float32[2 3 5]");
    EXPECT_EQ(text(infer(Einsum, {{"equation", std::string("ij,jk->ik")}}, {floats({3, 4}), floats({5, 5})})),
        "error at input:1");
    EXPECT_EQ(text(infer(Einsum, {{"equation", std::string("ij->iz")}}, {floats({3, 4})})),
        "error at attribute:equation");
}

TEST(InferTypes, Windows)
{
    using enum OperatorKind;
    const TensorType x = floats({2, 4, 9, 9});
    EXPECT_EQ(text(infer(Conv, {{"pads", list({1, 1, 1, 1})}, {"strides", list({2, 2})}},
                  {x, floats({6, 4, 3, 3})})),
        "float32[2 6 5 5]");
    EXPECT_EQ(
        text(infer(Conv, {{"dilations", list({2, 2})}, {"group", number(2)}}, {x, floats({6, 2, 3, 3})})),
        "float32[2 6 5 5]");
    EXPECT_EQ(
        text(infer(Conv, {{"group", number(3)}}, {x, floats({6, 2, 3, 3})})), "error at attribute:group");
    EXPECT_EQ(text(infer(Conv, {{"strides", list({0, 1})}}, {x, floats({6, 4, 3, 3})})),
        "error at attribute:strides");
    EXPECT_EQ(text(infer(Conv, {}, {x, floats({6, 4, 10, 3})})), "error at input:1");
    EXPECT_EQ(text(infer(ConvTranspose, {{"strides", list({2, 2})}, {"output_padding", list({1, 0})}},
                  {x, floats({4, 6, 3, 3})})),
        "float32[2 6 20 19]");
    const auto pool = [&](std::int64_t ceiling, Integers pads) {
        return text(infer(MaxPool,
            {{"kernel_shape", list({2, 2})}, {"strides", list({2, 2})}, {"ceil_mode", number(ceiling)},
                {"pads", list(std::move(pads))}},
            {x}));
    };
    EXPECT_EQ(pool(0, {0, 0, 0, 0}), "float32[2 4 4 4]");
    EXPECT_EQ(pool(1, {0, 0, 0, 0}), "float32[2 4 5 5]");
    EXPECT_EQ(pool(1, {1, 1, 1, 1}), "float32[2 4 5 5]"); // a sixth window would start in the padding
    EXPECT_EQ(text(infer(MaxPool, {}, {x})), "error at attribute:kernel_shape");
}

TEST(InferTypes, Attentions)
{
    using enum OperatorKind;
    const TensorType q = floats({2, 6, 5, 8});
    const TensorType k = floats({2, 3, 7, 8});
    const TensorType v = floats({2, 3, 7, 4});
    const auto made = infer(Attention, {}, {q, k, v});
    ASSERT_TRUE(made);
    EXPECT_EQ(
        *made, (std::vector<TensorType>{floats({2, 6, 5, 4}), floats({2, 6, 5}), floats({2, 6, 5, 7})}));
    // Sums of exponentials are never in half precision.
    const auto half = [](Shape shape) { return TensorType{DataType::BFloat16, std::move(shape)}; };
    const auto halves = infer(Attention, {}, {half({6, 5, 8}), half({1, 7, 8}), half({1, 7, 8})});
    ASSERT_TRUE(halves);
    EXPECT_EQ(*halves, (std::vector<TensorType>{half({6, 5, 8}), floats({6, 5}), half({6, 5, 7})}));

    const auto masked = [&](TensorType mask) {
        return text(infer(Attention, {}, {q, k, v, std::move(mask)}));
    };
    EXPECT_EQ(masked(floats({6, 1, 7})), masked({DataType::Bool, {2, 1, 1, 7}}));
    EXPECT_EQ(masked(floats({3, 1, 7})), "error at input:3");
    EXPECT_EQ(masked(integers({7})), "error at input:3");
    EXPECT_EQ(masked(floats({1, 2, 6, 5, 7})), "error at input:3");
    EXPECT_EQ(text(infer(Attention, {}, {q, floats({2, 4, 7, 8}), v})), "error at input:1"); // 4 of 6 heads
    EXPECT_EQ(text(infer(Attention, {}, {q, floats({1, 3, 7, 8}), v})), "error at input:1");
    EXPECT_EQ(text(infer(Attention, {}, {q, k, floats({2, 3, 6, 8})})), "error at input:2");
    EXPECT_EQ(
        text(infer(Attention, {}, {floats({5, 8}), floats({7, 8}), floats({7, 8})})), "error at input:0");
    EXPECT_EQ(text(infer(Attention, {{"window", number(-1)}}, {q, k, v})), "error at attribute:window");
    EXPECT_EQ(text(infer(Attention, {{"dropout", 1.0}}, {q, k, v})), "error at attribute:dropout");
}

TEST(InferTypes, NormalisationsLossesAndReductions)
{
    using enum OperatorKind;
    EXPECT_EQ(text(infer(BatchMean, {}, {floats({2, 3, 4})})), "float32[3]");
    EXPECT_EQ(
        text(infer(BatchNormalize, {}, {floats({2, 3}), floats({3}), floats({3}), floats({3}), floats({2})})),
        "error at input:4");
    EXPECT_EQ(
        text(infer(LayerNorm, {{"axis", number(1)}}, {floats({2, 3, 4}), floats({3, 4})})), "float32[2 3 4]");
    EXPECT_EQ(
        text(infer(LayerNorm, {{"axis", number(2)}}, {floats({2, 3, 4}), floats({3})})), "error at input:1");
    EXPECT_EQ(text(infer(Softmax, {{"axis", number(2)}}, {floats({2, 3})})), "error at attribute:axis");
    EXPECT_EQ(
        text(infer(CrossEntropy, {{"reduction", std::string("sum")}}, {floats({2, 5, 3}), integers({2, 3})})),
        "float32[]");
    EXPECT_EQ(text(infer(
                  CrossEntropy, {{"reduction", std::string("none")}}, {floats({2, 5, 3}), integers({2, 3})})),
        "float32[2 3]");
    EXPECT_EQ(text(infer(CrossEntropy, {}, {floats({2, 5, 3}), integers({2, 5})})), "error at input:1");
    EXPECT_EQ(text(infer(CrossEntropy, {}, {floats({2, 5}), floats({2})})), "error at input:1");
    EXPECT_EQ(text(infer(CountValid, {}, {integers({2, 3})})), "float32[]");
    EXPECT_EQ(text(infer(ReduceSum, {{"axes", list({1})}, {"keepdims", number(0)}}, {floats({2, 3, 4})})),
        "float32[2 4]");
    EXPECT_EQ(text(infer(ReduceMax, {{"axes", list({0, 2})}}, {floats({2, 3, 4})})), "float32[1 3 1]");
    EXPECT_EQ(text(infer(ReduceMax, {{"axes", list({3})}}, {floats({2, 3, 4})})), "error at attribute:axes");
    EXPECT_EQ(
        text(infer(ArgMax, {{"axis", number(1)}, {"keepdims", number(0)}}, {floats({2, 3})})), "int64[2]");
}

TEST(InferTypes, Moves)
{
    using enum OperatorKind;
    const TensorType x = floats({2, 3, 4});
    EXPECT_EQ(text(infer(Reshape, {}, {x}, {floats({6, 4})})), "float32[6 4]");
    EXPECT_EQ(text(infer(Reshape, {}, {x}, {floats({5, 4})})), "error at output:0");
    EXPECT_EQ(text(infer(Reshape, {}, {x}, {floats({-6, -4})})), "error at output:0");
    EXPECT_EQ(text(infer(Reshape, {}, {x})), "error at output:0");
    EXPECT_EQ(text(infer(Transpose, {{"permutation", list({2, 0, 1})}}, {x})), "float32[4 2 3]");
    EXPECT_EQ(
        text(infer(Transpose, {{"permutation", list({2, 0, 0})}}, {x})), "error at attribute:permutation");
    EXPECT_EQ(text(infer(Expand, {}, {floats({3, 1})}, {floats({2, 3, 4})})), "float32[2 3 4]");
    EXPECT_EQ(text(infer(Expand, {}, {x}, {floats({2, 3, 5})})), "error at output:0");
    EXPECT_EQ(text(infer(Tile, {{"repeats", list({1, 2, 3})}}, {x})), "float32[2 6 12]");
    EXPECT_EQ(text(infer(Concat, {{"axis", number(1)}}, {x, floats({2, 5, 4})})), "float32[2 8 4]");
    EXPECT_EQ(text(infer(Concat, {{"axis", number(1)}}, {x, floats({3, 5, 4})})), "error at input:1");
    EXPECT_EQ(text(infer(Split, {{"axis", number(2)}, {"sizes", list({1, 3})}}, {x})),
        "float32[2 3 1], float32[2 3 3]");
    EXPECT_EQ(
        text(infer(Split, {{"axis", number(2)}, {"sizes", list({1, 2})}}, {x})), "error at attribute:sizes");
    const Pairs slice{{"starts", list({0, 2, 1})}, {"steps", list({1, -1, 2})}};
    EXPECT_EQ(text(infer(Slice, slice, {x}, {floats({2, 3, 2})})), "float32[2 3 2]");
    EXPECT_EQ(text(infer(Slice, slice, {x}, {floats({2, 3, 3})})), "error at output:0");
    EXPECT_EQ(text(infer(Pad, {{"pads", list({0, 1, -1, 0, 0, 0})}}, {x})), "float32[2 4 3]");
    EXPECT_EQ(text(infer(Pad, {{"pads", list({2, 0, 0, 0, 0, 0})}, {"mode", std::string("reflect")}}, {x})),
        "error at attribute:pads");
    EXPECT_EQ(text(infer(Gather, {{"axis", number(1)}}, {x, integers({5, 6})})), "float32[2 5 6 4]");
    EXPECT_EQ(text(infer(Gather, {{"axis", number(1)}}, {x, floats({5})})), "error at input:1");
    EXPECT_EQ(text(infer(Embedding, {}, {floats({9, 4}), integers({2, 3})})), "float32[2 3 4]");
    EXPECT_EQ(text(infer(GatherElements, {{"axis", number(1)}}, {x, integers({2, 7, 3})})), "float32[2 7 3]");
    EXPECT_EQ(
        text(infer(GatherElements, {{"axis", number(1)}}, {x, integers({3, 7, 3})})), "error at input:1");
    EXPECT_EQ(text(infer(GatherND, {{"batch_dims", number(1)}}, {x, integers({2, 5, 1})})), "float32[2 5 4]");
    EXPECT_EQ(text(infer(GatherND, {}, {x, integers({5, 4})})), "error at input:1");
    EXPECT_EQ(text(infer(ScatterND, {}, {x, integers({5, 2}), floats({5, 4})})), "float32[2 3 4]");
    EXPECT_EQ(text(infer(ScatterND, {}, {x, integers({5, 2}), floats({5, 3})})), "error at input:2");
    EXPECT_EQ(text(infer(OneHot, {{"axis", number(1)}, {"depth", number(7)}}, {integers({2, 3})})),
        "float32[2 7 3]");
    EXPECT_EQ(
        text(infer(TopK, {{"axis", number(2)}, {"k", number(3)}}, {x})), "float32[2 3 3], int64[2 3 3]");
    EXPECT_EQ(text(infer(TopK, {{"axis", number(2)}, {"k", number(5)}}, {x})), "error at attribute:k");
    const auto places = [](std::int64_t kept, std::int64_t groups, std::int64_t capacity) {
        return infer(NonZero,
            {{"kept", number(kept)}, {"group_axis", number(1)}, {"groups", number(groups)},
                {"capacity", number(capacity)}},
            {floats({3, 8})});
    };
    EXPECT_EQ(text(places(0, 2, 6)), "int64[2 6]");
    EXPECT_EQ(text(places(1, 2, 6)), "int64[3 1 6]");
    EXPECT_EQ(text(places(0, 3, 6)), "error at attribute:groups");
    EXPECT_EQ(text(places(0, 2, 5)), "error at attribute:capacity");
    EXPECT_EQ(text(places(2, 2, 6)), "error at attribute:kept");
    EXPECT_EQ(
        text(infer(DepthToSpace, {{"blocksize", number(2)}}, {floats({1, 8, 2, 3})})), "float32[1 2 4 6]");
    EXPECT_EQ(
        text(infer(SpaceToDepth, {{"blocksize", number(2)}}, {floats({1, 2, 4, 6})})), "float32[1 8 2 3]");
    EXPECT_EQ(text(infer(OperatorKind::Range, {}, {}, {integers({4})})), "int64[4]");
    EXPECT_EQ(text(infer(Fill, {}, {})), "error at output:0");
}

TEST(InferTypes, RecurrentAndOptimizer)
{
    using enum OperatorKind;
    EXPECT_EQ(text(infer(Lstm, {{"direction", std::string("bidirectional")}},
                  {floats({5, 3, 7}), floats({2, 8, 7}), floats({2, 8, 2})})),
        "float32[5 2 3 2], float32[2 3 2], float32[2 3 2]");
    EXPECT_EQ(
        text(infer(Gru, {{"layout", number(1)}}, {floats({3, 5, 7}), floats({1, 6, 7}), floats({1, 6, 2})})),
        "float32[3 5 1 2], float32[3 1 2]");
    EXPECT_EQ(
        text(infer(Rnn, {}, {floats({5, 3, 7}), floats({1, 2, 6}), floats({1, 2, 2})})), "error at input:1");
    EXPECT_EQ(text(infer(AdamWStep, {}, {floats({2}), floats({2}), floats({2}), floats({2})})),
        "float32[2], float32[2], float32[2]");
    EXPECT_EQ(text(infer(SgdStep, {}, {floats({2}), floats({2})})), "float32[2]");
}

TEST(InferTypes, MessagesNameTheInputAndTheExpectation)
{
    using enum OperatorKind;
    const auto types = infer(MatMul, {}, {floats({2, 3}), floats({4, 5})});
    ASSERT_FALSE(types);
    EXPECT_EQ(types.error().message,
        "MatMul's input 1 is float32[4 5]; expected 3 rows, as many as input 0, [2 3], has columns");
}

/// Whatever the arguments: an answer without overflow or crash, and one that `annotate` can take.
TEST(InferTypes, HostileArgumentsAreRefused)
{
    std::mt19937_64 random(11);
    const std::vector<std::int64_t> numbers{0, 1, 1, 2, 2, 3, 4, 6, -1, std::int64_t{1} << 31,
        std::int64_t{1} << 47, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()};
    const auto pick = [&] { return numbers[random() % (random() % 4 == 0 ? numbers.size() : 8)]; };
    const auto shape = [&] {
        Shape extents(random() % 5);
        for (auto &extent : extents)
            extent = pick();
        return extents;
    };
    const char *names[] = {
        "axis", "blocksize", "k", "depth", "group", "batch_dims", "batch_axis", "time_axis"};
    const char *lists[] = {"axes", "permutation", "repeats", "sizes", "starts", "steps", "pads", "strides",
        "dilations", "kernel_shape", "output_padding"};
    int accepted = 0;
    for (int trial = 0; trial < 60000; ++trial) {
        const auto kind = static_cast<OperatorKind>(random() % kOperatorKindCount);
        Attributes attributes;
        for (const char *name : names)
            attributes.set(name, pick());
        for (const char *name : lists) {
            if (random() % 2 == 0)
                attributes.set(name, shape());
        }
        attributes.set("equation", std::string(random() % 2 == 0 ? "ij,jk->ik" : "aa->a"));
        std::vector<TensorType> inputs(random() % 5);
        std::vector<bool> present(inputs.size());
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            inputs[i] = {static_cast<DataType>(random() % 3 == 0 ? random() % 10 : 0), shape()};
            present[i] = random() % 8 != 0;
        }
        std::vector<TensorType> declared(random() % 2);
        for (TensorType &type : declared)
            type.shape = shape();
        const auto types = inferTypes(kind, attributes, inputs, present, declared);
        if (!types) {
            EXPECT_FALSE(types.error().message.empty());
            // Not asked of `annotate`, but it holds: types that cannot be give a whole operator, no crash.
            annotate(kind, attributes, inputs, present, declared);
            continue;
        }
        ++accepted;
        const AnnotationOutcome outcome = annotate(kind, attributes, inputs, present, *types);
        EXPECT_EQ(outcome.annotation.inputs.size(), inputs.size());
        EXPECT_EQ(outcome.annotation.outputs.size(), types->size());
    }
    EXPECT_GT(accepted, 300);
}

} // namespace planloom
