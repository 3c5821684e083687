// Products that do what comes behind them: activations, their slopes, and gradients of biases. Only where
// that is the same function, and nothing else needs what they would not write.

#include "engine/cuda/backend/cuda_devices.h"
#include "engine/cuda/kernels/own_kernels.h"
#include "engine/cuda/nccl/emulated_world.h"

#include "tests/engine/cuda/array_distance.h"
#include "tests/engine/cuda/fake_cuda.h"
#include "tests/engine/lowering/random_plans.h"
#include "tests/engine/runtime/backend_suite.h"
#include "tests/engine/runtime/model_files.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <map>

namespace planloom {
namespace {

struct EpilogueRun {
    RunOutcome outcome{};
    std::map<std::string, int> calls{}; ///< "multiply gelu keeping": 8
};

/// A training step on one device.
EpilogueRun runOnOneDevice(const char *name, bool epilogues, const CudaBackendOptions &backend = {})
{
    EpilogueRun run;
    const Model model(trainingStepOf(name, OperatorKind::SgdStep));
    RandomCase alone;
    alone.cluster = *clusterNamed("dgx-a100:1");
    const auto plan = carryOut(model, alone).lowered;
    EXPECT_TRUE(plan);
    if (!plan)
        return run;
    const auto cuda = std::make_shared<FakeCuda>(3);
    cuda->hasEpilogues = epilogues;
    cuda->keepsCalls = true;
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    options.steps = 3; // in the first one, what is to be made is poisoned before each kernel
    options.devices = emulatedCudaDevices(
        [cuda]() -> Result<std::shared_ptr<CudaFunctions>> { return std::shared_ptr<CudaFunctions>{cuda}; },
        backend);
    auto outcome = runOnCpu(*plan, options);
    options.devices = {};
    EXPECT_TRUE(outcome) << describe(outcome.error());
    EXPECT_EQ(cuda->live(), 0U);
    if (outcome)
        run.outcome = *std::move(outcome);
    for (const std::string &call : cuda->calls)
        if (call.starts_with("multiply") || call.starts_with("launch"))
            ++run.calls[call.substr(0, call.rfind(' '))];
    return run;
}

void expectClose(const EpilogueRun &a, const EpilogueRun &b)
{
    ASSERT_EQ(a.outcome.losses.size(), b.outcome.losses.size());
    for (std::size_t step = 0; step < a.outcome.losses.size(); ++step)
        EXPECT_NEAR(a.outcome.losses[step], b.outcome.losses[step], 1e-5 * std::abs(b.outcome.losses[step]));
    EXPECT_LT(distanceOf(a.outcome.gradients, b.outcome.gradients), 1e-4);
    EXPECT_LT(distanceOf(a.outcome.weights, b.outcome.weights), 1e-5);
}

TEST(Epilogues, OfAGptDoItsActivationsTheirSlopesAndItsBiasGradients)
{
    constexpr const char *kGpt = "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24";
    EpilogueRun with = runOnOneDevice(kGpt, true);
    EpilogueRun without = runOnOneDevice(kGpt, false);
    expectClose(with, without);
    // Two layers, and two of the steps; what GELU is of is kept for its slope.
    EXPECT_EQ(with.calls["multiply gelu keeping"], 4);
    EXPECT_EQ(with.calls["multiply gelu slope"], 4);
    EXPECT_EQ(with.calls["multiply gelu"], 0);
    EXPECT_EQ(with.calls["launch Unary"], 4);
    EXPECT_EQ(without.calls["launch Unary"], 12);
    const int sums = with.calls["multiply sums of a"] + with.calls["multiply sums of b"];
    EXPECT_GT(sums, 8);
    EXPECT_EQ(with.calls["launch Reduce"] + sums, without.calls["launch Reduce"]);
    const auto products = [](const EpilogueRun &run) {
        int all = 0;
        for (const auto &[call, count] : run.calls)
            all += call.starts_with("multiply") ? count : 0;
        return all;
    };
    EXPECT_EQ(products(with), products(without));
    CudaBackendOptions plain;
    plain.fuses = false;
    EpilogueRun alone = runOnOneDevice(kGpt, true, plain);
    expectClose(with, alone);
    EXPECT_EQ(alone.calls["launch Unary"], 12);
}

TEST(Epilogues, AreNotDoneForOtherFunctions)
{
    EpilogueRun swin =
        runOnOneDevice("zoo:moe?layers=2&hidden=16&heads=4&seq=8&batch=2&vocab=24&experts=4", true);
    EXPECT_EQ(swin.calls["multiply gelu keeping"], 0); // by erf
    EXPECT_EQ(swin.calls["multiply gelu"], 0);
    EXPECT_EQ(swin.calls["multiply gelu slope"], 0);
    EXPECT_GT(swin.calls["launch Unary"], 0);
}

/// Products and activations of a graph of the test's own, in memory of the test's own.
class EpilogueTasks : public testing::Test
{
protected:
    static constexpr std::int64_t kRows = 4;
    static constexpr std::int64_t kWide = 8;

