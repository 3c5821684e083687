#pragma once

#include "engine/table/kinds/partition/count_bound.h"
#include "engine/table/kinds/partition/dimension_ref.h"
#include "engine/table/kinds/rule_traits.h"

#include <optional>

namespace planloom {

/// op-trans: into how many parts the selected operators may be cut along a dimension, all told: over all axes
/// of the mesh, lists of devices, turns, slices and lanes. Micro-batches do not count, nor do replicas.
struct PartsRule {
    std::optional<DimensionRef> dimension{}; ///< Missing: along all dimensions together.
    CountBound bound{};
    friend bool operator==(const PartsRule &, const PartsRule &) = default;
};

template<> struct RuleTraits<PartsRule> {
    static constexpr std::array words{"parts"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "bound the parts of";
    static void describe(RuleForm &form, PartsRule &rule);
};

} // namespace planloom
