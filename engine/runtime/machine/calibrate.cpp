#include "engine/runtime/machine/calibrate.h"

#include "engine/base/loop_meter.h"
#include "engine/base/work_pool.h"
#include "engine/lowering/program/expand_units.h"
#include "engine/runtime/communication/thread_communicator.h"
#include "engine/runtime/devices/box_copy.h"
#include "engine/runtime/devices/cpu_backend.h"
#include "engine/runtime/devices/measured.h"
#include "engine/runtime/devices/memory_pool.h"
#include "engine/runtime/devices/prepared_kernel.h"
#include "engine/runtime/machine/bench_caches.h"
#include "engine/runtime/machine/distinct_kernels.h"
#include "engine/runtime/machine/free_memory.h"
#include "engine/runtime/machine/machine_cluster.h"
#include "engine/runtime/machine/rehearsal.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <future>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// Runs `work` on a thread of the pool, and waits.
template<typename Work> void runOn(WorkPool &pool, const Work &work)
{
    std::promise<void> done;
    pool.submit([&] {
        work();
        done.set_value();
    });
    done.get_future().wait();
}

/// As much as a core's own caches hold, or more.
constexpr std::int64_t kOtherBytes = std::int64_t{4} << 20U;
/// How often a kernel is measured at most, at different moments.
constexpr int kMostVisits = 4;
/// Of the machine's own times, which are short.
constexpr int kShortRepeats = 9;

/// A kernel with memory of its own.
class BoundKernel
{
public:
    BoundKernel(const ExecutionPlan &plan, const DistinctKernel &kernel)
        : m_prepared(prepareKernel(plan, *kernel.program, *kernel.instruction))
    {
        KernelCall &call = m_prepared.call;
        for (std::size_t i = 0; i < call.inputs.size(); ++i) {
            const std::int32_t buffer = kernel.instruction->inputs[i];
            bind(call.inputs[i], kernel, buffer);
            if (call.inputs[i].data != nullptr)
                m_inputs.push_back({call.inputs[i].data,
                    static_cast<std::size_t>(
                        sizeOf(kernel.program->buffers[static_cast<std::size_t>(buffer)]).count),
                    kernel.inputs[i]});
        }
        for (std::size_t i = 0; i < call.outputs.size(); ++i)
            bind(call.outputs[i], kernel, kernel.instruction->outputs[i]);
    }

    /// Brings its inputs to where a step has them, on a thread of a pool. `others` is memory of its own.
    void layInputs(std::vector<std::byte> &others) const
    {
        for (const Operand &input : m_inputs)
            if (input.place == OperandPlace::Memory)
                dropFromCaches(input.data, input.bytes);
        // Drives other things out of the cores' own caches; and wakes the threads, as the kernel before does.
        forEachStretch(static_cast<std::int64_t>(others.size()), kOtherBytes, [&](auto begin, auto end) {
            std::memset(others.data() + begin, 1, static_cast<std::size_t>(end - begin));
        });
        for (const Operand &input : m_inputs)
            if (input.place == OperandPlace::Core)
                bringToCaches(input.data, input.bytes);
    }

    /// @return whether it can be run by itself
    bool run() const
    {
        if (!m_bound)
            return false;
        try {
            const auto outcome = m_prepared.rounding ? runRounded(m_prepared.call, *m_prepared.rounding)
                                                     : runKernel(m_prepared.call);
            return outcome.has_value();
        } catch (const std::exception &) {
            return false;
        }
    }

private:
    void bind(Buffer &to, const DistinctKernel &kernel, std::int32_t buffer)
    {
        if (buffer < 0)
            return;
        auto [found, fresh] = m_known.try_emplace(buffer, nullptr);
        if (fresh) {
            const BufferInfo &info = kernel.program->buffers[static_cast<std::size_t>(buffer)];
            m_blocks.push_back(m_memory.allocate(static_cast<std::size_t>(sizeOf(info).count)));
            if (m_blocks.back()) {
                found->second = m_blocks.back().data();
                fillHarmlessly(found->second, info.dataType, elementCount(info.index));
            }
            m_bound = m_bound && m_blocks.back();
        }
        to.data = found->second;
    }

    struct Operand {
        const std::byte *data = nullptr;
        std::size_t bytes = 0;
        OperandPlace place{};
    };
    PreparedKernel m_prepared;
    std::vector<Operand> m_inputs{};
    MemoryPool m_memory{}; ///< Before its blocks.
    std::vector<MemoryBlock> m_blocks{};
    std::map<std::int32_t, std::byte *> m_known{}; ///< By buffer, which may stand in several slots.
    bool m_bound = true;
};

