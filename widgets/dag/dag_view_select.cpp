// What belongs together on the canvas: selecting what is similar, what data reaches, what shares devices.
// Large models are looked through by a worker.

#include "engine/base/ids.h"
#include "widgets/dag/dag_view.h"

#include "engine/base/background_disposal.h"
#include "engine/gesture/selection.h"
#include "widgets/dag/dag_cone_bar.h"

#include <QtConcurrent/QtConcurrentRun>

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

/// Models up to this many units are looked through at once: well below a millisecond.
constexpr std::size_t kSmallOutline = 1000;

} // namespace

std::vector<OperatorId> DagView::selectedOrFocused() const
{
    if (!m_selection->selected().empty() || m_focused <= 0)
        return m_selection->selected();
    auto operators = planloom::operatorsOf(*m_outline, m_picture->visible, m_focused, true);
    std::sort(operators.begin(), operators.end());
    return operators;
}

std::vector<std::int32_t> DagView::selectedUnits() const
{
    std::vector<char> chosen(m_outline->units.size(), 0);
    bool any = false;
    const auto add = [&](OperatorId op) {
        if (at(op.index) >= m_outline->unitOfOperator.size() || m_outline->unitOfOperator[at(op.index)] < 0)
            return;
        chosen[at(m_outline->unitOfOperator[at(op.index)])] = 1;
        any = true;
    };
    for (const auto op : m_selection->selected())
        add(op);
    if (!any && m_focused > 0) {
        for (const auto op : planloom::operatorsOf(*m_outline, m_picture->visible, m_focused, false))
            add(op);
    }
    std::vector<std::int32_t> units;
    for (std::size_t unit = 0; unit < chosen.size(); ++unit) {
        if (chosen[unit] != 0)
            units.push_back(static_cast<std::int32_t>(unit));
    }
    return units;
}

void DagView::selectUnits(const std::vector<std::int32_t> &units)
{
    std::vector<OperatorId> operators;
    operators.reserve(units.size() * 2);
    for (const auto index : units) {
        const auto &unit = m_outline->units[at(index)];
        operators.push_back(unit.op);
        if (unit.backward.valid())
            operators.push_back(unit.backward);
        operators.insert(operators.end(), unit.optimizers.begin(), unit.optimizers.end());
    }
    m_selection->select(std::move(operators));
}

/// What a worker has found to be selected.
struct DagChoice {
    std::shared_ptr<const DagOutline> outline{};
    std::vector<std::int32_t> units{};
    std::vector<OperatorId> operators{}; ///< Instead of units.
    std::optional<DagCone> cone{}; ///< Where it is one: what is selected is within it.
    bool forwards = true;
};

void DagView::choose(std::function<DagChoice(const DagOutline &, const std::stop_token &)> find)
{
    m_choiceStop.request_stop();
    m_choiceStop = std::stop_source{};
    auto job = [outline = m_outline, find = std::move(find), stop = m_choiceStop.get_token()] {
        DagChoice choice = find(*outline, stop);
        choice.outline = outline;
        return sharedInBackground(std::move(choice));
    };
    if (m_outline->units.size() <= kSmallOutline) {
        m_choosing = false;
        take(job());
        return;
    }
    m_choosing = true;
    m_choiceWatcher.setFuture(QtConcurrent::run(std::move(job)));
}

void DagView::takeChoice()
{
    if (std::exchange(m_choosing, false))
        take(m_choiceWatcher.result());
}

void DagView::take(const std::shared_ptr<const DagChoice> &choice)
{
    if (!m_picture || choice->outline != m_outline)
        return; // of a model that has gone
    if (!choice->units.empty())
        selectUnits(choice->units);
    else if (!choice->operators.empty())
        m_selection->select(choice->operators);
    if (choice->cone && choice->cone->depth() > 0) {
        m_cone = choice; // the selection reports first, which would close the bar
        m_coneBar->open(choice->forwards, choice->cone->depth());
        m_coneBar->setCount(static_cast<qsizetype>(choice->units.size()));
    }
}

/// The bar shows other steps of the cone.
void DagView::selectWithinCone(int depth)
{
    if (!m_cone || !m_picture || m_cone->outline != m_outline)
        return;
    const auto cone = std::exchange(m_cone, nullptr); // so that the bar stays
    const auto units = cone->cone->within(depth);
    m_coneBar->setCount(static_cast<qsizetype>(units.size()));
    selectUnits(units);
    m_cone = cone;
}

void DagView::closeCone()
{
    if (!m_cone && m_coneBar->isHidden())
        return;
    m_cone = nullptr;
    const bool hadFocus = m_coneBar->isAncestorOf(focusWidget());
    m_coneBar->hide();
    if (hadFocus)
        setFocus(Qt::OtherFocusReason);
}

void DagView::selectSimilar()
{
    if (!m_picture)
        return;
    choose([operators = selectedOrFocused()](const DagOutline &outline, const std::stop_token &stop) {
        return DagChoice{.operators = similarOperators(*outline.graph, operators, stop)};
    });
}

void DagView::selectCone(bool forwards)
{
    if (!m_picture)
        return;
    choose([units = selectedUnits(), forwards](const DagOutline &outline, const std::stop_token &stop) {
        DagChoice choice;
        choice.forwards = forwards;
        choice.cone = wholeCone(outline, units, forwards, stop);
        choice.units = choice.cone->within(-1);
        return choice;
    });
}

void DagView::invertSelection()
{
    if (m_picture)
        m_selection->select(invertedSelection(*m_graph, m_selection->selected()));
}

void DagView::selectSameKind(std::int32_t item)
{
    const auto wanted = m_graph->at(m_outline->units[at(m_outline->at(item).begin)].op).kind;
    choose([wanted](const DagOutline &outline, const std::stop_token &) {
        DagChoice choice;
        for (std::size_t unit = 0; unit < outline.units.size(); ++unit) {
            if (outline.graph->at(outline.units[unit].op).kind == wanted)
                choice.units.push_back(static_cast<std::int32_t>(unit));
        }
        return choice;
    });
}

void DagView::selectSame(bool device)
{
    if (!m_picture)
        return;
    const auto plan = m_facts->plan;
    if (!plan || plan->decisions.size() != m_graph->operators.size()) {
        Q_EMIT noted(tr("There is no plan yet."));
        return;
    }
    choose([plan, device, operators = selectedOrFocused()](const DagOutline &, const std::stop_token &) {
        return DagChoice{.operators = device ? operatorsOnSameDevices(*plan, operators)
                                             : operatorsOfSameStages(*plan, operators)};
    });
}

void DagView::selectSameDevice()
{
    selectSame(true);
}

void DagView::selectSameStage()
{
    selectSame(false);
}

} // namespace planloom
