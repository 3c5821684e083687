#include "engine/graph/annotation/partition.h"
#include "engine/graph/operators/catalogue.h"
#include "tests/engine/graph/parts_for_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

namespace planloom {

namespace {

/// A graph of one operator with tensors of these shapes.
Graph oneOperator(std::string_view text, const std::vector<Shape> &inputs, const std::vector<Shape> &outputs)
{
    Graph graph;
    Operator op;
    op.name = "op";
    op.annotation = parsed(text, inputs, outputs);
    const auto add = [&](const Shape &shape, TensorRole role) {
        const TensorId id{static_cast<std::int32_t>(graph.tensors.size())};
        Tensor tensor;
        tensor.name = "t" + std::to_string(id.index);
        tensor.type.shape = shape;
        tensor.role = role;
        graph.tensors.push_back(tensor);
        return id;
    };
    for (const Shape &shape : inputs)
        op.inputs.push_back(add(shape, TensorRole::Weight));
    for (const Shape &shape : outputs)
        op.outputs.push_back(add(shape, TensorRole::Activation));
    graph.operators.push_back(op);
    return graph;
}

Split cut(const Annotation &annotation, std::string_view name, std::int32_t parts)
{
    return {.kind = SplitKind::Dimension,
        .dimension = findDimension(annotation, name).value_or(-1),
        .parts = parts};
}

std::string errorOf(const Operator &op, const Partition &partition)
{
    const auto result = checkPartition(op, partition);
    if (result) {
        ADD_FAILURE() << "legal: " << toString(op.annotation, partition);
        return {};
    }
    EXPECT_EQ(result.error().code, ErrorCode::InvalidInput);
    return describe(result.error());
}

/// The elements of a box, as row-major offsets.
std::vector<std::int64_t> offsets(const IndexMask &mask, const Shape &shape)
{
    std::vector<std::int64_t> result{0};
    for (std::size_t i = 0; i < shape.size(); ++i) {
        std::vector<std::int64_t> next;
        for (const std::int64_t offset : result) {
            for (std::int64_t j = mask.ranges[i].begin; j < mask.ranges[i].end; ++j)
                next.push_back(offset * shape[i] + j);
        }
        result = std::move(next);
    }
    return result;
}

const std::vector<Shape> kMatMulInputs{{4, 6, 8}, {8, 10}};
const std::vector<Shape> kMatMulOutputs{{4, 6, 10}};

Graph matMul()
{
    Graph graph = oneOperator("b m k+, k+ n -> b m n", kMatMulInputs, kMatMulOutputs);
    graph.operators[0].annotation.linearInputs = {0};
    return graph;
}

TEST(RoundedShares, AreAlikeButForTheLastUnlessItWouldHaveNone)
{
    using Sizes = std::vector<std::int64_t>;
    EXPECT_EQ(roundedShares(50257, 2), (Sizes{25129, 25128}));
    EXPECT_EQ(roundedShares(50257, 3), (Sizes{16753, 16753, 16751}));
    EXPECT_EQ(roundedShares(12, 8), (Sizes{2, 2, 2, 2, 1, 1, 1, 1}));
    EXPECT_EQ(roundedShares(5, 4), (Sizes{2, 1, 1, 1}));
    for (const auto &[size, parts] : {std::pair{8, 4}, {3, 4}, {7, 1}})
        EXPECT_TRUE(roundedShares(size, parts).empty());
    for (std::int64_t size = 2; size < 40; ++size)
        for (std::int32_t parts = 2; parts <= size; ++parts) {
            const Sizes sizes = roundedShares(size, parts);
            if (size % parts == 0)
                continue;
            EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0}), size);
            EXPECT_EQ(sizes.front(), (size + parts - 1) / parts);
            EXPECT_GT(*std::min_element(sizes.begin(), sizes.end()), 0);
        }
}

} // namespace

TEST(Partition, OfASpatialDimensionCutsInputAndOutput)
{
    const Graph graph = matMul();
    const Operator &op = graph.operators[0];
    const Partition partition{{cut(op.annotation, "m", 2)}};
    ASSERT_TRUE(checkPartition(op, partition));
    EXPECT_EQ(partCount(partition), 2);
    EXPECT_EQ(toString(inputView(graph, op, partition, 1, 0)), "[0:4 3:6 0:8]");
    EXPECT_EQ(toString(inputView(graph, op, partition, 1, 1)), "[0:8 0:10]");
    EXPECT_EQ(toString(outputView(graph, op, partition, 1, 0)), "[0:4 3:6 0:10]");
}

