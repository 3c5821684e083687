// Orders that rows ask for: their arrows' ends can be dragged to other nodes, and their rows edited in one
// line.

#include "engine/base/ids.h"
#include "widgets/dag/dag_gesture_layer.h"

#include "widgets/dag/dag_ghost_painter.h"
#include "widgets/dag/dag_line_editors.h"
#include "widgets/dag/dag_view.h"

#include <QtGui/QPainter>

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

constexpr double kGripReach = 9; ///< Pixels from an arrow's end that still hold it.
constexpr double kGripSize = 5;

/// What is folded into one box with a unit's own operator, which is the first.
std::vector<OperatorId> operatorsOfUnit(const DagOutline &outline, OperatorId op)
{
    const auto &unit = outline.units[at(outline.unitOfOperator[at(op.index)])];
    std::vector<OperatorId> all{unit.op};
    if (unit.backward.valid())
        all.push_back(unit.backward);
    all.insert(all.end(), unit.optimizers.begin(), unit.optimizers.end());
    return all;
}

} // namespace

QLineF DagGestureLayer::orderArrow(std::int32_t arrow) const
{
    const auto &orders = m_view.orders();
    if (arrow < 0 || at(arrow) >= orders.size())
        return {};
    return orderLine(m_view.viewRect(orders[at(arrow)].from), m_view.viewRect(orders[at(arrow)].to));
}

OrderGrip DagGestureLayer::gripUnder(QPointF view) const
{
    if (!m_gestures.context() || m_view.orders().empty())
        return {};
    return gripAt(
        m_view.orders(), [this](std::int32_t box) { return m_view.viewRect(box); }, view, kGripReach,
        m_focusedOrder);
}

/// The line of the row behind an arrow; -1 if the table has it no more.
std::int32_t DagGestureLayer::lineOfOrder(std::int32_t arrow) const
{
    const auto context = m_gestures.context();
    const auto picture = m_view.picture();
    const auto &orders = m_view.orders();
    if (!context || !picture || arrow < 0 || at(arrow) >= orders.size())
        return -1;
    const auto all = [&](std::int32_t box) {
        return planloom::operatorsOf(*picture->outline, picture->visible, box);
    };
    return orderLineOf(
        *context, orders[at(arrow)].row, all(orders[at(arrow)].from), all(orders[at(arrow)].to));
}

bool DagGestureLayer::beginOrderEnd()
{
    const std::int32_t line = lineOfOrder(m_grip.arrow);
    if (line < 0) {
        note(tr("This order is not in the table any more."), m_pressed);
        return false;
    }
    m_arrow = m_view.orders()[at(m_grip.arrow)];
    const auto context = m_gestures.context();
    const Row &row = *context->document.lines()[at(line)]->row;
    const bool first = m_grip.end == OrderEnd::First;
    const auto selected =
        context->index().select(first ? row.selector : std::get<OpOrderRule>(row.rule).second);
    const auto picture = m_view.picture();
    m_orderedCopies.clear();
    for (const auto op : planloom::operatorsOf(
             *picture->outline, picture->visible, first ? m_arrow.from : m_arrow.to, false)) {
        const auto all = operatorsOfUnit(*picture->outline, op);
        m_orderedCopies.push_back(std::any_of(all.begin(), all.end(),
            [&](OperatorId each) { return std::binary_search(selected.begin(), selected.end(), each); }));
    }
    m_drag = Drag::OrderEnd;
    m_gestures.beginRetarget(line, m_grip.end);
    m_scroll.start();
    return true;
}

void DagGestureLayer::stepOrderEnd(QPointF view)
{
    const std::int32_t other = m_grip.end == OrderEnd::First ? m_arrow.to : m_arrow.from;
    const std::int32_t box = m_view.boxAt(view);
    const auto picture = m_view.picture();
    const bool node = box > 0 && box != other && !picture->visible.at(box).frame;
    m_targetBox = node ? box : -1;
    std::vector<OperatorId> operators;
    if (node) {
        const auto copies = planloom::operatorsOf(*picture->outline, picture->visible, box, false);
        for (std::size_t i = 0; i < copies.size(); ++i) {
            if (copies.size() == m_orderedCopies.size() && !m_orderedCopies[i])
                continue;
            const auto all = operatorsOfUnit(*picture->outline, copies[i]);
            operators.insert(operators.end(), all.begin(), all.end());
        }
    }
    m_gestures.aimEndAt(std::move(operators));
}

