// The pointer's part of shaping plans; keys and editors are in dag_gesture_layer_keys.cpp, what is painted in
// dag_gesture_layer_paint.cpp, chips in dag_gesture_layer_chips.cpp, what is dragged here from other panels
// in dag_gesture_layer_drops.cpp.

#include "widgets/dag/dag_gesture_layer.h"

#include "engine/base/ids.h"
#include "widgets/dag/dag_ghost_painter.h"
#include "widgets/dag/dag_line_editors.h"
#include "widgets/dag/dag_painter.h"
#include "widgets/dag/dag_view.h"

#include <QtCore/QLineF>
#include <QtGui/QGuiApplication>
#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QWheelEvent>

#include <algorithm>
#include <cmath>
#include <utility>

namespace planloom {

namespace {

constexpr int kScrollInterval = 16;
constexpr double kScrollMargin = 28; ///< Pixels at the window's edges where a drag scrolls.
constexpr double kScrollMost = 18; ///< Pixels a step at the very edge.
constexpr double kLeastHandleNode = 24; ///< Pixels of width below which nodes have no handle.

} // namespace

DagGestureLayer::DagGestureLayer(DagView &view)
    : QObject(&view)
    , m_view(view)
{
    m_scroll.setInterval(kScrollInterval);
    connect(&m_scroll, &QTimer::timeout, this, &DagGestureLayer::scrollAtEdges);
    connect(&m_conversionWatcher, &QFutureWatcherBase::finished, this, &DagGestureLayer::takeConversions);
    m_noteEnd.setSingleShot(true);
    m_noteEnd.setInterval(6000);
    connect(&m_noteEnd, &QTimer::timeout, this, [this] {
        m_note.clear();
        m_view.update();
    });
}

DagGestureLayer::~DagGestureLayer()
{
    m_conversionStop.request_stop();
    m_gestures.abandon();
}

void DagGestureLayer::setHost(GestureHost *host)
{
    if (host == m_gestures.host())
        return;
    cancel();
    if (m_gestures.host() != nullptr)
        m_gestures.host()->disconnect(this);
    m_gestures.setHost(host);
    if (host != nullptr) {
        connect(host, &GestureHost::previewChanged, this, [this] {
            m_gestures.answered();
            lookUpConversions();
            m_view.update();
        });
        connect(host, &GestureHost::contextChanged, this, [this] {
            m_gestures.contextChanged();
            selectionChanged();
        });
        connect(host, &QObject::destroyed, this, [this] {
            endDrag();
            selectionChanged();
        });
    }
    selectionChanged();
}

SceneRect DagGestureLayer::nodeRect(std::int32_t box) const
{
    const QRectF rect = m_view.viewRect(box);
    return {rect.x(), rect.y(), rect.width(), rect.height()};
}

std::vector<OperatorId> DagGestureLayer::forwardOf(const std::vector<OperatorId> &operators) const
{
    std::vector<OperatorId> result;
    const auto picture = m_view.picture();
    if (!picture)
        return result;
    for (const auto op : operators) {
        if (op.valid() && at(op.index) < picture->outline->graph->operators.size()
            && picture->outline->graph->at(op).direction == Direction::Forward)
            result.push_back(op);
    }
    return result;
}

/// What a drag of this box moves: the selection it belongs to, else what it stands for.
std::vector<OperatorId> DagGestureLayer::operatorsFor(std::int32_t box) const
{
    const auto &marks = m_view.marks();
    if (at(box) < marks.size() && (marks[at(box)] & kMarkSelected) != 0)
        return forwardOf(m_view.selectionModel()->selected());
    const auto picture = m_view.picture();
    return forwardOf(planloom::operatorsOf(*picture->outline, picture->visible, box, false));
}

/// Of copies that one box stands for, those of the copy that is in sight.
std::vector<OperatorId> DagGestureLayer::onlyThese(const std::vector<OperatorId> &operators) const
{
    std::vector<OperatorId> result;
    const auto picture = m_view.picture();
    for (const auto op : operators) {
        const std::int32_t unit = picture->outline->unitOfOperator[at(op.index)];
        if (unit < 0)
            continue;
        const auto &item =
            picture->outline->at(picture->visible.at(picture->visible.boxOfUnit[at(unit)]).item);
        if (unit >= item.begin && unit < item.end)
            result.push_back(op);
    }
    return result;
}

/// The operator a box shows; invalid for groups and for what is not of the forward pass.
OperatorId DagGestureLayer::representative(std::int32_t box) const
{
    const auto picture = m_view.picture();
    if (!picture || box <= 0)
        return {};
    const auto &item = picture->outline->at(picture->visible.at(box).item);
    if (item.kind != OutlineItem::Kind::Operator)
        return {};
    const OperatorId op = picture->outline->units[at(item.begin)].op;
    return picture->outline->graph->at(op).direction == Direction::Forward ? op : OperatorId{};
}

PlaceWorld DagGestureLayer::world() const
{
    const auto context = m_gestures.context();
    return context ? placeWorldOf(*context) : PlaceWorld{};
}

void DagGestureLayer::pictureChanged()
{
    // Boxes are numbered anew; what was under way is about operators and goes on, but has no box any more.
    if (m_drag != Drag::None && m_drag != Drag::Body)
        cancel();
    m_box = m_targetBox = m_handleBox = m_pinnedChips = m_focusedOrder = -1;
    m_grip = {};
    selectionChanged();
}

void DagGestureLayer::selectionChanged()
{
    if (m_drag == Drag::ChipPress || m_drag == Drag::Chip)
        return; // the chip in the hand stays; what changed meanwhile is looked at when it is let go
    std::int32_t box = -1;
    const auto &marks = m_view.marks();
    const auto isOperator = [this](std::int32_t each) { return representative(each).valid(); };
    if (m_view.picture() && m_gestures.context()) {
        const std::int32_t focused = m_view.focusedBox();
        if (focused > 0 && at(focused) < marks.size() && (marks[at(focused)] & kMarkSelected) != 0
            && isOperator(focused)) {
            box = focused;
        } else {
            int found = 0;
            for (std::size_t i = 1; i < marks.size() && found < 2; ++i) {
                if ((marks[i] & kMarkSelected) != 0 && isOperator(static_cast<std::int32_t>(i))) {
                    box = static_cast<std::int32_t>(i);
                    ++found;
                }
            }
            if (found != 1)
                box = -1;
        }
    }
    refreshChips(m_pinnedChips > 0 ? m_pinnedChips : box);
}

QRectF DagGestureLayer::handleRect(std::int32_t box) const
{
    if (!m_gestures.context() || box <= 0 || !m_view.picture() || m_view.picture()->visible.at(box).frame)
        return {};
    const QRectF node = m_view.viewRect(box);
    if (node.width() < kLeastHandleNode || node.height() < 8)
        return {};
    const double size = std::clamp(GhostMetrics(m_view.font()).chips.height - 2, 16.0, 40.0);
    if (m_view.picture()->scene.flow == DagFlow::Right) // data leaves at the right
        return {node.right() - size, node.bottom() + 2, size, size};
    return {node.right() + 2, node.center().y() - size / 2, size, size};
}

/// The box whose handle is in sight here: of the hovered one, the selected one, and the one it was last at.
std::int32_t DagGestureLayer::handleAt(QPointF view) const
{
    for (const auto box : {m_view.hoveredBox(), m_chipBox, m_handleBox}) {
        if (box > 0 && handleRect(box).adjusted(-3, -3, 3, 3).contains(view))
            return box;
    }
    return -1;
}

QRectF DagGestureLayer::tileRect(std::int32_t tile) const
{
    if (m_tiles.empty() || tile < 0 || tile >= m_shelf.count)
        return {};
    const auto rect = m_shelf.rectOf(tile);
    return {rect.x, rect.y, rect.width, rect.height};
}

/// In a line editor the key alone is a letter.
QString DagGestureLayer::tagKey() const
{
    return m_editor != nullptr ? tr("Alt+O") : tr("O");
}

QString DagGestureLayer::tag() const
{
    return m_gestures.tag(tagKey());
}

QRectF DagGestureLayer::tagRect() const
{
    return m_tagRect;
}

bool DagGestureLayer::takeMenuRefusal()
{
    return std::exchange(m_refuseMenu, false);
}

bool DagGestureLayer::mousePress(const QMouseEvent &event)
{
    m_refuseMenu = false;
    if (!m_note.isEmpty()) {
        m_note.clear();
        m_view.update();
    }
    if (m_drag != Drag::None) {
        if (event.button() == Qt::RightButton) {
            cancel();
            m_refuseMenu = true;
        }
        return true; // further buttons do nothing while something is dragged
    }
    if (m_editor != nullptr)
        cancel();
    if (event.button() != Qt::LeftButton || !m_gestures.context())
        return false;
    m_pressed = m_last = event.position();
    if (const std::int32_t chip = chipAt(placedChips(), m_pressed.x(), m_pressed.y()); chip >= 0) {
        m_hoveredChip = chip;
        m_box = m_chipBox;
        m_drag = Drag::ChipPress;
        m_pulledOut = false;
        return true;
    }
    if (const OrderGrip grip = gripUnder(m_pressed); grip.arrow >= 0) {
        m_grip = grip;
        m_drag = Drag::OrderPress;
        return true;
    }
    if (const std::int32_t box = handleAt(m_pressed); box > 0) {
        m_box = box;
        m_drag = Drag::HandlePress;
        return true;
    }
    return false;
}

bool DagGestureLayer::mouseMove(const QMouseEvent &event)
{
    const QPointF now = event.position();
    if (m_drag == Drag::None) {
        const std::int32_t chip = chipAt(placedChips(), now.x(), now.y());
        const OrderGrip grip = chip < 0 ? gripUnder(now) : OrderGrip{};
        const std::int32_t handle = chip < 0 && grip.arrow < 0 && m_gestures.context() ? handleAt(now) : -1;
        if (chip != m_hoveredChip || handle != m_handleBox || grip != m_grip) {
            const bool was = m_hoveredChip >= 0 || m_handleBox > 0 || m_grip.arrow >= 0;
            m_hoveredChip = chip;
            m_handleBox = handle;
            m_grip = grip;
            if (chip >= 0 && isLocked(m_chips[at(chip)]))
                m_view.setCursor(Qt::ForbiddenCursor);
            else if (chip >= 0 || handle > 0 || grip.arrow >= 0)
                m_view.setCursor(Qt::OpenHandCursor);
            else if (was)
                m_view.showToolCursor();
            m_view.update();
        }
        m_last = now;
        return chip >= 0 || handle > 0 || grip.arrow >= 0;
    }
    const double moved = QLineF(m_pressed, now).length();
    if (m_drag == Drag::ChipPress && moved > kPullStart) {
        auto operators = operatorsFor(m_box);
        m_drag = Drag::Chip;
        m_gestures.beginSplit(std::move(operators), representative(m_box), m_chips, m_hoveredChip);
    } else if (m_drag == Drag::HandlePress && moved > kPullStart) {
        m_drag = Drag::Handle;
        m_gestures.beginOrder(operatorsFor(m_box));
        m_scroll.start();
    }
    if (m_drag == Drag::OrderPress && moved > kPullStart && !beginOrderEnd()) {
        endDrag();
        return true;
    }
    if (m_gestures.active())
        step(now, event.modifiers());
    m_last = now;
    return true;
}

bool DagGestureLayer::startBody(QPointF pressed, QPointF now, Qt::KeyboardModifiers modifiers)
{
    const auto context = m_gestures.context();
    const std::int32_t box = m_view.boxAt(pressed);
    if (!context || box <= 0)
        return false;
    const auto picture = m_view.picture();
    const QRectF rect = m_view.viewRect(box);
    const bool header =
        pressed.y() <= rect.top() + DagMetrics::kFrameHeader * std::max(m_view.camera().scale, 0.5);
    if (picture->visible.at(box).frame && !header)
        return false;
    auto operators = operatorsFor(box);
    if (operators.empty())
        return false;
    const auto &marks = m_view.marks();
    if (at(box) >= marks.size() || (marks[at(box)] & kMarkSelected) == 0) {
        m_view.selectionModel()->select(planloom::operatorsOf(*picture->outline, picture->visible, box));
        m_view.focusBox(box);
    }
    m_pressed = pressed;
    m_box = box;
    m_drag = Drag::Body;
    auto these = onlyThese(operators);
    m_gestures.beginPlace(std::move(operators), std::move(these));
    m_tiles = shelfTiles(world());
    m_tileCounts = operatorCounts(m_tiles, m_view.operatorsOnDevice());
    const GhostMetrics metrics(m_view.font());
    m_shelf = layOutShelf(static_cast<std::int32_t>(m_tiles.size()), m_view.width(), m_view.height(),
        metrics.tileWidth, metrics.shelfHeight);
    m_scroll.start();
    step(now, modifiers);
    m_last = now;
    return true;
}

/// Chips sit on their node's border: one that is pushed well inside is not pulled away. One that was outside
/// and comes back is given up.
/// From the chip in the hand to its node and over that: where it is pushed to.
QRectF DagGestureLayer::pushRect() const
{
    return m_view.viewRect(m_chipBox).united(chipRect(m_gestures.chip()));
}

bool DagGestureLayer::pushedIn(QPointF view) const
{
    const QRectF chip = chipRect(m_gestures.chip());
    const QRectF node = m_view.viewRect(m_chipBox);
    const double margin = std::min(chip.height() / 2, node.height() / 4);
    QRectF inwards = pushRect();
    if (chip.top() < node.top())
        inwards.adjust(0, chip.height(), 0, -margin);
    else
        inwards.adjust(0, margin, 0, -chip.height());
    return !m_pulledOut && QLineF(m_pressed, view).length() > kPullStart && inwards.contains(view);
}

void DagGestureLayer::step(QPointF view, Qt::KeyboardModifiers modifiers)
{
    switch (m_drag) {
    case Drag::Chip: {
        m_gestures.setSplitKind(modifiers.testFlag(Qt::ShiftModifier) ? SplitKind::Replicate
                : modifiers.testFlag(Qt::ControlModifier)             ? SplitKind::Value
                                                                      : SplitKind::Dimension);
        m_pulledOut = m_pulledOut || !pushRect().contains(view);
        if (pushedIn(view))
            m_gestures.push();
        else
            m_gestures.pull(QLineF(m_pressed, view).length());
        break;
    }
    case Drag::Body: {
        m_gestures.setReplicate(modifiers.testFlag(Qt::AltModifier));
        m_gestures.setOnlyThis(modifiers.testFlag(Qt::ShiftModifier));
        const std::int32_t tile = m_shelf.tileAt(view.x(), view.y());
        m_gestures.aimAt(tile < 0 ? std::optional<PlaceTarget>{} : m_tiles[at(tile)].target);
        break;
    }
    case Drag::Handle: {
        const std::int32_t box = m_view.boxAt(view);
        const bool node = box > 0 && box != m_box && !m_view.picture()->visible.at(box).frame;
        m_targetBox = node ? box : -1;
        const auto picture = m_view.picture();
        m_gestures.aimAtOperators(node
                ? forwardOf(planloom::operatorsOf(*picture->outline, picture->visible, box, false))
                : std::vector<OperatorId>{});
        break;
    }
    case Drag::OrderEnd:
        stepOrderEnd(view);
        break;
    case Drag::None:
    case Drag::ChipPress:
    case Drag::HandlePress:
    case Drag::OrderPress:
    case Drag::Foreign:
        break;
    }
    setCursorFor();
    m_view.update();
}

void DagGestureLayer::setCursorFor()
{
    const auto &proposal = m_gestures.proposal();
    const bool refused = proposal && proposal->refusal;
    m_view.setCursor(refused ? Qt::ForbiddenCursor : Qt::ClosedHandCursor);
}

bool DagGestureLayer::mouseRelease(const QMouseEvent &event)
{
    if (m_drag == Drag::None)
        return false;
    if (event.button() != Qt::LeftButton)
        return true;
    const Drag drag = m_drag;
    if (drag == Drag::ChipPress) {
        const std::int32_t chip = m_hoveredChip;
        const auto pressed = m_chips[at(chip)];
        endDrag();
        if (isLocked(pressed)) {
            note(lockReason(pressed), event.position());
        } else {
            editSplit(SplitKind::Dimension);
            if (auto *split = qobject_cast<SplitEditor *>(m_editor))
                split->setChip(chip);
        }
        return true;
    }
    if (drag == Drag::HandlePress) {
        endDrag();
        editOrder();
        return true;
    }
    if (drag == Drag::OrderPress) { // a click: the arrow has the focus
        const std::int32_t arrow = m_grip.arrow;
        endDrag();
        m_focusedOrder = arrow;
        m_view.update();
        return true;
    }
    if (m_gestures.active()) // modifiers may have changed without a movement
        step(event.position(), event.modifiers());
    finish(event.position());
    return true;
}

void DagGestureLayer::finish(QPointF view)
{
    const bool back = m_drag == Drag::Chip && m_view.viewRect(m_box).contains(view) && !m_gestures.isPushed();
    const auto proposal = m_gestures.proposal();
    if (back) {
        m_gestures.abandon();
    } else {
        m_gestures.commit();
        if (proposal && proposal->refusal)
            note(QString::fromStdString(proposal->refusal->message), view);
    }
    endDrag();
}

void DagGestureLayer::endDrag()
{
    const bool pulled = m_drag == Drag::ChipPress || m_drag == Drag::Chip;
    if (m_drag != Drag::None)
        m_view.showToolCursor();
    m_drag = Drag::None;
    m_box = m_targetBox = -1;
    m_grip = {};
    m_tiles.clear();
    m_scroll.stop();
    if (m_pinnedChips > 0 || pulled) {
        m_pinnedChips = -1;
        selectionChanged();
    }
    m_view.update();
}

void DagGestureLayer::cancel()
{
    m_gestures.abandon();
    endDrag();
    closeEditor();
}

bool DagGestureLayer::wheel(const QWheelEvent &event)
{
    const int turned = event.angleDelta().y() != 0 ? event.angleDelta().y() : event.angleDelta().x();
    if (m_drag == Drag::Chip) {
        if (turned != 0)
            m_gestures.stepParts(turned > 0 ? 1 : -1);
        setCursorFor();
        m_view.update();
        return true;
    }
    if (m_drag == Drag::Body && m_shelf.band.contains(event.position().x(), event.position().y())) {
        m_shelf.scrollBy(-turned);
        step(event.position(), event.modifiers());
        return true;
    }
    return m_drag == Drag::ChipPress || m_drag == Drag::HandlePress || m_drag == Drag::OrderPress;
}

void DagGestureLayer::scrollAtEdges()
{
    const double width = m_view.width();
    const double height = m_view.height();
    const auto speed = [](double place, double size) {
        if (place < kScrollMargin)
            return kScrollMost * std::min(1.0, (kScrollMargin - place) / kScrollMargin);
        if (place > size - kScrollMargin)
            return -kScrollMost * std::min(1.0, (place - size + kScrollMargin) / kScrollMargin);
        return 0.0;
    };
    double dx = speed(m_last.x(), width);
    double dy = speed(m_last.y(), height);
    const bool onShelf = m_drag == Drag::Body && m_shelf.band.contains(m_last.x(), m_last.y());
    if (onShelf) {
        if (dx == 0)
            return;
        m_shelf.scrollBy(-dx);
    } else {
        if (m_drag == Drag::Body && m_last.y() > m_shelf.band.y)
            dy = 0; // below the window's edge is the shelf
        if (dx == 0 && dy == 0)
            return;
        m_view.panBy(dx, dy);
    }
    step(m_last, QGuiApplication::keyboardModifiers());
}

} // namespace planloom

#include "moc_dag_gesture_layer.cpp"
