#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

constexpr std::int32_t kMostWeightVersions = 4096; ///< More micro-batches are in flight in no pipeline.

/// Keeps so many versions of the weights that the selected operators read. Their forward and backward passes
/// read the oldest, that of `count` - 1 updates ago, so that an update need not wait for one another: weight
/// stashing, PipeDream (SOSP '19); with two everywhere, PipeDream-2BW (arXiv:2006.09503).
struct WeightVersionsRule {
    std::int32_t count = 2;
    friend bool operator==(const WeightVersionsRule &, const WeightVersionsRule &) = default;
};

template<> struct RuleTraits<WeightVersionsRule> {
    static constexpr std::array words{"weight-versions"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "keep different numbers of weight versions of";
    static void describe(RuleForm &form, WeightVersionsRule &rule);
};

} // namespace planloom
