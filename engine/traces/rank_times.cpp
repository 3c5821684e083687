#include "engine/traces/rank_times.h"

#include <algorithm>
#include <map>
#include <utility>

namespace planloom {

namespace {

/// Sorted, and those that touch put together.
std::vector<Stretch> united(std::vector<Stretch> stretches)
{
    if (!std::is_sorted(stretches.begin(), stretches.end())) // those of one lane are
        std::sort(stretches.begin(), stretches.end());
    std::vector<Stretch> made;
    for (const auto &[begin, end] : stretches) {
        if (begin >= end)
            continue;
        if (!made.empty() && begin <= made.back().second)
            made.back().second = std::max(made.back().second, end);
        else
            made.emplace_back(begin, end);
    }
    return made;
}

std::int64_t lengthOf(const std::vector<Stretch> &stretches)
{
    std::int64_t sum = 0;
    for (const auto &[begin, end] : stretches)
        sum += end - begin;
    return sum;
}

/// What a rank does, within a window.
struct Busy {
    std::vector<Stretch> compute{};
    std::vector<Stretch> communication{};
    /// Begin of each event, with when the host launched it: what ends a gap.
    std::vector<std::pair<std::int64_t, std::int64_t>> launches{};
};

Busy busyOf(const RankTrace &rank, std::int64_t from, std::int64_t to)
{
    Busy busy;
    for (std::size_t lane = 0; lane < rank.lanes.size(); ++lane) {
        const std::size_t begin = rank.laneBegin[lane];
        const std::size_t end = rank.laneBegin[lane + 1];
        const auto before = static_cast<std::ptrdiff_t>(busy.launches.size());
        bool computes = false;
        for (std::size_t i = begin; i < end && !computes; ++i)
            computes = rank.events[i].kind == TraceKind::Compute;
        for (std::size_t i = begin; i < end; ++i) {
            const TraceEvent &event = rank.events[i];
            if (event.kind >= TraceKind::Annotation || event.end() <= from || event.start >= to)
                continue;
            const Stretch part{std::max(event.start, from), std::min(event.end(), to)};
            const bool isCompute =
                event.kind == TraceKind::Compute || (event.kind == TraceKind::Copy && computes);
            (isCompute ? busy.compute : busy.communication).push_back(part);
            busy.launches.emplace_back(event.start, event.launch);
        }
        std::inplace_merge(busy.launches.begin(), busy.launches.begin() + before, busy.launches.end(),
            [](const auto &a, const auto &b) { return a.first < b.first; });
    }
    busy.compute = united(std::move(busy.compute));
    busy.communication = united(std::move(busy.communication));
    return busy;
}

/// Parts [begin, end), in which nothing runs, into what the host and what others are the reason of.
void addGap(RankTimes &times, const Busy &busy, bool isOnHost, std::int64_t begin, std::int64_t end)
{
    std::int64_t host = end - begin;
    if (!isOnHost) {
        const auto next = std::lower_bound(busy.launches.begin(), busy.launches.end(), end,
            [](const auto &launch, std::int64_t time) { return launch.first < time; });
        host = next == busy.launches.end() || next->second == kNoTime
            ? 0
            : std::clamp(next->second, begin, end) - begin;
    }
    times.idle[static_cast<std::size_t>(TraceIdle::Host)] += host;
    times.idle[static_cast<std::size_t>(TraceIdle::Other)] += end - begin - host;
}

} // namespace

const char *nameOf(TraceIdle reason)
{
    switch (reason) {
    case TraceIdle::LatePeer:
        return "late peer";
    case TraceIdle::Communication:
        return "communication";
    case TraceIdle::Host:
        return "host";
    default:
        return "other";
    }
}

const char *sentenceOf(TraceIdle reason)
{
    switch (reason) {
    case TraceIdle::LatePeer:
        return "waits for a rank that comes later";
    case TraceIdle::Communication:
        return "waits for communication";
    case TraceIdle::Host:
        return "waits for the host to launch";
    default:
        return "waits for something else";
    }
}

std::vector<TraceStep> stepsIn(const RankTrace &rank)
{
    std::map<std::uint32_t, TraceStep> byNumber;
    for (const TraceEvent &event : rank.events) {
        if (event.kind != TraceKind::Step)
            continue;
        TraceStep &step =
            byNumber.try_emplace(event.link, TraceStep{event.link, event.start, event.start}).first->second;
        if (event.duration > step.end - step.begin)
            step = {event.link, event.start, event.end()};
    }
    std::vector<TraceStep> steps;
    for (const auto &[number, step] : byNumber)
        steps.push_back(step);
    std::stable_sort(
        steps.begin(), steps.end(), [](const TraceStep &a, const TraceStep &b) { return a.begin < b.begin; });
    return steps;
}

RankTimes timesOf(const RankTrace &rank, std::vector<Stretch> waits)
{
    RankTimes times;
    times.steps = stepsIn(rank);
    auto [from, to] = extentOf(rank);
    if (!times.steps.empty()) {
        from = times.steps.front().begin;
        to = from;
        for (const TraceStep &step : times.steps)
            to = std::max(to, step.end);
    }
    times.begin = from;
    times.window = to - from;
    const Busy busy = busyOf(rank, from, to);
    std::vector<std::int64_t> start;
    std::vector<std::int64_t> duration;
    for (const auto &[begin, end] : busy.compute) {
        start.push_back(begin);
        duration.push_back(end - begin);
    }
    for (auto &[begin, end] : waits) {
        begin = std::max(begin, from);
        end = std::min(end, to);
    }
    times.compute = lengthOf(busy.compute);
    times.exposed = exposedTime(busy.communication, start, duration);
    times.hidden = lengthOf(busy.communication) - times.exposed;
    const std::int64_t late = std::min(times.exposed, exposedTime(united(std::move(waits)), start, duration));
    times.idle[static_cast<std::size_t>(TraceIdle::LatePeer)] = late;
    times.idle[static_cast<std::size_t>(TraceIdle::Communication)] = times.exposed - late;
    std::vector<Stretch> all = busy.compute;
    all.insert(all.end(), busy.communication.begin(), busy.communication.end());
    std::inplace_merge(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(busy.compute.size()), all.end());
    std::int64_t at = from;
    for (const auto &[begin, end] : united(std::move(all))) {
        if (begin > at)
            addGap(times, busy, rank.isOnHost, at, begin);
        at = end;
    }
    if (at < to)
        addGap(times, busy, rank.isOnHost, at, to);
    return times;
}

} // namespace planloom
