// The pointer and the keys of the canvas; what they do to data and camera is in dag_view.cpp.

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
constexpr double kKeyPan = 60;
constexpr double kKeyNudge = 20; ///< Scene units.
constexpr double kKeyZoom = 1.25;

std::size_t at(std::int32_t index)
{
    return static_cast<std::size_t>(index);
}

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
    if (!onNode && modifiers == Qt::NoModifier
        && (box < 0 || m_camera.sceneY(view.y()) > m_picture->scene.rects[at(box)].y + DagMetrics::kFrameHeader)
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
    if (!m_spaceHeld && m_gesture == Gesture::None && m_gestures->mousePress(*event)) {
        event->accept();
        return;
    }
    m_pressed = m_last = event->position();
    const bool pans =
        event->button() == Qt::MiddleButton || (event->button() == Qt::LeftButton && m_spaceHeld);
    if (pans) {
        m_gesture = Gesture::Pan;
        setCursor(Qt::ClosedHandCursor);
    } else if (event->button() == Qt::LeftButton) {
        if (toggleLegend(event->position())) {
            event->accept();
            return;
        }
        if (event->modifiers() == (Qt::ControlModifier | Qt::ShiftModifier)) { // moves a group by hand
            std::int32_t box = boxAt(event->position());
            while (box > 0 && m_outline->at(m_picture->visible.at(box).item).kind == OutlineItem::Kind::Operator)
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
    if (m_gesture == Gesture::None && m_gestures->mouseMove(*event)) {
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
        nudgeBy(m_nudgedItem, (now.x() - m_last.x()) / m_camera.scale, (now.y() - m_last.y()) / m_camera.scale);
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
        unsetCursor();
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
        setCursor(m_spaceHeld ? Qt::OpenHandCursor : Qt::ArrowCursor);
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

void DagView::leaveEvent(QEvent *event)
{
    setHovered(-1);
    QWidget::leaveEvent(event);
}

void DagView::focusInEvent(QFocusEvent *event)
{
    QWidget::focusInEvent(event);
    update();
}

void DagView::focusOutEvent(QFocusEvent *event)
{
    m_spaceHeld = false;
    if (m_gestures->dragging())
        m_gestures->cancel();
    QWidget::focusOutEvent(event);
    update();
}

void DagView::moveFocus(int dx, int dy)
{
    if (m_focused < 0) { // begin at what is nearest to the window's middle
        double best = 1e300;
        std::int32_t nearest = -1;
        for (std::size_t box = 1; box < m_picture->visible.boxes.size(); ++box) {
            if (m_picture->visible.boxes[box].frame)
                continue;
            const QPointF off =
                viewRect(static_cast<std::int32_t>(box)).center() - QPointF(width() / 2.0, height() / 2.0);
            const double distance = off.x() * off.x() + off.y() * off.y();
            if (distance < best) {
                best = distance;
                nearest = static_cast<std::int32_t>(box);
            }
        }
        setFocused(nearest, true);
        return;
    }
    const std::int32_t next = m_picture->scene.neighbour(m_picture->visible, m_focused, dx, dy);
    if (next >= 0)
        setFocused(next, true);
}

void DagView::keyPressEvent(QKeyEvent *event)
{
    const auto pan = [this](double dx, double dy) {
        m_camera.x += dx;
        m_camera.y += dy;
        m_fitted = false;
        cameraMoved();
    };
    if (!m_picture || m_gestures->key(*event, true)) {
        if (!m_picture)
            QWidget::keyPressEvent(event);
        return;
    }
    const auto modifiers = event->modifiers() & ~Qt::KeypadModifier;
    if (event->matches(QKeySequence::Find)) {
        openFind();
        return;
    }
    if (modifiers == (Qt::ControlModifier | Qt::AltModifier) && event->key() == Qt::Key_E) {
        expandAll();
        return;
    }
    if (modifiers == (Qt::ControlModifier | Qt::ShiftModifier) && m_focused > 0) {
        std::int32_t item = m_focusedItem;
        while (item > 0 && m_outline->at(item).kind == OutlineItem::Kind::Operator)
            item = m_outline->at(item).parent;
        const int dx = event->key() == Qt::Key_Right ? 1 : event->key() == Qt::Key_Left ? -1 : 0;
        const int dy = event->key() == Qt::Key_Down ? 1 : event->key() == Qt::Key_Up ? -1 : 0;
        if (dx != 0 || dy != 0) {
            nudgeBy(item, dx * kKeyNudge, dy * kKeyNudge);
            return;
        }
    }
    const bool plain = modifiers == Qt::NoModifier;
    const bool shift = modifiers == Qt::ShiftModifier;
    switch (event->key()) {
    case Qt::Key_Left:
        moveFocus(-1, 0);
        return;
    case Qt::Key_Right:
        moveFocus(1, 0);
        return;
    case Qt::Key_Up:
        moveFocus(0, -1);
        return;
    case Qt::Key_Down:
        moveFocus(0, 1);
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_focused > 0)
            selectBox(m_focused, modifiers);
        return;
    case Qt::Key_Escape:
        m_gesture = Gesture::None;
        m_selection->clear();
        update();
        return;
    case Qt::Key_F3:
        stepMatch(shift ? -1 : 1);
        return;
    case Qt::Key_Space:
        if (!event->isAutoRepeat()) {
            m_spaceHeld = true;
            setCursor(Qt::OpenHandCursor);
        }
        return;
    default:
        break;
    }
    if (plain) {
        switch (event->key()) {
        case Qt::Key_W:
            zoomBy(kKeyZoom);
            return;
        case Qt::Key_S:
            zoomBy(1 / kKeyZoom);
            return;
        case Qt::Key_A:
            pan(kKeyPan, 0);
            return;
        case Qt::Key_D:
            pan(-kKeyPan, 0);
            return;
        default:
            break;
        }
    }
    if (!triggerShortcut(*event))
        QWidget::keyPressEvent(event);
}

void DagView::keyReleaseEvent(QKeyEvent *event)
{
    if (m_picture && m_gestures->key(*event, false))
        return;
    if (event->key() == Qt::Key_Space && !event->isAutoRepeat()) {
        m_spaceHeld = false;
        if (m_gesture != Gesture::Pan)
            unsetCursor();
        return;
    }
    QWidget::keyReleaseEvent(event);
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
        for (const char *name : {"dag.selectSimilar", "dag.predecessors", "dag.successors", "dag.sameDevice", "dag.sameStage", "dag.relayout"}) {
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

void DagView::panBy(double dx, double dy)
{
    m_camera.x += dx;
    m_camera.y += dy;
    m_fitted = false;
    cameraMoved();
}

void DagView::focusBox(std::int32_t box)
{
    setFocused(box, false);
}

/// Opens or closes what is focused or under the pointer; an operator's own group closes around it.
void DagView::toggleFocused()
{
    if (!m_picture || changing())
        return;
    std::int32_t item = m_focused > 0 ? m_focusedItem
        : m_hovered > 0               ? m_picture->visible.at(m_hovered).item
                                      : -1;
    if (item > 0 && m_outline->at(item).kind == OutlineItem::Kind::Operator) {
        const std::int32_t box = m_picture->visible.boxOfItem(item);
        item = m_picture->visible.at(m_picture->visible.at(box).parent).item;
        if (item > 0)
            m_focusedItem = item;
    }
    toggleItem(item);
}

void DagView::selectSameKind(std::int32_t item)
{
    const auto wanted = m_graph->at(m_outline->units[at(m_outline->at(item).begin)].op).kind;
    std::vector<OperatorId> operators;
    for (const auto &unit : m_outline->units) {
        if (m_graph->at(unit.op).kind != wanted)
            continue;
        operators.push_back(unit.op);
        if (unit.backward.valid())
            operators.push_back(unit.backward);
        operators.insert(operators.end(), unit.optimizers.begin(), unit.optimizers.end());
    }
    m_selection->select(std::move(operators));
}

/// To the first box that uses, or makes, what the focused one makes or uses.
void DagView::walkEdge(bool forwards)
{
    if (!m_picture || m_focused < 0)
        return;
    for (const auto &edge : m_picture->visible.edges) {
        if ((forwards ? edge.from : edge.to) == m_focused) {
            setFocused(forwards ? edge.to : edge.from, true);
            return;
        }
    }
}

} // namespace planloom
