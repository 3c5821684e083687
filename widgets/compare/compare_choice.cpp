#include "widgets/compare/compare_choice.h"

#include <algorithm>
#include <utility>

namespace planloom {

CompareChoice::CompareChoice(QObject *parent)
    : QObject(parent)
{
}

int CompareChoice::indexOf(StepId step) const
{
    const auto found = std::find(m_plans.begin(), m_plans.end(), step);
    return found == m_plans.end() ? -1 : static_cast<int>(found - m_plans.begin());
}

void CompareChoice::setPlans(std::vector<StepId> plans)
{
    std::vector<StepId> kept;
    for (const StepId step : plans) {
        if (kept.size() < kMost && std::find(kept.begin(), kept.end(), step) == kept.end())
            kept.push_back(step);
    }
    if (kept == m_plans)
        return;
    m_plans = std::move(kept);
    Q_EMIT changed();
}

void CompareChoice::put(std::size_t place, StepId step)
{
    std::vector<StepId> plans = m_plans;
    if (const int at = indexOf(step); at >= 0) {
        if (place < plans.size())
            std::swap(plans[place], plans[static_cast<std::size_t>(at)]);
        else // it is A alone and shall be B: what is compared with it is the other usual one
            plans = {step == kCurrentPlan ? StepId{0} : kCurrentPlan, step};
    } else {
        while (plans.size() < place)
            plans.push_back(step == kCurrentPlan ? StepId{0} : kCurrentPlan);
        if (place < plans.size())
            plans[place] = step;
        else
            plans.push_back(step);
    }
    setPlans(std::move(plans));
}

void CompareChoice::setA(StepId step)
{
    put(0, step);
}

void CompareChoice::setB(StepId step)
{
    put(1, step);
}

bool CompareChoice::setChosen(StepId step, bool chosen)
{
    const int at = indexOf(step);
    if ((at >= 0) == chosen)
        return true;
    if (chosen && m_plans.size() >= kMost)
        return false;
    std::vector<StepId> plans = m_plans;
    if (chosen)
        plans.push_back(step);
    else
        plans.erase(plans.begin() + at);
    setPlans(std::move(plans));
    return true;
}

void CompareChoice::swap()
{
    if (isPair())
        setPlans([this] {
            std::vector<StepId> plans = m_plans;
            std::swap(plans[0], plans[1]);
            return plans;
        }());
}

} // namespace planloom

#include "moc_compare_choice.cpp"
