#include "engine/search/steps_seen.h"

#include "engine/lowering/order/sequence.h"

#include <algorithm>

namespace planloom {

namespace {

Plan planWithoutMesh(Plan plan)
{
    for (OperatorDecision &decision : plan.decisions)
        decision.partition = withoutMesh(decision);
    return plan;
}

} // namespace

bool isSameOrder(const Plan &a, const Plan &b)
{
    return a.schedule == b.schedule && a.order == b.order && a.orders == b.orders
        && a.communicationOrders == b.communicationOrders && a.interleaved == b.interleaved
        && a.inFlight == b.inFlight;
}

Partition withoutMesh(const OperatorDecision &decision)
{
    Partition result;
    const bool isFlat = decision.ringSplit < 0 && decision.coshardRegion < 0;
    for (Split split : decision.partition.splits) {
        split.axis.clear();
        const bool isPlain = isFlat && split.over == SplitOver::Devices && split.sizes.empty()
            && split.kind != SplitKind::Value;
        if (isPlain && split.parts == 1)
            continue;
        Split *last = result.splits.empty() ? nullptr : &result.splits.back();
        if (isPlain && last && last->over == SplitOver::Devices && last->sizes.empty()
            && last->kind == split.kind && last->dimension == split.dimension)
            last->parts *= split.parts;
        else
            result.splits.push_back(std::move(split));
    }
    return result;
}

StepsSeen::Seen::iterator StepsSeen::found(const Plan &own)
{
    const auto same = std::find_if(m_seen.begin(), m_seen.end(), [&own](const auto &seen) {
        return isSameOrder(own, seen.first) && isSameButForOrder(own, seen.first);
    });
    if (same != m_seen.end())
        m_seen.splice(m_seen.begin(), m_seen, same);
    return same;
}

std::optional<TimedStep> StepsSeen::find(const Plan &plan)
{
    const Plan own = planWithoutMesh(plan);
    const std::lock_guard lock(m_mutex);
    const auto same = found(own);
    return same == m_seen.end() ? std::nullopt : std::optional(same->second);
}

void StepsSeen::add(const Plan &plan, const TimedStep &step)
{
    Plan own = planWithoutMesh(plan);
    const std::lock_guard lock(m_mutex);
    if (found(own) != m_seen.end())
        return;
    const std::size_t decisions = own.decisions.size();
    m_seen.emplace_front(std::move(own), step);
    while (m_seen.size() > kMostPlans
        || (m_seen.size() > kLeastPlans && m_seen.size() * decisions > kMostDecisions))
        m_seen.pop_back();
}

std::size_t StepsSeen::size() const
{
    const std::lock_guard lock(m_mutex);
    return m_seen.size();
}

} // namespace planloom
