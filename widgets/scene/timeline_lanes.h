#pragma once

#include "engine/simulate/timeline.h"
#include "widgets/scene/time_axis.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace planloom {

/// Rows [begin, end) of a timeline's spans: one queue of one device, in order of time, without overlaps.
struct LaneRows {
    std::size_t begin = 0;
    std::size_t end = 0;
    friend bool operator==(const LaneRows &, const LaneRows &) = default;
};

/// Sums over the spans before a row, so that the busy time of any run of rows is one subtraction.
struct BusyBefore {
    std::int64_t busy = 0; ///< Nanoseconds.
    std::int64_t backward = 0; ///< Of it, in what counts as backward.
    std::int64_t optimizer = 0; ///< Of it, in what counts as the optimizer (`directionOf`).
};

/// One rectangle to draw: a single span, or a stretch of pixels in which spans are too small to draw one by
/// one.
struct DrawRecord {
    double x0 = 0; ///< Pixels; may lie outside the window. Whole pixels for stretches.
    double x1 = 0; ///< Above x0.
    std::size_t row = 0; ///< The first span.
    std::int32_t count = 1; ///< How many spans lie in it, wholly or in part.
    double busy = 1; ///< Share of [x0, x1) in which a span runs, in (0, 1].
    bool folded = false; ///< A stretch; else `row` alone, whole.
    friend bool operator==(const DrawRecord &, const DrawRecord &) = default;
};

/// Spans narrower than this are folded with their neighbours (Tracy's rule).
constexpr double kFoldPixels = 3;

/// What to draw of a lane between x = 0 and `width`: spans of at least `kFoldPixels` alone, and those smaller
/// ones that share no pixel with others; the rest as stretches of whole pixels. No time is lost, at no pixel:
/// the sum over records of their part of a pixel column x busy is the busy share of that column.
///
/// O(width x log rows), whatever the number of spans. Appends to `records`, in order of x.
void foldSpans(const SpanColumns &spans, const std::vector<BusyBefore> &before, LaneRows rows,
    const TimeAxis &axis, double width, std::vector<DrawRecord> &records);

/// Nanoseconds in [begin, end) during which one of the lane's spans runs. O(log rows)
double busyIn(
    const SpanColumns &spans, const std::vector<BusyBefore> &before, LaneRows rows, double begin, double end);

/// Rows of the lane that run at some time in [begin, end). O(log rows)
LaneRows rowsIn(const SpanColumns &spans, LaneRows rows, double begin, double end);

/// The span that runs at time `nanoseconds`, else the nearest one within `slack` nanoseconds.
/// @return rows.end if there is none. O(log rows)
std::size_t spanAt(const SpanColumns &spans, LaneRows rows, double nanoseconds, double slack);

/// A step function prepared for drawing: which entry is the largest in any stretch of time.
class PeakIndex
{
public:
    PeakIndex() = default;
    explicit PeakIndex(const MemoryCurve &curve);

    /// Index of the entry with the largest total that holds at some time in [begin, end); -1 if the curve is
    /// empty or starts later. O(log + 16 + entries / 16)
    std::int64_t largestIn(const MemoryCurve &curve, double begin, double end) const;
    /// The same for one stretch after the other, from left to right: `from` is where the last one ended (0 at
    /// first), which makes each O(log of what lies between).
    std::int64_t largestIn(const MemoryCurve &curve, double begin, double end, std::size_t &from) const;
    std::int64_t total(std::size_t entry) const { return m_total[entry]; }
    /// Whether this is the index of `curve`, or of one that shares its values: it need not be made again.
    /// O(1)
    bool isOf(const MemoryCurve &curve) const { return m_bytes.sharesWith(curve.bytes); }

private:
    static constexpr std::size_t kBlock = 16;
    SharedVector<std::array<std::int64_t, kMemoryKindCount>> m_bytes; ///< The curve's.
    SharedVector<std::int64_t> m_total; ///< By entry: bytes of all kinds.
    SharedVector<std::uint32_t> m_largest; ///< By block of kBlock entries: which one.
};

} // namespace planloom
