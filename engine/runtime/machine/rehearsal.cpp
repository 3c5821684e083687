#include "engine/runtime/machine/rehearsal.h"

#include "engine/hardware/cluster.h"
#include "engine/lowering/program/instruction_cost.h"
#include "engine/runtime/devices/measured.h"
#include "engine/runtime/devices/shared_values.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kCacheLine = 64; ///< Alignment of CPU devices.
/// As large as what one thread copies at a time (cpu_backend.cpp).
constexpr double kCopiedAtOnce = 1 << 20;

/// Seconds of one core, and how many threads can share them.
struct Labour {
    double work = 0;
    double threads = 1;
};

/// A task as a device knows it.
struct Place {
    std::size_t device = 0;
    std::size_t step = 0; ///< Index into the step's instructions.
    friend auto operator<=>(const Place &, const Place &) = default;
};

/// What instructions take, by a profile.
class LabourOf
{
public:
    LabourOf(const ExecutionPlan &plan, const MachineProfile &profile, const CostModel &usual)
        : m_plan(plan)
        , m_profile(profile)
        , m_elapsed(costModelOf(profile, usual))
        , m_work(costModelOf(profile, usual, ProfileTime::Work))
        , m_cores(std::max(1, profile.cores))
    {
    }

    double cores() const { return m_cores; }
    Labour nothing() const { return {m_profile.taskSeconds, 1}; }

    /// Of what involves one device alone and is left to do.
    Labour local(std::size_t device, const StepInstruction &at, const Instruction &instruction, bool first)
    {
        const auto [found, isNew] =
            m_known.try_emplace({device, at.segment, at.instruction, first}, Labour{});
        if (!isNew)
            return found->second;
        const DeviceProgram &program = m_plan.devices[device];
        const auto secondsBy = [&](const CostModel &costs) {
            const LocalDuration duration = localDuration(m_plan, program, instruction, costs);
            return std::chrono::duration<double>(first ? duration.first : duration.usual).count();
        };
        const double elapsed = secondsBy(m_elapsed);
        const double work = m_cores * secondsBy(m_work);
        if (elapsed <= 0)
            return found->second = nothing();
        if (instruction.kind == InstructionKind::Kernel)
            return found->second = {std::max(work, elapsed), std::clamp(work / elapsed, 1.0, m_cores)};
        return found->second = {
                   work, std::clamp(bytesOut(program, instruction) / kCopiedAtOnce, 1.0, m_cores)};
    }

    /// Of a collective, all members together.
    /// @param own  members that do not share the memory that another one fills
    Labour collective(const DeviceProgram &program, const Instruction &instruction, std::size_t members,
        std::size_t own) const
    {
        const auto kind = collectiveOf(instruction.kind);
        GroupShape shape;
        shape.ranks = static_cast<std::int32_t>(members);
        const double whole = reductionSeconds(
            m_elapsed, *kind, collectiveBytes(program, instruction), shape, instruction.combination);
        const double meeting = std::min(whole, m_profile.exchangeSeconds);
        const auto all = static_cast<double>(members);
        double left = static_cast<double>(own) / all;
        if (instruction.kind == InstructionKind::AllReduce)
            left = (1 + left) / 2; // all is read, less is written
        const double threads = std::min(m_cores, all);
        return {meeting + (whole - meeting) * left * threads, threads};
    }

    /// Of copying a message once, which one thread does.
    Labour message(const DeviceProgram &program, std::int32_t buffer) const
    {
        const auto bytes =
            static_cast<double>(sizeOf(program.buffers[static_cast<std::size_t>(buffer)]).count);
        return {m_profile.taskSeconds + 2 * bytes / std::max(m_profile.copyRate / m_cores, 1.0), 1};
    }

private:
    static double bytesOut(const DeviceProgram &program, const Instruction &instruction)
    {
        double bytes = 0;
        for (const std::int32_t out : instruction.outputs)
            if (out >= 0)
                bytes += static_cast<double>(sizeOf(program.buffers[static_cast<std::size_t>(out)]).count);
        return bytes;
    }

    const ExecutionPlan &m_plan;
    const MachineProfile &m_profile;
    CostModel m_elapsed;
    CostModel m_work;
    double m_cores;
    std::map<std::tuple<std::size_t, std::int32_t, std::int32_t, bool>, Labour> m_known{};
};

