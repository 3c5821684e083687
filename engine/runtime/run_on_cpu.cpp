#include "engine/runtime/run.h"

#include "engine/lowering/program/expand_units.h"

#include "engine/base/work_pool.h"
#include "engine/kernels/custom/operator_library.h"
#include "engine/runtime/communication/thread_communicator.h"
#include "engine/runtime/devices/cpu_backend.h"
#include "engine/runtime/devices/device_executor.h"
#include "engine/runtime/devices/in_double.h"
#include "engine/runtime/devices/measured.h"
#include "engine/runtime/devices/run_devices.h"
#include "engine/runtime/machine/free_memory.h"
#include "engine/runtime/processes/run_peers.h"
#include "engine/runtime/processes/run_ranks.h"
#include "engine/runtime/run_course.h"
#include "engine/runtime/training/training_progress.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <numeric>
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

/// The process of a run among several; one alone where there is no world.
struct RankOf {
    ProcessWorld *world = nullptr;
    std::int32_t rank = 0;
};

/// One run, or one rank's part in it: its devices, what they share, and the first thing that went wrong.
class Run
{
public:
    Run(const ExecutionPlan &plan, const RunOptions &options, const RunEvents &events, HostValues &values,
        TrainingProgress &training, const OperatorLibraries &libraries, const RankOf &rank,
        RunDevices *others)
        : m_plan(plan)
        , m_options(options)
        , m_teller(events)
        , m_ownProgress(events.counters == nullptr ? plan.devices.size() : 0)
        , m_progress(events.counters == nullptr ? m_ownProgress.data() : events.counters)
        , m_pool(options.threads > 0 ? options.threads : coresOf(rank))
        , m_end(rank.world == nullptr ? nullptr : rank.world->enter(rank.rank, m_pool))
        , m_peers(m_end.get(), static_cast<std::int32_t>(plan.devices.size()))
        , m_collector(plan, options, m_peers.isFirst() ? Collector::Forward{} : forward())
        , m_values(values)
        , m_training(training)
        , m_world(static_cast<std::int32_t>(plan.devices.size()), plan.groups)
        , m_shared{plan, options, values, m_collector, training.begin(), libraries, m_course.stopped(),
              [this](Error error) { fail(std::move(error)); }}
        , m_others(others)
    {
        if (m_others != nullptr)
            m_others->setWarning(
                [this](const std::string &text) { m_teller.tell(m_teller.events.warning, text); });
        if (m_end)
            m_end->start({.failed =
                              [this](Error error) {
                                  m_course.end(std::move(error));
                                  if (m_others != nullptr)
                                      m_others->abort();
                              },
                .posted = [this](std::span<const std::byte> bytes) { RunPeers::put(m_collector, bytes); }});
    }

    ~Run() { m_end.reset(); } // it calls the rest
    Run(const Run &) = delete;
    Run &operator=(const Run &) = delete;

    Result<RunOutcome> execute(std::stop_token stop)
    {
        {
            const std::stop_callback onStop{stop, [this] { fail(cancelled("the run was stopped")); }};
            auto ready = openDevices();
            if (ready)
                ready = prepareMemory();
            if (!ready)
                fail(std::move(ready).error()); // unless another rank has failed before
            std::thread driver([this] {
                if (!isStopped())
                    drive();
                m_course.leave();
            });
            m_course.untilLeft(kProgressEvery, [this] { report(); });
            driver.join();
        }
        m_end.reset(); // nobody else fails this run any more
        tellSpans();
        if (auto error = m_course.error())
            return *std::move(error);
        if (!m_peers.isFirst())
            return std::move(m_outcome);
        m_outcome.measured = measuredTimeline(m_plan, m_measures,
            Nanoseconds{
                m_outcome.stepSeconds.empty() ? 0 : std::llround(m_outcome.stepSeconds.back() * 1e9)});
        for (const DeviceMeasure &device : m_measures)
            m_outcome.peak.push_back(device.peak);
        m_collector.finish(m_outcome);
        m_outcome.firstStep = m_training.begin().step;
        if (m_outcome.stopped) { // they are those of the last step alone
            m_outcome.gradients.clear();
            m_outcome.weights.clear();
            m_outcome.tensors.clear();
        }
        return std::move(m_outcome);
    }

private:
    static std::int32_t coresOf(const RankOf &rank)
    {
        const std::int32_t ranks = rank.world == nullptr ? 1 : rank.world->layout().ranks;
        return std::max(allowedCores() / ranks, 1);
    }

