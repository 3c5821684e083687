#pragma once

#include "engine/base/result.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstdint>
#include <string>

namespace planloom {

/// Appends to `table` (which has the mesh, with axis `axis` of size `parts`) the op-trans rows of tensor
/// parallelism: products by similar name; other operators only where the default rule would not follow them.
/// @return InvalidInput with the reason if nothing can be split
Result<void> appendTensorParallel(const Model &model, std::int32_t deviceCount, const std::string &axis,
    std::int32_t parts, ConstraintTable &table);

} // namespace planloom
