#pragma once

#include "widgets/timeline/timeline_gestures.h"
#include "widgets/timeline/timeline_picture.h"

class QPainter;

namespace planloom {

/// Draws the lanes as they would be, those of `picture.would`, over those that are; nothing without.
/// O(visible pixels x visible lanes)
void paintWouldLanes(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, const TimelineGhost &ghost);

/// Draws a gesture over the lanes of `picture`: lanes that light up, the old places dotted, the things taken
/// along until it is known when they would run, caret, refused region, and bracket. O(visible pixels x
/// visible lanes)
/// @param blocked  it may be let go, but other rows are in the way
void paintGhost(QPainter &painter, const Palette &palette, const TimelinePicture &picture,
    const TimelineGhost &ghost, const std::string &refusal, bool blocked = false);

/// Draws where the would-be step ends, with its flag on the ruler: after the frame.
void paintGhostEnd(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, const TimelineGhost &ghost);

/// The same for a step that would end at `step` nanoseconds.
void paintWouldEnd(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, std::int64_t step);

} // namespace planloom
