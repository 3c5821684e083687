#include "engine/runtime/devices/device_executor.h"

#include "engine/kernels/custom/operator_library.h"
#include "tests/engine/runtime/plan_writer.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <vector>

using namespace planloom;
using namespace std::chrono_literals;

namespace {

/// Keeps what is issued to it, and runs nothing.
class WrittenBackend final : public DeviceBackend
{
public:
    Result<std::byte *> reserve(MemoryPlace, std::size_t bytes) override
    {
        return memory.emplace_back(bytes).data();
    }
    std::int64_t alignment() const override { return 64; }
    void announce(const StepKind &kind) override { kinds.push_back(kind.number); }
    void begin(std::int32_t events, TaskListener &told) override
    {
        begun = events;
        listener = &told;
        tasks.clear();
    }
    void issue(DeviceTask task) override { tasks.push_back(std::move(task)); }
    void finish() override { }

    std::deque<std::vector<std::byte>> memory{};
    std::vector<std::int32_t> kinds{};
    std::int32_t begun = 0;
    TaskListener *listener = nullptr;
    std::vector<DeviceTask> tasks{};
};

/// One device that has its memory, and what it shares with nobody.
struct Executed {
    explicit Executed(PlanWriter writer, RunOptions with)
        : plan(std::move(writer.plan))
        , options(std::move(with))
        , values(*HostValues::prepare(plan, options, {}, {}))
        , collector(plan, options)
        , libraries(*OperatorLibraries::load(*plan.graph, {}))
        , shared{plan, options, values, collector, begin, *libraries, stopped,
              [this](Error error) { failures.push_back(std::move(error)); }}
    {
        auto made = std::make_unique<WrittenBackend>();
        backend = made.get();
        executor = std::make_unique<DeviceExecutor>(shared, 0, progress, std::move(made));
        const auto planned = executor->planMemory();
        EXPECT_TRUE(planned) << describe(planned.error());
        EXPECT_TRUE(executor->reserve());
    }

    ExecutionPlan plan;
    RunOptions options;
    HostValues values;
    Collector collector;
    CheckpointState begin{};
    std::shared_ptr<const OperatorLibraries> libraries;
    std::atomic<bool> stopped{false};
    std::vector<Error> failures{};
    RunShared shared;
    DeviceProgress progress{};
    WrittenBackend *backend = nullptr;
    std::unique_ptr<DeviceExecutor> executor{};
};

RunOptions ofSteps(std::int32_t count)
{
    RunOptions options;
    options.steps = count;
    return options;
}

} // namespace

TEST(DeviceExecutor, IssuesEveryInstructionOfTheSetupAndOfAStep)
{
    Executed run{oneDevice(2), ofSteps(3)};
    run.executor->issueSetup();
    EXPECT_EQ(run.backend->begun, 1);
    ASSERT_EQ(run.backend->tasks.size(), 1U);
    EXPECT_EQ(run.backend->tasks[0].event, 0);
    run.executor->issueStep(1, {}, true);
    EXPECT_EQ(run.backend->begun, 10); // five instructions of each micro-batch
    ASSERT_EQ(run.backend->tasks.size(), 10U);
    const auto &instructions = run.plan.devices[0].segments[0].instructions;
    for (std::size_t i = 0; i < 10; ++i) {
        const DeviceTask &task = run.backend->tasks[i];
        EXPECT_EQ(task.event, static_cast<EventId>(i));
        EXPECT_EQ(task.queue, queueOf(instructions[i % 5]));
        EXPECT_FALSE(task.varies); // there is no optimizer
        EXPECT_EQ(task.communication.index(), 0U);
        for (const EventId before : task.waits)
            EXPECT_LT(before, task.event);
    }
}

TEST(DeviceExecutor, StepsInTheMiddleAreOfOneKindThatTheFirstAndTheLastAreNot)
{
    Executed run{oneDevice(1), ofSteps(4)};
    for (std::int32_t step = 0; step < 4; ++step)
        run.executor->issueStep(step, {}, false);
    EXPECT_EQ(run.backend->kinds, (std::vector<std::int32_t>{-1, 0, 0, -1}));
}

TEST(DeviceExecutor, CountsWhatHasEndedAndMeasuresIt)
{
    Executed run{oneDevice(1), ofSteps(2)};
    const DeviceExecutor::Clock::time_point origin{1s};
    run.executor->issueStep(0, origin, true);
    EXPECT_EQ(run.progress.issued.load(), 1);
    EXPECT_EQ(run.progress.finished.load(), 0);
    for (EventId event = 0; event < 5; ++event)
        run.backend->listener->finished(event, {}, origin + event * 1us, origin + event * 1us + 500ns);
    EXPECT_EQ(run.progress.finished.load(), 5);
    EXPECT_TRUE(run.failures.empty());
    const DeviceMeasure measure = run.executor->measure();
    ASSERT_EQ(measure.spans.size(), 5U);
    EXPECT_EQ(measure.spans[3], (LiveSpan{0, 0, 3, 0, 3000, 500}));
    EXPECT_EQ(measure.peak.count, 32 + 64 + 32); // w, x and y
    EXPECT_EQ(measure.memory.peak.count, measure.peak.count);
}

TEST(DeviceExecutor, AFailureNamesItsInstructionAndDoesNotCount)
{
    Executed run{oneDevice(1), ofSteps(2)};
    run.executor->issueStep(0, {}, false);
    run.backend->listener->finished(0, {}, {}, {});
    run.backend->listener->finished(1, Error{ErrorCode::Internal, "broken", {}, {}}, {}, {});
    ASSERT_EQ(run.failures.size(), 1U);
    EXPECT_EQ(run.failures[0].message, "device 0, kernel of product: broken");
    EXPECT_EQ(run.failures[0].where, "operator:0");
    EXPECT_EQ(run.progress.finished.load(), 1);
}

TEST(DeviceExecutor, CollectivesOfAGroupAreNumberedOverAllSteps)
{
    PlanWriter writer{productGraph(), 1};
    const auto x = writer.buffer(0, writer.tensor("x"));
    const auto sum = writer.buffer(0, writer.tensor("x"));
    writer.plan.groups = {{{0}}};
    writer.emit(0, {.kind = InstructionKind::Load, .outputs = {x}});
    writer.emit(0,
        {.kind = InstructionKind::AllReduce,
            .op = {0},
            .group = 0,
            .inputs = {x},
            .outputs = {sum},
            .deaths = {x, sum}});
    Executed run{std::move(writer), ofSteps(2)};
    for (std::int64_t step = 0; step < 2; ++step) {
        run.executor->issueStep(static_cast<std::int32_t>(step), {}, false);
        ASSERT_EQ(run.backend->tasks.size(), 2U);
        const auto *const call = std::get_if<CollectiveCall>(&run.backend->tasks[1].communication);
        ASSERT_NE(call, nullptr);
        EXPECT_EQ(call->sequence, step);
        EXPECT_EQ(call->in.shape, (Shape{4, 4}));
        EXPECT_EQ(call->out.shape, (Shape{4, 4}));
    }
}
