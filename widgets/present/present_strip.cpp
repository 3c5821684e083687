#include "widgets/present/present_strip.h"

#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>

namespace planloom {

QString minutesText(qint64 seconds)
{
    return QStringLiteral("%1:%2").arg(seconds / 60).arg(seconds % 60, 2, 10, QLatin1Char('0'));
}

PresentStrip::PresentStrip(QWidget *parent)
    : QFrame(parent)
    , m_number(new QLabel(this))
    , m_name(new QLabel(this))
    , m_timer(new QLabel(this))
{
    setObjectName(QStringLiteral("present.strip"));
    setToolTip(tr("Right, Space: next scene   Left: previous   Home, End: first, last\n"
                  "P: play the step   A: play scenes   S: spotlight   N: notes   T: timer   B: this bar\n"
                  "1, 2, 3: both canvases, graph, timeline   Esc: leave"));
    QFont large = font();
    large.setPointSizeF(large.pointSizeF() * 1.25);
    setFont(large);
    large.setBold(true);
    m_name->setFont(large);
    for (QLabel *label : {m_number, m_name, m_timer}) {
        label->setTextFormat(Qt::PlainText);
        label->setMinimumWidth(1);
    }
    m_number->setForegroundRole(QPalette::PlaceholderText);
    auto *line = new QHBoxLayout(this);
    const int space = fontMetrics().height() / 2;
    line->setContentsMargins(2 * space, space / 2, 2 * space, space / 2);
    line->setSpacing(2 * space);
    line->addWidget(m_number);
    line->addWidget(m_name, 1);
    line->addWidget(m_timer);
}

void PresentStrip::show(const TalkState &state)
{
    m_number->setVisible(state.number > 0);
    m_number->setText(tr("%1 of %2").arg(state.number).arg(state.count));
    m_name->setText(state.name);
    const QString elapsed = minutesText(state.elapsed);
    m_timer->setText(state.planned > 0 ? tr("%1 of %2").arg(elapsed, minutesText(state.planned)) : elapsed);
    setAccessibleName(text());
}

void PresentStrip::setTimerShown(bool shown)
{
    m_timer->setVisible(shown);
}

bool PresentStrip::isTimerShown() const
{
    return !m_timer->isHidden();
}

QString PresentStrip::text() const
{
    QStringList words;
    for (const QLabel *label : {m_number, m_name, m_timer})
        if (!label->isHidden())
            words << label->text();
    return words.join(QStringLiteral(" | "));
}

} // namespace planloom

#include "moc_present_strip.cpp"
