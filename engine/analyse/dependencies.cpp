#include "engine/analyse/dependencies.h"

#include "engine/analyse/span_finder.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

struct Edge {
    std::int32_t from = 0;
    std::int32_t to = 0;
    WaitKind kind{};
};

class Builder
{
public:
    Builder(const ExecutionPlan &plan, const Timeline &timeline)
        : m_plan(plan)
        , m_timeline(timeline)
        , m_stamp(timeline.spans.size(), -1)
        , m_meetingsOfGroup(plan.groups.size())
    {
        m_result.meeting.assign(timeline.spans.size(), -1);
    }

    Result<TimelineDependencies> run(const std::stop_token &stop)
    {
        for (std::size_t d = 0; d < m_plan.devices.size(); ++d) {
            if (stop.stop_requested())
                return cancelled("the search for dependencies was stopped");
            addDevice(d);
        }
        sortMembers();
        sortEdges();
        if (stop.stop_requested())
            return cancelled("the search for dependencies was stopped");
        if (!sortSpans())
            return Error{ErrorCode::InvalidInput,
                "the timeline does not belong to this plan: its spans wait for each other", {}, "timeline"};
        return std::move(m_result);
    }

private:
    struct Instance {
        std::int32_t writer = -1;
        std::int32_t reader = -1; ///< Head of the list of readers since then: index into m_readers.
    };
    struct Reader {
        std::int32_t span = -1;
        std::int32_t next = -1;
    };

    void addDevice(std::size_t d)
    {
        const DeviceProgram &program = m_plan.devices[d];
        const auto microBatches = static_cast<std::size_t>(m_plan.microBatches);
        std::vector<std::size_t> slot(program.buffers.size());
        std::size_t instances = 0;
        for (std::size_t b = 0; b < program.buffers.size(); ++b) {
            slot[b] = instances;
            instances +=
                program.buffers[b].perMicroBatch && !program.buffers[b].persistent ? microBatches : 1;
        }
        std::vector<Instance> states(instances);
        m_readers.clear();
        const auto stateOf = [&](std::int32_t buffer, std::int32_t microBatch) -> Instance & {
            const auto b = static_cast<std::size_t>(buffer);
            const BufferInfo &info = program.buffers[b];
            if (info.persistent) // versions of a weight take turns
                return states[slot[static_cast<std::size_t>(
                    bufferOfVersion(info, buffer, updateOf(m_plan, microBatch)))]];
            return states[slot[b] + (info.perMicroBatch ? static_cast<std::size_t>(microBatch) : 0)];
        };
        std::vector<std::int32_t> uses(m_plan.groups.size(), 0);
        std::array<std::int32_t, kQueueCount> last{};
        last.fill(-1);
        SpanFinder finder(m_timeline, d);
        for (const ScheduleEntry &entry : program.schedule) {
            const Segment &segment = program.segments[static_cast<std::size_t>(entry.segment)];
            const auto [begin, end] = indicesOf(program, entry);
            for (std::size_t i = begin; i < end; ++i) {
                const Instruction &instruction = segment.instructions[i];
                const std::int32_t span = finder.find(
                    queueOf(instruction), entry.segment, static_cast<std::int32_t>(i), entry.microBatch);
                if (instruction.group >= 0) { // counted whether or not it has a span
                    const auto use =
                        static_cast<std::size_t>(uses[static_cast<std::size_t>(instruction.group)]++);
                    if (span >= 0)
                        join(span, m_meetingsOfGroup[static_cast<std::size_t>(instruction.group)], use);
                }
                if (span < 0)
                    continue;
                if (instruction.tag >= 0)
                    joinTag(span, instruction.tag, entry.microBatch);
                for (const std::int32_t buffer : instruction.inputs)
                    if (buffer >= 0)
                        add(stateOf(buffer, entry.microBatch).writer, span, WaitKind::Data);
                auto &before =
                    last[static_cast<std::size_t>(m_timeline.spans.queue[static_cast<std::size_t>(span)])];
                for (const std::int32_t buffer : instruction.outputs) {
                    if (buffer < 0)
                        continue;
                    const Instance &state = stateOf(buffer, entry.microBatch);
                    // What accumulates reads what is there.
                    add(state.writer, span,
                        instruction.kind == InstructionKind::Accumulate ? WaitKind::Data : WaitKind::Reuse);
                    for (std::int32_t r = state.reader; r >= 0;
                         r = m_readers[static_cast<std::size_t>(r)].next)
                        add(m_readers[static_cast<std::size_t>(r)].span, span, WaitKind::Reuse);
                }
                add(before, span, WaitKind::Order);
                const bool blocks = m_timeline.blockingSends && sendsToStage(instruction);
                if (instruction.waits || blocks)
                    add(last[static_cast<std::size_t>(QueueKind::Compute)], span, WaitKind::Order);
                before = span;
                if (blocks)
                    last[static_cast<std::size_t>(QueueKind::Compute)] = span;
                for (const std::int32_t buffer : instruction.inputs) {
                    if (buffer < 0)
                        continue;
                    Instance &state = stateOf(buffer, entry.microBatch);
                    m_readers.push_back({span, state.reader});
                    state.reader = static_cast<std::int32_t>(m_readers.size()) - 1;
                }
                for (const std::int32_t buffer : instruction.outputs)
                    if (buffer >= 0)
                        stateOf(buffer, entry.microBatch) = {span, -1};
            }
        }
    }

