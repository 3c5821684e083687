#include "engine/frontend/passes/fuse/fuse.h"

#include "engine/frontend/zoo/graph_builder.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>

namespace planloom {
namespace {

using testing_support::GraphRunner;
using testing_support::inDouble;

using Integers = std::vector<std::int64_t>;
using Kinds = std::vector<OperatorKind>;

struct Pattern {
    std::string name{};
    std::function<TensorId(GraphBuilder &, TensorId)> build{}; ///< From x [2 3 4].
    Kinds fused{};
};

std::ostream &operator<<(std::ostream &out, const Pattern &pattern)
{
    return out << pattern.name;
}

Kinds kindsOf(const Graph &graph)
{
    Kinds kinds;
    for (const Operator &op : graph.operators)
        kinds.push_back(op.kind);
    return kinds;
}

std::string text(const Kinds &kinds)
{
    std::string result;
    for (const OperatorKind kind : kinds)
        result += std::string(result.empty() ? "" : " ") + nameOf(kind);
    return result;
}

Attributes over(const Integers &axes, std::int64_t count)
{
    return attributesOf({{"axes", axes}, {"keepdims", 1}, {"count", count}});
}

Attributes sumOver(std::int64_t axis)
{
    return attributesOf({{"axes", Integers{axis}}, {"keepdims", 1}});
}

TensorId transposed(GraphBuilder &b, TensorId x, Integers permutation)
{
    using enum OperatorKind;
    return b.one(Transpose, {x}, attributesOf({{"permutation", std::move(permutation)}}));
}

TensorId slice(GraphBuilder &b, TensorId x, std::int64_t begin, std::int64_t extent)
{
    using enum OperatorKind;
    Shape out = b.shape(x);
    Integers starts(out.size(), 0);
    starts.back() = begin;
    out.back() = extent;
    return b.one(Slice, {x}, attributesOf({{"starts", starts}, {"steps", Integers(out.size(), 1)}}), {},
        {{DataType::Float32, out}});
}

/// As PyTorch exports torch.nn.LayerNorm; `square` and `divide` choose between equal ways to write it.
TensorId layerNorm(GraphBuilder &b, TensorId x, bool square, int divide)
{
    using enum OperatorKind;
    const TensorId centred = b.one(Sub, {x, b.one(ReduceMean, {x}, over({2}, 4))});
    const TensorId squared = square ? b.one(Mul, {centred, centred}) : b.one(Pow, {centred, b.scalar(2)});
    const TensorId variance = b.one(ReduceMean, {squared}, over({2}, 4));
    const TensorId sum = b.one(Add, {variance, b.scalar(1e-5F)});
    if (divide == 1)
        return b.one(Mul, {centred, b.one(Reciprocal, {b.one(Sqrt, {sum})})});
    if (divide == 2)
        return b.one(Mul, {b.one(Div, {b.scalar(1), b.one(Sqrt, {sum})}), centred});
    if (divide == 3)
        return b.one(Mul, {centred, b.one(Pow, {sum, b.scalar(-0.5F)})});
    return b.one(Div, {centred, b.one(Sqrt, {sum})});
}

TensorId rmsNorm(GraphBuilder &b, TensorId x, bool inverse)
{
    using enum OperatorKind;
    const TensorId mean = b.one(ReduceMean, {b.one(Pow, {x, b.scalar(2)})}, over({2}, 4));
    const TensorId root = b.one(Sqrt, {b.one(Add, {b.scalar(1e-6F), mean})});
    const TensorId y = inverse ? b.one(Mul, {x, b.one(Div, {b.scalar(1), root})}) : b.one(Div, {x, root});
    return b.one(Mul, {b.weight("scale", {4}), y});
}

TensorId erfPlusOne(GraphBuilder &b, TensorId x, bool multiply)
{
    using enum OperatorKind;
    const TensorId u =
        multiply ? b.one(Mul, {b.scalar(std::sqrt(0.5F)), x}) : b.one(Div, {x, b.scalar(std::sqrt(2.0F))});
    return b.one(Add, {b.one(Erf, {u}), b.scalar(1)});
}

TensorId tanhPlusOne(GraphBuilder &b, TensorId x, bool product)
{
    using enum OperatorKind;
    const TensorId cube = product ? b.one(Mul, {b.one(Mul, {x, x}), x}) : b.one(Pow, {x, b.scalar(3)});
    const TensorId inner = b.one(Add, {x, b.one(Mul, {cube, b.scalar(0.044715F)})});
    return b.one(Add, {b.scalar(1), b.one(Tanh, {b.one(Mul, {inner, b.scalar(0.7978845608F)})})});
}

TensorId rotated(GraphBuilder &b, TensorId x, bool split)
{
    using enum OperatorKind;
    TensorId front;
    TensorId back;
    if (split) {
        const auto halves = b.add(Split, {x}, attributesOf({{"axis", 2}, {"sizes", Integers{2, 2}}}));
        front = halves[0];
        back = halves[1];
    } else {
        front = slice(b, x, 0, 2);
        back = slice(b, x, 2, 2);
    }
    return b.one(Concat, {b.one(Neg, {back}), front}, attributesOf({{"axis", 2}}));
}

const std::vector<Pattern> &patterns()
{
    using enum OperatorKind;
    static const std::vector<Pattern> all{
        {"matmul",
            [](GraphBuilder &b, TensorId x) {
                return b.one(MatMul, {x, b.weight("w", {4, 5})});
            },
            {Linear}},
        {"matmul with transposed weight",
            [](GraphBuilder &b, TensorId x) {
                return b.one(MatMul, {x, transposed(b, b.weight("w", {5, 4}), {1, 0})});
            },
            {Linear}},
        {"matmul with transposed weight and bias",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y = b.one(MatMul, {x, transposed(b, b.weight("w", {5, 4}), {1, 0})});
                return b.one(Add, {b.weight("bias", {5}), y});
            },
            {Linear}},
        {"linear between reshapes",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y =
                    b.one(Linear, {b.reshape(x, {6, 4}), b.weight("w", {4, 5}), b.weight("bias", {5})});
                return b.reshape(y, {2, 3, 5});
            },
            {Linear}},
        {"linear between other reshapes",
            [](GraphBuilder &b, TensorId x) {
                return b.reshape(b.one(Linear, {b.reshape(x, {6, 4}), b.weight("w", {4, 5})}), {3, 2, 5});
            },
            {Reshape, Linear, Reshape}},
        {"matmul of two activations",
            [](GraphBuilder &b, TensorId x) {
                return b.one(MatMul, {x, transposed(b, x, {0, 2, 1})});
            },
            {Transpose, MatMul}},
        {"bias of another shape",
            [](GraphBuilder &b, TensorId x) {
                return b.one(Add, {b.one(MatMul, {x, b.weight("w", {4, 5})}), b.weight("bias", {3, 5})});
            },
            {Linear, Add}},
        {"layer norm", [](GraphBuilder &b, TensorId x) { return layerNorm(b, x, false, 0); }, {LayerNorm}},
        {"layer norm by reciprocal", [](GraphBuilder &b, TensorId x) { return layerNorm(b, x, true, 1); },
            {LayerNorm}},
        {"layer norm by 1 / root", [](GraphBuilder &b, TensorId x) { return layerNorm(b, x, true, 2); },
            {LayerNorm}},
        {"layer norm by power", [](GraphBuilder &b, TensorId x) { return layerNorm(b, x, false, 3); },
            {LayerNorm}},
        {"layer norm with two differences",
            [](GraphBuilder &b, TensorId x) {
                const TensorId mean = b.one(ReduceMean, {x}, over({2}, 4));
                const TensorId squared = b.one(Pow, {b.one(Sub, {x, mean}), b.scalar(2)});
                const TensorId sum =
                    b.one(Add, {b.one(ReduceMean, {squared}, over({2}, 4)), b.scalar(1e-5F)});
                return b.one(Div, {b.one(Sub, {x, mean}), b.one(Sqrt, {sum})});
            },
            {LayerNorm}},
        {"two differences of unlike means",
            [](GraphBuilder &b, TensorId x) {
                const TensorId mean = b.one(ReduceMean, {x}, over({1}, 3));
                const TensorId squared = b.one(Pow, {b.one(Sub, {x, mean}), b.scalar(2)});
                const TensorId sum =
                    b.one(Add, {b.one(ReduceMean, {squared}, over({2}, 4)), b.scalar(1e-5F)});
                return b.one(Div, {b.one(Sub, {x, mean}), b.one(Sqrt, {sum})});
            },
            {ReduceMean, Sub, Pow, ReduceMean, Add, Sub, Sqrt, Div}},
        {"affine layer norm",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y = b.one(Mul, {layerNorm(b, x, false, 0), b.weight("scale", {4})});
                return b.one(Add, {y, b.weight("bias", {4})});
            },
            {LayerNorm}},
        {"layer norm and a product of another shape",
            [](GraphBuilder &b, TensorId x) {
                return b.one(Mul, {layerNorm(b, x, false, 0), b.weight("scale", {3, 4})});
            },
            {LayerNorm, Mul}},
        {"rms norm", [](GraphBuilder &b, TensorId x) { return rmsNorm(b, x, false); }, {RmsNorm}},
        {"rms norm by 1 / root", [](GraphBuilder &b, TensorId x) { return rmsNorm(b, x, true); }, {RmsNorm}},
        {"gelu",
            [](GraphBuilder &b, TensorId x) {
                return b.one(Mul, {b.one(Mul, {x, erfPlusOne(b, x, false)}), b.scalar(0.5F)});
            },
            {Gelu}},
        {"gelu, half first",
            [](GraphBuilder &b, TensorId x) {
                return b.one(Mul, {b.one(Mul, {b.scalar(0.5F), x}), erfPlusOne(b, x, true)});
            },
            {Gelu}},
        {"gelu, half of the sum",
            [](GraphBuilder &b, TensorId x) {
                return b.one(Mul, {b.one(Div, {erfPlusOne(b, x, true), b.scalar(2)}), x});
            },
            {Gelu}},
        {"tanh gelu",
            [](GraphBuilder &b, TensorId x) {
                return b.one(Mul, {b.one(Mul, {x, b.scalar(0.5F)}), tanhPlusOne(b, x, false)});
            },
            {Gelu}},
        {"tanh gelu with products",
            [](GraphBuilder &b, TensorId x) {
                return b.one(Mul, {b.one(Mul, {x, tanhPlusOne(b, x, true)}), b.scalar(0.5F)});
            },
            {Gelu}},
        {"silu",
            [](GraphBuilder &b, TensorId x) {
                return b.one(Mul, {b.one(Sigmoid, {x}), x});
            },
            {Silu}},
        {"softmax",
            [](GraphBuilder &b, TensorId x) {
                const TensorId e = b.one(Exp, {x});
                return b.one(Div, {e, b.one(ReduceSum, {e}, sumOver(1))});
            },
            {Softmax}},
        {"softmax less its maximum",
            [](GraphBuilder &b, TensorId x) {
                const TensorId e = b.one(Exp, {b.one(Sub, {x, b.one(ReduceMax, {x}, sumOver(2))})});
                return b.one(Div, {e, b.one(ReduceSum, {e}, sumOver(2))});
            },
            {Softmax}},
        {"log of softmax",
            [](GraphBuilder &b, TensorId x) {
                return b.one(Log, {b.one(Softmax, {x}, attributesOf({{"axis", 2}}))});
            },
            {LogSoftmax}},
        {"rotary",
            [](GraphBuilder &b, TensorId x) {
                const TensorId straight = b.one(Mul, {x, b.buffer("cos", {3, 4})});
                return b.one(Add, {straight, b.one(Mul, {rotated(b, x, false), b.buffer("sin", {3, 4})})});
            },
            {Rotary}},
        {"rotary with split",
            [](GraphBuilder &b, TensorId x) {
                const TensorId straight = b.one(Mul, {b.buffer("cos", {3, 4}), x});
                return b.one(Add, {b.one(Mul, {b.buffer("sin", {3, 4}), rotated(b, x, true)}), straight});
            },
            {Rotary}},
        {"rotary of neighbours", // GPT-J
            [](GraphBuilder &b, TensorId x) {
                const auto column = [&](std::int64_t first, bool negative) {
                    const TensorId part = b.one(Slice, {x},
                        attributesOf({{"starts", Integers{0, 0, first}}, {"steps", Integers{1, 1, 2}}}), {},
                        {{DataType::Float32, {2, 3, 2}}});
                    return b.reshape(negative ? b.one(Neg, {part}) : part, {2, 3, 2, 1});
                };
                const TensorId stack =
                    b.one(Concat, {column(1, true), column(0, false)}, attributesOf({{"axis", 3}}));
                const TensorId turned = b.one(Mul, {b.reshape(stack, {2, 3, 4}), b.buffer("sin", {3, 4})});
                return b.one(Add, {b.one(Mul, {x, b.buffer("cos", {3, 4})}), turned});
            },
            {Rotary}},
        {"embedding",
            [](GraphBuilder &b, TensorId x) {
                const TensorId rows =
                    b.one(Gather, {b.weight("table", {7, 4}), b.input("tokens", {DataType::Int64, {3}})},
                        attributesOf({{"axis", 0}}));
                return b.one(Add, {x, rows});
            },
            {Embedding, Add}},
        {"gather of negative indices",
            [](GraphBuilder &b, TensorId x) {
                const TensorId rows = b.one(Gather,
                    {b.weight("table", {7, 4}), b.constant("tokens", integerData({3}, {0, -1, 2}))},
                    attributesOf({{"axis", 0}}));
                return b.one(Add, {x, rows});
            },
            {Gather, Add}},
        {"pick within each sample",
            [](GraphBuilder &b, TensorId x) {
                const TensorId own = b.constant("own", integerData({2, 1}, {0, 1}));
                const TensorId places = b.input("places", {DataType::Int64, {2, 1}});
                return b.one(GatherND, {x, b.one(Concat, {own, places}, attributesOf({{"axis", 1}}))},
                    attributesOf({{"batch_dims", 0}}));
            },
            {GatherND}},
        {"pick of two indices within each sample",
            [](GraphBuilder &b, TensorId x) {
                const TensorId own = b.constant("own", integerData({2, 1}, {0, 1}));
                const TensorId row = b.input("row", {DataType::Int64, {2, 1}});
                const TensorId column = b.input("column", {DataType::Int64, {2, 1}});
                return b.one(GatherND, {x, b.one(Concat, {own, row, column}, attributesOf({{"axis", 1}}))},
                    attributesOf({{"batch_dims", 0}}));
            },
            {Concat, GatherND}},
        {"pick within another sample",
            [](GraphBuilder &b, TensorId x) {
                const TensorId other = b.constant("other", integerData({2, 1}, {1, 0}));
                const TensorId places = b.input("places", {DataType::Int64, {2, 1}});
                return b.one(GatherND, {x, b.one(Concat, {other, places}, attributesOf({{"axis", 1}}))},
                    attributesOf({{"batch_dims", 0}}));
            },
            {Concat, GatherND}},
        {"token that all samples have",
            [](GraphBuilder &b, TensorId x) {
                const TensorId token =
                    b.one(Expand, {b.weight("token", {4})}, {}, {}, {{DataType::Float32, {2, 1, 4}}});
                const TensorId all = b.one(Concat, {token, x}, attributesOf({{"axis", 1}}));
                const TensorId placed = b.one(Add, {all, b.weight("positions", {1, 4, 4})});
                const TensorId first = b.one(Slice, {placed},
                    attributesOf({{"starts", Integers{0, 0, 0}}, {"steps", Integers{1, 1, 1}}}), {},
                    {{DataType::Float32, {1, 4, 4}}});
                return b.one(
                    Gather, {first, b.constant("place", integerData({}, {0}))}, attributesOf({{"axis", 1}}));
            },
            {Slice, Add, Reshape, Expand}},
        {"parts that are joined again",
            [](GraphBuilder &b, TensorId x) {
                std::vector<TensorId> parts =
                    b.add(Split, {x}, attributesOf({{"axis", 0}, {"sizes", Integers{1, 1}}}), {},
                        {{DataType::Float32, {1, 3, 4}}, {DataType::Float32, {1, 3, 4}}});
                for (TensorId &part : parts)
                    part = b.reshape(part, {3, 4});
                return b.one(Concat, parts, attributesOf({{"axis", 0}}));
            },
            {Reshape}},
        {"parts that are joined in another order",
            [](GraphBuilder &b, TensorId x) {
                const std::vector<TensorId> parts =
                    b.add(Split, {x}, attributesOf({{"axis", 0}, {"sizes", Integers{1, 1}}}), {},
                        {{DataType::Float32, {1, 3, 4}}, {DataType::Float32, {1, 3, 4}}});
                return b.one(Concat, {parts[1], parts[0]}, attributesOf({{"axis", 0}}));
            },
            {Split, Concat}},
        {"parts that are joined along another dimension",
            [](GraphBuilder &b, TensorId x) {
                std::vector<TensorId> parts =
                    b.add(Split, {x}, attributesOf({{"axis", 0}, {"sizes", Integers{1, 1}}}), {},
                        {{DataType::Float32, {1, 3, 4}}, {DataType::Float32, {1, 3, 4}}});
                for (TensorId &part : parts)
                    part = b.reshape(part, {3, 4});
                return b.one(Concat, parts, attributesOf({{"axis", 1}}));
            },
            {Split, Reshape, Reshape, Concat}},
        {"token that dropout draws for each sample",
            [](GraphBuilder &b, TensorId x) {
                const TensorId token =
                    b.one(Expand, {b.weight("token", {4})}, {}, {}, {{DataType::Float32, {2, 1, 4}}});
                const TensorId all = b.one(Concat, {token, x}, attributesOf({{"axis", 1}}));
                const TensorId dropped = b.one(Dropout, {all}, attributesOf({{"ratio", 0.5}, {"seed", 3}}));
                const TensorId second = b.one(Slice, {dropped},
                    attributesOf({{"starts", Integers{1, 0, 0}}, {"steps", Integers{1, 1, 1}}}), {},
                    {{DataType::Float32, {1, 4, 4}}});
                return b.one(
                    Gather, {second, b.constant("place", integerData({}, {0}))}, attributesOf({{"axis", 1}}));
            },
            {Expand, Concat, Dropout, Slice, Gather}},
        {"token of the first sample",
            [](GraphBuilder &b, TensorId x) {
                const TensorId first = b.one(Slice, {x},
                    attributesOf({{"starts", Integers{0, 0, 0}}, {"steps", Integers{1, 1, 1}}}), {},
                    {{DataType::Float32, {1, 3, 4}}});
                return b.one(
                    Gather, {first, b.constant("place", integerData({}, {0}))}, attributesOf({{"axis", 1}}));
            },
            {Slice, Gather}},
        {"cross entropy",
            [](GraphBuilder &b, TensorId x) {
                const TensorId logs = b.one(LogSoftmax, {b.reshape(x, {6, 4})}, attributesOf({{"axis", 1}}));
                return b.one(NegativeLogLikelihood, {logs, b.input("labels", {DataType::Int64, {6}})},
                    attributesOf({{"reduction", "sum"}}));
            },
            {Reshape, CrossEntropy}},
        {"nothing done",
            [](GraphBuilder &b, TensorId x) {
                TensorId y = b.one(Identity, {b.one(Tanh, {x})});
                y = b.one(Cast, {y}, {}, {}, {{DataType::Float32, {2, 3, 4}}});
                y = transposed(b, b.reshape(y, {2, 3, 4}), {0, 1, 2});
                y = b.one(Concat, {slice(b, y, 0, 4)}, attributesOf({{"axis", 0}}));
                return b.one(Abs, {y});
            },
            {Tanh, Abs}},
        {"reshapes in a row",
            [](GraphBuilder &b, TensorId x) {
                return b.reshape(b.reshape(b.reshape(x, {24}), {6, 4}), {3, 8});
            },
            {Reshape}},
        {"reshapes there and back",
            [](GraphBuilder &b, TensorId x) {
                return b.one(Abs, {b.reshape(b.reshape(b.one(Tanh, {x}), {24}), {2, 3, 4})});
            },
            {Tanh, Abs}},
    };
    return all;
}

