#include "engine/plan/open_sums.h"

#include <algorithm>

namespace planloom {

namespace {

/// The parts of `split` make summands of what `op` makes in `output`.
bool makesSummands(const Operator &op, std::size_t output, const Split &split)
{
    if (onceWeighed(combinationOf(op.annotation, output)) != Combination::Sum)
        return false; // what is no sum cannot be added to before it is complete
    if (split.kind == SplitKind::Value)
        return true;
    return split.kind == SplitKind::Dimension
        && op.annotation.dimensions[static_cast<std::size_t>(split.dimension)].mark == DimensionMark::Reduce
        && !mentions(op.annotation.outputs[output], split.dimension);
}

/// Summands over `axis`, made by a forward operator.
bool comesOpen(PlanDraft &draft, TensorId tensor, const MeshAxis &axis)
{
    const Graph &graph = draft.graph();
    const Uses &uses = draft.index().uses();
    const auto &producers = uses.producers[static_cast<std::size_t>(tensor.index)];
    if (producers.size() != 1 || graph.at(producers.front()).direction != Direction::Forward)
        return false;
    const auto &consumers = uses.consumers[static_cast<std::size_t>(tensor.index)];
    const auto forward = std::count_if(consumers.begin(), consumers.end(),
        [&](OperatorId op) { return graph.at(op).direction == Direction::Forward; });
    if (forward != 1 || std::find(graph.outputs.begin(), graph.outputs.end(), tensor) != graph.outputs.end())
        return false;
    const Operator &producer = graph.at(producers.front());
    const auto output = static_cast<std::size_t>(
        std::find(producer.outputs.begin(), producer.outputs.end(), tensor) - producer.outputs.begin());
    const auto &splits = draft.decisionOf(producers.front()).partition.splits;
    return std::any_of(splits.begin(), splits.end(), [&](const Split &split) {
        return split.axis == axis.name && split.parts == axis.size && makesSummands(producer, output, split);
    });
}

} // namespace

bool addsOpenSums(PlanDraft &draft, OperatorId op, const MeshAxis &axis)
{
    const Operator &itself = draft.graph().at(op);
    const auto &linear = itself.annotation.linearInputs;
    if (axis.size < 2 || itself.inputs.size() < 2 || linear.size() != itself.inputs.size()
        || itself.outputs.size() != 1)
        return false;
    const Shape &shape = draft.graph().at(itself.outputs[0]).type.shape;
    return std::all_of(itself.inputs.begin(), itself.inputs.end(), [&](TensorId tensor) {
        return tensor && draft.graph().at(tensor).type.shape == shape && comesOpen(draft, tensor, axis);
    });
}

} // namespace planloom
