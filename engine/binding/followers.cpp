#include "engine/binding/followers.h"

#include <algorithm>

namespace planloom {

Leader leaderOf(const SelectorIndex &index, OperatorId id)
{
    const Graph &graph = index.graph();
    const Operator &op = graph.at(id);
    Leader leader;
    std::int64_t most = -1;
    for (std::size_t s = 0; s < op.inputs.size(); ++s) {
        if (!op.inputs[s].valid())
            continue;
        const std::int64_t elements = elementCount(graph.at(op.inputs[s]).type.shape);
        if (elements <= most)
            continue;
        for (const OperatorId maker : index.uses().producers[static_cast<std::size_t>(op.inputs[s].index)]) {
            const Operator &producer = graph.at(maker);
            if (producer.direction != Direction::Forward)
                continue;
            const auto slot = std::find(producer.outputs.begin(), producer.outputs.end(), op.inputs[s]);
            leader = {maker, static_cast<std::size_t>(slot - producer.outputs.begin()), s};
            most = elements;
        }
    }
    return leader;
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

void followPlaces(const SelectorIndex &index, std::vector<std::int32_t> &place)
{
    const Graph &graph = index.graph();
    const std::size_t count = graph.operators.size();
    for (std::size_t i = 0; i < count; ++i) {
        if (graph.operators[i].direction != Direction::Forward) {
            place[i] = -1;
            continue;
        }
        if (place[i] >= 0)
            continue;
        if (const Leader leader = leaderOf(index, {static_cast<std::int32_t>(i)}); leader.op.valid())
            place[i] = place[static_cast<std::size_t>(leader.op.index)];
    }
    for (std::size_t i = count; i-- > 0;) {
        if (graph.operators[i].direction != Direction::Forward || place[i] >= 0)
            continue;
        OperatorId first;
        for (const OperatorId user : forwardConsumers(index, {static_cast<std::int32_t>(i)})) {
            if (place[static_cast<std::size_t>(user.index)] >= 0 && (!first.valid() || user < first))
                first = user;
        }
        if (first.valid())
            place[i] = place[static_cast<std::size_t>(first.index)];
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (graph.operators[i].direction == Direction::Forward)
            place[i] = std::max(place[i], 0);
    }
}

} // namespace planloom
