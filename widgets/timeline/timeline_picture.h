#pragma once

#include <QtCore/QRect>
#include <QtCore/QSize>
#include <QtCore/QString>
#include <QtGui/QFont>

#include "widgets/scene/time_axis.h"
#include "widgets/timeline/timeline_colours.h"
#include "widgets/timeline/timeline_layout.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

namespace planloom {

/// What of a lane the keyboard is at.
enum class LanePart : std::uint8_t {
    Bracket, ///< Micro-batches in flight.
    Block,
    Span,
    Communication,
    Idle, ///< The pause before block `block` (behind the last for the number of blocks).
};

/// Where the keyboard is.
struct TimelineFocus {
    std::int32_t lane = -1; ///< Index into `TimelineScene::lanes`; -1 for nowhere.
    LanePart part = LanePart::Span;
    std::int32_t block = -1;
    std::int64_t span = -1; ///< Row of the spans: of Span and Communication.
    bool valid() const { return lane >= 0; }
    friend bool operator==(const TimelineFocus &, const TimelineFocus &) = default;
};

/// What a pause waits for, as it is drawn: the pause, and what ran meanwhile, the nearest first.
struct IdleChain {
    struct Link {
        std::int32_t span = -1; ///< Row of the spans.
        std::int64_t begin = 0; ///< Nanoseconds.
        std::int64_t end = 0;
        std::int32_t number = 0; ///< From 1, as in the table; 0 for what goes on with the link before.
    };
    std::int32_t device = -1; ///< -1 for none.
    std::int64_t begin = 0; ///< Nanoseconds: of the pause.
    std::int64_t end = 0;
    std::vector<Link> links{};
};

/// A part of a timeline that is a picture of its own: a stretch of time on the lanes of some devices.
struct TimelinePart {
    double begin = 0; ///< Nanoseconds.
    double end = 0;
    std::vector<DeviceId> devices{}; ///< Ascending.
    friend bool operator==(const TimelinePart &, const TimelinePart &) = default;
};

/// Everything a picture of a timeline's lanes follows from.
struct TimelinePicture {
    const TimelineScene *scene = nullptr; ///< Not null.
    const TimelineScene *outlines =
        nullptr; ///< Drawn as outlines behind the spans: what was predicted; may be null.
    const std::vector<TimelineRow> *rows = nullptr; ///< Not null.
    TimelineMetrics metrics{};
    TimeAxis axis{}; ///< x = 0 is the right end of the header column.
    QSize size{}; ///< Of the whole picture.
    int scroll = 0; ///< Pixels of content above the first visible one, below the pinned rows.
    QFont font{};
    TimelineColouring colouring = TimelineColouring::Direction;
    const std::vector<std::size_t> *selected =
        nullptr; ///< Rows of the spans to outline, ascending; may be null.
    TimelineFocus focus{};
    bool focused = false; ///< The view has the keyboard.
    double pointer = -1; ///< x of the time line under the pointer, from the axis' zero; negative for none.
    double marked = -1; ///< Nanoseconds: a time that is marked; negative for none.
    const std::set<DeviceId> *conflicts = nullptr; ///< Devices whose lanes are marked; may be null.
    bool stale = false; ///< The rows have changed since: drawn pale.
    bool behindGhost = false; ///< A ghost is drawn over it: drawn paler still.
    const TimelineScene *would =
        nullptr; ///< What the ghost's rows would lead to, whose memory is shown; may be null.
    int phases =
        0; ///< Height of the strip below the ruler that says how a pipeline is filled; 0 without one.
    bool unitPinned = false; ///< Blocks are moved in every unit that repeats.
    const std::vector<std::int32_t> *rowOfDevice =
        nullptr; ///< Index of the row that shows a device, -1 for none; may be null.
    QString filter{}; ///< Which lanes are shown; empty for all.
    QRect exposed{}; ///< All that is asked for, of a picture that is painted in tiles; empty for the whole
                     ///< picture.

    QRect canvas() const ///< Where lanes are drawn.
    {
        const int above = metrics.ruler + phases;
        return {metrics.header, above, std::max(size.width() - metrics.header, 1),
            std::max(size.height() - above - metrics.legend, 1)};
    }
    /// Height of the rows that do not scroll: none where they would leave too little room for the others.
    int stickyHeight() const
    {
        const int pinned = pinnedHeight(*rows);
        return pinned <= canvas().height() * 6 / 10 ? pinned : 0;
    }
    /// Where content at `y` of `row` is in the picture.
    int top(const TimelineRow &row, int y) const
    {
        return canvas().top() + y - (row.pinned && stickyHeight() > 0 ? 0 : scroll);
    }
    /// Something between these places, from x = 0 of the canvas, is asked for.
    bool exposes(double x0, double x1) const
    {
        return exposed.isEmpty()
            || (canvas().left() + x1 >= exposed.left() - 1 && canvas().left() + x0 <= exposed.right() + 1);
    }
    bool exposes(const TimelineRow &row) const
    {
        return exposed.isEmpty()
            || (top(row, row.y + row.height) >= exposed.top() && top(row, row.y) <= exposed.bottom());
    }
    /// The content under a height of the picture.
    int contentAt(int y) const
    {
        const int inside = y - canvas().top();
        return inside < stickyHeight() ? inside : inside + scroll;
    }
};

} // namespace planloom
