#include "engine/verify/value_parts.h"

#include <algorithm>
#include <set>

namespace planloom {

std::string ValueParts::note(const ExecutionPlan &plan, OperatorId op, std::size_t slot, const IndexMask &box,
    ValueMask part, const SummandSet &summands, ValueMask selected)
{
    Shares &shares = m_shares[{op, slot, box}];
    shares.resize(static_cast<std::size_t>(part.count));
    std::optional<Share> &mine = shares[static_cast<std::size_t>(part.index)];
    const Share share{summands, selected};
    if (mine && *mine != share)
        return "part " + std::to_string(part.index) + " of the value of input " + std::to_string(slot)
            + " of " + plan.graph->at(op).name + " is another share here than elsewhere";
    mine = share;
    return {};
}

bool ValueParts::addUp(const Shares &shares, std::int32_t summandCount)
{
    // Every set of summands is divided on its own.
    std::map<SummandSet, std::vector<ValueMask>> bySet;
    for (const auto &share : shares) {
        if (!share)
            return false;
        bySet[share->summands].push_back(share->selected);
    }
    std::set<std::int32_t> summands;
    for (auto &[set, parts] : bySet) {
        for (const std::int32_t summand : set)
            if (!summands.insert(summand).second)
                return false;
        std::sort(parts.begin(), parts.end());
        for (std::size_t i = 0; i < parts.size(); ++i)
            if (parts[i] != ValueMask{static_cast<std::int32_t>(i), static_cast<std::int32_t>(parts.size())})
                return false;
    }
    if (bySet.begin()->first.empty()) // the complete value, which anything else would add to
        return bySet.size() == 1;
    return static_cast<std::int32_t>(summands.size()) == summandCount;
}

std::string ValueParts::problem(const ExecutionPlan &plan, const Specification &specification) const
{
    for (const auto &[key, shares] : m_shares) {
        const auto &[op, slot, box] = key;
        const TensorId tensor = plan.graph->at(op).inputs[slot];
        const bool open = std::any_of(shares.begin(), shares.end(),
            [](const std::optional<Share> &share) { return share && !share->summands.empty(); });
        if (open && onceWeighed(specification.at(tensor).combination) != Combination::Sum)
            return "the parts of " + plan.graph->at(op).name + " read parts of '"
                + plan.graph->at(tensor).name + "' that are combined by "
                + nameOf(specification.at(tensor).combination) + " and do not add up to its value";
        if (!addUp(shares, specification.at(tensor).summandCount))
            return "what the parts of " + plan.graph->at(op).name + " read of '" + plan.graph->at(tensor).name
                + "' " + toString(box) + " does not add up to its value";
    }
    return {};
}

} // namespace planloom
