#pragma once

#include "engine/base/result.h"
#include "engine/plan/selector_index.h"
#include "engine/plan/table.h"

#include <cstdint>
#include <string>

namespace planloom {

/// Appends to `table` (which has the mesh, with axis `axis` of size `parts`) the op-trans rows of tensor
/// parallelism: products by similar name; other operators only where the default rule would not follow them.
/// @return InvalidInput with the reason if nothing can be split
Result<void> appendTensorParallel(const SelectorIndex &index, std::int32_t deviceCount,
    const std::string &axis, std::int32_t parts, ConstraintTable &table);

} // namespace planloom
