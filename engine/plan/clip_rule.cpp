#include "engine/plan/clip_rule.h"

#include "engine/graph/operators/weight_update.h"

#include <algorithm>
#include <map>
#include <set>

namespace planloom {

namespace {

/// By part of `decision` that is no replica of another one: who has it. Splits nest, the last one innermost;
/// that of the units has no devices of its own.
std::vector<std::vector<DeviceId>> holdersOf(const OperatorDecision &decision)
{
    std::vector<std::vector<DeviceId>> holders;
    for (std::size_t p = 0; p < decision.devices.size(); ++p) {
        std::size_t rest = p;
        std::size_t part = 0;
        std::size_t weight = 1;
        const auto &splits = decision.partition.splits;
        for (auto split = splits.rbegin(); split != splits.rend(); ++split) {
            if (split->over == SplitOver::Units)
                continue;
            const auto parts = static_cast<std::size_t>(split->parts);
            if (split->kind != SplitKind::Replicate) {
                part += weight * (rest % parts);
                weight *= parts;
            }
            rest /= parts;
        }
        if (part >= holders.size())
            holders.resize(part + 1);
        holders[part].push_back(decision.devices[p]);
    }
    return holders;
}

/// @param busy  elements that each device adds up so far
void decideSquareSum(
    PlanDraft &draft, OperatorId id, OperatorId update, std::map<DeviceId, std::int64_t> &busy)
{
    const OperatorDecision &its = draft.decisionOf(update);
    OperatorDecision own;
    own.stage = its.stage;
    own.precision = its.precision;
    own.precisionRows = its.precisionRows;
    own.why = "reads what the update of its weight reads, each element once";
    for (const Split &split : its.partition.splits)
        if (split.kind != SplitKind::Replicate)
            own.partition.splits.push_back(split);
    const Operator &op = draft.graph().at(id);
    for (const std::vector<DeviceId> &holders : holdersOf(its)) {
        const DeviceId least = *std::min_element(holders.begin(), holders.end(),
            [&](DeviceId a, DeviceId b) { return std::pair(busy[a], a) < std::pair(busy[b], b); });
        const auto part = static_cast<std::int32_t>(own.devices.size()) * unitParts(own.partition);
        busy[least] += elementCount(shapeOf(inputView(draft.graph(), op, own.partition, part, 0).index));
        own.devices.push_back(least);
    }
    draft.decisionOf(id) = std::move(own);
}

} // namespace

void decideClipping(PlanDraft &draft)
{
    const Graph &graph = draft.graph();
    std::map<TensorId, OperatorId> updateOf; // by gradient
    std::set<DeviceId> devices;
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const OperatorId id{static_cast<std::int32_t>(o)};
        if (!updatesWeight(graph.operators[o]))
            continue;
        updateOf[graph.operators[o].inputs[1]] = id;
        devices.insert(draft.decisionOf(id).devices.begin(), draft.decisionOf(id).devices.end());
    }
    std::map<DeviceId, std::int64_t> busy;
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const Operator &op = graph.operators[o];
        const OperatorId id{static_cast<std::int32_t>(o)};
        if (op.kind == OperatorKind::SquareSum) {
            if (const auto update = updateOf.find(op.inputs[0]); update != updateOf.end())
                decideSquareSum(draft, id, update->second, busy);
        } else if (op.kind == OperatorKind::ClipFactor) {
            OperatorDecision own;
            own.stage.index = draft.plan.stageCount - 1;
            own.why = "every device that updates weights needs it";
            own.devices.assign(devices.begin(), devices.end());
            if (devices.size() > 1)
                own.partition.splits.push_back(
                    {.kind = SplitKind::Replicate, .parts = static_cast<std::int32_t>(devices.size())});
            draft.decisionOf(id) = std::move(own);
        }
    }
}

} // namespace planloom
