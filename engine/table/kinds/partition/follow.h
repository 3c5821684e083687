#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// op-trans: the selected operators are cut as the producer of their largest input cuts what it makes, so
/// that nothing is communicated for it; into replicas where they cannot be.
struct FollowRule {
    friend bool operator==(const FollowRule &, const FollowRule &) = default;
};

template<> struct RuleTraits<FollowRule> {
    static constexpr std::array words{"follow"};
    static constexpr RuleShape shape = RuleShape::Open;
    static constexpr const char *verb = "have follow their producer";
    static void describe(RuleForm &, FollowRule &) { }
};

} // namespace planloom
