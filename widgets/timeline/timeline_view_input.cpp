#include "widgets/timeline/timeline_view.h"

#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QWheelEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QScrollBar>

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

constexpr double kWheelZoom = 1.2; ///< For one notch of the wheel.
constexpr double kNotch = 120; ///< Eighths of a degree.
constexpr double kPanShare = 0.15; ///< Of the width, for A and D.
constexpr double kSlackPixels = 3; ///< How far beside a small span a pointer still hits it.
constexpr double kLeastBubblePixels = 8;

} // namespace

TimelineView::Hit TimelineView::hitTest(QPoint position) const
{
    Hit hit;
    const QRect canvas = picture().canvas();
    if (!m_scene || position.y() < canvas.top() || position.y() > canvas.bottom())
        return hit;
    const int y = position.y() - canvas.top() + verticalScrollBar()->value();
    hit.row = rowAt(m_rows, y);
    if (hit.row < 0)
        return hit;
    const TimelineRow &row = m_rows[static_cast<std::size_t>(hit.row)];
    if (row.kind != TimelineRow::Kind::Device || position.x() < canvas.left())
        return hit;
    const DeviceLane &lane = m_scene->lanes[static_cast<std::size_t>(row.lane)];
    const SpanColumns &spans = m_scene->timeline->spans;
    const double time = m_axis.timeAt(position.x() - canvas.left());
    const double slack = kSlackPixels * m_axis.nanosecondsPerPixel;
    const bool compute = y >= row.computeTop() && y < row.operatorsTop() + row.operators;
    const bool communication
        = y >= row.communicationTop() && y < row.communicationTop() + TimelineMetrics::kCommunication;
    if (compute || communication) {
        const LaneRows rows = compute ? lane.compute : lane.communication;
        const std::size_t found = spanAt(spans, rows, time, slack);
        if (found != rows.end) {
            hit.span = static_cast<std::int64_t>(found);
            hit.facts = factsOfSpan(*m_scene, found);
        } else if (compute && time >= 0 && time < extent()) {
            const std::size_t next = spanAt(spans, rows, time, extent());
            // The neighbours of an idle moment bound the bubble.
            std::int64_t begin = 0;
            std::int64_t end = m_scene->timeline->step.count();
            if (next != rows.end) {
                const bool after = static_cast<double>(spans.start[next]) > time;
                const std::size_t right = after ? next : next + 1;
                if (right < rows.end)
                    end = spans.start[right];
                if (right > rows.begin)
                    begin = spans.start[right - 1] + spans.duration[right - 1];
            }
            if (static_cast<double>(end - begin) >= kLeastBubblePixels * m_axis.nanosecondsPerPixel)
                hit.facts = factsOfBubble(*m_scene, begin, end);
        }
        return hit;
    }
    if (y >= row.memoryTop() && y < row.memoryTop() + row.memory && time < extent()) {
        const MemoryCurve &curve = m_scene->timeline->memory[static_cast<std::size_t>(lane.device.index)];
        const std::int64_t entry = lane.memory.largestIn(curve, time, time + m_axis.nanosecondsPerPixel);
        if (entry >= 0)
            hit.facts = factsOfMemory(*m_scene, lane, static_cast<std::size_t>(entry));
    }
    return hit;
}

void TimelineView::hover(QPoint position)
{
    m_pointer = position;
    m_hover = hitTest(position);
    m_selection->setHovered(
        m_hover.span >= 0 ? m_scene->operatorOf(static_cast<std::size_t>(m_hover.span)) : OperatorId{});
    bool hand = m_hover.span >= 0;
    if (m_hover.row >= 0 && position.x() < TimelinePicture::kHeader)
        hand = m_rows[static_cast<std::size_t>(m_hover.row)].foldable;
    viewport()->setCursor(hand ? Qt::PointingHandCursor : Qt::ArrowCursor);
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
    return QAbstractScrollArea::viewportEvent(event);
}

void TimelineView::wheelEvent(QWheelEvent *event)
{
    const QPointF delta = event->angleDelta();
    const double x = event->position().x() - TimelinePicture::kHeader;
    if (event->modifiers() & Qt::ControlModifier) {
        zoomAt(std::pow(kWheelZoom, (delta.y() != 0 ? delta.y() : delta.x()) / kNotch), std::max(x, 0.0));
    } else if ((event->modifiers() & Qt::ShiftModifier) || (delta.y() == 0 && delta.x() != 0)) {
        const double along = delta.y() != 0 ? delta.y() : delta.x();
        TimeAxis axis = m_axis;
        axis.origin -= along * m_axis.nanosecondsPerPixel;
        m_fitted = false;
        setAxis(clamped(axis, extent(), canvasWidth()));
    } else {
        verticalScrollBar()->setValue(verticalScrollBar()->value() - static_cast<int>(delta.y() / 2));
    }
    hover(event->position().toPoint());
    event->accept();
}

