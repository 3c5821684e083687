#include "widgets/dag/dag_traffic.h"

#include <QtCore/QCoreApplication>
#include <QtCore/QStringList>
#include <QtGui/QFontMetricsF>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>

#include "engine/base/ids.h"
#include "engine/base/words.h"
#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"
#include "widgets/scene/communication_colour.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <tuple>

namespace planloom {

namespace {

constexpr double kWordsFrom = 0.5; ///< Zoom from which badges have words.
constexpr double kBeside = 15; ///< Scene units between a line's end and its badge.

/// Where the line from one box to another ends; nothing if none is drawn.
std::optional<QPointF> lineEnd(const DagScene &scene, std::int32_t from, std::int32_t to)
{
    const auto first = std::lower_bound(scene.paths.begin(), scene.paths.end(), from,
        [](const ScenePath &path, std::int32_t source) { return path.source < source; });
    for (auto path = first; path != scene.paths.end() && path->source == from; ++path) {
        if (path->target == to)
            return QPointF(scene.points[path->end - 1].x, scene.points[path->end - 1].y);
    }
    return {};
}

/// Which parts of a canvas are taken, by cells of a few pixels: asking costs the same however many are.
class TakenCells
{
public:
    explicit TakenCells(const QRectF &area)
        : m_area(area)
        , m_columns(cellsOf(area.width()))
        , m_taken(
              static_cast<std::size_t>(m_columns) * static_cast<std::size_t>(cellsOf(area.height())), false)
    {
    }
    bool isFree(const QRectF &rect) const
    {
        bool free = true;
        each(rect, [&](std::size_t cell) { free = free && !m_taken[cell]; });
        return free;
    }
    void take(const QRectF &rect)
    {
        each(rect, [this](std::size_t cell) { m_taken[cell] = true; });
    }

private:
    static constexpr double kCell = 4; ///< Pixels.

    static int cellsOf(double length) { return static_cast<int>(length / kCell) + 1; }
    template<typename Visit> void each(const QRectF &rect, const Visit &visit) const
    {
        const QRectF inside = rect.intersected(m_area).translated(-m_area.topLeft());
        if (inside.isEmpty())
            return;
        for (int y = static_cast<int>(inside.top() / kCell); y <= static_cast<int>(inside.bottom() / kCell);
             ++y)
            for (int x = static_cast<int>(inside.left() / kCell);
                 x <= static_cast<int>(inside.right() / kCell); ++x)
                if (const auto cell = static_cast<std::size_t>(y) * static_cast<std::size_t>(m_columns)
                        + static_cast<std::size_t>(x);
                    cell < m_taken.size())
                    visit(cell);
    }

