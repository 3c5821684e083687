#include "widgets/main/status_pill.h"

#include <QtGui/QPainter>

#include "widgets/common/palette.h"

namespace planloom {

namespace {

constexpr int kMargin = 12;
constexpr int kMark = 16; ///< Width of the mark with its gap.

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
    }
    return palette.textMuted;
}

} // namespace

StatusPill::StatusPill(QWidget *parent) : QAbstractButton(parent)
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
    updateGeometry();
    update();
}

QSize StatusPill::sizeHint() const
{
    return {fontMetrics().horizontalAdvance(text()) + 2 * kMargin + kMark, fontMetrics().height() + 10};
}

void StatusPill::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const Palette &palette = paletteFor(*this);
    const QColor colour = colourOf(palette, m_mood);
    const QRectF box = QRectF(rect()).adjusted(1, 1, -1, -1);
    painter.setPen(QPen(hasFocus() ? palette.accent : mixed(palette.surface, colour, 0.6), hasFocus() ? 2 : 1));
    painter.setBrush(mixed(palette.surface, colour, underMouse() ? 0.16 : 0.09));
    painter.drawRoundedRect(box, box.height() / 2, box.height() / 2);
    const QPointF centre(kMargin + 4, height() / 2.0);
    painter.setPen(Qt::NoPen);
    painter.setBrush(colour);
    if (m_mood == Mood::Busy || m_mood == Mood::Quiet) {
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(colour, 2));
        painter.drawEllipse(centre, 4, 4);
        if (m_mood == Mood::Busy) {
            painter.setBrush(colour);
            painter.drawPie(QRectF(centre.x() - 4, centre.y() - 4, 8, 8), 90 * 16, -180 * 16);
        }
    } else {
        painter.drawEllipse(centre, 5, 5);
    }
    painter.setPen(palette.text);
    painter.drawText(QRectF(kMargin + kMark, 0, width() - kMargin - kMark, height()), Qt::AlignVCenter | Qt::AlignLeft, text());
}

} // namespace planloom
