// Convolutions, pools and moves cut along what windows lie over: parts with halos make what the whole makes.

#include "engine/check/part_runner.h"
#include "engine/kernels/kernel.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace planloom::testing {

namespace {

class WindowDice
{
public:
    explicit WindowDice(std::uint64_t seed)
        : m_random(seed)
    {
    }

    std::int64_t from(std::int64_t least, std::int64_t most)
    {
        return std::uniform_int_distribution<std::int64_t>(least, most)(m_random);
    }

    /// A convolution of one to three dimensions, with whatever strides, dilations, groups and unequal pads.
    OperatorExample convolution()
    {
        OperatorExample example;
        example.kind = from(0, 2) == 0 ? OperatorKind::ConvTranspose : OperatorKind::Conv;
        const bool transposed = example.kind == OperatorKind::ConvTranspose;
        const std::size_t rank = drawRank();
        const std::int64_t groups = from(1, 2);
        const std::int64_t c = from(1, 2);
        const std::int64_t o = from(1, 2);
        Shape x{from(1, 2), c * groups};
        Shape w = transposed ? Shape{c * groups, o} : Shape{o * groups, c};
        drawWindows(example, rank, x, w, true);
        example.attributes.set("group", groups);
        example.inputs = {drawn(x), drawn(w)};
        if (from(0, 1) == 1)
            example.inputs.push_back(drawn({o * groups}));
        return example;
    }

    OperatorExample pool()
    {
        using enum OperatorKind;
        OperatorExample example;
        constexpr OperatorKind kKinds[] = {MaxPool, AveragePool, LpPool};
        example.kind = kKinds[from(0, 2)];
        Shape x{from(1, 2), 2};
        Shape kernel;
        drawWindows(example, drawRank(), x, kernel, false);
        example.attributes.set("kernel_shape", kernel);
        if (example.kind == AveragePool)
            example.attributes.set("count_include_pad", from(0, 1));
        example.attributes.set("ceil_mode", from(0, 1));
        example.inputs = {drawn(x)};
        return example;
    }

    /// A slice, a padding, or a tensor with something before and behind it.
    OperatorExample move()
    {
        using enum OperatorKind;
        OperatorExample example;
        constexpr OperatorKind kKinds[] = {Slice, Pad, Concat};
        example.kind = kKinds[from(0, 2)];
        const Shape x{from(1, 2), from(4, 12), 2};
        example.inputs = {drawn(x)};
        if (example.kind == Slice) {
            const std::int64_t start = from(0, x[1] - 3);
            const std::int64_t step = from(1, 2);
            example.attributes.set("starts", std::vector<std::int64_t>{0, start, 0});
            example.attributes.set("steps", std::vector<std::int64_t>{1, step, 1});
            example.outputs = {{DataType::Float64, {x[0], from(2, (x[1] - start + step - 1) / step), 2}}};
        } else if (example.kind == Pad) {
            example.attributes.set("pads", std::vector<std::int64_t>{0, from(0, 3), 0, 0, from(1, 3), 0});
        } else {
            example.attributes.set("axis", 1);
            example.inputs.insert(example.inputs.begin(), drawn({x[0], from(1, 2), 2}));
            example.inputs.push_back(drawn({x[0], 1, 2}));
        }
        return example;
    }

private:
    std::size_t drawRank() { return static_cast<std::size_t>(from(0, 3) == 0 ? 3 : from(1, 2)); }

    static ExampleInput drawn(Shape shape)
    {
        return {{DataType::Float64, std::move(shape)}, true, -1, 1, {}};
    }

    /// Appends extents to x and kernel; windows fit, and none lies in padding alone.
    void drawWindows(OperatorExample &example, std::size_t rank, Shape &x, Shape &kernel, bool pads)
    {
        Shape strides;
        Shape dilations;
        Shape before;
        Shape behind;
        for (std::size_t d = 0; d < rank; ++d) {
            kernel.push_back(from(1, 3));
            strides.push_back(from(1, 3));
            dilations.push_back(from(1, 2));
            const std::int64_t span = (kernel.back() - 1) * dilations.back();
            x.push_back(from(span + 1, rank == 3 ? 7 : 13));
            const std::int64_t most = pads ? span : (kernel.back() - 1) / 2;
            before.push_back(from(0, most));
            behind.push_back(from(0, most));
        }
        before.insert(before.end(), behind.begin(), behind.end());
        example.attributes.set("strides", strides);
        example.attributes.set("dilations", dilations);
        example.attributes.set("pads", before);
    }

