#pragma once

#include <QtCore/QSize>
#include <QtCore/QString>

#include "engine/base/result.h"
#include "widgets/common/palette.h"

#include <functional>

class QPainter;

namespace planloom {

/// What a picture is made for.
enum class PictureTheme : std::uint8_t { Light, Dark, Print };

/// The palette of a picture: for print, light on pure white.
Palette paletteForPicture(PictureTheme theme);

/// Paints into a file: .png (pixels, `scale` times the size), .svg or .pdf (vectors, texts stay texts).
/// @param size  of the picture in its own units
/// @param paint  draws into (0, 0, size)
/// @return InvalidInput for other suffixes and for sizes beyond 32,767 pixels, Io
Result<void> writePicture(const QString &path, const QSize &size, double scale, const QColor &ground, const QString &title,
    const std::function<void(QPainter &)> &paint);

} // namespace planloom