    void add(std::int32_t from, std::int32_t to, WaitKind kind)
    {
        if (from < 0 || from == to || m_stamp[static_cast<std::size_t>(from)] == to)
            return;
        m_stamp[static_cast<std::size_t>(from)] = to;
        m_edges.push_back({from, to, kind});
    }

    void join(std::int32_t span, std::vector<std::int32_t> &meetings, std::size_t use)
    {
        while (meetings.size() <= use)
            meetings.push_back(m_meetings++);
        m_result.meeting[static_cast<std::size_t>(span)] = meetings[use];
    }

    void joinTag(std::int32_t span, std::int32_t tag, std::int32_t microBatch)
    {
        const std::int64_t key = static_cast<std::int64_t>(tag) * m_plan.microBatches + microBatch;
        const auto [found, isNew] = m_meetingOfTag.emplace(key, m_meetings);
        m_meetings += isNew ? 1 : 0;
        m_result.meeting[static_cast<std::size_t>(span)] = found->second;
    }

    void sortMembers()
    {
        auto &begin = m_result.memberBegin;
        begin.assign(static_cast<std::size_t>(m_meetings) + 1, 0);
        for (const std::int32_t meeting : m_result.meeting)
            if (meeting >= 0)
                ++begin[static_cast<std::size_t>(meeting) + 1];
        std::partial_sum(begin.begin(), begin.end(), begin.begin());
        m_result.members.resize(static_cast<std::size_t>(begin.back()));
        std::vector<std::int32_t> next(begin.begin(), begin.end() - 1);
        for (std::size_t span = 0; span < m_result.meeting.size(); ++span)
            if (const std::int32_t meeting = m_result.meeting[span]; meeting >= 0)
                m_result.members[static_cast<std::size_t>(next[static_cast<std::size_t>(meeting)]++)] =
                    static_cast<std::int32_t>(span);
    }

    void sortEdges()
    {
        const std::size_t spans = m_result.meeting.size();
        const auto sorted = [&](std::vector<std::int32_t> &begin, std::vector<Dependency> &list, auto keyOf,
                                auto otherOf) {
            begin.assign(spans + 1, 0);
            for (const Edge &edge : m_edges)
                ++begin[static_cast<std::size_t>(keyOf(edge)) + 1];
            std::partial_sum(begin.begin(), begin.end(), begin.begin());
            list.resize(m_edges.size());
            std::vector<std::int32_t> next(begin.begin(), begin.end() - 1);
            for (const Edge &edge : m_edges)
                list[static_cast<std::size_t>(next[static_cast<std::size_t>(keyOf(edge))]++)] = {
                    otherOf(edge), edge.kind};
        };
        const auto from = [](const Edge &edge) { return edge.from; };
        const auto to = [](const Edge &edge) { return edge.to; };
        sorted(m_result.needBegin, m_result.needs, to, from);
        sorted(m_result.unblockBegin, m_result.unblocks, from, to);
    }

