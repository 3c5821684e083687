#include "widgets/timeline/timeline_view.h"

#include <QtGui/QMouseEvent>
#include <QtGui/QWheelEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QGesture>
#include <QtWidgets/QGestureEvent>
#include <QtWidgets/QScrollBar>

#include "widgets/timeline/timeline_analysis.h"
#include "widgets/timeline/timeline_line_editor.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr double kWheelZoom = 1.2; ///< For one notch of the wheel.
constexpr double kNotch = 120; ///< Eighths of a degree.
constexpr int kEdgePixels = 24; ///< Nearer to an edge than this, a drag scrolls.
constexpr int kEdgeStep = 12; ///< Pixels a tick.

GestureModifiers modifiersOf(Qt::KeyboardModifiers modifiers)
{
    return {modifiers.testFlag(Qt::ShiftModifier), modifiers.testFlag(Qt::AltModifier),
        modifiers.testFlag(Qt::ControlModifier)};
}

} // namespace

std::optional<std::pair<double, int>> TimelineView::contentAt(QPoint position) const
{
    const TimelinePicture shownPicture = picture();
    if (!m_scene || position.y() < shownPicture.canvas().top()
        || position.y() > shownPicture.canvas().bottom())
        return {};
    return std::pair(
        position.x() - static_cast<double>(m_metrics.header), shownPicture.contentAt(position.y()));
}

TimelineHit TimelineView::hitTest(QPoint position) const
{
    const auto content = contentAt(position);
    return content ? hitAt(canvas(), content->first, content->second) : TimelineHit{};
}

std::vector<FactLine> TimelineView::factsOf(const TimelineHit &hit) const
{
    if (hit.part == HitPart::LaneEdge && m_gestures.host())
        return {{{}, tr("Pull down to spread all of it over more lanes").toStdString(), -1}};
    if (hit.row < 0 || m_rows[static_cast<std::size_t>(hit.row)].kind != TimelineRow::Kind::Device)
        return {};
    const DeviceLane &lane =
        shown()->lanes[static_cast<std::size_t>(m_rows[static_cast<std::size_t>(hit.row)].lane)];
    switch (hit.part) {
    case HitPart::Span:
    case HitPart::SpanEdge:
    case HitPart::Folded:
    case HitPart::Communication: {
        const auto row = static_cast<std::size_t>(hit.span);
        auto facts = m_measured ? factsOfMeasured(*m_scene, *m_measured, row) : factsOfSpan(*m_scene, row);
        if (const TimelineAnalysis *analysis = m_analyst->deep(); analysis && row < analysis->slack.size())
            facts.push_back(factOfSlack(analysis->slack[row]));
        return facts;
    }
    case HitPart::Block:
        return factsOfBlock(*shown(), lane, static_cast<std::size_t>(hit.block));
    case HitPart::Idle:
        return factsOfPause(hit);
    case HitPart::Bracket:
    case HitPart::BracketEnd:
        return factsOfWarmUp(lane.warmUp, m_gestures.host() != nullptr);
    case HitPart::Memory: {
        const auto device = static_cast<std::size_t>(lane.device.index);
        if (hit.time >= extent() || device >= shown()->timeline->memory.size())
            return {};
        const std::int64_t entry = lane.memory.largestIn(
            shown()->timeline->memory[device], hit.time, hit.time + m_axis.nanosecondsPerPixel);
        return entry < 0 ? std::vector<FactLine>{}
                         : factsOfMemory(*shown(), lane, static_cast<std::size_t>(entry));
    }
    case HitPart::None:
    case HitPart::Group:
    case HitPart::Header:
    case HitPart::LaneEdge:
        break;
    }
    return {};
}

void TimelineView::updateCursor(const TimelineHit &hit)
{
    Qt::CursorShape shape = Qt::ArrowCursor;
    const bool editable = m_gestures.host() != nullptr;
    switch (hit.part) {
    case HitPart::BracketEnd:
        shape = editable ? Qt::SizeHorCursor : Qt::ArrowCursor;
        break;
    case HitPart::SpanEdge:
    case HitPart::LaneEdge:
        shape = editable ? Qt::SizeVerCursor : Qt::PointingHandCursor;
        break;
    case HitPart::Span:
    case HitPart::Folded:
    case HitPart::Block:
        shape = editable ? Qt::OpenHandCursor : Qt::PointingHandCursor;
        break;
    case HitPart::Communication:
    case HitPart::Group:
        shape = Qt::PointingHandCursor;
        break;
    case HitPart::Header:
        shape = m_rows[static_cast<std::size_t>(hit.row)].foldable ? Qt::PointingHandCursor : Qt::ArrowCursor;
        break;
    case HitPart::None:
    case HitPart::Bracket:
    case HitPart::Idle:
    case HitPart::Memory:
        break;
    }
    if (toolInHand() == CanvasTool::Pan)
        shape = Qt::OpenHandCursor;
    else if (toolInHand() == CanvasTool::Measure)
        shape = Qt::CrossCursor;
    viewport()->setCursor(shape);
}

