// Nodes of the canvas: blocks, cards, their texts and badges.

#include "engine/base/ids.h"
#include "widgets/dag/dag_painting.h"

#include <QtCore/QCoreApplication>
#include <QtGui/QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace planloom {

/// Far away a mark is a border of pixels around a block: one rectangle behind it, which is all that there is
/// time for when everything is marked.
void DagPainting::paintMarksBehindBlocks()
{
    m_painter.setRenderHint(QPainter::Antialiasing, false);
    m_painter.setPen(Qt::NoPen);
    for (const auto box : m_nodes) {
        const std::uint8_t mark = at(box) < m_paint.marks.size() ? m_paint.marks[at(box)] : 0;
        const bool matches = (mark & (kMarkMatch | kMarkCurrent)) != 0;
        const bool chosen = (mark & (kMarkSelected | kMarkPartly)) != 0;
        const bool conflicts = (mark & kMarkConflict) != 0;
        if (!matches && !chosen && !conflicts)
            continue;
        const QRectF rect = mapped(m_scene.rects[at(box)]);
        const QRect block(static_cast<int>(rect.x()), static_cast<int>(rect.y()),
            std::max(1, static_cast<int>(rect.width())), std::max(1, static_cast<int>(rect.height())));
        if (conflicts)
            m_painter.fillRect(block.adjusted(-4, -4, 4, 4), m_palette.error);
        if (matches) {
            const int border = (mark & kMarkCurrent) != 0 ? 4 : 3;
            m_painter.fillRect(block.adjusted(-border, -border, border, border), m_palette.match);
        }
        if (chosen) {
            const int border = (mark & kMarkSelected) != 0 ? 2 : 1;
            m_painter.fillRect(block.adjusted(-border, -border, border, border), m_palette.accent);
        }
    }
}

void DagPainting::paintBlocks()
{
    m_painter.setRenderHint(QPainter::Antialiasing, false);
    m_painter.setPen(Qt::NoPen);
    for (const auto box : m_nodes) {
        const QRectF rect = mapped(m_scene.rects[at(box)]);
        const auto &shares = m_paint.colours.boxes[at(box)].shares;
        const QRect pixels(static_cast<int>(rect.x()), static_cast<int>(rect.y()),
            std::max(1, static_cast<int>(rect.width())), std::max(1, static_cast<int>(rect.height())));
        if (shares.size() == 1 || pixels.width() < 6) {
            m_painter.fillRect(pixels, QColor::fromRgb(shares.front().colour));
            continue;
        }
        double x = pixels.x();
        for (const auto &share : shares) {
            const double next = x + static_cast<double>(share.share) * pixels.width();
            m_painter.fillRect(
                QRectF(x, pixels.y(), next - x, pixels.height()), QColor::fromRgb(share.colour));
            x = next;
        }
    }
}

void DagPainting::paintCards()
{
    const bool round = m_scale >= kRoundFrom;
    const bool detail = m_scale >= kDetailFrom;
    m_painter.setRenderHint(QPainter::Antialiasing, round);
    for (const auto box : m_nodes)
        paintCard(box, round, detail);
    m_painter.setRenderHint(QPainter::Antialiasing, true);
    if (round)
        paintTexts();
    else
        paintShortTitles();
    if (detail) {
        for (const auto box : m_nodes) {
            if (!isOperator(box))
                paintToggle(toggleRect(m_paint.picture, box), true, m_palette.surface);
        }
        if (m_scale >= kBadgesFrom)
            paintBadges();
        paintPins();
    }
}

SceneRect DagPainting::cardRect(std::int32_t box) const
{
    SceneRect rect = m_scene.rects[at(box)];
    const auto &text = m_scene.texts[at(box)];
    if ((text.twin || text.step) && m_scale >= kDetailFrom)
        rect.width -= DagMetrics::kTwinWidth;
    return rect;
}

