#include "widgets/main/picture_export.h"

#include <QtCore/QBuffer>
#include <QtCore/QFileInfo>
#include <QtCore/QMarginsF>
#include <QtCore/QSaveFile>
#include <QtGui/QImage>
#include <QtGui/QPageLayout>
#include <QtGui/QPainter>
#include <QtGui/QPdfWriter>
#include <QtSvg/QSvgGenerator>

#include <cmath>

namespace planloom {

namespace {

constexpr int kMostPixels = 32767; ///< QImage's own limit.
constexpr int kDotsPerInch = 96;

Error failed(const QString &path, const QString &why)
{
    return {ErrorCode::Io, "the picture \"" + QFileInfo(path).fileName().toStdString() + "\" could not be written: " + why.toStdString(),
        "choose a folder you may write to, with room on its disk", path.toStdString()};
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

Result<void> writePicture(const QString &path, const QSize &size, double scale, const QColor &ground, const QString &title,
    const std::function<void(QPainter &)> &paint)
{
    const QString suffix = QFileInfo(path).suffix().toLower();
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    if (suffix == QLatin1String("png")) {
        const QSize pixels(static_cast<int>(std::lround(size.width() * scale)), static_cast<int>(std::lround(size.height() * scale)));
        if (pixels.isEmpty() || pixels.width() > kMostPixels || pixels.height() > kMostPixels) {
            return Error{ErrorCode::InvalidInput,
                "a picture of " + std::to_string(pixels.width()) + " x " + std::to_string(pixels.height()) + " pixels can't be made",
                "take a smaller scale, or SVG or PDF, which have no pixels", path.toStdString()};
        }
        QImage image(pixels, QImage::Format_ARGB32_Premultiplied);
        image.fill(ground);
        QPainter painter(&image);
        painter.setRenderHints(QPainter::Antialiasing | QPainter::TextAntialiasing);
        painter.scale(scale, scale);
        paint(painter);
        painter.end();
        if (!image.save(&buffer, "PNG"))
            return failed(path, QStringLiteral("PNG is not available"));
    } else if (suffix == QLatin1String("svg")) {
        QSvgGenerator generator;
        generator.setOutputDevice(&buffer);
        generator.setSize(size);
        generator.setViewBox(QRect({}, size));
        generator.setTitle(title);
        QPainter painter(&generator);
        painter.fillRect(QRect({}, size), ground);
        paint(painter);
        painter.end();
    } else if (suffix == QLatin1String("pdf")) {
        QPdfWriter writer(&buffer);
        writer.setTitle(title);
        writer.setResolution(kDotsPerInch);
        const QSizeF points = QSizeF(size) * 72 / kDotsPerInch;
        writer.setPageLayout(QPageLayout(QPageSize(points, QPageSize::Point, {}, QPageSize::ExactMatch), QPageLayout::Portrait, QMarginsF()));
        QPainter painter(&writer);
        painter.fillRect(QRect({}, size), ground);
        paint(painter);
        painter.end();
    } else {
        return Error{ErrorCode::InvalidInput, "a picture is a .png, .svg or .pdf file", {}, path.toStdString()};
    }
    buffer.close();
    QSaveFile file(path);
    if (!file.open(QIODevice::WriteOnly) || file.write(bytes) != bytes.size() || !file.commit())
        return failed(path, file.errorString());
    return {};
}

} // namespace planloom
