#include "engine/frontend/passes/projections/part_projections.h"

#include "engine/frontend/passes/fuse/fuse.h"
#include "engine/frontend/training/autodiff.h"
#include "engine/frontend/zoo/graph_builder.h"
#include "tests/engine/frontend/run_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <utility>

namespace planloom {
namespace {

using testing_support::GraphRunner;

using Extents = std::vector<std::int64_t>;

struct Projection {
    std::string name{};
    std::function<TensorId(GraphBuilder &, TensorId)> build{}; ///< From x [2 3 4].
    std::vector<Shape> weights{}; ///< Of what becomes of the weights, by name.
};

std::ostream &operator<<(std::ostream &out, const Projection &projection)
{
    return out << projection.name;
}

TensorId project(GraphBuilder &b, TensorId x, std::int64_t n, bool transposed = false)
{
    const TensorId w = b.weight("w", transposed ? Shape{n, 4} : Shape{4, n});
    return b.one(OperatorKind::Linear, {x, w, b.weight("w.bias", {n})},
        attributesOf({{"transposed", transposed ? 1 : 0}}));
}

std::vector<TensorId> splitInto(GraphBuilder &b, TensorId x, std::int64_t axis, const Extents &sizes)
{
    auto pieces = b.add(OperatorKind::Split, {x}, attributesOf({{"axis", axis}, {"sizes", sizes}}));
    pieces.resize(sizes.size());
    return pieces;
}

TensorId pieceOf(GraphBuilder &b, TensorId x, std::size_t axis, std::int64_t begin, std::int64_t extent)
{
    Shape out = b.shape(x);
    Extents starts(out.size(), 0);
    starts[axis] = begin;
    out[axis] = extent;
    return b.one(OperatorKind::Slice, {x},
        attributesOf({{"starts", starts}, {"steps", Extents(out.size(), 1)}}), {},
        {{DataType::Float32, out}});
}

TensorId permuted(GraphBuilder &b, TensorId x, Extents permutation)
{
    return b.one(OperatorKind::Transpose, {x}, attributesOf({{"permutation", std::move(permutation)}}));
}

TensorId selected(GraphBuilder &b, TensorId x, std::int64_t axis, std::int64_t place)
{
    return b.one(OperatorKind::Gather, {x, b.constant("place", integerData({}, {place}))},
        attributesOf({{"axis", axis}}));
}

/// q k + v, element by element: what tells the three apart.
TensorId mixed(GraphBuilder &b, TensorId q, TensorId k, TensorId v)
{
    return b.one(OperatorKind::Add, {b.one(OperatorKind::Mul, {q, k}), v});
}

TensorId headsOf(GraphBuilder &b, TensorId x) // [2 3 6] -> [2 2 3 3]
{
    return permuted(b, b.reshape(x, {2, 3, 2, 3}), {0, 2, 1, 3});
}

const std::vector<Projection> &projections()
{
    using enum OperatorKind;
    static const std::vector<Projection> all{
        {"split, then heads",
            [](GraphBuilder &b, TensorId x) {
                const auto p = splitInto(b, project(b, x, 18), 2, {6, 6, 6});
                return mixed(b, headsOf(b, p[0]), headsOf(b, p[1]), headsOf(b, p[2]));
            },
            {{4, 3, 6}, {3, 6}}},
        {"split, used as it is",
            [](GraphBuilder &b, TensorId x) {
                const auto p = splitInto(b, project(b, x, 10, true), 2, {5, 5});
                return b.one(Mul, {b.one(Silu, {p[0]}), p[1]});
            },
            {{2, 5, 4}, {2, 5}}},
        {"a piece is used by a reshape and by another",
            [](GraphBuilder &b, TensorId x) {
                const auto p = splitInto(b, project(b, x, 12), 2, {6, 6});
                return b.one(Add,
                    {b.reshape(b.one(Tanh, {p[0]}), {2, 18}),
                        b.one(Mul, {b.reshape(p[0], {2, 18}), b.reshape(p[1], {2, 18})})});
            },
            {{4, 2, 6}, {2, 6}}},
        {"a bias that is computed",
            [](GraphBuilder &b, TensorId x) {
                const TensorId bias =
                    b.one(Concat, {b.weight("q.bias", {6}), b.weight("k.bias", {6}), b.weight("v.bias", {6})},
                        attributesOf({{"axis", 0}}));
                const TensorId y = b.one(Linear, {x, b.weight("w", {4, 18}), bias});
                const auto p = splitInto(b, y, 2, {6, 6, 6});
                return mixed(b, headsOf(b, p[0]), headsOf(b, p[1]), headsOf(b, p[2]));
            },
            {{6}, {6}, {6}, {4, 18}}},
        {"slices",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y = project(b, x, 18);
                return mixed(b, pieceOf(b, y, 2, 0, 6), pieceOf(b, y, 2, 12, 6), pieceOf(b, y, 2, 6, 6));
            },
            {{4, 3, 6}, {3, 6}}},
        {"slices of some",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y = project(b, x, 18);
                return b.one(Mul, {pieceOf(b, y, 2, 0, 6), pieceOf(b, y, 2, 12, 6)});
            },
            {{4, 3, 6}, {3, 6}}},
        {"reshaped into three, turned, selected",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y =
                    permuted(b, b.reshape(project(b, x, 18, true), {2, 3, 3, 2, 3}), {2, 0, 3, 1, 4});
                return mixed(b, selected(b, y, 0, 0), selected(b, y, 0, 1), selected(b, y, 0, 2));
            },
            {{3, 6, 4}, {3, 6}}},
        {"as a packed in_proj",
            [](GraphBuilder &b, TensorId x) {
                TensorId y = b.reshape(project(b, x, 18, true), {2, 3, 3, 6});
                y = permuted(b, b.reshape(y, {1, 2, 3, 3, 6}), {3, 1, 2, 0, 4});
                y = b.reshape(y, {3, 2, 3, 6});
                return mixed(b, selected(b, y, 0, 2), selected(b, y, 0, 0), selected(b, y, 0, 1));
            },
            {{3, 6, 4}, {3, 6}}},
        {"heads of all parts in one dimension",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y = permuted(b, b.reshape(project(b, x, 18), {2, 3, 6, 3}), {0, 2, 1, 3});
                return mixed(b, pieceOf(b, y, 1, 0, 2), pieceOf(b, y, 1, 2, 2), pieceOf(b, y, 1, 4, 2));
            },
            {{4, 3, 6}, {3, 6}}},
        {"behind elementwise operators, a reshape and a transpose",
            [](GraphBuilder &b, TensorId x) {
                TensorId y = b.one(Mul, {b.one(Tanh, {project(b, x, 12)}), b.scalar(2)});
                y = permuted(b, b.reshape(y, {6, 1, 12}), {2, 0, 1});
                const auto p = splitInto(b, y, 0, {4, 4, 4});
                return mixed(b, p[0], p[1], p[2]);
            },
            {{4, 3, 4}, {3, 4}}},
        {"one weight of two products",
            [](GraphBuilder &b, TensorId x) {
                const TensorId w = b.weight("w", {4, 8});
                const auto p = splitInto(b, b.one(Linear, {x, w}), 2, {4, 4});
                const auto q = splitInto(b, b.one(Linear, {b.one(Mul, p), w}), 2, {4, 4});
                return b.one(Mul, q);
            },
            {{4, 2, 4}}},
        {"one weight of products that differ",
            [](GraphBuilder &b, TensorId x) {
                const TensorId w = b.weight("w", {4, 12});
                const auto p = splitInto(b, b.one(Linear, {x, w}), 2, {4, 4, 4});
                const auto q = splitInto(b, b.one(Linear, {p[0], w}), 2, {6, 6});
                return b.one(Concat, {b.one(Mul, q), b.one(Linear, {p[1], w})}, attributesOf({{"axis", 2}}));
            },
            {{4, 12}}},
        {"unequal parts, two of them alike",
            [](GraphBuilder &b, TensorId x) {
                const auto p = splitInto(b, project(b, x, 12), 2, {6, 3, 3});
                return b.one(Concat, {p[0], b.one(Mul, {p[1], p[2]})}, attributesOf({{"axis", 2}}));
            },
            {{4, 6}, {4, 2, 3}, {6}, {2, 3}}},
        {"unequal parts, rows of the weight",
            [](GraphBuilder &b, TensorId x) {
                const auto p = splitInto(b, project(b, x, 14, true), 2, {2, 8, 4});
                return b.one(Concat, {p[2], p[0], p[1]}, attributesOf({{"axis", 2}}));
            },
            {{2, 4}, {8, 4}, {4, 4}, {2}, {8}, {4}}},
        {"unequal slices, one of them twice",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y = project(b, x, 12);
                const TensorId q = pieceOf(b, y, 2, 0, 8);
                const TensorId k = b.one(Tanh, {pieceOf(b, y, 2, 8, 4)});
                return b.one(Concat, {k, pieceOf(b, y, 2, 8, 4), q}, attributesOf({{"axis", 2}}));
            },
            {{4, 8}, {4, 4}, {8}, {4}}},
        {"more heads of queries than of keys and values",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y = permuted(b, b.reshape(project(b, x, 24), {2, 3, 8, 3}), {0, 2, 1, 3});
                const TensorId k =
                    b.one(Tile, {pieceOf(b, y, 1, 4, 2)}, attributesOf({{"repeats", Extents{1, 2, 1, 1}}}),
                        {}, {{DataType::Float32, {2, 4, 3, 3}}});
                const TensorId v =
                    b.one(Tile, {pieceOf(b, y, 1, 6, 2)}, attributesOf({{"repeats", Extents{1, 2, 1, 1}}}),
                        {}, {{DataType::Float32, {2, 4, 3, 3}}});
                return mixed(b, pieceOf(b, y, 1, 0, 4), k, v);
            },
            {{4, 12}, {4, 2, 6}, {12}, {2, 6}}},
        {"one head of keys and values",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y = b.reshape(project(b, x, 18, true), {2, 3, 6, 3});
                const TensorId q = pieceOf(b, y, 2, 0, 4);
                const TensorId v = b.one(
                    Gather, {y, b.constant("place", integerData({1}, {-1}))}, attributesOf({{"axis", 2}}));
                return mixed(b, q, b.reshape(selected(b, y, 2, 4), {2, 3, 1, 3}), v);
            },
            {{12, 4}, {2, 3, 4}, {12}, {2, 3}}},
        {"unequal parts behind elementwise operators, a reshape and a transpose",
            [](GraphBuilder &b, TensorId x) {
                TensorId y = b.one(Mul, {b.one(Tanh, {project(b, x, 12)}), b.scalar(2)});
                y = permuted(b, b.reshape(y, {6, 1, 12}), {2, 0, 1});
                return b.one(Concat, splitInto(b, y, 0, {4, 1, 7}), attributesOf({{"axis", 0}}));
            },
            {{4, 4}, {4, 1}, {4, 7}, {4}, {1}, {7}}},
        {"unequal parts of an unequal part",
            [](GraphBuilder &b, TensorId x) {
                const auto p = splitInto(b, project(b, x, 12), 2, {2, 10});
                const auto q = splitInto(b, b.one(Tanh, {p[1]}), 2, {7, 3});
                return b.one(Concat, {q[1], p[0], q[0]}, attributesOf({{"axis", 2}}));
            },
            {{4, 2}, {2}, {4, 7}, {4, 3}, {7}, {3}}},
        {"one weight of two products, unequal parts",
            [](GraphBuilder &b, TensorId x) {
                const TensorId w = b.weight("w", {4, 6});
                const auto p = splitInto(b, b.one(Linear, {x, w}), 2, {4, 2});
                const auto q = splitInto(b, b.one(Linear, {p[0], w}), 2, {4, 2});
                return b.one(Concat, {q[0], p[1], q[1]}, attributesOf({{"axis", 2}}));
            },
            {{4, 4}, {4, 2}}},
        {"one weight of products with other unequal parts",
            [](GraphBuilder &b, TensorId x) {
                const TensorId w = b.weight("w", {4, 6});
                const auto p = splitInto(b, b.one(Linear, {x, w}), 2, {4, 2});
                const auto q = splitInto(b, b.one(Linear, {p[0], w}), 2, {1, 5});
                return b.one(Concat, {q[0], p[1], q[1]}, attributesOf({{"axis", 2}}));
            },
            {{4, 6}}},
        {"unequal slices that overlap",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y = project(b, x, 12);
                return b.one(
                    Concat, {pieceOf(b, y, 2, 0, 8), pieceOf(b, y, 2, 6, 6)}, attributesOf({{"axis", 2}}));
            },
            {{4, 12}, {12}}},
        {"unequal slices that leave something over",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y = project(b, x, 12);
                return b.one(
                    Concat, {pieceOf(b, y, 2, 0, 8), pieceOf(b, y, 2, 8, 3)}, attributesOf({{"axis", 2}}));
            },
            {{4, 12}, {12}}},
        {"used whole, too",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y = project(b, x, 12);
                const auto p = splitInto(b, y, 2, {6, 6});
                return b.one(Concat, {y, p[0], p[1]}, attributesOf({{"axis", 2}}));
            },
            {{4, 12}, {12}}},
        {"halves of each head",
            [](GraphBuilder &b, TensorId x) {
                const TensorId y = b.reshape(project(b, x, 12), {2, 3, 3, 4});
                return b.one(Mul, {pieceOf(b, y, 3, 0, 2), pieceOf(b, y, 3, 2, 2)});
            },
            {{4, 12}, {12}}},
        {"heads that nobody takes apart",
            [](GraphBuilder &b, TensorId x) { return headsOf(b, project(b, x, 6)); }, {{4, 6}, {6}}},
    };
    return all;
}

