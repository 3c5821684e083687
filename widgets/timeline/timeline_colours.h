#pragma once

#include <QtGui/QColor>

#include "widgets/common/palette.h"
#include "widgets/scene/communication_colour.h"
#include "widgets/scene/memory_colours.h"
#include "widgets/scene/timeline_scene.h"

#include <cstdint>

namespace planloom {

/// What the colours of the spans say.
enum class TimelineColouring : std::uint8_t {
    Direction, ///< Forward, backward, optimizer, with micro-batches in alternating shades.
    MicroBatch,
    Stage,
    Device,
    Kind, ///< Category of the operator.
    Time, ///< Duration, as a share of the longest span.
    DecidedBy, ///< Default, rows of others, or a row of its own.
};
constexpr int kTimelineColouringCount = 7;

/// That of the direction; gradients of weights in a pass of their own stand between the backward pass and the
/// optimizer.
QColor passColour(const Palette &palette, SegmentKind kind);

/// The colour of one compute span.
QColor computeColour(
    const Palette &palette, const TimelineScene &scene, TimelineColouring colouring, std::size_t row);

/// The colour of a run of compute spans too small to draw: a mixture of directions by their time where the
/// colouring is by direction, else that of the span in its middle.
QColor runColour(const Palette &palette, const TimelineScene &scene, TimelineColouring colouring,
    const DrawRecord &record);

/// The colour of a block.
QColor blockColour(
    const Palette &palette, const DeviceLane &lane, TimelineColouring colouring, const TimelineBlock &block);

} // namespace planloom
