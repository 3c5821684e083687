#pragma once

#include "engine/graph/precision.h"
#include "engine/table/kinds/rule_traits.h"

#include <optional>

namespace planloom {

/// In which types the selected operators, their backward operators and the optimizers of their weights work:
/// a preset, single settings, or both. A single setting outranks any row's preset, so that rows about a few
/// operators go with one about all; two presets, or two values of one setting, clash.
struct PrecisionRule {
    std::optional<PrecisionPreset> preset{};
    std::optional<DataType> compute{};
    std::optional<DataType> storage{};
    std::optional<DataType> gradient{};
    std::optional<DataType> reduction{};
    std::optional<DataType> optimizer{};
    std::optional<std::int32_t> scale{}; ///< Of the loss's gradient: a power of two, up to `kMostLossScale`.
    friend bool operator==(const PrecisionRule &, const PrecisionRule &) = default;
};

template<> struct RuleTraits<PrecisionRule> {
    static constexpr std::array words{"precision"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "give a precision to";
    static void describe(RuleForm &form, PrecisionRule &rule);
};

constexpr int kPrecisionSettingCount = 7;

/// Number of the first setting, in the order of the members, that two rules give different values; nothing if
/// both can hold.
std::optional<int> clashingSetting(const PrecisionRule &a, const PrecisionRule &b);
/// True if `rule` gives setting number `setting` a value.
bool sets(const PrecisionRule &rule, int setting);
/// What two rules that do not clash say together.
PrecisionRule joined(const PrecisionRule &a, const PrecisionRule &b);
/// What an operator does by `rule`, and by `fallback` where it leaves something open.
Precision resolved(const PrecisionRule &rule, const Precision &fallback);

} // namespace planloom
