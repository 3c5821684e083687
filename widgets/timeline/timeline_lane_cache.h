#pragma once

#include <QtGui/QFont>
#include <QtGui/QPixmap>

#include "widgets/common/palette.h"
#include "widgets/scene/time_axis.h"
#include "widgets/timeline/timeline_picture.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

class QPainter;

namespace planloom {

/// What the picture of the lanes follows from, short enough to compare for every frame. Things that are long
/// count by how often they have changed.
struct TimelineLanesKey {
    std::weak_ptr<const void> scene{}; ///< Weak: what is remembered must not keep old plans alive.
    std::weak_ptr<const void> outlines{};
    std::weak_ptr<const void> would{};
    std::uint64_t rows = 0;
    std::uint64_t selected = 0;
    std::uint64_t taken = 0; ///< What a gesture takes along.
    TimeAxis axis{};
    QSize size{};
    int scroll = 0;
    int phases = 0;
    QFont font{};
    TimelineColouring colouring = TimelineColouring::Direction;
    TimelineFocus focus{};
    bool focused = false;
    bool stale = false;
    bool ghost = false;
    const Palette *palette = nullptr;
    double ratio = 1; ///< Of the device's pixels to the picture's.

    friend bool operator==(const TimelineLanesKey &a, const TimelineLanesKey &b);
};

/// Remembers the lanes as they were painted, so that a frame in which only the pointer or a ghost has moved
/// costs a copy of them.
class TimelineLaneCache
{
public:
    /// Paints what `paint` would, which must follow from `key` alone: by `paint` where the key is a new one
    /// (a zoom goes on and on), into memory the second time, from memory afterwards.
    void paint(QPainter &painter, const TimelineLanesKey &key, const std::function<void(QPainter &)> &paint);

private:
    std::optional<TimelineLanesKey> m_key;
    QPixmap m_picture; ///< Null until the second time.
};

} // namespace planloom
