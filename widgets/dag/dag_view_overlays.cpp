// What lies over the canvas: the box that selects, the legend, the overview map.

#include "widgets/dag/dag_view.h"

#include "widgets/common/canvas_legend.h"
#include "widgets/dag/dag_painter.h"

#include <QtGui/QFontMetricsF>
#include <QtGui/QPainter>

#include <algorithm>

namespace planloom {

void DagView::paintOverlays(QPainter &painter)
{
    const Palette &palette = paletteFor(*this);
    painter.setRenderHint(QPainter::Antialiasing, false);
    if (m_gesture == Gesture::Box) {
        const QRectF box = QRectF(m_pressed, m_last).normalized();
        QColor fill = palette.accent;
        fill.setAlpha(36);
        const bool touching = m_last.x() < m_pressed.x();
        painter.setPen(QPen(palette.accent, 1, touching ? Qt::DashLine : Qt::SolidLine));
        painter.setBrush(fill);
        painter.drawRect(box);
    }
    paintMeasure(painter);
    paintLegend(painter);
    paintOverviewMap(painter);
}

void DagView::paintLegend(QPainter &painter)
{
    m_legendRects.assign(colours().legend.size(), QRectF());
    if (colours().legend.empty() || !hasRoomForLegend(*this))
        return;
    const Palette &palette = paletteFor(*this);
    const QFont small = legendFont(*this);
    QFont heading = small;
    heading.setBold(true);
    const QFontMetricsF metrics(small);
    const QFontMetricsF headingMetrics(heading);
    const double row = metrics.height() + 4;
    const double most = width() - overviewRect().width() - 60;
    painter.setFont(small);
    // Chips in one line after the title; what does not fit is left to tooltips and the inspector.
    double total = headingMetrics.horizontalAdvance(colours().title) + 20;
    std::size_t shown = 0;
    for (const auto &entry : colours().legend) {
        const double chip = colours().scale
            ? 18 + (entry.text.isEmpty() ? 0 : metrics.horizontalAdvance(entry.text) + 8)
            : 18 + metrics.horizontalAdvance(entry.text) + 10;
        if (total + chip > most)
            break;
        total += chip;
        ++shown;
    }
    const QRectF ground(10, height() - row - 14, total, row + 4);
    QColor fill = palette.surface;
    fill.setAlpha(232);
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setPen(QPen(palette.grid, 1));
    painter.setBrush(fill);
    painter.drawRoundedRect(ground, 5, 5);
    const double base = ground.center().y() + metrics.capHeight() / 2;
    double x = ground.left() + 9;
    painter.setFont(heading);
    painter.setPen(palette.text);
    painter.drawText(QPointF(x, base), colours().title);
    x += headingMetrics.horizontalAdvance(colours().title) + 10;
    painter.setFont(small);
    for (std::size_t i = 0; i < shown; ++i) {
        const auto &entry = colours().legend[i];
        const QRectF swatch(x, ground.center().y() - 5.5, colours().scale ? 18 : 11, 11);
        if (colours().scale) {
            const bool first = i == 0;
            if (first && !entry.text.isEmpty()) { // the lower end's number stands before the scale
                painter.setPen(palette.textMuted);
                painter.drawText(QPointF(x, base), entry.text);
                x += metrics.horizontalAdvance(entry.text) + 6;
            }
            painter.fillRect(QRectF(x, swatch.y(), 18, 11), entry.colour);
            m_legendRects[i] = QRectF(x, ground.top(), 18, ground.height());
            if (m_filter.contains(entry.key)) {
                painter.setPen(QPen(palette.text, 2));
                painter.setBrush(Qt::NoBrush);
                painter.drawRect(QRectF(x + 1, swatch.y() - 2, 16, 15));
            }
            x += 18;
            if (!first && !entry.text.isEmpty()) {
                painter.setPen(palette.textMuted);
                painter.drawText(QPointF(x + 6, base), entry.text);
            }
            continue;
        }
        const bool chosen = m_filter.contains(entry.key);
        m_legendRects[i] =
            QRectF(x - 3, ground.top(), 21 + metrics.horizontalAdvance(entry.text), ground.height());
        painter.setPen(chosen ? QPen(palette.text, 2) : QPen(Qt::NoPen));
        painter.setBrush(entry.colour);
        painter.drawRoundedRect(swatch, 2.5, 2.5);
        painter.setPen(chosen || m_filter.empty() ? palette.text : palette.textMuted);
        painter.drawText(QPointF(x + 15, base), entry.text);
        x += 18 + metrics.horizontalAdvance(entry.text) + 10;
    }
}

QRectF DagView::legendRect(std::size_t entry) const
{
    return entry < m_legendRects.size() ? m_legendRects[entry] : QRectF();
}

/// A click on the legend shows what has that colour alone, or no longer.
bool DagView::toggleLegend(QPointF view)
{
    for (std::size_t i = 0; i < m_legendRects.size() && i < colours().legend.size(); ++i) {
        const std::int32_t key = colours().legend[i].key;
        if (key < 0 || !m_legendRects[i].contains(view))
            continue;
        auto filter = m_filter;
        if (filter.erase(key) == 0)
            filter.insert(key);
        setLegendFilter(std::move(filter));
        return true;
    }
    return false;
}

QRectF DagView::overviewRect() const
{
    if (!m_picture || width() < 420 || height() < 260)
        return {};
    const auto &bounds = m_picture->scene.bounds;
    const double scale = std::min(190 / std::max(1.0, bounds.width), 150 / std::max(1.0, bounds.height));
    const double w = std::max(34.0, bounds.width * scale) + 12;
    const double h = std::max(34.0, bounds.height * scale) + 12;
    return {width() - w - 10, height() - h - 10, w, h};
}

void DagView::paintOverviewMap(QPainter &painter)
{
    const QRectF place = overviewRect();
    const SceneRect shown = m_camera.visible(width(), height());
    const auto &bounds = m_picture->scene.bounds;
    const bool all = shown.x <= bounds.x && shown.y <= bounds.y && shown.right() >= bounds.right()
        && shown.bottom() >= bounds.bottom();
    if (place.isEmpty() || all) // nothing to find one's way in
        return;
    const Palette &palette = paletteFor(*this);
    DagCamera camera;
    camera.fit(bounds, place.width(), place.height(), 6, 1);
    if (m_overview.isNull()) {
        m_overview = QPixmap((place.size() * devicePixelRatioF()).toSize());
        m_overview.setDevicePixelRatio(devicePixelRatioF());
        m_overview.fill(palette.surface);
        QPainter inner(&m_overview);
        paintOverview(inner, *m_picture, colours(), palette, camera);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.drawPixmap(place.topLeft(), m_overview);
    // Where the selection is, and what find has found.
    for (std::size_t box = 1; box < m_marks.size(); ++box) {
        const std::uint8_t mark = m_marks[box];
        if ((mark & (kMarkSelected | kMarkPartly | kMarkMatch)) == 0 || m_picture->visible.boxes[box].frame)
            continue;
        const auto &rect = m_picture->scene.rects[box];
        painter.fillRect(
            QRectF(place.x() + camera.viewX(rect.x), place.y() + camera.viewY(rect.y),
                std::max(2.0, rect.width * camera.scale), std::max(2.0, rect.height * camera.scale)),
            (mark & (kMarkSelected | kMarkPartly)) != 0 ? palette.accent : palette.match);
    }
    painter.setPen(QPen(palette.border, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(place.adjusted(0, 0, -1, -1));
    const QRectF window = QRectF(place.x() + camera.viewX(shown.x), place.y() + camera.viewY(shown.y),
        shown.width * camera.scale, shown.height * camera.scale)
                              .intersected(place.adjusted(1, 1, -2, -2));
    QColor veil = palette.accent;
    veil.setAlpha(30);
    painter.fillRect(window, veil);
    painter.setPen(QPen(palette.accent, 1.5));
    painter.drawRect(window);
}

} // namespace planloom