/// The step of all devices, as it goes on.
class RehearsedStep
{
public:
    RehearsedStep(const ExecutionPlan &plan, LabourOf &labour, const std::vector<MemoryPlan> &memory,
        const std::vector<StepWaits> &waits)
        : m_plan(plan)
        , m_labour(labour)
        , m_memory(memory)
        , m_waits(waits)
    {
        for (std::size_t d = 0; d < memory.size(); ++d) {
            Device &device = m_devices.emplace_back();
            const std::size_t count = memory[d].instructions.size();
            device.done.resize(count, false);
            device.spans.resize(count);
            device.started.resize(count, 0);
            device.sequence.resize(count, 0);
            std::map<std::int32_t, std::int64_t> issued; // by group
            for (std::size_t i = 0; i < count; ++i) {
                const Instruction &instruction = instructionAt({d, i});
                device.queues[static_cast<std::size_t>(queueOf(instruction))].tasks.push_back(i);
                if (instruction.group >= 0)
                    device.sequence[i] = issued[instruction.group]++;
            }
        }
        for (std::size_t d = 0; d < memory.size(); ++d)
            for (const auto &elsewhere : waits[d].elsewhere)
                for (const DeviceEvent &event : elsewhere)
                    m_wakes[{static_cast<std::size_t>(event.device), static_cast<std::size_t>(event.event)}]
                        .push_back(d);
    }

    Result<void> run(const std::stop_token &stop)
    {
        for (std::size_t d = 0; d < m_devices.size(); ++d)
            look(d, kQueueCount);
        for (std::int64_t turn = 0; !m_ready.empty() || !m_running.empty(); ++turn) {
            if (turn % 1024 == 0 && stop.stop_requested())
                return cancelled("the prediction was stopped");
            while (!m_ready.empty() && static_cast<double>(m_running.size()) < m_labour.cores()) {
                const Place next = m_ready.front();
                m_ready.pop_front();
                start(next);
            }
            if (!m_running.empty())
                goOn();
        }
        for (const Device &device : m_devices)
            if (std::find(device.done.begin(), device.done.end(), false) != device.done.end())
                return Error{ErrorCode::InvalidInput, "the plan's devices wait for each other for ever",
                    "verify the plan", {}};
        return {};
    }

    double seconds() const { return m_now; }
    double coreSeconds() const { return m_worked; }
    std::vector<LiveSpan> takeSpans(std::size_t device) { return std::move(m_devices[device].spans); }

private:
    struct Queue {
        std::vector<std::size_t> tasks{};
        std::size_t next = 0;
        bool running = false;
    };
    struct Device {
        std::array<Queue, kQueueCount> queues{};
        std::vector<bool> done{};
        std::vector<LiveSpan> spans{};
        std::vector<double> started{};
        /// Of a collective: which of its group's it is. Members issue those of a group in one order, and
        /// begin them in another where they are on several queues.
        std::vector<std::int64_t> sequence{};
    };
    /// Work that threads do now, for one task or for all that meet.
    struct Running {
        std::vector<Place> tasks{};
        double left = 0; ///< Seconds of one core.
        double most = 1; ///< Threads.
        double threads = 1;
    };
    using MessageId = std::tuple<std::size_t, std::size_t, std::int32_t, std::int32_t>;
    struct Message {
        std::optional<Place> receiver{}; ///< Waits for it.
        bool isAside = false; ///< Was sent before.
    };

    const StepInstruction &stepAt(const Place &at) const { return m_memory[at.device].instructions[at.step]; }
    const Instruction &instructionAt(const Place &at) const
    {
        const StepInstruction &step = stepAt(at);
        return m_plan.devices[at.device]
            .segments[static_cast<std::size_t>(step.segment)]
            .instructions[static_cast<std::size_t>(step.instruction)];
    }
    OperandUse useOf(const Place &at, std::size_t output) const
    {
        return m_memory[at.device].operandsOf(at.step)[instructionAt(at).inputs.size() + output].use;
    }
    bool isMadeElsewhere(const Place &at) const
    {
        for (std::size_t o = 0; o < instructionAt(at).outputs.size(); ++o)
            if (useOf(at, o) == OperandUse::Shared)
                return true;
        return false;
    }
    /// Device executors do nothing where all that an instruction makes lies where its input is.
    bool isDone(const Place &at) const
    {
        const Instruction &instruction = instructionAt(at);
        return isMadeElsewhere(at)
            || (instruction.outputs.size() == 1 && useOf(at, 0) == OperandUse::Takes
                && instruction.kind != InstructionKind::Sum && instruction.kind != InstructionKind::Cast
                && instruction.kind != InstructionKind::Weigh);
    }

