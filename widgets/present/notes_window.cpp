#include "widgets/present/notes_window.h"

#include <QtCore/QLocale>
#include <QtCore/QTime>
#include <QtGui/QGuiApplication>
#include <QtGui/QScreen>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPlainTextEdit>

#include "widgets/present/present_strip.h"

#include <algorithm>

namespace planloom {

namespace {

QFont scaled(QFont font, double factor, bool bold = false)
{
    font.setPointSizeF(font.pointSizeF() * factor);
    font.setBold(bold);
    return font;
}

} // namespace

NotesWindow::NotesWindow(QWidget *window)
    : QWidget(window, Qt::Window)
    , m_name(new QLabel(this))
    , m_note(new QPlainTextEdit(this))
    , m_next(new QLabel(this))
    , m_elapsed(new QLabel(this))
    , m_clock(new QLabel(this))
{
    setWindowTitle(tr("Notes"));
    setObjectName(QStringLiteral("present.notes"));
    m_name->setFont(scaled(font(), 1.5, true));
    m_note->setFont(scaled(font(), 1.9));
    m_note->setReadOnly(true);
    m_note->setFrameShape(QFrame::NoFrame);
    m_note->setFocusPolicy(Qt::ClickFocus);
    m_note->setAccessibleName(tr("Note of the scene"));
    m_next->setFont(scaled(font(), 1.3));
    m_elapsed->setFont(scaled(font(), 1.6, true));
    m_clock->setFont(scaled(font(), 1.6));
    for (QLabel *label : {m_name, m_next, m_elapsed, m_clock})
        label->setTextFormat(Qt::PlainText);
    m_name->setWordWrap(true);
    m_next->setWordWrap(true);
    m_next->setForegroundRole(QPalette::PlaceholderText);
    auto *foot = new QHBoxLayout;
    foot->setSpacing(24);
    foot->addWidget(m_next, 1);
    foot->addWidget(m_elapsed);
    foot->addWidget(m_clock);
    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(18, 14, 18, 14);
    column->addWidget(m_name);
    column->addWidget(m_note, 1);
    column->addLayout(foot);
    resize(760, 520);
    const auto screens = QGuiApplication::screens();
    const auto other = std::find_if(screens.begin(), screens.end(),
        [window](const QScreen *screen) { return screen != window->screen(); });
    if (other != screens.end())
        setGeometry((*other)->availableGeometry().adjusted(40, 40, -40, -40));
}

void NotesWindow::show(const TalkState &state)
{
    m_name->setText(state.number > 0 ? tr("%1 of %2: %3").arg(state.number).arg(state.count).arg(state.name)
                                     : state.name);
    if (m_note->toPlainText() != state.note)
        m_note->setPlainText(state.note);
    m_next->setText(state.next.isEmpty() ? tr("The last scene") : tr("Next: %1").arg(state.next));
    m_next->setVisible(state.number > 0);
    const QString elapsed = minutesText(state.elapsed);
    m_elapsed->setText(state.planned > 0 ? tr("%1 of %2").arg(elapsed, minutesText(state.planned)) : elapsed);
    m_clock->setText(QLocale().toString(QTime::currentTime(), QLocale::ShortFormat));
}

QString NotesWindow::noteText() const
{
    return m_note->toPlainText();
}

QString NotesWindow::nextText() const
{
    return m_next->text();
}

QString NotesWindow::timeText() const
{
    return m_elapsed->text();
}

} // namespace planloom

#include "moc_notes_window.cpp"
