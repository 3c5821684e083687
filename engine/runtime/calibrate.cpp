#include "engine/runtime/calibrate.h"

#include "engine/base/processor_time.h"
#include "engine/base/work_pool.h"
#include "engine/lowering/expand_units.h"
#include "engine/runtime/box_copy.h"
#include "engine/runtime/cpu_backend.h"
#include "engine/runtime/distinct_kernels.h"
#include "engine/runtime/free_memory.h"
#include "engine/runtime/machine_cluster.h"
#include "engine/runtime/memory_pool.h"
#include "engine/runtime/prepared_kernel.h"
#include "engine/runtime/shared_values.h"
#include "engine/runtime/thread_communicator.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <future>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace planloom {

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start)
{
    return std::chrono::duration<double>(Clock::now() - start).count();
}

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

/// Written before each run, so that a kernel finds a core's own caches full of other things, as in a step.
constexpr std::size_t kOtherBytes = std::size_t{4} << 20U;

/// Nothing where the kernel cannot be run by itself.
std::optional<MeasuredKernel> measure(
    const ExecutionPlan &plan, const DistinctKernel &kernel, std::int32_t repeats, WorkPool &pool)
{
    PreparedKernel prepared = prepareKernel(plan, *kernel.program, *kernel.instruction);
    MemoryPool memory;
    std::vector<MemoryBlock> blocks;
    std::map<std::int32_t, std::byte *> known; // a buffer may stand in several slots
    const auto bind = [&](Buffer &to, std::int32_t buffer) {
        if (buffer < 0)
            return true;
        auto [found, fresh] = known.try_emplace(buffer, nullptr);
        if (fresh) {
            const BufferInfo &info = kernel.program->buffers[static_cast<std::size_t>(buffer)];
            blocks.push_back(memory.allocate(static_cast<std::size_t>(sizeOf(info).count)));
            if (!blocks.back())
                return false;
            found->second = blocks.back().data();
            fillHarmlessly(found->second, info.dataType, elementCount(info.index));
        }
        to.data = found->second;
        return true;
    };
    KernelCall &call = prepared.call;
    for (std::size_t i = 0; i < call.inputs.size(); ++i)
        if (!bind(call.inputs[i], kernel.instruction->inputs[i]))
            return std::nullopt;
    for (std::size_t i = 0; i < call.outputs.size(); ++i)
        if (!bind(call.outputs[i], kernel.instruction->outputs[i]))
            return std::nullopt;
    std::vector<std::pair<double, double>> times; // elapsed, of cores
    bool ran = true;
    std::vector<std::byte> others(kOtherBytes); // what a step works on in between
    runOn(pool, [&] {
        for (std::int32_t i = 0; ran && i <= repeats; ++i) {
            std::memset(others.data(), i, others.size());
            const double work = processorSeconds();
            const auto start = Clock::now();
            try {
                const auto outcome =
                    prepared.rounding ? runRounded(call, *prepared.rounding) : runKernel(call);
                ran = outcome.has_value();
            } catch (const std::exception &) {
                ran = false;
            }
            const double seconds = secondsSince(start);
            if (i > 0) // the first one compiles what it needs, and touches memory
                times.emplace_back(seconds, processorSeconds() - work);
        }
    });
    if (!ran || times.empty())
        return std::nullopt;
    std::sort(times.begin(), times.end());
    const auto [seconds, cores] = times.front(); // others on the machine only make it longer
    return MeasuredKernel{kernel.category, kernel.work.flops, kernel.work.bytes, seconds,
        std::max(cores, seconds), seconds > 0 ? (times.back().first - times.front().first) / seconds : 0};
}

/// What it takes to issue and end tasks that do nothing.
class Silent final : public TaskListener
{
public:
    void finished(EventId, const Result<void> &, Clock::time_point, Clock::time_point) override { }
};

double taskSeconds(WorkPool &pool)
{
    constexpr std::int32_t kTasks = 4000;
    ThreadWorld world{1, {}};
    const auto backend = cpuBackend(pool, world.communicator(DeviceId{0}));
    Silent silent;
    double best = 1;
    for (int repeat = 0; repeat < 3; ++repeat) {
        const auto start = Clock::now();
        backend->begin(kTasks, silent);
        for (std::int32_t i = 0; i < kTasks; ++i)
            backend->issue({.event = i});
        backend->finish();
        best = std::min(best, secondsSince(start) / kTasks);
    }
    return best;
}

