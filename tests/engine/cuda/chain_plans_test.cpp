// Random plans whose element-wise kernels become one where they follow each other make the bits that they
// make one after another, issued and as graphs, and tell times that fit; what cannot be fused is run as
// before.

#include "engine/cuda/backend/cuda_devices.h"
#include "engine/cuda/nccl/emulated_world.h"

#include "tests/engine/cuda/fake_cuda.h"
#include "tests/engine/cuda/host_compiler.h"
#include "tests/engine/cuda/planted_fault.h"
#include "tests/engine/lowering/random_plans.h"
#include "tests/engine/runtime/backend_suite.h"
#include "tests/engine/runtime/model_files.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

#include <cctype>
#include <map>

namespace planloom {
namespace {

OpenDevices devicesOn(const std::shared_ptr<FakeCuda> &cuda, const CudaBackendOptions &options)
{
    return emulatedCudaDevices(
        [cuda]() -> Result<std::shared_ptr<CudaFunctions>> { return std::shared_ptr<CudaFunctions>{cuda}; },
        options);
}

RunOptions someSteps(std::int32_t steps)
{
    RunOptions options;
    options.keepGradients = true;
    options.randomWeights = true;
    options.steps = steps;
    return options;
}

std::int64_t launchesOf(const FakeCuda &cuda, const std::string &prefix = "launch ")
{
    return std::count_if(cuda.calls.begin(), cuda.calls.end(),
        [&](const std::string &call) { return call.starts_with(prefix) && call != "launch graph"; });
}

void expectSame(const NamedArrays &a, const NamedArrays &b)
{
    ASSERT_EQ(a.size(), b.size());
    for (const auto &[name, array] : a)
        EXPECT_TRUE(b.count(name) != 0 && b.at(name).bytes == array.bytes) << name;
}

void expectSame(const RunOutcome &a, const RunOutcome &b)
{
    EXPECT_EQ(a.losses, b.losses);
    expectSame(a.outputs, b.outputs);
    expectSame(a.gradients, b.gradients);
    expectSame(a.weights, b.weights);
}

std::optional<ExecutionPlan> planOf(const Model &model, std::uint32_t seed, bool precisions)
{
    return carryOut(model,
        randomCase(*model.graph, seed, {.touched = 0.15, .wholeBatches = true, .precisions = precisions}))
        .lowered;
}

class ChainPlans : public testing::TestWithParam<const char *>
{
};

TEST_P(ChainPlans, MakeTheBitsOfTheirKernelsWithFewerLaunches)
{
    if (const std::string why = whyNoHostCompiler(); !why.empty())
        GTEST_SKIP() << why;
    const GraphSnapshot graph = trainingStepOf(GetParam(), OperatorKind::SgdStep);
    if (!graph)
        GTEST_SKIP() << "the model set is not beside this checkout";
    const Model model(graph);
    std::int64_t before = 0;
    std::int64_t after = 0;
    int captured = 0;
    const auto [first, end] = seedsToTry("PLANLOOM_RANDOM_PLANS", 2);
    for (std::uint32_t seed = first; seed < end; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        const auto plan = planOf(model, seed, seed % 2 == 1);
        if (!plan)
            continue;
        std::map<bool, RunOutcome> outcomes;
        for (const bool fuses : {false, true}) {
            const auto cuda = std::make_shared<FakeCuda>(seed);
            cuda->hasCompiler = true;
            cuda->hasEpilogues = false; // which round less
            cuda->keepsCalls = true;
            CudaBackendOptions backend;
            backend.fuses = fuses;
            RunOptions options = someSteps(seed % 3 == 0 ? 5 : 2); // of five, two are a graph
            options.devices = devicesOn(cuda, backend);
            auto outcome = runOnCpu(*plan, options);
            ASSERT_TRUE(outcome) << describe(outcome.error());
            outcomes.emplace(fuses, *std::move(outcome));
            (fuses ? after : before) += launchesOf(*cuda);
            EXPECT_EQ(cuda->sources.empty(), launchesOf(*cuda, "launch chain") == 0);
            EXPECT_TRUE(fuses || cuda->sources.empty());
            EXPECT_EQ(cuda->compiled, static_cast<int>(cuda->sources.size())); // each once
            captured += fuses ? cuda->captured : 0;
            options.devices = {};
            EXPECT_EQ(cuda->live(), 0U);
        }
        expectSame(outcomes.at(false), outcomes.at(true));
    }
    EXPECT_LT(after, before);
    std::printf("%lld launches in place of %lld, %d graphs\n", static_cast<long long>(after),
        static_cast<long long>(before), captured);
}

INSTANTIATE_TEST_SUITE_P(Models, ChainPlans,
    testing::Values("bert_tiny", "swin_tiny", "zoo:gpt?layers=2&hidden=16&heads=4&seq=8&batch=8&vocab=24",
        "zoo:llama?layers=1&hidden=16&heads=4&kv_heads=2&seq=4&batch=4&vocab=24"),
    [](const auto &info) {
        std::string name(info.param);
        for (char &c : name)
            if (std::isalnum(static_cast<unsigned char>(c)) == 0)
                c = '_';
        return name;
    });

const Model &smallLlama()
{
    static const Model kModel(
        trainingStepOf("zoo:llama?layers=1&hidden=16&heads=4&kv_heads=2&seq=4&batch=4&vocab=24"));
    return kModel;
}

TEST(ChainPlansOfOneKind, TellTimesOfEachInstructionThatFollowEachOther)
{
    if (const std::string why = whyNoHostCompiler(); !why.empty())
        GTEST_SKIP() << why;
    for (const bool captures : {false, true}) {
        const auto plan = planOf(smallLlama(), 2, false);
        ASSERT_TRUE(plan);
        const auto cuda = std::make_shared<FakeCuda>(5);
        cuda->hasCompiler = true;
        cuda->keepsCalls = true;
        CudaBackendOptions backend;
        backend.captures = captures;
        RunOptions options = someSteps(6);
        options.devices = devicesOn(cuda, backend);
        RunEvents events;
        std::map<std::pair<std::int32_t, std::int32_t>, std::vector<LiveSpan>> spans; // by device and step
        events.spans = [&](DeviceId device, const std::vector<LiveSpan> &told) {
            for (const LiveSpan &span : told)
                spans[{device.index, span.step}].push_back(span);
        };
        ASSERT_TRUE(runOnCpu(*plan, options, events));
        EXPECT_GT(launchesOf(*cuda, "launch chain"), 0);
        EXPECT_EQ(cuda->captured, captures ? 1 : 0);
        EXPECT_FALSE(spans.empty());
        for (auto &[of, all] : spans) {
            const DeviceProgram &program = plan->devices[static_cast<std::size_t>(of.first)];
            std::map<QueueKind, std::int64_t> ends;
            for (const LiveSpan &span : all) { // in the order in which they end
                const Instruction &instruction =
                    program.segments[static_cast<std::size_t>(span.segment)]
                        .instructions[static_cast<std::size_t>(span.instruction)];
                std::int64_t &end = ends.try_emplace(queueOf(instruction), span.start).first->second;
                EXPECT_GE(span.start, end - 1) << of.first << " " << of.second; // rounded
                EXPECT_GE(span.duration, 0);
                end = span.start + span.duration;
            }
        }
    }
}

TEST(ChainPlansOfOneKind, RunAsBeforeWhereNothingCompilesOrLoads)
{
    const auto plan = planOf(smallLlama(), 2, false);
    ASSERT_TRUE(plan);
    std::vector<RunOutcome> outcomes;
    const std::vector<std::string> expected{
        "run one after another, and not several as one kernel: NVRTC was not found",
        "nvrtcCompileProgram failed with 6: line 1: error", "cudaLibraryLoadData failed with 209"};
    for (std::size_t which = 0; which < expected.size(); ++which) {
        if (which == 2 && !whyNoHostCompiler().empty())
            continue;
        const auto cuda = std::make_shared<FakeCuda>(5);
        cuda->hasCompiler = which > 0;
        cuda->compileFails = which == 1 ? 6 : 0;
        cuda->loadFails = which == 2 ? 209 : 0;
        cuda->keepsCalls = true;
        RunOptions options = someSteps(4);
        options.devices = devicesOn(cuda, {});
        RunEvents events;
        std::vector<std::string> warnings;
        events.warning = [&](const std::string &text) { warnings.push_back(text); };
        auto outcome = runOnCpu(*plan, options, events);
        ASSERT_TRUE(outcome) << describe(outcome.error());
        outcomes.push_back(*std::move(outcome));
        EXPECT_EQ(launchesOf(*cuda, "launch chain"), 0);
        EXPECT_EQ(
            std::count_if(warnings.begin(), warnings.end(),
                [&](const std::string &text) { return text.find(expected[which]) != std::string::npos; }),
            1)
            << expected[which];
        options.devices = {};
        EXPECT_EQ(cuda->live(), 0U);
    }
    for (const RunOutcome &outcome : outcomes)
        expectSame(outcomes[0], outcome);
}

TEST(ChainPlansOfOneKind, WithFaultsLeaveNothingBehind)
{
    if (const std::string why = whyNoHostCompiler(); !why.empty())
        GTEST_SKIP() << why;
    std::mt19937 random(5);
    int failed = 0;
    const auto plan = planOf(smallLlama(), 2, false);
    ASSERT_TRUE(plan);
    for (std::uint32_t i = 0; i < 60; ++i) {
        const auto fails = failsAsPlanted(*plan, someSteps(4), i,
            20 + static_cast<std::int64_t>(random() % 6000), [](const std::shared_ptr<FakeCuda> &cuda) {
                cuda->hasCompiler = true;
                return devicesOn(cuda, {});
            });
        failed += fails ? 1 : 0;
    }
    EXPECT_GT(failed, 10);
}

/// One device of a fake with a compiler, in whose memory tasks add and convert.
class ChainBackend : public testing::Test
{
protected:
    void SetUp() override
    {
        if (const std::string why = whyNoHostCompiler(); !why.empty())
            GTEST_SKIP() << why;
        m_cuda.hasCompiler = true;
        auto backend = cudaBackend(m_shared, m_world.communicator(DeviceId{0}), {});
        ASSERT_TRUE(backend);
        m_device = *std::move(backend);
        auto arena = m_device->reserve(MemoryPlace::Device, 4096);
        ASSERT_TRUE(arena);
        m_arena = *arena;
        for (std::size_t at = 0; at < 1024; ++at)
            reinterpret_cast<float *>(m_arena)[at] = static_cast<float>(at);
    }

