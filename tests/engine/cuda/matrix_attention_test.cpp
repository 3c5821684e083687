// Attention on tensor cores, in its host build: matrices lie in the lanes of a warp as PTX says, and what is
// made of them is what the CPU's kernels make, of random shapes, whole and in parts.

#include "engine/check/part_runner.h"
#include "engine/cuda/kernels/warp_matrices.h"
#include "engine/graph/operators/attention.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/kernels/elements/rounded_kernel.h"

#include "tests/engine/cuda/one_queue.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace planloom {
namespace {

constexpr int kRowsOfA = 16;

TEST(WarpMatrices, HaveEachElementInOneLane)
{
    const auto expectAll = [](auto placeIn, int elements, int rows, int columns) {
        std::set<MatrixPlace> places;
        for (int lane = 0; lane < kLanes; ++lane)
            for (int i = 0; i < elements; ++i) {
                const MatrixPlace place = placeIn(lane, i);
                EXPECT_TRUE(
                    place.row >= 0 && place.row < rows && place.column >= 0 && place.column < columns);
                EXPECT_TRUE(places.insert(place).second) << place.row << " " << place.column;
            }
        EXPECT_EQ(places.size(), static_cast<std::size_t>(rows * columns));
    };
    expectAll(placeInA, kElementsOfA, kRowsOfA, 16);
    expectAll(placeInB, kElementsOfB, 16, 8);
    expectAll(placeInC, kElementsOfC, kRowsOfA, 8);
}

TEST(WarpMatrices, AreWhatPtxShowsInItsFigures)
{
    // mma.m16n8k16: lane 6 is number 2 of group 1.
    EXPECT_EQ(placeInA(6, 0), (MatrixPlace{1, 4}));
    EXPECT_EQ(placeInA(6, 3), (MatrixPlace{9, 5}));
    EXPECT_EQ(placeInA(6, 4), (MatrixPlace{1, 12}));
    EXPECT_EQ(placeInA(6, 7), (MatrixPlace{9, 13}));
    EXPECT_EQ(placeInB(6, 1), (MatrixPlace{5, 1}));
    EXPECT_EQ(placeInB(6, 2), (MatrixPlace{12, 1}));
    EXPECT_EQ(placeInC(6, 1), (MatrixPlace{1, 5}));
    EXPECT_EQ(placeInC(6, 2), (MatrixPlace{9, 4}));
}

/// Random rows of 16-bit numbers, as lanes load them, and as numbers.
template<typename Operands, int kWidth> struct Rows {
    std::vector<std::uint16_t> memory;
    std::vector<std::vector<float>> numbers;
    SharedRows<kWidth> shared;

    Rows(int rows, std::mt19937 &random)
        : memory(static_cast<std::size_t>(rows * kWidth))
        , shared{memory.data()}
    {
        std::uniform_real_distribution<float> draw(-1, 1);
        for (int row = 0; row < rows; ++row) {
            numbers.emplace_back();
            for (int column = 0; column < kWidth; ++column) {
                const auto bits = static_cast<std::uint16_t>(Operands::pair(draw(random), 0));
                shared.chunk(row, column / 8)[column % 8] = bits;
                numbers.back().push_back(Operands::value(bits));
            }
        }
    }
};

template<typename Operands, int kWidth> void expectProducts()
{
    std::mt19937 random(3);
    const Rows<Operands, kWidth> left(kRowsOfA, random);
    const Rows<Operands, kWidth> right(16, random);
    for (const bool ofColumns : {true, false}) {
        WarpPairs<4> a;
        WarpPairs<4> b;
        WarpFloats<8> c{};
        left.shared.loadA(a, 0, 16);
        if (ofColumns)
            right.shared.loadColumns(b, 0, 16);
        else
            right.shared.loadRows(b, 0, 16);
        multiplyAdd<Operands>(c, 0, a, 0, b, 0);
        multiplyAdd<Operands>(c, 4, a, 0, b, 2);
        for (int lane = 0; lane < kLanes; ++lane)
            for (int i = 0; i < 8; ++i) {
                const MatrixPlace place = placeInC(lane, i % 4);
                const auto row = static_cast<std::size_t>(place.row);
                const auto column = static_cast<std::size_t>(place.column + i / 4 * 8);
                float sum = 0;
                for (std::size_t k = 0; k < 16; ++k)
                    sum += left.numbers[row][16 + k]
                        * (ofColumns ? right.numbers[column][16 + k] : right.numbers[k][16 + column]);
                ASSERT_NEAR(c[lane][i], sum, 1e-5) << lane << " " << i;
            }
        // What is made of it is an operand of the next product, where it is.
        WarpPairs<4> next;
        packAsA<Operands>(c, 0, next, 0);
        for (int lane = 0; lane < kLanes; ++lane)
            for (int i = 0; i < kElementsOfA; ++i) {
                const MatrixPlace place = placeInA(lane, i);
                const MatrixPlace source = placeInC(lane, i % 4);
                EXPECT_EQ(place, (MatrixPlace{source.row, source.column + i / 4 * 8}));
                const float packed = Operands::value(next[lane][i / 2] >> i % 2 * 16 & 0xFFFFU);
                EXPECT_EQ(packed, Operands::value(Operands::pair(c[lane][i], 0)));
            }
    }
}

TEST(WarpMatrices, MakeProductsOfWhatLanesLoad)
{
    expectProducts<BFloat16Operands, 32>();
    expectProducts<BFloat16Operands, 64>();
    expectProducts<Float16Operands, 128>();
    expectProducts<Float16Operands, 256>();
}

template<int kWidth> void expectNoMeetingInBanks()
{
    std::vector<std::uint16_t> memory(64 * kWidth);
    const SharedRows<kWidth> rows{memory.data()};
    std::set<const std::uint16_t *> chunks;
    for (int row = 0; row < 64; ++row)
        for (int chunk = 0; chunk < kWidth / 8; ++chunk)
            EXPECT_TRUE(chunks.insert(rows.chunk(row, chunk)).second);
    EXPECT_EQ(*chunks.rbegin(), memory.data() + memory.size() - 8);
    for (int row = 0; row < 64; row += 8)
        for (int chunk = 0; chunk < kWidth / 8; ++chunk) {
            std::set<std::ptrdiff_t> banks; // in fours: what eight lanes read at once is 128 bytes
            for (int r = 0; r < 8; ++r)
                banks.insert((rows.chunk(row + r, chunk) - memory.data()) / 8 % 8);
            EXPECT_EQ(banks.size(), 8U) << kWidth << " " << row << " " << chunk;
        }
}

TEST(WarpMatrices, AreReadWithoutTwoLanesInOneBank)
{
    expectNoMeetingInBanks<32>();
    expectNoMeetingInBanks<64>();
    expectNoMeetingInBanks<96>();
    expectNoMeetingInBanks<128>();
    expectNoMeetingInBanks<256>();
}

/// A call as a plan with narrow floats makes it: these lie in memory as `memory`, but for log-sum-exps.
class NarrowCall
{
public:
    NarrowCall(const KernelCall &given, DataType memory, DataType compute)
        : call(given)
    {
        rounding.compute = compute;
        const bool forward = given.op->direction == Direction::Forward;
        const Buffer *logSum = forward ? findOutput(given, 1) : BackwardCall(given).output(1);
        const auto narrowed = [&](const std::vector<Buffer> &from, std::vector<Buffer> &to,
                                  std::vector<DataType> &types, bool keeps) {
            for (std::size_t slot = 0; slot < from.size(); ++slot) {
                const bool isWide = &from[slot] == logSum || from[slot].dataType != DataType::Float32;
                const DataType type = isWide ? from[slot].dataType : memory;
                types.push_back(type);
                if (from[slot].data == nullptr)
                    continue;
                const auto count = static_cast<std::size_t>(elementCount(from[slot].shape));
                // 16 bytes' multiples, as the arenas of devices have them.
                auto &bytes = m_memory.emplace_back(count * static_cast<std::size_t>(sizeOf(type)) / 16 + 1);
                auto *const data = reinterpret_cast<std::byte *>(bytes.data());
                std::memset(data, 0xFF, bytes.size() * sizeof bytes[0]); // no numbers
                if (keeps && isWide)
                    std::memcpy(data, from[slot].data, count * static_cast<std::size_t>(sizeOf(type)));
                else if (keeps)
                    (void)convertFloats(reinterpret_cast<const std::byte *>(from[slot].data),
                        DataType::Float32, data, type, count);
                to[slot].data = data;
            }
        };
        narrowed(given.inputs, call.inputs, rounding.inputs, true);
        narrowed(given.outputs, call.outputs, rounding.outputs, false);
    }

