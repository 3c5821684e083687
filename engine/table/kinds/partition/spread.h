#pragma once

#include "engine/table/kinds/rule_traits.h"

#include <cstdint>

namespace planloom {

/// What a spread balances over its runs.
enum class SpreadBy : std::uint8_t {
    Time, ///< Arithmetic, forward and backward alike.
    Memory, ///< Weights, and what operators make.
    Count, ///< Operators.
};

const char *nameOf(SpreadBy by); ///< "time", "memory", "count"

/// op-assign: the selected operators, in their order, are cut into as many consecutive runs as the mesh axis
/// has places, one run a place; the largest run is as small as it can be.
struct SpreadRule {
    std::string axis{};
    SpreadBy by = SpreadBy::Time;
    friend bool operator==(const SpreadRule &, const SpreadRule &) = default;
};

template<> struct RuleTraits<SpreadRule> {
    static constexpr std::array words{"spread"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "spread";
    static void describe(RuleForm &form, SpreadRule &rule);
};

} // namespace planloom