/// An all-reduce of two members: seconds.
double exchange(WorkPool &pool, std::size_t elements)
{
    ThreadWorld world{2, {{{0}, {1}}}};
    std::array<std::vector<float>, 2> values;
    values.fill(std::vector<float>(elements, 1));
    double best = 1e9;
    for (std::int64_t repeat = 0; repeat < 5; ++repeat) {
        runOn(pool, [&] {
            const auto start = Clock::now();
            for (std::int32_t d = 0; d < 2; ++d) {
                std::vector<float> &mine = values[static_cast<std::size_t>(d)];
                const CollectiveBuffer buffer{reinterpret_cast<std::byte *>(mine.data()), DataType::Float32,
                    {static_cast<std::int64_t>(elements)}};
                world.communicator(DeviceId{d})
                    ->join({.sequence = repeat, .in = buffer, .out = buffer}, [](const Result<void> &) {});
            }
            best = std::min(best, secondsSince(start));
        });
    }
    return best;
}

double copyRate(WorkPool &pool)
{
    constexpr std::size_t kBytes = std::size_t{32} << 20U;
    std::vector<std::byte> from(kBytes, std::byte{1});
    std::vector<std::byte> to(kBytes);
    double best = 1e9;
    for (int repeat = 0; repeat < 4; ++repeat) {
        runOn(pool, [&] {
            const auto start = Clock::now();
            forEachStretch(kBytes, std::int64_t{1} << 20, [&](std::int64_t begin, std::int64_t end) {
                std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
            });
            best = std::min(best, secondsSince(start));
        });
    }
    return 2.0 * kBytes / best;
}

} // namespace

Result<void> calibrate(
    MachineProfile &profile, const ExecutionPlan &plan, const CalibrateOptions &options, std::stop_token stop)
{
    if (!plan.units.isOne())
        return calibrate(profile, expandUnits(plan), options, std::move(stop));
    const auto start = Clock::now();
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
    if (!knowsMachine) {
        profile.taskSeconds = taskSeconds(pool);
        constexpr std::size_t kLarge = std::size_t{2} << 20U;
        profile.exchangeSeconds = exchange(pool, 16);
        const double seconds = std::max(exchange(pool, kLarge) - profile.exchangeSeconds, 1e-9);
        profile.exchangeRate = 4.0 * sizeof(float) * static_cast<double>(kLarge) / seconds;
        profile.copyRate = copyRate(pool);
    }
    const auto free = freeMemory();
    for (std::size_t i = 0; i < unknown.size(); ++i) {
        if (stop.stop_requested())
            return cancelled("the calibration was stopped");
        if (secondsSince(start) > options.seconds)
            break;
        const auto &[key, kernel] = unknown[i];
        if (free && kernel.work.bytes > 0.5 * static_cast<double>(free->count))
            continue;
        if (const auto measured = measure(plan, kernel, options.repeats, pool))
            profile.kernels[key] = *measured;
        if (options.progress)
            options.progress(i + 1, unknown.size());
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

Result<Timeline> predictRun(const ExecutionPlan &plan, const MachineProfile &profile, bool sharesValues,
    const SimulateOptions &options, std::stop_token stop)
{
    TRY(const Cluster cluster, clusterNamed("cpu:" + std::to_string(plan.devices.size())));
    const CostModel usual = costModelOf(cluster);
    SimulateOptions figures = options;
    if (plan.units.isOne()) {
        TRY(figures.shares, workLeft(plan, sharesValues));
    }
    figures.spans = false;
    CostModel costs = costModelOf(profile, usual);
    TRY(const Timeline alone, simulate(plan, cluster, costs, figures, stop));
    TRY(const Timeline work,
        simulate(plan, cluster, costModelOf(profile, usual, ProfileTime::Work), figures, stop));
    const auto sum = [](const std::vector<Nanoseconds> &times) {
        return std::accumulate(times.begin(), times.end(), Nanoseconds{0});
    };
    const double needed =
        static_cast<double>((sum(work.busy) + sum(work.exposedCommunication)).count()) * plan.units.count;
    const double stretch = std::max(1.0, needed / std::max(1.0, static_cast<double>(alone.step.count())));
    const CostModel unstretched = costs;
    costs.kernel = [unstretched, stretch](
                       const KernelQuery &query) { return stretch * unstretched.kernel(query); };
    costs.collective = [unstretched, stretch](CollectiveKind kind, Bytes bytes, GroupShape shape) {
        return stretch * unstretched.collective(kind, bytes, shape);
    };
    costs.copy = [unstretched, stretch](Bytes bytes, std::int32_t deviceClass) {
        return stretch * unstretched.copy(bytes, deviceClass);
    };
    costs.hostCopy = costs.copy;
    figures.spans = options.spans;
    return simulate(plan, cluster, costs, figures, std::move(stop));
}

} // namespace planloom
