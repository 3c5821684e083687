#pragma once

#include "engine/base/result.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstdint>
#include <string>

namespace planloom {

/// Appends to `table` (which has the mesh, with axis `axis` of size `parts`) the rows of context parallelism:
/// all that has a sequence which `parts` divides is split along it, and keys and values go round the devices
/// (`ring`, arXiv:2310.01889), or are gathered for every attention, as they are anyway where keys cannot be
/// split.
/// @return InvalidInput if nothing has such a sequence, or no attention can be a ring
Result<void> appendContextParallel(const Model &model, std::int32_t deviceCount, const std::string &axis,
    std::int32_t parts, bool ring, ConstraintTable &table);

} // namespace planloom