Graph built(const Pattern &pattern, bool innerIsOutput = false)
{
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 3, 4}});
    const TensorId y = pattern.build(b, x);
    auto graph = b.finish({y});
    EXPECT_TRUE(graph) << describe(graph.error());
    if (!graph)
        return {};
    if (innerIsOutput) {
        for (const Operator &op : graph->operators) {
            if (op.outputs[0] != y)
                graph->outputs.push_back(op.outputs[0]);
        }
    }
    return *graph;
}

class Fuse : public testing::TestWithParam<Pattern>
{
};

TEST_P(Fuse, GivesTheKnownOperators)
{
    const Graph graph = fuseOperators(built(GetParam()));
    EXPECT_EQ(text(kindsOf(graph)), text(GetParam().fused));
}

/// Runs both on the same values; every output of the first must be made by the second too.
void expectSameValues(const Graph &before, Graph after)
{
    annotateOperators(after);
    const auto valid = validate(after);
    ASSERT_TRUE(valid) << describe(valid.error());
    GraphRunner first(inDouble(before));
    GraphRunner second(inDouble(after));
    second.takeFrom(first);
    ASSERT_TRUE(first.run());
    ASSERT_TRUE(second.run());
    ASSERT_EQ(before.outputs.size(), after.outputs.size());
    for (std::size_t i = 0; i < before.outputs.size(); ++i) {
        const std::vector<double> expected = first.all(before.outputs[i]);
        const std::vector<double> found = second.all(after.outputs[i]);
        ASSERT_EQ(expected.size(), found.size());
        for (std::size_t k = 0; k < expected.size(); ++k)
            EXPECT_NEAR(found[k], expected[k], 1e-6 * std::max(1.0, std::abs(expected[k])))
                << "element " << k;
    }
}

