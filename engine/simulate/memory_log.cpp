#include "engine/simulate/memory_log.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>

namespace planloom {

namespace {

void sortByTime(std::vector<MemoryEvent> &events)
{
    const auto earlier = [](const MemoryEvent &a, const MemoryEvent &b) { return a.time < b.time; };
    if (!std::is_sorted(events.begin(), events.end(), earlier))
        std::stable_sort(events.begin(), events.end(), earlier);
}

using Lists = std::vector<std::span<const MemoryEvent>>; ///< Each in the order of time.

/// The peak alone: when it is, by sums over all kinds; then what it is made of.
MemoryCurve peakOf(Lists lists)
{
    const Lists all = lists;
    MemoryCurve curve;
    std::int64_t total = 0;
    std::int64_t peakAt = std::numeric_limits<std::int64_t>::min();
    for (;;) {
        std::erase_if(lists, [](const auto &list) { return list.empty(); });
        if (lists.empty())
            break;
        // Until one of them is at its end.
        for (bool atEnd = false; !atEnd;) {
            std::int64_t time = std::numeric_limits<std::int64_t>::max();
            for (const auto &list : lists)
                time = std::min(time, list.front().time);
            for (auto &list : lists) {
                std::size_t taken = 0;
                for (; taken < list.size() && list[taken].time == time; ++taken)
                    total += list[taken].bytes;
                list = list.subspan(taken);
                atEnd = atEnd || list.empty();
            }
            if (total > curve.peak.count) {
                curve.peak = {total};
                peakAt = time;
            }
        }
    }
    for (const auto &list : all)
        for (std::size_t i = 0; i < list.size() && list[i].time <= peakAt; ++i)
            curve.atPeak[static_cast<std::size_t>(list[i].kind)] += list[i].bytes;
    return curve;
}

MemoryCurve curveOf(Lists lists, bool points)
{
    if (!points)
        return peakOf(std::move(lists));
    MemoryCurve curve;
    std::size_t left = 0;
    for (const auto &list : lists)
        left += list.size();
    std::vector<std::int64_t> times;
    std::vector<std::array<std::int64_t, kMemoryKindCount>> bytes;
    times.reserve(left);
    bytes.reserve(left);
    std::array<std::int64_t, kMemoryKindCount> now{};
    std::int64_t total = 0;
    for (;;) {
        std::erase_if(lists, [](const auto &list) { return list.empty(); });
        if (lists.empty())
            break;
        // Until one of them is at its end.
        for (bool atEnd = false; !atEnd;) {
            std::int64_t time = std::numeric_limits<std::int64_t>::max();
            for (const auto &list : lists)
                time = std::min(time, list.front().time);
            auto next = now;
            for (auto &list : lists) {
                std::size_t taken = 0;
                for (; taken < list.size() && list[taken].time == time; ++taken) {
                    next[static_cast<std::size_t>(list[taken].kind)] += list[taken].bytes;
                    total += list[taken].bytes;
                }
                list = list.subspan(taken);
                atEnd = atEnd || list.empty();
            }
            if (next == now)
                continue;
            now = next;
            times.push_back(time);
            bytes.push_back(now);
            if (total > curve.peak.count) {
                curve.peak = {total};
                curve.atPeak = now;
            }
        }
    }
    curve.time = std::move(times);
    curve.bytes = std::move(bytes);
    return curve;
}

} // namespace

MemoryCurve memoryCurve(const std::array<MemoryLog, kQueueCount> &queues, bool points)
{
    std::vector<std::span<const MemoryEvent>> lists;
    std::vector<MemoryEvent> late;
    for (const MemoryLog &queue : queues) {
        lists.emplace_back(queue.inOrder());
        late.insert(late.end(), queue.late().begin(), queue.late().end());
    }
    sortByTime(late);
    lists.emplace_back(late);
    return curveOf(std::move(lists), points);
}

MemoryCurve memoryCurve(std::vector<MemoryEvent> events, bool points)
{
    sortByTime(events);
    return curveOf({std::span<const MemoryEvent>(events)}, points);
}

} // namespace planloom
