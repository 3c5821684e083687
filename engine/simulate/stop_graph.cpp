#include "engine/simulate/stop_graph.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace planloom {

namespace {

constexpr std::int32_t kNobody = -1;

/// By queue: the number of one of its instructions.
using QueueNumbers = std::array<std::int32_t, kQueueCount>;
constexpr QueueNumbers kNobodyAnywhere = [] {
    QueueNumbers numbers{};
    numbers.fill(kNobody);
    return numbers;
}();

/// Who wrote and who last read a buffer: their numbers in their queues.
struct BufferUsers {
    bool there = false;
    std::int8_t writerQueue = -1; ///< -1: there from the start.
    std::int32_t writer = kNobody;
    QueueNumbers readers = kNobodyAnywhere;
};

struct StopEdge {
    std::int32_t from = 0;
    std::int32_t to = 0;
    std::int64_t offset = 0;
};

/// Collects the stops of all classes.
class StopFinder
{
public:
    StopFinder(const MeetingPlaces &places, std::int32_t microBatches)
        : m_places(places)
        , m_microBatches(microBatches)
    {
        m_graph.meetingsAt.resize(static_cast<std::size_t>(places.points));
    }

    bool read(const CompiledProgram &program)
    {
        m_program = &program;
        m_single.assign(static_cast<std::size_t>(program.singleCount), {});
        m_perMicroBatch.assign(
            static_cast<std::size_t>(program.perMicroBatchCount) * static_cast<std::size_t>(m_microBatches),
            {});
        for (const std::int32_t buffer : program.persistent)
            bufferOf(buffer, 0).there = true;
        for (std::size_t q = 0; q < m_queues.size(); ++q) {
            m_queues[q] = {};
            m_queues[q].stop.reserve(static_cast<std::size_t>(program.counts[q]));
            m_queues[q].end.reserve(static_cast<std::size_t>(program.counts[q]));
        }
        m_blocking = kNobodyAnywhere;
        std::int32_t slots = 0;
        for (const CompiledInstruction &instruction : program.instructions)
            slots = std::max(slots, instruction.slot + 1);
        m_met.assign(static_cast<std::size_t>(slots) * static_cast<std::size_t>(m_microBatches), 0);
        for (const CompiledEntry &entry : program.schedule)
            for (std::int32_t i = entry.begin; i < entry.end; ++i)
                if (!visit(program.instructions[static_cast<std::size_t>(i)], entry.microBatch))
                    return false;
        return true;
    }

    StopGraph finish()
    {
        const std::size_t stops = m_graph.meeting.size();
        m_graph.needs.assign(stops, 0);
        m_graph.edgeBegin.assign(stops + 1, 0);
        for (const StopEdge &edge : m_edges) {
            ++m_graph.edgeBegin[static_cast<std::size_t>(edge.from) + 1];
            ++m_graph.needs[static_cast<std::size_t>(edge.to)];
        }
        std::partial_sum(m_graph.edgeBegin.begin(), m_graph.edgeBegin.end(), m_graph.edgeBegin.begin());
        m_graph.edges.resize(m_edges.size());
        std::vector<std::int32_t> next(m_graph.edgeBegin.begin(), m_graph.edgeBegin.end() - 1);
        for (const StopEdge &edge : m_edges)
            m_graph.edges[static_cast<std::size_t>(next[static_cast<std::size_t>(edge.from)]++)] = {
                edge.to, edge.offset};
        return std::move(m_graph);
    }

private:
    struct Queue {
        std::vector<std::int32_t> stop{}; ///< By instruction: the last stop up to it.
        std::vector<std::int64_t> end{}; ///< By instruction: how long behind the time of that stop it ends.
        QueueNumbers waited = kNobodyAnywhere;
    };

    BufferUsers &bufferOf(std::int32_t b, std::int32_t microBatch)
    {
        const BufferSlot slot = m_program->buffers[static_cast<std::size_t>(b)];
        if (!slot.perMicroBatch)
            return m_single[singlePlace(*m_program, slot, microBatch)];
        return m_perMicroBatch[static_cast<std::size_t>(microBatch)
                * static_cast<std::size_t>(m_program->perMicroBatchCount)
            + static_cast<std::size_t>(slot.index)];
    }

