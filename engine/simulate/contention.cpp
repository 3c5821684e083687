#include "engine/simulate/contention.h"

#include "engine/simulate/stop_graph.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

/// What places ask of links, worked out once for each load.
class PlaceUses
{
public:
    PlaceUses(const LinkMap &links, const MeetingPlaces &places, const std::vector<CommunicationLoad> &loads)
        : m_links(links)
        , m_places(places)
        , m_loads(loads)
    {
    }

    const std::vector<LinkUse> &of(std::int32_t place, std::int32_t load)
    {
        const auto [found, isNew] = m_uses.try_emplace({place, load});
        if (isNew && load >= 0)
            found->second = m_links.usesOf(
                m_places.places[static_cast<std::size_t>(place)], m_loads[static_cast<std::size_t>(load)]);
        return found->second;
    }

private:
    const LinkMap &m_links;
    const MeetingPlaces &m_places;
    const std::vector<CommunicationLoad> &m_loads;
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<LinkUse>> m_uses{};
};

/// By link: whether it may be asked for more than it gives. A device's queue runs one instruction at a time.
std::vector<bool> contendedLinks(const std::vector<CompiledProgram> &programs, const MeetingPlaces &places,
    const LinkMap &links, const std::vector<CommunicationLoad> &loads)
{
    std::vector<std::int64_t> asked(links.size(), 0);
    std::map<std::pair<std::int32_t, std::int32_t>, std::vector<LinkUse>> known;
    for (std::size_t c = 0; c < programs.size(); ++c) {
        known.clear();
        std::array<std::map<std::int32_t, std::int64_t>, kQueueCount> most; // by queue and link
        for (std::size_t i = 0; i < programs[c].instructions.size(); ++i) {
            const CompiledInstruction &instruction = programs[c].instructions[i];
            if (instruction.channel < 0 || instruction.load < 0 || programs[c].runs[i] == 0)
                continue;
            const auto [uses, isNew] = known.try_emplace({instruction.channel, instruction.load});
            if (isNew)
                uses->second = links.usesOf(places.places[static_cast<std::size_t>(instruction.channel)],
                    loads[static_cast<std::size_t>(instruction.load)], static_cast<std::int32_t>(c));
            for (const LinkUse &use : uses->second) {
                std::int64_t &own = most[static_cast<std::size_t>(instruction.queue)][use.link];
                own = std::max(own, use.share);
            }
        }
        for (const auto &queue : most)
            for (const auto &[link, share] : queue)
                asked[static_cast<std::size_t>(link)] += share;
    }
    std::vector<bool> contended;
    for (const std::int64_t share : asked)
        contended.push_back(share > kWholeLink + kLinkSlack);
    return contended;
}

/// Runs the stops in the order of time.
class ContentionLoop
{
public:
    ContentionLoop(StopGraph &graph, PlaceUses &uses, const std::vector<bool> &contended)
        : m_graph(graph)
        , m_uses(uses)
        , m_contended(contended)
        , m_times(graph.size(), 0)
        , m_stopsOf(graph.meetings.size())
        , m_transfers(graph.meetings.size())
        , m_transfersOn(contended.size())
        , m_linkSeen(contended.size(), 0)
        , m_share(contended.size())
    {
    }

    /// False if stopped, or if some wait for ever.
    bool run(const std::stop_token &stop)
    {
        for (std::size_t s = 0; s < m_graph.size(); ++s)
            if (m_graph.needs[s] == 0)
                m_ready.push_back(static_cast<std::int32_t>(s));
        reachReady();
        for (std::int64_t events = 0; !m_events.empty(); ++events) {
            if (events % 1024 == 0 && stop.stop_requested())
                return false;
            const std::int64_t now = m_events.top().time;
            m_changed.clear();
            while (!m_events.empty() && m_events.top().time == now) {
                const Event event = m_events.top();
                m_events.pop();
                handle(event);
            }
            share(now);
        }
        return m_open == 0;
    }

