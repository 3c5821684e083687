#include "widgets/scene/plan_thumbnail.h"

#include <QtGui/QPainter>

#include "engine/analyse/statistics.h"

#include <algorithm>
#include <set>
#include <vector>

namespace planloom {

namespace {

/// One device of each class; where there are more than fit, as many spread over all.
std::vector<const DeviceLane *> shownLanes(const TimelineScene &scene, int most)
{
    std::vector<const DeviceLane *> lanes;
    std::set<std::int32_t> seen;
    for (const DeviceLane &lane : scene.lanes) {
        if (lane.symmetryClass < 0 || seen.insert(lane.symmetryClass).second)
            lanes.push_back(&lane);
    }
    const auto count = static_cast<std::size_t>(std::max(most, 1));
    if (lanes.size() <= count)
        return lanes;
    std::vector<const DeviceLane *> some;
    for (std::size_t i = 0; i < count; ++i)
        some.push_back(lanes[i * lanes.size() / count]);
    return some;
}

} // namespace

QImage thumbnailOf(const TimelineScene &scene, const Palette &palette, QSize size, qreal ratio)
{
    QImage image(size * ratio, QImage::Format_RGB32);
    image.setDevicePixelRatio(ratio);
    image.fill(palette.canvas);
    const auto lanes = shownLanes(scene, size.height() / 4);
    if (lanes.empty() || size.isEmpty())
        return image;
    QPainter painter(&image);
    const double height = static_cast<double>(size.height()) / static_cast<double>(lanes.size());
    const double gap = height >= 6 ? 1 : 0;
    const TimeAxis axis{0, std::max(static_cast<double>(scene.timeline->step.count()) / size.width(), 1e-3)};
    const QColor idle = mixed(palette.surface, palette.textMuted, 0.18);
    std::vector<DrawRecord> records;
    for (std::size_t i = 0; i < lanes.size(); ++i) {
        const double top = height * static_cast<double>(i);
        const double compute = (height - gap) * 0.76;
        painter.fillRect(QRectF(0, top, size.width(), height - gap), idle);
        const auto draw = [&](LaneRows rows, double y, double tall, bool communication) {
            records.clear();
            foldSpans(scene.timeline->spans, scene.before, rows, axis, size.width(), records);
            for (const DrawRecord &record : records) {
                const Segment *segment =
                    scene.findSegment(record.row + static_cast<std::size_t>(record.count) / 2);
                const QColor full = communication ? palette.text
                    : segment                     ? directionColour(palette, directionOf(segment->kind))
                                                  : palette.neutral;
                painter.fillRect(QRectF(record.x0, y, std::max(record.x1 - record.x0, 0.5), tall),
                    mixed(idle, full, 0.15 + 0.85 * record.busy));
            }
        };
        draw(lanes[i]->compute, top, compute, false);
        // All queues in one strip: too low for a track of each.
        for (const LaneTrack &track : lanes[i]->tracks)
            draw(track.rows, top + compute, height - gap - compute, true);
    }
    return image;
}

} // namespace planloom
