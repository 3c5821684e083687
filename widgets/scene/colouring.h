#pragma once

#include <QtCore/QString>
#include <QtGui/QColor>

#include "widgets/common/palette.h"
#include "widgets/scene/timeline_scene.h"

#include <cstdint>
#include <vector>

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

/// An entry of a legend.
struct ColourWord {
    QString words{};
    QColor colour{};
};
/// What the colours of compute spans say; of what is numbered, as many as have colours of their own.
std::vector<ColourWord> legendOf(
    const Palette &palette, const TimelineScene &scene, TimelineColouring colouring);

} // namespace planloom
