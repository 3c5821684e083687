#include "widgets/scene/timeline_lanes.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace planloom {

namespace {

/// First row in [from, end) whose start is at or after `time`: galloping, as it is near.
std::size_t firstStartingAt(const SpanColumns &spans, std::size_t from, std::size_t end, double time)
{
    std::size_t step = 1;
    if (from >= end)
        return end;
    std::size_t low = from;
    while (low + step < end && static_cast<double>(spans.start[low + step]) < time) {
        low += step;
        step *= 2;
    }
    const auto begin = spans.start.begin();
    const auto stop = begin + static_cast<std::ptrdiff_t>(std::min(low + step + 1, end));
    const auto found = std::partition_point(begin + static_cast<std::ptrdiff_t>(low), stop,
        [time](std::int64_t start) { return static_cast<double>(start) < time; });
    return static_cast<std::size_t>(found - begin);
}

double endOf(const SpanColumns &spans, std::size_t row)
{
    return static_cast<double>(spans.start[row] + spans.duration[row]);
}

/// First row whose end is after `time`: ends ascend too, as a queue's spans do not overlap.
std::size_t firstEndingAfter(const SpanColumns &spans, LaneRows rows, double time)
{
    std::size_t low = rows.begin;
    std::size_t high = rows.end;
    while (low < high) {
        const std::size_t middle = low + (high - low) / 2;
        if (endOf(spans, middle) > time)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

} // namespace

LaneRows rowsIn(const SpanColumns &spans, LaneRows rows, double begin, double end)
{
    const std::size_t first = firstEndingAfter(spans, rows, begin);
    const auto starts = spans.start.begin();
    const auto last = std::partition_point(starts + static_cast<std::ptrdiff_t>(first),
        starts + static_cast<std::ptrdiff_t>(rows.end),
        [end](std::int64_t start) { return static_cast<double>(start) < end; });
    return {first, static_cast<std::size_t>(last - starts)};
}

namespace {

/// Busy time of `rows`, which run in [begin, end) and may reach out of it at both ends.
double busyOf(
    const SpanColumns &spans, const std::vector<BusyBefore> &before, LaneRows rows, double begin, double end)
{
    if (rows.begin >= rows.end || end <= begin)
        return 0;
    double busy = static_cast<double>(before[rows.end].busy - before[rows.begin].busy);
    busy -= std::max(0.0, begin - static_cast<double>(spans.start[rows.begin]));
    busy -= std::max(0.0, endOf(spans, rows.end - 1) - end);
    return std::max(busy, 0.0);
}

} // namespace

double busyIn(
    const SpanColumns &spans, const std::vector<BusyBefore> &before, LaneRows rows, double begin, double end)
{
    return busyOf(spans, before, rowsIn(spans, rows, begin, end), begin, end);
}

void foldSpans(const SpanColumns &spans, const std::vector<BusyBefore> &before, LaneRows rows,
    const TimeAxis &axis, double width, std::vector<DrawRecord> &records)
{
    constexpr double kMostStretch = 4; // pixels: a longer one would hide changes of colour
    constexpr double kAlike = 0.004; // of a pixel: far below the hundredth that a column may be wrong by
    const double end = axis.timeAt(width);
    const auto start = [&](std::size_t row) { return static_cast<double>(spans.start[row]); };
    const auto isWide = [&](std::size_t row) {
        return static_cast<double>(spans.duration[row]) >= kFoldPixels * axis.nanosecondsPerPixel;
    };
    // What the stretches have painted already, and where a row that reaches into the next pixel goes on.
    double drawn = -1;
    std::size_t row = firstEndingAfter(spans, rows, axis.timeAt(0));
    while (row < rows.end && start(row) < end) {
        const double x0 = axis.xOf(start(row));
        const double x1 = axis.xOf(endOf(spans, row));
        const bool alone = x0 >= drawn && x1 - x0 >= 1
            && (row == rows.begin || axis.xOf(endOf(spans, row - 1)) <= std::floor(x0))
            && (row + 1 >= rows.end || axis.xOf(start(row + 1)) >= std::ceil(x1));
        if (isWide(row) || alone) {
            records.push_back({x0, x1, row, 1, 1, false});
            drawn = x1;
            ++row;
            continue;
        }
        const double column = std::max(std::floor(x0), drawn);
        double next = std::floor(column) + 1;
        double columnEnd = axis.timeAt(next);
        std::size_t last = firstStartingAt(spans, row + 1, rows.end, columnEnd);
        if (last - row > 1 && isWide(last - 1)) {
            --last; // drawn by itself, from where it begins
            if (const double begin = axis.xOf(start(last)); begin > column && begin < next) {
                next = begin;
                columnEnd = start(last);
            }
        }
        const double columnBegin = std::max(axis.timeAt(column), start(row));
        const double share =
            busyOf(spans, before, {row, last}, std::max(columnBegin, axis.timeAt(column)), columnEnd)
            / axis.nanosecondsPerPixel / (next - column);
        if (share > 0) {
            const bool joins = !records.empty() && records.back().folded
                && std::abs(records.back().busy - share) <= kAlike && records.back().x1 == column
                && next - records.back().x0 <= kMostStretch;
            if (joins) {
                records.back().x1 = next;
                records.back().count = static_cast<std::int32_t>(last - records.back().row);
            } else {
                records.push_back(
                    {column, next, row, static_cast<std::int32_t>(last - row), std::min(share, 1.0), true});
            }
        }
        drawn = next;
        // The last one may go on in the next pixel.
        row = endOf(spans, last - 1) > columnEnd && last - 1 >= row ? last - 1 : last;
    }
}

std::size_t spanAt(const SpanColumns &spans, LaneRows rows, double nanoseconds, double slack)
{
    const std::size_t row = firstEndingAfter(spans, rows, nanoseconds);
    std::size_t best = rows.end;
    double distance = slack;
    if (row < rows.end) {
        const double gap = static_cast<double>(spans.start[row]) - nanoseconds;
        if (gap <= distance) {
            best = row;
            distance = std::max(gap, 0.0);
        }
    }
    if (row > rows.begin && nanoseconds - endOf(spans, row - 1) < distance)
        best = row - 1;
    return best;
}

PeakIndex::PeakIndex(const MemoryCurve &curve)
    : m_bytes(curve.bytes)
{
    std::vector<std::int64_t> totals;
    totals.reserve(curve.bytes.size());
    for (const auto &kinds : curve.bytes)
        totals.push_back(std::accumulate(kinds.begin(), kinds.end(), std::int64_t{0}));
    std::vector<std::uint32_t> largest;
    for (std::size_t begin = 0; begin < totals.size(); begin += kBlock) {
        const auto first = totals.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto last =
            totals.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kBlock, totals.size()));
        largest.push_back(static_cast<std::uint32_t>(std::max_element(first, last) - totals.begin()));
    }
    m_total = std::move(totals);
    m_largest = std::move(largest);
}