    bool visit(const CompiledInstruction &instruction, std::int32_t microBatch)
    {
        const auto q = static_cast<std::size_t>(instruction.queue);
        Queue &queue = m_queues[q];
        const auto number = static_cast<std::int32_t>(queue.stop.size());
        QueueNumbers waits = kNobodyAnywhere;
        const auto waitFor = [&waits](std::size_t other, std::int32_t last) {
            waits[other] = std::max(waits[other], last);
        };
        if (instruction.waits) { // for all that the compute queue has been given
            const auto compute = static_cast<std::size_t>(QueueKind::Compute);
            waitFor(compute, static_cast<std::int32_t>(m_queues[compute].stop.size()) - 1);
        }
        if (instruction.queue == QueueKind::Compute)
            for (std::size_t other = 0; other < kQueueCount; ++other)
                waitFor(other, m_blocking[other]);
        bool first = true;
        for (std::int32_t k = instruction.inputBegin; k < instruction.deathBegin; ++k) {
            BufferUsers &buffer = bufferOf(m_program->operands[static_cast<std::size_t>(k)], microBatch);
            const bool reads = k < instruction.outputBegin;
            if (reads && !buffer.there)
                return false;
            if (buffer.there && buffer.writerQueue >= 0)
                waitFor(static_cast<std::size_t>(buffer.writerQueue), buffer.writer);
            if (reads)
                continue;
            first = !buffer.there;
            for (std::size_t other = 0; other < kQueueCount; ++other)
                waitFor(other, buffer.readers[other]);
        }
        book(instruction, microBatch, q, number, waits, first);
        if (instruction.blocks)
            m_blocking[q] = number;
        for (std::int32_t k = instruction.inputBegin; k < instruction.outputBegin; ++k)
            bufferOf(m_program->operands[static_cast<std::size_t>(k)], microBatch).readers[q] = number;
        for (std::int32_t k = instruction.outputBegin; k < instruction.deathBegin; ++k) {
            BufferUsers &buffer = bufferOf(m_program->operands[static_cast<std::size_t>(k)], microBatch);
            buffer.there = true;
            buffer.writerQueue = static_cast<std::int8_t>(q);
            buffer.writer = number;
        }
        for (std::int32_t k = instruction.deathBegin; k < instruction.deathEnd; ++k)
            bufferOf(m_program->operands[static_cast<std::size_t>(k)], microBatch).there = false;
        return true;
    }

    void book(const CompiledInstruction &instruction, std::int32_t microBatch, std::size_t q,
        std::int32_t number, QueueNumbers waits, bool first)
    {
        Queue &queue = m_queues[q];
        bool stops = instruction.channel >= 0 || number == 0;
        for (std::size_t other = 0; other < kQueueCount; ++other) {
            if (other == q || waits[other] <= queue.waited[other])
                waits[other] = kNobody; // it has ended when the one before in this queue started
            else
                queue.waited[other] = waits[other];
            stops = stops || waits[other] != kNobody;
        }
        std::int64_t before = number > 0 ? queue.end.back() : 0;
        std::int32_t stop = number > 0 ? queue.stop.back() : -1;
        if (stops) {
            const auto self = static_cast<std::int32_t>(m_graph.meeting.size());
            m_graph.meeting.push_back(instruction.channel >= 0 ? meetingOf(instruction, microBatch) : -1);
            if (stop >= 0)
                m_edges.push_back({stop, self, before});
            for (std::size_t other = 0; other < kQueueCount; ++other)
                if (waits[other] != kNobody) {
                    const auto last = static_cast<std::size_t>(waits[other]);
                    m_edges.push_back({m_queues[other].stop[last], self, m_queues[other].end[last]});
                }
            stop = self;
            before = 0;
        }
        const bool copies = first && instruction.kind == InstructionKind::Accumulate;
        const std::int64_t own = instruction.channel >= 0 ? 0
            : copies                                      ? instruction.firstDuration
                                                          : instruction.duration;
        queue.stop.push_back(stop);
        queue.end.push_back(before + own);
    }

    std::int32_t meetingOf(const CompiledInstruction &instruction, std::int32_t microBatch)
    {
        const MeetingPlace &place = m_places.places[static_cast<std::size_t>(instruction.channel)];
        const std::int32_t at = instruction.paired ? microBatch : 0;
        auto &meetings = m_graph.meetingsAt[static_cast<std::size_t>(place.begin + at)];
        const std::int32_t met =
            m_met[static_cast<std::size_t>(instruction.slot) * static_cast<std::size_t>(m_microBatches)
                + static_cast<std::size_t>(at)]++;
        if (static_cast<std::size_t>(met) == meetings.size()) {
            meetings.push_back(static_cast<std::int32_t>(m_graph.meetings.size()));
            // A member that never comes is one more than can come.
            m_graph.meetings.push_back({instruction.channel, place.expected() + (place.complete ? 0 : 1)});
        }
        const std::int32_t index = meetings[static_cast<std::size_t>(met)];
        PlannedMeeting &meeting = m_graph.meetings[static_cast<std::size_t>(index)];
        if (instruction.duration >= meeting.duration) {
            meeting.duration = instruction.duration;
            meeting.latency = instruction.latency;
            meeting.load = instruction.load;
        }
        return index;
    }

    const MeetingPlaces &m_places;
    std::int32_t m_microBatches;
    const CompiledProgram *m_program = nullptr; ///< At hand, as the next four.
    std::vector<BufferUsers> m_single{};
    std::vector<BufferUsers> m_perMicroBatch{}; ///< Micro-batch x buffer.
    std::array<Queue, kQueueCount> m_queues{};
    QueueNumbers m_blocking = kNobodyAnywhere; ///< The last ones that computation waits for.
    std::vector<std::int32_t> m_met{}; ///< Slot x micro-batch: meetings so far; groups use the first.
    StopGraph m_graph{};
    std::vector<StopEdge> m_edges{};
};

} // namespace

std::optional<StopGraph> findStops(
    const std::vector<CompiledProgram> &programs, const MeetingPlaces &places, std::int32_t microBatches)
{
    StopFinder finder(places, microBatches);
    for (const CompiledProgram &program : programs)
        if (!finder.read(program))
            return std::nullopt;
    return finder.finish();
}

} // namespace planloom