class Projections : public testing::TestWithParam<Projection>
{
};

TEST_P(Projections, GetADimensionForTheirPartsAndComputeTheSame)
{
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {2, 3, 4}});
    const TensorId y = b.one(OperatorKind::Mul, {GetParam().build(b, x), b.scalar(0.5F)}, {}, "last");
    Extents axes;
    for (std::size_t d = 0; d < b.shape(y).size(); ++d)
        axes.push_back(static_cast<std::int64_t>(d));
    const TensorId squares = b.one(OperatorKind::Mul, {y, y});
    const TensorId loss =
        b.one(OperatorKind::ReduceSum, {squares}, attributesOf({{"axes", axes}, {"keepdims", 0}}), "loss");
    const auto built = b.finish({y}, loss);
    ASSERT_TRUE(built) << describe(built.error());

    Graph parted = *built;
    const std::int32_t changed = partProjections(parted);
    annotateOperators(parted);
    const auto valid = validate(parted);
    ASSERT_TRUE(valid) << describe(valid.error());
    std::vector<Shape> weights;
    bool different = false;
    for (const Tensor &tensor : parted.tensors) {
        if (tensor.role != TensorRole::Weight)
            continue;
        weights.push_back(tensor.type.shape);
        different = different || !tensor.fileShape.empty() || tensor.filePart;
    }
    EXPECT_EQ(weights, GetParam().weights);
    EXPECT_EQ(changed > 0, different);
    EXPECT_EQ(partProjections(parted), 0); // nothing is left to do

    Graph before = *built;
    Graph after = parted;
    ASSERT_TRUE(appendBackward(before));
    ASSERT_TRUE(appendBackward(after));
    GraphRunner expected(before);
    GraphRunner made(after);
    made.takeFrom(expected);
    ASSERT_TRUE(expected.run());
    ASSERT_TRUE(made.run());
    const auto expectSame = [&](TensorId own, std::int64_t element, TensorId id, std::int64_t wanted) {
        const double value = expected.get(id, wanted);
        ASSERT_NEAR(made.get(own, element), value, 1e-4 * std::max(1.0, std::abs(value)))
            << before.at(id).name << wanted;
    };
    for (const TensorId id : {y, loss}) {
        const TensorId own = made.find(before.at(id).name);
        ASSERT_EQ(after.at(own).type.shape, before.at(id).type.shape);
        for (std::int64_t k = 0; k < elementCount(before.at(id).type.shape); ++k)
            expectSame(own, k, id, k);
    }
    // Gradients lie in files as their weights do.
    for (std::size_t i = 0; i < before.tensors.size(); ++i) {
        const Tensor &tensor = before.tensors[i];
        if (tensor.role != TensorRole::Gradient || before.at(tensor.of).role != TensorRole::Weight)
            continue;
        const TensorId id{static_cast<std::int32_t>(i)};
        std::int64_t found = 0;
        for (std::size_t k = 0; k < after.tensors.size(); ++k) {
            const Tensor &own = after.tensors[k];
            if (own.role != TensorRole::Gradient || !own.of
                || nameInFiles(after.at(own.of)) != before.at(tensor.of).name)
                continue;
            const FilePart *part = after.at(own.of).filePart ? &*after.at(own.of).filePart : nullptr;
            EXPECT_EQ(part ? part->shape : shapeInFiles(after, own.of), tensor.type.shape);
            const FileRuns runs = runsInFile(after.at(own.of));
            for (std::int64_t e = 0; e < runs.count * runs.length; ++e)
                expectSame({static_cast<std::int32_t>(k)}, e, id,
                    runs.first + e / runs.length * runs.stride + e % runs.length);
            found += runs.count * runs.length;
        }
        EXPECT_EQ(found, elementCount(tensor.type.shape)) << tensor.name;
    }
}

