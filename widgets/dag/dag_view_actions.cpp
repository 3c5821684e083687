// The canvas' actions: all that can be done by keyboard, menu and command palette.

#include "widgets/dag/dag_view.h"

#include "widgets/dag/dag_gesture_layer.h"

#include <QtGui/QAction>
#include <QtGui/QKeyEvent>

namespace planloom {

void DagView::createActions()
{
    const auto add = [this](const char *name, const QString &text, const QKeySequence &keys, auto &&act) {
        auto *action = new QAction(text, this);
        action->setObjectName(QLatin1String(name));
        action->setShortcut(keys);
        action->setShortcutContext(Qt::WidgetShortcut);
        connect(action, &QAction::triggered, this, act);
        addAction(action);
        return action;
    };
    add("dag.split", tr("Split…"), QKeySequence(Qt::Key_T), [this] { m_gestures->editSplit(SplitKind::Dimension); });
    add("dag.replicate", tr("Replicate…"), QKeySequence(Qt::SHIFT | Qt::Key_T),
        [this] { m_gestures->editSplit(SplitKind::Replicate); });
    add("dag.place", tr("Place…"), QKeySequence(Qt::Key_G), [this] { m_gestures->editPlace(); });
    add("dag.order", tr("Order…"), QKeySequence(Qt::Key_B), [this] { m_gestures->editOrder(); });
    add("dag.recompute", tr("Recompute On/Off"), QKeySequence(Qt::Key_R), [this] { m_gestures->recompute(); });
    add("dag.hold", tr("Hold Solver's Decision"), QKeySequence(Qt::Key_P), [this] { m_gestures->hold(); });
    add("dag.free", tr("Free Selection"), QKeySequence(Qt::SHIFT | Qt::Key_P), [this] { m_gestures->free(); });
    add("dag.stage", tr("Group as Stage…"), QKeySequence(Qt::CTRL | Qt::Key_G), [this] { m_gestures->editStage(); });
    add("dag.remove", tr("Remove Rows Acting Here"), QKeySequence(Qt::Key_Delete), [this] { m_gestures->free(); });
}

/// Shortcuts that reached the canvas as keys: where the window is not active, or another part of it has the same one.
bool DagView::triggerShortcut(const QKeyEvent &event)
{
    const QKeySequence pressed(event.keyCombination());
    for (QAction *action : actions()) {
        if (action->isEnabled() && action->shortcuts().contains(pressed)) {
            action->trigger();
            return true;
        }
    }
    return false;
}

} // namespace planloom
