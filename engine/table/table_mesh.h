#pragma once

#include "engine/table/kinds/partition/mesh.h"
#include "engine/table/table.h"

#include <vector>

namespace planloom {

/// The axes of the mesh that holds: those of the first row that gives one and is on; none without such a row.
std::vector<MeshAxis> meshOf(const ConstraintTable &table);

} // namespace planloom
