#pragma once

#include <QtCore/QSizeF>
#include <QtCore/QString>
#include <QtGui/QImage>

#include "engine/base/result.h"
#include "widgets/common/palette.h"

#include <functional>
#include <stop_token>

class QPainter;

namespace planloom {

/// What a picture is made for.
enum class PictureTheme : std::uint8_t { Light, Dark, Print };

/// The palette of a picture: for print, light on pure white.
Palette paletteForPicture(PictureTheme theme);

/// What can be painted into a file, all of it or a part at a time.
struct PictureSource {
    QSizeF size{}; ///< In its own units.
    QColor ground{};
    QString title{};
    /// Draws all into (0, 0, size); for vectors.
    std::function<void(QPainter &)> paint{};
    /// A tile of (0, 0, size) with `scale` pixels a unit; for pixels. `pixelsOf` makes one of a function that
    /// paints.
    std::function<QImage(const QRectF &tile, double scale)> pixels{};
};

/// @param paint  draws into (0, 0, size of the source); what lies outside of the tile is cut off
QImage pixelsOf(
    const QRectF &tile, double scale, const QColor &ground, const std::function<void(QPainter &)> &paint);

/// Paints into a file: .png (pixels, `scale` times the size, tile by tile: of any size), .svg or .pdf
/// (vectors, texts stay texts). Takes its time: call it on a worker, with a source that can be painted there.
/// @return InvalidInput for other suffixes and empty pictures, Cancelled, Io; then there is no file, or the
/// one that was
Result<void> writePicture(
    const QString &path, const PictureSource &source, double scale, std::stop_token stop = {});

} // namespace planloom
