#pragma once

#include <QtCore/QSize>
#include <QtGui/QImage>

#include "engine/schedule/search/stage_blocks.h"
#include "widgets/common/palette.h"

#include <vector>

namespace planloom {

/// A small picture of a schedule: a lane for each rank, its blocks coloured by direction; gradients of
/// weights lighter than those of inputs, the second direction of a pipeline darker. What is sent is left out.
/// Works on any thread.
/// @param size   in pixels that do not depend on the screen
/// @param ratio  the screen's pixels for each of them
QImage pictureOf(const StagePlacement &stages, const std::vector<BlockStart> &starts, const Palette &palette,
    QSize size, qreal ratio = 1);

} // namespace planloom
