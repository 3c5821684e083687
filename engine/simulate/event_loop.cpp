#include "engine/simulate/event_loop.h"

#include <algorithm>
#include <string>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kAbsent = -1; ///< Of a buffer: not written yet, or dead.

/// A buffer's instance.
struct BufferState {
    std::int64_t there = kAbsent; ///< When its value is there.
    std::int64_t read = 0; ///< When its last reader is done.
};

/// One device class on its way through its schedule.
struct DeviceState {
    const CompiledProgram *program = nullptr;
    std::size_t entry = 0; ///< Index into the schedule.
    std::int32_t instruction = -1; ///< Index into the compiled instructions; -1 before an entry.
    std::array<std::int64_t, kQueueCount> free{}; ///< By queue: when it is done with what it was given.
    std::vector<BufferState> single{};
    std::vector<BufferState> perMicroBatch{}; ///< Micro-batch x buffer.
    bool waiting = false;
    std::int64_t resumeStart = 0; ///< Once what it waited for has happened.
    std::int64_t resumeDuration = 0;
};

/// A meeting in the making.
struct Meeting {
    std::int32_t arrived = 0;
    std::int64_t start = 0;
    std::int64_t duration = 0;
    std::int32_t microBatch = -1;
    InstructionKind kind{};
    std::int32_t met = 0; ///< Meetings at this point before.
};

class EventLoop
{
public:
    EventLoop(const std::vector<CompiledProgram> &programs, const Symmetry &symmetry,
        const MeetingPlaces &places, std::int32_t microBatches, const MeetingDurations &durations)
        : m_programs(programs)
        , m_symmetry(symmetry)
        , m_places(places)
        , m_durations(durations)
        , m_microBatches(microBatches)
        , m_states(programs.size())
        , m_traces(programs.size())
        , m_meetings(static_cast<std::size_t>(places.points))
        , m_waiting(m_meetings.size())
    {
        for (std::size_t c = 0; c < programs.size(); ++c)
            prepare(c);
    }

    Result<std::vector<DeviceTrace>> run(std::stop_token stop)
    {
        std::vector<std::int32_t> ready;
        for (std::size_t c = m_states.size(); c > 0; --c)
            ready.push_back(static_cast<std::int32_t>(c - 1));
        while (!ready.empty()) {
            const std::int32_t next = ready.back();
            ready.pop_back();
            TRY_VOID(advance(next, ready, stop));
        }
        for (std::size_t c = 0; c < m_states.size(); ++c) {
            if (m_states[c].waiting)
                return deadlock(static_cast<std::int32_t>(c));
            m_traces[c].end = *std::max_element(m_states[c].free.begin(), m_states[c].free.end());
        }
        return std::move(m_traces);
    }

private:
    void prepare(std::size_t c)
    {
        const CompiledProgram &program = m_programs[c];
        DeviceState &state = m_states[c];
        state.program = &program;
        state.single.resize(static_cast<std::size_t>(program.singleCount));
        state.perMicroBatch.resize(
            static_cast<std::size_t>(program.perMicroBatchCount) * static_cast<std::size_t>(m_microBatches));
        DeviceTrace &trace = m_traces[c];
        for (const std::int32_t buffer : program.persistent) {
            const auto b = static_cast<std::size_t>(buffer);
            state.single[static_cast<std::size_t>(program.buffers[b].index)].there = 0;
            note(static_cast<std::int32_t>(c), buffer, 0, {0, program.bufferBytes[b], program.bufferKind[b]});
        }
        std::array<std::int64_t, kQueueCount> events{}; // at most
        for (std::size_t i = 0; i < program.instructions.size(); ++i) {
            const CompiledInstruction &instruction = program.instructions[i];
            events[static_cast<std::size_t>(instruction.queue)] +=
                program.runs[i] * (instruction.deathEnd - instruction.outputBegin);
        }
        for (std::size_t q = 0; q < events.size(); ++q)
            trace.memory[q].reserve(static_cast<std::size_t>(kMemoryKindCount + events[q]));
        for (std::size_t q = 0; q < trace.queues.size(); ++q) {
            const auto count = static_cast<std::size_t>(program.counts[q]);
            trace.queues[q].segment.reserve(count);
            trace.queues[q].instruction.reserve(count);
            trace.queues[q].microBatch.reserve(count);
            trace.queues[q].start.reserve(count);
            trace.queues[q].duration.reserve(count);
        }
    }

    BufferState &bufferOf(DeviceState &state, std::int32_t b, std::int32_t microBatch)
    {
        const BufferSlot slot = state.program->buffers[static_cast<std::size_t>(b)];
        if (!slot.perMicroBatch)
            return state.single[singlePlace(*state.program, slot, microBatch)];
        return state.perMicroBatch[static_cast<std::size_t>(microBatch)
                * static_cast<std::size_t>(state.program->perMicroBatchCount)
            + static_cast<std::size_t>(slot.index)];
    }

