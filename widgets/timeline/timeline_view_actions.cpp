#include "widgets/timeline/timeline_view.h"

#include <QtGui/QAction>
#include <QtGui/QContextMenuEvent>
#include <QtWidgets/QMenu>

#include "widgets/timeline/timeline_line_editor.h"
#include "widgets/timeline/timeline_panel.h"

#include <algorithm>
#include <functional>
#include <tuple>

namespace planloom {

namespace {

struct ActionKind {
    const char *name;
    bool needsHost; ///< It changes the plan.
    bool needsSelection; ///< It is about the selected operators.
};

constexpr ActionKind kActions[] = {
    {"timeline.split", true, true},
    {"timeline.replicate", true, true},
    {"timeline.place", true, true},
    {"timeline.order", true, true},
    {"timeline.recompute", true, true},
    {"timeline.hold", true, true},
    {"timeline.free", true, true},
    {"timeline.removeRows", true, true},
    {"timeline.laneUp", true, true},
    {"timeline.laneDown", true, true},
    {"timeline.earlier", true, false},
    {"timeline.later", true, false},
    {"timeline.earlierOnly", true, false},
    {"timeline.laterOnly", true, false},
    {"timeline.moreInFlight", true, false},
    {"timeline.lessInFlight", true, false},
};

constexpr const char *kGrouping = "timeline.group"; ///< What the names of these actions begin with.
constexpr const char *kLaneHeights = "timeline.lanes"; ///< Likewise.

} // namespace

QAction *TimelineView::addViewAction(
    const char *name, const QString &text, const QKeySequence &key, std::function<void()> act)
{
    auto *action = new QAction(text, this);
    action->setObjectName(QLatin1String(name));
    action->setShortcut(key);
    action->setShortcutContext(Qt::WidgetShortcut);
    connect(action, &QAction::triggered, this, [act = std::move(act)] { act(); });
    addAction(action);
    m_actions[name] = action;
    return action;
}

void TimelineView::makeActions()
{
    const auto opens = [this](TimelineLine line) { return [this, line] { openLine(line); }; };
    addViewAction("timeline.split", tr("Split…"), Qt::Key_T, opens(TimelineLine::Split));
    addViewAction(
        "timeline.replicate", tr("Replicate…"), Qt::SHIFT | Qt::Key_T, opens(TimelineLine::Replicate));
    addViewAction("timeline.place", tr("Place…"), Qt::Key_G, opens(TimelineLine::Place));
    addViewAction("timeline.order", tr("Order…"), Qt::Key_B, opens(TimelineLine::Order));
    addViewAction("timeline.recompute", tr("Recompute On/Off"), Qt::Key_R, [this] {
        if (const auto context = m_gestures.host()->gestureContext())
            commitProposal(proposeRecompute(*context, selectedForward()));
    });
    addViewAction("timeline.hold", tr("Hold Solver's Decision"), Qt::Key_P, [this] {
        if (const auto context = m_gestures.host()->gestureContext())
            commitProposal(proposeHold(*context, selectedForward()));
    });
    addViewAction("timeline.free", tr("Free Selection"), Qt::SHIFT | Qt::Key_P, [this] {
        if (const auto context = m_gestures.host()->gestureContext())
            commitProposal(proposeFree(*context, selectedForward()));
    });
    addViewAction("timeline.removeRows", tr("Remove Rows Acting Here"), Qt::Key_Delete, [this] {
        if (const auto context = m_gestures.host()->gestureContext())
            commitProposal(proposeRemovingRows(*context, selectedForward()));
    });
    addViewAction("timeline.laneUp", tr("Move to the Lane Above"), Qt::SHIFT | Qt::Key_Up,
        [this] { moveLaneByKey(-1); });
    addViewAction("timeline.laneDown", tr("Move to the Lane Below"), Qt::SHIFT | Qt::Key_Down,
        [this] { moveLaneByKey(1); });
    addViewAction("timeline.earlier", tr("One Slot Earlier"), Qt::SHIFT | Qt::Key_Left,
        [this] { moveByKey(-1, false); });
    addViewAction(
        "timeline.later", tr("One Slot Later"), Qt::SHIFT | Qt::Key_Right, [this] { moveByKey(1, false); });
    addViewAction("timeline.earlierOnly", tr("One Slot Earlier, This Micro-batch Only"),
        Qt::ALT | Qt::SHIFT | Qt::Key_Left, [this] { moveByKey(-1, true); });
    addViewAction("timeline.laterOnly", tr("One Slot Later, This Micro-batch Only"),
        Qt::ALT | Qt::SHIFT | Qt::Key_Right, [this] { moveByKey(1, true); });
    addViewAction("timeline.earlierHeld", tr("One Slot Earlier, and Not Before That"),
        Qt::CTRL | Qt::SHIFT | Qt::Key_Left, [this] { moveByKey(-1, false, true); });
    addViewAction("timeline.laterHeld", tr("One Slot Later, and Not Behind That"),
        Qt::CTRL | Qt::SHIFT | Qt::Key_Right, [this] { moveByKey(1, false, true); });
    addViewAction(
        "timeline.sideBySide", tr("Beside the Next Block, or Apart"), Qt::SHIFT | Qt::Key_B, [this] {
            if (m_scene && m_gestures.host()) {
                m_gestures.pairBlock(
                    canvas(), m_focus.lane, static_cast<std::size_t>(std::max(m_focus.block, 0)));
                reportRefusal();
            }
        });
    addViewAction(
        "timeline.moreInFlight", tr("One Micro-batch More in Flight"), {}, [this] { changeBracketByKey(1); });
    addViewAction("timeline.lessInFlight", tr("One Micro-batch Less in Flight"), {},
        [this] { changeBracketByKey(-1); });
    QAction *communication =
        addViewAction("timeline.communication", tr("Show Communication"), Qt::Key_X, [] {});
    communication->setCheckable(true);
    communication->setChecked(true);
    connect(communication, &QAction::toggled, this, [this](bool on) {
        if (m_arrangement.communication == on)
            return;
        m_arrangement.communication = on;
        relayout();
        Q_EMIT viewStateChanged();
    });
    QAction *path = addViewAction("timeline.criticalPath", tr("Critical Path"), Qt::Key_K, [] {});
    path->setCheckable(true);
    connect(path, &QAction::toggled, this, &TimelineView::setCriticalPath);
    QAction *keep = addViewAction("timeline.keepOrder", tr("Keep Order of What Follows"), {}, [] {});
    keep->setCheckable(true);
    keep->setToolTip(tr("What follows a block or operator that is moved keeps its order: rows are added for "
                        "what would not. Otherwise it "
                        "closes the gaps"));
    connect(keep, &QAction::toggled, this, [this](bool on) {
        setFollowersPolicy(on ? FollowersPolicy::KeepOrder : FollowersPolicy::CloseGaps);
    });
    QAction *unit = addViewAction("timeline.pinUnit", tr("Pin Repeating Unit"), Qt::Key_U, [] {});
    unit->setCheckable(true);
    unit->setToolTip(
        tr("Blocks that are moved go along in every unit of the schedule that repeats: the whole "
           "order becomes a row. With Alt one moves alone"));
    connect(unit, &QAction::toggled, this, &TimelineView::pinUnit);
    addViewAction(
        "timeline.whyIdle", tr("Why Is This Idle?"), Qt::CTRL | Qt::Key_E, [this] { explainIdle(); });
    addViewAction("timeline.idleTimes", tr("Where the Idle Time Goes"), Qt::CTRL | Qt::ALT | Qt::Key_I,
        [this] { showIdleTimes(); });
    addViewAction("timeline.whatIf", tr("What If This Took No Time?"), Qt::Key_0, [this] { askWhatIf(); });
    addViewAction("timeline.listUnder", tr("List What Is Here"), Qt::Key_L, [this] { listFocus(); });
    addViewAction("timeline.copy", tr("Copy Figures as Text"), QKeySequence::Copy, [this] { copyPanel(); });
    addViewAction("timeline.pin", tr("Pin Lane"), Qt::SHIFT | Qt::Key_F2, [this] { pinLane(); });
    addViewAction("timeline.laneEarlier", tr("Show Lane Higher"), Qt::ALT | Qt::SHIFT | Qt::Key_Up,
        [this] { shiftLane(-1); });
    addViewAction("timeline.laneLater", tr("Show Lane Lower"), Qt::ALT | Qt::SHIFT | Qt::Key_Down,
        [this] { shiftLane(1); });
    addViewAction("timeline.unfold", tr("Expand/Collapse Lane"), Qt::Key_E, [this] { unfoldLane(); });
    for (const auto &[name, text, grouping] :
        {std::tuple{"timeline.groupAutomatic", tr("Group Lanes as Fits"), LaneGrouping::Automatic},
            {"timeline.groupByStage", tr("Group Lanes by Stage"), LaneGrouping::Stage},
            {"timeline.groupByHost", tr("Group Lanes by Host"), LaneGrouping::Host},
            {"timeline.groupByReplica", tr("Group Lanes by Replica"), LaneGrouping::Replica},
            {"timeline.groupNone", tr("Lanes without Groups"), LaneGrouping::None}}) {
        QAction *action = addViewAction(name, text, {}, [this, wanted = grouping] {
            LaneArrangement arrangement = m_arrangement;
            arrangement.grouping = wanted;
            setArrangement(std::move(arrangement));
        });
        action->setCheckable(true);
        action->setData(static_cast<int>(grouping));
    }
    for (const auto &[name, text, key, laneHeight] :
        {std::tuple{"timeline.lanesFull", tr("Full Lanes"), QKeySequence(), LaneHeight::Full},
            {"timeline.lanesCompact", tr("Compact Lanes"), QKeySequence(), LaneHeight::Compact},
            {"timeline.lanesFit", tr("Fit All Devices"), QKeySequence(Qt::SHIFT | Qt::Key_Home),
                LaneHeight::Fit}}) {
        QAction *action = addViewAction(name, text, key, [this, wanted = laneHeight] {
            LaneArrangement arrangement = m_arrangement;
            // The key takes back what it did.
            const bool isFitted = std::exchange(arrangement.zoom, 1) == 1 && wanted == LaneHeight::Fit;
            arrangement.laneHeight = isFitted && arrangement.laneHeight == wanted ? LaneHeight::Full : wanted;
            setArrangement(std::move(arrangement));
        });
        action->setCheckable(true);
        action->setData(static_cast<int>(laneHeight));
    }
    addViewAction("timeline.filter", tr("Filter Lanes…"), Qt::Key_Slash,
        [this] { m_line->openFilter(QString::fromStdString(m_arrangement.filter)); });
    addViewAction("timeline.showAllLanes", tr("Show All Lanes"), {}, [this] {
        LaneArrangement arrangement = m_arrangement;
        arrangement.filter.clear();
        arrangement.collapsed.clear();
        setArrangement(std::move(arrangement));
    });
    syncActions();
    updateActions();
}

void TimelineView::syncActions()
{
    m_actions.at("timeline.communication")->setChecked(m_arrangement.communication);
    for (const auto &[name, action] : m_actions) {
        if (name.starts_with(kGrouping))
            action->setChecked(action->data().toInt() == static_cast<int>(m_arrangement.grouping));
        if (name.starts_with(kLaneHeights))
            action->setChecked(action->data().toInt() == static_cast<int>(m_arrangement.laneHeight));
    }
    m_actions.at("timeline.keepOrder")->setChecked(followersPolicy() == FollowersPolicy::KeepOrder);
    m_actions.at("timeline.criticalPath")->setChecked(m_criticalPath);
}

void TimelineView::updateActions()
{
    const bool host = m_gestures.host() && m_gestures.host()->gestureContext() && m_scene;
    const bool selected = !m_selection->selected().empty();
    for (const ActionKind &kind : kActions)
        m_actions.at(kind.name)->setEnabled((!kind.needsHost || host) && (!kind.needsSelection || selected));
    const bool bracket = m_focus.valid() && m_focus.part == LanePart::Bracket;
    for (const char *name : {"timeline.moreInFlight", "timeline.lessInFlight"})
        m_actions.at(name)->setEnabled(host && bracket);
    for (const char *name :
        {"timeline.earlier", "timeline.later", "timeline.earlierOnly", "timeline.laterOnly"})
        m_actions.at(name)->setEnabled(host && (m_focus.valid() || selected));
    for (const char *name : {"timeline.pin", "timeline.unfold", "timeline.laneEarlier", "timeline.laneLater"})
        m_actions.at(name)->setEnabled(m_scene && m_focus.valid());
    m_actions.at("timeline.whyIdle")
        ->setEnabled(m_scene && m_focus.valid() && m_focus.part == LanePart::Idle);
    m_actions.at("timeline.pinUnit")->setEnabled(host && (m_gestures.pinnedUnit() > 0 || unitOfScene() > 0));
    m_actions.at("timeline.whatIf")->setEnabled(canAskWhatIf());
    m_actions.at("timeline.listUnder")->setEnabled(m_scene && m_focus.valid());
    m_actions.at("timeline.copy")->setEnabled(m_panel->isVisible());
    for (const char *name :
        {"timeline.idleTimes", "timeline.filter", "timeline.showAllLanes", "timeline.groupAutomatic",
            "timeline.groupByStage", "timeline.groupByHost", "timeline.groupByReplica", "timeline.groupNone",
            "timeline.lanesFull", "timeline.lanesCompact", "timeline.lanesFit"})
        m_actions.at(name)->setEnabled(m_scene != nullptr);
}

std::vector<OperatorId> TimelineView::selectedForward() const
{
    const auto context = m_gestures.host() ? m_gestures.host()->gestureContext() : nullptr;
    return context ? forwardOperators(context->graph(), m_selection->selected()) : std::vector<OperatorId>{};
}

void TimelineView::openLine(TimelineLine line)
{
    const auto context = m_gestures.host() ? m_gestures.host()->gestureContext() : nullptr;
    const auto operators = selectedForward();
    if (!context || !m_scene)
        return;
    if (operators.empty()) {
        Q_EMIT refused(tr("select an operator of the forward or backward pass first"));
        return;
    }
    abandonHand();
    m_line->open(line, context, operators);
}

void TimelineView::closeLine()
{
    const bool hadFocus = m_line->isVisible();
    m_line->hide();
    if (hadFocus)
        setFocus(Qt::OtherFocusReason);
    viewport()->update();
}

void TimelineView::commitProposal(const Proposal &proposal)
{
    m_gestures.commit(proposal);
    reportRefusal();
}

void TimelineView::pinLane()
{
    if (!m_focus.valid())
        return;
    LaneArrangement arrangement = m_arrangement;
    if (arrangement.pinned.erase(m_focus.lane) == 0)
        arrangement.pinned.insert(m_focus.lane);
    setArrangement(std::move(arrangement));
}

void TimelineView::shiftLane(int by)
{
    const std::int32_t row = rowOfDevice(m_rows, DeviceId{m_focus.lane});
    const std::int32_t beside = row < 0 ? -1 : deviceRowBeside(m_rows, row, by);
    if (beside < 0)
        return;
    setArrangement(withRowMoved(m_arrangement, m_rows, static_cast<std::size_t>(row),
        static_cast<std::size_t>(by < 0 ? beside : beside + 1)));
    reveal(m_focus);
}

void TimelineView::unfoldLane()
{
    const std::int32_t row = rowOfDevice(m_rows, DeviceId{m_focus.lane});
    if (row >= 0 && m_rows[static_cast<std::size_t>(row)].foldable) {
        setExpanded(shown()->lanes[static_cast<std::size_t>(m_focus.lane)].symmetryClass,
            !m_rows[static_cast<std::size_t>(row)].expanded);
    }
}

void TimelineView::contextMenuEvent(QContextMenuEvent *event)
{
    if (m_hand != Hand::None || !m_scene)
        return;
    QPoint position = event->pos();
    if (event->reason() == QContextMenuEvent::Mouse) {
        // The menu is about what it is opened on.
        const TimelineHit hit = hitTest(position);
        const bool other =
            hit.span >= 0 && !m_selection->contains(shown()->operatorOf(static_cast<std::size_t>(hit.span)));
        if (hit.row >= 0
            && (other || hit.part == HitPart::Block || hit.part == HitPart::Idle
                || hit.part == HitPart::Bracket)) {
            if (hit.part != HitPart::Group && hit.part != HitPart::Header && hit.part != HitPart::LaneEdge)
                clickOn(hit, position, Qt::NoModifier);
        } else if (hit.row >= 0 && m_rows[static_cast<std::size_t>(hit.row)].kind == TimelineRow::Kind::Device
            && (hit.part == HitPart::Header || hit.part == HitPart::LaneEdge)) {
            focusOn({m_rows[static_cast<std::size_t>(hit.row)].lane, LanePart::Block, 0, -1}, false);
        }
    }
    auto *menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    QMenu *groups = nullptr;
    QMenu *heights = nullptr;
    int block = -1;
    // In the order in which they were made: by what they are about, with a line between.
    for (QAction *action : actions()) {
        const QString name = action->objectName();
        const int group = action->isEnabled() && name.contains(QLatin1String("Only")) ? 1
            : m_actions.at("timeline.communication") == action                        ? 2
                                                                                      : 0;
        if (!action->isEnabled() || name.startsWith(QLatin1String("dag."))) // here for its key alone
            continue;
        if (name.startsWith(QLatin1String(kGrouping))) {
            if (!groups)
                groups = menu->addMenu(tr("Group Lanes"));
            groups->addAction(action);
            continue;
        }
        if (name.startsWith(QLatin1String(kLaneHeights))) {
            if (!heights)
                heights = menu->addMenu(tr("Lane Height"));
            heights->addAction(action);
            continue;
        }
        if (block >= 0 && group == 2)
            menu->addSeparator();
        block = group;
        menu->addAction(action);
    }
    menu->popup(event->globalPos());
}

} // namespace planloom
