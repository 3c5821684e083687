#pragma once

#include "widgets/timeline/timeline_analysis.h"
#include "widgets/timeline/timeline_picture.h"

class QPainter;

namespace planloom {

/// Warm-up, steady state and cool-down below the ruler, with a bracket over the unit that repeats.
void paintPhases(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, const SteadyState *steady);

/// The critical path through the lanes. O(spans of the path in sight)
void paintCriticalPath(QPainter &painter, const Palette &palette, const TimelinePicture &picture,
    const TimelineAnalysis &analysis);

/// A pause and what it waits for: each link a thick line through what ran, numbered as in the table.
/// O(links in sight)
void paintIdleChain(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, const IdleChain &chain);

/// Makes pale what is behind the marked time: blocks that have not run, memory that is not filled.
void paintToCome(QPainter &painter, const Palette &palette, const TimelinePicture &picture);

/// Arrows from what a span needs (solid) and to what it unblocks (dashed).
void paintArrows(QPainter &painter, const Palette &palette, const TimelinePicture &picture,
    const TimelineAnalysis &analysis, std::size_t span);

/// The box being drawn, in the picture's coordinates.
void paintBox(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, const QRect &box, bool zoom);

/// Outlines the span under the pointer.
void paintHovered(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, std::size_t span);

/// The lower edge of a row's name, by which all that runs there is pulled.
void paintLaneEdge(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, std::int32_t row);

/// A distance in time between two moments, with its length.
void paintMeasure(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, double begin, double end);

/// A sentence that stays in the upper right corner of the lanes.
void paintBadge(
    QPainter &painter, const Palette &palette, const TimelinePicture &picture, const QString &text);

} // namespace planloom