TEST_P(Fuse, KeepsTheValues)
{
    const Graph graph = built(GetParam());
    expectSameValues(graph, fuseOperators(graph));
}

TEST_P(Fuse, KeepsInnerValuesThatTheModelReturns)
{
    const Graph graph = built(GetParam(), true);
    expectSameValues(graph, fuseOperators(graph));
}

INSTANTIATE_TEST_SUITE_P(Patterns, Fuse, testing::ValuesIn(patterns()), [](const auto &info) {
    std::string name;
    for (const char letter : info.param.name)
        name += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '_';
    return name;
});

TEST(FuseGraph, KeepsTheValuesOfRandomStacksOfPatterns)
{
    using enum OperatorKind;
    const Shape shape{2, 3, 4};
    for (std::uint32_t seed = 0; seed < 100; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        GraphBuilder b;
        std::vector<TensorId> values{b.input("x", {DataType::Float32, shape})};
        std::vector<TensorId> outputs;
        for (int i = 0; i < 8; ++i) {
            const TensorId y =
                patterns()[random() % patterns().size()].build(b, values[random() % values.size()]);
            ASSERT_FALSE(b.failure()) << describe(*b.failure());
            if (b.shape(y) != shape || random() % 8 == 0)
                outputs.push_back(y);
            if (b.shape(y) == shape)
                values.push_back(b.one(Tanh, {y})); // keeps the numbers small
        }
        std::shuffle(values.begin(), values.end(), random);
        TensorId sum = values.front();
        for (std::size_t i = 1; i < values.size() && i < 4; ++i)
            sum = b.one(Add, {sum, values[i]});
        outputs.push_back(sum);
        const auto graph = b.finish(outputs);
        ASSERT_TRUE(graph) << describe(graph.error());
        const Graph fused = fuseOperators(*graph);
        EXPECT_LE(fused.operators.size(), graph->operators.size());
        expectSameValues(*graph, fused);
    }
}

