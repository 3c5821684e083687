// The pointer on the canvas; what they do to data and camera is in dag_view.cpp.

#include "engine/base/ids.h"
#include "widgets/dag/dag_view.h"

#include "widgets/dag/dag_gesture_layer.h"
#include "widgets/dag/dag_painter.h"

#include <QtCore/QMimeData>
#include <QtGui/QAccessible>
#include <QtGui/QAction>
#include <QtGui/QContextMenuEvent>
#include <QtGui/QDragEnterEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QWheelEvent>
#include <QtWidgets/QMenu>

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

constexpr double kDragStart = 6; ///< Pixels before a press becomes a drag.

bool holds(const SceneRect &rect, double x, double y)
{
    return rect.width > 0 && rect.contains(x, y);
}

} // namespace

std::int32_t DagView::boxAt(QPointF view) const
{
    if (!m_picture)
        return -1;
    const std::int32_t box =
        m_picture->scene.boxAt(m_picture->visible, m_camera.sceneX(view.x()), m_camera.sceneY(view.y()));
    return box > 0 ? box : -1;
}

void DagView::setHovered(std::int32_t box)
{
    if (box == m_hovered)
        return;
    m_hovered = box;
    OperatorId op;
    if (box > 0 && m_outline->at(m_picture->visible.at(box).item).kind == OutlineItem::Kind::Operator)
        op = m_outline->units[at(m_outline->at(m_picture->visible.at(box).item).begin)].op;
    m_hoveringHere = true;
    m_selection->setHovered(op);
    m_hoveringHere = false;
    update();
}

void DagView::setFocused(std::int32_t box, bool reveal)
{
    m_gestures->leaveOrder();
    m_focused = box;
    m_focusedItem = box >= 0 ? m_picture->visible.at(box).item : -1;
    if (box > 0) {
        QAccessibleEvent focused(this, QAccessible::Focus);
        focused.setChild(box - 1);
        QAccessible::updateAccessibility(&focused);
    }
    if (box >= 0 && reveal) {
        m_camera.reveal(m_picture->scene.rects[at(box)], width(), height(), 40);
        m_fitted = false;
        cameraMoved();
    }
    describeForScreenReader();
    update();
}

void DagView::selectBox(std::int32_t box, Qt::KeyboardModifiers modifiers)
{
    const auto operators = operatorsOf(*m_outline, m_picture->visible, box);
    if (modifiers.testFlag(Qt::ControlModifier))
        m_selection->toggle(operators);
    else if (modifiers.testFlag(Qt::ShiftModifier))
        m_selection->add(operators);
    else
        m_selection->select(operators);
}

void DagView::click(QPointF view, Qt::KeyboardModifiers modifiers)
{
    const std::int32_t box = boxAt(view);
    const bool onNode = box > 0 && !m_picture->visible.at(box).frame;
    if (modifiers == Qt::NoModifier && clickTraffic(view))
        return;
    if (!onNode && modifiers == Qt::NoModifier
        && (box < 0
            || m_camera.sceneY(view.y()) > m_picture->scene.rects[at(box)].y + DagMetrics::kFrameHeader)
        && jumpAlongEdge(view))
        return;
    if (box < 0) {
        if (!modifiers.testFlag(Qt::ControlModifier) && !modifiers.testFlag(Qt::ShiftModifier))
            m_selection->clear();
        setFocused(-1, false);
        return;
    }
    const double x = m_camera.sceneX(view.x());
    const double y = m_camera.sceneY(view.y());
    const std::int32_t item = m_picture->visible.at(box).item;
    if (m_camera.scale >= 0.5 && holds(toggleRect(*m_picture, box), x, y)) {
        toggleItem(item, view);
        return;
    }
    if (m_camera.scale >= 0.5 && holds(copiesRect(*m_picture, box), x, y)) {
        toggleCopies(item);
        return;
    }
    const bool ground =
        m_picture->visible.at(box).frame && y > m_picture->scene.rects[at(box)].y + DagMetrics::kFrameHeader;
    if (ground && modifiers == Qt::NoModifier) { // a click beside the nodes takes nothing, as on empty canvas
        m_selection->clear();
        setFocused(-1, false);
        return;
    }
    setFocused(box, false);
    selectBox(box, modifiers);
}

