#pragma once

#include "widgets/timeline/timeline_picture.h"

class QPainter;

namespace planloom {

/// The box being drawn, in the picture's coordinates.
void paintBox(QPainter &painter, const Palette &palette, const TimelinePicture &picture, const QRect &box, bool zoom);

/// A distance in time between two moments, with its length.
void paintMeasure(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, double begin, double end);

/// A sentence that stays in the upper right corner of the lanes.
void paintBadge(QPainter &painter, const Palette &palette, const TimelinePicture &picture, const QString &text);

} // namespace planloom
