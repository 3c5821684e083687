#include "widgets/status/status_pill.h"

#include <QtGui/QPainter>

#include "widgets/common/palette.h"

namespace planloom {

namespace {

QColor colourOf(const Palette &palette, StatusPill::Mood mood)
{
    switch (mood) {
    case StatusPill::Mood::Quiet:
        return palette.textMuted;
    case StatusPill::Mood::Busy:
        return palette.accent;
    case StatusPill::Mood::Good:
        return palette.accent;
    case StatusPill::Mood::Proven:
        return palette.success;
    case StatusPill::Mood::Wrong:
        return palette.error;
    case StatusPill::Mood::Paused:
        return palette.warning;
    }
    return palette.textMuted;
}

} // namespace

StatusPill::StatusPill(QWidget *parent)
    : QAbstractButton(parent)
{
    setCursor(Qt::PointingHandCursor);
    setFocusPolicy(Qt::TabFocus);
    setToolTip(tr("State of the plan; click for problems"));
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
}

void StatusPill::setState(Mood mood, const QString &text)
{
    if (mood == m_mood && text == this->text())
        return;
    m_mood = mood;
    setText(text);
    setAccessibleName(text);
    setToolTip(tr("%1\nState of the plan; click for problems").arg(text));
    updateGeometry();
    update();
}

QSize StatusPill::sizeHint() const
{
    return {fontMetrics().horizontalAdvance(text()) + 2 * margin() + static_cast<int>(mark() * 1.6),
        fontMetrics().height() * 8 / 5};
}

int StatusPill::margin() const
{
    return fontMetrics().height() * 3 / 5;
}

int StatusPill::mark() const
{
    return fontMetrics().height() * 3 / 5;
}

/// A shape for each state, so that colour is never alone.
void StatusPill::paintMark(QPainter &painter, const QRectF &box, const QColor &colour) const
{
    const double line = box.width() / 5;
    painter.setPen(QPen(colour, line, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    painter.setBrush(Qt::NoBrush);
    const QRectF inner = box.adjusted(line / 2, line / 2, -line / 2, -line / 2);
    switch (m_mood) {
    case Mood::Quiet:
        painter.drawEllipse(inner);
        break;
    case Mood::Busy:
        painter.drawEllipse(inner);
        painter.setBrush(colour);
        painter.setPen(Qt::NoPen);
        painter.drawPie(inner, 90 * 16, -180 * 16);
        break;
    case Mood::Good:
        painter.drawEllipse(inner);
        painter.setBrush(colour);
        painter.setPen(Qt::NoPen);
        painter.drawPie(inner, 90 * 16, -270 * 16);
        break;
    case Mood::Proven:
        painter.drawPolyline(QPolygonF({inner.topLeft() + QPointF(0, inner.height() * 0.55),
            inner.topLeft() + QPointF(inner.width() * 0.38, inner.height() * 0.95),
            inner.topRight() + QPointF(0, inner.height() * 0.1)}));
        break;
    case Mood::Wrong:
        painter.drawPolygon(
            QPolygonF({QPointF(inner.center().x(), inner.top()), inner.bottomRight(), inner.bottomLeft()}));
        painter.drawLine(QPointF(inner.center().x(), inner.top() + inner.height() * 0.4),
            QPointF(inner.center().x(), inner.top() + inner.height() * 0.65));
        break;
    case Mood::Paused:
        painter.drawLine(inner.topLeft() + QPointF(inner.width() * 0.25, 0),
            inner.bottomLeft() + QPointF(inner.width() * 0.25, 0));
        painter.drawLine(inner.topRight() - QPointF(inner.width() * 0.25, 0),
            inner.bottomRight() - QPointF(inner.width() * 0.25, 0));
        break;
    }
}

void StatusPill::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const Palette &palette = paletteFor(*this);
    const QColor colour = colourOf(palette, m_mood);
    const QRectF box = QRectF(rect()).adjusted(1, 1, -1, -1);
    painter.setPen(
        QPen(hasFocus() ? palette.accent : mixed(palette.surface, colour, 0.6), hasFocus() ? 2 : 1));
    painter.setBrush(mixed(palette.surface, colour, underMouse() ? 0.16 : 0.09));
    painter.drawRoundedRect(box, box.height() / 2, box.height() / 2);
    paintMark(painter, QRectF(margin(), (height() - mark()) / 2.0, mark(), mark()), colour);
    painter.setPen(palette.text);
    const QRectF room(margin() + mark() * 1.6, 0, width() - 2 * margin() - mark() * 1.6, height());
    // In a narrow window a long state is cut, and whole in the tool tip.
    const int wide = static_cast<int>(room.width()) + margin() / 2;
    painter.drawText(room.adjusted(0, 0, margin() / 2.0, 0), Qt::AlignVCenter | Qt::AlignLeft,
        fontMetrics().elidedText(text(), Qt::ElideRight, wide));
}

} // namespace planloom

#include "moc_status_pill.cpp"