void DagView::selectInside(const QRectF &view, bool touching, Qt::KeyboardModifiers modifiers)
{
    std::vector<OperatorId> operators;
    for (std::size_t box = 1; m_picture && box < m_picture->visible.boxes.size(); ++box) {
        if (m_picture->visible.boxes[box].frame)
            continue;
        const QRectF rect = viewRect(static_cast<std::int32_t>(box));
        if (touching ? view.intersects(rect) : view.contains(rect)) {
            const auto own = operatorsOf(*m_outline, m_picture->visible, static_cast<std::int32_t>(box));
            operators.insert(operators.end(), own.begin(), own.end());
        }
    }
    if (modifiers.testFlag(Qt::ControlModifier))
        m_selection->toggle(operators);
    else if (modifiers.testFlag(Qt::ShiftModifier))
        m_selection->add(operators);
    else
        m_selection->select(std::move(operators));
}

void DagView::jumpOverview(QPointF view)
{
    const QRectF place = overviewRect();
    DagCamera camera;
    camera.fit(m_picture->scene.bounds, place.width(), place.height(), 6, 1);
    const double x = camera.sceneX(view.x() - place.x());
    const double y = camera.sceneY(view.y() - place.y());
    m_camera.centreOn({x, y, 0, 0}, width(), height());
    m_fitted = false;
    cameraMoved();
}

void DagView::mousePressEvent(QMouseEvent *event)
{
    if (!m_picture)
        return;
    const CanvasTool tool = toolInHand();
    const bool shapes = tool == CanvasTool::Select || m_gestures->dragging();
    if (shapes && m_gesture == Gesture::None && m_gestures->mousePress(*event)) {
        event->accept();
        return;
    }
    m_pressed = m_last = event->position();
    const bool left = event->button() == Qt::LeftButton;
    if (event->button() == Qt::MiddleButton || (left && tool == CanvasTool::Pan)) {
        m_gesture = Gesture::Pan;
        setCursor(Qt::ClosedHandCursor);
    } else if (left && tool == CanvasTool::Measure) {
        m_gesture = Gesture::Measure;
        startMeasure(event->position());
    } else if (event->button() == Qt::LeftButton) {
        if (toggleLegend(event->position())) {
            event->accept();
            return;
        }
        if (event->modifiers() == (Qt::ControlModifier | Qt::ShiftModifier)) { // moves a group by hand
            std::int32_t box = boxAt(event->position());
            while (
                box > 0 && m_outline->at(m_picture->visible.at(box).item).kind == OutlineItem::Kind::Operator)
                box = m_picture->visible.at(box).parent;
            if (box > 0) {
                m_nudgedItem = m_picture->visible.at(box).item;
                m_gesture = Gesture::Nudge;
                setCursor(Qt::SizeAllCursor);
                event->accept();
                return;
            }
        }
        const SceneRect shown = m_camera.visible(width(), height());
        const auto &bounds = m_picture->scene.bounds;
        const bool all = shown.x <= bounds.x && shown.y <= bounds.y && shown.right() >= bounds.right()
            && shown.bottom() >= bounds.bottom();
        if (!all && overviewRect().contains(event->position())) {
            m_gesture = Gesture::Overview;
            jumpOverview(event->position());
        } else {
            m_gesture = Gesture::Press;
        }
    }
    event->accept();
}

