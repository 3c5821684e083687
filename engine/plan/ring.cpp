#include "engine/plan/ring.h"

#include <algorithm>
#include <map>
#include <set>

namespace planloom {

std::vector<Ring> ringsOf(const OperatorDecision &decision)
{
    if (decision.ringSplit < 0)
        return {};
    const auto &splits = decision.partition.splits;
    const auto members = static_cast<std::size_t>(splits.back().parts);
    std::map<std::vector<std::int32_t>, Ring> rings; // by the digits of the other splits
    for (std::int32_t p = 0; p < static_cast<std::int32_t>(decision.devices.size()); ++p) {
        std::vector<std::int32_t> others(splits.size());
        std::int32_t left = p;
        for (std::size_t s = splits.size(); s-- > 0; left /= splits[s].parts)
            others[s] = left % splits[s].parts;
        const auto member =
            static_cast<std::size_t>(std::exchange(others[static_cast<std::size_t>(decision.ringSplit)], 0));
        const auto keys = static_cast<std::size_t>(std::exchange(others.back(), 0));
        Ring &ring = rings[others];
        ring.parts.resize(members, std::vector<std::int32_t>(members, -1));
        ring.parts[member][keys] = p;
    }
    std::vector<Ring> list;
    for (auto &[others, ring] : rings)
        list.push_back(std::move(ring));
    return list;
}

namespace {

/// Why an operator cannot go round so; empty if it can.
std::string ringProblem(const Operator &op, const OperatorDecision &decision)
{
    const auto &splits = decision.partition.splits;
    const AttentionSequences sequences = attentionSequences(op);
    if (!sequences.areSplittable() || decision.attention != AttentionMode::Fused)
        return "only keys and values of an attention that does not keep its probabilities go round";
    const auto ring = static_cast<std::size_t>(decision.ringSplit);
    const auto cuts = [](const Split &split, std::int32_t dimension) {
        return split.kind == SplitKind::Dimension && split.dimension == dimension && split.sizes.empty()
            && split.over == SplitOver::Devices;
    };
    if (ring + 1 >= splits.size() || !cuts(splits[ring], sequences.queries)
        || !cuts(splits.back(), sequences.keys) || splits[ring].parts != splits.back().parts
        || std::any_of(
            splits.begin(), splits.end(), [](const Split &split) { return split.kind == SplitKind::Value; }))
        return "a ring takes as many equal parts of its queries as, last, of its keys";
    for (const Ring &each : ringsOf(decision)) {
        std::set<DeviceId> devices;
        for (const auto &parts : each.parts)
            for (const std::int32_t part : parts)
                if (devices.insert(decision.devices[static_cast<std::size_t>(part)]).second
                    && part != parts.front())
                    return "parts of one turn of a ring are on several devices";
        if (devices.size() != each.size())
            return "two members of a ring are on one device";
    }
    return {};
}

} // namespace

void chooseRings(PlanDraft &draft)
{
    for (std::size_t i = 0; i < draft.plan.decisions.size(); ++i) {
        const OperatorBinding &binding = draft.bound.bindings[i];
        if (binding.allowed.ring.empty())
            continue;
        OperatorDecision &decision = draft.plan.decisions[i];
        const auto &splits = decision.partition.splits;
        const auto found = std::find_if(splits.begin(), splits.end(),
            [&](const Split &split) { return split.axis == binding.allowed.ring; });
        if (found == splits.end()) {
            draft.fail(binding.rowOf(Aspect::Ring),
                "'" + draft.graph().operators[i].name + "' is not placed along mesh axis '"
                    + binding.allowed.ring + "'",
                "place it on the mesh");
            continue;
        }
        decision.ringSplit = static_cast<std::int32_t>(found - splits.begin());
        const Operator &op = draft.graph().operators[i];
        if (const std::string problem = ringProblem(op, decision); !problem.empty())
            draft.fail(binding.rowOf(Aspect::Ring), "operator '" + op.name + "': " + problem,
                "give every member a device of its own");
    }
}

Result<void> checkRings(const Plan &plan)
{
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        const OperatorDecision &decision = plan.decisions[i];
        const Operator &op = plan.graph->operators[i];
        if (decision.ringSplit < 0)
            continue;
        if (const std::string problem = ringProblem(op, decision); !problem.empty())
            return Error{ErrorCode::InvalidInput, "operator '" + op.name + "': " + problem,
                "give every member a device of its own", "operator:" + op.name};
    }
    return {};
}

} // namespace planloom
