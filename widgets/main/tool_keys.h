#pragma once

#include <QtCore/QObject>
#include <QtCore/QPointer>

#include "widgets/common/canvas_tool.h"

#include <array>
#include <functional>

class QAction;
class QActionGroup;
class QWidget;

namespace planloom {

/// Which tool the canvases have: one of three checkable actions. A tap on a tool's key stays with it; a key
/// that is held while something is dragged lends the tool for that drag, and the one before comes back when
/// the key is let go.
class ToolKeys : public QObject
{
    Q_OBJECT
public:
    explicit ToolKeys(QObject *parent = nullptr);

    /// Makes `action` the one of `tool`.
    void setAction(CanvasTool tool, QAction *action);
    QAction *action(CanvasTool tool) const { return m_actions[static_cast<std::size_t>(tool)]; }
    /// Keys and mouse buttons that come to `widget` count.
    void watch(QWidget *widget);
    CanvasTool tool() const { return m_tool; }
    void setTool(CanvasTool tool);

Q_SIGNALS:
    void toolChanged(planloom::CanvasTool tool);

protected:
    bool eventFilter(QObject *watched, QEvent *event) override;

private:
    QActionGroup *m_group;
    std::array<QPointer<QAction>, 3> m_actions{};
    CanvasTool m_tool = CanvasTool::Select;
    CanvasTool m_before = CanvasTool::Select; ///< The key was pressed.
    int m_pressed = 0; ///< Key that went down last and is not up yet.
    int m_held = 0; ///< Key that lends the tool; 0 for none.
    bool m_used = false; ///< A button went down meanwhile.
};

} // namespace planloom
