#pragma once

#include <QtCore/QMargins>
#include <QtCore/QRect>

class QWidget;

namespace planloom {

/// Where a window lies that is to be seen whole.
///
/// @param wanted  its place without its frame
/// @param available  what a screen leaves to windows
/// @param frame  what the desktop puts around a window
/// @return `wanted`, made smaller and moved as little as that takes
QRect placeWithin(const QRect &wanted, const QRect &available, const QMargins &frame);

/// The frame of a window; before the desktop has given it one, about as large as frames are.
QMargins frameAround(const QWidget &window);

} // namespace planloom
