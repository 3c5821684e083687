#pragma once

#include "engine/table/selector_index.h"

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// Which identifier each operator is split on under tensor parallelism.
struct TensorParallelCut {
    std::vector<std::int32_t> identifier{}; ///< By operator; -1 where it is not split.
    /// By operator: the sizes of its parts where these are not equal; else empty.
    std::vector<std::vector<std::int64_t>> sizes{};
    /// Parts of the model that are split, each between two synchronisations; without losses and lookups.
    std::int32_t regions = 0;
    std::string obstacle{}; ///< Why something could not be split; may be empty.
};

/// What may be cut in parts that are not equal, where it does not divide.
enum class UnevenParts : std::uint8_t {
    Any,
    Vocabularies, ///< Large ones (`vocabularyShares`).
};

/// The sizes of the parts of an identifier that is a vocabulary and does not divide, where it is so large
/// that the largest part is hardly above the mean; empty for equal parts, and for all else.
std::vector<std::int64_t> vocabularyShares(
    const SelectorIndex &index, OperatorId op, std::int32_t identifier, std::int32_t parts);

/// Finds what can be split `parts` ways between operators with weights, from annotations and data flow alone
/// (Megatron-LM's column and row pairs, arXiv:1909.08053, are what it finds in a transformer).
///
/// A *column* operator has an identifier in its weight and its output, but in no other input: splitting it
/// takes no communication. The cut is followed through all users of its output, and back through the other
/// inputs they need cut alike, until every path ends in a *row* operator: one whose weight has the identifier
/// as a sum, so that its outputs are summands (one all-reduce); or in a loss that takes statistics of a range
/// of its classes (a few numbers an item). A path that ends elsewhere (identifier frozen, fewer elements than
/// parts) takes the whole region back. What does not divide is cut in shares that are rounded up (Megatron-LM
/// pads a vocabulary for that), and all of its region alike: 25 heads of 64 in 13 and 12, and so the columns
/// that they are made of. Where the model has such regions, lookups in tables of tokens are cut along
/// the vocabulary, too.
///
/// Where a row operator is left without columns, because something before it can't be cut (a fused
/// query-key-value projection), its region begins with slices of whole values, if it holds another product
/// too.
///
/// O(operators x size of a region).
TensorParallelCut findTensorParallel(
    const SelectorIndex &index, std::int32_t parts, UnevenParts uneven = UnevenParts::Any);

} // namespace planloom
