// Shaping plans by keyboard: keys during a drag, the line editors, and what needs no line.

#include "engine/base/ids.h"
#include "engine/base/text.h"
#include "widgets/dag/dag_gesture_layer.h"

#include "engine/gesture/selection.h"
#include "widgets/dag/dag_ghost_painter.h"
#include "widgets/dag/dag_line_editors.h"
#include "widgets/dag/dag_painter.h"
#include "widgets/dag/dag_view.h"

#include <QtCore/QStringList>
#include <QtGui/QKeyEvent>

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

constexpr int kMostChoices = 40;

} // namespace

bool DagGestureLayer::key(const QKeyEvent &event, bool pressed)
{
    if (m_drag == Drag::None)
        return false;
    switch (event.key()) {
    case Qt::Key_Escape:
        if (pressed)
            cancel();
        return true;
    case Qt::Key_Shift:
    case Qt::Key_Control:
    case Qt::Key_Alt: {
        // A modifier's own event does not count itself as held.
        const Qt::KeyboardModifier own = event.key() == Qt::Key_Shift ? Qt::ShiftModifier
            : event.key() == Qt::Key_Control                          ? Qt::ControlModifier
                                                                      : Qt::AltModifier;
        Qt::KeyboardModifiers held = event.modifiers();
        held.setFlag(own, pressed);
        if (m_gestures.active())
            step(m_last, held);
        return true;
    }
    default:
        break;
    }
    if (pressed && event.key() == Qt::Key_O && !event.isAutoRepeat()) {
        m_gestures.toggleRowsInTheWay();
        m_view.update();
    }
    if (!pressed || m_drag != Drag::Chip)
        return true; // nothing else is done in the middle of a drag
    if (event.key() >= Qt::Key_0 && event.key() <= Qt::Key_9)
        m_gestures.typeDigit(event.key() - Qt::Key_0);
    else if (event.key() == Qt::Key_Backspace)
        m_gestures.forgetParts();
    else if (event.key() == Qt::Key_Up || event.key() == Qt::Key_Right)
        m_gestures.stepParts(1);
    else if (event.key() == Qt::Key_Down || event.key() == Qt::Key_Left)
        m_gestures.stepParts(-1);
    setCursorFor();
    m_view.update();
    return true;
}

std::vector<OperatorId> DagGestureLayer::subject() const
{
    auto operators = forwardOf(m_view.selectionModel()->selected());
    const auto picture = m_view.picture();
    if (operators.empty() && picture && m_view.focusedBox() > 0)
        operators =
            forwardOf(planloom::operatorsOf(*picture->outline, picture->visible, m_view.focusedBox(), false));
    return operators;
}

void DagGestureLayer::note(const QString &sentence, QPointF place)
{
    m_note = sentence;
    m_notePlace = place;
    m_noteEnd.start();
    m_view.update();
    Q_EMIT noted(sentence);
}

QPointF DagGestureLayer::editorPlace() const
{
    const std::int32_t box = m_chipBox > 0 ? m_chipBox : m_view.focusedBox();
    const QRectF rect = m_view.viewRect(box);
    if (rect.isEmpty() || !rect.intersects(QRectF(m_view.rect())))
        return {m_view.width() / 2.0 - 160, m_view.height() / 3.0};
    double below = rect.bottom() + 6;
    for (const PlacedChip &chip : placedChips())
        below = std::max(below, chip.rect.bottom() + 6);
    return {rect.left(), below};
}

void DagGestureLayer::open(DagLineEditor *editor)
{
    m_editor = editor;
    connect(editor, &DagLineEditor::accepted, this, [this] {
        const auto proposal = m_gestures.proposal();
        if (!proposal || !proposal->accepted()) {
            // The line stays, with the reason under it: what was typed is not lost.
            if (m_editor->problem().isEmpty())
                m_editor->setProblem(proposal && proposal->refusal
                        ? QString::fromStdString(proposal->refusal->message)
                        : tr("This would change nothing."));
            return;
        }
        m_gestures.commit();
        closeEditor();
    });
    connect(editor, &DagLineEditor::abandoned, this, &DagGestureLayer::cancel);
    connect(editor, &DagLineEditor::rowsOffToggled, this, [this] {
        m_gestures.toggleRowsInTheWay();
        m_view.update();
    });
    connect(editor, &DagLineEditor::changed, this, [this] {
        const auto &proposal = m_gestures.proposal();
        if (proposal)
            m_editor->setProblem(
                proposal->refusal ? QString::fromStdString(proposal->refusal->message) : QString());
        m_view.update();
    });
    editor->open(editorPlace());
    Q_EMIT editor->changed();
}