TEST(FuseGraph, LeavesInnerValuesWithOtherUsersAlone)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 3}});
    const TensorId s = b.one(Sigmoid, {x});
    const TensorId y = b.one(Add, {b.one(Mul, {x, s}), s});
    auto graph = b.finish({y});
    ASSERT_TRUE(graph);
    EXPECT_EQ(text(kindsOf(fuseOperators(*graph))), "Sigmoid Mul Add");
}

/// Group normalisation of [2 4 3 5] as exporters without the operator write it.
Graph flattenedGroupNorm(std::int64_t groups, float ones)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 4, 3, 5}});
    const TensorId flat = b.reshape(x, {2, groups, 60 / groups}, "flat");
    const Attributes statistics = attributesOf({{"groups", groups}, {"count", 60 / groups}});
    const TensorId mean = b.one(BatchMean, {flat}, statistics);
    const TensorId variance = b.one(BatchVariance, {flat, mean}, statistics);
    const auto all = [&](const char *name, float value) {
        return b.constant(
            name, floatData({groups}, std::vector<float>(static_cast<std::size_t>(groups), value)));
    };
    const TensorId normalised =
        b.one(BatchNormalize, {flat, mean, variance, all("ones", ones), all("zeros", 0)},
            attributesOf({{"groups", groups}, {"epsilon", 1e-5}}));
    const TensorId back = b.reshape(normalised, {2, 4, 3, 5}, "back");
    const TensorId scaled = b.one(Mul, {b.weight("n.weight", {4, 1, 1}), back});
    const TensorId y = b.one(Add, {scaled, b.weight("n.bias", {4, 1, 1})});
    auto graph = b.finish({y});
    EXPECT_TRUE(graph) << describe(graph.error());
    return *graph;
}