TEST(Partition, OfAReducedDimensionMakesSummands)
{
    const Graph graph = matMul();
    const Operator &op = graph.operators[0];
    const Partition partition{
        {cut(op.annotation, "k", 2), cut(op.annotation, "n", 5), cut(op.annotation, "k", 2)}};
    ASSERT_TRUE(checkPartition(op, partition));
    // Part 13 = (1, 1, 1): k's second half's second half, n's second fifth.
    EXPECT_EQ(toString(inputView(graph, op, partition, 13, 0)), "[0:4 0:6 6:8]");
    EXPECT_EQ(toString(inputView(graph, op, partition, 13, 1)), "[6:8 2:4]");
    EXPECT_EQ(toString(outputView(graph, op, partition, 13, 0)), "[0:4 0:6 2:4] 3/4");
    EXPECT_EQ(toString(op.annotation, partition), "k+:2 n:5 k+:2");
}

TEST(Partition, OfTheValueDividesLinearInputsAndOutputs)
{
    const Graph graph = matMul();
    const Operator &op = graph.operators[0];
    const Partition partition{{Split{.kind = SplitKind::Replicate, .parts = 3},
        Split{.kind = SplitKind::Value, .parts = 2}, cut(op.annotation, "k", 4)}};
    ASSERT_TRUE(checkPartition(op, partition));
    // Part 14 = (1, 1, 2).
    EXPECT_EQ(toString(inputView(graph, op, partition, 14, 0)), "[0:4 0:6 4:6] 1/2");
    EXPECT_EQ(toString(inputView(graph, op, partition, 14, 1)), "[4:6 0:10]");
    EXPECT_EQ(toString(outputView(graph, op, partition, 14, 0)), "[0:4 0:6 0:10] 6/8");
    const PartBox box = partBox(op, partition, 14);
    EXPECT_EQ(box.value, (ValueMask{1, 2}));
    EXPECT_EQ(box.replica, 1);
    EXPECT_EQ(box.ranges, (std::vector<Range>{{0, 4}, {0, 6}, {4, 6}, {0, 10}}));
    EXPECT_EQ(toString(op.annotation, partition), "replicate:3 value:2 k+:4");
}

TEST(Partition, NestedSplitsDivideWhatIsLeft)
{
    const Graph graph = matMul();
    const Operator &op = graph.operators[0];
    Split uneven = cut(op.annotation, "m", 2);
    uneven.sizes = {4, 2};
    const Partition partition{{uneven, cut(op.annotation, "m", 2)}};
    ASSERT_TRUE(checkPartition(op, partition));
    std::vector<std::string> rows;
    for (std::int32_t part = 0; part < partCount(partition); ++part)
        rows.push_back(toString(outputView(graph, op, partition, part, 0)));
    EXPECT_EQ(rows,
        (std::vector<std::string>{"[0:4 0:2 0:10]", "[0:4 2:4 0:10]", "[0:4 4:5 0:10]", "[0:4 5:6 0:10]"}));
    EXPECT_EQ(toString(op.annotation, partition), "m:(4 2) m:2");
}

TEST(Partition, StaysWithinTheMicroBatch)
{
    const Graph graph = matMul();
    const Operator &op = graph.operators[0];
    const Partition partition{{cut(op.annotation, "b", 2)}};
    const std::vector<Range> outer{{2, 4}, {0, 6}, {0, 8}, {0, 10}};
    EXPECT_EQ(toString(outputView(graph, op, partition, 0, 0, outer)), "[2:3 0:6 0:10]");
    EXPECT_EQ(toString(outputView(graph, op, partition, 1, 0, outer)), "[3:4 0:6 0:10]");
    EXPECT_EQ(toString(outputView(graph, op, Partition{}, 0, 0, outer)), "[2:4 0:6 0:10]");
}

TEST(Partition, OfACompoundCutsWholeBlocks)
{
    const Graph graph = oneOperator("a (b 64) -> a b 64", {{8, 1024}}, {{8, 16, 64}});
    const Operator &op = graph.operators[0];
    const Partition partition{{cut(op.annotation, "b", 4)}};
    ASSERT_TRUE(checkPartition(op, partition));
    EXPECT_EQ(toString(inputView(graph, op, partition, 2, 0)), "[0:8 512:768]");
    EXPECT_EQ(toString(outputView(graph, op, partition, 2, 0)), "[0:8 8:12 0:64]");
}