    /// What buffer `b` of class `c` takes or gives back for an instruction of `queue`: of the device, or of
    /// its host.
    void note(std::int32_t c, std::int32_t b, std::size_t queue, const MemoryEvent &event)
    {
        DeviceTrace &trace = m_traces[static_cast<std::size_t>(c)];
        if (m_programs[static_cast<std::size_t>(c)].onHost[static_cast<std::size_t>(b)])
            trace.hostMemory.push_back(event);
        else
            trace.memory[queue].add(event);
    }

    /// Runs class `c` until it ends or waits. Appends the classes that it wakes to `ready`.
    Result<void> advance(std::int32_t c, std::vector<std::int32_t> &ready, const std::stop_token &stop)
    {
        DeviceState &state = m_states[static_cast<std::size_t>(c)];
        const CompiledProgram &program = *state.program;
        if (state.waiting) {
            state.waiting = false;
            finish(c, state.resumeStart, state.resumeDuration);
            ++state.instruction;
        }
        for (; state.entry < program.schedule.size(); ++state.entry, state.instruction = -1) {
            const CompiledEntry entry = program.schedule[state.entry];
            const std::int32_t end = entry.end;
            if (state.instruction < 0) {
                state.instruction = entry.begin;
                if (stop.stop_requested())
                    return cancelled("the simulation was stopped");
            }
            for (; state.instruction < end; ++state.instruction) {
                const CompiledInstruction &instruction =
                    program.instructions[static_cast<std::size_t>(state.instruction)];
                std::int64_t arrival = state.free[static_cast<std::size_t>(instruction.queue)];
                if (instruction.waits)
                    arrival = std::max(arrival, state.free[static_cast<std::size_t>(QueueKind::Compute)]);
                for (std::int32_t k = instruction.inputBegin; k < instruction.outputBegin; ++k) {
                    const std::int64_t there =
                        bufferOf(state, program.operands[static_cast<std::size_t>(k)], entry.microBatch)
                            .there;
                    if (there == kAbsent)
                        return unreadable(c);
                    arrival = std::max(arrival, there);
                }
                bool first = true;
                for (std::int32_t k = instruction.outputBegin; k < instruction.deathBegin; ++k) {
                    const BufferState &buffer =
                        bufferOf(state, program.operands[static_cast<std::size_t>(k)], entry.microBatch);
                    first = buffer.there == kAbsent;
                    arrival =
                        std::max({arrival, buffer.there, buffer.read}); // Others may still write or read it.
                }
                if (instruction.channel >= 0) {
                    TRY(const bool met, meet(c, instruction, entry.microBatch, arrival, ready));
                    if (!met)
                        return {};
                    finish(c, state.resumeStart, state.resumeDuration);
                    continue;
                }
                const bool copies = first && instruction.kind == InstructionKind::Accumulate;
                finish(c, arrival, copies ? instruction.firstDuration : instruction.duration);
            }
        }
        return {};
    }

    /// Class `c` comes to a channel at `arrival`. True if it was the last: the meeting's time is then in its
    /// state.
    Result<bool> meet(std::int32_t c, const CompiledInstruction &instruction, std::int32_t microBatch,
        std::int64_t arrival, std::vector<std::int32_t> &ready)
    {
        const MeetingPlace &place = m_places.places[static_cast<std::size_t>(instruction.channel)];
        const auto m = static_cast<std::size_t>(place.begin + (instruction.paired ? microBatch : 0));
        Meeting &meeting = m_meetings[m];
        if (meeting.arrived > 0 && !instruction.paired
            && (meeting.kind != instruction.kind || meeting.microBatch != microBatch))
            return mismatch(c, meeting);
        meeting.kind = instruction.kind;
        meeting.microBatch = microBatch;
        meeting.start = std::max(meeting.start, arrival);
        meeting.duration = std::max(meeting.duration, instruction.duration);
        ++meeting.arrived;
        DeviceState &state = m_states[static_cast<std::size_t>(c)];
        if (!place.complete || meeting.arrived < place.expected()) {
            state.waiting = true;
            m_waiting[m].push_back(c);
            return false;
        }
        if (!m_durations.empty())
            meeting.duration = m_durations[m][static_cast<std::size_t>(meeting.met)];
        for (const std::int32_t other : m_waiting[m]) {
            DeviceState &waiter = m_states[static_cast<std::size_t>(other)];
            waiter.resumeStart = meeting.start;
            waiter.resumeDuration = meeting.duration;
            ready.push_back(other);
        }
        m_waiting[m].clear();
        state.resumeStart = meeting.start;
        state.resumeDuration = meeting.duration;
        meeting = {.met = meeting.met + 1};
        return true;
    }

