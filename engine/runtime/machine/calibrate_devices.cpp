// Calibration of devices of a backend: what there is of a step, each by itself, as tasks like those of a run.

#include "engine/runtime/devices/box_copy.h"
#include "engine/runtime/devices/prepared_kernel.h"
#include "engine/runtime/devices/run_devices.h"
#include "engine/runtime/machine/calibrate.h"
#include "engine/runtime/machine/distinct_kernels.h"

#include <algorithm>
#include <cassert>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

namespace {

using Clock = TaskListener::Clock;
using TaskWork = std::function<Result<void>(DeviceQueue &)>;

/// When a task ran.
struct TaskTime {
    Clock::time_point start{};
    Clock::time_point end{};
};
double secondsOf(Clock::duration duration)
{
    return std::chrono::duration<double>(duration).count();
}

/// Of one device and step.
class StepTimes final : public TaskListener
{
public:
    explicit StepTimes(std::size_t tasks)
        : m_times(tasks)
    {
    }
    void finished(
        EventId event, const Result<void> &outcome, Clock::time_point start, Clock::time_point end) override
    {
        const std::lock_guard lock{m_mutex};
        if (!outcome && !m_error)
            m_error = outcome.error();
        m_times[static_cast<std::size_t>(event)] = {start, end};
    }
    /// Once the step has ended.
    Result<std::vector<TaskTime>> times() const
    {
        if (m_error)
            return *m_error;
        return m_times;
    }

private:
    std::mutex m_mutex{};
    std::vector<TaskTime> m_times;
    std::optional<Error> m_error{};
};

/// Steps that devices like to run as a graph are issued first, then captured: the third is as all later ones.
constexpr int kStepsUntilAlike = 2;

/// The devices of a plan, each with one arena.
class Bench
{
public:
    Bench(const ExecutionPlan &plan, RunDevices &devices)
        : m_devices(devices)
    {
        for (std::size_t d = 0; d < plan.devices.size(); ++d)
            m_backends.push_back(devices.device(DeviceId{static_cast<std::int32_t>(d)}));
    }

    std::int64_t aligned(std::int64_t bytes) const
    {
        const std::int64_t alignment = std::max<std::int64_t>(m_backends.front()->alignment(), 1);
        return (bytes + alignment - 1) / alignment * alignment;
    }
    bool hasMemoryFor(std::int64_t bytes)
    {
        return m_devices.requireMemory({{.device = 0, .own = Bytes{bytes}}}).has_value();
    }
    Result<std::byte *> reserve(std::size_t device, std::int64_t bytes)
    {
        return m_backends[device]->reserve(MemoryPlace::Device, static_cast<std::size_t>(bytes));
    }

    /// Runs `tasks`, by device, as a step. @param kind  -1: like no other
    Result<std::vector<std::vector<TaskTime>>> run(
        std::int32_t kind, std::vector<std::vector<DeviceTask>> tasks)
    {
        tasks.resize(m_backends.size());
        std::vector<std::unique_ptr<StepTimes>> listeners;
        for (std::size_t d = 0; d < m_backends.size(); ++d) {
            listeners.push_back(std::make_unique<StepTimes>(tasks[d].size()));
            m_backends[d]->announce({.number = kind});
            m_backends[d]->begin(static_cast<std::int32_t>(tasks[d].size()), *listeners[d]);
        }
        for (std::size_t d = 0; d < m_backends.size(); ++d)
            for (std::size_t t = 0; t < tasks[d].size(); ++t) {
                tasks[d][t].event = static_cast<EventId>(t);
                m_backends[d]->issue(std::move(tasks[d][t]));
            }
        for (const auto &backend : m_backends)
            backend->finish();
        std::vector<std::vector<TaskTime>> times;
        for (const auto &listener : listeners) {
            TRY(auto own, listener->times());
            times.push_back(std::move(own));
        }
        return times;
    }
    /// `repeats` tasks that do the same, one behind the other on the first device, once steps with them are
    /// launched as they will be. @return when each ran
    Result<std::vector<TaskTime>> repeat(std::int32_t repeats, const TaskWork &work)
    {
        const std::int32_t kind = m_kinds++;
        for (int step = 0;; ++step) {
            std::vector<DeviceTask> tasks(static_cast<std::size_t>(repeats));
            for (DeviceTask &task : tasks)
                task.work = work;
            TRY(auto times, run(kind, {std::move(tasks)}));
            if (step == kStepsUntilAlike)
                return std::move(times.front());
        }
    }
    Result<void> once(const TaskWork &work)
    {
        std::vector<DeviceTask> tasks(1);
        tasks[0].work = work;
        TRY_VOID(run(-1, {std::move(tasks)}));
        return {};
    }
    std::size_t devices() const { return m_backends.size(); }

private:
    RunDevices &m_devices;
    std::vector<std::unique_ptr<DeviceBackend>> m_backends{};
    std::int32_t m_kinds = 0;
};

/// A kernel's buffers, one behind the other.
struct KernelBuffers {
    std::map<std::int32_t, std::int64_t> places{}; ///< By buffer: bytes from the first on.
    std::int64_t bytes = 0;

