#pragma once

#include "engine/table/row_setting.h"
#include "engine/table/table.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace planloom {

/// What a row could say instead, a direction at a time: each list goes on from what it says, the nearest
/// first.
struct LooserRows {
    std::vector<std::vector<Row>> directions{};
};

/// @param stageCount  that rows of the table speak of, at least 1
/// @param valuesOf  as `SpaceQuestion`; may be empty: what a degree can be is not known
/// Rows that could not hold even alone are left out. O(candidates x operators of the row).
LooserRows looserRows(const RowSetting &setting, std::int32_t microBatches, std::int32_t stageCount,
    const Row &row, const std::function<std::vector<std::int32_t>(Degree)> &valuesOf = {});

} // namespace planloom
