#pragma once

#include <QtGui/QFont>
#include <QtGui/QFontMetricsF>
#include <QtWidgets/QWidget>

namespace planloom {

/// A legend in one line at the bottom of a canvas: what is fitted into the canvas is not to lie under it.

inline QFont legendFont(const QWidget &canvas)
{
    QFont small = canvas.font();
    small.setPixelSize(11);
    return small;
}

inline bool hasRoomForLegend(const QWidget &canvas)
{
    return canvas.width() >= 360 && canvas.height() >= 160;
}

/// Pixels from the top of the canvas to its legend; all of them where it has no room for one.
inline double heightAboveLegend(const QWidget &canvas)
{
    constexpr double kGround = 20; // around the line, and its margin
    return hasRoomForLegend(canvas) ? canvas.height() - QFontMetricsF(legendFont(canvas)).height() - kGround
                                    : canvas.height();
}

} // namespace planloom