namespace {

/// The first entry from `from` on for which `before` does not hold, found in steps that double.
template<typename Before>
std::size_t gallop(const std::vector<std::int64_t> &time, std::size_t from, const Before &before)
{
    std::size_t step = 1;
    std::size_t low = from;
    while (low + step <= time.size() && before(time[low + step - 1])) {
        low += step;
        step *= 2;
    }
    const auto begin = time.begin() + static_cast<std::ptrdiff_t>(low);
    const auto end = time.begin() + static_cast<std::ptrdiff_t>(std::min(low + step, time.size()));
    return static_cast<std::size_t>(std::partition_point(begin, end, before) - time.begin());
}

} // namespace

std::int64_t PeakIndex::largestIn(const MemoryCurve &curve, double begin, double end) const
{
    std::size_t from = 0;
    return largestIn(curve, begin, end, from);
}

std::int64_t PeakIndex::largestIn(const MemoryCurve &curve, double begin, double end, std::size_t &from) const
{
    if (from > curve.time.size() || (from > 0 && static_cast<double>(curve.time[from - 1]) > begin))
        from = 0;
    std::size_t first = gallop(
        curve.time.values(), from, [begin](std::int64_t time) { return static_cast<double>(time) <= begin; });
    const std::size_t last = gallop(
        curve.time.values(), first, [end](std::int64_t time) { return static_cast<double>(time) < end; });
    from = first;
    if (first > 0)
        --first; // what holds at `begin` began before it
    if (first >= last)
        return -1;
    std::size_t best = first;
    for (std::size_t entry = first; entry < last;) {
        if (entry % kBlock == 0 && entry + kBlock <= last) {
            if (const std::size_t block = m_largest[entry / kBlock]; m_total[block] > m_total[best])
                best = block;
            entry += kBlock;
        } else {
            if (m_total[entry] > m_total[best])
                best = entry;
            ++entry;
        }
    }
    return static_cast<std::int64_t>(best);
}

} // namespace planloom
