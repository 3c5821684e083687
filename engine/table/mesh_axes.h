#pragma once

#include "engine/table/kinds/mesh.h"

#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// What helps where the mesh has no axis of this name: "did you mean 'tp'?", or to add it.
std::string noSuchAxisAdvice(const std::vector<MeshAxis> &mesh, std::string_view name);

} // namespace planloom