    void SetUp() override
    {
        GraphBuilder builder;
        const TensorId x = builder.input("x", {DataType::Float32, {kRows, kWide}});
        const TensorId w = builder.input("w", {DataType::Float32, {kWide, kWide}});
        const TensorId y = builder.one(OperatorKind::MatMul, {x, w}, {}, "product");
        const TensorId relu = builder.one(OperatorKind::Relu, {y}, {}, "relu");
        const TensorId gelu =
            builder.one(OperatorKind::Gelu, {y}, attributesOf({{"approximate", "tanh"}}), "gelu");
        auto graph = builder.finish({relu, gelu});
        ASSERT_TRUE(graph) << describe(graph.error());
        m_graph = *std::move(graph);
        auto backend = cudaBackend(m_shared, m_world.communicator(DeviceId{0}), {});
        ASSERT_TRUE(backend);
        m_device = *std::move(backend);
        auto arena = m_device->reserve(MemoryPlace::Device, 4096);
        ASSERT_TRUE(arena);
        m_arena = *arena;
        for (std::size_t i = 0; i < 1024; ++i)
            at(0)[i] = std::sin(static_cast<float>(i));
    }

    float *at(std::size_t place) { return reinterpret_cast<float *>(m_arena) + 64 * place; }

    DeviceTask task(EventId event, const std::string &name, std::vector<std::size_t> from, std::size_t to)
    {
        return {.event = event, .work = [=, this](DeviceQueue &queue) -> Result<void> {
                    const auto op = std::find_if(m_graph.operators.begin(), m_graph.operators.end(),
                        [&](const Operator &each) { return each.name == name; });
                    KernelCall call;
                    call.op = &*op;
                    for (std::size_t slot = 0; slot < from.size(); ++slot)
                        call.inputs.push_back(buffer(op->inputs[slot], from[slot]));
                    call.outputs.push_back(buffer(op->outputs[0], to));
                    return queue.kernel(call, nullptr);
                }};
    }
    Buffer buffer(TensorId tensor, std::size_t place)
    {
        const Shape &shape = m_graph.at(tensor).type.shape;
        return {reinterpret_cast<std::byte *>(at(place)), DataType::Float32, shape, wholeMask(shape), shape};
    }
    /// x at 0, w at 1. @return the calls that compute
    std::vector<std::string> callsOf(std::vector<DeviceTask> tasks)
    {
        Told told;
        m_device->begin(static_cast<std::int32_t>(tasks.size()), told);
        m_cuda.keepsCalls = true;
        for (DeviceTask &each : tasks)
            m_device->issue(std::move(each));
        m_cuda.keepsCalls = false;
        m_device->finish();
        for (const auto &[event, done] : told.tasks)
            EXPECT_FALSE(done.error) << describe(*done.error);
        std::vector<std::string> calls;
        for (const std::string &call : m_cuda.calls)
            if (call.starts_with("multiply") || call.starts_with("launch"))
                calls.push_back(call.substr(0, call.rfind(' ')));
        m_cuda.calls.clear();
        return calls;
    }
    float product(std::size_t row, std::size_t column, std::size_t x = 0)
    {
        float sum = 0;
        for (std::size_t k = 0; k < kWide; ++k)
            sum += std::sin(static_cast<float>(64 * x + row * kWide + k))
                * std::sin(static_cast<float>(64 + k * kWide + column));
        return sum;
    }

