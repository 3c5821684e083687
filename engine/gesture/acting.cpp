#include "engine/gesture/acting.h"

#include "engine/gesture/matching.h"
#include "engine/gesture/row_edits.h"

#include <algorithm>

namespace planloom {

std::vector<OperatorId> actingForward(const GestureContext &context, const std::vector<OperatorId> &operators)
{
    const Graph &graph = context.graph();
    std::vector<OperatorId> acting;
    for (const OperatorId op : operators) {
        if (op.index < 0 || static_cast<std::size_t>(op.index) >= graph.operators.size())
            continue;
        const bool backward = graph.at(op).direction == Direction::Backward && graph.at(op).mirror.valid();
        acting.push_back(backward ? graph.at(op).mirror : op);
    }
    return forwardOnes(graph, std::move(acting));
}

Error nothingSelected()
{
    return refusalOf(
        "no forward operator is selected", "selection", "select operators on the graph or the timeline");
}

std::vector<OperatorId> forwardProducers(const SelectorIndex &index, OperatorId op)
{
    std::vector<OperatorId> found;
    for (const TensorId input : index.graph().at(op).inputs) {
        if (!input.valid())
            continue;
        for (const OperatorId maker : index.uses().producers[static_cast<std::size_t>(input.index)]) {
            if (index.graph().at(maker).direction == Direction::Forward)
                found.push_back(maker);
        }
    }
    return found;
}

std::vector<OperatorId> forwardConsumers(const SelectorIndex &index, OperatorId op)
{
    std::vector<OperatorId> found;
    for (const TensorId output : index.graph().at(op).outputs) {
        if (!output.valid())
            continue;
        for (const OperatorId user : index.uses().consumers[static_cast<std::size_t>(output.index)]) {
            if (index.graph().at(user).direction == Direction::Forward)
                found.push_back(user);
        }
    }
    return found;
}

OperatorId leaderOf(const SelectorIndex &index, OperatorId op)
{
    const Graph &graph = index.graph();
    OperatorId leader;
    std::int64_t most = -1;
    for (const TensorId input : graph.at(op).inputs) {
        if (!input.valid())
            continue;
        for (const OperatorId maker : index.uses().producers[static_cast<std::size_t>(input.index)]) {
            const std::int64_t elements = elementCount(graph.at(input).type.shape);
            if (graph.at(maker).direction == Direction::Forward && elements > most) {
                most = elements;
                leader = maker;
            }
        }
    }
    return leader;
}

} // namespace planloom
