#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// A pipeline stage holds at most `count` micro-batches whose backward pass has not run: how far it warms up.
struct InFlightRule {
    std::int32_t count = 1;
    std::int32_t stage = -1; ///< -1 means every stage.
    friend bool operator==(const InFlightRule &, const InFlightRule &) = default;
};

template<> struct RuleTraits<InFlightRule> {
    static constexpr std::array words{"in-flight"};
    static constexpr RuleShape shape = RuleShape::Plain;
    static constexpr const char *verb = "say how far stages warm up";
    static void describe(RuleForm &form, InFlightRule &rule);
};

} // namespace planloom
