// Data flow on the canvas.

#include "widgets/dag/dag_painting.h"

#include <algorithm>
#include <cmath>

namespace planloom {

bool DagPainting::isStrong(const ScenePath &path, std::int32_t box) const
{
    if (box < 0)
        return false;
    if (path.source == box)
        return true;
    if (path.target == box)
        return true;
    // On the way to `box` from outside its frame: the path enters a frame around it, or leaves one around
    // its source, and carries what one of its inputs carries.
    if (!std::binary_search(m_sources.begin(), m_sources.end(), path.source))
        return false;
    if (path.target < 0)
        return true;
    for (std::int32_t frame = m_visible.at(box).parent; frame > 0; frame = m_visible.at(frame).parent) {
        if (frame == path.target)
            return true;
    }
    return false;
}

void DagPainting::findSources(std::int32_t box)
{
    m_sources.clear();
    if (box < 0 || m_visible.at(box).frame)
        return;
    for (const auto &edge : m_visible.edges) {
        if (edge.to == box)
            m_sources.push_back(edge.from); // edges ascend by source
    }
}

void DagPainting::paintPaths()
{
    const std::int32_t lit = m_paint.hovered > 0 && !m_visible.at(m_paint.hovered).frame ? m_paint.hovered
        : m_paint.focused > 0 && !m_visible.at(m_paint.focused).frame                    ? m_paint.focused
                                                                                         : -1;
    findSources(lit);
    const bool curves = m_scale >= kCurvesFrom;
    const QColor plain = mixed(m_palette.canvas, m_palette.edge, m_scale >= kCardsFrom ? 0.85 : 0.55);
    std::vector<const ScenePath *> strong;
    QPainterPath smooth;
    QList<QLineF> lines;
    QPainterPath arrows;
    arrows.setFillRule(Qt::WindingFill);
    const double shortest = (m_scale < 0.12 ? 5 : 1.5) / m_scale;
    for (const auto &path : m_scene.paths) {
        if (!path.bounds.intersects(m_window) || std::max(path.bounds.width, path.bounds.height) < shortest)
            continue;
        if (lit >= 0 && isStrong(path, lit)) {
            strong.push_back(&path);
            continue;
        }
        if (curves)
            addCurve(smooth, path);
        else
            addLines(lines, path);
        if (m_scale >= kArrowsFrom)
            addArrow(arrows, path);
    }
    m_painter.setBrush(Qt::NoBrush);
    if (curves) {
        m_painter.setRenderHint(QPainter::Antialiasing, true);
        m_painter.setPen(QPen(plain, std::clamp(1.3 * m_scale, 0.9, 2.0)));
        m_painter.drawPath(smooth);
        m_painter.setPen(Qt::NoPen);
        m_painter.setBrush(plain);
        m_painter.drawPath(arrows);
    } else {
        m_painter.setRenderHint(QPainter::Antialiasing, false);
        m_painter.setPen(QPen(plain, 0));
        m_painter.drawLines(lines);
    }
    if (!strong.empty())
        paintStrong(strong);
}

void DagPainting::paintStrong(const std::vector<const ScenePath *> &strong)
{
    QPainterPath smooth;
    QPainterPath arrows;
    arrows.setFillRule(Qt::WindingFill);
    for (const auto *path : strong) {
        addCurve(smooth, *path);
        if (m_scale >= kArrowsFrom)
            addArrow(arrows, *path);
    }
    m_painter.setRenderHint(QPainter::Antialiasing, true);
    m_painter.setBrush(Qt::NoBrush);
    m_painter.setPen(QPen(m_palette.edgeStrong, std::clamp(2.2 * m_scale, 1.4, 3.0)));
    m_painter.drawPath(smooth);
    m_painter.setPen(Qt::NoPen);
    m_painter.setBrush(m_palette.edgeStrong);
    m_painter.drawPath(arrows);
}

QPointF DagPainting::point(std::uint32_t index) const
{
    const auto &p = m_scene.points[index];
    return {m_paint.camera.viewX(p.x), m_paint.camera.viewY(p.y)};
}

void DagPainting::addCurve(QPainterPath &out, const ScenePath &path) const
{
    out.moveTo(point(path.begin));
    for (std::uint32_t i = path.begin + 1; i + 1 < path.end; i += 2) {
        const QPointF from = point(i);
        const QPointF to = point(i + 1);
        out.lineTo(from);
        const bool straight = std::abs(m_right ? from.y() - to.y() : from.x() - to.x()) < 1;
        if (straight) {
            out.lineTo(to);
        } else {
            const QPointF bend =
                m_right ? QPointF((to.x() - from.x()) * 0.5, 0) : QPointF(0, (to.y() - from.y()) * 0.5);
            out.cubicTo(from + bend, to - bend, to);
        }
    }
    out.lineTo(point(path.end - 1));
}

void DagPainting::addLines(QList<QLineF> &out, const ScenePath &path) const
{
    // Straight runs are one line: most edges are a single rank long.
    QPointF from = point(path.begin);
    for (std::uint32_t i = path.begin + 1; i < path.end; ++i) {
        const QPointF to = point(i);
        const auto across = [this](QPointF p) { return m_right ? p.y() : p.x(); };
        if (i + 1 < path.end && std::abs(across(to) - across(from)) < 0.5
            && std::abs(across(point(i + 1)) - across(to)) < 0.5)
            continue;
        if (std::abs(to.x() - from.x()) + std::abs(to.y() - from.y()) >= 1)
            out.append(QLineF(from, to));
        from = to;
    }
}

void DagPainting::addArrow(QPainterPath &out, const ScenePath &path) const
{
    if (path.target < 0 || m_visible.at(path.target).frame)
        return;
    const QPointF tip = point(path.end - 1);
    const double size = 4.5 * std::min(m_scale, 1.5);
    out.moveTo(tip);
    const QPointF back = m_right ? QPointF(-size * 1.5, 0) : QPointF(0, -size * 1.5);
    const QPointF side = m_right ? QPointF(0, size * 0.8) : QPointF(size * 0.8, 0);
    out.lineTo(tip + back - side);
    out.lineTo(tip + back + side);
    out.closeSubpath();
}

} // namespace planloom
