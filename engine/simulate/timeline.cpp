#include "engine/simulate/timeline.h"

#include <algorithm>
#include <limits>

namespace planloom {

std::int64_t exposedTime(std::vector<Stretch> communication, std::span<const std::int64_t> start,
    std::span<const std::int64_t> duration)
{
    if (!std::is_sorted(communication.begin(), communication.end()))
        std::sort(communication.begin(), communication.end());
    std::int64_t exposed = 0;
    std::int64_t covered = std::numeric_limits<std::int64_t>::min(); // all before has been counted
    std::size_t k = 0;
    for (const auto &[from, end] : communication) {
        const std::int64_t begin = std::max(from, covered);
        if (begin >= end)
            continue;
        covered = end;
        exposed += end - begin;
        while (k < start.size() && start[k] + duration[k] <= begin)
            ++k;
        for (std::size_t j = k; j < start.size() && start[j] < end; ++j)
            exposed -=
                std::max<std::int64_t>(std::min(end, start[j] + duration[j]) - std::max(begin, start[j]), 0);
    }
    return exposed;
}

std::pair<std::size_t, std::size_t> rowsOf(const Timeline &timeline, std::size_t device, QueueKind queue)
{
    const auto &queues = timeline.spans.queue;
    const auto at = [&](std::size_t row) { return queues.begin() + static_cast<std::ptrdiff_t>(row); };
    const auto [begin, end] =
        std::equal_range(at(timeline.deviceBegin[device]), at(timeline.deviceBegin[device + 1]), queue);
    return {static_cast<std::size_t>(begin - queues.begin()), static_cast<std::size_t>(end - queues.begin())};
}

double bubbleRatio(const Timeline &timeline)
{
    const std::int64_t available = timeline.step.count() * static_cast<std::int64_t>(timeline.busy.size());
    if (available <= 0)
        return 0;
    std::int64_t idle = available;
    for (const Nanoseconds busy : timeline.busy)
        idle -= busy.count();
    return static_cast<double>(idle) / static_cast<double>(available);
}

} // namespace planloom
