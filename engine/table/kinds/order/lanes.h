#pragma once

#include "engine/table/kinds/rule_traits.h"

#include <cstdint>
#include <string>

namespace planloom {

/// Runs the selected operators in lanes: each takes an even share of every micro-batch, on devices of its own
/// with a copy of the weights, and is a block of its own that orders its micro-batches as it likes
/// (engine/plan/block_places.h). A place row's devices, or those of a mesh axis, are shared out lane by lane:
/// with the stages the other way round in the second lane, two pipelines run in opposite directions (Chimera,
/// arXiv:2107.06925, section 3).
struct LanesRule {
    std::int32_t count = 2; ///< Where `axis` is empty.
    std::string axis{}; ///< Of the mesh: a lane for each of its positions.
    friend bool operator==(const LanesRule &, const LanesRule &) = default;
};

constexpr std::int32_t kMostBlockLanes = 64;

template<> struct RuleTraits<LanesRule> {
    static constexpr std::array words{"lanes"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "give different lanes to";
    static void describe(RuleForm &form, LanesRule &rule);
};

} // namespace planloom