void DagGestureLayer::closeEditor()
{
    if (m_editor == nullptr)
        return;
    DagLineEditor *editor = std::exchange(m_editor, nullptr);
    editor->disconnect(this);
    const bool hadFocus = editor->isAncestorOf(m_view.focusWidget()) || editor->hasFocus();
    editor->hide();
    editor->deleteLater();
    if (hadFocus)
        m_view.setFocus(Qt::OtherFocusReason);
    m_view.update();
}

void DagGestureLayer::editSplit(SplitKind kind)
{
    cancel();
    const auto context = m_gestures.context();
    auto operators = subject();
    if (!context || operators.empty()) {
        note(tr("Select operators to split first."), QRectF(m_view.rect()).center());
        return;
    }
    // The dimensions are those of the operator with the chips, else of the first one.
    OperatorId on = representative(m_chipBox);
    if (!on.valid() || !std::binary_search(operators.begin(), operators.end(), on))
        on = operators.front();
    auto chips = chipsOf(*context, on);
    auto *editor = new SplitEditor(chips, context->mesh, hasValueSplit(*context, on), kind, &m_view);
    m_gestures.beginSplit(std::move(operators), on, std::move(chips), editor->chip());
    connect(editor, &DagLineEditor::changed, this, [this, editor] {
        m_gestures.setSplitKind(editor->kind());
        m_gestures.setChip(editor->chip());
        m_gestures.setAxis(editor->axis());
        m_gestures.setParts(editor->parts());
        editor->setCounts(m_gestures.counts());
    });
    open(editor);
}

void DagGestureLayer::editPlace()
{
    cancel();
    const auto context = m_gestures.context();
    auto operators = subject();
    if (!context || operators.empty()) {
        note(tr("Select operators to place first."), QRectF(m_view.rect()).center());
        return;
    }
    auto *editor = new PlaceEditor({}, &m_view);
    auto these = onlyThese(operators);
    m_gestures.beginPlace(std::move(operators), std::move(these));
    connect(editor, &DagLineEditor::changed, this, [this, editor] {
        if (editor->text().trimmed().isEmpty()) {
            m_gestures.aimAt({});
            editor->setProblem({});
            return;
        }
        const auto target = placeFromText(editor->text().toStdString(), world());
        m_gestures.aimAt(target ? std::optional(*target) : std::nullopt);
        editor->setProblem(target ? QString()
                                  : QString::fromStdString(target.error().message
                                      + (target.error().advice.empty() ? "" : ". " + target.error().advice)));
    });
    open(editor);
}

