#include "engine/runtime/devices/device_executor.h"

#include "engine/runtime/communication/collective_work.h"
#include "engine/runtime/devices/measured.h"
#include "engine/runtime/devices/step_order.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace planloom {

DeviceExecutor::DeviceExecutor(
    RunShared &shared, std::int32_t device, DeviceProgress &progress, std::unique_ptr<DeviceBackend> backend)
    : m_shared(shared)
    , m_plan(shared.plan)
    , m_program(shared.plan.devices[static_cast<std::size_t>(device)])
    , m_device(device)
    , m_backend(std::move(backend))
    , m_instructions(shared, device)
    , m_cycle(stepCycle(shared.plan))
    , m_log(progress)
{
    m_shared.arenas.resize(m_plan.devices.size());
    for (const Instruction &instruction : m_program.setup)
        m_setup.push_back(m_instructions.prepare(instruction));
    for (const Segment &segment : m_program.segments) {
        std::vector<PreparedInstruction> &prepared = m_segments.emplace_back();
        prepared.reserve(segment.instructions.size());
        for (const Instruction &instruction : segment.instructions)
            prepared.push_back(m_instructions.prepare(instruction));
    }
}

Result<void> DeviceExecutor::planMemory()
{
    const std::int32_t phases = stepCycle(m_plan, m_program);
    for (std::int32_t phase = 0; phase < std::min(phases, m_shared.options.steps); ++phase) {
        Phase made;
        const bool addsInPlace = m_backend->addsInPlace() && !m_shared.options.keepAll; // which looks at all
        TRY(made.memory,
            planloom::planMemory(
                m_plan, m_device, m_backend->alignment(), std::int64_t{phase} * m_plan.updates, addsInPlace));
        made.waits.own = stepOrder(m_program, made.memory);
        made.waits.elsewhere.resize(made.waits.own.size());
        if (m_backend->asksWhatEnds())
            made.ends = endingBlocks(m_program, made.memory);
        m_phases.push_back(std::move(made));
    }
    layArenas();
    return planSetup();
}

void DeviceExecutor::layArenas()
{
    m_arenaBytes = {};
    for (const Phase &phase : m_phases) {
        for (std::size_t place = 0; place < m_arenaBytes.size(); ++place) {
            m_arenaBytes[place] = std::max(m_arenaBytes[place], phase.memory.arenaBytes[place]);
            m_peak[place] = std::max(m_peak[place], phase.memory.peak[place]);
        }
    }
}

Result<void> DeviceExecutor::planSetup()
{
    const MemoryPlan &first = m_phases.front().memory;
    m_setupMemory = {};
    m_setupMemory.blocks = first.blocks;
    m_setupMemory.firstOperand.push_back(0);
    for (std::size_t i = 0; i < m_program.setup.size(); ++i) {
        for (const std::int32_t out : m_program.setup[i].outputs) {
            if (!m_instructions.info(out).persistent)
                return damagedPlan("the plan loads " + m_plan.graph->at(m_instructions.info(out).tensor).name
                    + ", which does not stay, before the first step");
            const std::int32_t block = first.persistent[static_cast<std::size_t>(out)];
            const bool isOwn = first.blocks[static_cast<std::size_t>(block)].owner < 0;
            m_setupMemory.operands.push_back({block, isOwn ? OperandUse::Makes : OperandUse::Shared});
        }
        m_setupMemory.instructions.push_back({-1, static_cast<std::int32_t>(i), 0});
        m_setupMemory.firstOperand.push_back(m_setupMemory.operands.size());
    }
    return {};
}

void DeviceExecutor::share(SharedStep &step)
{
    assert(m_phases.size() == 1);
    const auto at = static_cast<std::size_t>(m_device);
    m_phases.front() = {std::move(step.memory[at]), std::move(step.waits[at]), {}};
    m_setupWaits = std::move(step.setupWaits[at]);
    layArenas();
    (void)planSetup(); // which went well before
}

Result<void> DeviceExecutor::reserve()
{
    for (const MemoryPlace place : {MemoryPlace::Device, MemoryPlace::Host}) {
        const auto at = static_cast<std::size_t>(place);
        TRY(m_shared.arenas[static_cast<std::size_t>(m_device)][at],
            m_backend->reserve(place, static_cast<std::size_t>(m_arenaBytes[at])));
    }
    return {};
}

void DeviceExecutor::issue(const InstructionTurn &turn, std::vector<EventId> waits,
    std::vector<DeviceEvent> waitsElsewhere, std::span<const std::int32_t> ends)
{
    const Instruction &instruction = *turn.prepared.source;
    const auto bytesOf = [this](std::int32_t buffer) { return m_instructions.slot(buffer).bytes; };
    DeviceTask task;
    task.event = turn.event;
    task.queue = queueOf(instruction);
    task.waits = std::move(waits);
    task.waitsElsewhere = std::move(waitsElsewhere);
    task.work = [this, turn](DeviceQueue &queue) { return m_instructions.run(turn, queue); };
    task.varies = instruction.kind == InstructionKind::Kernel // its rate and step
        && m_plan.graph->at(instruction.op).direction == Direction::Optimizer;
    for (const std::int32_t block : ends)
        task.ends.emplace_back(m_instructions.addressOf(turn.memory, {block, OperandUse::Reads}),
            static_cast<std::size_t>(turn.memory.blocks[static_cast<std::size_t>(block)].bytes));
    const MessageKey key{instruction.peer, instruction.tag, turn.microBatch};
    if (instruction.kind == InstructionKind::Send)
        task.communication =
            SendCall{{key, m_instructions.input(turn, 0), bytesOf(instruction.inputs[0]), task.queue}};
    else if (instruction.kind == InstructionKind::Recv)
        task.communication =
            ReceiveCall{{key, m_instructions.output(turn, 0), bytesOf(instruction.outputs[0]), task.queue}};
    else if (isCommunication(instruction.kind))
        task.communication = m_instructions.collectiveCall(turn, m_sequences[instruction.group]++);
    m_backend->issue(std::move(task));
}

