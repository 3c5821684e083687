#pragma once

#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// Gives an open dimension of the model's inputs its size: "dim batch = 64". The model is opened with it
/// (`withRows`); rows of a plan whose model is open otherwise do not hold.
struct DimensionSizeRule {
    std::string name{}; ///< As the model calls it, or one of its places ("input_ids.0").
    std::int64_t size = 1;
    friend bool operator==(const DimensionSizeRule &, const DimensionSizeRule &) = default;
};

template<> struct RuleTraits<DimensionSizeRule> {
    static constexpr std::array words{"dim"};
    static constexpr RuleShape shape = RuleShape::Plain;
    static constexpr const char *verb = "give a size to a dimension of the inputs";
    static void describe(RuleForm &form, DimensionSizeRule &rule);
};

} // namespace planloom
