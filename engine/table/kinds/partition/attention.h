#pragma once

#include "engine/graph/operators/attention.h"
#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// Whether the selected attentions have their probabilities in memory; by default they do not.
struct AttentionRule {
    AttentionMode mode = AttentionMode::Fused;
    friend bool operator==(const AttentionRule &, const AttentionRule &) = default;
};

template<> struct RuleTraits<AttentionRule> {
    static constexpr std::array words{"attention"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "compute attention differently in";
    static void describe(RuleForm &form, AttentionRule &rule);
};

} // namespace planloom