PreparedInstruction &DeviceExecutor::preparedAt(const StepInstruction &at)
{
    const auto index = static_cast<std::size_t>(at.instruction);
    return at.segment < 0 ? m_setup[index] : m_segments[static_cast<std::size_t>(at.segment)][index];
}

void DeviceExecutor::issueSetup()
{
    m_step = -1;
    m_backend->begin(static_cast<std::int32_t>(m_setup.size()), *this);
    for (std::size_t i = 0; i < m_setup.size(); ++i)
        issue({m_setup[i], m_setupMemory, m_setupMemory.operandsOf(i), 0, 0, static_cast<EventId>(i)}, {},
            i < m_setupWaits.size() ? m_setupWaits[i] : std::vector<DeviceEvent>{});
}

void DeviceExecutor::issueStep(std::int32_t step, Clock::time_point origin, bool measure)
{
    const Phase &phase = phaseOf(step);
    const std::size_t count = phase.memory.instructions.size();
    m_step = step;
    m_log.begin(step, count, origin, measure);
    // The last step shows more to the host, the first one may poison, and what looks for NaN remembers.
    const bool usual = step + 1 < m_shared.options.steps && (step > 0 || !m_shared.options.poison)
        && !m_shared.options.findNaN;
    // Graphs are of all devices: steps are of one kind where all have their versions where they had them.
    m_backend->announce({usual ? step % m_cycle : -1, measure});
    m_backend->begin(static_cast<std::int32_t>(count), *this);
    for (std::size_t i = 0; i < count; ++i) {
        const StepInstruction &at = phase.memory.instructions[i];
        issue({preparedAt(at), phase.memory, phase.memory.operandsOf(i), at.microBatch, step,
                  static_cast<EventId>(i)},
            phase.waits.own[i], phase.waits.elsewhere[i],
            phase.ends.empty() ? std::span<const std::int32_t>{} : phase.ends[i]);
    }
}

void DeviceExecutor::issueSave(std::int32_t step, const std::vector<SavedPiece> &pieces,
    const std::function<void(const SavedPiece &, const BufferInfo &, const std::byte *)> &take,
    TaskListener &listener)
{
    const MemoryPlan &memory = m_phases.front().memory; // what persists lies there in all of them
    m_backend->begin(static_cast<std::int32_t>(pieces.size()), listener);
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const SavedPiece &piece = pieces[i];
        const std::int32_t where = bufferOfVersion(
            m_instructions.info(piece.buffer), piece.buffer, std::int64_t{step} * m_plan.updates);
        const std::byte *from = m_instructions.addressOf(
            memory, {memory.persistent[static_cast<std::size_t>(where)], OperandUse::Reads});
        DeviceTask task;
        task.event = static_cast<EventId>(i);
        task.queue = QueueKind::Copy;
        task.work = [this, &piece, &take, from](DeviceQueue &queue) {
            return queue.download(from, m_instructions.slot(piece.buffer).bytes,
                [this, &piece, &take](const std::byte *data) -> Result<void> {
                    take(piece, m_instructions.info(piece.buffer), data);
                    return {};
                });
        };
        m_backend->issue(std::move(task));
    }
}

void DeviceExecutor::finish()
{
    m_backend->finish();
}

Error DeviceExecutor::placed(Error error, const Instruction &instruction) const
{
    if (error.where.empty() && instruction.op.valid())
        error.where = "operator:" + std::to_string(instruction.op.index);
    if (error.code != ErrorCode::Cancelled)
        error.message = "device " + std::to_string(m_device) + ", " + nameOf(instruction.kind)
            + (instruction.op.valid() ? " of " + m_plan.graph->at(instruction.op).name : std::string{}) + ": "
            + error.message;
    return error;
}

void DeviceExecutor::finished(
    EventId event, const Result<void> &outcome, Clock::time_point start, Clock::time_point end)
{
    const auto index = static_cast<std::size_t>(event);
    if (m_step < 0) {
        if (!outcome)
            m_shared.fail(placed(outcome.error(), *m_setup[index].source));
        return;
    }
    const StepInstruction &at = phaseOf(m_step).memory.instructions[index];
    if (outcome)
        m_log.ended(index, at, start, end);
    else // what has failed does not count as finished
        m_shared.fail(placed(outcome.error(), *preparedAt(at).source));
}

DeviceMeasure DeviceExecutor::measure() const
{
    const std::vector<LiveSpan> &spans = m_log.spans();
    MemoryCurve curve;
    if (!spans.empty())
        curve = memoryCurve(m_program, phaseOf(m_step).memory, spans);
    return {spans, std::move(curve), {m_peak[static_cast<std::size_t>(MemoryPlace::Device)]},
        {m_peak[static_cast<std::size_t>(MemoryPlace::Host)]}};
}

} // namespace planloom