    std::byte *at(std::size_t place) { return m_arena + 256 * place; }
    /// Adds place `from` to place `to`.
    DeviceTask add(EventId event, std::size_t to, std::size_t from)
    {
        return {.event = event, .work = [=, this](DeviceQueue &queue) -> Result<void> {
                    EXPECT_TRUE(queue.add(at(to), DataType::Float32, at(from), DataType::Float32, 64));
                    return {};
                }};
    }
    /// @return the calls, without those of the step's anchor
    std::vector<std::string> callsOf(std::vector<DeviceTask> tasks, Told &told)
    {
        m_device->begin(static_cast<std::int32_t>(tasks.size()), told);
        m_cuda.keepsCalls = true;
        for (DeviceTask &task : tasks)
            m_device->issue(std::move(task));
        m_cuda.keepsCalls = false;
        m_device->finish();
        return m_cuda.calls;
    }

    FakeCuda m_cuda{};
    CudaShared m_shared{m_cuda, 2};
    EmulatedWorld m_world{m_shared, 1, {}};
    std::unique_ptr<DeviceBackend> m_device{};
    std::byte *m_arena = nullptr;
};

TEST_F(ChainBackend, LaunchesTasksThatFollowEachOtherAsOne)
{
    // Of events, e0 is the anchor; then come start and end of each task.
    std::vector<DeviceTask> tasks;
    tasks.push_back(add(0, 0, 1));
    tasks.push_back({.event = 1}); // nothing to do
    tasks.push_back(add(2, 0, 2));
    Told told;
    EXPECT_EQ(callsOf(std::move(tasks), told),
        (std::vector<std::string>{
            "record e1 s0", "record e3 s0", "load kernel", "launch chain s0", "record e6 s0"}));
    EXPECT_EQ(reinterpret_cast<float *>(at(0))[5], 5 + 69 + 133);
    ASSERT_EQ(told.tasks.size(), 3U);
    for (const auto &[event, task] : told.tasks)
        EXPECT_FALSE(task.error);
    EXPECT_EQ(told.tasks[1].start, told.tasks[1].end);
    EXPECT_LE(told.tasks[0].end, told.tasks[2].start);
    EXPECT_LT(told.tasks[2].start, told.tasks[2].end);
}

TEST_F(ChainBackend, EndsAChainBeforeATaskThatWaitsAndBeforeAnythingElse)
{
    std::vector<DeviceTask> tasks;
    tasks.push_back(add(0, 0, 1));
    tasks.push_back({.event = 1,
        .queue = QueueKind::Data,
        .waits = {0},
        .work = [this](DeviceQueue &queue) -> Result<void> {
            queue.copy(at(4), at(0), 256);
            return {};
        }});
    tasks.push_back(add(2, 0, 2));
    tasks.back().waits = {1};
    tasks.push_back({.event = 3, .work = [this](DeviceQueue &queue) -> Result<void> {
                         // Joins at first, and then does what does not.
                         EXPECT_TRUE(queue.add(at(0), DataType::Float32, at(3), DataType::Float32, 64));
                         queue.fill(at(5), 0, 256);
                         return {};
                     }});
    Told told;
    EXPECT_EQ(callsOf(std::move(tasks), told),
        (std::vector<std::string>{"record e1 s0", "launch Add s0", "record e2 s0", "wait s2 e2",
            "record e3 s2", "copy 256 s2", "record e4 s2", "wait s0 e4", "record e5 s0", "launch Add s0",
            "record e6 s0", "record e7 s0", "launch Add s0", "fill 256 s0", "record e8 s0"}));
    EXPECT_EQ(reinterpret_cast<float *>(at(4))[5], 5 + 69);
    EXPECT_EQ(reinterpret_cast<float *>(at(0))[5], 5 + 69 + 133 + 197);
}

TEST_F(ChainBackend, LaunchesWhatWaitsForAChainInTheOrderOfThePlan)
{
    // Ranks communicate in this order: what came behind would otherwise come before it, on some of them.
    std::vector<DeviceTask> tasks;
    tasks.push_back(add(0, 0, 1));
    tasks.push_back(add(1, 0, 2));
    tasks.push_back({.event = 2,
        .queue = QueueKind::Data,
        .waits = {0},
        .work = [this](DeviceQueue &queue) -> Result<void> {
            queue.copy(at(4), at(0), 256);
            return {};
        }});
    tasks.push_back(add(3, 5, 1));
    tasks.push_back(add(4, 5, 2));
    Told told;
    std::vector<std::string> order;
    for (const std::string &call : callsOf(std::move(tasks), told))
        if (call.starts_with("launch") || call.starts_with("copy"))
            order.push_back(call);
    EXPECT_EQ(order, (std::vector<std::string>{"launch chain s0", "copy 256 s2", "launch chain s0"}));
    EXPECT_EQ(reinterpret_cast<float *>(at(4))[5], 5 + 69 + 133);
    EXPECT_EQ(reinterpret_cast<float *>(at(5))[5], 325 + 69 + 133);
}

TEST_F(ChainBackend, StoresWhatOthersReadAndNothingThatEnds)
{
    for (const bool ends : {false, true}) {
        std::vector<DeviceTask> tasks;
        tasks.push_back(add(0, 0, 1));
        tasks.push_back({.event = 1, .work = [this](DeviceQueue &queue) -> Result<void> {
                             EXPECT_TRUE(
                                 queue.convert(at(0), DataType::Float32, at(6), DataType::BFloat16, 64));
                             return {};
                         }});
        if (ends)
            tasks.back().ends = {{at(0), 256}};
        reinterpret_cast<float *>(at(0))[1] = 1;
        Told told;
        (void)callsOf(std::move(tasks), told);
        EXPECT_EQ(reinterpret_cast<float *>(at(0))[1], ends ? 1 : 1 + 65);
        EXPECT_EQ(reinterpret_cast<std::uint16_t *>(at(6))[1], 0x4284); // 66
    }
}

TEST_F(ChainBackend, RunsWhatAFailingTaskHasPutBeforeIt)
{
    std::vector<DeviceTask> tasks;
    tasks.push_back(add(0, 0, 1));
    tasks.push_back({.event = 1, .work = [this](DeviceQueue &queue) -> Result<void> {
                         EXPECT_TRUE(queue.add(at(0), DataType::Float32, at(2), DataType::Float32, 64));
                         return Error{ErrorCode::InvalidInput, "it fails", {}, {}};
                     }});
    tasks.push_back(add(2, 0, 3));
    Told told;
    (void)callsOf(std::move(tasks), told);
    EXPECT_FALSE(told.tasks[0].error);
    ASSERT_TRUE(told.tasks[1].error);
    EXPECT_EQ(told.tasks[1].error->message, "it fails");
    EXPECT_FALSE(told.tasks[2].error);
    EXPECT_EQ(reinterpret_cast<float *>(at(0))[5], 5 + 69 + 133 + 197);
}

} // namespace
} // namespace planloom