    bool mayStart(const Place &at) const
    {
        const auto own = [&](EventId event) {
            return m_devices[at.device].done[static_cast<std::size_t>(event)];
        };
        const auto elsewhere = [&](const DeviceEvent &event) {
            return m_devices[static_cast<std::size_t>(event.device)]
                .done[static_cast<std::size_t>(event.event)];
        };
        const StepWaits &waits = m_waits[at.device];
        return std::all_of(waits.own[at.step].begin(), waits.own[at.step].end(), own)
            && std::all_of(waits.elsewhere[at.step].begin(), waits.elsewhere[at.step].end(), elsewhere);
    }

    /// Lets the device's queues go on that can. @param first  goes on at once, on the thread that looks
    void look(std::size_t d, std::size_t first)
    {
        for (std::size_t q = 0; q < kQueueCount; ++q) {
            Queue &queue = m_devices[d].queues[q];
            if (queue.running || queue.next == queue.tasks.size() || !mayStart({d, queue.tasks[queue.next]}))
                continue;
            queue.running = true;
            const Place place{d, queue.tasks[queue.next]};
            if (q == first)
                m_ready.push_front(place);
            else
                m_ready.push_back(place);
        }
    }

    void start(const Place &at)
    {
        m_devices[at.device].started[at.step] = m_now;
        const Instruction &instruction = instructionAt(at);
        if (!isCommunication(instruction.kind)) {
            const bool first =
                instruction.kind == InstructionKind::Accumulate && useOf(at, 0) == OperandUse::Makes;
            work(isDone(at) ? m_labour.nothing() : m_labour.local(at.device, stepAt(at), instruction, first),
                {at});
        } else if (instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Recv) {
            exchange(at, instruction);
        } else {
            meet(at, instruction);
        }
    }

    void work(const Labour &labour, std::vector<Place> tasks)
    {
        m_worked += labour.work;
        m_running.push_back({std::move(tasks), labour.work, labour.threads, 1});
    }

    void exchange(const Place &at, const Instruction &instruction)
    {
        const bool sends = instruction.kind == InstructionKind::Send;
        const auto peer = static_cast<std::size_t>(instruction.peer.index);
        const MessageId id{
            sends ? peer : at.device, sends ? at.device : peer, instruction.tag, stepAt(at).microBatch};
        Message &message = m_messages[id];
        const DeviceProgram &program = m_plan.devices[at.device];
        if (sends) {
            std::vector<Place> served{at};
            if (message.receiver)
                served.push_back(*message.receiver); // goes where it is wanted
            message.isAside = !message.receiver;
            message.receiver.reset();
            work(m_labour.message(program, instruction.inputs[0]), std::move(served));
        } else if (message.isAside) {
            message.isAside = false;
            work(m_labour.message(program, instruction.outputs[0]), {at});
        } else {
            message.receiver = at;
        }
    }

    void meet(const Place &at, const Instruction &instruction)
    {
        const std::size_t members = m_plan.groups[static_cast<std::size_t>(instruction.group)].size();
        const std::int64_t sequence = m_devices[at.device].sequence[at.step];
        std::vector<Place> &here = m_meetings[{instruction.group, sequence}];
        here.push_back(at);
        if (here.size() < members)
            return;
        const auto own = static_cast<std::size_t>(std::count_if(
            here.begin(), here.end(), [&](const Place &each) { return !isMadeElsewhere(each); }));
        const Labour labour = m_labour.collective(m_plan.devices[at.device], instruction, members, own);
        std::vector<Place> all = std::move(here);
        m_meetings.erase({instruction.group, sequence});
        work(labour, std::move(all));
    }

