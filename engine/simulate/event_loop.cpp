#include "engine/simulate/event_loop.h"

#include "engine/base/ids.h"
#include "engine/simulate/beside_collectives.h"
#include "engine/simulate/compute_chain.h"

#include <algorithm>
#include <string>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kFewRuns = 6; ///< Of instructions: chains of them are not worth being made.
constexpr std::int32_t kShortChain = 3; ///< Instructions, too.

/// What is known of the chain that begins at an instruction.
struct ChainPlace {
    enum class State : std::uint8_t {
        None, ///< There is none, or none that is worth it.
        New, ///< It has not run yet: what runs first often runs otherwise.
        Known, ///< It has run once.
        Made,
    };
    State state{};
    std::int32_t end = 0; ///< Instruction.
    std::int32_t chain = -1; ///< Index into the chains.
};

/// One device class on its way through its schedule.
struct DeviceState {
    const CompiledProgram *program = nullptr;
    std::size_t entry = 0; ///< Index into the schedule.
    std::int32_t instruction = -1; ///< Index into the compiled instructions; -1 before an entry.
    std::array<std::int64_t, kQueueCount> free{}; ///< By queue: when it is done with what it was given.
    BufferStates buffers{};
    BesideCollectives collectives{}; ///< Empty where they hold no multiprocessors.
    std::vector<ChainPlace> chainPlaces{}; ///< By instruction; empty without chains.
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
        const MeetingPlaces &places, std::int32_t microBatches, const MeetingDurations &durations,
        bool chains)
        : m_programs(programs)
        , m_symmetry(symmetry)
        , m_places(places)
        , m_durations(durations)
        , m_microBatches(microBatches)
        , m_chains(chains && microBatches >= kFewRuns)
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
        state.buffers = BufferStates(program, m_microBatches,
            m_chains ? touchedByOthers(program) : std::vector<bool>(program.buffers.size(), true));
        findChainPlaces(state);
        for (const std::int32_t buffer : program.persistent) {
            const auto b = static_cast<std::size_t>(buffer);
            state.buffers.hold(buffer);
            note(static_cast<std::int32_t>(c), buffer, 0, {0, program.bufferBytes[b], program.bufferKind[b]});
        }
    }

    /// Where chains begin: wherever one does not go on.
    void findChainPlaces(DeviceState &state) const
    {
        const CompiledProgram &program = *state.program;
        const auto &instructions = program.instructions;
        const auto isCompute = [](const CompiledInstruction &instruction) {
            return instruction.queue == QueueKind::Compute && instruction.channel < 0;
        };
        if (!m_chains)
            return;
        state.chainPlaces.resize(instructions.size());
        for (std::size_t segment = 0; segment + 1 < program.segmentBegin.size(); ++segment) {
            std::int32_t end = program.segmentBegin[segment + 1];
            for (std::int32_t i = end - 1; i >= program.segmentBegin[segment]; --i) {
                if (!isCompute(instructions[at(i)])) {
                    end = i;
                    continue;
                }
                if (end - i >= kShortChain && program.runs[at(i)] >= kFewRuns)
                    state.chainPlaces[at(i)] = {ChainPlace::State::New, end, -1};
            }
        }
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
                if (bookChain(c, entry))
                    continue;
                const CompiledInstruction &instruction =
                    program.instructions[static_cast<std::size_t>(state.instruction)];
                std::int64_t arrival = state.free[static_cast<std::size_t>(instruction.queue)];
                if (instruction.waits)
                    arrival = std::max(arrival, state.free[static_cast<std::size_t>(QueueKind::Compute)]);
                for (std::int32_t k = instruction.inputBegin; k < instruction.outputBegin; ++k) {
                    const std::int32_t b = program.operands[at(k)];
                    if (!state.buffers.isThere(b, entry.microBatch))
                        return unreadable(c);
                    arrival = std::max(arrival, state.buffers.thereAt(b, entry.microBatch));
                }
                bool first = true;
                for (std::int32_t k = instruction.outputBegin; k < instruction.deathBegin; ++k) {
                    const std::int32_t b = program.operands[at(k)];
                    first = !state.buffers.isThere(b, entry.microBatch);
                    // Others may still write or read it.
                    arrival = std::max(arrival, state.buffers.doneAt(b, entry.microBatch));
                }
                if (instruction.channel >= 0) {
                    TRY(const bool met, meet(c, instruction, entry.microBatch, arrival, ready));
                    if (!met)
                        return {};
                    finish(c, state.resumeStart, state.resumeDuration);
                    continue;
                }
                const bool copies = first && instruction.kind == InstructionKind::Accumulate;
                finish(c, arrival,
                    besideCollectives(c, instruction.queue, arrival,
                        copies ? instruction.firstDuration : instruction.duration));
            }
        }
        return {};
    }

    /// What an instruction of `duration` takes from `start` on, where collectives hold multiprocessors.
    std::int64_t besideCollectives(std::int32_t c, QueueKind queue, std::int64_t start, std::int64_t duration)
    {
        DeviceState &state = m_states[at(c)];
        if (!state.program->slowsBesideCollectives || queue != QueueKind::Compute)
            return duration;
        state.collectives.forgetBefore(state.free[static_cast<std::size_t>(QueueKind::Compute)]);
        return state.collectives.stretched(start, duration);
    }

    /// False, and never again a chain here, if there is none.
    bool makeChainAt(std::int32_t c, ChainPlace &place, const CompiledEntry &entry)
    {
        DeviceState &state = m_states[at(c)];
        auto &chains = m_traces[at(c)].chains;
        const std::int32_t whole = std::exchange(place.end, state.instruction);
        auto chain = makeChain(*state.program, state.instruction, whole, entry.segment, state.buffers,
            entry.microBatch, state.free[static_cast<std::size_t>(QueueKind::Compute)]);
        place.state = ChainPlace::State::None;
        if (!chain)
            return false;
        if (whole - chain->end >= kShortChain) // what waits there may begin another
            state.chainPlaces[at(chain->end)] = {ChainPlace::State::Known, whole, -1};
        if (chain->end - chain->begin < kShortChain)
            return false;
        place = {ChainPlace::State::Made, chain->end, static_cast<std::int32_t>(chains.size())};
        chains.push_back(std::make_unique<const ComputeChain>(*std::move(chain)));
        return true;
    }

    /// Books the chain that class `c` stands at, if there is one and it runs as it did, and leaves the class
    /// at its last instruction.
    bool bookChain(std::int32_t c, const CompiledEntry &entry)
    {
        DeviceState &state = m_states[static_cast<std::size_t>(c)];
        if (state.chainPlaces.empty())
            return false;
        ChainPlace &place = state.chainPlaces[at(state.instruction)];
        switch (place.state) {
        case ChainPlace::State::None:
            return false;
        case ChainPlace::State::New:
            // Those that begin within it run as a part of it.
            for (std::int32_t i = state.instruction + 1; i < std::min(place.end, entry.end); ++i)
                if (state.chainPlaces[at(i)].state == ChainPlace::State::New)
                    state.chainPlaces[at(i)].state = ChainPlace::State::None;
            place.end = std::min(place.end, entry.end);
            place.state = ChainPlace::State::Known;
            return false;
        case ChainPlace::State::Known:
            if (place.end > entry.end)
                return false;
            if (!makeChainAt(c, place, entry))
                return false;
            break;
        case ChainPlace::State::Made:
            if (place.end > entry.end)
                return false;
            break;
        }
        DeviceTrace &trace = m_traces[static_cast<std::size_t>(c)];
        const ComputeChain &chain = *trace.chains[at(place.chain)];
        std::int64_t &free = state.free[static_cast<std::size_t>(QueueKind::Compute)];
        const auto start = startOf(chain, state.buffers, entry.microBatch, free);
        if (!start || state.collectives.meets(*start, *start + chain.length))
            return false;
        constexpr auto kCompute = static_cast<std::size_t>(QueueKind::Compute);
        trace.queues[kCompute].push_back(
            {&chain, entry.segment, chain.instruction.front(), entry.microBatch, *start, chain.length});
        trace.memory[kCompute].add(chain.memory, *start);
        applyEffects(chain, state.buffers, entry.microBatch, *start);
        free = *start + chain.length;
        state.instruction = chain.end - 1;
        return true;
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
        state.collectives.add(start, end, instruction.speedBeside);
        if (instruction.blocks) {
            std::int64_t &compute = state.free[static_cast<std::size_t>(QueueKind::Compute)];
            compute = std::max(compute, end);
        }
        trace.queues[queue].push_back({nullptr, entry.segment,
            state.instruction - program.segmentBegin[static_cast<std::size_t>(entry.segment)],
            entry.microBatch, start, duration});

        for (std::int32_t k = instruction.inputBegin; k < instruction.outputBegin; ++k)
            state.buffers.read(program.operands[at(k)], entry.microBatch, end);
        for (std::int32_t k = instruction.outputBegin; k < instruction.deathBegin; ++k) {
            const std::int32_t b = program.operands[at(k)];
            if (!state.buffers.isThere(b, entry.microBatch))
                note(c, b, queue, {start, program.bufferBytes[at(b)], program.bufferKind[at(b)]});
            state.buffers.write(b, entry.microBatch, end);
        }
        if (!program.workspaces.empty())
            if (const auto workspace = program.workspaces.find(state.instruction);
                workspace != program.workspaces.end()) {
                trace.memory[queue].add({start, workspace->second, MemoryKind::Activation});
                trace.memory[queue].add({end, -workspace->second, MemoryKind::Activation});
            }
        for (std::int32_t k = instruction.deathBegin; k < instruction.deathEnd; ++k) {
            const std::int32_t b = program.operands[at(k)];
            if (!state.buffers.isThere(b, entry.microBatch))
                continue;
            // What another queue still fills or reads lives until that is done.
            note(c, b, queue,
                {std::max(end, state.buffers.doneAt(b, entry.microBatch)), -program.bufferBytes[at(b)],
                    program.bufferKind[at(b)]});
            state.buffers.drop(b, entry.microBatch);
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
    bool m_chains;
    std::vector<DeviceState> m_states;
    std::vector<DeviceTrace> m_traces;
    std::vector<Meeting> m_meetings; ///< By point.
    std::vector<std::vector<std::int32_t>> m_waiting; ///< By point: classes that have come.
};

} // namespace

