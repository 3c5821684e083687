#include "widgets/timeline/timeline_view.h"

#include <QtGui/QKeyEvent>
#include <QtWidgets/QScrollBar>

#include "widgets/timeline/timeline_line_editor.h"
#include "widgets/timeline/timeline_panel.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr double kKeyZoom = 1.2;
constexpr double kPanShare = 0.15; ///< Of the width, for A and D.

} // namespace

bool TimelineView::keyDuringGesture(QKeyEvent *event)
{
    if (m_hand == Hand::None)
        return false;
    if (event->key() == Qt::Key_Escape) {
        abandonHand();
        return true;
    }
    if (!m_gestures.dragging())
        return false;
    if (event->key() == Qt::Key_Shift || event->key() == Qt::Key_Alt) {
        Qt::KeyboardModifiers modifiers = m_dragModifiers;
        modifiers.setFlag(event->key() == Qt::Key_Shift ? Qt::ShiftModifier : Qt::AltModifier,
            event->type() == QEvent::KeyPress);
        dragTo(m_dragged, modifiers);
        return true;
    }
    if (event->key() >= Qt::Key_1 && event->key() <= Qt::Key_9
        && m_gestures.digit(canvas(), event->key() - Qt::Key_0)) {
        dragTo(m_dragged, m_dragModifiers);
        return true;
    }
    if (event->type() == QEvent::KeyPress && event->key() == Qt::Key_O && !event->isAutoRepeat()) {
        m_gestures.toggleRowsInTheWay();
        viewport()->update();
    }
    return true; // no other key means anything while the hand holds something
}

bool TimelineView::event(QEvent *event)
{
    // Letters and arrows are the canvas' own while something is dragged: no shortcut of a window takes them.
    if (event->type() == QEvent::ShortcutOverride && (m_hand != Hand::None)) {
        event->accept();
        return true;
    }
    return QAbstractScrollArea::event(event);
}

void TimelineView::keyPressEvent(QKeyEvent *event)
{
    if (keyDuringGesture(event))
        return;
    const double pan = kPanShare * canvasWidth() * m_axis.nanosecondsPerPixel;
    const double middle =
        m_pointer.x() >= m_metrics.header ? m_pointer.x() - m_metrics.header : canvasWidth() / 2;
    const bool plain = !(event->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier));
    TimeAxis axis = m_axis;
    if (!plain) {
        QAbstractScrollArea::keyPressEvent(event);
        return;
    }
    switch (event->key()) {
    case Qt::Key_W:
        zoomAt(kKeyZoom, middle);
        return;
    case Qt::Key_S:
        zoomAt(1 / kKeyZoom, middle);
        return;
    case Qt::Key_A:
    case Qt::Key_D:
        axis.origin += event->key() == Qt::Key_A ? -pan : pan;
        m_fitted = false;
        moveAxis(clamped(axis, extent(), canvasWidth()));
        return;
    case Qt::Key_Home:
        fitAll();
        return;
    case Qt::Key_F:
        focusSelection();
        return;
    case Qt::Key_Left:
        stepFocus(-1);
        return;
    case Qt::Key_Right:
        stepFocus(1);
        return;
    case Qt::Key_Up:
        stepFocusVertically(-1);
        return;
    case Qt::Key_Down:
        stepFocusVertically(1);
        return;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        if (m_focus.part == LanePart::Bracket && m_focus.valid())
            changeBracketByKey(1);
        else
            zoomIn();
        return;
    case Qt::Key_Minus:
        if (m_focus.part == LanePart::Bracket && m_focus.valid())
            changeBracketByKey(-1);
        else
            zoomOut();
        return;
    case Qt::Key_Space:
        if (!event->isAutoRepeat()) {
            m_spaceHeld = true;
            updateCursor(m_hover.hit);
        }
        return;
    case Qt::Key_M:
        if (!event->isAutoRepeat()) {
            m_measureHeld = true;
            updateCursor(m_hover.hit);
        }
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_focus.valid() && m_focus.part == LanePart::Idle)
            explainIdle();
        return;
    case Qt::Key_Escape:
        if (m_measuredTimes || m_shownTime || m_panel->isVisible()) {
            m_measuredTimes.reset();
            clearTime();
            hidePanel();
            return;
        }
        m_selection->clear();
        return;
    default:
        QAbstractScrollArea::keyPressEvent(event);
    }
}

