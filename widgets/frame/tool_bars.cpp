#include "widgets/frame/tool_bars.h"

#include <QtGui/QAction>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLayout>
#include <QtWidgets/QMainWindow>
#include <QtWidgets/QToolBar>
#include <QtWidgets/QToolButton>

#include "widgets/common/themed_icon.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr double kStateShare = 0.45; ///< Of the window's width, that the state takes at most.

QToolBar *addBar(QMainWindow *window, const QString &title, const char *name)
{
    auto *bar = new QToolBar(title, window);
    bar->setObjectName(QLatin1String(name));
    bar->setMovable(false);
    bar->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    bar->toggleViewAction()->setVisible(false); // it is always there
    // What doesn't fit is behind this button, which styles draw in black whatever the theme is.
    if (auto *more = bar->findChild<QToolButton *>(QStringLiteral("qt_toolbar_ext_button")))
        more->setIcon(themedIcon(QStringLiteral("more")));
    window->addToolBar(bar);
    return bar;
}

} // namespace

ToolBars::ToolBars(QMainWindow *window)
    : QObject(window)
    , m_window(window)
    , m_choices(addBar(window, tr("Main"), "mainToolBar"))
    , m_deeds(addBar(window, tr("State"), "stateToolBar"))
{
}

void ToolBars::addTool(QAction *action)
{
    m_choices->addAction(action);
    if (auto *button = qobject_cast<QToolButton *>(m_choices->widgetForAction(action)))
        m_toolButtons.push_back(button);
}

void ToolBars::addChoice(const QString &name, QWidget *choice, std::size_t spare)
{
    auto *label = new QLabel(name, m_choices);
    label->setBuddy(choice);
    label->setContentsMargins(label->fontMetrics().height() / 2, 0, 2, 0);
    QAction *named = m_choices->addWidget(label); // a tool bar's widgets are hidden by their actions alone
    m_names.insert(m_names.empty() ? m_names.end() : m_names.end() - 1, named);
    QAction *shown = m_choices->addWidget(choice);
    if (spare == 0)
        return;
    m_spare.resize(std::max(m_spare.size(), spare));
    m_spare[spare - 1] = shown;
}

void ToolBars::addDeed(QAction *action)
{
    m_deeds->addAction(action);
    if (auto *button = qobject_cast<QToolButton *>(m_deeds->widgetForAction(action)))
        m_deedButtons.push_back(button);
}

void ToolBars::addState(QWidget *state, int letters)
{
    auto *spacer = new QWidget(m_deeds);
    spacer->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    m_deeds->addWidget(spacer);
    m_deeds->addWidget(state);
    m_state = state;
    m_stateRoom = state->fontMetrics().averageCharWidth() * letters;
}

void ToolBars::setShown(bool shown)
{
    m_choices->setVisible(shown);
    m_deeds->setVisible(shown);
}

int ToolBars::needed(
    Qt::ToolButtonStyle tools, std::size_t unnamed, Qt::ToolButtonStyle deeds, std::size_t spared)
{
    for (std::size_t choice = 0; choice < m_spare.size(); ++choice)
        m_spare[choice]->setVisible(choice >= spared);
    for (QToolButton *button : m_toolButtons)
        button->setToolButtonStyle(tools);
    for (QToolButton *button : m_deedButtons)
        button->setToolButtonStyle(deeds);
    for (std::size_t name = 0; name < m_names.size(); ++name)
        m_names[name]->setVisible(name >= unnamed);
    m_choices->layout()->invalidate();
    m_deeds->layout()->invalidate();
    return m_choices->sizeHint().width() + m_deeds->sizeHint().width() - m_state->sizeHint().width()
        + m_stateRoom;
}

/// Words as far as there is room for them, icons instead where there isn't; names stay in tool tips and for
/// screen readers.
void ToolBars::choose(int width)
{
    if (needed(Qt::ToolButtonTextBesideIcon, 0, Qt::ToolButtonTextBesideIcon, 0) <= width)
        return;
    if (needed(Qt::ToolButtonIconOnly, 0, Qt::ToolButtonTextBesideIcon, 0) <= width)
        return;
    // A name says more than the word beside an icon.
    for (std::size_t unnamed = 0; unnamed <= m_names.size(); ++unnamed)
        if (needed(Qt::ToolButtonIconOnly, unnamed, Qt::ToolButtonIconOnly, 0) <= width)
            return;
    for (std::size_t spared = 1; spared <= m_spare.size(); ++spared)
        if (needed(Qt::ToolButtonIconOnly, m_names.size(), Qt::ToolButtonIconOnly, spared) <= width)
            return;
}

void ToolBars::fit()
{
    if (!m_state)
        return;
    const int width = m_window->width();
    m_state->setMaximumWidth(static_cast<int>(width * kStateShare));
    m_stateRoom = std::min(std::max(m_stateRoom, m_state->sizeHint().width()), m_state->maximumWidth());
    choose(width);
    m_deeds->layout()->invalidate();
    const int state = std::min(m_state->sizeHint().width(), m_state->maximumWidth());
    m_deeds->setMinimumWidth(m_deeds->sizeHint().width() - state + std::max(state, m_stateRoom));
}

void ToolBars::fitState()
{
    if (m_state && m_state->sizeHint().width() > m_stateRoom && m_stateRoom < m_state->maximumWidth())
        fit();
}

} // namespace planloom

#include "moc_tool_bars.cpp"