CanvasTool TimelineView::toolInHand() const
{
    return m_spaceHeld ? CanvasTool::Pan : m_measureHeld ? CanvasTool::Measure : m_tool;
}

void TimelineView::setTool(CanvasTool tool)
{
    if (m_tool == tool)
        return;
    abandonHand(); // what it holds belongs to the tool before
    m_tool = tool;
    updateCursor(m_hover.hit);
}

void TimelineView::hover(QPoint position)
{
    m_pointer = position;
    m_hover.hit = hitTest(position);
    if (m_hover.hit.span >= 0 || m_hover.hit.part == HitPart::Idle)
        needAnalysis(); // for its arrows and slack, and what it waits for
    m_hover.facts = factsOf(m_hover.hit);
    m_selection->setHovered(m_hover.hit.span >= 0
            ? shown()->operatorOf(static_cast<std::size_t>(m_hover.hit.span))
            : OperatorId{});
    updateCursor(m_hover.hit);
    viewport()->update();
}

void TimelineView::leave()
{
    m_pointer = QPoint(-1, -1);
    m_hover = {};
    m_selection->setHovered({});
    viewport()->update();
}

bool TimelineView::viewportEvent(QEvent *event)
{
    if (event->type() == QEvent::Leave)
        leave();
    if (event->type() == QEvent::NativeGesture) {
        const auto *gesture = static_cast<QNativeGestureEvent *>(event);
        if (gesture->gestureType() == Qt::ZoomNativeGesture) { // two fingers on a touch pad
            zoomAt(1 + gesture->value(), std::max(gesture->position().x() - m_metrics.header, 0.0));
            return true;
        }
    }
    if (event->type() == QEvent::Gesture) {
        auto *gestures = static_cast<QGestureEvent *>(event);
        if (auto *pinch = static_cast<QPinchGesture *>(
                gestures->gesture(Qt::PinchGesture))) { // two fingers on a screen
            pinchTo(*pinch);
            gestures->accept(pinch);
            return true;
        }
    }
    return QAbstractScrollArea::viewportEvent(event);
}

/// The time between the fingers stays between them, however they move.
void TimelineView::pinchTo(const QPinchGesture &pinch)
{
    if (!m_scene)
        return;
    if (m_hand != Hand::None)
        abandonHand(); // the first finger was no hand that takes hold of something
    const QPointF now = viewport()->mapFromGlobal(pinch.centerPoint());
    const QPointF before = viewport()->mapFromGlobal(pinch.lastCenterPoint());
    TimeAxis axis = m_axis;
    axis.origin -= (now.x() - before.x()) * axis.nanosecondsPerPixel;
    m_fitted = false;
    if (pinch.scaleFactor() > 0)
        axis = zoomed(
            axis, pinch.scaleFactor(), std::max(now.x() - m_metrics.header, 0.0), extent(), canvasWidth());
    moveAxis(clamped(axis, extent(), canvasWidth()));
    verticalScrollBar()->setValue(
        verticalScrollBar()->value() - static_cast<int>(std::lround(now.y() - before.y())));
}

void TimelineView::wheelEvent(QWheelEvent *event)
{
    const QPointF delta = event->angleDelta();
    const double x = event->position().x() - m_metrics.header;
    const double along = delta.y() != 0 ? delta.y() : delta.x();
    if (event->modifiers().testFlags(Qt::ControlModifier | Qt::ShiftModifier)) {
        const double y = event->position().y(); // lanes grow around it
        const double at = (verticalScrollBar()->value() + y) / std::max(1, heightOf(m_rows));
        LaneArrangement arrangement = m_arrangement;
        arrangement.laneHeight = LaneHeight::Fit;
        arrangement.zoom = std::clamp(
            arrangement.zoom * std::pow(kWheelZoom, along / kNotch), kLeastLaneZoom, kMostLaneZoom);
        setArrangement(std::move(arrangement));
        verticalScrollBar()->setValue(static_cast<int>(at * heightOf(m_rows) - y));
    } else if (event->modifiers() & Qt::ControlModifier) {
        zoomAt(std::pow(kWheelZoom, along / kNotch), std::max(x, 0.0));
    } else if ((event->modifiers() & Qt::ShiftModifier) || (delta.y() == 0 && delta.x() != 0)) {
        TimeAxis axis = m_axis;
        axis.origin -= along * m_axis.nanosecondsPerPixel;
        m_fitted = false;
        moveAxis(clamped(axis, extent(), canvasWidth()));
    } else {
        verticalScrollBar()->setValue(verticalScrollBar()->value() - static_cast<int>(delta.y() / 2));
    }
    if (m_gestures.dragging() && m_hand != Hand::None)
        dragTo(event->position().toPoint(), event->modifiers());
    else
        hover(event->position().toPoint());
    event->accept();
}

