#include "widgets/dag/dag_playing.h"

#include <QtGui/QFontMetricsF>
#include <QtGui/QPainter>
#include <QtGui/QPainterPath>

#include "engine/base/ids.h"
#include "widgets/common/palette.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace planloom {

namespace {

constexpr int kMostNames = 3; ///< Of blocks above one box.

std::int32_t playedBox(const DagPicture &picture, OperatorId op)
{
    const auto &units = picture.outline->unitOfOperator;
    const std::int32_t unit = op.valid() && at(op.index) < units.size() ? units[at(op.index)] : -1;
    return unit < 0 ? -1 : picture.visible.boxOfUnit[at(unit)];
}

QRectF viewRectOf(const DagPicture &picture, const DagCamera &camera, std::int32_t box)
{
    const SceneRect &rect = picture.scene.rects[at(box)];
    return {
        camera.viewX(rect.x), camera.viewY(rect.y), rect.width * camera.scale, rect.height * camera.scale};
}

/// What runs in one box: the names of its blocks, each once, and the colour of the first.
struct Lit {
    QStringList blocks{};
    QColor colour{};
};

} // namespace

std::vector<QPointF> routeBetween(const DagPicture &picture, std::int32_t from, std::int32_t to)
{
    const VisibleGraph &visible = picture.visible;
    const DagScene &scene = picture.scene;
    if (from < 0 || to < 0 || from == to)
        return {};
    const auto isAround = [&](std::int32_t frame, std::int32_t box) {
        for (std::int32_t b = box; b >= 0; b = visible.at(b).parent) {
            if (b == frame)
                return true;
        }
        return false;
    };
    const auto first = std::lower_bound(scene.paths.begin(), scene.paths.end(), from,
        [](const ScenePath &path, std::int32_t source) { return path.source < source; });
    std::vector<const ScenePath *> out;
    std::vector<const ScenePath *> in;
    for (auto path = first; path != scene.paths.end() && path->source == from; ++path) {
        if (path->target < 0) {
            if (isAround(path->frame, from) && !isAround(path->frame, to))
                out.push_back(&*path);
        } else if (isAround(path->target, to) && !isAround(path->target, from)) {
            in.push_back(&*path);
        }
    }
    const auto depth = [&](std::int32_t box) { return visible.at(box).depth; };
    std::sort(out.begin(), out.end(),
        [&](const ScenePath *a, const ScenePath *b) { return depth(a->frame) > depth(b->frame); });
    std::sort(in.begin(), in.end(),
        [&](const ScenePath *a, const ScenePath *b) { return depth(a->target) < depth(b->target); });
    std::vector<QPointF> route;
    for (const auto *pieces : {&out, &in})
        for (const ScenePath *path : *pieces)
            for (std::uint32_t i = path->begin; i < path->end; ++i)
                route.emplace_back(scene.points[i].x, scene.points[i].y);
    if (in.empty()) { // its line is not drawn: it would be too long
        const SceneRect &a = scene.rects[at(from)];
        const SceneRect &b = scene.rects[at(to)];
        return {{a.x + a.width / 2, a.y + a.height / 2}, {b.x + b.width / 2, b.y + b.height / 2}};
    }
    return route;
}

QPointF pointAlong(const std::vector<QPointF> &route, double share)
{
    if (route.empty())
        return {};
    double length = 0;
    const auto piece = [&](std::size_t i) {
        return std::hypot(route[i].x() - route[i - 1].x(), route[i].y() - route[i - 1].y());
    };
    for (std::size_t i = 1; i < route.size(); ++i)
        length += piece(i);
    double left = std::clamp(share, 0.0, 1.0) * length;
    for (std::size_t i = 1; i < route.size(); ++i) {
        const double own = piece(i);
        if (left <= own && own > 0)
            return route[i - 1] + (route[i] - route[i - 1]) * (left / own);
        left -= own;
    }
    return route.back();
}

void paintMoment(QPainter &painter, const DagPicture &picture, const DagCamera &camera,
    const Palette &palette, const DagMoment &moment, const QFont &font)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing, true);
    const double scale = camera.scale;
    const double radius = std::clamp(4 * scale, 2.0, 7.0);
    std::map<std::int32_t, Lit> lit;
    for (const PlayedOperator &played : moment.operators) {
        const std::int32_t box = playedBox(picture, played.op);
        if (box < 0)
            continue;
        Lit &of = lit[box];
        if (!of.blocks.contains(played.block))
            of.blocks << played.block;
        if (!of.colour.isValid())
            of.colour = played.colour;
    }
    for (const auto &[box, of] : lit) {
        const QRectF rect = viewRectOf(picture, camera, box);
        QColor glow = of.colour;
        glow.setAlpha(70);
        painter.setPen(QPen(of.colour, std::clamp(3 * scale, 2.0, 4.0)));
        painter.setBrush(glow);
        const double off = std::clamp(3 * scale, 1.0, 4.0);
        painter.drawRoundedRect(rect.adjusted(-off, -off, off, off), radius, radius);
    }
    for (const PlayedMove &move : moment.moves) {
        const std::int32_t from = playedBox(picture, move.from);
        const std::int32_t to = playedBox(picture, move.to);
        const std::vector<QPointF> route = routeBetween(picture, from, to);
        const double size = std::clamp(6 * scale, 3.5, 9.0);
        if (route.empty()) {
            // Within one box, or of what no line is drawn for: a mark on the box.
            const std::int32_t box = to >= 0 ? to : from;
            if (box < 0)
                continue;
            const QRectF rect = viewRectOf(picture, camera, box);
            painter.setPen(QPen(palette.surface, 1.5));
            painter.setBrush(move.colour);
            painter.drawEllipse(QPointF(rect.left() + rect.width() * move.share, rect.bottom()), size, size);
            continue;
        }
        QPainterPath line;
        for (std::size_t i = 0; i < route.size(); ++i) {
            const QPointF point(camera.viewX(route[i].x()), camera.viewY(route[i].y()));
            i == 0 ? line.moveTo(point) : line.lineTo(point);
        }
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(move.colour, std::clamp(2.5 * scale, 1.5, 4.0)));
        painter.drawPath(line);
        const QPointF place = pointAlong(route, move.share);
        painter.setPen(QPen(palette.surface, 1.5));
        painter.setBrush(move.colour);
        painter.drawEllipse(QPointF(camera.viewX(place.x()), camera.viewY(place.y())), size, size);
    }
    QFont bold(font);
    bold.setPixelSize(std::clamp(static_cast<int>(12 * scale), 10, 16));
    bold.setBold(true);
    const QFontMetricsF metrics(bold);
    painter.setFont(bold);
    for (const auto &[box, of] : lit) {
        QStringList names = of.blocks.mid(0, kMostNames);
        if (of.blocks.size() > kMostNames)
            names << QStringLiteral("…");
        const QString text = names.join(QLatin1Char(' '));
        const QRectF rect = viewRectOf(picture, camera, box);
        const double width = metrics.horizontalAdvance(text) + 10;
        const QRectF plate(
            rect.center().x() - width / 2, rect.top() - metrics.height() - 5, width, metrics.height() + 2);
        painter.setPen(Qt::NoPen);
        painter.setBrush(of.colour);
        painter.drawRoundedRect(plate, 3, 3);
        painter.setPen(readableOn(of.colour));
        painter.drawText(plate, Qt::AlignCenter, text);
    }
    painter.restore();
}

} // namespace planloom
