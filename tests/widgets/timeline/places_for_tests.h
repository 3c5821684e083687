#pragma once

#include "widgets/timeline/timeline_view.h"

namespace planloom {

/// Shows a span 100 pixels wide, with two of its lengths before it.
inline void zoomToSpan(TimelineView &view, std::size_t row)
{
    const SpanColumns &spans = view.scene()->timeline->spans;
    const double duration = static_cast<double>(spans.duration[row]);
    view.setAxis({static_cast<double>(spans.start[row]) - 2 * duration, duration / 100});
}

/// The height at which the operators of a device's lane are; -1 if it is not shown.
inline int laneMiddle(const TimelineView &view, std::int32_t lane)
{
    for (const TimelineRow &row : view.rows()) {
        if (row.lane == lane && row.kind == TimelineRow::Kind::Device)
            return view.lanesTop() + row.operatorsTop() + row.operators / 2;
    }
    return -1;
}

} // namespace planloom
