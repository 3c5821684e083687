#pragma once

#include "engine/table/kinds/rule_traits.h"

#include <cstdint>

namespace planloom {

/// Which collectives run chunk by chunk with the product beside them.
enum class CollectiveOverlap : std::uint8_t {
    None,
    Tensor, ///< Those inside a block that a product makes the input of, or reads the output of.
};

const char *nameOf(CollectiveOverlap overlap); ///< "none", "tensor"

/// Collectives overlap products chunk by chunk (Megatron-LM's --tp-comm-overlap; arXiv:2203.15837,
/// "decomposition").
struct OverlapRule {
    CollectiveOverlap overlap = CollectiveOverlap::Tensor;
    friend bool operator==(const OverlapRule &, const OverlapRule &) = default;
};

template<> struct RuleTraits<OverlapRule> {
    static constexpr std::array words{"overlap"};
    static constexpr RuleShape shape = RuleShape::Plain;
    static constexpr const char *verb = "give the overlap of collectives";
    static void describe(RuleForm &form, OverlapRule &rule);
};

} // namespace planloom