    MeetingDurations durations() const
    {
        MeetingDurations result(m_graph.meetingsAt.size());
        for (std::size_t point = 0; point < result.size(); ++point)
            for (const std::int32_t meeting : m_graph.meetingsAt[point]) {
                const Transfer &transfer = m_transfers[static_cast<std::size_t>(meeting)];
                result[point].push_back(transfer.end - transfer.start);
            }
        return result;
    }

private:
    struct Transfer {
        std::int64_t start = 0;
        std::int64_t end = 0;
        const std::vector<LinkUse> *uses = nullptr;
        double left = 0; ///< Nanoseconds at full speed, at `since`.
        double speed = -1; ///< Not known before it first runs.
        std::int64_t since = 0;
        std::int32_t version = 0; ///< Of its end: what was foreseen before does not happen.
        std::int32_t seen = 0; ///< As `m_linkSeen`.
    };

    enum class EventKind : std::uint8_t { End, Start, Flow };
    struct Event {
        std::int64_t time = 0;
        EventKind kind{};
        std::int32_t meeting = 0;
        std::int32_t version = 0;
        bool operator>(const Event &other) const
        {
            return std::tie(time, kind, meeting) > std::tie(other.time, other.kind, other.meeting);
        }
    };

    Transfer &transferOf(std::int32_t meeting) { return m_transfers[static_cast<std::size_t>(meeting)]; }

    /// Reaches all stops that need nothing more.
    void reachReady()
    {
        while (!m_ready.empty()) {
            const std::int32_t stop = m_ready.back();
            m_ready.pop_back();
            const std::int32_t index = m_graph.meeting[static_cast<std::size_t>(stop)];
            if (index < 0) {
                follow(stop);
                continue;
            }
            PlannedMeeting &meeting = m_graph.meetings[static_cast<std::size_t>(index)];
            Transfer &transfer = transferOf(index);
            transfer.start = std::max(transfer.start, m_times[static_cast<std::size_t>(stop)]);
            m_stopsOf[static_cast<std::size_t>(index)].push_back(stop);
            ++m_open;
            if (--meeting.missing > 0)
                continue;
            transfer.uses = &m_uses.of(meeting.place, meeting.load);
            const bool contends = std::any_of(transfer.uses->begin(), transfer.uses->end(),
                [this](const LinkUse &use) { return m_contended[static_cast<std::size_t>(use.link)]; });
            if (contends && meeting.duration > meeting.latency)
                m_events.push({transfer.start, EventKind::Start, index, 0});
            else
                end(index, transfer.start + meeting.duration);
        }
    }

    /// The stop's time is known.
    void follow(std::int32_t stop)
    {
        const auto s = static_cast<std::size_t>(stop);
        for (std::int32_t e = m_graph.edgeBegin[s]; e < m_graph.edgeBegin[s + 1]; ++e) {
            const StopGraph::Edge &edge = m_graph.edges[static_cast<std::size_t>(e)];
            const auto to = static_cast<std::size_t>(edge.to);
            m_times[to] = std::max(m_times[to], m_times[s] + edge.offset);
            if (--m_graph.needs[to] == 0)
                m_ready.push_back(edge.to);
        }
    }

    void end(std::int32_t meeting, std::int64_t time)
    {
        transferOf(meeting).end = time;
        for (const std::int32_t stop : m_stopsOf[static_cast<std::size_t>(meeting)]) {
            m_times[static_cast<std::size_t>(stop)] = time;
            --m_open;
            follow(stop);
        }
    }

