// The pointer, the keys and find of the canvas; what they do to data and camera is in dag_view.cpp.

#include "widgets/dag/dag_view.h"

#include "engine/graph/annotation.h"
#include "widgets/common/format.h"
#include "widgets/dag/dag_find_bar.h"
#include "widgets/dag/dag_painter.h"

#include <QtGui/QHelpEvent>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QWheelEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QToolTip>

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

constexpr double kDragStart = 6; ///< Pixels before a press becomes a drag.
constexpr double kKeyPan = 60;
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
    m_pressed = m_last = event->position();
    const bool pans =
        event->button() == Qt::MiddleButton || (event->button() == Qt::LeftButton && m_spaceHeld);
    if (pans) {
        m_gesture = Gesture::Pan;
        setCursor(Qt::ClosedHandCursor);
    } else if (event->button() == Qt::LeftButton) {
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
    switch (m_gesture) {
    case Gesture::None:
        setHovered(boxAt(now));
        break;
    case Gesture::Press:
        if ((now - m_pressed).manhattanLength() >= kDragStart) {
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
    case Gesture::Box:
        break;
    }
    m_last = now;
    if (m_gesture == Gesture::Box)
        update();
}

void DagView::mouseReleaseEvent(QMouseEvent *event)
{
    const Gesture gesture = std::exchange(m_gesture, Gesture::None);
    if (!m_picture)
        return;
    switch (gesture) {
    case Gesture::Press:
        click(event->position(), event->modifiers());
        break;
    case Gesture::Box: {
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
    if (!m_picture) {
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
    const bool plain = modifiers == Qt::NoModifier;
    const bool shift = modifiers == Qt::ShiftModifier;
    const bool control = modifiers == Qt::ControlModifier;
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
    case Qt::Key_Home:
        fitAll();
        return;
    case Qt::Key_Plus:
    case Qt::Key_Equal:
        zoomBy(kKeyZoom);
        return;
    case Qt::Key_Minus:
        zoomBy(1 / kKeyZoom);
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
    if (control && event->key() == Qt::Key_A) {
        m_selection->select(operatorsOf(*m_outline, m_picture->visible, 0));
        return;
    }
    if (shift && event->key() == Qt::Key_E) {
        expandOneLevel();
        return;
    }
    if (plain) {
        switch (event->key()) {
        case Qt::Key_E: {
            // What is focused; an operator's own group closes around it.
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
            return;
        }
        case Qt::Key_F:
            fitSelection();
            return;
        case Qt::Key_C:
            setColourBy(static_cast<ColourBy>((static_cast<int>(m_colourBy) + 1) % kColourByCount));
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
    QWidget::keyPressEvent(event);
}

void DagView::keyReleaseEvent(QKeyEvent *event)
{
    if (event->key() == Qt::Key_Space && !event->isAutoRepeat()) {
        m_spaceHeld = false;
        if (m_gesture != Gesture::Pan)
            unsetCursor();
        return;
    }
    QWidget::keyReleaseEvent(event);
}

bool DagView::event(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event); // the type was checked
        const std::int32_t box = boxAt(help->pos());
        const bool onNode = box > 0
            && (!m_picture->visible.at(box).frame
                || m_camera.sceneY(help->pos().y())
                    < m_picture->scene.rects[at(box)].y + DagMetrics::kFrameHeader);
        if (onNode)
            QToolTip::showText(help->globalPos(), tooltipOf(box), this, viewRect(box).toAlignedRect());
        else
            QToolTip::hideText();
        return true;
    }
    return QWidget::event(event);
}

QString DagView::tooltipOf(std::int32_t box) const
{
    const auto &shown = m_picture->visible.at(box);
    const auto &item = m_outline->at(shown.item);
    const auto text = [](const std::string &words) { return QString::fromStdString(words).toHtmlEscaped(); };
    QString html;
    const auto row = [&html](const QString &name, const QString &value) {
        html += QStringLiteral("<tr><td style='padding-right:10px'>%1</td><td>%2</td></tr>").arg(name, value);
    };
    const auto operators = operatorsOf(*m_outline, m_picture->visible, box);
    const auto facts = [&] {
        if (m_facts.seconds.size() == m_graph->operators.size()) {
            double seconds = 0;
            for (const auto op : operators)
                seconds += m_facts.seconds[at(op.index)];
            row(tr("Time a step"), text(formatSeconds(seconds)));
        }
        const QString badge = m_colours.boxes[at(box)].badge;
        if (m_facts.plan && m_facts.plan->decisions.size() == m_graph->operators.size()) {
            std::vector<std::int32_t> devices;
            for (const auto op : operators) {
                const auto own = devicesOf(*m_facts.plan, op);
                devices.insert(devices.end(), own.begin(), own.end());
            }
            row(tr("Devices"), rangesOf(std::move(devices)));
        }
    };
    if (item.kind != OutlineItem::Kind::Operator) {
        const auto &labels = m_labels;
        html = QStringLiteral("<b>%1</b><table>").arg(labels.titles[at(box)].toHtmlEscaped());
        if (item.scope.valid() && item.scope.index > 0)
            row(tr("Module"), text(pathOf(*m_graph, item.scope)));
        row(tr("Operators"), text(formatCount(static_cast<std::int64_t>(operators.size()))));
        facts();
        html +=
            QStringLiteral("</table><i>%1</i>")
                .arg(shown.frame ? tr("Double-click or E closes it.") : tr("Double-click or E opens it."));
        return html;
    }
    const auto &unit = m_outline->units[at(item.begin)];
    const auto &op = m_graph->at(unit.op);
    html = QStringLiteral("<b>%1</b><table>").arg(text(op.name));
    row(tr("Kind"), text(nameOf(op.kind)) + QStringLiteral(", ") + nameOfDirection(op.direction).toLower());
    const auto tensors = [&](const QString &name, const std::vector<TensorId> &ids) {
        QStringList lines;
        for (const auto id : ids) {
            if (!id.valid())
                continue;
            if (lines.size() == 8) {
                lines.append(QStringLiteral("…"));
                break;
            }
            const auto &tensor = m_graph->at(id);
            lines.append(
                text(elided(tensor.name, 44)) + QStringLiteral(" &nbsp;") + text(formatType(tensor.type)));
        }
        if (!lines.isEmpty())
            row(name, lines.join(QStringLiteral("<br>")));
    };
    tensors(tr("Inputs"), op.inputs);
    tensors(tr("Outputs"), op.outputs);
    row(tr("Dimensions"), QStringLiteral("<code>%1</code>").arg(text(toString(op.annotation))));
    if (!op.annotationProblem.empty())
        row(tr("Kept whole"), text(op.annotationProblem));
    if (unit.backward.valid())
        row(tr("Backward"), text(m_graph->at(unit.backward).name));
    if (!unit.optimizers.empty())
        row(tr("Optimizer"),
            tr("%n step(s), %1", nullptr, static_cast<int>(unit.optimizers.size()))
                .arg(text(nameOf(m_graph->at(unit.optimizers.front()).kind))));
    if (op.sources.size() > 1)
        row(tr("Fused from"), tr("%n node(s)", nullptr, static_cast<int>(op.sources.size())));
    if (shown.copies > 1)
        row(tr("Stands for"), tr("%n copies", nullptr, shown.copies));
    facts();
    return html + QStringLiteral("</table>");
}

// Find.

void DagView::openFind()
{
    placeFindBar();
    m_findBar->open();
    search(m_findBar->text());
}

void DagView::placeFindBar()
{
    m_findBar->adjustSize();
    m_findBar->move(std::max(0, width() - m_findBar->width() - 12), 10);
}

void DagView::search(const QString &text)
{
    m_matches.clear();
    m_match = -1;
    const QString wanted = text.trimmed();
    if (m_outline && !wanted.isEmpty()) {
        const QByteArray needle = wanted.toLower().toUtf8();
        const auto contains = [&needle](const std::string &hay) {
            // ASCII letters in either case; others as they are.
            return std::search(hay.begin(), hay.end(), needle.begin(), needle.end(), [](char a, char b) {
                return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
            }) != hay.end();
        };
        for (std::size_t unit = 0; unit < m_outline->units.size(); ++unit) {
            const auto &op = m_graph->at(m_outline->units[unit].op);
            if (contains(op.name) || contains(nameOf(op.kind)))
                m_matches.push_back(static_cast<std::int32_t>(unit));
        }
    }
    m_findBar->setMatches(m_match, static_cast<int>(m_matches.size()));
    refreshMarks();
    update();
}

void DagView::stepMatch(int by)
{
    if (m_matches.empty() || !m_outline)
        return;
    const int count = static_cast<int>(m_matches.size());
    m_match = m_match < 0 ? (by > 0 ? 0 : count - 1) : (m_match + by + count) % count;
    m_findBar->setMatches(m_match, count);
    showOperator(m_outline->units[at(m_matches[at(m_match)])].op);
}

void DagView::findNext()
{
    stepMatch(1);
}

void DagView::findPrevious()
{
    stepMatch(-1);
}

void DagView::showOperator(OperatorId op)
{
    if (!m_outline || !op.valid() || at(op.index) >= m_outline->unitOfOperator.size())
        return;
    const std::int32_t unit = m_outline->unitOfOperator[at(op.index)];
    if (unit < 0)
        return;
    const auto &found = m_outline->units[at(unit)];
    std::vector<OperatorId> operators{found.op};
    if (found.backward.valid())
        operators.push_back(found.backward);
    operators.insert(operators.end(), found.optimizers.begin(), found.optimizers.end());
    // Only the way to it is opened; a copy of a stack is shown by the one that stands for all, if that is
    // open.
    bool changed = false;
    std::int32_t shown = unit;
    const auto isMatch = [this](std::int32_t wanted) {
        return std::binary_search(m_matches.begin(), m_matches.end(), wanted);
    };
    for (bool again = true; again;) {
        again = false;
        for (const auto item : m_outline->pathTo(m_outline->units[at(shown)].item)) {
            const auto &around = m_outline->at(item);
            if (around.kind == OutlineItem::Kind::Operator)
                continue;
            if (around.kind == OutlineItem::Kind::Stack && !m_state.unstacked.contains(item)) {
                const std::int32_t stride = m_outline->at(around.children.front()).end - around.begin;
                const std::int32_t same = around.begin + (shown - around.begin) % stride;
                // A search that names this very copy, and not the one that stands for all, wants to see this
                // one.
                if (same != shown && isMatch(shown) && !isMatch(same)) {
                    m_state.unstacked.insert(item);
                    changed = true;
                } else if (same != shown) {
                    shown = same;
                    again = true;
                    break;
                }
            }
            changed |= m_state.open.insert(item).second;
        }
    }
    m_revealUnit = unit;
    m_selection->select(std::move(operators));
    if (changed || !m_picture || m_picture->state != m_state) {
        requestLayout();
        return;
    }
    const std::int32_t box = m_picture->visible.boxOfUnit[at(unit)];
    m_revealUnit.reset();
    m_camera.scale = std::max(m_camera.scale, 0.7);
    m_camera.centreOn(m_picture->scene.rects[at(box)], width(), height());
    setFocused(box, false);
    m_fitted = false;
    refreshMarks();
    cameraMoved();
}

} // namespace planloom