/// Adds `repeats` runs to `times`. @return whether the kernel can be run by itself
bool measure(const BoundKernel &kernel, std::int32_t repeats, const BenchClock &clock, WorkPool &pool,
    KernelTimes &times)
{
    bool ran = true;
    std::vector<std::byte> others( // what a step works on in between
        static_cast<std::size_t>(kOtherBytes * pool.threads()));
    runOn(pool, [&] {
        ran = kernel.run(); // compiles what it needs, and touches memory
        for (std::int32_t i = 0; ran && i < repeats; ++i) {
            kernel.layInputs(others);
            const double work = clock.worked();
            const double start = clock.passed();
            ran = kernel.run();
            const double end = clock.passed();
            times.add(end - start, clock.worked() - work);
        }
        if (ran && !times.empty() && times.needShare()) {
            kernel.layInputs(others);
            LoopMeter meter(clock.threadWorked);
            (void)kernel.run();
            times.setShare(meter.shareOn(pool.threads()));
        }
    });
    return ran && !times.empty();
}

/// What it takes to issue and end tasks that do nothing.
class Silent final : public TaskListener
{
public:
    void finished(EventId, const Result<void> &, Clock::time_point, Clock::time_point) override { }
};

double taskSeconds(WorkPool &pool, const BenchClock &clock)
{
    constexpr std::int32_t kTasks = 1000;
    ThreadWorld world{1, {}};
    const auto backend = cpuBackend(pool, world.communicator(DeviceId{0}));
    Silent silent;
    KernelTimes times;
    for (int repeat = 0; repeat < kShortRepeats; ++repeat) {
        const double start = clock.passed();
        backend->begin(kTasks, silent);
        for (std::int32_t i = 0; i < kTasks; ++i)
            backend->issue({.event = i});
        backend->finish();
        times.add(clock.passed() - start, 0);
    }
    return times.fastest() / kTasks;
}

/// An all-reduce of two members: seconds.
double exchange(WorkPool &pool, const BenchClock &clock, std::size_t elements)
{
    ThreadWorld world{2, {{{0}, {1}}}};
    std::array<std::vector<float>, 2> values;
    values.fill(std::vector<float>(elements, 1));
    KernelTimes times;
    for (std::int64_t repeat = 0; repeat < kShortRepeats; ++repeat) {
        runOn(pool, [&] {
            const double start = clock.passed();
            for (std::int32_t d = 0; d < 2; ++d) {
                std::vector<float> &mine = values[static_cast<std::size_t>(d)];
                const CollectiveBuffer buffer{reinterpret_cast<std::byte *>(mine.data()), DataType::Float32,
                    {static_cast<std::int64_t>(elements)}};
                world.communicator(DeviceId{d})
                    ->join({.sequence = repeat, .in = buffer, .out = buffer}, [](const Result<void> &) {});
            }
            times.add(clock.passed() - start, 0);
        });
    }
    return times.fastest();
}

double copyRate(WorkPool &pool, const BenchClock &clock)
{
    constexpr std::size_t kBytes = std::size_t{32} << 20U;
    std::vector<std::byte> from(kBytes, std::byte{1});
    std::vector<std::byte> to(kBytes);
    KernelTimes times;
    for (int repeat = 0; repeat < kShortRepeats; ++repeat) {
        runOn(pool, [&] {
            const double start = clock.passed();
            forEachStretch(kBytes, std::int64_t{1} << 20, [&](std::int64_t begin, std::int64_t end) {
                std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
            });
            times.add(clock.passed() - start, 0);
        });
    }
    return 2.0 * kBytes / std::max(times.fastest(), 1e-9);
}

void measureMachine(MachineProfile &profile, WorkPool &pool, const BenchClock &clock)
{
    constexpr std::size_t kLarge = std::size_t{2} << 20U;
    profile.taskSeconds = taskSeconds(pool, clock);
    profile.exchangeSeconds = exchange(pool, clock, 16);
    const double seconds = std::max(exchange(pool, clock, kLarge) - profile.exchangeSeconds, 1e-9);
    profile.exchangeRate = 4.0 * sizeof(float) * static_cast<double>(kLarge) / seconds;
    profile.copyRate = copyRate(pool, clock);
}

} // namespace

