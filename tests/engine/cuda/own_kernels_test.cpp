// The device's own kernels, in their host build, make what those of the CPU make: of every operator, whole
// and in parts.

#include "engine/check/part_runner.h"
#include "engine/kernels/elements/narrow_float.h"

#include "tests/engine/cuda/one_queue.h"

#include <gtest/gtest.h>

#include <set>

namespace planloom {
namespace {

void expectAlike(OneQueue &device, const OperatorExample &example, const Operator &op, const Graph &graph,
    const Partition &partition, const OperatorValues &values)
{
    OperatorValues onCpu = values;
    OperatorValues onDevice = values;
    const auto expected = runParts(graph, op, partition, onCpu);
    const auto got = runParts(
        graph, op, partition, onDevice, nullptr, [&](const KernelCall &call) { return device.run(call); });
    ASSERT_EQ(static_cast<bool>(expected), static_cast<bool>(got))
        << example.name << ": " << describe((expected ? got : expected).error());
    if (!expected)
        return;
    for (const TensorId id : op.outputs) {
        if (!id.valid() || onCpu[static_cast<std::size_t>(id.index)].empty())
            continue;
        EXPECT_LT(distance(numbersOf(graph, id, onCpu), numbersOf(graph, id, onDevice)), 2e-5)
            << example.name << " " << op.name << " " << graph.at(id).name << " "
            << toString(op.annotation, partition);
    }
}

/// What the device has no kernel for, or none for every direction, type or attribute. Everything else never
/// leaves it.
const std::set<std::string> kPartlyOnHost{"ArgMax", "ArgMin", "Attention", "Dropout", "Einsum", "Expand",
    "EyeLike", "Gather", "GatherND", "GridSample", "Gru", "IsInf", "IsNaN", "LocalResponseNorm",
    "LpNormalize", "Lstm", "NonZero", "Not", "OneHot", "Pad", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare", "Resize",
    "ReverseSequence", "Rnn", "Rotary", "ScatterElements", "ScatterND", "Tile", "TopK", "Trilu"};

TEST(OwnKernels, MakeWhatThoseOfTheCpuMakeOfEveryOperatorInParts)
{
    for (const bool products : {true, false}) {
        OneQueue device(products);
        for (const OperatorExample &example : examplesOfEveryKind(DataType::Float32)) {
            const auto graph = graphOf(example);
            ASSERT_TRUE(graph) << example.name << ": " << describe(graph.error());
            OperatorValues values = drawValues(example, *graph, 7);
            for (const Operator &op : graph->operators) {
                expectAlike(device, example, op, *graph, {}, values);
                std::size_t tried = 0;
                for (const Partition &partition : partitionsOf(op))
                    if (tried++ % 7 == 0 && products)
                        expectAlike(device, example, op, *graph, partition, values);
                ASSERT_TRUE(runParts(*graph, op, {}, values)) << example.name;
            }
        }
        EXPECT_GT(device.calls, 100);
        int onHost = 0;
        for (const auto &[type, calls] : device.onHost) {
            onHost += calls;
            std::printf("%6d %s\n", calls, type.c_str());
            EXPECT_EQ(kPartlyOnHost.count(type.substr(0, type.find(' '))), 1U) << type;
        }
        EXPECT_LT(onHost, device.calls * 37 / 100) << "of " << device.calls;
        std::printf("%d of %d calls through the host\n", onHost, device.calls);
    }
}

TEST(OwnKernels, NeedNoMoreOfTheirTeamThanTheyAskFor)
{
    OneQueue device;
    device.cuda().teamThreads = 3;
    for (const OperatorExample &example : examplesOfEveryKind(DataType::Float32)) {
        const auto graph = graphOf(example);
        ASSERT_TRUE(graph) << example.name << ": " << describe(graph.error());
        OperatorValues values = drawValues(example, *graph, 9);
        for (const Operator &op : graph->operators) {
            expectAlike(device, example, op, *graph, {}, values);
            ASSERT_TRUE(runParts(*graph, op, {}, values)) << example.name;
        }
    }
}

TEST(OwnKernels, RoundAsTheCpuDoes)
{
    std::uint32_t bits = 12345;
    for (int i = 0; i < 200'000; ++i) {
        bits = bits * 1664525u + 1013904223u;
        const float value = bitsAs<float>(bits);
        for (const DataType type : {DataType::BFloat16, DataType::Float16}) {
            std::uint16_t expected = 0;
            narrow(&value, type, reinterpret_cast<std::byte *>(&expected), 1);
            std::uint16_t got = 0;
            store(Elements{&got, type}, 0, value);
            ASSERT_EQ(got, expected) << value << " " << nameOf(type);
            float wide = 0;
            widen(reinterpret_cast<const std::byte *>(&expected), type, &wide, 1);
            ASSERT_EQ(bitsAs<std::uint32_t>(at(Elements{&expected, type}, 0)), bitsAs<std::uint32_t>(wide));
        }
        for (const DataType type : {DataType::BFloat16, DataType::Float16, DataType::TensorFloat32}) {
            float expected = 0;
            roundFor(type, &value, &expected, 1);
            ASSERT_EQ(bitsAs<std::uint32_t>(roundedFor(type, value)), bitsAs<std::uint32_t>(expected));
        }
    }
}

} // namespace
} // namespace planloom
