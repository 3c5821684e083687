#pragma once

#include "engine/table/kinds/rule_traits.h"

#include <vector>

namespace planloom {

/// One axis of a device mesh.
struct MeshAxis {
    std::string name{};
    std::int32_t size = 1;
    friend bool operator==(const MeshAxis &, const MeshAxis &) = default;
};

/// Arranges devices 0, 1, ... as a mesh; the last axis varies fastest.
struct MeshRule {
    std::vector<MeshAxis> axes{}; ///< Outermost first, at least one.
    friend bool operator==(const MeshRule &, const MeshRule &) = default;
};

template<> struct RuleTraits<MeshRule> {
    static constexpr std::array words{"mesh"};
    static constexpr RuleShape shape = RuleShape::Plain;
    static constexpr const char *verb = "give the mesh";
    static void describe(RuleForm &form, MeshRule &rule);
};

} // namespace planloom
