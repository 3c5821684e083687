#pragma once

#include "engine/base/ids.h"
#include "engine/table/kinds/rule_traits.h"

#include <compare>
#include <vector>

namespace planloom {

/// A place along one axis of the mesh.
struct AxisCoordinate {
    std::string axis{};
    std::int32_t index = 0;
    friend auto operator<=>(const AxisCoordinate &, const AxisCoordinate &) = default;
};

/// op-assign: where the parts run: on a list of devices, or on the part of the mesh with the given
/// coordinates (all of it if there are none).
struct OpAssignRule {
    std::vector<DeviceId> devices{}; ///< Of parts 0, 1, ...; may repeat; empty if by coordinates.
    std::vector<AxisCoordinate> coordinates{};
    friend bool operator==(const OpAssignRule &, const OpAssignRule &) = default;
};

template<> struct RuleTraits<OpAssignRule> {
    static constexpr std::array words{"place"};
    static constexpr RuleShape shape = RuleShape::Colon;
    static constexpr const char *verb = "place";
    static void describe(RuleForm &form, OpAssignRule &rule);
};

} // namespace planloom