    std::vector<double> numbersOf(std::size_t output) const
    {
        const auto count = static_cast<std::size_t>(elementCount(call.outputs[output].shape));
        std::vector<float> floats(count);
        (void)convertFloats(reinterpret_cast<const std::byte *>(call.outputs[output].data),
            rounding.outputs[output], reinterpret_cast<std::byte *>(floats.data()), DataType::Float32, count);
        return {floats.begin(), floats.end()};
    }

    KernelCall call;
    KernelRounding rounding{};

private:
    struct alignas(16) Chunk {
        std::byte bytes[16];
    };
    std::vector<std::vector<Chunk>> m_memory{};
};

/// The root of the mean square of what two have that the other has not; infinite if only one is a number.
double apart(const std::vector<double> &a, const std::vector<double> &b)
{
    double squares = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (std::isnan(a[i]) != std::isnan(b[i]))
            return INFINITY;
        if (!std::isnan(a[i]) && a[i] != b[i])
            squares += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return std::sqrt(squares / static_cast<double>(a.size()));
}
double sizeOf(const std::vector<double> &numbers)
{
    std::vector<double> finite = numbers;
    for (double &number : finite)
        number = std::isfinite(number) ? number : 0;
    return apart(finite, std::vector<double>(finite.size()));
}

/// Runs calls on the CPU and on the device, and compares.
class BothDevices
{
public:
    DataType memory = DataType::BFloat16;
    DataType compute = DataType::BFloat16;
    OneQueue device{};
    double farthest = 0;
    double farthestLogSum = 0;

