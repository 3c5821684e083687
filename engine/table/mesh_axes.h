#pragma once

#include "engine/table/kinds/partition/degree.h"
#include "engine/table/kinds/partition/mesh.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// What people use a mesh axis for, by its name: dp, data, batch, replicas; pp, pipe, pipeline, stages;
/// others share operators' work.
enum class AxisRole : std::uint8_t { Replicas, Ranks, Shards };
AxisRole roleOf(const MeshAxis &axis);
/// Whose axes a degree counts; nothing for those that are no axes of the mesh.
std::optional<AxisRole> roleOf(Degree degree);
/// The product of the axes of one role.
std::int64_t sizeOfRole(const std::vector<MeshAxis> &mesh, AxisRole role);

/// What helps where the mesh has no axis of this name: "did you mean 'tp'?", or to add it.
std::string noSuchAxisAdvice(const std::vector<MeshAxis> &mesh, std::string_view name);

} // namespace planloom
