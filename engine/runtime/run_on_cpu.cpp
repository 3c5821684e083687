#include "engine/runtime/run.h"

#include "engine/lowering/expand_units.h"

#include "engine/base/work_pool.h"
#include "engine/kernels/operator_library.h"
#include "engine/runtime/cpu_backend.h"
#include "engine/runtime/device_executor.h"
#include "engine/runtime/free_memory.h"
#include "engine/runtime/measured.h"
#include "engine/runtime/run_devices.h"
#include "engine/runtime/thread_communicator.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <map>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>

namespace planloom {

namespace {

using Clock = DeviceExecutor::Clock;
constexpr auto kProgressEvery = std::chrono::milliseconds{150}; // more than 5 a second

Result<void> checkRunnable(const ExecutionPlan &plan)
{
    for (const DeviceProgram &device : plan.devices) {
        for (const Segment &segment : device.segments) {
            for (const Instruction &instruction : segment.instructions) {
                if (instruction.kind != InstructionKind::Kernel)
                    continue;
                const Operator &op = plan.graph->at(instruction.op);
                if (hasKernel(op))
                    continue;
                const std::string type = typeNameOf(op);
                const bool isRandom =
                    type.starts_with("Random") || type == "Bernoulli" || type == "Multinomial";
                return Error{ErrorCode::NotSupported,
                    "operator " + op.name + " (" + type + ") has no implementation to run",
                    isRandom ? "draw the numbers outside of the model and pass them as an input; plans and "
                               "simulations work as it is"
                             : "give it a body or a library in an operator file (MODEL.ops beside the "
                               "model); plans "
                               "and simulations work as it is",
                    "operator:" + std::to_string(instruction.op.index)};
            }
        }
    }
    return {};
}

/// One run: its devices, what they share, and the first thing that went wrong.
class Run
{
public:
    Run(const ExecutionPlan &plan, const RunOptions &options, const RunEvents &events,
        const HostValues &values, const OperatorLibraries &libraries, RunDevices *others)
        : m_plan(plan)
        , m_options(options)
        , m_events(events)
        , m_ownProgress(events.counters == nullptr ? plan.devices.size() : 0)
        , m_progress(events.counters == nullptr ? m_ownProgress.data() : events.counters)
        , m_pool(options.threads > 0 ? options.threads : allowedCores())
        , m_collector(plan, options)
        , m_world(static_cast<std::int32_t>(plan.devices.size()), plan.groups)
        , m_shared{plan, options, values, m_collector, libraries, m_stopped,
              [this](Error error) { fail(std::move(error)); }}
        , m_others(others)
    {
        if (m_others != nullptr)
            m_others->setWarning([this](const std::string &text) { warn(text); });
        for (std::size_t d = 0; d < plan.devices.size(); ++d) {
            const auto device = static_cast<std::int32_t>(d);
            m_devices.push_back(std::make_unique<DeviceExecutor>(m_shared, device, m_progress[d],
                m_others != nullptr ? m_others->device(DeviceId{device})
                                    : cpuBackend(m_pool, m_world.communicator(DeviceId{device}))));
        }
        for (const auto &device : m_devices)
            device->setLive(static_cast<bool>(m_events.spans));
    }

    Result<RunOutcome> execute(std::stop_token stop)
    {
        TRY_VOID(prepareMemory());
        {
            const std::stop_callback onStop{stop, [this] { fail(cancelled("the run was stopped")); }};
            std::thread driver([this] {
                drive();
                const std::lock_guard lock{m_mutex};
                m_running = false;
                m_changed.notify_all();
            });
            report();
            driver.join();
        }
        tellSpans();
        if (m_error)
            return *std::move(m_error);
        m_outcome.measured = measuredTimeline(m_plan, m_devices,
            Nanoseconds{
                m_outcome.stepSeconds.empty() ? 0 : std::llround(m_outcome.stepSeconds.back() * 1e9)});
        for (const auto &device : m_devices)
            m_outcome.peak.push_back(device->peak());
        m_collector.finish(m_outcome);
        return std::move(m_outcome);
    }

private:
    /// Plans all memory, and reserves it if this machine has it.
    Result<void> prepareMemory()
    {
        std::vector<MemoryNeed> needs;
        for (std::size_t d = 0; d < m_devices.size(); ++d) {
            TRY_VOID(m_devices[d]->planMemory());
            needs.push_back({static_cast<std::int32_t>(d), {m_devices[d]->arenaBytes(MemoryPlace::Device)},
                {m_devices[d]->arenaBytes(MemoryPlace::Host)}});
        }
        if (m_others != nullptr) {
            TRY_VOID(m_others->requireMemory(needs));
            for (MemoryNeed &need : needs)
                need.own = {};
        }
        TRY_VOID(requireMemory(needs, freeMemory()));
        for (const auto &device : m_devices)
            TRY_VOID(device->reserve());
        return {};
    }

    /// Keeps the first error, and ends all that waits.
    void fail(Error error)
    {
        {
            const std::lock_guard lock{m_mutex};
            if (!m_error)
                m_error = std::move(error);
        }
        m_stopped.store(true);
        m_world.abort();
        if (m_others != nullptr)
            m_others->abort();
    }

    void warn(const std::string &text)
    {
        if (!m_events.warning)
            return;
        const std::lock_guard lock{m_eventMutex};
        m_events.warning(text);
    }

    void drive()
    {
        for (const auto &device : m_devices)
            device->issueSetup();
        for (const auto &device : m_devices)
            device->finish();
        if (m_stopped.load())
            return;
        if (m_events.loaded) {
            const std::lock_guard lock{m_eventMutex};
            m_events.loaded();
        }
        for (std::int32_t step = 0; step < m_options.steps; ++step) {
            m_collector.beginStep();
            m_origin = Clock::now();
            for (const auto &device : m_devices)
                device->issueStep(step, m_origin, m_events.spans || step + 1 == m_options.steps);
            for (const auto &device : m_devices)
                device->finish();
            if (m_stopped.load())
                return;
            stepDone(step);
        }
    }