void DagView::mouseMoveEvent(QMouseEvent *event)
{
    const QPointF now = event->position();
    const bool shapes = toolInHand() == CanvasTool::Select || m_gestures->dragging();
    if (shapes && m_gesture == Gesture::None && m_gestures->mouseMove(*event)) {
        m_last = now;
        return;
    }
    switch (m_gesture) {
    case Gesture::None:
        setHovered(boxAt(now));
        break;
    case Gesture::Press:
        if ((now - m_pressed).manhattanLength() >= kDragStart) {
            if (m_gestures->startBody(m_pressed, now, event->modifiers())) {
                m_gesture = Gesture::None;
                setHovered(-1);
                break;
            }
            m_gesture = Gesture::Box;
            setHovered(-1);
        }
        break;
    case Gesture::Pan:
        m_camera.x += now.x() - m_last.x();
        m_camera.y += now.y() - m_last.y();
        m_fitted = false;
        cameraMoved();
        break;
    case Gesture::Overview:
        jumpOverview(now);
        break;
    case Gesture::Nudge:
        nudgeBy(
            m_nudgedItem, (now.x() - m_last.x()) / m_camera.scale, (now.y() - m_last.y()) / m_camera.scale);
        break;
    case Gesture::Measure:
        measureTo(now);
        break;
    case Gesture::Box:
        break;
    }
    m_last = now;
    if (m_gesture == Gesture::Box)
        update();
}

void DagView::mouseReleaseEvent(QMouseEvent *event)
{
    if (m_gesture == Gesture::None && m_gestures->mouseRelease(*event))
        return;
    const Gesture gesture = std::exchange(m_gesture, Gesture::None);
    if (!m_picture)
        return;
    switch (gesture) {
    case Gesture::Press:
        click(event->position(), event->modifiers());
        break;
    case Gesture::Nudge:
        showToolCursor();
        break;
    case Gesture::Measure:
        if (m_measureTo < 0)
            clearMeasure();
        break;
    case Gesture::Box: {
        if (event->modifiers().testFlag(Qt::AltModifier)) { // zooms to the box
            const QRectF box = QRectF(m_pressed, event->position()).normalized();
            remember();
            m_camera.fit({m_camera.sceneX(box.x()), m_camera.sceneY(box.y()), box.width() / m_camera.scale,
                             box.height() / m_camera.scale},
                width(), height(), 0, DagCamera::kMostScale);
            m_fitted = false;
            cameraMoved();
            break;
        }
        const bool touching = event->position().x() < m_pressed.x(); // right to left takes what it touches
        selectInside(QRectF(m_pressed, event->position()).normalized(), touching, event->modifiers());
        update();
        break;
    }
    case Gesture::Pan:
        showToolCursor();
        break;
    case Gesture::Overview:
    case Gesture::None:
        break;
    }
}

void DagView::mouseDoubleClickEvent(QMouseEvent *event)
{
    if (event->button() != Qt::LeftButton || !m_picture)
        return;
    const std::int32_t box = boxAt(event->position());
    if (box < 0)
        return;
    const double x = m_camera.sceneX(event->position().x());
    const double y = m_camera.sceneY(event->position().y());
    if (m_camera.scale >= 0.5
        && (holds(toggleRect(*m_picture, box), x, y) || holds(copiesRect(*m_picture, box), x, y)))
        return; // its two clicks have done what there was to do
    toggleItem(m_picture->visible.at(box).item, event->position());
}

void DagView::wheelEvent(QWheelEvent *event)
{
    if (!m_picture)
        return;
    if (m_gestures->wheel(*event)) {
        event->accept();
        return;
    }
    const QPointF turned =
        event->pixelDelta().isNull() ? QPointF(event->angleDelta()) / 1.5 : QPointF(event->pixelDelta());
    if (event->modifiers().testFlag(Qt::ControlModifier)) {
        const double notches = event->angleDelta().y() / 120.0;
        m_camera.zoomAt(event->position().x(), event->position().y(), std::pow(1.2, notches));
    } else if (event->modifiers().testFlag(Qt::ShiftModifier)) {
        m_camera.x += turned.x() != 0 ? turned.x() : turned.y();
    } else {
        m_camera.x += turned.x();
        m_camera.y += turned.y();
    }
    m_fitted = false;
    setHovered(-1);
    cameraMoved();
    event->accept();
}