    Graph m_graph{};
    FakeCuda m_cuda{};
    CudaShared m_shared{m_cuda, 2};
    EmulatedWorld m_world{m_shared, 1, {}};
    std::unique_ptr<DeviceBackend> m_device{};
    std::byte *m_arena = nullptr;
};

TEST_F(EpilogueTasks, OfReluNeedNobodyElseToReadTheProduct)
{
    for (const bool ends : {false, true}) {
        std::vector<DeviceTask> tasks;
        tasks.push_back(task(0, "product", {0, 1}, 2));
        tasks.push_back(task(1, "relu", {2}, 3));
        if (ends)
            tasks.back().ends = {{reinterpret_cast<const std::byte *>(at(2)), 256}};
        EXPECT_EQ(callsOf(std::move(tasks)),
            (ends ? std::vector<std::string>{"multiply relu"}
                  : std::vector<std::string>{"multiply", "launch Unary"}));
        for (std::size_t i = 0; i < kRows * kWide; ++i)
            EXPECT_FLOAT_EQ(at(3)[i], std::max(product(i / kWide, i % kWide), 0.0f));
    }
}

TEST_F(EpilogueTasks, OfGeluKeepWhatOthersRead)
{
    for (const bool ends : {false, true}) {
        std::vector<DeviceTask> tasks;
        tasks.push_back(task(0, "product", {0, 1}, 2));
        tasks.push_back(task(1, "gelu", {2}, 3));
        if (ends)
            tasks.back().ends = {{reinterpret_cast<const std::byte *>(at(2)), 256}};
        at(2)[5] = 77;
        EXPECT_EQ(callsOf(std::move(tasks)),
            (std::vector<std::string>{ends ? "multiply gelu" : "multiply gelu keeping"}));
        EXPECT_FLOAT_EQ(at(2)[5], ends ? 77 : product(0, 5));
        for (std::size_t i = 0; i < kRows * kWide; ++i)
            EXPECT_FLOAT_EQ(
                at(3)[i], unary::GeluTanh::value(product(i / kWide, i % kWide), unary::Parameters<float>{}));
    }
}

TEST_F(EpilogueTasks, DoNotWriteWhereTheProductReads)
{
    // The activation lies where the product's operand was: right for two kernels, one after the other.
    std::vector<DeviceTask> tasks;
    tasks.push_back(task(0, "product", {0, 1}, 2));
    tasks.push_back(task(1, "gelu", {2}, 0));
    EXPECT_EQ(callsOf(std::move(tasks)), (std::vector<std::string>{"multiply", "launch Unary"}));
    for (std::size_t i = 0; i < kRows * kWide; ++i)
        EXPECT_FLOAT_EQ(
            at(0)[i], unary::GeluTanh::value(product(i / kWide, i % kWide), unary::Parameters<float>{}));
}

TEST_F(EpilogueTasks, AreOfTheLastProductAndTheNextKernelAlone)
{
    std::vector<DeviceTask> tasks;
    tasks.push_back(task(0, "product", {0, 1}, 2));
    tasks.push_back(task(1, "product", {4, 1}, 5));
    tasks.push_back(task(2, "gelu", {2}, 3));
    tasks.push_back(task(3, "gelu", {5}, 6));
    EXPECT_EQ(callsOf(std::move(tasks)),
        (std::vector<std::string>{"multiply", "multiply", "launch Unary", "launch Unary"}));
    for (std::size_t i = 0; i < kRows * kWide; ++i) {
        EXPECT_FLOAT_EQ(
            at(3)[i], unary::GeluTanh::value(product(i / kWide, i % kWide), unary::Parameters<float>{}));
        EXPECT_FLOAT_EQ(
            at(6)[i], unary::GeluTanh::value(product(i / kWide, i % kWide, 4), unary::Parameters<float>{}));
    }
}

} // namespace
} // namespace planloom
