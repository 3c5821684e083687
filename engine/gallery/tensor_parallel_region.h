#pragma once

#include "engine/table/selector_index.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// Which identifier each operator is split on under tensor parallelism.
struct TensorParallelCut {
    std::vector<std::int32_t> identifier{}; ///< By operator; -1 where it is not split.
    /// Parts of the model that are split, each between two synchronisations; without losses and lookups.
    std::int32_t regions = 0;
    std::string obstacle{}; ///< Why something could not be split; may be empty.
};

/// Finds what can be split `parts` ways between operators with weights, from annotations and data flow alone
/// (Megatron-LM's column and row pairs, arXiv:1909.08053, are what it finds in a transformer).
///
/// A *column* operator has an identifier in its weight and its output, but in no other input: splitting it
/// takes no communication. The cut is followed through all users of its output, and back through the other
/// inputs they need cut alike, until every path ends in a *row* operator: one whose weight has the identifier
/// as a sum, so that its outputs are summands (one all-reduce); or in a loss that takes statistics of a range
/// of its classes (a few numbers an item). A path that ends elsewhere (identifier frozen, does not divide)
/// takes the whole region back. Where the model has such regions, lookups in tables of tokens are cut along
/// the vocabulary, too.
///
/// Where a row operator is left without columns, because something before it can't be cut (a fused
/// query-key-value projection), its region begins with slices of whole values, if it holds another product
/// too.
///
/// O(operators x size of a region).
TensorParallelCut findTensorParallel(const SelectorIndex &index, std::int32_t parts);

} // namespace planloom