void TimelineView::mousePressEvent(QMouseEvent *event)
{
    const QPoint position = event->position().toPoint();
    if (event->button() == Qt::RightButton && m_hand != Hand::None) {
        abandonHand(); // the right button abandons a drag
        return;
    }
    if ((event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton) || m_hand != Hand::None)
        return;
    if (m_line->isVisible()) {
        m_gestures.abandon();
        closeLine();
    }
    m_pressed = m_dragged = position;
    m_dragModifiers = event->modifiers();
    m_axisPressed = m_axis;
    m_scrollPressed = verticalScrollBar()->value();
    m_pressedTime = m_axis.timeAt(position.x() - m_metrics.header);
    m_pressedHit = hitTest(position);
    m_pressedContent = picture().contentAt(position.y());
    m_hand = Hand::Pressed;
    if (event->button() == Qt::MiddleButton || toolInHand() == CanvasTool::Pan) {
        m_hand = Hand::Pan;
        viewport()->setCursor(Qt::ClosedHandCursor);
        return;
    }
    if (!m_scene)
        return;
    if (toolInHand() == CanvasTool::Measure) {
        m_hand = Hand::Measure;
        m_measuredTimes = {m_pressedTime, m_pressedTime};
        return;
    }
    if (position.y() < m_metrics.ruler && position.x() >= m_metrics.header) {
        m_hand = Hand::Scrub;
        askTime(position);
        return;
    }
    m_measuredTimes.reset();
    m_longPress.start();
    if (const auto content = contentAt(position))
        m_gestures.press(canvas(), m_pressedHit, content->first, content->second, m_selection->selected());
}

void TimelineView::mouseMoveEvent(QMouseEvent *event)
{
    const QPoint position = event->position().toPoint();
    if (m_hand == Hand::None) {
        if (event->buttons() == Qt::NoButton)
            hover(position);
        return;
    }
    dragTo(position, event->modifiers());
}

void TimelineView::dragTo(QPoint position, Qt::KeyboardModifiers modifiers)
{
    m_dragged = position;
    m_dragModifiers = modifiers;
    m_pointer = position;
    if (std::hypot(position.x() - m_pressed.x(), position.y() - m_pressed.y()) >= kDragPixels)
        m_longPress.stop();
    if (m_hand == Hand::Scrub) {
        askTime(position);
        return;
    }
    if (m_gestures.pressed()) {
        const TimelinePicture shownPicture = picture();
        if (m_gestures.move(canvas(), position.x() - m_metrics.header, shownPicture.contentAt(position.y()),
                modifiersOf(modifiers))) {
            const auto &proposal = m_gestures.proposal();
            viewport()->setCursor(proposal && proposal->refusal ? Qt::ForbiddenCursor : Qt::ClosedHandCursor);
            if (!m_edgeTimer.isActive())
                m_edgeTimer.start();
        }
        viewport()->update();
        return;
    }
    const QPoint moved = position - m_pressed;
    if (m_hand == Hand::Pressed && std::hypot(moved.x(), moved.y()) >= kDragPixels && m_scene) {
        if (m_pressedHit.part == HitPart::Header
            || (m_pressedHit.part == HitPart::LaneEdge
                && m_rows[static_cast<std::size_t>(m_pressedHit.row)].kind == TimelineRow::Kind::Device))
            m_hand = Hand::Lane;
        else if (m_pressed.x() < m_metrics.header)
            m_hand = Hand::Pan;
        else
            m_hand = (modifiers & Qt::AltModifier) || m_pressed.y() < lanesTop() ? Hand::ZoomBox : Hand::Box;
        if (!m_edgeTimer.isActive())
            m_edgeTimer.start();
    }
    if (m_hand == Hand::Pan && m_scene) {
        TimeAxis axis = m_axisPressed;
        axis.origin -= moved.x() * axis.nanosecondsPerPixel;
        m_fitted = m_fitted && moved.x() == 0;
        moveAxis(clamped(axis, extent(), canvasWidth()));
        verticalScrollBar()->setValue(m_scrollPressed - moved.y());
    } else if (m_hand == Hand::Measure) {
        m_measuredTimes = {m_pressedTime, m_axis.timeAt(position.x() - m_metrics.header)};
    }
    viewport()->update();
}

