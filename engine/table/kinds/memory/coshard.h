#pragma once

#include "engine/table/kinds/partition/dimension_ref.h"
#include "engine/table/kinds/rule_traits.h"

namespace planloom {

/// Cuts further into parts that stay on the same device and take turns: neighbouring operators with as many
/// parts run together, part by part, and again so in the backward pass, recomputed (nnScaler's coshard,
/// OSDI '24, section 6; engine/plan/coshard_regions.h).
struct CoshardRule {
    DimensionRef dimension{};
    std::int32_t parts = 2;
    /// What the backward pass reads is kept from the forward pass, of all parts, and nothing is recomputed:
    /// memory falls only by what dies within a turn.
    bool keep = false;
    friend bool operator==(const CoshardRule &, const CoshardRule &) = default;
};

template<> struct RuleTraits<CoshardRule> {
    static constexpr std::array words{"coshard"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "cut";
    static void describe(RuleForm &form, CoshardRule &rule);
};

} // namespace planloom