void TimelineView::keyReleaseEvent(QKeyEvent *event)
{
    if (event->key() == Qt::Key_Space && !event->isAutoRepeat())
        m_spaceHeld = false;
    if (event->key() == Qt::Key_M && !event->isAutoRepeat())
        m_measureHeld = false;
    if (m_hand != Hand::None && m_gestures.dragging()
        && (event->key() == Qt::Key_Shift || event->key() == Qt::Key_Alt)) {
        keyDuringGesture(event);
        return;
    }
    if (m_hand == Hand::None)
        updateCursor(m_hover.hit);
    QAbstractScrollArea::keyReleaseEvent(event);
}

void TimelineView::focusInEvent(QFocusEvent *event)
{
    QAbstractScrollArea::focusInEvent(event);
    if (!m_focus.valid() && m_scene && !m_selected.empty()) {
        const std::size_t row = m_selected.front();
        const std::int32_t device = shown()->timeline->spans.device[row];
        const DeviceLane &lane = shown()->lanes[static_cast<std::size_t>(device)];
        if (row < lane.compute.end)
            m_focus = {device, LanePart::Span, lane.blockOf(row), static_cast<std::int64_t>(row)};
    }
    viewport()->update();
}

void TimelineView::focusOutEvent(QFocusEvent *event)
{
    QAbstractScrollArea::focusOutEvent(event);
    m_spaceHeld = m_measureHeld = false;
    viewport()->update();
}

void TimelineView::selectSpan(std::int64_t span, Qt::KeyboardModifiers modifiers)
{
    const OperatorId op = span >= 0 ? shown()->operatorOf(static_cast<std::size_t>(span)) : OperatorId{};
    const bool adding = modifiers & (Qt::ControlModifier | Qt::ShiftModifier);
    if (!op.valid()) {
        if (!adding)
            m_selection->clear();
        return;
    }
    if (adding)
        m_selection->toggle({op});
    else
        m_selection->select({op});
    Q_EMIT operatorActivated(op);
}

void TimelineView::selectBlock(std::int32_t lane, std::int32_t block, Qt::KeyboardModifiers modifiers)
{
    const auto &blocks = shown()->lanes[static_cast<std::size_t>(lane)].blocks;
    if (block < 0 || static_cast<std::size_t>(block) >= blocks.size())
        return;
    const auto operators = operatorsOf(*shown(), blocks[static_cast<std::size_t>(block)]);
    if (modifiers & (Qt::ControlModifier | Qt::ShiftModifier))
        m_selection->toggle(operators);
    else
        m_selection->select(operators);
}

void TimelineView::focusOn(const TimelineFocus &focus, bool select)
{
    m_focus = focus;
    m_idleTime = -1;
    if (select && focus.part == LanePart::Block)
        selectBlock(focus.lane, focus.block, Qt::NoModifier);
    else if (select && (focus.part == LanePart::Span || focus.part == LanePart::Communication))
        selectSpan(focus.span, Qt::NoModifier);
    reveal(focus);
    announceFocus();
    updateActions();
    viewport()->update();
}

void TimelineView::stepFocus(int direction)
{
    if (!m_scene || m_rows.empty())
        return;
    TimelineFocus focus = m_focus;
    if (!focus.valid()) {
        const std::int32_t row = deviceRowBeside(m_rows, -1, 1);
        if (row < 0)
            return;
        const std::int32_t lane = m_rows[static_cast<std::size_t>(row)].lane;
        std::int64_t span =
            static_cast<std::int64_t>(shown()->lanes[static_cast<std::size_t>(lane)].compute.begin);
        if (!m_selected.empty())
            span = static_cast<std::int64_t>(m_selected.front());
        const std::int32_t of = shown()->timeline->spans.device[static_cast<std::size_t>(span)];
        focusOn(
            {of,
                shown()->timeline->spans.queue[static_cast<std::size_t>(span)] == QueueKind::Compute
                    ? LanePart::Span
                    : LanePart::Communication,
                shown()->lanes[static_cast<std::size_t>(of)].blockOf(static_cast<std::size_t>(span)), span},
            true);
        return;
    }
    const DeviceLane &lane = shown()->lanes[static_cast<std::size_t>(focus.lane)];
    const auto blocks = static_cast<std::int32_t>(lane.blocks.size());
    switch (focus.part) {
    case LanePart::Bracket:
        return;
    case LanePart::Block:
    case LanePart::Idle: {
        // Blocks and the pauses between them, one after the other.
        const auto idleBefore = [&](std::int32_t block) {
            const std::int64_t begin = lane.endBefore(static_cast<std::size_t>(block));
            const std::int64_t end = block < blocks ? lane.blocks[static_cast<std::size_t>(block)].begin
                                                    : shown()->timeline->step.count();
            return end > begin;
        };
        if (focus.part == LanePart::Idle) {
            const std::int32_t block = direction > 0 ? focus.block : focus.block - 1;
            if (block >= 0 && block < blocks)
                focusOn({focus.lane, LanePart::Block, block, -1}, true);
            return;
        }
        const std::int32_t pause = direction > 0 ? focus.block + 1 : focus.block;
        if (idleBefore(pause)) {
            focusOn({focus.lane, LanePart::Idle, pause, -1}, false);
            return;
        }
        const std::int32_t next = focus.block + direction;
        if (next >= 0 && next < blocks)
            focusOn({focus.lane, LanePart::Block, next, -1}, true);
        return;
    }
    case LanePart::Span:
    case LanePart::Communication: {
        const LaneRows rows =
            lane.rowsOf(shown()->timeline->spans.queue[static_cast<std::size_t>(focus.span)]);
        const std::int64_t next = focus.span + direction;
        if (next < static_cast<std::int64_t>(rows.begin) || next >= static_cast<std::int64_t>(rows.end))
            return;
        focus.span = next;
        focus.block = lane.blockOf(static_cast<std::size_t>(next)); // -1 for communication
        focusOn(focus, true);
        return;
    }
    }
}