void TimelineView::scrollAtEdges()
{
    const bool moving =
        m_gestures.dragging() || m_hand == Hand::Box || m_hand == Hand::ZoomBox || m_hand == Hand::Lane;
    if (!moving || m_hand == Hand::None) {
        m_edgeTimer.stop();
        return;
    }
    if (m_gestures.probe(canvas()))
        viewport()->update();
    const QRect area = picture().canvas();
    const auto push = [](int at, int low, int high) {
        if (at < low + kEdgePixels)
            return -1;
        return at > high - kEdgePixels ? 1 : 0;
    };
    const int down = push(m_dragged.y(), area.top(), area.bottom());
    const int right = m_hand == Hand::Lane ? 0 : push(m_dragged.x(), area.left(), area.right());
    const int scroll = verticalScrollBar()->value();
    verticalScrollBar()->setValue(scroll + down * kEdgeStep);
    const TimeAxis before = m_axis;
    // Sideways only where time goes on: an edge of the step is no edge of the screen.
    const double visibleEnd = m_axis.timeAt(canvasWidth());
    if ((right > 0 && visibleEnd < extent()) || (right < 0 && m_axis.origin > 0)) {
        TimeAxis axis = m_axis;
        axis.origin += right * kEdgeStep * axis.nanosecondsPerPixel;
        m_fitted = false;
        moveAxis(clamped(axis, extent(), canvasWidth()));
    }
    if (verticalScrollBar()->value() != scroll || !(m_axis == before))
        dragTo(m_dragged, m_dragModifiers);
}

QRect TimelineView::handBox() const
{
    // Fixed to the content where it began, so that scrolling makes the box larger.
    const TimelinePicture shownPicture = picture();
    const int left = m_metrics.header + static_cast<int>(std::lround(m_axis.xOf(m_pressedTime)));
    const int top = m_pressed.y() < lanesTop() ? shownPicture.canvas().top()
                                               : shownPicture.canvas().top() + m_pressedContent
            - (m_pressedContent < shownPicture.stickyHeight() ? 0 : shownPicture.scroll);
    const bool all = m_pressed.y() < lanesTop(); // drawn on the ruler: the time of all lanes
    return QRect(QPoint(std::min(left, m_dragged.x()), all ? top : std::min(top, m_dragged.y())),
        QPoint(std::max(left, m_dragged.x()),
            all ? shownPicture.canvas().bottom() : std::max(top, m_dragged.y())));
}

void TimelineView::abandonHand()
{
    m_hand = Hand::None;
    m_edgeTimer.stop();
    m_longPress.stop();
    m_gestures.abandon();
    m_measuredTimes.reset();
    updateCursor({});
    viewport()->update();
    if (m_waiting)
        takeScene(std::move(*m_waiting));
}

void TimelineView::mouseReleaseEvent(QMouseEvent *event)
{
    const bool pans = m_hand == Hand::Pan;
    if (m_hand == Hand::None || (event->button() != Qt::LeftButton && !pans)) {
        return;
    }
    finishHand(event->position().toPoint(), event->modifiers());
}

void TimelineView::finishHand(QPoint position, Qt::KeyboardModifiers modifiers)
{
    const Hand hand = m_hand;
    m_edgeTimer.stop();
    m_longPress.stop();
    if (m_gestures.dragging()) {
        dragTo(position, modifiers);
        const std::string refusal = m_gestures.proposal() && m_gestures.proposal()->refusal
            ? m_gestures.proposal()->refusal->message
            : std::string{};
        m_hand = Hand::None;
        m_gestures.drop();
        if (!refusal.empty())
            Q_EMIT refused(QString::fromStdString(refusal));
    } else {
        m_gestures.abandon();
        switch (hand) {
        case Hand::Pressed:
            m_hand = Hand::None;
            if (modifiers & Qt::AltModifier)
                listUnder(position);
            else
                clickOn(m_pressedHit, position, modifiers);
            break;
        case Hand::Box:
            // No time lies in a box that is no wider than a hand that trembles: nothing was meant by it.
            if (handBox().width() >= kDragPixels)
                selectBox(handBox(), position.x() >= m_pressed.x(), modifiers);
            break;
        case Hand::ZoomBox: {
            const QRect box = handBox();
            if (box.width() >= kDragPixels) {
                const double begin = m_axis.timeAt(box.left() - m_metrics.header);
                const double end = m_axis.timeAt(box.right() - m_metrics.header);
                TimeAxis axis{begin, (end - begin) / canvasWidth()};
                m_fitted = false;
                moveAxis(zoomed(axis, 1, canvasWidth() / 2, extent(), canvasWidth()));
            }
            break;
        }
        case Hand::Lane:
            dropLane(position);
            break;
        case Hand::None:
        case Hand::Pan:
        case Hand::Measure:
        case Hand::Scrub:
            break;
        }
        m_hand = Hand::None;
    }
    if (m_waiting)
        takeScene(std::move(*m_waiting));
    if (hand == Hand::Box)
        leave(); // its figures come: no tooltip stands before them
    else
        hover(position);
}

