#pragma once

#include "engine/base/result.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstdint>
#include <string>

namespace planloom {

/// Whether the model has experts as below. O(graph)
bool hasExperts(const Model &model);

/// Appends to `table` (which has the mesh, with axis `axis` of size `parts`) the rows of expert parallelism:
/// experts lie spread over the axis, and all else is split along the batch over it, so that rows go to
/// their experts' devices and come back (all-to-all).
///
/// Experts are found by data flow: where one operator has the weights of all of them, all between the first
/// and the last of a mixture is split along the experts; where each has operators of its own, between rows
/// that data choose and what is made of them, those are placed, the experts of a mixture in equal runs.
/// @return InvalidInput if there are no experts, or `parts` does not divide them
Result<void> appendExpertParallel(
    const Model &model, const std::string &axis, std::int32_t parts, ConstraintTable &table);

} // namespace planloom