void DagGestureLayer::focusOrder(std::int32_t by)
{
    const auto count = static_cast<std::int32_t>(m_view.orders().size());
    if (count == 0) {
        note(tr("No row orders operators that are in sight."), QRectF(m_view.rect()).center());
        return;
    }
    m_focusedOrder = m_focusedOrder < 0 ? (by > 0 ? 0 : count - 1) : (m_focusedOrder + by + count) % count;
    const auto &arrow = m_view.orders()[at(m_focusedOrder)];
    const QRectF both = m_view.viewRect(arrow.from) | m_view.viewRect(arrow.to);
    if (!QRectF(m_view.rect()).contains(both)) {
        const QPointF off = QRectF(m_view.rect()).center() - both.center();
        m_view.panBy(off.x(), off.y());
    }
    const auto picture = m_view.picture();
    const auto name = [&](std::int32_t box) {
        return QString::fromStdString(picture->scene.texts[at(box)].title);
    };
    Q_EMIT noted(tr("Order %1 of %2: %3 before %4. F2 edits it.")
                     .arg(m_focusedOrder + 1)
                     .arg(count)
                     .arg(name(arrow.from), name(arrow.to)));
    m_view.update();
}

bool DagGestureLayer::leaveOrder()
{
    if (m_focusedOrder < 0)
        return false;
    m_focusedOrder = -1;
    m_view.update();
    return true;
}

void DagGestureLayer::editOrderRow()
{
    const std::int32_t arrow = m_focusedOrder;
    cancel();
    const auto context = m_gestures.context();
    const std::int32_t line = lineOfOrder(arrow);
    if (!context || line < 0) {
        note(tr("Go to an order's arrow first (O)."), QRectF(m_view.rect()).center());
        return;
    }
    const Row &row = *context->document.lines()[at(line)]->row;
    auto *editor = new OrderRowEditor(QString::fromStdString(toString(row.selector)),
        QString::fromStdString(toString(std::get<OpOrderRule>(row.rule).second)), &m_view);
    m_gestures.beginRetarget(line, OrderEnd::Second);
    connect(editor, &DagLineEditor::changed, this, [this, editor] {
        const auto first = parseSelector(editor->first().toStdString());
        const auto second = parseSelector(editor->second().toStdString());
        if (first && second) {
            editor->setProblem({});
            m_gestures.setOrderSelectors(*first, *second);
        } else {
            m_gestures.aimEndAt({});
            editor->setProblem(QString::fromStdString((first ? second : first).error().message));
        }
    });
    open(editor);
    const QPointF middle = orderArrow(arrow).center();
    editor->moveTo(middle);
}

void DagGestureLayer::paintOrderEnds(QPainter &painter)
{
    const Palette &palette = paletteFor(m_view);
    const auto &orders = m_view.orders();
    const auto grip = [&](QPointF place, bool filled) {
        painter.setRenderHint(QPainter::Antialiasing, true);
        painter.setPen(QPen(palette.text, 1.4));
        painter.setBrush(filled ? palette.warning : palette.surface);
        painter.drawEllipse(place, kGripSize, kGripSize);
    };
    if (m_focusedOrder >= 0 && at(m_focusedOrder) < orders.size()) {
        const QLineF line = orderArrow(m_focusedOrder);
        painter.setRenderHint(QPainter::Antialiasing, true);
        painter.setPen(QPen(palette.text, 3, Qt::SolidLine, Qt::RoundCap));
        painter.drawLine(line);
        painter.setPen(QPen(palette.warning, 1.6));
        painter.drawLine(line);
        grip(line.p1(), false);
        grip(line.p2(), false);
    }
    if (m_grip.arrow < 0)
        return;
    const bool first = m_grip.end == OrderEnd::First;
    if (m_drag != Drag::OrderEnd) {
        if (at(m_grip.arrow) >= orders.size())
            return;
        const QLineF line = orderArrow(m_grip.arrow);
        grip(line.p1(), first);
        grip(line.p2(), !first);
        return;
    }
    const auto &proposal = m_gestures.proposal();
    const bool refused = proposal && proposal->refusal.has_value();
    const QLineF line = orderLine(m_view.viewRect(m_arrow.from), m_view.viewRect(m_arrow.to));
    const QPointF moved = m_targetBox > 0
        ? (first ? orderLine(m_view.viewRect(m_targetBox), m_view.viewRect(m_arrow.to)).p1()
                 : orderLine(m_view.viewRect(m_arrow.from), m_view.viewRect(m_targetBox)).p2())
        : m_last;
    paintOrderGhost(painter, first ? moved : line.p1(), first ? line.p2() : moved, refused, palette);
}

} // namespace planloom
