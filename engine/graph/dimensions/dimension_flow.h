#pragma once

// Private to the graph room: dimensions followed through the operators of a graph.

#include "engine/graph/dimensions/dimension_unifier.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// The classes of a graph before they have meanings.
struct DimensionFlow {
    explicit DimensionFlow(const Graph &graph);

    using Node = DimensionUnifier::Node;
    const Graph &graph;
    DimensionUnifier unifier;
    std::vector<std::vector<Node>> tensors{}; ///< By tensor and dimension; empty for scalars.
    std::vector<OperatorId> producer{}; ///< By tensor: the forward operator.
    std::vector<bool> fed{}; ///< By tensor: depends on an input of the model.
    std::vector<bool> gathered{}; ///< By tensor: sets of weights, chosen by what an input of the model says.

    /// The class of an identifier, as backward operators share it with their forward; -1 for literals.
    Node of(OperatorId op, std::int32_t identifier);
    Node at(TensorId tensor, std::size_t dimension);

private:
    bool gathers(const Operator &op) const;
    std::vector<Node> &nodesOf(TensorId tensor);
    void follow(std::size_t op);
    void followReshape(std::size_t op);
    void followInputs(std::size_t op);
    void followOutputs(std::size_t op);
    void followLiterals(std::size_t op);
    void followRecurrence(std::size_t op);
    Node nodeOf(std::size_t op, const Term &term);
};

} // namespace planloom
