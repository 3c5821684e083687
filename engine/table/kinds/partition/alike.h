#pragma once

#include "engine/table/kinds/rule_traits.h"
#include "engine/table/selector.h"

namespace planloom {

/// op-trans: the row's selection is cut as `second` is: over every axis that both have, along identifiers of
/// the same name, or both into replicas. Selections of equal size are paired in order; a selection of several
/// times the size of `second` (further layers) as often.
struct AlikeRule {
    Selector second{};
    friend bool operator==(const AlikeRule &, const AlikeRule &) = default;
};

template<> struct RuleTraits<AlikeRule> {
    static constexpr std::array words{"alike"};
    static constexpr RuleShape shape = RuleShape::Open;
    static constexpr const char *verb = "cut alike";
    static void describe(RuleForm &form, AlikeRule &rule);
};

} // namespace planloom
