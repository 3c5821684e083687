#include "engine/graph/dimensions/batch_input.h"

#include "engine/base/ids.h"
#include "engine/graph/dimensions/batch_flow.h"

#include <algorithm>
#include <map>
#include <optional>

namespace planloom {

namespace {

/// What most inputs have as dimension `dimension`.
BatchInput inputAlong(const Graph &graph, std::int32_t dimension)
{
    std::vector<std::int64_t> floating;
    std::vector<std::int64_t> all;
    for (const TensorId id : graph.inputs) {
        const TensorType &type = graph.at(id).type;
        if (type.shape.size() <= static_cast<std::size_t>(dimension))
            continue;
        all.push_back(type.shape[static_cast<std::size_t>(dimension)]);
        if (isFloating(type.dataType))
            floating.push_back(all.back());
    }
    if (all.empty())
        return {dimension, 0};
    if (!floating.empty()
        && std::all_of(floating.begin(), floating.end(), [&](auto n) { return n == floating[0]; }))
        return {dimension, floating[0]};
    std::map<std::int64_t, std::int64_t> votes;
    for (const std::int64_t extent : all)
        ++votes[extent];
    // max_element keeps the first of equals, so ties go to the first input.
    return {dimension,
        *std::max_element(all.begin(), all.end(), [&](auto a, auto b) { return votes[a] < votes[b]; })};
}

/// How many operators make something along what was followed.
std::ptrdiff_t carriedBy(const Graph &graph, const BatchFlow &flow)
{
    return std::count_if(graph.operators.begin(), graph.operators.end(), [&](const Operator &op) {
        return op.direction == Direction::Forward
            && std::any_of(op.outputs.begin(), op.outputs.end(),
                [&](TensorId id) { return id && flow.places[at(id)].valid(); });
    });
}

/// True if an operator sets what was followed against itself: queries against keys of an attention.
bool isSetAgainstItself(const Operator &op, const BatchFlow &flow)
{
    std::optional<std::int32_t> first;
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        if (!op.inputs[slot] || !flow.places[at(op.inputs[slot])].valid()
            || op.annotation.inputs[slot].opaque)
            continue;
        const auto dimension = static_cast<std::size_t>(flow.places[at(op.inputs[slot])].dimension);
        const auto factor = splittableFactor(op.annotation, op.annotation.inputs[slot].terms[dimension]);
        if (factor && first && *first != *factor)
            return true;
        first = first ? first : factor;
    }
    return false;
}

/// True if an attention or a recurrence runs along what was followed.
bool mixesAlong(const Graph &graph, const BatchFlow &flow)
{
    using enum OperatorKind;
    return std::any_of(flow.obstacles.begin(), flow.obstacles.end(), [&](const BatchObstacle &each) {
        const OperatorKind kind = graph.at(each.op).kind;
        return kind == Attention || kind == Softmax || kind == Lstm || kind == Gru || kind == Rnn
            || kind == CumSum;
    }) || std::any_of(graph.operators.begin(), graph.operators.end(), [&](const Operator &op) {
        return op.direction == Direction::Forward && isSetAgainstItself(op, flow);
    });
}

} // namespace

std::vector<std::int32_t> inputsAlong(const Graph &graph, const BatchInput &batch)
{
    std::vector<std::int32_t> dimensions;
    for (const TensorId id : graph.inputs) {
        const Shape &shape = graph.at(id).type.shape;
        const auto dimension = static_cast<std::size_t>(batch.dimension);
        const bool has = dimension < shape.size() && shape[dimension] == batch.size;
        dimensions.push_back(has ? batch.dimension : -1);
    }
    return dimensions;
}

BatchInput batchInputOf(const Graph &graph)
{
    const BatchInput first = inputAlong(graph, 0);
    const BatchInput second = inputAlong(graph, 1);
    if (first.size <= 1 || second.size <= 1)
        return first;
    // What is attended along or recurs, again and again, is a sequence; beside it lie the samples.
    const BatchFlow outer = followBatch(graph, inputsAlong(graph, first));
    if (!mixesAlong(graph, outer))
        return first;
    const BatchFlow inner = followBatch(graph, inputsAlong(graph, second));
    return carriedBy(graph, inner) >= carriedBy(graph, outer) && !mixesAlong(graph, inner) ? second : first;
}

std::int64_t batchSize(const Graph &graph)
{
    return inputAlong(graph, 0).size;
}

} // namespace planloom
