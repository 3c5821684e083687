#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// The pipeline stage of the selected operators.
struct StageRule {
    std::int32_t index = 0;
    std::int32_t count = 0; ///< Of how many the plan has; 0 leaves it open.
    friend bool operator==(const StageRule &, const StageRule &) = default;
};

template<> struct RuleTraits<StageRule> {
    static constexpr std::array words{"stage"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "give a stage to";
    static void describe(RuleForm &form, StageRule &rule);
};

} // namespace planloom