    Collector::Forward forward()
    {
        return [this](const Collector::Claim &claim, const IndexMask &box, const std::byte *data,
                   const Collector::Turn &turn) {
            if (auto posted = m_peers.post(claim, box, data, turn); !posted)
                fail(std::move(posted).error());
        };
    }

    std::unique_ptr<DeviceBackend> backendOf(DeviceId device)
    {
        if (m_others != nullptr)
            return m_others->device(device);
        if (!m_end)
            return cpuBackend(m_pool, m_world.communicator(device), {}, &m_board);
        return cpuBackend(m_pool, m_end->communicator(device),
            [this](std::size_t bytes) { return m_end->memory().take(bytes); }); // where other ranks reach it
    }

    /// Opens the devices of this rank: those of GPUs meet the other ranks' there.
    Result<void> openDevices()
    {
        if (m_others != nullptr) {
            RankLink link;
            if (m_end)
                link = {m_end->rank(), m_end->layout().ranks,
                    [this](std::string_view bytes) { return m_end->broadcastBytes(bytes); }};
            TRY_VOID(m_others->connect(link));
        }
        for (std::size_t d = 0; d < m_plan.devices.size(); ++d) {
            const auto device = static_cast<std::int32_t>(d);
            if (device < m_peers.first() || device >= m_peers.end()) {
                passClaims(device);
                continue;
            }
            m_devices.push_back(std::make_unique<DeviceExecutor>(
                m_shared, device, m_progress[d], backendOf(DeviceId{device})));
            m_devices.back()->setLive(static_cast<bool>(events().spans));
        }
        return {};
    }

    /// Makes the claims of a device of another rank: all ranks number them alike.
    void passClaims(std::int32_t device)
    {
        const DeviceProgram &program = m_plan.devices[static_cast<std::size_t>(device)];
        for (const Instruction &instruction : program.setup)
            (void)m_collector.claimsOf(device, instruction);
        for (const Segment &segment : program.segments)
            for (const Instruction &instruction : segment.instructions)
                (void)m_collector.claimsOf(device, instruction);
    }

    /// Plans all memory, and reserves it if this machine has it.
    Result<void> prepareMemory()
    {
        std::vector<MemoryNeed> needs;
        for (std::size_t d = 0; d < m_devices.size(); ++d) {
            TRY_VOID(m_devices[d]->planMemory());
        }
        if (m_options.shareValues && !m_options.findNaN && m_others == nullptr && !m_end)
            share();
        for (std::size_t d = 0; d < m_devices.size(); ++d) {
            needs.push_back({m_peers.first() + static_cast<std::int32_t>(d),
                {m_devices[d]->arenaBytes(MemoryPlace::Device)},
                {m_devices[d]->arenaBytes(MemoryPlace::Host)}});
        }
        if (m_others != nullptr) {
            TRY_VOID(m_others->requireMemory(needs));
            for (MemoryNeed &need : needs)
                need.own = {};
        }
        needs.front().host += m_collector.bytes(); // what the run hands back is put together here
        TRY_VOID(m_peers.requireMemory(needs));
        m_collector.reserve();
        for (const auto &device : m_devices)
            TRY_VOID(device->reserve());
        return {};
    }

    /// All devices are in this process: what several compute alike is computed once.
    void share()
    {
        std::vector<MemoryPlan> memory;
        for (const auto &device : m_devices) {
            if (device->stepMemory() == nullptr)
                return;
            memory.push_back(*device->stepMemory());
        }
        if (auto step = shareValues(m_plan, memory, m_devices.front()->alignment()))
            for (const auto &device : m_devices)
                device->share(*step);
    }

    /// Keeps the first error, and ends all that waits here and at the other ranks.
    void fail(Error error)
    {
        const Error first = m_course.end(std::move(error));
        m_world.abort();
        if (m_others != nullptr)
            m_others->abort();
        if (m_end)
            m_end->fail(first);
    }