    KernelBuffers(const Bench &bench, const DistinctKernel &kernel)
    {
        for (const auto *list : {&kernel.instruction->inputs, &kernel.instruction->outputs})
            for (const std::int32_t buffer : *list)
                if (buffer >= 0 && places.try_emplace(buffer, bytes).second)
                    bytes += bench.aligned(sizeOf(infoOf(kernel, buffer)).count);
    }
    static const BufferInfo &infoOf(const DistinctKernel &kernel, std::int32_t buffer)
    {
        return kernel.program->buffers[static_cast<std::size_t>(buffer)];
    }
};

double fastestOf(const std::vector<TaskTime> &times)
{
    double fastest = secondsOf(times.front().end - times.front().start);
    for (const TaskTime &time : times)
        fastest = std::min(fastest, secondsOf(time.end - time.start));
    return fastest;
}

Result<MeasuredKernel> measure(Bench &bench, const ExecutionPlan &plan, const DistinctKernel &kernel,
    const KernelBuffers &buffers, std::byte *arena, std::int32_t repeats)
{
    TRY_VOID(bench.once([&](DeviceQueue &queue) -> Result<void> {
        for (const auto &[buffer, place] : buffers.places) {
            const BufferInfo &info = KernelBuffers::infoOf(kernel, buffer);
            TRY_VOID(queue.upload(arena + place, static_cast<std::size_t>(sizeOf(info).count),
                [&info](std::byte *to) -> Result<void> {
                    fillHarmlessly(to, info.dataType, elementCount(info.index));
                    return {};
                }));
        }
        return {};
    }));
    PreparedKernel prepared = prepareKernel(plan, *kernel.program, *kernel.instruction);
    const auto bind = [&](std::vector<Buffer> &to, const BufferList &from) {
        for (std::size_t slot = 0; slot < to.size(); ++slot)
            if (from[slot] >= 0)
                to[slot].data = arena + buffers.places.at(from[slot]);
    };
    bind(prepared.call.inputs, kernel.instruction->inputs);
    bind(prepared.call.outputs, kernel.instruction->outputs);
    const KernelRounding *const rounding = prepared.rounding ? &*prepared.rounding : nullptr;
    TRY(const auto times,
        bench.repeat(repeats, [&](DeviceQueue &queue) { return queue.kernel(prepared.call, rounding); }));
    const double fastest = fastestOf(times);
    double slowest = fastest;
    for (const TaskTime &time : times)
        slowest = std::max(slowest, secondsOf(time.end - time.start));
    // A kernel has the device to itself: its work is all of that time.
    return MeasuredKernel{kernel.category, kernel.work.flops, kernel.work.bytes, fastest, fastest,
        fastest > 0 ? (slowest - fastest) / fastest : 0};
}

/// From one task to the next, where tasks take next to no time.
Result<double> taskSeconds(Bench &bench, std::byte *arena)
{
    constexpr std::int32_t kTasks = 256;
    TRY(const auto times, bench.repeat(kTasks, [arena](DeviceQueue &queue) -> Result<void> {
        queue.fill(arena, 0, 16);
        return {};
    }));
    return std::max(secondsOf(times.back().end - times.front().start), 0.0) / kTasks;
}

/// An all-reduce of the group's members: seconds.
Result<double> exchange(Bench &bench, const ExecutionPlan &plan, std::size_t group,
    const std::map<std::size_t, std::byte *> &memory, std::int64_t elements, std::int32_t repeats,
    std::int64_t &sequence)
{
    double best = -1;
    for (std::int32_t repeat = 0; repeat <= repeats; ++repeat) {
        std::vector<std::vector<DeviceTask>> tasks(bench.devices());
        for (const DeviceId member : plan.groups[group]) {
            const auto d = static_cast<std::size_t>(member.index);
            const CollectiveBuffer buffer{memory.at(d), DataType::Float32, {elements}};
            DeviceTask task;
            task.queue = QueueKind::Data;
            task.communication = CollectiveCall{
                .group = static_cast<std::int32_t>(group), .sequence = sequence, .in = buffer, .out = buffer};
            tasks[d].push_back(std::move(task));
        }
        ++sequence;
        TRY(const auto times, bench.run(-1, std::move(tasks)));
        Clock::time_point start{};
        Clock::time_point end{};
        for (const auto &own : times)
            for (const TaskTime &time : own) { // it begins with the last that joins
                start = std::max(start, time.start);
                end = std::max(end, time.end);
            }
        const double seconds = std::max(secondsOf(end - start), 0.0);
        if (repeat > 0) // the first one makes what it needs
            best = best < 0 ? seconds : std::min(best, seconds);
    }
    return best;
}

Result<void> measureExchanges(
    MachineProfile &profile, Bench &bench, const ExecutionPlan &plan, std::int32_t repeats)
{
    const auto group = std::find_if(
        plan.groups.begin(), plan.groups.end(), [](const auto &members) { return members.size() > 1; });
    if (group == plan.groups.end())
        return {};
    constexpr std::int64_t kSmall = 16;
    constexpr std::int64_t kLarge = std::int64_t{2} << 20;
    std::map<std::size_t, std::byte *> memory;
    for (const DeviceId member : *group) {
        const auto d = static_cast<std::size_t>(member.index);
        TRY(memory[d], bench.reserve(d, kLarge * static_cast<std::int64_t>(sizeof(float))));
    }
    std::vector<std::vector<DeviceTask>> clearing(bench.devices());
    for (const auto &[device, data] : memory) {
        DeviceTask task;
        task.work = [to = data](DeviceQueue &queue) -> Result<void> {
            queue.fill(to, 0, static_cast<std::size_t>(kLarge) * sizeof(float));
            return {};
        };
        clearing[device].push_back(std::move(task));
    }
    TRY_VOID(bench.run(-1, std::move(clearing)));
    const auto g = static_cast<std::size_t>(group - plan.groups.begin());
    std::int64_t sequence = 0;
    TRY(profile.exchangeSeconds, exchange(bench, plan, g, memory, kSmall, repeats, sequence));
    TRY(const double large, exchange(bench, plan, g, memory, kLarge, repeats, sequence));
    // As costs are made of it: every member's is read and written.
    profile.exchangeRate = 2.0 * static_cast<double>(group->size() * kLarge) * sizeof(float)
        / std::max(large - profile.exchangeSeconds, 1e-9);
    return {};
}

} // namespace