    BothDevices() { device.cuda().keepsCalls = true; }

    Result<void> run(KernelCall given)
    {
        // The examples make probabilities and the gradients of masks, too, which these kernels never do.
        const bool forward = given.op->direction == Direction::Forward;
        if (!forward)
            given.inputs[static_cast<std::size_t>(probabilitiesInput(*given.op))].data = nullptr;
        for (std::size_t slot = forward ? 2 : 3; slot < given.outputs.size(); ++slot)
            given.outputs[slot].data = nullptr;
        NarrowCall onCpu(given, memory, compute);
        NarrowCall onDevice(given, memory, compute);
        TRY_VOID(runRounded(onCpu.call, onCpu.rounding, false));
        TRY_VOID(device.run(onDevice.call, &onDevice.rounding));
        double largest = 0; // a gradient that cancels is as far off as the others' roundings
        for (std::size_t slot = 0; slot < given.outputs.size(); ++slot)
            if (given.outputs[slot].data != nullptr)
                largest = std::max(largest, sizeOf(onCpu.numbersOf(slot)));
        for (std::size_t slot = 0; slot < given.outputs.size(); ++slot) {
            if (given.outputs[slot].data == nullptr)
                continue;
            const std::vector<double> expected = onCpu.numbersOf(slot);
            const double size = std::max(sizeOf(expected), 0.1 * largest);
            double &far = forward && slot == 1 ? farthestLogSum : farthest;
            far = std::max(far, apart(expected, onDevice.numbersOf(slot)) / std::max(size, 1e-3));
            const std::vector<float> made(expected.begin(), expected.end());
            std::memcpy(given.outputs[slot].data, made.data(), made.size() * sizeof(float));
        }
        return {};
    }
    /// Launches of kernels for tensor cores, and of the others, since the last time.
    std::pair<int, int> launches()
    {
        std::pair<int, int> counts;
        for (const std::string &call : device.cuda().calls) {
            counts.first += call.find("launch MatrixAttention") == 0;
            counts.second += call.find("launch Attention ") == 0 || call.find("launch AttentionSlope ") == 0;
        }
        device.cuda().calls.clear();
        return counts;
    }
};

ExampleInput drawn(Shape shape, double size = 1)
{
    return {.type = {DataType::Float32, std::move(shape)}, .low = -size, .high = size};
}

/// Forward and backward of an example, whole and in some of the parts that a plan may cut it into.
void expectBothAlike(BothDevices &both, const OperatorExample &example, double tolerance, std::size_t each)
{
    const auto graph = graphOf(example);
    ASSERT_TRUE(graph) << describe(graph.error());
    OperatorValues values = drawValues(example, *graph, 11);
    for (const Operator &op : graph->operators) {
        std::size_t tried = 0;
        std::vector<Partition> partitions = partitionsOf(op);
        partitions.insert(partitions.begin(), Partition{});
        for (const Partition &partition : partitions) {
            if (tried++ % each != 0)
                continue;
            both.farthest = both.farthestLogSum = 0;
            OperatorValues own = values;
            // Parts that overlap need not agree to the last bit in these types: what each makes is compared.
            (void)runParts(
                *graph, op, partition, own, nullptr, [&](const KernelCall &call) { return both.run(call); });
            ASSERT_LT(both.farthest, tolerance)
                << example.name << " " << op.name << " " << toString(op.annotation, partition);
            ASSERT_LT(both.farthestLogSum, 2e-5) << example.name << " " << op.name;
        }
        ASSERT_TRUE(runParts(
            *graph, op, {}, values, nullptr, [&](const KernelCall &call) { return both.run(call); }));
    }
}

double toleranceOf(DataType type)
{
    return type == DataType::BFloat16 ? 2e-2 : 3e-3;
}

OperatorExample attention(std::mt19937 &random)
{
    const auto pick = [&](std::vector<std::int64_t> from) { return from[random() % from.size()]; };
    const std::int64_t batch = pick({1, 2});
    const std::int64_t keyHeads = pick({1, 2});
    const std::int64_t heads = keyHeads * pick({1, 2, 3});
    const std::int64_t queries = pick({1, 7, 16, 40, 64, 90, 130});
    const std::int64_t keys = pick({1, 5, 33, 64, 72, 128, 150});
    const std::int64_t width = pick({8, 32, 40, 64, 80, 128, 160, 256});
    const std::int64_t valueWidth = pick({16, width, width, width});
    OperatorExample example;
    example.kind = OperatorKind::Attention;
    example.attributes.set("scale", 1 / std::sqrt(static_cast<double>(width)));
    example.inputs = {drawn({batch, heads, queries, width}), drawn({batch, keyHeads, keys, width}),
        drawn({batch, keyHeads, keys, valueWidth})};
    example.name = std::to_string(heads) + "/" + std::to_string(keyHeads) + " heads, "
        + std::to_string(queries) + " queries, " + std::to_string(keys) + " keys, width "
        + std::to_string(width) + " " + std::to_string(valueWidth);
    const auto with = [&](const std::string &name, auto value) {
        example.attributes.set(name, value);
        example.name += ", " + name;
    };
    if (random() % 2 == 0)
        with("causal", std::int64_t{1});
    if (random() % 3 == 0)
        with("offset", pick({-3, 4, 60}));
    if (random() % 4 == 0)
        with("window", pick({1, 9, 70}));
    if (random() % 4 == 0)
        with("softcap", 0.5);
    if (random() % 4 == 0) {
        with("dropout", 0.3);
        example.attributes.set("seed", std::int64_t{5});
    }
    if (random() % 3 == 0) {
        with("masked_score", -2.0);
        ExampleInput seen{.type = {DataType::Bool, {batch, 1, queries, keys}}, .low = 0, .high = 2};
        for (std::int64_t i = 0; i < batch * queries * keys; ++i)
            seen.values.push_back(random() % 3 != 0 ? 1 : 0);
        example.inputs.push_back(seen);
    }
    if (random() % 3 == 0) {
        example.name += ", added";
        example.inputs.push_back(drawn({heads, queries, keys}));
    }
    return example;
}

TEST(MatrixAttention, MakesWhatTheCpuMakesOfRandomShapesInParts)
{
    std::mt19937 random(17);
    BothDevices both;
    int matrices = 0;
    for (int i = 0; i < 60; ++i) {
        const OperatorExample example = attention(random);
        both.compute = i % 2 == 0 ? DataType::BFloat16 : DataType::Float16;
        both.memory = i % 5 == 0 ? DataType::Float32 : both.compute;
        SCOPED_TRACE(example.name);
        expectBothAlike(both, example, toleranceOf(both.compute), 23);
        if (HasFatalFailure())
            return;
        const auto [onMatrices, others] = both.launches();
        matrices += onMatrices;
        EXPECT_GT(onMatrices, 0);
        EXPECT_EQ(others, 0);
    }
    EXPECT_TRUE(both.device.onHost.empty());
    EXPECT_GT(matrices, 300);
}

TEST(MatrixAttention, LeavesToOtherKernelsWhatTensorCoresDoNotTake)
{
    const auto launchesOf = [](DataType compute, std::int32_t code, std::int64_t width, bool masked = false) {
        OperatorExample example;
        example.kind = OperatorKind::Attention;
        example.inputs = {drawn({2, 9, width}), drawn({2, 9, width}), drawn({2, 9, width})};
        if (masked)
            example.inputs.push_back(drawn({9, 9}));
        BothDevices both;
        both.memory = both.compute = compute;
        both.device.cuda().code = code;
        expectBothAlike(both, example, compute == DataType::Float32 ? 1e-5 : 2e-2, 1000);
        const auto [onMatrices, others] = both.launches();
        EXPECT_EQ(onMatrices + others, 6) << "three kernels, run twice";
        return onMatrices;
    };
    EXPECT_EQ(launchesOf(DataType::Float32, 90, 64), 0);
    EXPECT_EQ(launchesOf(DataType::BFloat16, 90, 64), 6);
    EXPECT_EQ(launchesOf(DataType::BFloat16, 75, 64), 0); // Turing has none for it
    EXPECT_EQ(launchesOf(DataType::Float16, 75, 64), 6);
    EXPECT_EQ(launchesOf(DataType::Float16, 70, 64), 0);
    EXPECT_EQ(launchesOf(DataType::BFloat16, 80, 20), 0); // rows of no whole 16 bytes
    EXPECT_EQ(launchesOf(DataType::Float16, 75, 128, true), 4); // the forward pass would need 64 KiB and more
    EXPECT_EQ(launchesOf(DataType::Float16, 80, 128, true), 6);
}

TEST(MatrixAttention, KeepsWhatIsNoNumberAndQueriesThatSeeNothing)
{
    for (const DataType type : {DataType::BFloat16, DataType::Float16}) {
        OperatorExample example;
        example.name = "nothing seen, and no number";
        example.kind = OperatorKind::Attention;
        example.inputs = {drawn({1, 4, 32}), drawn({1, 6, 32}), drawn({1, 6, 32})};
        ExampleInput seen{.type = {DataType::Bool, {4, 6}}, .low = 0, .high = 2};
        seen.values.assign(24, 1);
        std::fill_n(seen.values.begin() + 6, 6, 0); // query 1
        example.inputs.push_back(seen);
        example.inputs[0].values.assign(4 * 32, 0.25);
        example.inputs[0].values[2 * 32 + 5] = std::nan(""); // of query 2
        const auto graph = graphOf(example);
        ASSERT_TRUE(graph) << describe(graph.error());
        OperatorValues values = drawValues(example, *graph, 3);
        BothDevices both;
        both.memory = both.compute = type;
        for (const Operator &op : graph->operators)
            ASSERT_TRUE(runParts(
                *graph, op, {}, values, nullptr, [&](const KernelCall &call) { return both.run(call); }));
        EXPECT_LT(both.farthest, toleranceOf(type));
        EXPECT_LT(both.farthestLogSum, 2e-5);
        const auto y = numbersOf(*graph, graph->operators[0].outputs[0], values);
        EXPECT_EQ(y[32], 0);
        EXPECT_TRUE(std::isnan(y[64]));
    }
}

} // namespace
} // namespace planloom
