#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// Computes the gradients of the selected operators' weights in a pass of their own, behind those of their
/// inputs, which other stages wait for (zero bubble, arXiv:2401.10241).
struct SplitBackwardRule {
    friend bool operator==(const SplitBackwardRule &, const SplitBackwardRule &) = default;
};

template<> struct RuleTraits<SplitBackwardRule> {
    static constexpr std::array words{"split-backward"};
    static constexpr RuleShape shape = RuleShape::Open;
    static constexpr const char *verb = "split the backward pass of";
    static void describe(RuleForm &, SplitBackwardRule &) { }
};

} // namespace planloom