void DagView::contextMenuEvent(QContextMenuEvent *event)
{
    if (!m_picture || m_gestures->takeMenuRefusal() || m_gestures->dragging())
        return;
    auto *menu = new QMenu(this);
    menu->setAttribute(Qt::WA_DeleteOnClose);
    const QPointF place = event->reason() == QContextMenuEvent::Mouse ? QPointF(event->pos())
        : m_focused > 0                                               ? viewRect(m_focused).center()
                                                                      : QRectF(rect()).center();
    const std::int32_t box = event->reason() == QContextMenuEvent::Mouse ? boxAt(place) : m_focused;
    if (box > 0) {
        const std::int32_t item = m_picture->visible.at(box).item;
        const auto kind = m_outline->at(item).kind;
        const bool frame = m_picture->visible.at(box).frame;
        if (kind != OutlineItem::Kind::Operator)
            menu->addAction(
                frame ? tr("Close") : tr("Open"), this, [this, item, place] { toggleItem(item, place); });
        if (kind == OutlineItem::Kind::Stack) {
            menu->addAction(m_state.unstacked.contains(item) && frame ? tr("Show One Copy for All")
                                                                      : tr("Show Each Copy"),
                this, [this, item] { toggleCopies(item); });
        }
        const auto operators = operatorsOf(*m_outline, m_picture->visible, box);
        menu->addAction(tr("Select"), this, [this, operators] { m_selection->select(operators); });
        menu->addAction(tr("Select All of This Kind"), this, [this, item] { selectSameKind(item); })
            ->setEnabled(kind == OutlineItem::Kind::Operator);
        menu->addSeparator();
        // As by keyboard, on what is selected or, with nothing selected, on what has the focus.
        const auto &marks = m_marks;
        if ((marks[at(box)] & kMarkSelected) == 0) {
            m_selection->select(operators);
            setFocused(box, false);
        }
        for (QAction *action : actions()) {
            if (action->property("planloom.plan").toBool())
                menu->addAction(action);
        }
        menu->addSeparator();
        for (const char *name : {"dag.selectSimilar", "dag.predecessors", "dag.successors", "dag.sameDevice",
                 "dag.sameStage", "dag.relayout"}) {
            if (auto *action = findChild<QAction *>(QLatin1String(name)))
                menu->addAction(action);
        }
        menu->addSeparator();
    }
    menu->addAction(tr("Expand One Level"), this, &DagView::expandOneLevel);
    menu->addAction(tr("Expand All"), this, &DagView::expandAll);
    menu->addAction(tr("Collapse All"), this, &DagView::collapseAll);
    menu->addSeparator();
    menu->addAction(tr("Fit All"), this, &DagView::fitAll);
    menu->addAction(tr("Focus Selection"), this, &DagView::fitSelection);
    menu->addAction(tr("Find…"), this, &DagView::openFind);
    menu->popup(
        event->reason() == QContextMenuEvent::Mouse ? event->globalPos() : mapToGlobal(place).toPoint());
}

void DagView::dragEnterEvent(QDragEnterEvent *event)
{
    if (m_picture && m_gestures->dragOver(*event->mimeData(), event->position()))
        event->acceptProposedAction();
}

void DagView::dragMoveEvent(QDragMoveEvent *event)
{
    const bool fits = m_picture && m_gestures->dragOver(*event->mimeData(), event->position());
    const auto &proposal = m_gestures->gestures().proposal();
    event->setAccepted(fits && proposal && proposal->accepted());
    if (event->isAccepted())
        event->acceptProposedAction();
}

void DagView::dragLeaveEvent(QDragLeaveEvent * /*event*/)
{
    m_gestures->dragLeft();
}

void DagView::dropEvent(QDropEvent *event)
{
    if (m_picture && m_gestures->drop(*event->mimeData(), event->position()))
        event->acceptProposedAction();
}

} // namespace planloom
