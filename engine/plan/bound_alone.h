#pragma once

#include "engine/graph/batch.h"
#include "engine/plan/selector_index.h"
#include "engine/plan/table.h"

#include <cstddef>
#include <cstdint>

namespace planloom {

/// How many operators a row would act on if it were on: by itself, with nothing beside it but the rows about the whole plan.
/// 0 if it could not hold then. O(operators). Thread-safe.
std::int32_t boundAlone(
    const SelectorIndex &index, const BatchInfo &batch, std::int32_t deviceCount, const ConstraintTable &table, std::size_t row);

} // namespace planloom
