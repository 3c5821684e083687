#include "widgets/scene/busy_stretches.h"

namespace planloom {

std::vector<BusyStretch> busyStretches(const SpanColumns &spans, const std::vector<BusyBefore> &before,
    LaneRows rows, const TimeAxis &axis, double width, double gap)
{
    if (rows.begin >= rows.end)
        return {};
    const auto begin = static_cast<double>(spans.start[rows.begin]);
    const auto end = static_cast<double>(spans.start[rows.end - 1] + spans.duration[rows.end - 1]);
    const double idle = end - begin - busyIn(spans, before, rows, begin, end);
    if (idle < gap * axis.nanosecondsPerPixel)
        return {{axis.xOf(begin), axis.xOf(end)}};
    std::vector<DrawRecord> records;
    foldSpans(spans, before, rows, axis, width, records);
    std::vector<BusyStretch> stretches;
    for (const DrawRecord &record : records) {
        if (!stretches.empty() && record.x0 - stretches.back().x1 < gap)
            stretches.back().x1 = record.x1;
        else
            stretches.push_back({record.x0, record.x1});
    }
    return stretches;
}

} // namespace planloom
