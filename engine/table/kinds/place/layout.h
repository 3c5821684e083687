#pragma once

#include "engine/table/kinds/rule_traits.h"

#include <string>

namespace planloom {

/// Gives the selected operators the stages that a layout in Megatron-LM's notation says (layer_layout.h);
/// over a mesh axis, stage s runs at place s of it, and those behind the last place go round it again.
struct LayoutRule {
    std::string layout{}; ///< As it was written; `parseLayout` reads it.
    std::string axis{}; ///< May be empty: stages alone.
    friend bool operator==(const LayoutRule &, const LayoutRule &) = default;
};

template<> struct RuleTraits<LayoutRule> {
    static constexpr std::array words{"layout"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "lay out";
    static void describe(RuleForm &form, LayoutRule &rule);
};

} // namespace planloom
