#include "widgets/main/tool_keys.h"

#include <QtGui/QAction>
#include <QtGui/QActionGroup>
#include <QtGui/QKeyEvent>
#include <QtWidgets/QWidget>

#include <algorithm>

namespace planloom {

ToolKeys::ToolKeys(QObject *parent)
    : QObject(parent)
    , m_group(new QActionGroup(this))
{
}

void ToolKeys::setAction(CanvasTool tool, QAction *action)
{
    m_actions[static_cast<std::size_t>(tool)] = action;
    action->setCheckable(true);
    action->setChecked(tool == m_tool);
    action->setAutoRepeat(false); // a key that is held is one press
    m_group->addAction(action);
    connect(action, &QAction::triggered, this, [this, tool, action] {
        const auto keys = action->shortcuts();
        const bool byKey = m_pressed != 0
            && std::any_of(keys.begin(), keys.end(),
                [this](const QKeySequence &each) { return each.count() == 1 && each[0].key() == m_pressed; });
        if (byKey && m_held == 0) {
            m_held = m_pressed;
            m_before = m_tool;
            m_used = false;
        }
        setTool(tool);
    });
}

void ToolKeys::watch(QWidget *widget)
{
    widget->installEventFilter(this);
}

void ToolKeys::setTool(CanvasTool tool)
{
    if (QAction *action = this->action(tool))
        action->setChecked(true);
    if (tool == m_tool)
        return;
    m_tool = tool;
    Q_EMIT toolChanged(tool);
}

bool ToolKeys::eventFilter(QObject *watched, QEvent *event)
{
    switch (event->type()) {
    case QEvent::ShortcutOverride: // comes before the shortcut
        if (!static_cast<QKeyEvent *>(event)->isAutoRepeat())
            m_pressed = static_cast<QKeyEvent *>(event)->key();
        break;
    case QEvent::MouseButtonPress:
        m_used = true;
        break;
    case QEvent::FocusOut:
    case QEvent::KeyRelease: {
        const bool left = event->type() == QEvent::FocusOut;
        if (!left && static_cast<QKeyEvent *>(event)->isAutoRepeat())
            break;
        if (left || static_cast<QKeyEvent *>(event)->key() == m_held) {
            if (m_held != 0 && m_used)
                setTool(m_before);
            m_held = 0;
        }
        m_pressed = 0;
        break;
    }
    default:
        break;
    }
    return QObject::eventFilter(watched, event);
}

} // namespace planloom

#include "moc_tool_keys.cpp"
