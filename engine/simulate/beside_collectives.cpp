#include "engine/simulate/beside_collectives.h"

#include <algorithm>
#include <cmath>

namespace planloom {

/// Nothing of no length, and one stretch where two of one speed meet.
void BesideCollectives::append(std::vector<Stretch> &stretches, Stretch stretch)
{
    if (stretch.begin >= stretch.end)
        return;
    if (!stretches.empty() && stretches.back().end == stretch.begin
        && stretches.back().speed == stretch.speed)
        stretches.back().end = stretch.end;
    else
        stretches.push_back(stretch);
}

void BesideCollectives::add(std::int64_t begin, std::int64_t end, double speed)
{
    if (begin >= end || speed >= 1)
        return;
    if (m_stretches.empty() || m_stretches.back().end <= begin) { // as nearly always
        append(m_stretches, {begin, end, speed});
        return;
    }
    std::vector<Stretch> all;
    std::int64_t done = begin; // of the new one
    for (const Stretch &old : m_stretches) {
        append(all, {done, std::min(end, old.begin), speed}); // the gap before it
        append(all, {old.begin, std::min(old.end, begin), old.speed});
        append(all, {std::max(old.begin, begin), std::min(old.end, end), std::min(old.speed, speed)});
        append(all, {std::max(old.begin, end), old.end, old.speed});
        done = std::max(done, std::min(end, old.end));
    }
    append(all, {done, end, speed});
    m_stretches = std::move(all);
}

void BesideCollectives::forgetBefore(std::int64_t time)
{
    const auto kept = std::partition_point(m_stretches.begin(), m_stretches.end(),
        [time](const Stretch &stretch) { return stretch.end <= time; });
    m_stretches.erase(m_stretches.begin(), kept);
}

bool BesideCollectives::meets(std::int64_t begin, std::int64_t end) const
{
    return std::any_of(m_stretches.begin(), m_stretches.end(),
        [&](const Stretch &stretch) { return stretch.begin < end && begin < stretch.end; });
}

std::int64_t BesideCollectives::stretched(std::int64_t start, std::int64_t duration) const
{
    std::int64_t now = start;
    std::int64_t left = duration; // at full speed
    for (const Stretch &stretch : m_stretches) {
        if (stretch.end <= now)
            continue;
        const std::int64_t alone = std::max<std::int64_t>(stretch.begin - now, 0);
        if (left <= alone)
            break;
        left -= alone;
        now += alone;
        const std::int64_t done = std::llround(static_cast<double>(stretch.end - now) * stretch.speed);
        if (left <= done)
            return now - start + std::llround(static_cast<double>(left) / stretch.speed);
        left -= done;
        now = stretch.end;
    }
    return now - start + left;
}

} // namespace planloom