QueueTrace spelledOut(const std::vector<TraceRun> &runs)
{
    QueueTrace trace;
    std::size_t rows = 0;
    for (const TraceRun &run : runs)
        rows += run.chain ? run.chain->start.size() : 1;
    trace.segment.reserve(rows);
    trace.instruction.reserve(rows);
    trace.microBatch.reserve(rows);
    trace.start.reserve(rows);
    trace.duration.reserve(rows);
    for (const TraceRun &run : runs) {
        if (!run.chain) {
            trace.segment.push_back(run.segment);
            trace.instruction.push_back(run.instruction);
            trace.microBatch.push_back(run.microBatch);
            trace.start.push_back(run.start);
            trace.duration.push_back(run.duration);
            continue;
        }
        const ComputeChain &chain = *run.chain;
        trace.segment.insert(trace.segment.end(), chain.start.size(), run.segment);
        trace.instruction.insert(trace.instruction.end(), chain.instruction.begin(), chain.instruction.end());
        trace.microBatch.insert(trace.microBatch.end(), chain.start.size(), run.microBatch);
        for (const std::int64_t behind : chain.start)
            trace.start.push_back(run.start + behind);
        trace.duration.insert(trace.duration.end(), chain.duration.begin(), chain.duration.end());
    }
    return trace;
}

Result<std::vector<DeviceTrace>> runPrograms(const std::vector<CompiledProgram> &programs,
    const Symmetry &symmetry, const MeetingPlaces &places, std::int32_t microBatches,
    const MeetingDurations &durations, bool chains, std::stop_token stop)
{
    return EventLoop(programs, symmetry, places, microBatches, durations, chains).run(std::move(stop));
}

} // namespace planloom
