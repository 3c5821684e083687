#pragma once

#include "engine/base/result.h"
#include "engine/gallery/tensor_parallel_region.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstdint>
#include <string>

namespace planloom {

/// Appends to `table` (which has the mesh, with axis `axis` of size `parts`) the op-trans rows of tensor
/// parallelism: products by similar name; other operators only where the default rule would not follow them.
/// @return InvalidInput with the reason if nothing can be split
Result<void> appendTensorParallel(const Model &model, std::int32_t deviceCount, const std::string &axis,
    std::int32_t parts, ConstraintTable &table, UnevenParts uneven = UnevenParts::Any);

/// Rows that split what lies between the tensor-parallel regions along the sequence over the same axis
/// (arXiv:2205.05198, section 4.2.2): norms, residuals and their activations are held once, not by every
/// device.
/// @return InvalidInput if nothing there has a sequence that divides
Result<void> appendSequenceParallel(const Model &model, std::int32_t deviceCount, const std::string &axis,
    std::int32_t parts, ConstraintTable &table, UnevenParts uneven = UnevenParts::Any);

} // namespace planloom
