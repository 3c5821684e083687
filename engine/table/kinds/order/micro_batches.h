#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// Runs the mini-batch in `count` micro-batches: parts of the model's batch, or, where `whole` is set or the
/// model's batch has nothing to cut (it holds one sample), whole batches of their own. The weights are
/// updated with the gradients of every `updateEvery` of them: what was one mini-batch is several, one after
/// another, and no pipeline has to be flushed in between where weights have versions (weight_versions.h).
struct MicroBatchesRule {
    std::int32_t count = 1;
    bool whole = false;
    std::int32_t updateEvery = 0; ///< Divides `count`; 0 is once, with all of them.
    friend bool operator==(const MicroBatchesRule &, const MicroBatchesRule &) = default;
};

template<> struct RuleTraits<MicroBatchesRule> {
    static constexpr std::array words{"micro-batches"};
    static constexpr RuleShape shape = RuleShape::Plain;
    static constexpr const char *verb = "give the number of micro-batches";
    static void describe(RuleForm &form, MicroBatchesRule &rule);
};

} // namespace planloom
