#pragma once

// Which dimension of a model's inputs has the samples of a mini-batch.

#include "engine/graph/graph.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// The dimension of the inputs that is taken for the batch.
struct BatchInput {
    std::int32_t dimension = 0; ///< 0, or 1 where dimension 0 is a sequence.
    std::int64_t size = 0; ///< 0 for a model without such inputs.
};

/// Dimension 0 of the inputs, but where the model attends or recurs along it and dimension 1 can be followed
/// further: there the samples lie behind the sequence, as PyTorch's recurrences and transformers have them by
/// default. The size is what the floating inputs agree on, else what most inputs have, of several the first.
BatchInput batchInputOf(const Graph &graph);
/// By input: the dimension of it that is cut with the batch, or -1.
std::vector<std::int32_t> inputsAlong(const Graph &graph, const BatchInput &batch);
/// Samples in a mini-batch, if dimension 0 of the inputs is the batch: for graphs that are not annotated yet.
std::int64_t batchSize(const Graph &graph);

} // namespace planloom