void DagGestureLayer::editOrder()
{
    cancel();
    const auto context = m_gestures.context();
    auto operators = subject();
    if (m_handleBox > 0)
        operators = operatorsFor(m_handleBox);
    if (!context || operators.empty()) {
        note(tr("Select the operators that are to run first."), QRectF(m_view.rect()).center());
        return;
    }
    auto *editor = new OrderEditor(&m_view);
    m_gestures.beginOrder(std::move(operators));
    auto shown = std::make_shared<QString>();
    auto found = std::make_shared<std::vector<OperatorId>>();
    connect(editor, &DagLineEditor::changed, this, [this, editor, shown, found] {
        const auto picture = m_view.picture();
        if (!picture)
            return;
        const auto &graph = *picture->outline->graph;
        if (editor->text() != *shown) {
            *shown = editor->text();
            found->clear();
            const std::string needle = shown->trimmed().toStdString();
            QStringList names;
            bool more = false;
            for (std::size_t i = 0; !needle.empty() && i < graph.operators.size(); ++i) {
                const auto &op = graph.operators[i];
                if (op.direction != Direction::Forward)
                    break; // forward operators come first
                const OperatorId id{static_cast<std::int32_t>(i)};
                if (!containsLetters(op.name, needle)
                    || std::binary_search(m_gestures.operators().begin(), m_gestures.operators().end(), id))
                    continue;
                if (names.size() == kMostChoices) {
                    more = true;
                    break;
                }
                found->push_back(id);
                names.append(QString::fromStdString(op.name));
            }
            editor->setChoices(names, more);
        }
        const int choice = editor->choice();
        const bool any = choice >= 0 && choice < static_cast<int>(found->size());
        m_targetBox = -1;
        if (any) {
            const std::int32_t unit = picture->outline->unitOfOperator[at((*found)[at(choice)].index)];
            m_targetBox = unit < 0 ? -1 : picture->visible.boxOfUnit[at(unit)];
        }
        m_gestures.aimAtOperators(
            any ? copiesInSight((*found)[at(choice)], m_targetBox) : std::vector<OperatorId>{});
        if (!any)
            editor->setProblem(
                shown->trimmed().isEmpty() ? QString() : tr("No operator has this in its name."));
    });
    open(editor);
}

/// Several operators run before the copies of `op` that its box stands for, each before its own; one before
/// `op` alone.
std::vector<OperatorId> DagGestureLayer::copiesInSight(OperatorId op, std::int32_t box) const
{
    if (box <= 0 || m_gestures.operators().size() < 2)
        return {op};
    const auto picture = m_view.picture();
    const auto &outline = *picture->outline;
    const auto similar = similarOperators(*outline.graph, {op});
    std::vector<OperatorId> result;
    for (const OperatorId each : forwardOf(planloom::operatorsOf(outline, picture->visible, box, false))) {
        if (std::binary_search(similar.begin(), similar.end(), each))
            result.push_back(each);
    }
    return result.empty() ? std::vector{op} : result;
}

void DagGestureLayer::editStage()
{
    cancel();
    const auto context = m_gestures.context();
    auto operators = subject();
    if (!context || operators.empty()) {
        note(tr("Select the operators of a stage first."), QRectF(m_view.rect()).center());
        return;
    }
    std::int32_t stage = 0;
    if (context->plan && at(operators.front().index) < context->plan->decisions.size())
        stage = std::max(0, context->plan->decisions[at(operators.front().index)].stage.index);
    auto *editor = new StageEditor(stage, &m_view);
    m_gestures.beginStage(std::move(operators));
    connect(editor, &DagLineEditor::changed, this, [this, editor] { m_gestures.setStage(editor->stage()); });
    open(editor);
}

/// Does at once what needs no further word; a refusal is told where the operators are.
void DagGestureLayer::act(
    const std::function<Proposal(const GestureContext &, const std::vector<OperatorId> &)> &propose)
{
    cancel();
    const auto context = m_gestures.context();
    const auto operators = subject();
    if (!context || operators.empty()) {
        note(tr("Select operators first."), QRectF(m_view.rect()).center());
        return;
    }
    const auto proposal = propose(*context, operators);
    const QPointF place = editorPlace();
    if (proposal.refusal)
        note(QString::fromStdString(proposal.refusal->message), place);
    else if (proposal.edit.empty())
        note(tr("This would change nothing."), place);
    else
        m_gestures.host()->commit(proposal);
}

void DagGestureLayer::recompute()
{
    act([](const GestureContext &context, const std::vector<OperatorId> &operators) {
        return proposeRecompute(context, operators);
    });
}

void DagGestureLayer::hold()
{
    act([](const GestureContext &context, const std::vector<OperatorId> &operators) {
        return proposeHold(context, operators);
    });
}

void DagGestureLayer::free()
{
    act([](const GestureContext &context, const std::vector<OperatorId> &operators) {
        return proposeFree(context, operators);
    });
}

} // namespace planloom