    QRectF m_area;
    int m_columns;
    std::vector<bool> m_taken;
};

QPointF anchorOf(const DagPicture &picture, const TrafficBadge &badge)
{
    const DagScene &scene = picture.scene;
    const bool right = scene.flow == DagFlow::Right;
    const SceneRect &box =
        scene.rects[at(badge.place == TrafficBadge::Place::Leaving ? badge.from : badge.to)];
    switch (badge.place) {
    case TrafficBadge::Place::Line: {
        const QPointF end = lineEnd(scene, badge.from, badge.to)
                                .value_or(right ? QPointF(box.x, box.y + box.height / 2)
                                                : QPointF(box.x + box.width / 2, box.y));
        return right ? end - QPointF(kBeside, 0) : end - QPointF(0, kBeside);
    }
    case TrafficBadge::Place::Leaving:
        return right ? QPointF(box.right() + kBeside, box.y + box.height / 2)
                     : QPointF(box.x + box.width / 2, box.bottom() + kBeside);
    case TrafficBadge::Place::Inside:
        break;
    }
    return {box.x + box.width / 2, box.bottom()};
}

} // namespace

std::int64_t TrafficBadge::bytes() const
{
    return std::accumulate(kinds.begin(), kinds.end(), std::int64_t{0},
        [](std::int64_t sum, const auto &kind) { return sum + kind.second; });
}

std::vector<TrafficBadge> trafficBadges(
    const DagPicture &picture, const std::vector<EdgeCommunication> &edges)
{
    const VisibleGraph &visible = picture.visible;
    const auto boxOf = [&](OperatorId op) {
        const auto &units = picture.outline->unitOfOperator;
        const std::int32_t unit = op.valid() && at(op.index) < units.size() ? units[at(op.index)] : -1;
        return unit < 0 ? -1 : visible.boxOfUnit[at(unit)];
    };
    const auto isDrawn = [&](std::int32_t from, std::int32_t to) {
        return std::binary_search(visible.edges.begin(), visible.edges.end(), VisibleEdge{from, to})
            || std::find(visible.remote.begin(), visible.remote.end(), VisibleEdge{from, to})
            != visible.remote.end();
    };
    std::map<std::tuple<std::int32_t, std::int32_t, TrafficBadge::Place>, TrafficBadge> badges;
    std::map<std::tuple<std::int32_t, std::int32_t, TrafficBadge::Place>,
        std::map<InstructionKind, std::int64_t>>
        bytes;
    for (std::uint32_t e = 0; e < edges.size(); ++e) {
        const EdgeCommunication &edge = edges[e];
        std::int32_t from = boxOf(edge.from);
        std::int32_t to = boxOf(edge.to);
        auto place = TrafficBadge::Place::Line;
        if (from < 0 && to < 0)
            continue;
        if (from < 0 || from == to) {
            from = to;
            place = TrafficBadge::Place::Inside;
        } else if (to < 0) {
            to = from;
            place = TrafficBadge::Place::Leaving;
        } else if (!isDrawn(from, to)) {
            // Gradients go back along the lines of activations.
            if (isDrawn(to, from))
                std::swap(from, to);
            else
                place = TrafficBadge::Place::Inside, from = to;
        }
        const std::tuple key(from, to, place);
        TrafficBadge &badge = badges[key];
        badge.place = place;
        badge.from = from;
        badge.to = to;
        badge.count += edge.count;
        badge.edges.push_back(e);
        bytes[key][edge.kind] += edge.bytes.count;
    }
    std::vector<TrafficBadge> found;
    for (auto &[key, badge] : badges) {
        badge.kinds.assign(bytes[key].begin(), bytes[key].end());
        std::stable_sort(badge.kinds.begin(), badge.kinds.end(),
            [](const auto &a, const auto &b) { return a.second > b.second; });
        badge.anchor = anchorOf(picture, badge);
        found.push_back(std::move(badge));
    }
    return found;
}

QString textOf(const TrafficBadge &badge)
{
    const QString bytes = toQString(formatBytes(Bytes{badge.bytes()}));
    constexpr std::size_t kMostKinds = 2;
    QStringList kinds;
    for (std::size_t i = 0; i < std::min(badge.kinds.size(), kMostKinds); ++i)
        kinds << QLatin1String(nameOf(badge.kinds[i].first));
    if (badge.kinds.size() > kMostKinds)
        kinds << QStringLiteral("…");
    return QStringLiteral("%1 %2").arg(kinds.join(QStringLiteral(", ")), bytes);
}

QString tooltipOf(const TrafficBadge &badge)
{
    const auto tr = [](const char *text) { return QCoreApplication::translate("DagView", text); };
    QStringList lines;
    for (const auto &[kind, bytes] : badge.kinds)
        lines << QStringLiteral("%1: %2").arg(
            QLatin1String(nameOf(kind)), toQString(formatBytes(Bytes{bytes})));
    lines << tr("a step, all devices; %1 spans. Click selects them on the timeline")
                 .arg(toQString(formatCount(badge.count)));
    return lines.join(QLatin1Char('\n'));
}

PaintedBadges paintTraffic(QPainter &painter, const DagPicture &picture, const DagCamera &camera,
    const Palette &palette, const std::vector<TrafficBadge> &badges, const QFont &font, const QSizeF &canvas,
    std::size_t lit)
{
    PaintedBadges painted;
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing, true);
    const bool right = picture.scene.flow == DagFlow::Right;
    QFont small(font);
    small.setPixelSize(std::clamp(static_cast<int>(10 * camera.scale), 9, 13));
    painter.setFont(small);
    const QFontMetricsF metrics(small);
    const QRectF window(QPointF(-80, -20), canvas + QSizeF(160, 40));
    TakenCells taken(window);
    for (std::size_t i = 0; i < badges.size(); ++i) {
        const TrafficBadge &badge = badges[i];
        const QPointF anchor(camera.viewX(badge.anchor.x()), camera.viewY(badge.anchor.y()));
        if (!window.contains(anchor))
            continue;
        const QColor colour = communicationColour(palette, badge.kinds.front().first);
        QPointF centre = anchor;
        QRectF rect;
        bool words = camera.scale >= kWordsFrom;
        QString text;
        if (words) {
            text = textOf(badge);
            const double width = metrics.horizontalAdvance(text) + 18;
            // Data that goes right has no room for words between its boxes: they stand below.
            if (right && badge.place != TrafficBadge::Place::Inside) {
                double bottom = anchor.y();
                for (const std::int32_t box : {badge.from, badge.to}) {
                    const SceneRect &of = picture.scene.rects[at(box)];
                    bottom = std::max(bottom, camera.viewY(of.bottom()));
                }
                centre.setY(bottom + metrics.height() * 0.9);
            } else if (badge.place == TrafficBadge::Place::Inside) {
                centre.setY(anchor.y() + metrics.height() * 0.6);
            }
            rect = QRectF(
                centre.x() - width / 2, centre.y() - metrics.height() / 2 - 1, width, metrics.height() + 2);
            // At the canvas' edge the words are moved to where they can be read, as far as their box is in
            // sight.
            if (anchor.x() >= 0 && anchor.x() <= canvas.width() && width + 4 <= canvas.width())
                rect.moveLeft(std::clamp(rect.left(), 2.0, canvas.width() - width - 2));
            words = taken.isFree(rect);
            if (words && centre.y() > anchor.y() + metrics.height()) {
                painter.setPen(QPen(colour, 1, Qt::DotLine));
                painter.drawLine(anchor, QPointF(centre.x(), rect.top()));
            }
        }
        if (!words) {
            const double size = std::clamp(6 * camera.scale, 1.2, 5.0);
            rect = QRectF(anchor.x() - size, anchor.y() - size, 2 * size, 2 * size);
            if (!taken.isFree(rect))
                continue;
        }
        painter.setPen(QPen(i == lit ? palette.accent : colour, i == lit ? 2.5 : 1));
        if (words) {
            painter.setBrush(palette.surface);
            painter.drawRoundedRect(rect, rect.height() / 2, rect.height() / 2);
            painter.setPen(Qt::NoPen);
            painter.setBrush(colour);
            painter.drawEllipse(QPointF(rect.left() + 8, rect.center().y()), 3.5, 3.5);
            painter.setPen(palette.text);
            painter.drawText(rect.adjusted(13, 0, -3, 0), Qt::AlignCenter, text);
        } else {
            painter.setBrush(colour);
            QPainterPath diamond(QPointF(rect.center().x(), rect.top()));
            diamond.lineTo(rect.right(), rect.center().y());
            diamond.lineTo(rect.center().x(), rect.bottom());
            diamond.lineTo(rect.left(), rect.center().y());
            diamond.closeSubpath();
            painter.drawPath(diamond);
        }
        taken.take(rect);
        painted.emplace_back(rect, static_cast<std::uint32_t>(i));
    }
    painter.restore();
    return painted;
}

} // namespace planloom
