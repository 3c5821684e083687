#pragma once

#include <QtCore/QSize>
#include <QtGui/QImage>

#include "widgets/common/palette.h"
#include "widgets/scene/timeline_scene.h"

namespace planloom {

/// A small picture of a timeline: a bar for each device (symmetric ones once), coloured by direction,
/// communication below it. For lists, tooltips and the session's own picture. Works on any thread. O(width x
/// lanes).
/// @param size  in pixels that do not depend on the screen
/// @param ratio  the screen's pixels for each of them
QImage thumbnailOf(const TimelineScene &scene, const Palette &palette, QSize size, qreal ratio = 1);

} // namespace planloom