INSTANTIATE_TEST_SUITE_P(All, Projections, testing::ValuesIn(projections()), [](const auto &info) {
    std::string name = info.param.name;
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == ' ' || c == ','; }, '_');
    return name;
});

TEST(Projections, AreReadFromFilesAsTheyAre)
{
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {3, 2}});
    const TensorId w = b.weight("w", {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
    const auto p = splitInto(b, b.one(OperatorKind::Linear, {x, w}), 1, {2, 2});
    auto graph = b.finish({b.one(OperatorKind::Mul, p)});
    ASSERT_TRUE(graph) << describe(graph.error());
    const auto bytes = graph->at(w).data->bytes;
    EXPECT_EQ(partProjections(*graph), 1);
    EXPECT_EQ(graph->at(w).type.shape, (Shape{2, 2, 2}));
    EXPECT_EQ(graph->at(w).fileShape, (Shape{2, 4}));
    EXPECT_EQ(graph->at(w).data->type, graph->at(w).type);
    EXPECT_EQ(graph->at(w).data->bytes, bytes);
}

TEST(Projections, PartsHaveTheirValuesAndSayWhereTheyLieInFiles)
{
    GraphBuilder b;
    const TensorId x = b.input("x", {DataType::Float32, {3, 2}});
    const TensorId w = b.weight("w", {2, 4}, {0, 1, 2, 3, 4, 5, 6, 7});
    const auto p = splitInto(b, b.one(OperatorKind::Linear, {x, w}), 1, {1, 3});
    // A piece that the model gives out keeps its name.
    auto graph = b.finish({p[1], b.one(OperatorKind::Mul, p)});
    ASSERT_TRUE(graph) << describe(graph.error());
    const std::string given = graph->at(p[1]).name;
    EXPECT_EQ(partProjections(*graph), 1);
    annotateOperators(*graph);
    ASSERT_TRUE(validate(*graph)) << describe(validate(*graph).error());
    EXPECT_EQ(graph->at(graph->outputs[0]).name, given);
    std::vector<std::pair<std::string, std::vector<float>>> parts;
    for (const Tensor &tensor : graph->tensors) {
        if (tensor.role != TensorRole::Weight)
            continue;
        ASSERT_TRUE(tensor.data && tensor.filePart) << tensor.name;
        std::vector<float> values(tensor.data->bytes.size() / sizeof(float));
        std::memcpy(values.data(), tensor.data->bytes.data(), tensor.data->bytes.size());
        parts.emplace_back(tensor.name, values);
        EXPECT_EQ(*tensor.filePart, (FilePart{"w", {2, 4}, 1, parts.size() == 1 ? 0 : 1}));
    }
    EXPECT_EQ(parts,
        (std::vector<std::pair<std::string, std::vector<float>>>{
            {"w.part.0", {0, 4}}, {"w.part.1", {1, 2, 3, 5, 6, 7}}}));
}

} // namespace
} // namespace planloom
