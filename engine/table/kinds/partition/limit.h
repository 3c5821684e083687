#pragma once

#include "engine/table/kinds/rule_traits.h"

#include <string>

namespace planloom {

/// What every device, or the step, may take at most. Decides nothing: it is held against the simulated step.
struct LimitRule {
    enum class Kind : std::uint8_t {
        Memory, ///< Bytes of each device at its peak.
        Time, ///< Nanoseconds of one step.
        Traffic, ///< Bytes that each device sends over its links in one step.
    };
    Kind kind = Kind::Memory;
    std::int64_t value = 1; ///< Bytes, or nanoseconds of Time.
    /// Of Traffic, what carries it: empty is all that a device sends, whatever the way; "link" each link of
    /// any level; else each of the links of one level, which the cluster names: "device" (inside its node),
    /// "card" (a network card), "node" (to other nodes), "rack" ...
    std::string links{};
    friend bool operator==(const LimitRule &, const LimitRule &) = default;
};

const char *nameOf(LimitRule::Kind kind); ///< "memory", "time", "traffic"

template<> struct RuleTraits<LimitRule> {
    static constexpr std::array words{"limit"};
    static constexpr RuleShape shape = RuleShape::Plain;
    static constexpr const char *verb = "limit the step";
    static void describe(RuleForm &form, LimitRule &rule);
};

} // namespace planloom
