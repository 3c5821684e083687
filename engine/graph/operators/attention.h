#pragma once

#include "engine/graph/attributes.h"
#include "engine/graph/operator.h"
#include "engine/graph/operators/mask.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

// Scaled dot-product attention, `OperatorKind::Attention`:
//
//   (q [.. H s e], k [.. G t e], v [.. G t f], masks..) -> (y [.. H s f], logSumExp [.. H s], probabilities
//   [.. H s t])
//
//   scores = cap(scale q k^T) + masks,  probabilities = softmax over the keys,  y = dropout(probabilities) v
//
// `..` are any number of leading dimensions, alike in q, k and v. H is a multiple of G: query heads g r ..
// g r + r - 1 look at key head g, where r = H / G. Masks, any number of them, broadcast against [.. H s t].
// Each is additive, of q's element type, or Bool, true where a query may look.
//
// Attributes, all optional:
//   scale         1
//   softcap       0: none; else cap(x) = softcap tanh(x / softcap) (Gemma 2, arXiv:2408.00118)
//   causal        1: query i (counted in the whole operator) sees keys up to i + offset; 0: all
//   offset        0: how many keys lie before the first query
//   window        0: no limit; else query i sees no key at a distance from key i + offset of `window` or more
//                 ("causal" with window 1: itself alone)
//   masked_score  the score of a key that some boolean mask hides; without it such a key has no weight at all
//   dropout       ratio in [0, 1), as of Dropout: element i of the whole probabilities is kept iff
//                 draw(seed, i) >= ratio
//   seed          of the dropout
//
// What causality, window and boolean masks hide has no weight. A query that sees nothing makes zeros, and its
// logSumExp is minus infinity; with a finite masked_score, or additive masks of large negative numbers, it
// weighs all keys as a Softmax over such scores does.
//
// logSumExp is Float32 (Float64 beside Float64): the backward pass makes tiles of the probabilities anew from
// it, so that neither pass ever holds scores of more than a tile (FlashAttention, arXiv:2205.14135,
// arXiv:2307.08691). It has no gradient of its own.

/// Whether an Attention's probabilities are in memory.
enum class AttentionMode : std::uint8_t {
    Fused, ///< Never; the backward pass makes them anew.
    Plain, ///< Written by the forward pass, and kept for the backward pass.
};

const char *nameOf(AttentionMode mode); ///< "fused", "plain"
std::optional<AttentionMode> attentionModeNamed(std::string_view name);

/// The output slot of a forward Attention's probabilities, which are only made in plain mode; -1 for all
/// other operators.
std::int32_t probabilitiesOutput(const Operator &op);
/// The input slot in which a backward Attention reads its forward's probabilities, in plain mode; -1 for all
/// other operators.
std::int32_t probabilitiesInput(const Operator &op);

/// Identifiers of an Attention's annotation, or of its backward operator's.
struct AttentionAxes {
    std::int32_t query = -1; ///< The queries' sequence.
    std::int32_t key = -1; ///< The keys' and values'.
};
/// Nothing for other operators.
std::optional<AttentionAxes> attentionAxes(const Operator &op);

/// Attributes that say which keys a query sees.
struct AttentionReach {
    bool causal = false;
    std::int64_t offset = 0;
    std::int64_t window = 0;

    /// The keys that query `query` sees, of `keys` in all; both counted in the whole operator. May be empty.
    Range keysOf(std::int64_t query, std::int64_t keys) const;
    /// Whether some query in `queries` may see a key in `keys`, of `all` in all. False is certain.
    bool mayMeet(Range queries, Range keys, std::int64_t all) const;
    /// How many of `keys` keys a query sees on average, where queries stand behind the first `offset` keys
    /// one by one: half of them if causal.
    double meanKeys(double keys) const;
    /// The same of these queries and keys, both counted in the whole operator.
    double meanKeys(Range queries, Range keys) const;
};
AttentionReach attentionReach(const Attributes &attributes);

/// Where the annotation of an Attention, or of its backward operator, has the sequences: indices of
/// identifiers; -1 where a sequence cannot be split.
struct AttentionSequences {
    std::int32_t queries = -1;
    std::int32_t keys = -1;
    bool areSplittable() const { return queries >= 0 && keys >= 0; }
};
/// Both -1 for all other operators.
AttentionSequences attentionSequences(const Operator &op);

/// Whether the part of an Attention, or of its backward operator, with these ranges of its identifiers hides
/// all its keys from all its queries, by causality or window: it makes zeros with no weight, and zero
/// gradients. `ranges` are those of `partBox`, in the whole operator's coordinates.
bool seesNothing(const Operator &op, const std::vector<Range> &ranges);

} // namespace planloom
