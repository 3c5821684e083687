#include "engine/frontend/passes/dead_code.h"

#include <algorithm>
#include <utility>

namespace planloom {

void removeDeadCode(Graph &graph)
{
    std::vector<bool> live(graph.tensors.size(), false);
    std::vector<bool> kept(graph.operators.size(), false);
    const auto mark = [&](TensorId id) {
        if (id)
            live[static_cast<std::size_t>(id.index)] = true;
    };
    for (const TensorId id : graph.inputs)
        mark(id);
    for (const TensorId id : graph.outputs)
        mark(id);
    mark(graph.loss);
    for (std::size_t i = graph.operators.size(); i-- > 0;) {
        const Operator &op = graph.operators[i];
        kept[i] = std::any_of(op.outputs.begin(), op.outputs.end(),
            [&](TensorId id) { return id && live[static_cast<std::size_t>(id.index)]; });
        if (!kept[i])
            continue;
        for (const TensorId id : op.inputs)
            mark(id);
        for (const TensorId id : op.outputs)
            mark(id);
    }
    std::vector<TensorId> renumbered(graph.tensors.size());
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < graph.tensors.size(); ++i) {
        if (!live[i])
            continue;
        renumbered[i] = TensorId{static_cast<std::int32_t>(tensors.size())};
        tensors.push_back(std::move(graph.tensors[i]));
    }
    graph.tensors = std::move(tensors);
    const auto renumber = [&](std::vector<TensorId> &ids) {
        for (TensorId &id : ids)
            id = id ? renumbered[static_cast<std::size_t>(id.index)] : id;
    };
    std::vector<Operator> operators;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        if (!kept[i])
            continue;
        operators.push_back(std::move(graph.operators[i]));
        renumber(operators.back().inputs);
        renumber(operators.back().outputs);
    }
    graph.operators = std::move(operators);
    renumber(graph.inputs);
    renumber(graph.outputs);
    if (graph.loss)
        graph.loss = renumbered[static_cast<std::size_t>(graph.loss.index)];
}

} // namespace planloom
