#pragma once

#include "engine/graph/graph.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Whether stages of a pipeline may run beside those before them, for the same micro-batch: where an encoder
/// ends nothing that a decoder begins with has been made, so a stage there that is short enough waits for no
/// stage before it. Where that cannot be, each micro-batch goes through stages one after the other, which
/// bounds what a step takes at least. Which of the two it is depends on the graph and the number of stages
/// alone: a plan is priced as it is bounded.
class StagesBeside
{
public:
    /// @param count  of forward operators
    /// O(operators, and of all tensors with gradients those between making and last reading one).
    StagesBeside(const Graph &graph, std::size_t count);

    /// Of these, of about as many operators each, one may be so short.
    bool mayBe(std::int32_t stages) const;

private:
    /// Of a cut between operators: the share of all that both a stage before it and one behind it have at
    /// least where something goes from one to the other; of the cut where that is most.
    double m_share = 0;
};

} // namespace planloom
