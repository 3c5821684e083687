#include "engine/runtime/devices/device_executor.h"

#include "engine/graph/operators/storage_types.h"
#include "engine/runtime/devices/box_copy.h"
#include "engine/runtime/devices/measured.h"
#include "engine/runtime/devices/step_order.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <chrono>
#include <cmath>
#include <utility>

namespace planloom {

DeviceExecutor::DeviceExecutor(
    RunShared &shared, std::int32_t device, DeviceProgress &progress, std::unique_ptr<DeviceBackend> backend)
    : m_shared(shared)
    , m_plan(shared.plan)
    , m_program(shared.plan.devices[static_cast<std::size_t>(device)])
    , m_device(device)
    , m_progress(progress)
    , m_backend(std::move(backend))
    , m_gradientFactor(static_cast<float>(m_plan.updates / lossScaleOf(*m_plan.graph, m_plan.precisions)))
{
    m_shared.arenas.resize(m_plan.devices.size());
    for (const BufferInfo &buffer : m_program.buffers) {
        Slot slot;
        slot.type = buffer.dataType;
        slot.shape = shapeOf(buffer.index);
        slot.elements = elementCount(buffer.index);
        slot.bytes = static_cast<std::size_t>(slot.elements * sizeOf(slot.type));
        if (buffer.perMicroBatch && m_plan.microBatches > 1) {
            // Micro-batches move a box along one dimension, by the same step each time.
            const IndexMask second = planloom::boxOf(m_plan, buffer, 1);
            for (std::size_t d = 0; d < second.ranges.size(); ++d) {
                if (second.ranges[d].begin != buffer.index.ranges[d].begin) {
                    slot.shiftDimension = static_cast<std::int32_t>(d);
                    slot.shift = second.ranges[d].begin - buffer.index.ranges[d].begin;
                }
            }
        }
        m_slots.push_back(std::move(slot));
    }
    for (const Instruction &instruction : m_program.setup)
        m_setup.push_back(prepare(instruction));
    for (const Segment &segment : m_program.segments) {
        std::vector<Prepared> &prepared = m_segments.emplace_back();
        prepared.reserve(segment.instructions.size());
        for (const Instruction &instruction : segment.instructions)
            prepared.push_back(prepare(instruction));
    }
}

DeviceExecutor::Prepared DeviceExecutor::prepare(const Instruction &instruction)
{
    Prepared prepared;
    prepared.source = &instruction;
    prepared.claims = m_shared.collector.claimsOf(m_device, instruction);
    if (instruction.kind != InstructionKind::Kernel)
        return prepared;
    prepared.kernel = prepareKernel(m_plan, m_program, instruction, m_gradientFactor);
    KernelCall &call = prepared.kernel.call;
    call.seed = m_shared.options.seed;
    call.learningRate = m_shared.begin.learningRate;
    call.libraries = &m_shared.libraries;
    if (call.op->kind == OperatorKind::NonZero && prepared.kernel.isFirstReplica
        && m_counted.emplace(instruction.op, instruction.part).second) // when made again, it drops the same
        call.dropped = &m_dropped[instruction.op];
    return prepared;
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
            if (!info(out).persistent)
                return Error{ErrorCode::InvalidInput,
                    "the plan loads " + m_plan.graph->at(info(out).tensor).name
                        + ", which does not stay, before the first step",
                    "this plan was not made by Planloom, or is damaged", {}};
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

bool DeviceExecutor::isCollective(const Instruction &instruction) const
{
    return isCommunication(instruction.kind) && instruction.kind != InstructionKind::Send
        && instruction.kind != InstructionKind::Recv;
}

bool DeviceExecutor::isOptimizer(const Instruction &instruction) const
{
    return instruction.kind == InstructionKind::Kernel
        && m_plan.graph->at(instruction.op).direction == Direction::Optimizer;
}

CollectiveCall DeviceExecutor::collectiveCall(const Turn &turn)
{
    const Instruction &instruction = *turn.prepared.source;
    CollectiveCall call;
    call.kind = instruction.kind;
    call.group = instruction.group;
    call.sequence = m_sequences[instruction.group]++;
    if (!instruction.outputs.empty() && instruction.outputs[0] >= 0) {
        const Slot &out = slot(instruction.outputs[0]);
        call.out = {output(turn, 0), out.type, out.shape};
    }
    if (!instruction.inputs.empty() && instruction.inputs[0] >= 0) {
        const Slot &in = slot(instruction.inputs[0]);
        call.in = {input(turn, 0), in.type, in.shape};
    }
    call.dimension = instruction.dimension;
    call.gatherDimension = instruction.gatherDimension;
    call.combination = instruction.combination;
    return call;
}

void DeviceExecutor::issue(const Turn &turn, std::vector<EventId> waits,
    std::vector<DeviceEvent> waitsElsewhere, std::span<const std::int32_t> ends)
{
    const Instruction &instruction = *turn.prepared.source;
    DeviceTask task;
    task.event = turn.event;
    task.queue = queueOf(instruction);
    task.waits = std::move(waits);
    task.waitsElsewhere = std::move(waitsElsewhere);
    task.work = [this, turn](DeviceQueue &queue) { return run(turn, queue); };
    task.varies = isOptimizer(instruction); // its rate and step
    for (const std::int32_t block : ends)
        task.ends.emplace_back(addressOf(turn.memory, {block, OperandUse::Reads}),
            static_cast<std::size_t>(turn.memory.blocks[static_cast<std::size_t>(block)].bytes));
    const MessageKey key{instruction.peer, instruction.tag, turn.microBatch};
    if (isCollective(instruction))
        task.communication = collectiveCall(turn);
    else if (instruction.kind == InstructionKind::Send)
        task.communication = SendCall{{key, input(turn, 0), slot(instruction.inputs[0]).bytes, task.queue}};
    else if (instruction.kind == InstructionKind::Recv)
        task.communication =
            ReceiveCall{{key, output(turn, 0), slot(instruction.outputs[0]).bytes, task.queue}};
    m_backend->issue(std::move(task));
}

DeviceExecutor::Prepared &DeviceExecutor::preparedAt(const StepInstruction &at)
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
    const Phase &phase = m_phases[static_cast<std::size_t>(step) % m_phases.size()];
    const std::size_t count = phase.memory.instructions.size();
    m_step = step;
    m_origin = origin;
    m_measure = measure;
    m_spans.assign(measure ? count : 0, {});
    {
        const std::lock_guard lock{m_mutex};
        m_doneBefore = std::int64_t{step} * static_cast<std::int64_t>(count);
        m_done.assign(count, false);
        m_doneUpTo = 0;
    }
    if (count > 0)
        m_progress.issued.store(m_doneBefore + 1, std::memory_order_relaxed);
    // The last step shows more to the host, the first one may poison, and what looks for NaN remembers.
    const bool usual = step + 1 < m_shared.options.steps && (step > 0 || !m_shared.options.poison)
        && !m_shared.options.findNaN;
    m_backend->announce({usual ? step % static_cast<std::int32_t>(m_phases.size()) : -1, measure});
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
        const std::int32_t where =
            bufferOfVersion(info(piece.buffer), piece.buffer, std::int64_t{step} * m_plan.updates);
        const std::byte *from =
            addressOf(memory, {memory.persistent[static_cast<std::size_t>(where)], OperandUse::Reads});
        DeviceTask task;
        task.event = static_cast<EventId>(i);
        task.queue = QueueKind::Copy;
        task.work = [this, &piece, &take, from](DeviceQueue &queue) {
            return queue.download(
                from, slot(piece.buffer).bytes, [this, &piece, &take](const std::byte *data) -> Result<void> {
                    take(piece, info(piece.buffer), data);
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
    const Phase &phase = m_phases[static_cast<std::size_t>(m_step) % m_phases.size()];
    const StepInstruction &at = phase.memory.instructions[index];
    if (!outcome) {
        m_shared.fail(placed(outcome.error(), *preparedAt(at).source));
        return; // what has failed does not count as finished
    }
    const auto since = [&](Clock::time_point time) {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(time - m_origin).count();
    };
    if (m_measure)
        m_spans[index] = {at.segment, at.instruction, at.microBatch, since(start), since(end) - since(start)};
    const std::lock_guard lock{m_mutex};
    if (m_measure && m_tellsSpans) {
        const MeasuredSpan &span = m_spans[index];
        m_liveSpans.push_back(
            {m_step, span.segment, span.instruction, span.microBatch, span.start, span.duration});
    }
    m_done[index] = true;
    while (m_doneUpTo < m_done.size() && m_done[m_doneUpTo])
        ++m_doneUpTo;
    const auto done = static_cast<std::int64_t>(m_doneUpTo);
    const auto begun = static_cast<std::int64_t>(std::min(m_doneUpTo + 1, m_done.size()));
    m_progress.issued.store(m_doneBefore + begun, std::memory_order_relaxed);
    m_progress.finished.store(m_doneBefore + done, std::memory_order_relaxed);
}

std::vector<LiveSpan> DeviceExecutor::takeLive()
{
    const std::lock_guard lock{m_mutex};
    return std::exchange(m_liveSpans, {});
}

DeviceMeasure DeviceExecutor::measure() const
{
    MemoryCurve curve;
    if (!m_spans.empty())
        curve = memoryCurve(
            m_program, m_phases[static_cast<std::size_t>(m_step) % m_phases.size()].memory, m_spans);
    return {m_spans, std::move(curve), {m_peak[static_cast<std::size_t>(MemoryPlace::Device)]},
        {m_peak[static_cast<std::size_t>(MemoryPlace::Host)]}};
}

} // namespace planloom
