#include "widgets/schedule/schedule_picture.h"

#include <QtGui/QPainter>

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace planloom {

namespace {

QColor colourOf(const Palette &palette, const BlockKey &key)
{
    QColor colour =
        directionColour(palette, key.pass == SegmentKind::Forward ? Direction::Forward : Direction::Backward);
    if (key.pass == SegmentKind::WeightGradient)
        colour = mixed(palette.surface, colour, 0.5);
    return key.lane > 0 ? mixed(palette.text, colour, 0.65) : colour;
}

} // namespace

QImage pictureOf(const StagePlacement &stages, const std::vector<BlockStart> &starts, const Palette &palette,
    QSize size, qreal ratio)
{
    QImage image(size * ratio, QImage::Format_RGB32);
    image.setDevicePixelRatio(ratio);
    image.fill(palette.canvas);
    std::int64_t begin = starts.empty() ? 0 : starts.front().start;
    std::int64_t end = begin + 1;
    for (const BlockStart &run : starts) {
        begin = std::min(begin, run.start);
        end = std::max(end, run.start + stages.placement.blocks[static_cast<std::size_t>(run.block)].time);
    }
    QPainter painter(&image);
    const double height = static_cast<double>(size.height()) / std::max(stages.placement.devices, 1);
    const double gap = height >= 6 ? 1 : 0;
    const double scale = size.width() / static_cast<double>(end - begin);
    const QColor idle = mixed(palette.surface, palette.textMuted, 0.18);
    for (std::int32_t device = 0; device < stages.placement.devices; ++device)
        painter.fillRect(QRectF(0, device * height, size.width(), height - gap), idle);
    for (const BlockStart &run : starts) {
        const auto index = static_cast<std::size_t>(run.block);
        const PlacementBlock &block = stages.placement.blocks[index];
        if (!stages.keys[index])
            continue;
        const double x = static_cast<double>(run.start - begin) * scale;
        const double width = static_cast<double>(block.time) * scale;
        for (const std::int32_t device : block.devices)
            painter.fillRect(
                QRectF(x, device * height, std::max(width - (width >= 3 ? 0.6 : 0), 0.5), height - gap),
                colourOf(palette, *stages.keys[index]));
    }
    return image;
}

} // namespace planloom
