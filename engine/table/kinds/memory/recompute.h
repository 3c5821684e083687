#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// What is recomputed together.
enum class RecomputePer : std::uint8_t { Selection, Layer, Operator };

const char *nameOf(RecomputePer per); ///< "selection", "layer", "operator"

/// Whether something is done.
enum class Switched : std::uint8_t {
    Always,
    Never,
    Chosen, ///< As the search finds best; not, where nothing is searched.
};
inline constexpr std::array kAllSwitched{Switched::Always, Switched::Never, Switched::Chosen};

const char *nameOf(Switched when); ///< "always", "never", "solver"

/// Drops the outputs of the selected operators and computes them again before their backward pass; or keeps
/// them; or leaves that to the search, which then chooses among such operators alone.
struct RecomputeRule {
    RecomputePer per = RecomputePer::Selection; ///< Of Always.
    Switched when = Switched::Always;
    friend bool operator==(const RecomputeRule &, const RecomputeRule &) = default;
};

template<> struct RuleTraits<RecomputeRule> {
    static constexpr std::array words{"recompute"};
    static constexpr RuleShape shape = RuleShape::Open;
    static constexpr const char *verb = "recompute";
    static void describe(RuleForm &form, RecomputeRule &rule);
};

} // namespace planloom