    /// Books the instruction that class `c` stands at.
    void finish(std::int32_t c, std::int64_t start, std::int64_t duration)
    {
        DeviceState &state = m_states[static_cast<std::size_t>(c)];
        const CompiledProgram &program = *state.program;
        const CompiledInstruction &instruction =
            program.instructions[static_cast<std::size_t>(state.instruction)];
        const CompiledEntry entry = program.schedule[state.entry];
        DeviceTrace &trace = m_traces[static_cast<std::size_t>(c)];
        const std::int64_t end = start + duration;
        const auto queue = static_cast<std::size_t>(instruction.queue);
        state.free[queue] = end;
        if (instruction.blocks) {
            std::int64_t &compute = state.free[static_cast<std::size_t>(QueueKind::Compute)];
            compute = std::max(compute, end);
        }
        QueueTrace &spans = trace.queues[queue];
        spans.segment.push_back(entry.segment);
        spans.instruction.push_back(
            state.instruction - program.segmentBegin[static_cast<std::size_t>(entry.segment)]);
        spans.microBatch.push_back(entry.microBatch);
        spans.start.push_back(start);
        spans.duration.push_back(duration);

        for (std::int32_t k = instruction.inputBegin; k < instruction.outputBegin; ++k) {
            BufferState &buffer =
                bufferOf(state, program.operands[static_cast<std::size_t>(k)], entry.microBatch);
            buffer.read = std::max(buffer.read, end);
        }
        for (std::int32_t k = instruction.outputBegin; k < instruction.deathBegin; ++k) {
            const std::int32_t b = program.operands[static_cast<std::size_t>(k)];
            BufferState &buffer = bufferOf(state, b, entry.microBatch);
            if (buffer.there == kAbsent)
                note(c, b, queue,
                    {start, program.bufferBytes[static_cast<std::size_t>(b)],
                        program.bufferKind[static_cast<std::size_t>(b)]});
            buffer.there = end;
        }
        if (!program.workspaces.empty())
            if (const auto workspace = program.workspaces.find(state.instruction);
                workspace != program.workspaces.end()) {
                trace.memory[queue].add({start, workspace->second, MemoryKind::Activation});
                trace.memory[queue].add({end, -workspace->second, MemoryKind::Activation});
            }
        for (std::int32_t k = instruction.deathBegin; k < instruction.deathEnd; ++k) {
            const std::int32_t b = program.operands[static_cast<std::size_t>(k)];
            BufferState &buffer = bufferOf(state, b, entry.microBatch);
            if (buffer.there == kAbsent)
                continue;
            // What another queue still fills or reads lives until that is done.
            note(c, b, queue,
                {std::max({end, buffer.there, buffer.read}),
                    -program.bufferBytes[static_cast<std::size_t>(b)],
                    program.bufferKind[static_cast<std::size_t>(b)]});
            buffer.there = kAbsent;
        }
    }

    std::string placeOf(std::int32_t c) const
    {
        const DeviceState &state = m_states[static_cast<std::size_t>(c)];
        const std::int32_t segment = state.program->schedule[state.entry].segment;
        return planloom::placeOf(m_symmetry.representative[static_cast<std::size_t>(c)], segment,
            state.program->instructions[static_cast<std::size_t>(state.instruction)].origin);
    }

    std::string sentenceOf(std::int32_t c) const
    {
        const DeviceState &state = m_states[static_cast<std::size_t>(c)];
        const auto &instruction = state.program->instructions[static_cast<std::size_t>(state.instruction)];
        return "device " + std::to_string(m_symmetry.representative[static_cast<std::size_t>(c)]) + " at a "
            + nameOf(instruction.kind) + " of micro-batch "
            + std::to_string(state.program->schedule[state.entry].microBatch);
    }

    Error deadlock(std::int32_t c) const
    {
        std::string message = "the plan cannot make progress: ";
        int named = 0;
        for (std::size_t other = 0; other < m_states.size() && named < 4; ++other) {
            if (!m_states[other].waiting)
                continue;
            message += (named > 0 ? ", " : "") + sentenceOf(static_cast<std::int32_t>(other));
            ++named;
        }
        return {ErrorCode::InvalidInput, message + " wait for ever",
            "verify the plan to see where the orders of its devices cross", placeOf(c)};
    }

    Error mismatch(std::int32_t c, const Meeting &meeting) const
    {
        return {ErrorCode::InvalidInput,
            sentenceOf(c) + " meets a " + nameOf(meeting.kind) + " of micro-batch "
                + std::to_string(meeting.microBatch) + " in its group",
            "all devices of a group must do its collectives in one order", placeOf(c)};
    }

    Error unreadable(std::int32_t c) const
    {
        return {ErrorCode::InvalidInput,
            sentenceOf(c) + " reads a buffer that nothing before it has written, or that has died", {},
            placeOf(c)};
    }

    const std::vector<CompiledProgram> &m_programs;
    const Symmetry &m_symmetry;
    const MeetingPlaces &m_places;
    const MeetingDurations &m_durations;
    std::int32_t m_microBatches;
    std::vector<DeviceState> m_states;
    std::vector<DeviceTrace> m_traces;
    std::vector<Meeting> m_meetings; ///< By point.
    std::vector<std::vector<std::int32_t>> m_waiting; ///< By point: classes that have come.
};

} // namespace

Result<std::vector<DeviceTrace>> runPrograms(const std::vector<CompiledProgram> &programs,
    const Symmetry &symmetry, const MeetingPlaces &places, std::int32_t microBatches,
    const MeetingDurations &durations, std::stop_token stop)
{
    return EventLoop(programs, symmetry, places, microBatches, durations).run(std::move(stop));
}

} // namespace planloom
