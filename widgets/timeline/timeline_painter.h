#pragma once

#include <QtCore/QPoint>

#include "widgets/timeline/timeline_picture.h"
#include "widgets/timeline/timeline_text.h"

#include <vector>

class QPainter;

namespace planloom {

/// Draws lanes, ruler, headers and legend. O(visible pixels x visible lanes).
void paintTimeline(QPainter &painter, const Palette &palette, const TimelinePicture &picture);

/// The parts of it: what `paintTimeline` draws one after the other. Overlays belong between the two.
void paintLanes(QPainter &painter, const Palette &palette, const TimelinePicture &picture);
/// Headers, ruler and legend.
void paintFrame(QPainter &painter, const Palette &palette, const TimelinePicture &picture);

/// Draws facts in a box beside `at`, inside `bounds`.
void paintFacts(QPainter &painter, const Palette &palette, const std::vector<FactLine> &facts,
    const QFont &font, QPoint at, const QRect &bounds);

} // namespace planloom