    void drive()
    {
        m_board.begin();
        for (const auto &device : m_devices)
            device->issueSetup();
        for (const auto &device : m_devices)
            device->finish();
        if (isStopped())
            return;
        auto loaded = m_peers.gather(measuresHere());
        if (!loaded)
            return fail(std::move(loaded).error());
        if (m_peers.isFirst()) {
            std::vector<Bytes> peak;
            for (const DeviceMeasure &device : *loaded)
                peak.push_back(device.peak);
            m_teller.tell(events().loaded, peak);
        }
        for (std::int32_t step = 0; step < m_options.steps && !m_outcome.stopped; ++step) {
            if (auto begun = m_training.beginStep(step, m_values); !begun) {
                fail(std::move(begun).error());
                return;
            }
            m_collector.beginStep();
            auto origin = m_peers.begin(Clock::now());
            if (!origin)
                return fail(std::move(origin).error());
            m_origin = *origin;
            m_board.begin();
            for (const auto &device : m_devices)
                device->issueStep(step, m_origin,
                    events().spans || step + 1 == m_options.steps || events().finish.stop_possible());
            for (const auto &device : m_devices)
                device->finish();
            if (isStopped())
                return;
            auto dropped = m_peers.sumAtFirst(droppedHere());
            if (!dropped)
                return fail(std::move(dropped).error());
            if (m_peers.isFirst())
                stepDone(step, *dropped);
            auto stopped =
                m_peers.decidedByFirst(events().finish.stop_requested() && step + 1 < m_options.steps);
            if (!stopped)
                return fail(std::move(stopped).error());
            m_outcome.stopped = *stopped;
            if (m_training.savesAfter(step, m_outcome.stopped))
                save(step + 1);
            if (isStopped())
                return;
        }
        if (auto all = m_peers.gather(measuresHere()); all)
            m_measures = *std::move(all);
        else
            fail(std::move(all).error());
    }

    std::vector<DeviceMeasure> measuresHere() const
    {
        std::vector<DeviceMeasure> measures;
        for (const auto &device : m_devices)
            measures.push_back(device->measure());
        return measures;
    }

    /// Writes the checkpoint of all that is done before `step`.
    void save(std::int32_t step)
    {
        auto saved = m_training.save(step, m_devices, m_peers);
        if (!saved) {
            fail(std::move(saved).error());
            return;
        }
        m_outcome.checkpoint = saved->path;
        if (m_peers.isFirst())
            m_teller.tell(events().saved, *saved);
    }

    void stepDone(std::int32_t step, const std::map<OperatorId, std::int64_t> &dropped)
    {
        const double seconds = std::chrono::duration<double>(Clock::now() - m_origin).count();
        m_collector.endStep();
        const double loss = m_collector.loss();
        m_outcome.losses.push_back(loss);
        m_outcome.stepSeconds.push_back(seconds);
        countDropped(step, dropped);
        m_teller.tell(events().stepDone, step, loss, seconds);
    }

    std::map<OperatorId, std::int64_t> droppedHere() const
    {
        std::map<OperatorId, std::int64_t> dropped;
        for (const auto &device : m_devices)
            for (const auto &[op, count] : device->dropped())
                dropped[op] += count;
        return dropped;
    }