void TimelineView::dropLane(QPoint position)
{
    if (m_pressedHit.row < 0)
        return;
    const int y = picture().contentAt(position.y());
    std::size_t before = 0;
    while (before < m_rows.size() && m_rows[before].y + m_rows[before].height / 2 <= y)
        ++before;
    m_arrangement = withRowMoved(m_arrangement, m_rows, static_cast<std::size_t>(m_pressedHit.row), before);
    relayout();
    Q_EMIT viewStateChanged();
}

void TimelineView::clickOn(const TimelineHit &hit, QPoint, Qt::KeyboardModifiers modifiers)
{
    if (hit.row < 0) {
        selectSpan(-1, modifiers);
        return;
    }
    const TimelineRow row = m_rows[static_cast<std::size_t>(hit.row)];
    const HitPart part = hit.part != HitPart::LaneEdge ? hit.part
        : row.kind == TimelineRow::Kind::Group         ? HitPart::Group
                                                       : HitPart::Header;
    switch (part) {
    case HitPart::Group:
        if (m_arrangement.collapsed.erase(row.title) == 0)
            m_arrangement.collapsed.insert(row.title);
        relayout();
        Q_EMIT viewStateChanged();
        break;
    case HitPart::Header:
        if (row.foldable)
            setExpanded(shown()->lanes[static_cast<std::size_t>(row.lane)].symmetryClass, !row.expanded);
        else
            focusOn({row.lane, LanePart::Block, 0, -1}, false);
        break;
    case HitPart::Block:
        m_focus = {row.lane, LanePart::Block, hit.block, -1};
        selectBlock(row.lane, hit.block, modifiers);
        break;
    case HitPart::Span:
    case HitPart::SpanEdge:
    case HitPart::Folded:
        m_focus = {row.lane, LanePart::Span, hit.block, hit.span};
        selectSpan(hit.span, modifiers);
        break;
    case HitPart::Communication:
        m_focus = {row.lane, LanePart::Communication, -1, hit.span};
        selectSpan(hit.span, modifiers);
        if (hit.span >= 0) {
            const auto span = static_cast<std::size_t>(hit.span);
            const auto device = static_cast<std::size_t>(shown()->timeline->spans.device[span]);
            if (const Instruction *instruction = shown()->findInstruction(span))
                Q_EMIT communicationChosen(
                    instruction->op, tensorOf(shown()->plan->devices[device], *instruction));
        }
        break;
    case HitPart::Bracket:
    case HitPart::BracketEnd:
        focusOn({row.lane, LanePart::Bracket, -1, -1}, false);
        break;
    case HitPart::Idle:
        m_focus = {row.lane, LanePart::Idle, hit.block, -1};
        m_idleTime = hit.time;
        selectSpan(-1, modifiers);
        explainIdle();
        break;
    case HitPart::None:
    case HitPart::LaneEdge:
    case HitPart::Memory:
        selectSpan(-1, modifiers);
        break;
    }
    announceFocus();
    updateActions();
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent *event)
{
    const TimelineHit hit = hitTest(event->position().toPoint());
    if (hit.part == HitPart::Block) {
        const auto &row = m_rows[static_cast<std::size_t>(hit.row)];
        const auto &block =
            shown()->lanes[static_cast<std::size_t>(row.lane)].blocks[static_cast<std::size_t>(hit.block)];
        fitTimes(static_cast<double>(block.begin), static_cast<double>(block.end));
        return;
    }
    if (hit.span < 0)
        return;
    const SpanColumns &spans = shown()->timeline->spans;
    const auto row = static_cast<std::size_t>(hit.span);
    fitTimes(
        static_cast<double>(spans.start[row]), static_cast<double>(spans.start[row] + spans.duration[row]));
}

} // namespace planloom