    /// Kahn's algorithm with the members of a meeting as one node. False if there is a cycle.
    bool sortSpans()
    {
        const std::size_t spans = m_result.meeting.size();
        const auto nodeOf = [&](std::int32_t span) {
            const std::int32_t meeting = m_result.meeting[static_cast<std::size_t>(span)];
            return meeting >= 0 ? spans + static_cast<std::size_t>(meeting) : static_cast<std::size_t>(span);
        };
        std::vector<std::int32_t> waiting(spans + static_cast<std::size_t>(m_meetings), 0);
        for (const Edge &edge : m_edges)
            ++waiting[nodeOf(edge.to)];
        auto &order = m_result.order;
        order.reserve(spans);
        const auto place = [&](std::size_t node) {
            if (node < spans) {
                order.push_back(static_cast<std::int32_t>(node));
                return;
            }
            const std::size_t meeting = node - spans;
            order.insert(order.end(), m_result.members.begin() + m_result.memberBegin[meeting],
                m_result.members.begin() + m_result.memberBegin[meeting + 1]);
        };
        for (std::size_t node = 0; node < waiting.size(); ++node)
            if (waiting[node] == 0 && (node >= spans || m_result.meeting[node] < 0))
                place(node);
        for (std::size_t done = 0; done < order.size(); ++done) {
            const auto span = static_cast<std::size_t>(order[done]);
            for (std::int32_t e = m_result.unblockBegin[span]; e < m_result.unblockBegin[span + 1]; ++e) {
                const std::size_t node = nodeOf(m_result.unblocks[static_cast<std::size_t>(e)].span);
                if (--waiting[node] == 0)
                    place(node);
            }
        }
        return order.size() == spans;
    }

    const ExecutionPlan &m_plan;
    const Timeline &m_timeline;
    TimelineDependencies m_result{};
    std::vector<Edge> m_edges{};
    std::vector<Reader> m_readers{};
    std::vector<std::int32_t> m_stamp; ///< By span: the last one that was found to wait for it.
    std::int32_t m_meetings = 0;
    std::vector<std::vector<std::int32_t>> m_meetingsOfGroup; ///< By group and use.
    std::unordered_map<std::int64_t, std::int32_t> m_meetingOfTag{};
};

std::vector<Dependency> withPeers(const TimelineDependencies &dependencies, std::int32_t span,
    const std::vector<std::int32_t> &begin, const std::vector<Dependency> &list)
{
    const auto s = static_cast<std::size_t>(span);
    if (span < 0 || s >= dependencies.size())
        return {};
    std::vector<Dependency> found(list.begin() + begin[s], list.begin() + begin[s + 1]);
    if (const std::int32_t meeting = dependencies.meeting[s]; meeting >= 0) {
        const auto m = static_cast<std::size_t>(meeting);
        for (std::int32_t k = dependencies.memberBegin[m]; k < dependencies.memberBegin[m + 1]; ++k)
            if (const std::int32_t member = dependencies.members[static_cast<std::size_t>(k)]; member != span)
                found.push_back({member, WaitKind::Peer});
    }
    return found;
}

} // namespace

const char *nameOf(WaitKind kind)
{
    constexpr std::array kNames{"data", "order", "reuse", "peer"};
    return kNames[static_cast<std::size_t>(kind)];
}

Result<TimelineDependencies> dependenciesOf(
    const ExecutionPlan &plan, const Timeline &timeline, std::stop_token stop)
{
    if (timeline.deviceBegin.size() != plan.devices.size() + 1
        || timeline.deviceBegin.back() != timeline.spans.size())
        return Error{ErrorCode::InvalidInput,
            "the timeline has spans of "
                + std::to_string(std::max<std::size_t>(timeline.deviceBegin.size(), 1) - 1)
                + " devices, the plan has " + std::to_string(plan.devices.size()),
            {}, "timeline"};
    return Builder(plan, timeline).run(stop);
}

std::vector<Dependency> needsOf(const TimelineDependencies &dependencies, std::int32_t span)
{
    return withPeers(dependencies, span, dependencies.needBegin, dependencies.needs);
}

std::vector<Dependency> unblocksOf(const TimelineDependencies &dependencies, std::int32_t span)
{
    return withPeers(dependencies, span, dependencies.unblockBegin, dependencies.unblocks);
}

} // namespace planloom
