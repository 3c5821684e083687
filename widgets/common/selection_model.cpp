#include "widgets/common/selection_model.h"

#include <algorithm>
#include <iterator>

namespace planloom {

namespace {

std::vector<OperatorId> tidied(std::vector<OperatorId> operators)
{
    std::erase_if(operators, [](OperatorId id) { return !id.valid(); });
    std::sort(operators.begin(), operators.end());
    operators.erase(std::unique(operators.begin(), operators.end()), operators.end());
    return operators;
}

} // namespace

SelectionModel::SelectionModel(QObject *parent)
    : QObject(parent)
{
}

bool SelectionModel::contains(OperatorId id) const
{
    return std::binary_search(m_selected.begin(), m_selected.end(), id);
}

void SelectionModel::select(std::vector<OperatorId> operators)
{
    operators = tidied(std::move(operators));
    if (operators == m_selected)
        return;
    m_selected = std::move(operators);
    Q_EMIT selectionChanged();
}

void SelectionModel::toggle(const std::vector<OperatorId> &operators)
{
    const auto asked = tidied(operators);
    const bool allIn = std::includes(m_selected.begin(), m_selected.end(), asked.begin(), asked.end());
    std::vector<OperatorId> result;
    if (allIn) {
        std::set_difference(
            m_selected.begin(), m_selected.end(), asked.begin(), asked.end(), std::back_inserter(result));
    } else {
        std::set_union(
            m_selected.begin(), m_selected.end(), asked.begin(), asked.end(), std::back_inserter(result));
    }
    select(std::move(result));
}

void SelectionModel::add(const std::vector<OperatorId> &operators)
{
    auto result = m_selected;
    result.insert(result.end(), operators.begin(), operators.end());
    select(std::move(result));
}

void SelectionModel::clear()
{
    select({});
}

void SelectionModel::setHovered(OperatorId id)
{
    if (id == m_hovered)
        return;
    m_hovered = id;
    Q_EMIT hoveredChanged();
}

} // namespace planloom

#include "moc_selection_model.cpp"
