// The keys of the canvas; what they do to data and camera is in dag_view.cpp.

#include "widgets/dag/dag_view.h"

#include "widgets/dag/dag_cone_bar.h"
#include "widgets/dag/dag_gesture_layer.h"

#include <QtGui/QKeyEvent>

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

constexpr double kKeyPan = 60;
constexpr double kKeyNudge = 20; ///< Scene units.
constexpr double kKeyZoom = 1.25;

} // namespace

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
    m_spaceHeld = m_measureHeld = false;
    if (m_gesture == Gesture::None)
        showToolCursor();
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
    case Qt::Key_F2:
        if (m_gestures->focusedOrder() >= 0) {
            m_gestures->editOrderRow();
            return;
        }
        break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_gestures->focusedOrder() >= 0) {
            m_gestures->editOrderRow();
            return;
        }
        if (m_focused > 0)
            selectBox(m_focused, modifiers);
        return;
    case Qt::Key_Escape:
        m_gesture = Gesture::None;
        if (m_gestures->leaveOrder())
            return;
        if (m_measureFrom > 0) { // one thing at a time
            clearMeasure();
            return;
        }
        if (m_coneBar->isVisible()) {
            closeCone();
            return;
        }
        m_selection->clear();
        update();
        return;
    case Qt::Key_F3:
        stepMatch(shift ? -1 : 1);
        return;
    case Qt::Key_Space:
        if (!event->isAutoRepeat()) {
            m_spaceHeld = true;
            showToolCursor();
        }
        return;
    default:
        break;
    }
    if (plain) {
        switch (event->key()) {
        case Qt::Key_M:
            if (!event->isAutoRepeat()) {
                m_measureHeld = true;
                showToolCursor();
            }
            return;
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
            showToolCursor();
        return;
    }
    if (event->key() == Qt::Key_M && !event->isAutoRepeat() && m_measureHeld) {
        m_measureHeld = false;
        showToolCursor();
        return;
    }
    QWidget::keyReleaseEvent(event);
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
