#include "engine/kernels/movement/pick_plans.h"

#include "engine/kernels/kernel_call.h"

namespace planloom {

namespace {

/// The value of an input of the forward operator, in either direction.
const Buffer *valueOf(const KernelCall &call, std::size_t slot)
{
    return call.op->direction == Direction::Forward ? findInput(call, slot) : BackwardCall(call).input(slot);
}

/// What is missing of a call that has none of what it reads.
Error missingInput(const KernelCall &call, const char *forward, const char *backward)
{
    return missingSlot(call, call.op->direction == Direction::Forward ? forward : backward);
}

} // namespace

Planned<PickPlan> planPick(const KernelCall &call)
{
    const bool forward = call.op->direction == Direction::Forward;
    const Buffer *flows = findInput(call, 0); // x, or dy
    const Buffer *made = findOutput(call, 0);
    const Buffer *indices = valueOf(call, 1);
    if (made == nullptr || (call.op->kind == OperatorKind::Gather && elementCount(*made) == 0))
        return std::nullopt;
    if (flows == nullptr || indices == nullptr)
        return missingInput(call, "its input or its indices", "a gradient or its indices");
    if (isFloating(indices->dataType))
        return unsupportedType(call, indices->dataType);
    return PickPlan{forward ? flows : made, indices, forward ? made : flows};
}

Planned<EmbeddingPlan> planEmbedding(const KernelCall &call)
{
    const bool forward = call.op->direction == Direction::Forward;
    const Buffer *flows = findInput(call, 0);
    const Buffer *made = findOutput(call, 0);
    const Buffer *indices = valueOf(call, 1);
    if (made == nullptr)
        return std::nullopt;
    if (flows == nullptr || indices == nullptr)
        return missingInput(call, "its table or its indices", "a gradient or its indices");
    if (isFloating(indices->dataType))
        return unsupportedType(call, indices->dataType);
    const Buffer &table = forward ? *flows : *made;
    return EmbeddingPlan{&table, indices, forward ? made : flows, firstOf(table, 0), table.shape[0],
        wholeExtent(table, 0), table.shape[1], call.op->attributes.integer("padding_index", -1)};
}

Planned<ScanPlan> planScan(const KernelCall &call)
{
    const bool backward = call.op->direction == Direction::Backward;
    const Attributes &attributes = call.op->attributes;
    const Buffer *x = findInput(call, 0);
    const Buffer *made = findOutput(call, 0);
    if (made == nullptr)
        return std::nullopt;
    if (x == nullptr)
        return missingInput(call, "its input", "a gradient");
    return ScanPlan{x, made, axisView(x->shape, attributes.integer("axis")),
        (attributes.integer("reverse") != 0) != backward, attributes.integer("exclusive") != 0};
}

Planned<DropoutPlan> planDropout(const KernelCall &call)
{
    DropoutPlan plan;
    plan.x = findInput(call, 0);
    plan.made = findOutput(call, 0);
    if (plan.made == nullptr)
        return std::nullopt;
    if (plan.x == nullptr)
        return missingInput(call, "its input", "a gradient");
    plan.ratio = call.op->attributes.real("ratio", 0.5);
    plan.draw = DropoutDraw(call.seed, call.op->attributes.integer("seed"), plan.ratio);
    // The mask is drawn by the places of y, or of dy.
    const Buffer &place = call.op->direction == Direction::Forward ? *plan.made : *plan.x;
    Shape whole(place.shape.size());
    for (std::size_t d = 0; d < whole.size(); ++d)
        whole[d] = wholeExtent(place, d);
    plan.strides = denseStrides(whole);
    for (std::size_t d = 0; d < whole.size(); ++d)
        plan.first += firstOf(place, d) * plan.strides[d];
    return plan;
}

Planned<RotaryPlan> planRotary(const KernelCall &call)
{
    const bool forward = call.op->direction == Direction::Forward;
    RotaryPlan plan;
    plan.x = findInput(call, 0);
    plan.cosine = valueOf(call, 1);
    plan.sine = valueOf(call, 2);
    plan.made = findOutput(call, 0);
    plan.value = forward ? nullptr : valueOf(call, 0);
    plan.dcos = forward ? nullptr : findOutput(call, 1);
    plan.dsin = forward ? nullptr : findOutput(call, 2);
    plan.inverse = !forward;
    plan.interleaved = call.op->attributes.integer("interleaved") != 0;
    const bool ofAngles = plan.dcos != nullptr || plan.dsin != nullptr;
    if (plan.made == nullptr && !ofAngles)
        return std::nullopt;
    if (plan.x == nullptr || (plan.made != nullptr && (plan.cosine == nullptr || plan.sine == nullptr))
        || (ofAngles && plan.value == nullptr))
        return missingInput(call, "its three inputs", "a gradient or a saved input");
    if (plan.x->shape.empty() || plan.x->shape.back() % 2 != 0)
        return invalidInput(call,
            "operator " + call.op->name + " rotates pairs, but its last dimension is odd in "
                + toString(plan.x->shape));
    return plan;
}

} // namespace planloom