namespace {

/// One of the things of a lane that stand one below the other.
struct Level {
    LanePart part = LanePart::Block;
    QueueKind queue = QueueKind::Compute; ///< Of Span and Communication.
    friend bool operator==(const Level &, const Level &) = default;
};

/// From the top of a lane to its bottom: bracket, blocks, operators, a track for each queue.
std::vector<Level> levelsOf(const TimelineRow &row, const DeviceLane &lane)
{
    std::vector<Level> levels;
    if (row.bracket > 0)
        levels.push_back({LanePart::Bracket});
    if (!lane.blocks.empty())
        levels.push_back({LanePart::Block});
    for (int q = 0; q < kQueueCount; ++q) {
        const auto queue = static_cast<QueueKind>(q);
        const LaneRows rows = lane.rowsOf(queue);
        if (rows.begin < rows.end && row.placeOf(queue))
            levels.push_back({queue == QueueKind::Compute ? LanePart::Span : LanePart::Communication, queue});
    }
    return levels;
}

} // namespace

void TimelineView::stepFocusVertically(int direction)
{
    if (!m_scene || m_rows.empty())
        return;
    if (!m_focus.valid()) {
        stepFocus(1);
        return;
    }
    const std::int32_t row = rowOfDevice(m_rows, DeviceId{m_focus.lane});
    if (row < 0)
        return;
    const DeviceLane &lane = shown()->lanes[static_cast<std::size_t>(m_focus.lane)];
    double time = m_axis.timeAt(canvasWidth() / 2);
    const SpanColumns &spans = shown()->timeline->spans;
    if (m_focus.span >= 0)
        time = static_cast<double>(spans.start[static_cast<std::size_t>(m_focus.span)]);
    else if (m_focus.block >= 0 && static_cast<std::size_t>(m_focus.block) < lane.blocks.size())
        time = static_cast<double>(lane.blocks[static_cast<std::size_t>(m_focus.block)].begin);
    Level own{m_focus.part == LanePart::Idle ? LanePart::Block : m_focus.part};
    if (m_focus.span >= 0)
        own.queue = spans.queue[static_cast<std::size_t>(m_focus.span)];
    // The next level of this lane, else the first of the next lane that has any.
    std::int32_t at = row;
    std::vector<Level> levels = levelsOf(m_rows[static_cast<std::size_t>(at)], lane);
    auto level = static_cast<std::ptrdiff_t>(std::find(levels.begin(), levels.end(), own) - levels.begin());
    level += direction;
    while (level < 0 || level >= static_cast<std::ptrdiff_t>(levels.size())) {
        at = deviceRowBeside(m_rows, at, direction);
        if (at < 0)
            return;
        const TimelineRow &next = m_rows[static_cast<std::size_t>(at)];
        levels = levelsOf(next, shown()->lanes[static_cast<std::size_t>(next.lane)]);
        level = direction > 0 ? 0 : static_cast<std::ptrdiff_t>(levels.size()) - 1;
    }
    const Level to = levels[static_cast<std::size_t>(level)];
    const std::int32_t target = m_rows[static_cast<std::size_t>(at)].lane;
    const DeviceLane &there = shown()->lanes[static_cast<std::size_t>(target)];
    if (to.part == LanePart::Bracket) {
        focusOn({target, LanePart::Bracket, -1, -1}, false);
    } else if (to.part == LanePart::Block) {
        const std::size_t block = std::min(there.firstBlockEndingAfter(time), there.blocks.size() - 1);
        focusOn({target, LanePart::Block, static_cast<std::int32_t>(block), -1}, true);
    } else {
        const LaneRows rows = there.rowsOf(to.queue);
        const std::size_t span = std::min(spanAt(spans, rows, time, 2 * extent() + 1), rows.end - 1);
        focusOn({target, to.part, there.blockOf(span), static_cast<std::int64_t>(span)}, true);
    }
}

