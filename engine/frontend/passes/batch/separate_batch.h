#pragma once

#include "engine/graph/graph.h"

#include <cstdint>

namespace planloom {

/// Gives the batch a dimension of its own where a model joins it with others that stand outside of it, as
/// every attention of PyTorch does that has the sequence before the batch:
///
///     o [length batch heads width]                 o [length batch heads width]
///     Reshape -> [length*batch heads*width]        Reshape -> [length batch heads*width]
///     Linear, Gelu ...                             the same
///     Reshape -> [length batch model]    becomes   (nothing left to do)
///
/// The samples of one part of the batch are several pieces of the joined dimension, where a mask is one box.
/// Operators that have room for another dimension work on it apart. Those that have none (losses,
/// convolutions) get their items in another order, the samples outside, as they do not depend on it; what
/// comes before them works in that order, too, where nothing else reads it. All others get what they had, and
/// stay uncut. A Slice that takes every n-th sample takes one of each group of n.
///
/// For forward graphs that are annotated; those that change are to be annotated anew. O(operators + tensors).
/// @return how many operators were changed
std::int32_t separateBatch(Graph &graph);

} // namespace planloom