QColor DagPainting::cardFill(std::int32_t box) const
{
    const double tint = m_paint.colours.scale ? 0.6 : m_palette.dark ? 0.16 : 0.10;
    return mixed(isOperator(box) ? m_palette.surface : m_palette.surfaceRaised,
        QColor::fromRgb(m_paint.colours.boxes[at(box)].main()), tint);
}

/// Texts stand on strong colours where a scale is shown.
QColor DagPainting::textOn(std::int32_t box) const
{
    return m_paint.colours.scale ? readableOn(cardFill(box)) : m_palette.text;
}

void DagPainting::paintCard(std::int32_t box, bool round, bool detail)
{
    const SceneRect card = cardRect(box);
    const QRectF rect = mapped(card);
    const auto &colours = m_paint.colours.boxes[at(box)];
    const QColor main = QColor::fromRgb(colours.main());
    const bool op = isOperator(box);
    const QColor border = mixed(m_palette.border, main, 0.35);
    // A scale is read from the whole card, categories from its bar.
    const QColor fill = cardFill(box);
    const double radius = round ? 4 * m_scale : 0;
    m_painter.setPen(QPen(border, round ? 1 : 0));
    if (!op && isStack(box)) {
        const double step = DagMetrics::kStackStep * m_scale * 0.8;
        m_painter.setBrush(mixed(m_palette.canvas, main, 0.12));
        for (int behind = 2; behind >= 1; --behind)
            outline(rect.translated(behind * step, behind * step), radius);
    }
    const auto &text = m_scene.texts[at(box)];
    if (text.unread || text.behindUnread) // what could not be read stands out, what follows from it is open
        m_painter.setPen(QPen(text.unread ? m_palette.error : m_palette.warning, text.unread ? 2 : 1,
            text.unread ? Qt::SolidLine : Qt::DashLine));
    m_painter.setBrush(fill);
    if (round)
        m_painter.drawRoundedRect(rect, radius, radius);
    else
        m_painter.drawRect(rect);
    paintBar(rect, colours, radius);
    if (!op && round) { // a second line inside the border says: there is more within
        m_painter.setBrush(Qt::NoBrush);
        m_painter.setPen(QPen(mixed(fill, border, 0.45), 1));
        m_painter.drawRoundedRect(rect.adjusted(2.5, 2.5, -2.5, -2.5), radius * 0.7, radius * 0.7);
    }
    if (detail && op)
        paintTwin(box, card, main, radius);
}

void DagPainting::paintBar(const QRectF &rect, const BoxColours &colours, double radius)
{
    const double width = std::max(2.0, 5 * m_scale);
    double y = rect.y() + std::min(radius, 2.0);
    const double height = rect.height() - 2 * std::min(radius, 2.0);
    m_painter.setPen(Qt::NoPen);
    for (const auto &share : colours.shares) {
        const double next = y + static_cast<double>(share.share) * height;
        m_painter.fillRect(QRectF(rect.x() + 0.5, y, width, next - y), QColor::fromRgb(share.colour));
        y = next;
    }
}

void DagPainting::paintTwin(std::int32_t box, const SceneRect &card, const QColor &main, double radius)
{
    const auto &text = m_scene.texts[at(box)];
    if (!text.twin && !text.step)
        return;
    const double gap = 4;
    SceneRect place{card.right() + gap, card.y, DagMetrics::kTwinWidth - gap, (card.height - gap) / 2};
    const bool both = text.twin && text.step;
    if (!both)
        place.y = card.y + (card.height - place.height) / 2;
    m_painter.setFont(font(DagMetrics::kSubtitleSize, false));
    const auto draw = [&](const QString &sign, Direction direction) {
        const QRectF rect = mapped(place);
        const QColor tint = mixed(main, directionColour(m_palette, direction), 0.5);
        m_painter.setPen(QPen(mixed(m_palette.border, tint, 0.4), m_scale >= kRoundFrom ? 1 : 0));
        m_painter.drawLine(
            QPointF(rect.left() - gap * m_scale, rect.center().y()), QPointF(rect.left(), rect.center().y()));
        m_painter.setBrush(mixed(m_palette.surface, tint, m_palette.dark ? 0.22 : 0.16));
        if (radius > 0)
            m_painter.drawRoundedRect(rect, radius * 0.7, radius * 0.7);
        else
            m_painter.drawRect(rect);
        if (m_scale >= kRoundFrom) {
            m_painter.setPen(m_palette.text);
            m_painter.drawText(rect, Qt::AlignCenter, sign);
        }
    };
    if (text.twin) {
        draw(QStringLiteral("∇"), Direction::Backward);
        place.y += place.height + gap;
    }
    if (text.step)
        draw(QStringLiteral("↻"), Direction::Optimizer);
}