void TimelineView::reveal(const TimelineFocus &focus)
{
    if (!focus.valid())
        return;
    const std::int32_t at = rowOfDevice(m_rows, DeviceId{focus.lane});
    if (at >= 0 && !m_rows[static_cast<std::size_t>(at)].pinned) {
        const TimelineRow &row = m_rows[static_cast<std::size_t>(at)];
        const int sticky = picture().stickyHeight();
        const int scroll = verticalScrollBar()->value();
        if (row.y < scroll + sticky)
            verticalScrollBar()->setValue(row.y - sticky);
        else if (row.y + row.height > scroll + canvasHeight())
            verticalScrollBar()->setValue(row.y + row.height - canvasHeight());
    }
    const SpanColumns &spans = shown()->timeline->spans;
    const DeviceLane &lane = shown()->lanes[static_cast<std::size_t>(focus.lane)];
    double begin = 0;
    double end = 0;
    if (focus.span >= 0) {
        begin = static_cast<double>(spans.start[static_cast<std::size_t>(focus.span)]);
        end = begin + static_cast<double>(spans.duration[static_cast<std::size_t>(focus.span)]);
    } else if (focus.block >= 0 && static_cast<std::size_t>(focus.block) < lane.blocks.size()) {
        begin = static_cast<double>(lane.blocks[static_cast<std::size_t>(focus.block)].begin);
        end = static_cast<double>(lane.blocks[static_cast<std::size_t>(focus.block)].end);
    } else {
        return;
    }
    if (m_axis.xOf(begin) >= 0 && m_axis.xOf(end) <= canvasWidth())
        return;
    TimeAxis axis = m_axis;
    axis.origin = begin - canvasWidth() / 3 * axis.nanosecondsPerPixel;
    m_fitted = false;
    moveAxis(clamped(axis, extent(), canvasWidth()));
}

void TimelineView::reportRefusal()
{
    if (!m_gestures.refusal().empty())
        Q_EMIT refused(QString::fromStdString(m_gestures.refusal()));
}

void TimelineView::moveByKey(int slots, bool onlyThis, bool held)
{
    if (!m_scene || !m_gestures.host())
        return;
    TimelineFocus focus = m_focus;
    if (!focus.valid() && !m_selected.empty()) {
        // Nothing has the focus (the plan is new): the first span of what is selected.
        const std::size_t span = m_selected.front();
        const std::int32_t device = shown()->timeline->spans.device[span];
        const DeviceLane &lane = shown()->lanes[static_cast<std::size_t>(device)];
        if (span < lane.compute.end)
            focus = {device, LanePart::Span, lane.blockOf(span), static_cast<std::int64_t>(span)};
    }
    if (!focus.valid()) {
        Q_EMIT refused(tr("choose a block or an operator to move"));
        return;
    }
    if (focus.part == LanePart::Block)
        m_gestures.moveBlock(
            canvas(), focus.lane, static_cast<std::size_t>(focus.block), slots, onlyThis, held);
    else if (focus.part == LanePart::Span)
        m_gestures.moveSpan(canvas(), static_cast<std::size_t>(focus.span), slots, onlyThis, held);
    reportRefusal();
}

void TimelineView::moveLaneByKey(int lanes)
{
    if (!m_scene || !m_gestures.host())
        return;
    m_gestures.moveLane(canvas(), m_selection->selected(), lanes);
    reportRefusal();
}

void TimelineView::changeBracketByKey(int by)
{
    if (!m_scene || !m_gestures.host())
        return;
    m_gestures.changeInFlight(canvas(), m_focus.lane, by);
    reportRefusal();
}

} // namespace planloom
