// The canvas' actions: all that can be done by keyboard, menu and command palette.

#include "widgets/dag/dag_view.h"

#include "engine/gesture/selection.h"

#include "widgets/dag/dag_cone_bar.h"
#include "widgets/dag/dag_gesture_layer.h"

#include <QtGui/QAction>
#include <QtGui/QKeyEvent>

namespace planloom {

namespace {

/// Property of actions that a window may have under the same key for all its views: a shortcut of the canvas'
/// own would be ambiguous there, so its keys count only where they come as keys.
constexpr const char *kKeys = "planloom.keys";

} // namespace

void DagView::createActions()
{
    const auto add = [this](const char *name, const QString &text, const QKeySequence &keys, auto &&act) {
        auto *action = new QAction(text, this);
        action->setObjectName(QLatin1String(name));
        action->setShortcut(keys);
        action->setShortcutContext(Qt::WidgetShortcut);
        connect(action, &QAction::triggered, this, act);
        action->setProperty("planloom.plan", true); // of the Plan menu
        addAction(action);
        return action;
    };
    add("dag.split", tr("Split…"), QKeySequence(Qt::Key_T),
        [this] { m_gestures->editSplit(SplitKind::Dimension); });
    add("dag.replicate", tr("Replicate…"), QKeySequence(Qt::SHIFT | Qt::Key_T),
        [this] { m_gestures->editSplit(SplitKind::Replicate); });
    add("dag.place", tr("Place…"), QKeySequence(Qt::Key_G), [this] { m_gestures->editPlace(); });
    add("dag.order", tr("Order…"), QKeySequence(Qt::Key_B), [this] { m_gestures->editOrder(); });
    add("dag.nextOrder", tr("Next Order Arrow"), QKeySequence(Qt::Key_O),
        [this] { m_gestures->focusOrder(1); });
    add("dag.previousOrder", tr("Previous Order Arrow"), QKeySequence(Qt::SHIFT | Qt::Key_O),
        [this] { m_gestures->focusOrder(-1); });
    add("dag.editOrder", tr("Edit This Order…"), {}, [this] { m_gestures->editOrderRow(); });
    add("dag.recompute", tr("Recompute On/Off"), QKeySequence(Qt::Key_R),
        [this] { m_gestures->recompute(); });
    add("dag.hold", tr("Hold Solver's Decision"), QKeySequence(Qt::Key_P), [this] { m_gestures->hold(); });
    add("dag.free", tr("Free Selection"), QKeySequence(Qt::SHIFT | Qt::Key_P),
        [this] { m_gestures->free(); });
    add("dag.stage", tr("Group as Stage…"), QKeySequence(Qt::CTRL | Qt::Key_G),
        [this] { m_gestures->editStage(); });
    add("dag.remove", tr("Remove Rows Acting Here"), QKeySequence(Qt::Key_Delete),
        [this] { m_gestures->free(); });
}

void DagView::createViewActions()
{
    const auto add = [this](
                         const char *name, const QString &text, const QList<QKeySequence> &keys, auto &&act) {
        auto *action = new QAction(text, this);
        action->setObjectName(QLatin1String(name));
        action->setShortcuts(keys);
        action->setShortcutContext(Qt::WidgetShortcut);
        connect(action, &QAction::triggered, this, act);
        addAction(action);
        return action;
    };
    const auto keyed = [&add](const QKeySequence &keys, const char *name, const QString &text, auto &&act) {
        add(name, text, {}, act)->setProperty(kKeys, keys);
    };
    add("dag.toggle", tr("Expand/Collapse"), {Qt::Key_E}, [this] { toggleFocused(); });
    add("dag.expandOneLevel", tr("Expand One Level"), {Qt::SHIFT | Qt::Key_E}, [this] { expandOneLevel(); });
    add("dag.expandAll", tr("Expand All"), {}, [this] { expandAll(); });
    add("dag.collapseAll", tr("Collapse All"), {}, [this] { collapseAll(); });
    add("dag.fitAll", tr("Fit All"), {Qt::Key_Home}, [this] { fitAll(); });
    add("dag.focusSelection", tr("Focus Selection"), {Qt::Key_F}, [this] {
        remember();
        fitSelection();
    });
    add("dag.zoomIn", tr("Zoom In"), {Qt::Key_Plus, Qt::Key_Equal}, [this] { zoomBy(1.25); });
    add("dag.zoomOut", tr("Zoom Out"), {Qt::Key_Minus}, [this] { zoomBy(1 / 1.25); });
    add("dag.back", tr("Back"), {Qt::ALT | Qt::Key_Left}, [this] { goBack(); });
    add("dag.forward", tr("Forward"), {Qt::ALT | Qt::Key_Right}, [this] { goForward(); });
    add("dag.flow", tr("Horizontal/Vertical"), {}, [this] { toggleFlow(); });
    keyed(Qt::Key_C, "dag.nextColour", tr("Next Colouring"),
        [this] { setColourBy(static_cast<ColourBy>((static_cast<int>(m_colourBy) + 1) % kColourByCount)); });
    keyed(Qt::CTRL | Qt::Key_A, "dag.selectAll", tr("Select All"), [this] {
        if (m_picture)
            m_selection->select(allOperators(*m_graph));
    });
    keyed(Qt::CTRL | Qt::SHIFT | Qt::Key_A, "dag.selectSimilar", tr("Select Similar"),
        [this] { selectSimilar(); });
    add("dag.sameDevice", tr("Select Same Device"), {}, [this] { selectSameDevice(); });
    add("dag.sameStage", tr("Select Same Stage"), {}, [this] { selectSameStage(); });
    add("dag.predecessors", tr("Select Predecessors"),
        {Qt::SHIFT | Qt::Key_BracketLeft, Qt::SHIFT | Qt::Key_BraceLeft}, [this] { selectCone(false); });
    add("dag.successors", tr("Select Successors"),
        {Qt::SHIFT | Qt::Key_BracketRight, Qt::SHIFT | Qt::Key_BraceRight}, [this] { selectCone(true); });
    add("dag.coneNarrower", tr("Fewer Steps of the Cone"), {Qt::ALT | Qt::Key_BracketLeft},
        [this] { m_coneBar->step(-1); });
    add("dag.coneWider", tr("More Steps of the Cone"), {Qt::ALT | Qt::Key_BracketRight},
        [this] { m_coneBar->step(1); });
    keyed(Qt::CTRL | Qt::Key_I, "dag.invert", tr("Invert Selection"), [this] { invertSelection(); });
    add("dag.selectNone", tr("Select None"), {}, [this] { m_selection->clear(); });
    add("dag.walkBack", tr("Walk to What It Uses"), {Qt::Key_BracketLeft}, [this] { walkEdge(false); });
    add("dag.walkForward", tr("Walk to What Uses It"), {Qt::Key_BracketRight}, [this] { walkEdge(true); });
    add("dag.find", tr("Find Operators…"), {}, [this] { openFind(); });
    add("dag.findNext", tr("Find Next Operator"), {}, [this] { findNext(); });
    add("dag.findPrevious", tr("Find Previous Operator"), {}, [this] { findPrevious(); });
    add("dag.selectMatches", tr("Select What Was Found"), {}, [this] { selectMatches(); });
    add("dag.rowFromMatches", tr("Make a Row from What Was Found…"), {}, [this] { askRowFromMatches(); });
    add("dag.filterLikeSelection", tr("Show Only This Colour"), {}, [this] { filterLikeFocus(); });
    add("dag.relayout", tr("Relayout Here"), {}, [this] { relayoutHere(); });
    add("dag.bookmark", tr("Bookmark Here"), {Qt::CTRL | Qt::Key_M}, [this] { setBookmark(); });
    for (int number = 1; number <= 9; ++number) {
        add(qPrintable(QStringLiteral("dag.bookmark%1").arg(number)), tr("Go to Bookmark %1").arg(number),
            {QKeySequence(Qt::ALT | static_cast<Qt::Key>(Qt::Key_0 + number))},
            [this, number] { goToBookmark(number); });
    }
}

/// By keyboard what a click on the legend does: the colours of the focused box alone; all again where they
/// are shown alone.
void DagView::filterLikeFocus()
{
    if (!m_picture || m_focused <= 0)
        return;
    std::set<std::int32_t> keys;
    for (const auto &share : colours().boxes[static_cast<std::size_t>(m_focused)].shares) {
        if (share.key >= 0)
            keys.insert(share.key);
    }
    setLegendFilter(keys == m_filter ? std::set<std::int32_t>{} : std::move(keys));
}

/// Shortcuts that reached the canvas as keys: where the window is not active, or for actions that a window
/// has its own of, and with them the shortcut.
bool DagView::triggerShortcut(const QKeyEvent &event)
{
    const QKeySequence pressed(event.keyCombination());
    for (QAction *action : actions()) {
        const bool own =
            action->shortcuts().contains(pressed) || action->property(kKeys).value<QKeySequence>() == pressed;
        if (action->isEnabled() && own) {
            action->trigger();
            return true;
        }
    }
    return false;
}

} // namespace planloom
