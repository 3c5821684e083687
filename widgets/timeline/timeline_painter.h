#pragma once

#include <QtCore/QRect>
#include <QtGui/QFont>

#include "widgets/common/palette.h"
#include "widgets/scene/time_axis.h"
#include "widgets/timeline/timeline_colours.h"
#include "widgets/timeline/timeline_layout.h"
#include "widgets/timeline/timeline_text.h"

#include <vector>

class QPainter;

namespace planloom {

/// Everything a picture of a timeline follows from.
struct TimelinePicture {
    static constexpr int kHeader = 168; ///< Width of the column with the devices' names.
    static constexpr int kLegend = 22; ///< Height of the legend at the bottom.

    const TimelineScene *scene = nullptr; ///< Not null.
    const std::vector<TimelineRow> *rows = nullptr; ///< Not null.
    TimeAxis axis{}; ///< x = 0 is the right end of the header column.
    QSize size{}; ///< Of the whole picture.
    int scroll = 0; ///< Pixels of content above the first visible one.
    QFont font{};
    TimelineColouring colouring = TimelineColouring::Direction;
    const std::vector<std::size_t> *selected = nullptr; ///< Rows of the spans to outline, ascending; may be null.
    std::int64_t hovered = -1; ///< Row of the span under the pointer; -1 for none.
    double pointer = -1; ///< x of the time line under the pointer, from the axis' zero; negative for none.
    bool stale = false; ///< The rows have changed since: drawn pale.

    QRect canvas() const ///< Where lanes are drawn.
    {
        return {kHeader, TimelineMetrics::kRuler, size.width() - kHeader,
            size.height() - TimelineMetrics::kRuler - kLegend};
    }
};

/// Draws lanes, ruler, headers and legend. O(visible pixels x visible lanes).
void paintTimeline(QPainter &painter, const Palette &palette, const TimelinePicture &picture);

/// Draws facts in a box beside `at`, inside `bounds`.
void paintFacts(QPainter &painter, const Palette &palette, const std::vector<FactLine> &facts, const QFont &font,
    QPoint at, const QRect &bounds);

} // namespace planloom