    /// Says in the first step that leaves something out what it is.
    void countDropped(std::int32_t step, const std::map<OperatorId, std::int64_t> &dropped)
    {
        std::int64_t total = 0;
        for (const auto &[op, count] : dropped)
            total += count;
        const std::int64_t before =
            std::accumulate(m_outcome.dropped.begin(), m_outcome.dropped.end(), std::int64_t{0});
        m_outcome.dropped.push_back(total - before);
        if (total == 0 || before != 0)
            return;
        const auto most = std::max_element(
            dropped.begin(), dropped.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
        m_teller.tell(events().warning,
            "step " + std::to_string(step + 1) + " left out " + std::to_string(total)
                + " of the places that data chose, which had no room; " + std::to_string(most->second)
                + " of them in '" + m_plan.graph->at(most->first).name + "': give more room with --capacity");
    }

    void tellSpans()
    {
        for (std::size_t d = 0; d < m_devices.size(); ++d)
            if (const std::vector<LiveSpan> ended = m_devices[d]->takeLive(); !ended.empty())
                m_teller.tell(
                    events().spans, DeviceId{m_peers.first() + static_cast<std::int32_t>(d)}, ended);
    }

    /// Tells how far the devices are.
    void report()
    {
        tellSpans();
        for (std::int32_t d = m_peers.first(); d < m_peers.end(); ++d) {
            const DeviceProgress &progress = m_progress[static_cast<std::size_t>(d)];
            m_teller.tell(events().progress, DeviceId{d}, progress.issued.load(), progress.finished.load());
        }
    }

    const RunEvents &events() const { return m_teller.events; }
    bool isStopped() const { return m_course.stopped().load(); }

    const ExecutionPlan &m_plan;
    const RunOptions &m_options;
    RunTeller m_teller;
    std::vector<DeviceProgress> m_ownProgress;
    DeviceProgress *m_progress;
    RunCourse m_course{};
    WorkPool m_pool; ///< Before all that works on it.
    std::unique_ptr<RankEnd> m_end; ///< Null in a run of one process. Before what has claims of it.
    RunPeers m_peers;
    Collector m_collector;
    HostValues &m_values;
    TrainingProgress &m_training;
    ThreadWorld m_world; ///< Of a run of one process.
    CpuBoard m_board{}; ///< Likewise.
    RunShared m_shared;
    RunDevices *m_others; ///< Null on the CPU.
    std::vector<std::unique_ptr<DeviceExecutor>> m_devices{}; ///< Of this rank.
    std::vector<DeviceMeasure> m_measures{}; ///< Of all, at rank 0, in the end.
    RunOutcome m_outcome{}; ///< Written by the driving thread.
    Clock::time_point m_origin{};
};

/// @param given  the same plan in the types that its values are given in
Result<RunOutcome> runWith(const ExecutionPlan &plan, const ExecutionPlan &given, const RunOptions &options,
    const RunEvents &events, std::stop_token stop, const RankOf &rank)
{
    TRY(const auto training, TrainingProgress::begin(given, options, events));
    TRY(auto values, HostValues::prepare(given, training->options(), training->sources(), events.warning));
    TRY(const auto libraries, OperatorLibraries::load(*plan.graph, options.libraries));
    std::unique_ptr<RunDevices> others;
    if (options.devices) {
        TRY(others, options.devices(plan));
    }
    Run run{plan, training->options(), events, values, *training, *libraries, rank, others.get()};
    return run.execute(std::move(stop));
}

Result<RunOutcome> runOnce(const ExecutionPlan &plan, const RunOptions &options, const RunEvents &events,
    std::stop_token stop, const RankOf &rank = {})
{
    if (!options.inDouble)
        return runWith(plan, plan, options, events, std::move(stop), rank);
    const ExecutionPlan wide = inDouble(plan);
    return runWith(wide, inFloat32(plan), options, events, std::move(stop), rank);
}

Result<RunOutcome> runAndExplain(const ExecutionPlan &plan, const RunOptions &options,
    const RunEvents &events, const std::stop_token &stop, const RankOf &rank)
{
    if (options.steps < 1)
        return Error{ErrorCode::InvalidInput, "steps must be at least 1", {}, {}};
    TRY_VOID(checkRunnable(plan));
    TRY(auto outcome, runOnce(plan, options, events, stop, rank));
    const TensorId loss = plan.graph->loss;
    if (!loss.valid() || !outcome.outputs.contains(plan.graph->at(loss).name) || options.findNaN
        || !events.warning)
        return outcome;
    const auto broken = std::find_if(
        outcome.losses.begin(), outcome.losses.end(), [](double loss) { return std::isnan(loss); });
    if (broken == outcome.losses.end())
        return outcome;
    // Everything is deterministic: the same steps again, in this process, meet the operator that broke.
    RunOptions search{options};
    search.steps = static_cast<std::int32_t>(broken - outcome.losses.begin()) + 1;
    search.findNaN = true;
    if (rank.world != nullptr)
        search.devices = {}; // which are one of this process alone
    search.training.checkpoints.clear();
    search.training.every = 0;
    search.keepAll = false;
    search.keepGradients = false;
    const auto found = runOnce(plan, search, {}, stop);
    events.warning("the loss is NaN in step " + std::to_string(search.steps)
        + (found ? std::string{} : ": " + describe(found.error())));
    return outcome;
}

} // namespace

Result<RunOutcome> runOnCpu(
    const ExecutionPlan &plan, const RunOptions &options, const RunEvents &events, std::stop_token stop)
{
    if (!plan.graph || plan.devices.empty())
        return Error{ErrorCode::InvalidInput, "the plan has no devices", {}, {}};
    if (!plan.units.isOne())
        return runOnCpu(expandUnits(plan), options, events, std::move(stop));
    return runAndExplain(plan, options, events, stop, {});
}

Result<RunOutcome> runRankOnCpu(const ExecutionPlan &plan, const RunOptions &options, const RunEvents &events,
    ProcessWorld &world, std::int32_t rank, std::stop_token stop)
{
    return runAndExplain(plan, options, events, stop, {&world, rank});
}

} // namespace planloom
