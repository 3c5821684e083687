#pragma once

#include "engine/graph/annotation/partition.h"
#include "engine/table/kinds/partition/dimension_ref.h"
#include "engine/table/kinds/rule_traits.h"

#include <vector>

namespace planloom {

/// One of an op-trans row's nested splits.
struct SplitStep {
    SplitKind kind = SplitKind::Dimension;
    DimensionRef dimension{}; ///< Of SplitKind::Dimension.
    std::int32_t parts = 0; ///< 0 takes the size of `axis`, or the number of `sizes`.
    std::vector<std::int64_t> sizes{}; ///< Of uneven parts; empty means equal parts. Dimension only.
    std::string axis{}; ///< The mesh axis it runs over; may be empty.
    /// Over an axis of n devices: into 2n parts, of which device i has parts i and 2n - 1 - i. So each has as
    /// much to do where later parts have more, as of a sequence under a causal mask. Dimension only.
    bool zigzag = false;
    friend bool operator==(const SplitStep &, const SplitStep &) = default;
};

/// op-trans: how the selected operators are split, outermost first. Steps over mesh axes are put in the order
/// of the mesh; steps over none cut what one device has.
struct OpTransRule {
    std::vector<SplitStep> steps{}; ///< At least one.
    friend bool operator==(const OpTransRule &, const OpTransRule &) = default;
};

template<> struct RuleTraits<OpTransRule> {
    static constexpr std::array words{"split", "replicate"};
    static const char *wordOf(const OpTransRule &rule);
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "split";
    static void describe(RuleForm &form, OpTransRule &rule);
};

} // namespace planloom