TEST(Partition, LeavesOpaqueTensorsWholeAndAbsentOnesAbsent)
{
    Graph graph = oneOperator("?, a, ? -> a", {{3, 5}, {4}, {}}, {{4}});
    graph.operators[0].inputs[2] = {};
    const Operator &op = graph.operators[0];
    const Partition partition{{cut(op.annotation, "a", 2)}};
    EXPECT_EQ(toString(inputView(graph, op, partition, 1, 0)), "[0:3 0:5]");
    EXPECT_FALSE(inputView(graph, op, partition, 1, 2).tensor);
}

TEST(Partition, ChecksNameTheIdentifierAndTheSizes)
{
    const Graph graph = matMul();
    Operator op = graph.operators[0];
    const std::string indivisible = errorOf(op, {{cut(op.annotation, "m", 4)}});
    EXPECT_NE(indivisible.find("'m' of size 6 into 4"), std::string::npos) << indivisible;
    const std::string nested = errorOf(op, {{cut(op.annotation, "m", 2), cut(op.annotation, "m", 2)}});
    EXPECT_NE(nested.find("'m' of size 3 into 2"), std::string::npos) << nested;
    Split uneven = cut(op.annotation, "m", 2);
    uneven.sizes = {4, 3};
    const std::string sum = errorOf(op, {{uneven}});
    EXPECT_NE(sum.find("4 + 3 = 7, but its size is 6"), std::string::npos) << sum;
    uneven.sizes = {6};
    EXPECT_NE(errorOf(op, {{uneven}}).find("1 sizes"), std::string::npos);
    uneven.sizes = {6, 0};
    EXPECT_NE(errorOf(op, {{uneven}}).find("size 0"), std::string::npos);
    EXPECT_NE(errorOf(op, {{Split{.parts = 0}}}).find("0 parts"), std::string::npos);
    EXPECT_NE(errorOf(op, {{cut(op.annotation, "zz", 2)}}).find("-1"), std::string::npos);
    EXPECT_NE(
        errorOf(op, {{Split{.parts = 1 << 20}, Split{.parts = 1 << 20}}}).find("fewer"), std::string::npos);
    op.annotation.linearInputs.clear();
    EXPECT_NE(errorOf(op, {{Split{.kind = SplitKind::Value, .parts = 2}}}).find("linear"), std::string::npos);
    op.annotation.dimensions[1].mark = DimensionMark::Frozen;
    EXPECT_NE(errorOf(op, {{cut(op.annotation, "m", 2)}}).find("may not be split"), std::string::npos);
}

TEST(Partition, OfTheBackwardIsThatOfTheForward)
{
    // y = x w: the backward operator reads (y', x, w, y) and makes (x', w').
    const Graph forwardGraph = matMul();
    const Operator &forward = forwardGraph.operators[0];
    const Annotation backward = backwardAnnotation(forward.annotation);
    Graph graph = oneOperator("? -> ?", {{}}, {{}});
    graph.tensors.clear();
    Operator &op = graph.operators[0];
    op.direction = Direction::Backward;
    op.annotation = backward;
    op.inputs.clear();
    op.outputs.clear();
    const std::vector<Shape> shapes{kMatMulOutputs[0], kMatMulInputs[0], kMatMulInputs[1], kMatMulOutputs[0],
        kMatMulInputs[0], kMatMulInputs[1]};
    for (std::size_t i = 0; i < shapes.size(); ++i) {
        Tensor tensor;
        tensor.type.shape = shapes[i];
        graph.tensors.push_back(tensor);
        (i < 4 ? op.inputs : op.outputs).push_back(TensorId{static_cast<std::int32_t>(i)});
    }
    const Partition partition = mirrored(op,
        {{cut(forward.annotation, "m", 2), Split{.kind = SplitKind::Value, .parts = 3},
            cut(forward.annotation, "k", 2)}});
    ASSERT_TRUE(checkPartition(op, partition));
    // Part 9 = (1, 1, 1).
    EXPECT_EQ(toString(inputView(graph, op, partition, 9, 0)), "[0:4 3:6 0:10]");
    EXPECT_EQ(toString(inputView(graph, op, partition, 9, 1)), "[0:4 3:6 4:8] 1/3");
    EXPECT_EQ(toString(inputView(graph, op, partition, 9, 2)), "[4:8 0:10]");
    EXPECT_EQ(toString(outputView(graph, op, partition, 9, 0)), "[0:4 3:6 4:8]"); // linear input: complete
    EXPECT_EQ(toString(outputView(graph, op, partition, 9, 1)), "[4:8 0:10] 4/6"); // over m and x's summands
}

