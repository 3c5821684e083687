#pragma once

// Private to the importer: what nodes of several domains mean by attention, as the graph's own operators.

#include "engine/frontend/onnx/onnx_operators.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace planloom {

/// Attention as a node describes it; q [b H s e], k [b G t e], v [b G t f]. See
/// engine/graph/operators/attention.h.
struct OnnxAttention {
    TensorId query{};
    TensorId key{};
    TensorId value{};
    std::vector<TensorId> masks{}; ///< Bool or of any floating type, broadcast against [b H s t].
    double scale = 1;
    double softcap = 0; ///< 0: none.
    bool causal = false;
    std::int64_t offset = 0; ///< Keys before the first query.
    std::int64_t window = 0; ///< 0: all.
};

/// Makes the Attention. @return y [b H s f]
Result<TensorId> attend(OnnxNodeContext &context, const OnnxAttention &attention);

/// The scores of an attention as the node returns them, and y; made of single operators.
struct OnnxAttentionSteps {
    TensorId scores{}; ///< Scaled, [b H s t].
    TensorId capped{}; ///< `scores` without soft-capping.
    TensorId masked{};
    TensorId probabilities{};
    TensorId y{};
};
Result<OnnxAttentionSteps> attendInSteps(OnnxNodeContext &context, const OnnxAttention &attention);

/// [b s (heads e)] -> [b heads s e]. @return InvalidInput if `heads` does not divide the last dimension
Result<TensorId> divideHeads(
    OnnxNodeContext &context, TensorId x, std::int64_t heads, std::string_view suffix);
/// [b heads s e] -> [b s (heads e)], of the node's result.
Result<TensorId> joinHeads(OnnxNodeContext &context, TensorId x);

/// The integers `first` .. `first` + count - 1, [count].
Result<TensorId> positionsFrom(
    OnnxNodeContext &context, std::int64_t first, std::int64_t count, std::string_view suffix);
/// [b 1 1 keys], true at the first `lengths` keys of each sequence; `lengths` [b] of integers.
Result<TensorId> firstKeys(OnnxNodeContext &context, TensorId lengths, std::int64_t keys);

/// A rotation of positions (RoFormer, arXiv:2104.09864).
struct OnnxRotation {
    TensorId x{}; ///< [b heads s e], or [b s heads e] if `headsLast`.
    bool headsLast = false;
    TensorId cosine{}; ///< [places w/2], which `positions` [b s] picks from; or [b s w/2] without those.
    TensorId sine{};
    TensorId positions{};
    bool interleaved = false;
};
/// Rotates the first w of e. The last operator has the node's name and `suffix`.
Result<TensorId> rotate(OnnxNodeContext &context, const OnnxRotation &rotation, std::string_view suffix);

} // namespace planloom
