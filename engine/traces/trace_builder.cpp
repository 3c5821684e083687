#include "engine/traces/trace_builder.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

/// Remarks of so many reasons are kept; reasons are sentences of readers, so that more are a mistake.
constexpr std::size_t kMostRemarks = 64;

std::string keyOf(const TraceGroup &group)
{
    std::string key = group.name + '\n' + group.description + '\n' + std::to_string(group.size);
    for (const std::int32_t rank : group.ranks)
        key += ' ' + std::to_string(rank);
    return key;
}

} // namespace

const char *refusalOf(const TraceEvent &event, std::int64_t first, std::int64_t total)
{
    if (event.duration < 0)
        return "the duration is negative";
    if (event.start < -kMostTraceTime || event.start > kMostTraceTime)
        return "the time is out of range";
    if (event.start - first > kMostTraceExtent || first - event.start > kMostTraceExtent)
        return "the event is more than 11 days away from the first one";
    if (event.duration > kMostTraceExtent - total)
        return "the events take more than 11 days together";
    return nullptr;
}

void sortEvents(RankTrace &trace)
{
    std::sort(trace.events.begin(), trace.events.end(), [](const TraceEvent &a, const TraceEvent &b) {
        return std::tuple(a.lane, a.start, -a.duration, a.name, a.link)
            < std::tuple(b.lane, b.start, -b.duration, b.name, b.link);
    });
    markLanes(trace);
}

void markLanes(RankTrace &trace)
{
    trace.laneBegin.assign(trace.lanes.size() + 1, trace.events.size());
    for (std::size_t i = trace.events.size(); i-- > 0;)
        trace.laneBegin[trace.events[i].lane] = i;
    for (std::size_t lane = trace.lanes.size(); lane-- > 0;)
        trace.laneBegin[lane] = std::min(trace.laneBegin[lane], trace.laneBegin[lane + 1]);
}

RankTraceBuilder::RankTraceBuilder(std::string file)
{
    m_trace.file = std::move(file);
}

std::uint32_t RankTraceBuilder::name(std::string_view text)
{
    text = text.substr(0, kMostTraceName);
    const auto found = m_names.find(text);
    if (found != m_names.end())
        return found->second;
    const auto index = static_cast<std::uint32_t>(m_texts.size());
    m_texts.emplace_back(text);
    m_names.emplace(m_texts.back(), index);
    return index;
}

std::uint32_t RankTraceBuilder::lane(const std::string &name, bool isHost)
{
    const auto found = m_lanes.find(name);
    if (found != m_lanes.end())
        return found->second;
    if (m_lanes.size() >= kMostTraceLanes)
        return kNoLink;
    const auto index = static_cast<std::uint32_t>(m_lanes.size());
    m_trace.lanes.push_back({name.substr(0, kMostTraceName), isHost});
    m_lanes.emplace(name, index);
    return index;
}

std::uint32_t RankTraceBuilder::group(const TraceGroup &group)
{
    const auto [entry, isNew] =
        m_groups.emplace(keyOf(group), static_cast<std::uint32_t>(m_trace.groups.size()));
    if (isNew)
        m_trace.groups.push_back(group);
    return entry->second;
}

std::uint32_t RankTraceBuilder::collective(const TraceCollective &collective)
{
    m_trace.collectives.push_back(collective);
    return static_cast<std::uint32_t>(m_trace.collectives.size() - 1);
}

std::uint32_t RankTraceBuilder::instruction(const TraceInstruction &instruction)
{
    m_trace.instructions.push_back(instruction);
    return static_cast<std::uint32_t>(m_trace.instructions.size() - 1);
}

void RankTraceBuilder::add(const TraceEvent &event, std::uint64_t place)
{
    if (event.lane == kNoLink) {
        remark("the trace has more than 4,096 streams and threads", place);
        return;
    }
    if (const char *why = refusalOf(event, m_trace.events.empty() ? event.start : m_first, m_total)) {
        remark(why, place);
        return;
    }
    if (m_trace.events.empty())
        m_first = event.start;
    m_total += event.duration;
    m_trace.events.push_back(event);
}

void RankTraceBuilder::remark(const std::string &text, std::uint64_t place)
{
    const auto found = m_remarks.find(text);
    if (found != m_remarks.end()) {
        ++m_trace.remarks[found->second].count;
        return;
    }
    if (m_remarks.size() >= kMostRemarks)
        return;
    m_remarks.emplace(text, m_trace.remarks.size());
    m_trace.remarks.push_back({m_trace.file + "@" + std::to_string(place), text, 1});
}

RankTrace RankTraceBuilder::finish() &&
{
    // Names of what was left out go.
    std::vector<std::uint32_t> places(m_texts.size(), kNoLink);
    for (TraceEvent &event : m_trace.events) {
        std::uint32_t &place = places[event.name];
        if (place == kNoLink) {
            place = static_cast<std::uint32_t>(m_trace.names.size());
            m_trace.names.push_back(m_texts[event.name]);
        }
        event.name = place;
    }
    sortEvents(m_trace);
    return std::move(m_trace);
}

} // namespace planloom
