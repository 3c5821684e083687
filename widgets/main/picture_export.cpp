#include "widgets/main/picture_export.h"

#include <QtCore/QFileInfo>
#include <QtCore/QMarginsF>
#include <QtCore/QSaveFile>
#include <QtGui/QPageLayout>
#include <QtGui/QPainter>
#include <QtGui/QPdfWriter>
#include <QtSvg/QSvgGenerator>

#include "widgets/main/png_writer.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace planloom {

namespace {

constexpr std::int64_t kTileWidth = 2048; ///< Pixels. A raster painter reaches 32,767, a tile is much less.
constexpr std::int64_t kTileHeight = 256;
constexpr std::int64_t kMostPixels = 2'000'000'000; ///< Each way: what a PNG can say.
constexpr int kDotsPerInch = 96;
constexpr double kPointsPerInch = 72;
constexpr double kMostPoints = 14'000; ///< A page of PDF, each way; larger pictures are shrunk to it.

Error failed(const QString &path, const QString &why)
{
    return {ErrorCode::Io,
        "the picture \"" + QFileInfo(path).fileName().toStdString()
            + "\" could not be written: " + why.toStdString(),
        "choose a folder you may write to, with room on its disk", path.toStdString()};
}

Error givenUp(const QString &path)
{
    return {ErrorCode::Cancelled, "the picture was given up", {}, path.toStdString()};
}

Result<void> writePng(QSaveFile &file, const QString &path, const PictureSource &source, double scale,
    const std::stop_token &stop)
{
    const auto width = static_cast<std::int64_t>(std::llround(source.size.width() * scale));
    const auto height = static_cast<std::int64_t>(std::llround(source.size.height() * scale));
    if (width < 1 || height < 1 || width > kMostPixels || height > kMostPixels) {
        return Error{ErrorCode::InvalidInput,
            "a picture of " + std::to_string(width) + " x " + std::to_string(height)
                + " pixels can't be made",
            "take another scale, or SVG or PDF, which have no pixels", path.toStdString()};
    }
    PngWriter writer(&file, static_cast<std::uint32_t>(width), static_cast<std::uint32_t>(height));
    constexpr std::size_t kChannels = 3;
    std::vector<std::uint8_t> rows(static_cast<std::size_t>(width) * kChannels
        * static_cast<std::size_t>(std::min(kTileHeight, height)));
    for (std::int64_t top = 0; top < height; top += kTileHeight) {
        const std::int64_t high = std::min(kTileHeight, height - top);
        for (std::int64_t left = 0; left < width; left += kTileWidth) {
            if (stop.stop_requested())
                return givenUp(path);
            const std::int64_t wide = std::min(kTileWidth, width - left);
            const QRectF tile(static_cast<double>(left) / scale, static_cast<double>(top) / scale,
                static_cast<double>(wide) / scale, static_cast<double>(high) / scale);
            const QImage image = source.pixels(tile, scale).convertToFormat(QImage::Format_RGB888);
            if (image.width() < wide || image.height() < high)
                return givenUp(path); // what was painted is gone: its window is closed
            for (std::int64_t row = 0; row < high; ++row) {
                const std::uint8_t *from = image.constScanLine(static_cast<int>(row));
                std::copy(from, from + static_cast<std::size_t>(wide) * kChannels,
                    rows.begin()
                        + static_cast<std::ptrdiff_t>(
                            (row * width + left) * static_cast<std::int64_t>(kChannels)));
            }
        }
        for (std::int64_t row = 0; row < high; ++row) {
            if (!writer.writeRow(rows.data() + static_cast<std::size_t>(row * width) * kChannels))
                return failed(path, file.errorString());
        }
    }
    if (!writer.finish())
        return failed(path, file.errorString());
    return {};
}

void writeSvg(QSaveFile &file, const PictureSource &source)
{
    const QSize size = source.size.toSize();
    QSvgGenerator generator;
    generator.setOutputDevice(&file);
    generator.setSize(size);
    generator.setViewBox(QRectF(QPointF(), source.size));
    generator.setTitle(source.title);
    QPainter painter(&generator);
    painter.fillRect(QRectF(QPointF(), source.size), source.ground);
    source.paint(painter);
}

void writePdf(QSaveFile &file, const PictureSource &source)
{
    QPdfWriter writer(&file);
    writer.setTitle(source.title);
    writer.setCreator(QStringLiteral("Planloom"));
    writer.setResolution(kDotsPerInch);
    const QSizeF points = source.size * kPointsPerInch / kDotsPerInch;
    const double shrink = std::min(1.0, kMostPoints / std::max(points.width(), points.height()));
    writer.setPageLayout(QPageLayout(QPageSize(points * shrink, QPageSize::Point, {}, QPageSize::ExactMatch),
        QPageLayout::Portrait, QMarginsF()));
    QPainter painter(&writer);
    painter.scale(shrink, shrink);
    painter.fillRect(QRectF(QPointF(), source.size), source.ground);
    source.paint(painter);
}

} // namespace

Palette paletteForPicture(PictureTheme theme)
{
    Palette palette = paletteOf(theme == PictureTheme::Dark ? Theme::Dark : Theme::Light);
    if (theme == PictureTheme::Print) {
        palette.canvas = Qt::white;
        palette.surface = Qt::white;
        palette.text = Qt::black;
    }
    return palette;
}

QImage pixelsOf(
    const QRectF &tile, double scale, const QColor &ground, const std::function<void(QPainter &)> &paint)
{
    QImage image(std::max(1, static_cast<int>(std::lround(tile.width() * scale))),
        std::max(1, static_cast<int>(std::lround(tile.height() * scale))), QImage::Format_RGB32);
    image.fill(ground);
    QPainter painter(&image);
    painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
    painter.scale(scale, scale);
    painter.translate(-tile.topLeft());
    paint(painter);
    return image;
}

Result<void> writePicture(
    const QString &path, const PictureSource &source, double scale, std::stop_token stop)
{
    const QString suffix = QFileInfo(path).suffix().toLower();
    if (suffix != QLatin1String("png") && suffix != QLatin1String("svg") && suffix != QLatin1String("pdf"))
        return Error{
            ErrorCode::InvalidInput, "a picture is a .png, .svg or .pdf file", {}, path.toStdString()};
    if (source.size.isEmpty())
        return Error{ErrorCode::InvalidInput, "there is nothing to make a picture of",
            "open a model and solve first", {}};
    QSaveFile file(path);
    if (!file.open(QIODevice::WriteOnly))
        return failed(path, file.errorString());
    if (suffix == QLatin1String("png")) {
        TRY_VOID(writePng(file, path, source, scale, stop));
    } else if (suffix == QLatin1String("svg")) {
        writeSvg(file, source);
    } else {
        writePdf(file, source);
    }
    if (stop.stop_requested())
        return givenUp(path);
    if (!file.commit())
        return failed(path, file.errorString());
    return {};
}

} // namespace planloom
