#pragma once

#include "widgets/timeline/timeline_gestures.h"
#include "widgets/timeline/timeline_picture.h"

class QPainter;

namespace planloom {

/// Draws a gesture over the lanes of `picture`: lanes that light up, the old places dotted, the things taken along at their
/// would-be times (those of `would`, the preview's scene, once it is known), caret, refused region, and
/// bracket. O(visible pixels x visible lanes)
void paintGhost(QPainter &painter, const Palette &palette, const TimelinePicture &picture, const TimelineGhost &ghost,
    const TimelineScene *would, const std::string &refusal);

/// Draws where the would-be step ends, with its flag on the ruler: after the frame.
void paintGhostEnd(QPainter &painter, const Palette &palette, const TimelinePicture &picture, const TimelineGhost &ghost,
    const TimelineScene *would);

} // namespace planloom