Result<void> calibrate(
    MachineProfile &profile, const ExecutionPlan &plan, const CalibrateOptions &options, std::stop_token stop)
{
    if (!plan.units.isOne())
        return calibrate(profile, expandUnits(plan), options, std::move(stop));
    const double start = options.clock.passed();
    if (const std::string here = machineName(); profile.machine != here) {
        profile = {};
        profile.machine = here;
    }
    profile.cores = allowedCores();
    const auto unknown = kernelsToMeasure(plan, profile, options.again);
    const bool knowsMachine = profile.taskSeconds > 0 && !options.again;
    if (unknown.empty() && knowsMachine)
        return {};
    WorkPool pool(profile.cores);
    if (!knowsMachine)
        measureMachine(profile, pool, options.clock);
    const auto free = freeMemory();
    std::vector<KernelTimes> times(unknown.size());
    for (int visit = 0; visit < kMostVisits; ++visit) {
        for (std::size_t i = 0; i < unknown.size(); ++i) {
            if (stop.stop_requested())
                return cancelled("the calibration was stopped");
            if (options.clock.passed() - start > options.seconds)
                return {};
            const auto &[key, kernel] = unknown[i];
            if (free && kernel.work.bytes > 0.5 * static_cast<double>(free->count))
                continue;
            if (visit > 0 && (times[i].empty() || times[i].areSettled()))
                continue;
            if (measure(BoundKernel{plan, kernel}, options.repeats, options.clock, pool, times[i]))
                profile.kernels[key] = {kernel.category, kernel.work.flops, kernel.work.bytes,
                    times[i].seconds(), times[i].coreSeconds(), times[i].spread()};
            if (visit == 0 && options.progress)
                options.progress(i + 1, unknown.size());
        }
    }
    return {};
}

Result<MachineProfile> profileFor(
    const ExecutionPlan &plan, const std::string &path, const CalibrateOptions &options, std::stop_token stop)
{
    MachineProfile profile;
    if (!path.empty())
        if (auto kept = readProfile(path))
            profile = *std::move(kept);
    const MachineProfile before = profile;
    TRY_VOID(calibrate(profile, plan, options, std::move(stop)));
    if (!path.empty() && !(profile == before))
        (void)writeProfile(path, profile); // else it is measured again the next time
    return profile;
}

Result<Timeline> predictOnGpus(const ExecutionPlan &plan, const MachineProfile &profile, const Probe &probe,
    const SimulateOptions &options, std::stop_token stop)
{
    if (!profile.oneEach)
        return predictRun(plan, profile, false, options, std::move(stop));
    const auto devices = static_cast<std::int32_t>(plan.devices.size()) * plan.units.count;
    auto cluster = machineCluster(probe);
    if (!cluster || cluster->deviceCount < devices)
        cluster = clusterNamed("cpu:" + std::to_string(plan.devices.size()));
    if (!cluster)
        return std::move(cluster).error();
    return simulate(plan, *cluster, costModelOf(profile, costModelOf(*cluster)), options, std::move(stop));
}

std::optional<MachineProfile> gpuProfile(const std::string &path, const Probe &probe)
{
    auto kept = readProfile(path);
    const bool isHere = kept && std::any_of(probe.gpus.begin(), probe.gpus.end(), [&](const ProbedGpu &gpu) {
        return gpu.problem.empty() && kept->machine == gpuMachineName(gpu.name, gpu.computeCapability);
    });
    return isHere ? std::optional{*std::move(kept)} : std::nullopt;
}

Result<double> predictCores(
    const ExecutionPlan &plan, const MachineProfile &profile, bool sharesValues, std::stop_token stop)
{
    if (!plan.units.isOne())
        return predictCores(expandUnits(plan), profile, sharesValues, std::move(stop));
    TRY(const Rehearsal rehearsal, rehearse(plan, profile, sharesValues, std::move(stop)));
    return rehearsal.coreSeconds;
}

Result<Timeline> predictRun(const ExecutionPlan &plan, const MachineProfile &profile, bool sharesValues,
    const SimulateOptions &options, std::stop_token stop)
{
    if (!plan.units.isOne())
        return predictRun(expandUnits(plan), profile, sharesValues, options, std::move(stop));
    TRY(const Rehearsal rehearsal, rehearse(plan, profile, sharesValues, std::move(stop)));
    Timeline timeline =
        measuredTimeline(plan, rehearsal.devices, Nanoseconds{std::llround(rehearsal.seconds * 1e9)});
    if (!options.spans)
        timeline.spans = {};
    return timeline;
}

} // namespace planloom
