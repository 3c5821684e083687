#pragma once

#include "engine/table/kinds/memory/recompute.h"
#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// What waits in host memory.
enum class OffloadedKind : std::uint8_t {
    States, ///< Of optimizers, and weights that they alone read; fetched for each update.
    Activations, ///< From their last use in the forward pass to their use in the backward pass.
};

const char *nameOf(OffloadedKind kind); ///< "states", "activations"

/// Moves states of the selected operators' weights, or what the selected operators make, to host memory while
/// nothing is computed with them; or keeps them on their devices, or leaves it to the search for schedules
/// (activations alone).
struct OffloadRule {
    OffloadedKind what = OffloadedKind::States;
    Switched when = Switched::Always; ///< Of states never `Chosen`.
    friend bool operator==(const OffloadRule &, const OffloadRule &) = default;
};

template<> struct RuleTraits<OffloadRule> {
    static constexpr std::array words{"offload"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "offload";
    static void describe(RuleForm &form, OffloadRule &rule);
};

} // namespace planloom