TEST(FuseGraph, FindsGroupNormsThatWereFlattened)
{
    for (const std::int64_t groups : {1, 2, 4}) {
        const Graph graph = flattenedGroupNorm(groups, 1);
        const Graph fused = fuseOperators(graph);
        EXPECT_EQ(text(kindsOf(fused)), "BatchMean BatchVariance Reshape Reshape BatchNormalize");
        EXPECT_EQ(fused.operators.back().inputs[0], fused.inputs.front());
        EXPECT_EQ(fused.operators.back().attributes.integer("groups"), groups);
        expectSameValues(graph, fused);
    }
    // With another scale it is not that alone.
    EXPECT_EQ(text(kindsOf(fuseOperators(flattenedGroupNorm(2, 2)))),
        "Reshape BatchMean BatchVariance BatchNormalize Reshape Mul Add");
}

TEST(FuseGraph, KeepsWeightsAndSourcesAndNamesByModule)
{
    using enum OperatorKind;
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 4}});
    const TensorId w = b.weight("attn.c_attn.weight", {5, 4});
    const TensorId y = b.one(MatMul, {x, transposed(b, w, {1, 0})});
    const TensorId z = b.one(Add, {y, b.weight("attn.c_attn.bias", {5})});
    const TensorId out = b.one(Mul, {z, b.one(Sigmoid, {z})});
    auto graph = b.finish({out});
    ASSERT_TRUE(graph) << describe(graph.error());
    const char *names[] = {"/h.3/attn/c_attn/Transpose", "/h.3/attn/c_attn/MatMul", "/h.3/attn/c_attn/Add",
        "/h.3/attn/Sigmoid", "/h.3/attn/Mul"};
    for (std::size_t i = 0; i < graph->operators.size(); ++i)
        graph->operators[i].sources = {{names[i], nameOf(graph->operators[i].kind)}};
    const Graph fused = fuseOperators(*graph);
    ASSERT_EQ(text(kindsOf(fused)), "Linear Silu");
    EXPECT_EQ(fused.operators[0].name, "h.3.attn.c_attn");
    EXPECT_EQ(fused.operators[1].name, "h.3.attn.Silu");
    ASSERT_EQ(fused.operators[0].sources.size(), 3U);
    EXPECT_EQ(fused.operators[0].sources[0].name, names[0]);
    EXPECT_EQ(fused.operators[0].sources[2].name, names[2]);
    EXPECT_EQ(fused.operators[0].attributes.integer("transposed"), 1);
    EXPECT_EQ(fused.at(fused.operators[0].inputs[1]).type.shape, (Shape{5, 4}));
}

TEST(FuseGraph, ManyOperatorsOfOneModuleGetDistinctNames)
{
    using enum OperatorKind;
    GraphBuilder b;
    TensorId x = b.input("x", {DataType::Float32, {2, 4}});
    const TensorId w = b.weight("w", {4, 4});
    for (int i = 0; i < 2000; ++i)
        x = b.one(MatMul, {x, w});
    auto graph = b.finish({x});
    ASSERT_TRUE(graph);
    for (Operator &op : graph->operators)
        op.sources = {{"/model/" + op.name, "MatMul"}};
    Graph fused = fuseOperators(*graph);
    annotateOperators(fused);
    const auto valid = validate(fused);
    EXPECT_TRUE(valid) << describe(valid.error());
    EXPECT_EQ(fused.operators.size(), 2000U);
}

} // namespace
} // namespace planloom
