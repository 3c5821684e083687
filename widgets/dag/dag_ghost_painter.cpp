#include "widgets/dag/dag_ghost_painter.h"

#include "engine/base/ids.h"
#include "widgets/dag/dag_orders.h"

#include <QtCore/QCoreApplication>
#include <QtCore/QLineF>
#include <QtGui/QFontMetricsF>
#include <QtGui/QPainterPath>

#include <algorithm>
#include <cmath>
#include <map>

namespace planloom {

namespace {

QRectF rectOf(const SceneRect &rect)
{
    return {rect.x, rect.y, rect.width, rect.height};
}

QFont smallOf(const QFont &font)
{
    QFont small(font);
    if (font.pixelSize() > 0)
        small.setPixelSize(std::max(8, font.pixelSize() - 1));
    else
        small.setPointSizeF(std::max(6.0, font.pointSizeF() - 1));
    return small;
}

QColor veiled(QColor colour, int alpha)
{
    colour.setAlpha(alpha);
    return colour;
}

void drawLock(QPainter &painter, const QRectF &place, const QColor &colour)
{
    const double size = std::min(place.width(), place.height());
    const QRectF body(
        place.center().x() - size * 0.32, place.center().y() - size * 0.04, size * 0.64, size * 0.42);
    painter.setPen(QPen(colour, std::max(1.0, size * 0.1)));
    painter.setBrush(Qt::NoBrush);
    painter.drawArc(QRectF(body.center().x() - size * 0.2, body.top() - size * 0.34, size * 0.4, size * 0.6),
        0, 180 * 16);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    painter.drawRoundedRect(body, size * 0.06, size * 0.06);
}

/// A tick, an exclamation mark in a triangle, a barred circle: told apart without colour.
void drawMark(QPainter &painter, TagMark mark, const QRectF &place, const Palette &palette)
{
    const QPointF middle = place.center();
    const double r = std::min(place.width(), place.height()) / 2;
    painter.setBrush(Qt::NoBrush);
    switch (mark) {
    case TagMark::Legal: {
        painter.setPen(QPen(palette.success, 2, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
        painter.drawPolyline(QPolygonF({middle + QPointF(-0.7 * r, 0.05 * r),
            middle + QPointF(-0.15 * r, 0.6 * r), middle + QPointF(0.75 * r, -0.6 * r)}));
        break;
    }
    case TagMark::Yielding: {
        painter.setPen(QPen(palette.warning, 1.6, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
        painter.drawPolygon(QPolygonF({middle + QPointF(0, -0.85 * r), middle + QPointF(0.95 * r, 0.75 * r),
            middle + QPointF(-0.95 * r, 0.75 * r)}));
        painter.drawLine(middle + QPointF(0, -0.3 * r), middle + QPointF(0, 0.2 * r));
        painter.drawPoint(middle + QPointF(0, 0.5 * r));
        break;
    }
    case TagMark::Refused:
        painter.setPen(QPen(palette.error, 2));
        painter.drawEllipse(middle, r * 0.8, r * 0.8);
        painter.drawLine(middle + QPointF(-0.56 * r, -0.56 * r), middle + QPointF(0.56 * r, 0.56 * r));
        break;
    case TagMark::None:
        break;
    }
}

void drawArrowHead(QPainter &painter, QPointF tip, QPointF from, double size)
{
    const QLineF line(from, tip);
    if (line.length() < 1)
        return;
    const QPointF along = (tip - from) / line.length();
    const QPointF across(-along.y(), along.x());
    painter.drawPolygon(
        QPolygonF({tip, tip - along * size + across * size * 0.5, tip - along * size - across * size * 0.5}));
}

} // namespace

GhostMetrics::GhostMetrics(const QFont &font)
{
    const QFontMetricsF metrics(font);
    chips.height = std::max(18.0, metrics.height() + 4);
    chips.padding = std::max(6.0, metrics.averageCharWidth());
    lockWidth = chips.height * 0.62;
    cellWidth = metrics.horizontalAdvance(QStringLiteral("00000–00000")) + 8;
    cellHeight = metrics.height() + 6;
    tileWidth = std::max(92.0, metrics.horizontalAdvance(QStringLiteral("100/100 GiB")) + 26);
    shelfHeight = 3 * metrics.height() + 44;
}

double chipWidth(const DimensionChip &chip, const QFont &font)
{
    QFont bold(font);
    bold.setBold(true);
    const GhostMetrics metrics(font);
    return QFontMetricsF(bold).horizontalAdvance(QString::fromStdString(chipText(chip)))
        + (isLocked(chip) ? metrics.lockWidth + 2 : 0);
}

namespace {

/// From each row of chips to their node.
void paintLeaders(QPainter &painter, const ChipsPaint &chips, const Palette &palette)
{
    const QRectF node = rectOf(chips.node);
    std::map<double, QRectF> rows; // by height
    for (const auto &placed : chips.placed)
        rows[placed.rect.y] |= rectOf(placed.rect);
    painter.setPen(QPen(palette.accent, 1.2));
    for (const auto &[y, row] : rows) {
        const double x = std::clamp(node.center().x(), row.left(), row.right());
        if (row.bottom() < node.top())
            painter.drawLine(QPointF(x, row.center().y()), QPointF(x, node.top()));
        else if (row.top() > node.bottom())
            painter.drawLine(QPointF(x, node.bottom()), QPointF(x, row.center().y()));
    }
}

} // namespace

void paintChips(QPainter &painter, const ChipsPaint &chips, const QFont &font, const Palette &palette)
{
    QFont bold(font);
    bold.setBold(true);
    const GhostMetrics metrics(font);
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setFont(bold);
    paintLeaders(painter, chips, palette);
    for (const auto &placed : chips.placed) {
        const auto &chip = chips.chips[at(placed.index)];
        const QRectF rect = rectOf(placed.rect);
        const bool locked = isLocked(chip);
        const bool lit = placed.index == chips.lit;
        const QColor ground = locked ? palette.surfaceRaised
            : lit                    ? mixed(palette.surface, palette.accent, 0.30)
                                     : mixed(palette.surface, palette.accent, 0.12);
        painter.setPen(QPen(locked ? palette.border : palette.accent, lit ? 2 : 1.2));
        painter.setBrush(ground);
        painter.drawRoundedRect(rect, rect.height() / 2, rect.height() / 2);
        painter.setPen(locked ? palette.textMuted : palette.text);
        QRectF text = rect.adjusted(metrics.chips.padding, 0, -metrics.chips.padding, 0);
        if (locked) {
            const QRectF lock(text.right() - metrics.lockWidth, rect.center().y() - metrics.lockWidth / 2,
                metrics.lockWidth, metrics.lockWidth);
            text.setRight(lock.left() - 2);
            painter.drawText(text, Qt::AlignCenter, QString::fromStdString(chipText(chip)));
            drawLock(painter, lock, palette.textMuted);
        } else {
            painter.drawText(text, Qt::AlignCenter, QString::fromStdString(chipText(chip)));
        }
    }
}

void paintHandle(QPainter &painter, const QRectF &place, bool lit, const Palette &palette)
{
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setPen(QPen(palette.accent, lit ? 2 : 1.2));
    painter.setBrush(lit ? palette.accent : palette.surface);
    painter.drawEllipse(place);
    const double r = place.width() / 2;
    const QPointF middle = place.center();
    painter.setPen(Qt::NoPen);
    painter.setBrush(lit ? readableOn(palette.accent) : palette.accent);
    painter.drawPolygon(QPolygonF({middle + QPointF(-0.3 * r, -0.48 * r), middle + QPointF(0.55 * r, 0),
        middle + QPointF(-0.3 * r, 0.48 * r)}));
}

void paintSlices(QPainter &painter, const std::vector<SceneRect> &cells, const std::vector<QString> &texts,
    bool refused, const QFont &font, const Palette &palette)
{
    const QColor colour = refused ? palette.error : palette.accent;
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setFont(font);
    for (std::size_t i = 0; i < cells.size(); ++i) {
        const QRectF rect = rectOf(cells[i]);
        painter.setPen(QPen(colour, 1.4, refused ? Qt::DashLine : Qt::SolidLine));
        painter.setBrush(veiled(mixed(palette.surface, colour, 0.18), 225));
        painter.drawRoundedRect(rect, 3, 3);
        if (i >= texts.size())
            continue;
        painter.setPen(palette.text);
        painter.drawText(rect, Qt::AlignCenter, texts[i]);
    }
}

void paintShelf(QPainter &painter, const ShelfPaint &shelf, const QFont &font, const Palette &palette)
{
    const QRectF band = rectOf(shelf.layout.band);
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.fillRect(band, palette.surfaceRaised);
    painter.setPen(QPen(palette.border, 1));
    painter.drawLine(band.topLeft(), band.topRight());
    painter.setClipRect(band);
    painter.setRenderHint(QPainter::Antialiasing, true);
    QFont bold(font);
    bold.setBold(true);
    const QFont small = smallOf(font);
    const QFontMetricsF metrics(font);
    const QFontMetricsF smallMetrics(small);
    for (std::int32_t i = 0; i < shelf.layout.count; ++i) {
        const QRectF rect = rectOf(shelf.layout.rectOf(i));
        if (!rect.intersects(band))
            continue;
        const auto &tile = shelf.tiles[at(i)];
        const bool lit = i == shelf.lit;
        const QColor frame = lit ? (shelf.refused ? palette.error : palette.accent) : palette.border;
        painter.setPen(QPen(frame, lit ? 2.4 : 1));
        painter.setBrush(lit ? mixed(palette.surface, frame, 0.14) : palette.surface);
        painter.drawRoundedRect(rect, 5, 5);
        QRectF inner = rect.adjusted(9, 6, -9, -6);
        painter.setFont(bold);
        painter.setPen(palette.text);
        const QString label = QString::fromStdString(tile.label);
        QString count;
        if (at(i) < shelf.counts.size() && !tile.devices.empty())
            count = QString::number(shelf.counts[at(i)]);
        const double badge = count.isEmpty() ? 0 : smallMetrics.horizontalAdvance(count) + 12;
        painter.drawText(QRectF(inner.x(), inner.y(), inner.width() - badge, metrics.height()),
            Qt::AlignLeft | Qt::AlignVCenter,
            QFontMetricsF(bold).elidedText(label, Qt::ElideRight, inner.width() - badge));
        if (!count.isEmpty()) {
            const QRectF pill(inner.right() - badge + 4, inner.y(), badge, metrics.height());
            painter.setPen(QPen(palette.border, 1));
            painter.setBrush(palette.surfaceRaised);
            painter.drawRoundedRect(pill, pill.height() / 2, pill.height() / 2);
            painter.setFont(small);
            painter.setPen(palette.text);
            painter.drawText(pill, Qt::AlignCenter, count);
        }
        painter.setFont(small);
        painter.setPen(palette.textMuted);
        const QRectF line(inner.x(), inner.y() + metrics.height() + 2, inner.width(), metrics.height());
        if (tile.target.free) {
            const QRectF rest(line.x(), line.y(), line.width(), inner.bottom() - line.y());
            painter.drawText(rest, Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap,
                QCoreApplication::translate("DagView", "give the choice back"));
            continue;
        }
        const auto &load = shelf.loads[at(i)];
        const QString detail = QString::fromStdString(tile.detail);
        if (!load.text.empty() || detail.isEmpty())
            painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter,
                load.text.empty() ? QStringLiteral("…") : QString::fromStdString(load.text));
        else
            painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, detail);
        // The bar, and at its end what it means in a sign: tick, exclamation mark, barred circle.
        const double side = std::max(11.0, smallMetrics.height() * 0.8);
        const QRectF bar(inner.x(), inner.bottom() - side, inner.width() - side - 5, side);
        painter.setPen(QPen(palette.border, 1));
        painter.setBrush(palette.canvas);
        painter.drawRoundedRect(bar, 2.5, 2.5);
        if (load.state == LoadState::Unknown)
            continue;
        const QColor colour = load.state == LoadState::Over ? palette.error
            : load.state == LoadState::Tight                ? palette.warning
                                                            : palette.success;
        QRectF full = bar.adjusted(1.5, 1.5, -1.5, -1.5);
        full.setWidth(full.width() * std::clamp(load.share, 0.0, 1.0));
        painter.fillRect(full, colour);
        drawMark(painter,
            load.state == LoadState::Over        ? TagMark::Refused
                : load.state == LoadState::Tight ? TagMark::Yielding
                                                 : TagMark::Legal,
            QRectF(bar.right() + 5, bar.y(), side, side), palette);
    }
    painter.restore();
}

void paintOrderGhost(QPainter &painter, QPointF from, QPointF to, bool refused, const Palette &palette)
{
    const QColor colour = refused ? palette.error : palette.accent;
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setPen(QPen(colour, 2.2, Qt::DashLine, Qt::RoundCap));
    painter.setBrush(Qt::NoBrush);
    painter.drawLine(from, to);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    drawArrowHead(painter, to, from, 12);
}

void paintOrderArrow(QPainter &painter, const QRectF &from, const QRectF &to, const Palette &palette)
{
    const QLineF line = orderLine(from, to);
    if (line.length() < 1)
        return;
    const QPointF start = line.p1();
    const QPointF end = line.p2();
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setPen(QPen(palette.warning, 1.3, Qt::DashDotLine));
    painter.drawLine(start, end);
    painter.setPen(Qt::NoPen);
    painter.setBrush(palette.warning);
    drawArrowHead(painter, end, start, 8);
}

QRectF paintTag(QPainter &painter, const QString &text, TagMark mark, QPointF pointer, QSizeF window,
    const QFont &font, const Palette &palette)
{
    const QFontMetricsF metrics(font);
    const double icon = mark == TagMark::None ? 0 : metrics.height() + 2;
    const double most = std::max(40.0, std::min(560.0, window.width() - 16) - icon - 16);
    const QRectF needed =
        metrics.boundingRect(QRectF(0, 0, most, 10000), Qt::AlignLeft | Qt::TextWordWrap, text);
    const double width = std::ceil(needed.width()) + icon + 18;
    const double height = std::ceil(needed.height()) + 10;
    const QRectF rect =
        rectOf(placeTag(pointer.x(), pointer.y(), width, height, window.width(), window.height()));
    const QColor frame = mark == TagMark::Refused ? palette.error
        : mark == TagMark::Yielding               ? palette.warning
        : mark == TagMark::Legal                  ? palette.success
                                                  : palette.border;
    painter.setRenderHint(QPainter::Antialiasing, true);
    painter.setPen(QPen(frame, 1.5));
    painter.setBrush(palette.surface);
    painter.drawRoundedRect(rect.adjusted(0.75, 0.75, -0.75, -0.75), 5, 5);
    drawMark(painter, mark, QRectF(rect.x() + 7, rect.y() + 5, icon - 4, metrics.height()), palette);
    painter.setFont(font);
    painter.setPen(palette.text);
    painter.drawText(rect.adjusted(8 + icon, 5, -8, -4), Qt::AlignLeft | Qt::TextWordWrap, text);
    return rect;
}

} // namespace planloom