void TimelineView::mousePressEvent(QMouseEvent *event)
{
    if (event->button() != Qt::LeftButton && event->button() != Qt::MiddleButton)
        return;
    m_pressed = event->position().toPoint();
    m_panning = event->button() == Qt::MiddleButton;
    m_axisPressed = m_axis;
    m_scrollPressed = verticalScrollBar()->value();
}

void TimelineView::mouseMoveEvent(QMouseEvent *event)
{
    const QPoint position = event->position().toPoint();
    if (!m_pressed) {
        hover(position);
        return;
    }
    const QPoint moved = position - *m_pressed;
    if (!m_panning && moved.manhattanLength() >= QApplication::startDragDistance()) {
        m_panning = true;
        viewport()->setCursor(Qt::ClosedHandCursor);
    }
    if (!m_panning || !m_scene)
        return;
    TimeAxis axis = m_axisPressed;
    axis.origin -= moved.x() * axis.nanosecondsPerPixel;
    m_fitted = m_fitted && moved.x() == 0;
    setAxis(clamped(axis, extent(), canvasWidth()));
    verticalScrollBar()->setValue(m_scrollPressed - moved.y());
}

void TimelineView::mouseReleaseEvent(QMouseEvent *event)
{
    const bool click = m_pressed && !m_panning && event->button() == Qt::LeftButton;
    m_pressed.reset();
    m_panning = false;
    const QPoint position = event->position().toPoint();
    if (click) {
        const Hit hit = hitTest(position);
        if (hit.row >= 0 && position.x() < TimelinePicture::kHeader) {
            const TimelineRow row = m_rows[static_cast<std::size_t>(hit.row)];
            if (row.foldable)
                setExpanded(m_scene->lanes[static_cast<std::size_t>(row.lane)].symmetryClass, !row.expanded);
        } else {
            selectSpan(hit.span, event->modifiers());
        }
    }
    hover(position);
}

void TimelineView::mouseDoubleClickEvent(QMouseEvent *event)
{
    const Hit hit = hitTest(event->position().toPoint());
    if (hit.span < 0)
        return;
    const SpanColumns &spans = m_scene->timeline->spans;
    const auto row = static_cast<std::size_t>(hit.span);
    fitTimes(static_cast<double>(spans.start[row]), static_cast<double>(spans.start[row] + spans.duration[row]));
}

void TimelineView::selectSpan(std::int64_t span, Qt::KeyboardModifiers modifiers)
{
    m_current = span;
    const OperatorId op = span >= 0 ? m_scene->operatorOf(static_cast<std::size_t>(span)) : OperatorId{};
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

void TimelineView::stepSelection(int direction)
{
    if (!m_scene)
        return;
    const SpanColumns &spans = m_scene->timeline->spans;
    if (m_current < 0 && !m_selected.empty())
        m_current = static_cast<std::int64_t>(m_selected.front());
    std::int64_t next = m_current < 0 ? 0 : m_current + direction;
    if (next < 0 || next >= static_cast<std::int64_t>(spans.size()))
        return;
    // Stays on its lane: spans are sorted by device and stream.
    if (m_current >= 0) {
        const auto a = static_cast<std::size_t>(m_current);
        const auto b = static_cast<std::size_t>(next);
        if (spans.device[a] != spans.device[b] || spans.stream[a] != spans.stream[b])
            return;
    }
    selectSpan(next, Qt::NoModifier);
    const auto row = static_cast<std::size_t>(next);
    const double begin = m_axis.xOf(static_cast<double>(spans.start[row]));
    const double end = m_axis.xOf(static_cast<double>(spans.start[row] + spans.duration[row]));
    if (begin < 0 || end > canvasWidth()) {
        TimeAxis axis = m_axis;
        axis.origin = static_cast<double>(spans.start[row]) - canvasWidth() / 3 * axis.nanosecondsPerPixel;
        m_fitted = false;
        setAxis(clamped(axis, extent(), canvasWidth()));
    }
}

void TimelineView::keyPressEvent(QKeyEvent *event)
{
    const double pan = kPanShare * canvasWidth() * m_axis.nanosecondsPerPixel;
    const double middle = m_pointer.x() >= TimelinePicture::kHeader ? m_pointer.x() - TimelinePicture::kHeader
                                                                    : canvasWidth() / 2;
    TimeAxis axis = m_axis;
    switch (event->key()) {
    case Qt::Key_W:
        zoomAt(kWheelZoom, middle);
        return;
    case Qt::Key_S:
        zoomAt(1 / kWheelZoom, middle);
        return;
    case Qt::Key_A:
    case Qt::Key_D:
        axis.origin += event->key() == Qt::Key_A ? -pan : pan;
        m_fitted = false;
        setAxis(clamped(axis, extent(), canvasWidth()));
        return;
    case Qt::Key_Home:
        fitAll();
        return;
    case Qt::Key_F:
        focusSelection();
        return;
    case Qt::Key_Left:
        stepSelection(-1);
        return;
    case Qt::Key_Right:
        stepSelection(1);
        return;
    case Qt::Key_Escape:
        m_selection->clear();
        return;
    default:
        QAbstractScrollArea::keyPressEvent(event);
    }
}

} // namespace planloom
