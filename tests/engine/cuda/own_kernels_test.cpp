// The device's own kernels, in their host build, make what those of the CPU make: of every operator, whole
// and in parts.

#include "engine/check/part_runner.h"
#include "engine/cuda/cuda_products.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/narrow_float.h"

#include "tests/engine/cuda/fake_cuda.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>
#include <set>

namespace planloom {
namespace {

/// One queue of the fake that runs calls whose buffers are the test's own.
class OneQueue
{
public:
    explicit OneQueue(bool products = true)
        : m_shared(m_cuda, 2)
        , m_products(m_cuda)
    {
        m_cuda.hasProducts = products;
        (void)m_cuda.createStream(&m_stream, false);
        m_shared.warning = [this](const std::string &text) {
            const std::size_t begin = text.find("type ") + 5;
            ++onHost[text.substr(begin, text.find(", such as") - begin)];
        };
    }

    Result<void> run(const KernelCall &given, const KernelRounding *rounding = nullptr)
    {
        m_shared.saidOnHost.clear();
        CudaTaskState task(m_shared);
        CudaScratch scratch(m_shared.device);
        CudaQueue queue(m_shared, m_products, scratch, m_stream, task);
        ++calls;
        const auto put = queue.kernel(given, rounding);
        while (m_cuda.advance(100)) { }
        TRY_VOID(put);
        TRY_VOID(queue.outcome());
        return task.outcome();
    }
    FakeCuda &cuda() { return m_cuda; }

    int calls = 0;
    std::map<std::string, int> onHost{}; ///< By what the run is told: "Conv (backward)".

private:
    FakeCuda m_cuda{};
    CudaShared m_shared;
    CudaProducts m_products;
    CudaStream m_stream = nullptr;
};

/// How far two values of a tensor are apart: relative to the larger of them and the tensor's size.
double distance(const std::vector<double> &a, const std::vector<double> &b)
{
    double squares = 0;
    double apart = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        if ((std::isnan(a[i]) && std::isnan(b[i])) || a[i] == b[i])
            continue;
        squares += a[i] * a[i];
        apart += (a[i] - b[i]) * (a[i] - b[i]);
    }
    return apart == 0 ? 0 : std::sqrt(apart / std::max(squares, 1e-6));
}

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
