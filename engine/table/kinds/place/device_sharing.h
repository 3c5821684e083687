#pragma once

#include "engine/table/kinds/rule_traits.h"
#include "engine/table/selector.h"

namespace planloom {

/// op-assign: the row's selection runs on the devices of `second`, or on none of them. Together, selections
/// of equal size are paired in order, others all with all; apart, always all with all.
struct DeviceSharingRule {
    bool apart = false;
    Selector second{};
    friend bool operator==(const DeviceSharingRule &, const DeviceSharingRule &) = default;
};

template<> struct RuleTraits<DeviceSharingRule> {
    static constexpr std::array words{"together", "apart"};
    static const char *wordOf(const DeviceSharingRule &rule) { return words[rule.apart ? 1 : 0]; }
    static constexpr RuleShape shape = RuleShape::Open;
    static constexpr const char *verb = "keep together, or apart,";
    static void describe(RuleForm &form, DeviceSharingRule &rule);
};

} // namespace planloom
