#pragma once

#include <QtGui/QColor>

#include "widgets/common/palette.h"
#include "widgets/scene/colouring.h"
#include "widgets/scene/communication_colour.h"
#include "widgets/scene/memory_colours.h"
#include "widgets/scene/timeline_scene.h"

namespace planloom {

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
