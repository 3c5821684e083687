#pragma once

#include "engine/table/kinds/partition/dimension_ref.h"
#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// Runs the selected operators of a stage in slices along a dimension, the sequence for example: each slice
/// is a block of its own, so that the next stage begins with the first while this one runs the second
/// (TeraPipe, arXiv:2102.07988; engine/plan/block_places.h).
struct SliceRule {
    DimensionRef dimension{};
    std::int32_t parts = 2;
    friend bool operator==(const SliceRule &, const SliceRule &) = default;
};

template<> struct RuleTraits<SliceRule> {
    static constexpr std::array words{"slice"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "slice";
    static void describe(RuleForm &form, SliceRule &rule);
};

} // namespace planloom