/// An operator with one input of all identifiers and outputs of any of them, in compounds now and then.
Graph randomOperator(std::mt19937 &random)
{
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
    static const char *const marks[] = {"", "+", "^"};
    static const std::int64_t sizes[] = {1, 2, 4, 6};
    std::vector<std::string> names;
    Shape whole;
    std::string text;
    for (std::size_t i = 0, n = 2 + below(3); i < n; ++i) {
        names.push_back(std::string(1, static_cast<char>('a' + i)) + marks[i == 0 ? below(2) : below(3)]);
        whole.push_back(i == 0 ? 4 : sizes[below(4)]);
        text += (i > 0 ? " " : "") + names.back();
    }
    std::vector<Shape> outputs;
    text += " -> ";
    for (std::size_t o = 0, n = 1 + below(2); o < n; ++o) {
        text += o > 0 ? ", " : "";
        Shape shape;
        std::string written;
        for (std::size_t d = 0, rank = below(3); d < rank; ++d) {
            const std::size_t first = below(names.size());
            const std::size_t second = below(names.size());
            if (below(3) == 0) {
                written += (d > 0 ? " (" : "(") + names[first] + ' ' + names[second] + ')';
                shape.push_back(whole[first] * whole[second]);
            } else {
                written += (d > 0 ? " " : "") + names[first];
                shape.push_back(whole[first]);
            }
        }
        text += written.empty() ? "1" : written;
        outputs.push_back(shape);
    }
    return oneOperator(text, {whole}, outputs);
}