    void handle(const Event &event)
    {
        Transfer &transfer = transferOf(event.meeting);
        const PlannedMeeting &meeting = m_graph.meetings[static_cast<std::size_t>(event.meeting)];
        switch (event.kind) {
        case EventKind::Start:
            m_events.push({event.time + meeting.latency, EventKind::Flow, event.meeting, 0});
            break;
        case EventKind::Flow:
            transfer.left = static_cast<double>(meeting.duration - meeting.latency);
            transfer.since = event.time;
            for (const LinkUse &use : *transfer.uses) {
                m_transfersOn[static_cast<std::size_t>(use.link)].push_back(event.meeting);
                m_changed.push_back(use.link);
            }
            break;
        case EventKind::End:
            if (event.version != transfer.version)
                break;
            for (const LinkUse &use : *transfer.uses) {
                auto &others = m_transfersOn[static_cast<std::size_t>(use.link)];
                *std::find(others.begin(), others.end(), event.meeting) = others.back();
                others.pop_back();
                m_changed.push_back(use.link);
            }
            end(event.meeting, event.time);
            reachReady();
            break;
        }
    }

    /// Speeds from `now` on of all that share links, directly or by way of others, with what began or ended.
    void share(std::int64_t now)
    {
        ++m_round;
        m_links.clear();
        m_running.clear();
        m_runningUses.clear();
        const auto see = [this](std::int32_t link) {
            if (std::exchange(m_linkSeen[static_cast<std::size_t>(link)], m_round) != m_round)
                m_links.push_back(link);
        };
        for (const std::int32_t link : m_changed)
            see(link);
        for (std::size_t l = 0; l < m_links.size(); ++l)
            for (const std::int32_t meeting : m_transfersOn[static_cast<std::size_t>(m_links[l])]) {
                Transfer &transfer = transferOf(meeting);
                if (std::exchange(transfer.seen, m_round) == m_round)
                    continue;
                m_running.push_back(meeting);
                m_runningUses.push_back(transfer.uses);
                for (const LinkUse &use : *transfer.uses)
                    see(use.link);
            }
        const std::vector<double> &speeds = m_share.speeds(m_runningUses, m_links);
        for (std::size_t t = 0; t < m_running.size(); ++t) {
            Transfer &transfer = transferOf(m_running[t]);
            if (transfer.speed == speeds[t])
                continue;
            if (transfer.speed > 0)
                transfer.left =
                    std::max(transfer.left - transfer.speed * static_cast<double>(now - transfer.since), 0.0);
            transfer.since = now;
            transfer.speed = speeds[t];
            m_events.push({now + std::llround(transfer.left / transfer.speed), EventKind::End, m_running[t],
                ++transfer.version});
        }
    }

    StopGraph &m_graph;
    PlaceUses &m_uses;
    const std::vector<bool> &m_contended;
    std::vector<std::int64_t> m_times; ///< By stop; what is known so far.
    std::vector<std::vector<std::int32_t>> m_stopsOf; ///< By meeting: those that have come.
    std::vector<Transfer> m_transfers; ///< By meeting.
    std::vector<std::vector<std::int32_t>> m_transfersOn; ///< By link: meetings that flow.
    std::vector<std::int32_t> m_linkSeen; ///< By link: the round that last looked at it.
    std::int32_t m_round = 0;
    std::int64_t m_open = 0; ///< Stops that have come to a meeting and not left it.
    std::vector<std::int32_t> m_ready{};
    std::priority_queue<Event, std::vector<Event>, std::greater<>> m_events{};
    std::vector<std::int32_t> m_changed{}; ///< Links.
    std::vector<std::int32_t> m_links{}; ///< As the next two, of the round.
    std::vector<std::int32_t> m_running{};
    std::vector<const std::vector<LinkUse> *> m_runningUses{};
    FairShare m_share;
};

} // namespace

MeetingDurations contendedDurations(const std::vector<CompiledProgram> &programs, const MeetingPlaces &places,
    const LinkMap &links, const std::vector<CommunicationLoad> &loads, std::int32_t microBatches,
    const std::stop_token &stop)
{
    const std::vector<bool> contended = contendedLinks(programs, places, links, loads);
    if (std::find(contended.begin(), contended.end(), true) == contended.end())
        return {};
    auto graph = findStops(programs, places, microBatches);
    if (!graph || stop.stop_requested())
        return {};
    PlaceUses uses(links, places, loads);
    ContentionLoop loop(*graph, uses, contended);
    if (!loop.run(stop))
        return {};
    return loop.durations();
}

} // namespace planloom