void DagPainting::paintTexts()
{
    const bool scale = m_paint.colours.scale;
    const QFont titleFont = font(DagMetrics::kTitleSize, true);
    m_painter.setFont(titleFont);
    m_painter.setPen(m_palette.text);
    const double left = DagMetrics::kTextLeft * m_scale;
    for (const auto box : m_nodes) {
        const auto &rect = m_scene.rects[at(box)];
        if (scale)
            m_painter.setPen(textOn(box));
        m_painter.drawText(
            QPointF(m_paint.camera.viewX(rect.x) + left, m_paint.camera.viewY(rect.y + rect.height / 2 - 3)),
            m_paint.labels.titles[at(box)]);
    }
    m_painter.setFont(font(DagMetrics::kSubtitleSize, false));
    m_painter.setPen(m_palette.textMuted);
    for (const auto box : m_nodes) {
        const auto &rect = m_scene.rects[at(box)];
        if (scale)
            m_painter.setPen(textOn(box));
        m_painter.drawText(
            QPointF(m_paint.camera.viewX(rect.x) + left, m_paint.camera.viewY(rect.y + rect.height / 2 + 12)),
            m_paint.labels.subtitles[at(box)]);
    }
}

void DagPainting::paintShortTitles()
{
    const bool scale = m_paint.colours.scale;
    QFont middle(m_paint.font);
    const bool far = m_scale < kDetailFrom;
    const double size =
        DagMetrics::kTitleSize * m_scale / (far ? DagMetrics::kFarShare : DagMetrics::kMiddleShare);
    middle.setPixelSize(std::max(1, static_cast<int>(std::floor(size + 0.05))));
    middle.setBold(true);
    if (middle.pixelSize() < 6)
        return;
    m_painter.setFont(middle);
    m_painter.setPen(m_palette.text);
    const double left = 8 * m_scale;
    const double down = middle.pixelSize() * 0.36;
    for (const auto box : m_nodes) {
        const auto &rect = m_scene.rects[at(box)];
        if (scale)
            m_painter.setPen(textOn(box));
        m_painter.drawText(QPointF(m_paint.camera.viewX(rect.x) + left,
                               m_paint.camera.viewY(rect.y + rect.height / 2) + down),
            (far ? m_paint.labels.farTitles : m_paint.labels.shortTitles)[at(box)]);
    }
}

void DagPainting::paintBadges()
{
    const QFont small = font(9, true, 7);
    const QFontMetricsF metrics(small);
    m_painter.setFont(small);
    for (const auto box : m_nodes) {
        const auto &colours = m_paint.colours.boxes[at(box)];
        if (colours.badge.isEmpty())
            continue;
        const QRectF card = mapped(cardRect(box));
        const QString text = metrics.elidedText(colours.badge, Qt::ElideRight, card.width() * 1.1);
        const double height = metrics.height() + 1;
        const double width = std::max(height, metrics.horizontalAdvance(text) + 8);
        const QRectF pill(card.right() - width - 6 * m_scale, card.top() - height * 0.72, width, height);
        const bool single = colours.shares.size() == 1;
        const QColor ground = single ? QColor::fromRgb(colours.main()) : m_palette.surface;
        m_painter.setPen(QPen(single ? mixed(ground, m_palette.text, 0.25) : m_palette.border, 1));
        m_painter.setBrush(ground);
        m_painter.drawRoundedRect(pill, height / 2, height / 2);
        m_painter.setPen(single ? readableOn(ground) : m_palette.text);
        m_painter.drawText(pill, Qt::AlignCenter, text);
    }
}

