#include "engine/plan/plan_draft.h"

#include <algorithm>

namespace planloom {

std::int32_t PlanDraft::domainNumber(const Domain &domain)
{
    const auto found = std::find(domains.begin(), domains.end(), domain);
    if (found != domains.end())
        return static_cast<std::int32_t>(found - domains.begin());
    domains.push_back(domain);
    return static_cast<std::int32_t>(domains.size()) - 1;
}

std::vector<ChosenSplit> chosenSplits(const Operator &op, const OperatorBinding &binding)
{
    std::vector<ChosenSplit> chosen;
    Partition sofar;
    const auto isLegal = [&](const std::vector<Split> &more) {
        Partition together = sofar;
        together.splits.insert(together.splits.end(), more.begin(), more.end());
        return checkPartition(op, together).has_value();
    };
    const auto add = [&](const std::vector<Split> &splits, std::int32_t row) {
        for (const Split &split : splits) {
            sofar.splits.push_back(split);
            if (split.parts > 1)
                chosen.push_back({split, row});
        }
    };
    for (std::size_t i = 0; i < binding.allowed.axes.size(); ++i) {
        const Allowed<Split> &allowed = binding.allowed.axes[i].allowed;
        if (!allowed.isListed())
            continue;
        const auto &members = allowed.members();
        // An exact one is taken as it is: whether it is legal is its row's business.
        const auto legal = members.size() == 1 ? members.begin()
                                               : std::find_if(members.begin(), members.end(),
                                                   [&](const Split &split) { return isLegal({split}); });
        add({legal == members.end() ? members.front() : *legal}, binding.axisRows[i]);
    }
    if (const auto &within = binding.allowed.within; within.isListed()) {
        const auto &members = within.members();
        const auto legal =
            members.size() == 1 ? members.begin() : std::find_if(members.begin(), members.end(), isLegal);
        add(legal == members.end() ? members.front() : *legal, binding.withinRow);
    }
    return chosen;
}

} // namespace planloom