    std::mt19937_64 m_random;
};

/// Every way to cut one identifier of windows, in equal parts, unevenly and into single windows, and pairs.
std::vector<Partition> windowPartitions(const Operator &op)
{
    std::vector<Split> singles;
    for (const Window &window : op.annotation.windows) {
        const std::int32_t d = window.dimension;
        const std::int64_t size = op.annotation.dimensions[static_cast<std::size_t>(d)].size;
        for (std::int32_t parts = 2; parts <= 4; ++parts)
            if (size % parts == 0)
                singles.push_back({SplitKind::Dimension, d, parts, {}, {}});
        singles.push_back({SplitKind::Dimension, d, 2, {2, size - 2}, {}});
        if (size == 2 || fewestWindows(window, size) > 1)
            continue;
        singles.push_back({SplitKind::Dimension, d, static_cast<std::int32_t>(size),
            std::vector<std::int64_t>(static_cast<std::size_t>(size), 1), {}});
        if (size > 3)
            singles.push_back({SplitKind::Dimension, d, 3, {size - 3, 1, 2}, {}});
    }
    std::vector<Partition> partitions;
    for (std::size_t i = 0; i < singles.size(); ++i) {
        if (!checkPartition(op, {{singles[i]}}))
            continue;
        partitions.push_back({{singles[i]}});
        const Partition pair{{singles[i], singles[(i * 7 + 3) % singles.size()]}};
        if (checkPartition(op, pair))
            partitions.push_back(pair);
    }
    return partitions;
}

void expectSame(const Graph &graph, TensorId id, const OperatorValues &whole, const OperatorValues &parts)
{
    const auto a = numbersOf(graph, id, whole);
    const auto b = numbersOf(graph, id, parts);
    double largest = 0;
    for (const double number : a)
        largest = std::max(largest, std::fabs(number));
    for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_NEAR(a[i], b[i], 1e-10 * (1 + largest)) << "element " << i << " of " << graph.at(id).name;
}

/// @return how many partitions were run
int checkWindows(const OperatorExample &example)
{
    const auto graph = graphOf(example);
    if (!graph)
        return 0; // the windows do not fit
    OperatorValues values = drawValues(example, *graph, 7);
    int count = 0;
    for (const Operator &op : graph->operators) {
        EXPECT_TRUE(runParts(*graph, op, Partition{}, values));
        for (const Partition &partition : windowPartitions(op)) {
            SCOPED_TRACE(::testing::Message()
                << toString(op.annotation) << " under " << toString(op.annotation, partition));
            OperatorValues again = values;
            const auto parted = runParts(*graph, op, partition, again);
            EXPECT_TRUE(parted) << describe(parted.error());
            for (const TensorId output : op.outputs)
                if (parted && output)
                    expectSame(*graph, output, values, again);
            ++count;
            if (::testing::Test::HasFailure())
                return count;
        }
    }
    return count;
}

} // namespace

TEST(WindowParts, OfRandomConvolutionsMakeWhatTheWholeMakes)
{
    int count = 0;
    for (std::uint64_t seed = 0; seed < 250 && !HasFailure(); ++seed) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed);
        count += checkWindows(WindowDice(seed).convolution());
    }
    EXPECT_GT(count, 1000);
}

TEST(WindowParts, OfRandomPoolsMakeWhatTheWholeMakes)
{
    int count = 0;
    for (std::uint64_t seed = 0; seed < 250 && !HasFailure(); ++seed) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed);
        count += checkWindows(WindowDice(seed).pool());
    }
    EXPECT_GT(count, 1000);
}

TEST(WindowParts, OfRandomMovesMakeWhatTheWholeMakes)
{
    int count = 0;
    for (std::uint64_t seed = 0; seed < 250 && !HasFailure(); ++seed) {
        SCOPED_TRACE(::testing::Message() << "seed " << seed);
        count += checkWindows(WindowDice(seed).move());
    }
    EXPECT_GT(count, 500);
}

TEST(WindowParts, ReadTheHaloOfTheirWindowsAndNoMore)
{
    // 8 elements, windows of 3 by 1 with a border of 1: two parts read one element of their neighbour.
    const Window window{.dimension = 0, .extent = 8, .kernel = 3, .stride = 1, .dilation = 1, .pad = 1};
    EXPECT_EQ(reached(window, 8, {0, 4}, WindowReach::Windows), (Range{0, 5}));
    EXPECT_EQ(reached(window, 8, {4, 8}, WindowReach::Windows), (Range{3, 8}));
    EXPECT_EQ(reached(window, 8, {0, 4}, WindowReach::Share), (Range{0, 4}));
    EXPECT_EQ(reached(window, 8, {0, 4}, WindowReach::Met), (Range{0, 5}));
    EXPECT_EQ(reached(window, 8, {2, 4}, WindowReach::Met), (Range{1, 5}));
    EXPECT_EQ(reached(window, 8, {2, 4}, WindowReach::Around), (Range{0, 6}));
    // Windows of 3 by 2: the second part reads one element before its share, and none behind it.
    const Window strided{.dimension = 0, .extent = 8, .kernel = 3, .stride = 2, .dilation = 1, .pad = 1};
    EXPECT_EQ(reached(strided, 4, {2, 4}, WindowReach::Windows), (Range{3, 8}));
    EXPECT_EQ(reached(strided, 4, {0, 2}, WindowReach::Windows), (Range{0, 4}));
    EXPECT_EQ(reached(strided, 4, {0, 2}, WindowReach::Met), (Range{0, 3}));
    EXPECT_EQ(reached(strided, 4, {0, 4}, WindowReach::Windows), (Range{0, 8}))
        << "all of it for all windows";
}

TEST(WindowParts, AreNoMicroBatchesSlicesOrLanes)
{
    const OperatorExample example = WindowDice(1).convolution();
    const auto graph = graphOf(example);
    ASSERT_TRUE(graph);
    const Operator &op = graph->operators[0];
    ASSERT_FALSE(op.annotation.windows.empty()) << toString(op.annotation);
    const std::int32_t d = op.annotation.windows[0].dimension;
    const auto size = static_cast<std::int32_t>(op.annotation.dimensions[static_cast<std::size_t>(d)].size);
    Split split{SplitKind::Dimension, d, size, {}, {}};
    EXPECT_TRUE(checkPartition(op, {{split}}));
    for (const SplitOver over : {SplitOver::Slices, SplitOver::Lanes, SplitOver::Units}) {
        split.over = over;
        const auto refused = checkPartition(op, {{split}});
        ASSERT_FALSE(refused);
        EXPECT_NE(refused.error().message.find("overlap"), std::string::npos) << refused.error().message;
    }
}

} // namespace planloom::testing