/// Random operators and partitions: the parts' views of an output must cover each element by a full set of
/// summands, each made equally often (by replicas), and nothing else.
TEST(Partition, PartsTileTheirTensors)
{
    std::mt19937 random(5);
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
    const std::vector<std::pair<std::string, std::pair<std::vector<Shape>, std::vector<Shape>>>> operators{
        {"b m k+, k+ n -> b m n", {{{4, 6, 8}, {8, 4}}, {{4, 6, 4}}}},
        {"a (b 3) c+ -> a b 3", {{{4, 12, 6}}, {{4, 4, 3}}}},
        {"n c+ h+ -> c+, 1", {{{6, 4, 4}}, {{4}, {}}}},
        {"(1 b s^) e -> b s^ e, (e 2)", {{{12, 4}}, {{4, 3, 4}, {8}}}},
        {"?, a b -> b a, ?", {{{2}, {4, 6}}, {{6, 4}, {5}}}},
    };
    int splitsSeen = 0;
    for (int round = 0; round < 1500; ++round) {
        const auto &[text, shapes] = operators[below(operators.size())];
        Graph graph =
            round % 2 == 0 ? oneOperator(text, shapes.first, shapes.second) : randomOperator(random);
        Operator &op = graph.operators[0];
        op.annotation.linearInputs = {0};
        const auto splittable = splittableDimensions(op.annotation);
        Partition partition;
        for (std::size_t i = 0, n = 1 + below(4); i < n; ++i) {
            Split split{
                .kind = static_cast<SplitKind>(below(3)), .parts = 1 + static_cast<std::int32_t>(below(3))};
            if (split.kind == SplitKind::Dimension) {
                if (splittable.empty())
                    continue;
                split.dimension = splittable[below(splittable.size())];
                const std::int64_t size =
                    op.annotation.dimensions[static_cast<std::size_t>(split.dimension)].size;
                if (split.parts == 2 && below(2) == 0)
                    split.sizes = {1, size - 1};
            }
            Partition next = partition;
            next.splits.push_back(split);
            if (!checkPartition(op, next))
                continue;
            partition = next;
            ++splitsSeen;
        }
        SCOPED_TRACE(toString(op.annotation) + " by " + toString(op.annotation, partition));
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            const Shape &shape = graph.at(op.outputs[slot]).type.shape;
            const auto &terms = op.annotation.outputs[slot];
            // Expected numbers of replicas and summands, by the definition of each split.
            std::int64_t expectedSummands = 1;
            std::int64_t replicas = 1;
            for (const Split &split : partition.splits) {
                const bool isCut = split.kind == SplitKind::Dimension;
                bool mentioned = false;
                for (const Term &term : terms.terms) {
                    for (const std::int32_t factor : term.factors)
                        mentioned = mentioned || factor == split.dimension;
                }
                const bool reduced = isCut
                    && op.annotation.dimensions[static_cast<std::size_t>(split.dimension)].mark
                        == DimensionMark::Reduce;
                if (split.kind == SplitKind::Value || (isCut && reduced && !mentioned))
                    expectedSummands *= split.parts;
                else if (split.kind == SplitKind::Replicate || !mentioned)
                    replicas *= split.parts;
            }
            std::map<std::pair<std::int64_t, std::int32_t>, std::int64_t> made; // (element, summand) -> times
            for (std::int32_t part = 0; part < partCount(partition); ++part) {
                const TensorView view = outputView(graph, op, partition, part, slot);
                ASSERT_EQ(view.value.count, expectedSummands);
                for (const std::int64_t offset : offsets(view.index, shape))
                    ++made[{offset, view.value.index}];
                // partBox and maskOf give the same box.
                ASSERT_EQ(
                    maskOf(op.annotation, terms, shape, partBox(op, partition, part).ranges), view.index);
            }
            ASSERT_EQ(static_cast<std::int64_t>(made.size()), elementCount(shape) * expectedSummands);
            for (const auto &[key, times] : made)
                ASSERT_EQ(times, replicas) << "element " << key.first << ", summand " << key.second;
        }
        // The inputs of all parts together are read in full.
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const Shape &shape = graph.at(op.inputs[slot]).type.shape;
            std::set<std::int64_t> read;
            for (std::int32_t part = 0; part < partCount(partition); ++part) {
                for (const std::int64_t offset :
                    offsets(inputView(graph, op, partition, part, slot).index, shape))
                    read.insert(offset);
            }
            ASSERT_EQ(static_cast<std::int64_t>(read.size()), elementCount(shape));
        }
    }
    EXPECT_GT(splitsSeen, 1000);
}

TEST(Partition, MatMulOfThePartsAddsUpToTheWhole)
{
    // The masks' meaning, checked on numbers: every part multiplies its views and adds into the output.
    const Graph graph = oneOperator("m k+, k+ n -> m n", {{4, 6}, {6, 2}}, {{4, 2}});
    const Operator &op = graph.operators[0];
    const auto a = [](std::int64_t i, std::int64_t k) { return static_cast<double>(3 * i + 7 * k + 1); };
    const auto b = [](std::int64_t k, std::int64_t j) { return static_cast<double>(5 * k - 2 * j + 2); };
    const Partition partition{
        {cut(op.annotation, "k", 3), cut(op.annotation, "m", 2), cut(op.annotation, "n", 2)}};
    ASSERT_TRUE(checkPartition(op, partition));
    double sum[4][2] = {};
    for (std::int32_t part = 0; part < partCount(partition); ++part) {
        const auto left = inputView(graph, op, partition, part, 0).index.ranges;
        const auto right = inputView(graph, op, partition, part, 1).index.ranges;
        const auto out = outputView(graph, op, partition, part, 0).index.ranges;
        ASSERT_EQ(left[1], right[0]);
        ASSERT_EQ(out, (std::vector<Range>{left[0], right[1]}));
        for (std::int64_t i = out[0].begin; i < out[0].end; ++i) {
            for (std::int64_t j = out[1].begin; j < out[1].end; ++j) {
                for (std::int64_t k = left[1].begin; k < left[1].end; ++k)
                    sum[i][j] += a(i, k) * b(k, j);
            }
        }
    }
    for (std::int64_t i = 0; i < 4; ++i) {
        for (std::int64_t j = 0; j < 2; ++j) {
            double whole = 0;
            for (std::int64_t k = 0; k < 6; ++k)
                whole += a(i, k) * b(k, j);
            EXPECT_EQ(sum[i][j], whole);
        }
    }
}

} // namespace planloom