    /// Until the next task is done.
    void goOn()
    {
        double spare = m_labour.cores() - static_cast<double>(m_running.size());
        double next = -1;
        for (Running &running : m_running) {
            const double helpers = std::clamp(running.most - 1, 0.0, std::max(spare, 0.0));
            running.threads = 1 + helpers;
            spare -= helpers;
            const double seconds = running.left / running.threads;
            next = next < 0 ? seconds : std::min(next, seconds);
        }
        m_now += next;
        std::vector<Running> ended;
        for (std::size_t i = 0; i < m_running.size();) {
            Running &running = m_running[i];
            running.left -= next * running.threads;
            if (running.left > 1e-12) {
                ++i;
                continue;
            }
            ended.push_back(std::move(running));
            m_running.erase(m_running.begin() + static_cast<std::ptrdiff_t>(i));
        }
        for (const Running &each : ended)
            for (const Place &task : each.tasks)
                end(task);
    }

    void end(const Place &at)
    {
        Device &device = m_devices[at.device];
        const StepInstruction &step = stepAt(at);
        const auto nanoseconds = [](double seconds) { return std::llround(seconds * 1e9); };
        const std::int64_t start = nanoseconds(device.started[at.step]);
        device.spans[at.step] = {
            0, step.segment, step.instruction, step.microBatch, start, nanoseconds(m_now) - start};
        device.done[at.step] = true;
        const auto q = static_cast<std::size_t>(queueOf(instructionAt(at)));
        ++device.queues[q].next;
        device.queues[q].running = false;
        look(at.device, isCommunication(instructionAt(at).kind) ? kQueueCount : q);
        if (const auto found = m_wakes.find(at); found != m_wakes.end())
            for (const std::size_t other : found->second)
                look(other, kQueueCount);
    }

    const ExecutionPlan &m_plan;
    LabourOf &m_labour;
    const std::vector<MemoryPlan> &m_memory;
    const std::vector<StepWaits> &m_waits;
    std::vector<Device> m_devices{};
    std::map<Place, std::vector<std::size_t>> m_wakes{}; ///< Devices that wait for a task of another one.
    std::deque<Place> m_ready{};
    std::vector<Running> m_running{}; ///< In the order in which they began; no more than cores.
    std::map<std::pair<std::int32_t, std::int64_t>, std::vector<Place>> m_meetings{};
    std::map<MessageId, Message> m_messages{};
    double m_now = 0;
    double m_worked = 0;
};

} // namespace

Result<Rehearsal> rehearse(
    const ExecutionPlan &plan, const MachineProfile &profile, bool sharesValues, std::stop_token stop)
{
    std::vector<MemoryPlan> memory;
    std::vector<StepWaits> waits;
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        if (stepCycle(plan, plan.devices[d]) > 1)
            sharesValues = false; // steps are laid out in turn
        TRY(memory.emplace_back(), planMemory(plan, static_cast<std::int32_t>(d), kCacheLine, 0, true));
        StepWaits own;
        own.own = stepOrder(plan.devices[d], memory.back());
        own.elsewhere.resize(own.own.size());
        waits.push_back(std::move(own));
    }
    if (sharesValues) {
        if (auto shared = shareValues(plan, memory, kCacheLine)) {
            memory = std::move(shared->memory);
            waits = std::move(shared->waits);
        }
    }
    TRY(const Cluster cluster, clusterNamed("cpu:" + std::to_string(plan.devices.size())));
    LabourOf labour(plan, profile, costModelOf(cluster));
    RehearsedStep step(plan, labour, memory, waits);
    TRY_VOID(step.run(stop));
    Rehearsal rehearsal;
    rehearsal.seconds = step.seconds();
    rehearsal.coreSeconds = step.coreSeconds();
    for (std::size_t d = 0; d < plan.devices.size(); ++d) {
        DeviceMeasure measure;
        measure.spans = step.takeSpans(d);
        measure.memory = memoryCurve(plan.devices[d], memory[d], measure.spans);
        measure.peak = {memory[d].peak[static_cast<std::size_t>(MemoryPlace::Device)]};
        measure.hostPeak = {memory[d].peak[static_cast<std::size_t>(MemoryPlace::Host)]};
        rehearsal.devices.push_back(std::move(measure));
    }
    return rehearsal;
}

} // namespace planloom
