#include "engine/kernels/attention/attention_plan.h"

#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"

#include <algorithm>
#include <limits>

namespace planloom {

namespace {

/// Where the part's scores lie among those of the whole operator.
void placeScores(AttentionPlan &plan)
{
    const std::size_t leading = plan.q->shape.size() - 2;
    plan.leading = Shape(plan.q->shape.begin(), plan.q->shape.end() - 2);
    Shape scores = plan.leading;
    scores.insert(scores.end(), {plan.queries, plan.keys});
    Shape whole;
    for (std::size_t d = 0; d <= leading; ++d)
        whole.push_back(wholeExtent(*plan.q, d));
    whole.push_back(plan.allKeys);
    plan.dropped.heads = denseStrides(whole);
    plan.dropped.heads.resize(leading);
    for (std::size_t d = 0; d < leading; ++d) {
        plan.heads *= plan.leading[d];
        plan.dropped.first += firstOf(*plan.q, d) * plan.dropped.heads[d];
    }
    for (AttentionPlan::Mask &mask : plan.masks) {
        if (mask.buffer == nullptr)
            continue;
        mask.heads = broadcastStrides(mask.buffer->shape, scores);
        mask.row = mask.heads[leading];
        mask.column = mask.heads[leading + 1];
        mask.heads.resize(leading);
    }
}

} // namespace

bool AttentionPlan::needsSlope() const
{
    return dq != nullptr || dk != nullptr
        || std::any_of(masks.begin(), masks.end(), [](const Mask &mask) { return mask.gradient != nullptr; });
}

bool AttentionPlan::hasAllKeys() const
{
    const std::int64_t last = firstQuery + queries - 1;
    return queries > 0 && firstKey <= reach.keysOf(firstQuery, allKeys).begin
        && reach.keysOf(last, allKeys).end <= firstKey + keys;
}

Planned<AttentionPlan> planAttention(const KernelCall &call)
{
    AttentionPlan plan;
    if (call.op->direction == Direction::Forward) {
        plan.q = findInput(call, 0);
        plan.k = findInput(call, 1);
        plan.v = findInput(call, 2);
        for (std::size_t slot = 3; slot < call.inputs.size(); ++slot)
            plan.masks.push_back({findInput(call, slot)});
        plan.y = findOutput(call, 0);
        plan.logSum = findOutput(call, 1);
        plan.probabilities = findOutput(call, 2);
        if (plan.q == nullptr || plan.k == nullptr || plan.v == nullptr)
            return missingSlot(call, "queries, keys and values");
        plan.valueWidth = plan.v->shape.back();
    } else {
        const BackwardCall back(call);
        plan.q = back.input(0);
        plan.k = back.input(1);
        plan.v = back.input(2);
        for (std::size_t slot = 3; slot < back.forwardInputs(); ++slot)
            plan.masks.push_back({back.input(slot), {}, 0, 0, back.wanted(slot)});
        plan.y = back.output(0);
        plan.logSum = back.output(1);
        plan.probabilities = back.output(2);
        plan.dy = back.gradient();
        plan.dq = back.wanted(0);
        plan.dk = back.wanted(1);
        plan.dv = back.wanted(2);
        const bool slope = plan.needsSlope();
        if (!slope && plan.dv == nullptr)
            return std::nullopt;
        if (plan.dy == nullptr || plan.q == nullptr || plan.k == nullptr || plan.logSum == nullptr
            || (slope && (plan.v == nullptr || plan.y == nullptr)))
            return missingSlot(call, "a gradient, a saved input or a saved output");
        plan.valueWidth = plan.dy->shape.back();
    }
    const std::size_t rank = plan.q->shape.size();
    plan.queries = plan.q->shape[rank - 2];
    plan.keys = plan.k->shape[rank - 2];
    plan.width = plan.q->shape[rank - 1];
    plan.group = plan.k->shape[rank - 3] == 0 ? 1 : plan.q->shape[rank - 3] / plan.k->shape[rank - 3];
    plan.firstQuery = firstOf(*plan.q, rank - 2);
    plan.firstKey = firstOf(*plan.k, rank - 2);
    plan.allKeys = wholeExtent(*plan.k, rank - 2);
    const Attributes &attributes = call.op->attributes;
    plan.reach = attentionReach(attributes);
    plan.scale = attributes.real("scale", 1);
    plan.softcap = attributes.real("softcap");
    plan.maskedScore = attributes.has("masked_score") ? attributes.real("masked_score")
                                                      : -std::numeric_limits<double>::infinity();
    plan.dropped.ratio = attributes.real("dropout");
    plan.dropped.draw = DropoutDraw(call.seed, attributes.integer("seed"), plan.dropped.ratio);
    placeScores(plan);
    return plan;
}

} // namespace planloom