Result<void> calibrate(MachineProfile &profile, const ExecutionPlan &plan, RunDevices &devices,
    const CalibrateOptions &options, std::stop_token stop)
{
    assert(plan.units.isOne());
    const auto start = Clock::now();
    TRY(const std::string machine, devices.machine());
    if (profile.machine != machine) {
        profile = {};
        profile.machine = machine;
    }
    const auto unknown = kernelsToMeasure(plan, profile, options.again);
    const bool knowsMachine = profile.taskSeconds > 0 && !options.again;
    if (unknown.empty() && knowsMachine)
        return {};
    Bench bench(plan, devices);
    constexpr std::int64_t kCopied = std::int64_t{32} << 20;
    std::int64_t most = 2 * kCopied;
    std::vector<std::pair<std::size_t, KernelBuffers>> fitting;
    for (std::size_t i = 0; i < unknown.size(); ++i) {
        KernelBuffers buffers(bench, unknown[i].second);
        if (!bench.hasMemoryFor(2 * buffers.bytes)) // what a kernel needs beside its operands is not known
            continue;
        most = std::max(most, buffers.bytes);
        fitting.emplace_back(i, std::move(buffers));
    }
    TRY(std::byte *const arena, bench.reserve(0, most));
    for (std::size_t done = 0; done < fitting.size(); ++done) {
        if (stop.stop_requested())
            return cancelled("the calibration was stopped");
        if (secondsOf(Clock::now() - start) > options.seconds)
            break;
        const auto &[i, buffers] = fitting[done];
        const auto &[key, kernel] = unknown[i];
        auto measured = measure(bench, plan, kernel, buffers, arena, options.repeats);
        if (measured)
            profile.kernels[key] = *measured;
        else if (measured.error().code != ErrorCode::ResourceLimit)
            return std::move(measured).error();
        if (options.progress)
            options.progress(done + 1, fitting.size());
    }
    if (knowsMachine)
        return {};
    // Behind the kernels: where one of them keeps steps from being graphs, this is what tasks take then.
    TRY(profile.taskSeconds, taskSeconds(bench, arena));
    TRY(const auto copies, bench.repeat(options.repeats, [arena](DeviceQueue &queue) -> Result<void> {
        queue.copy(arena, arena + kCopied, static_cast<std::size_t>(kCopied));
        return {};
    }));
    profile.copyRate = 2.0 * static_cast<double>(kCopied) / std::max(fastestOf(copies), 1e-9);
    return measureExchanges(profile, bench, plan, options.repeats);
}

} // namespace planloom
