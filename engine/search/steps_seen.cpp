#include "engine/search/steps_seen.h"

#include "engine/lowering/sequence.h"

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

std::optional<TimedStep> StepsSeen::find(const Plan &plan) const
{
    if (m_seen.empty())
        return std::nullopt;
    const Plan own = planWithoutMesh(plan);
    const auto found = std::find_if(m_seen.begin(), m_seen.end(), [&own](const auto &seen) {
        return isSameOrder(own, seen.first) && isSameButForOrder(own, seen.first);
    });
    return found == m_seen.end() ? std::nullopt : std::optional(found->second);
}

void StepsSeen::add(const Plan &plan, const TimedStep &step)
{
    m_seen.emplace_back(planWithoutMesh(plan), step);
}

} // namespace planloom
