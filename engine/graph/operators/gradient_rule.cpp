#include "engine/graph/operator_files/custom_operator.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/kind_entry.h"

#include <algorithm>
#include <vector>

namespace planloom {

namespace {

bool isFloatingSlot(const Graph &graph, const std::vector<TensorId> &slots, std::size_t slot)
{
    return slot < slots.size() && slots[slot].valid() && isFloating(graph.at(slots[slot]).type.dataType);
}

/// Notes which of `slots` are needed, of those that are there.
void noteNeeded(
    const std::vector<std::size_t> &slots, const std::vector<TensorId> &tensors, std::vector<bool> &needed)
{
    for (const std::size_t slot : slots)
        if (slot < tensors.size() && tensors[slot].valid())
            needed[slot] = true;
}

} // namespace

GradientRule gradientRule(const Graph &graph, const Operator &forward, const std::vector<bool> &wanted)
{
    if (forward.kind == OperatorKind::Custom)
        return customGradientRule(graph, forward, wanted);
    GradientRule rule;
    rule.gradientOf.resize(forward.inputs.size(), false);
    rule.needsInput.resize(forward.inputs.size(), false);
    rule.needsOutput.resize(forward.outputs.size(), false);
    if (!isFloatingSlot(graph, forward.outputs, 0))
        return rule;
    const GradientNeeds &ofKind = entryOf(forward.kind).gradients;
    const NeedsOfInputs own = ofKind.of ? ofKind.of(forward) : NeedsOfInputs{};
    const NeedsOfInputs &needs = ofKind.of ? own : ofKind.all;
    for (std::size_t slot = 0; slot < std::min(forward.inputs.size(), needs.size()); ++slot) {
        if (!isFloatingSlot(graph, forward.inputs, slot) || !needs[slot])
            continue;
        rule.gradientOf[slot] = true;
        rule.differentiable = true;
        if (slot < wanted.size() && !wanted[slot])
            continue;
        noteNeeded(needs[slot]->inputs, forward.inputs, rule.needsInput);
        noteNeeded(needs[slot]->outputs, forward.outputs, rule.needsOutput);
    }
    return rule;
}

GradientRule gradientRule(const Graph &graph, const Operator &forward)
{
    return gradientRule(graph, forward, {});
}

} // namespace planloom
