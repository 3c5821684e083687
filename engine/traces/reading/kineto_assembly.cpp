#include "engine/traces/reading/kineto_assembly.h"

#include "engine/base/text.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

namespace planloom {

namespace {

/// What says the arguments of a collective on the host, and takes no time itself.
constexpr std::string_view kCollectiveRecord = "record_param_comms";

/// "gloo:all_reduce", "nccl:all_reduce": a backend's work, on whatever thread.
bool isBackendWork(std::string_view name)
{
    static constexpr std::array<std::string_view, 5> kBackends{"gloo:", "nccl:", "mpi:", "ucc:", "xccl:"};
    return std::any_of(kBackends.begin(), kBackends.end(),
        [&](std::string_view backend) { return name.starts_with(backend); });
}

std::int64_t bytesOf(std::int64_t elements, std::int64_t elementBytes)
{
    return elements >= 0 && elementBytes > 0 && elements <= kMostTraceBytes / elementBytes
        ? elements * elementBytes
        : -1;
}

std::int32_t rankOf(std::int64_t number)
{
    return number >= 0 && number <= (1 << 24) ? static_cast<std::int32_t>(number) : -1;
}

} // namespace

bool isCommunicationName(std::string_view name)
{
    static constexpr std::array<std::string_view, 6> kLibraries{
        "nccldevkernel", "ncclkernel", "ep::internode::", "ep::intranode::", "nvshmem", "mscclpp"};
    if (isBackendWork(name) || sameLetters(name.substr(0, 4), "nccl"))
        return true;
    const std::string letters = lowerCase(name.substr(0, 128));
    return std::any_of(kLibraries.begin(), kLibraries.end(),
        [&](std::string_view library) { return letters.find(library) != std::string::npos; });
}

KinetoAssembly::KinetoAssembly(std::string where)
    : m_builder(std::move(where))
{
}

void KinetoAssembly::setRank(std::int64_t rank, std::int64_t world)
{
    m_builder.trace().rank = rankOf(rank);
    m_builder.trace().world = std::max(0, rankOf(world));
}

void KinetoAssembly::take(const KinetoEvent &event, std::uint64_t place)
{
    if (!event.isComplete || event.category == KinetoCategory::Other)
        return;
    if (event.start == kNoTime || event.duration == kNoTime) {
        m_builder.remark(event.isOutOfRange ? "the time is out of range" : "the event has no time", place);
        return;
    }
    if (event.category == KinetoCategory::Runtime) {
        if (event.correlation >= 0)
            m_calls.emplace_back(event.correlation, event.start);
    } else if (event.category == KinetoCategory::Annotation) {
        TraceEvent made{.start = event.start, .duration = event.duration};
        made.kind = TraceKind::Annotation;
        if (const auto step = stepNumberIn(event.name)) {
            made.kind = TraceKind::Step;
            made.link = *step;
        }
        if (isBackendWork(event.name)) {
            takeHost(event, place);
            return;
        }
        made.name = m_builder.name(event.name);
        made.lane = m_builder.lane(made.kind == TraceKind::Step ? "steps" : "annotations", true);
        m_builder.add(made, place);
    } else if (event.category == KinetoCategory::HostOperator) {
        takeHost(event, place);
    } else {
        takeDevice(event, place);
    }
}

std::uint32_t KinetoAssembly::collectiveOf(const KinetoEvent &event)
{
    TraceCollective made;
    if (!event.group.name.empty() || !event.group.description.empty() || event.group.size > 0
        || !event.group.ranks.empty())
        made.group = m_builder.group(event.group);
    const std::int64_t elementBytes = elementBytesOf(event.dataType);
    made.inBytes = bytesOf(event.inElements, elementBytes);
    made.outBytes = bytesOf(event.outElements, elementBytes);
    made.sequence = event.sequence;
    made.source = rankOf(event.source);
    made.target = rankOf(event.target);
    return m_builder.collective(made);
}

void KinetoAssembly::takeDevice(const KinetoEvent &event, std::uint64_t place)
{
    TraceEvent made{.start = event.start, .duration = event.duration};
    made.name = m_builder.name(event.name);
    std::string lane = "stream " + (event.stream >= 0 ? std::to_string(event.stream) : event.thread);
    if (event.device > 0)
        lane = "device " + std::to_string(event.device) + " " + lane;
    made.lane = m_builder.lane(lane, false);
    if (event.category == KinetoCategory::Copy) {
        made.kind = TraceKind::Copy;
    } else if (!event.collective.empty() || isCommunicationName(event.name)) {
        // The name of the collective says more than that of its kernel, unless it is a group of several.
        made.kind = communicationNamed(event.collective);
        if (made.kind == TraceKind::OtherCommunication)
            made.kind = communicationNamed(event.name);
        made.link = collectiveOf(event);
    }
    const std::size_t before = m_builder.eventCount();
    m_builder.add(made, place);
    if (m_builder.eventCount() > before)
        m_waiting.push_back({before, event.correlation, event.collective.empty() ? event.external : -1});
}

void KinetoAssembly::takeHost(const KinetoEvent &event, std::uint64_t place)
{
    HostOperator made;
    made.saysCollective = event.name == kCollectiveRecord;
    made.event = {.start = event.start, .duration = event.duration};
    made.external = event.external;
    made.place = place;
    made.event.name = m_builder.name(event.name);
    if (made.saysCollective || isBackendWork(event.name)) {
        made.event.kind = communicationNamed(event.collective.empty() ? event.name : event.collective);
        made.event.link = collectiveOf(event);
    } else if (event.name.starts_with("c10d::")) {
        return; // the call, not what it starts
    }
    made.event.lane = m_builder.lane("thread " + event.thread, true);
    m_operators.push_back(made);
}

/// Kernels learn when the host launched them, and what collective they are of.
void KinetoAssembly::joinLaunches()
{
    std::sort(m_calls.begin(), m_calls.end());
    std::map<std::int64_t, const HostOperator *> records; // by external id
    for (const HostOperator &each : m_operators)
        if (each.saysCollective && each.external >= 0)
            records.emplace(each.external, &each);
    std::vector<TraceEvent> &events = m_builder.trace().events;
    for (const Waiting &each : m_waiting) {
        TraceEvent &event = events[each.event];
        const auto call =
            std::lower_bound(m_calls.begin(), m_calls.end(), std::pair(each.correlation, kNoTime));
        if (each.correlation >= 0 && call != m_calls.end() && call->first == each.correlation
            && call->second <= event.start && call->second >= event.start - kMostTraceExtent)
            event.launch = call->second;
        const auto record =
            isCommunication(event.kind) && each.external >= 0 ? records.find(each.external) : records.end();
        if (record != records.end()) {
            event.link = record->second->event.link;
            if (record->second->event.kind != TraceKind::OtherCommunication)
                event.kind = record->second->event.kind;
        }
    }
}

/// A backend's work says little of itself: what was recorded of its call, the n-th of a kind with the n-th.
void KinetoAssembly::describeHostCollectives()
{
    std::map<TraceKind, std::vector<std::uint32_t>> recorded;
    for (const HostOperator &each : m_operators)
        if (each.saysCollective)
            recorded[each.event.kind].push_back(each.event.link);
    std::map<TraceKind, std::size_t> taken;
    const auto &collectives = m_builder.trace().collectives;
    for (HostOperator &each : m_operators) {
        if (each.saysCollective || each.event.link == kNoLink
            || collectives[each.event.link].group != kNoLink)
            continue;
        const auto found = recorded.find(each.event.kind);
        std::size_t &next = taken[each.event.kind];
        if (found != recorded.end() && next < found->second.size())
            each.event.link = found->second[next];
        ++next;
    }
}

/// The outermost operators of each thread, which are what the program calls.
void KinetoAssembly::keepHostOperators()
{
    std::stable_sort(
        m_operators.begin(), m_operators.end(), [](const HostOperator &a, const HostOperator &b) {
            return std::tuple(a.event.start, -a.event.duration)
                < std::tuple(b.event.start, -b.event.duration);
        });
    describeHostCollectives();
    std::vector<std::int64_t> ends(m_builder.trace().lanes.size(), kNoTime); // of the lane's last operator
    for (const HostOperator &each : m_operators) {
        if (each.saysCollective)
            continue;
        if (isCommunication(each.event.kind) || each.event.lane == kNoLink) {
            TraceEvent event = each.event;
            event.lane = m_builder.lane("communication", true);
            m_builder.add(event, each.place);
            continue;
        }
        std::int64_t &end = ends[each.event.lane];
        if (each.event.duration < 0 || each.event.start >= end) {
            const std::size_t before = m_builder.eventCount();
            m_builder.add(each.event, each.place);
            if (m_builder.eventCount() > before)
                end = each.event.end();
        }
    }
}

void KinetoAssembly::addKnownGroup(const TraceGroup &group)
{
    constexpr std::size_t kMostGroups = 65'536;
    if (m_groups.size() < kMostGroups && !group.ranks.empty())
        m_groups.push_back(group);
}

void KinetoAssembly::completeGroups()
{
    RankTrace &trace = m_builder.trace();
    std::map<std::string, const TraceGroup *> known;
    for (const TraceGroup &group : m_groups)
        known.emplace(group.name, &group);
    for (TraceGroup &group : trace.groups)
        if (const auto found = known.find(group.name); group.ranks.empty() && found != known.end())
            group = *found->second;
    if (m_groups.size() != 1)
        return;
    const std::uint32_t only = m_builder.group(m_groups.front());
    for (TraceCollective &collective : trace.collectives)
        if (collective.group == kNoLink)
            collective.group = only;
}

RankTrace KinetoAssembly::finish() &&
{
    RankTrace &trace = m_builder.trace();
    trace.isOnHost = m_waiting.empty();
    if (trace.isOnHost)
        keepHostOperators();
    else
        joinLaunches();
    completeGroups();
    if (m_base > 0 && m_base <= kMostTraceTime)
        for (TraceEvent &event : trace.events)
            if (event.start <= kMostTraceTime - m_base) {
                event.start += m_base;
                if (event.launch != kNoTime)
                    event.launch += m_base;
            }
    return std::move(m_builder).finish();
}

} // namespace planloom