    void stepDone(std::int32_t step)
    {
        const double seconds = std::chrono::duration<double>(Clock::now() - m_origin).count();
        m_collector.endStep();
        const double loss = m_collector.loss();
        m_outcome.losses.push_back(loss);
        m_outcome.stepSeconds.push_back(seconds);
        countDropped(step);
        if (m_events.stepDone) {
            const std::lock_guard lock{m_eventMutex};
            m_events.stepDone(step, loss, seconds);
        }
    }

    /// Says in the first step that leaves something out what it is.
    void countDropped(std::int32_t step)
    {
        std::int64_t total = 0;
        std::map<OperatorId, std::int64_t> dropped;
        for (const auto &device : m_devices) {
            for (const auto &[op, count] : device->dropped()) {
                dropped[op] += count;
                total += count;
            }
        }
        const std::int64_t before =
            std::accumulate(m_outcome.dropped.begin(), m_outcome.dropped.end(), std::int64_t{0});
        m_outcome.dropped.push_back(total - before);
        if (total == 0 || before != 0 || !m_events.warning)
            return;
        const auto most = std::max_element(
            dropped.begin(), dropped.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
        const std::lock_guard lock{m_eventMutex};
        m_events.warning("step " + std::to_string(step + 1) + " left out " + std::to_string(total)
            + " of the places that data chose, which had no room; " + std::to_string(most->second)
            + " of them in '" + m_plan.graph->at(most->first).name + "': give more room with --capacity");
    }

    void tellSpans()
    {
        if (!m_events.spans)
            return;
        const std::lock_guard lock{m_eventMutex};
        for (std::size_t d = 0; d < m_devices.size(); ++d)
            if (const std::vector<LiveSpan> ended = m_devices[d]->takeLive(); !ended.empty())
                m_events.spans(DeviceId{static_cast<std::int32_t>(d)}, ended);
    }

    /// Tells how far the devices are until all have ended.
    void report()
    {
        std::unique_lock lock{m_mutex};
        while (!m_changed.wait_for(lock, kProgressEvery, [this] { return !m_running; })) {
            if (!m_events.progress && !m_events.spans)
                continue;
            lock.unlock();
            tellSpans();
            if (m_events.progress) {
                const std::lock_guard eventLock{m_eventMutex};
                for (std::size_t d = 0; d < m_devices.size(); ++d)
                    m_events.progress(DeviceId{static_cast<std::int32_t>(d)}, m_progress[d].issued.load(),
                        m_progress[d].finished.load());
            }
            lock.lock();
        }
    }

    const ExecutionPlan &m_plan;
    const RunOptions &m_options;
    const RunEvents &m_events;
    std::vector<DeviceProgress> m_ownProgress;
    DeviceProgress *m_progress;
    std::atomic<bool> m_stopped{false};
    WorkPool m_pool; ///< Before all that works on it.
    Collector m_collector;
    ThreadWorld m_world;
    RunShared m_shared;
    RunDevices *m_others; ///< Null on the CPU.
    std::vector<std::unique_ptr<DeviceExecutor>> m_devices{};
    RunOutcome m_outcome{}; ///< Written by the driving thread.
    Clock::time_point m_origin{};

    std::mutex m_eventMutex{};
    std::mutex m_mutex{}; ///< Of what follows.
    std::condition_variable m_changed{};
    bool m_running = true;
    std::optional<Error> m_error{};
};

Result<RunOutcome> runOnce(
    const ExecutionPlan &plan, const RunOptions &options, const RunEvents &events, std::stop_token stop)
{
    TRY(const auto values, HostValues::prepare(plan, options, events.warning));
    TRY(const auto libraries, OperatorLibraries::load(*plan.graph, options.libraries));
    std::unique_ptr<RunDevices> others;
    if (options.devices) {
        TRY(others, options.devices(plan));
    }
    Run run{plan, options, events, values, *libraries, others.get()};
    return run.execute(std::move(stop));
}

} // namespace

Result<RunOutcome> runOnCpu(
    const ExecutionPlan &plan, const RunOptions &options, const RunEvents &events, std::stop_token stop)
{
    if (!plan.graph || plan.devices.empty())
        return Error{ErrorCode::InvalidInput, "the plan has no devices", {}, {}};
    if (!plan.units.isOne())
        return runOnCpu(expandUnits(plan), options, events, std::move(stop));
    if (options.steps < 1)
        return Error{ErrorCode::InvalidInput, "steps must be at least 1", {}, {}};
    TRY_VOID(checkRunnable(plan));
    TRY(auto outcome, runOnce(plan, options, events, stop));
    const TensorId loss = plan.graph->loss;
    if (!loss.valid() || !outcome.outputs.contains(plan.graph->at(loss).name) || options.findNaN
        || !events.warning)
        return outcome;
    const auto broken = std::find_if(
        outcome.losses.begin(), outcome.losses.end(), [](double loss) { return std::isnan(loss); });
    if (broken == outcome.losses.end())
        return outcome;
    // Everything is deterministic: the same steps again meet the operator that broke.
    RunOptions search{options};
    search.steps = static_cast<std::int32_t>(broken - outcome.losses.begin()) + 1;
    search.findNaN = true;
    search.keepAll = false;
    search.keepGradients = false;
    const auto found = runOnce(plan, search, {}, stop);
    events.warning("the loss is NaN in step " + std::to_string(search.steps)
        + (found ? std::string{} : ": " + describe(found.error())));
    return outcome;
}

} // namespace planloom