/// What rows decided carries a pin, what follows from them a hollow one; a copy that is planned unlike the
/// others is counted.
void DagPainting::paintPins()
{
    const QFont small = font(9, true, 7);
    const QFontMetricsF metrics(small);
    for (const auto box : m_nodes) {
        const auto &colours = m_paint.colours.boxes[at(box)];
        const QRectF card = mapped(cardRect(box));
        if (colours.decidedBy != DecidedBy::Default && card.width() > 24) {
            const double r = std::clamp(3.2 * m_scale, 2.5, 5.0);
            const QPointF head(card.left() + 2 * r, card.top());
            m_painter.setPen(QPen(m_palette.text, std::max(1.0, r * 0.35)));
            m_painter.drawLine(head, head + QPointF(0, 2.1 * r));
            m_painter.setBrush(colours.decidedBy == DecidedBy::Row ? m_palette.accent : m_palette.surface);
            m_painter.drawEllipse(head, r, r);
        }
        if (colours.deviating == 0 || m_scale < kBadgesFrom)
            continue;
        const QString text =
            QCoreApplication::translate("DagView", "≠ %1 of %2").arg(colours.deviating).arg(colours.copies);
        const double height = metrics.height() + 1;
        const double width = metrics.horizontalAdvance(text) + 10;
        const QRectF pill(card.left() + 4 * m_scale, card.bottom() - height * 0.3, width, height);
        m_painter.setFont(small);
        m_painter.setPen(QPen(m_palette.warning, 1.4, Qt::DashLine));
        m_painter.setBrush(m_palette.surface);
        m_painter.drawRoundedRect(pill, height / 2, height / 2);
        m_painter.setPen(m_palette.text);
        m_painter.drawText(pill, Qt::AlignCenter, text);
    }
}

void DagPainting::paintStubs()
{
    const QFont small = font(9, false, 7);
    const QFontMetricsF metrics(small);
    m_painter.setFont(small);
    for (const auto &stub : m_scene.stubs) {
        const SceneRect around{stub.x - 60, stub.y - 24, 120, 48};
        if (!around.intersects(m_window))
            continue;
        const double x = m_paint.camera.viewX(stub.x);
        const double y = m_paint.camera.viewY(stub.y);
        m_painter.setPen(QPen(m_palette.edge, std::max(1.0, 1.2 * m_scale), Qt::SolidLine, Qt::RoundCap));
        if (!stub.atTarget) { // data leaves here for somewhere far
            const QPointF along = m_right ? QPointF(m_scale, 0) : QPointF(0, m_scale);
            m_painter.drawLine(QPointF(x, y), QPointF(x, y) + 7 * along);
            m_painter.setBrush(m_palette.edge);
            m_painter.drawEllipse(QPointF(x, y) + 8.5 * along, 2 * m_scale, 2 * m_scale);
            continue;
        }
        const QString text = stub.others.size() == 1 ? m_paint.labels.titles[at(stub.others.front())]
                                                     : QCoreApplication::translate("DagView", "%1 inputs")
                                                           .arg(static_cast<qsizetype>(stub.others.size()));
        const QString shown = metrics.elidedText(text, Qt::ElideMiddle, 96 * m_scale);
        const double height = metrics.height();
        const double width = metrics.horizontalAdvance(shown) + 10;
        // Beside the middle, where the node's own edge comes in.
        const QRectF pill(x - width / 2 - 34 * m_scale, y - height - 7 * m_scale, width, height);
        m_painter.drawLine(QPointF(pill.center().x(), pill.bottom()), QPointF(pill.center().x(), y));
        m_painter.setPen(QPen(m_palette.border, 1));
        m_painter.setBrush(m_palette.surface);
        m_painter.drawRoundedRect(pill, height / 2, height / 2);
        m_painter.setPen(m_palette.textMuted);
        m_painter.drawText(pill, Qt::AlignCenter, shown);
    }
}

} // namespace planloom
