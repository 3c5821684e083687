#include "engine/simulate/beside_collectives.h"

#include <algorithm>
#include <cmath>

namespace planloom {

void BesideCollectives::add(std::int64_t begin, std::int64_t end)
{
    if (begin >= end)
        return;
    // Those that it touches become one with it.
    const auto first = std::partition_point(m_stretches.begin(), m_stretches.end(),
        [begin](const auto &stretch) { return stretch.second < begin; });
    auto last = first;
    for (; last != m_stretches.end() && last->first <= end; ++last) {
        begin = std::min(begin, last->first);
        end = std::max(end, last->second);
    }
    m_stretches.insert(m_stretches.erase(first, last), {begin, end});
}

void BesideCollectives::forgetBefore(std::int64_t time)
{
    const auto kept = std::partition_point(m_stretches.begin(), m_stretches.end(),
        [time](const auto &stretch) { return stretch.second <= time; });
    m_stretches.erase(m_stretches.begin(), kept);
}

bool BesideCollectives::meets(std::int64_t begin, std::int64_t end) const
{
    return std::any_of(m_stretches.begin(), m_stretches.end(),
        [&](const auto &stretch) { return stretch.first < end && begin < stretch.second; });
}

std::int64_t BesideCollectives::stretched(std::int64_t start, std::int64_t duration, double speed) const
{
    std::int64_t now = start;
    std::int64_t left = duration; // at full speed
    for (const auto &[begin, end] : m_stretches) {
        if (end <= now)
            continue;
        const std::int64_t alone = std::max<std::int64_t>(begin - now, 0);
        if (left <= alone)
            break;
        left -= alone;
        now += alone;
        const std::int64_t done = std::llround(static_cast<double>(end - now) * speed);
        if (left <= done)
            return now - start + std::llround(static_cast<double>(left) / speed);
        left -= done;
        now = end;
    }
    return now - start + left;
}

} // namespace planloom
