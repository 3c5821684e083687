#pragma once

#include "engine/base/scale_units.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// A table whose plan is so many equal replicas, and the table of one of them.
struct TableInUnits {
    ScaleUnits units{};
    std::string axis{}; ///< The mesh axis along which the replicas lie.
    std::int32_t deviceCount = 1; ///< Of one unit.
    ConstraintTable table{}; ///< As many rows; those that speak of the axis, or count it, are off;
                             ///< the mesh is without it.
    std::int32_t batchRow = -1; ///< The row that splits the batch over the axis.
    std::vector<std::int32_t> shardingRows{}; ///< Rows that shard optimizers over it.
};

/// Reads a table as whole replicas along one axis of its mesh: one row splits the batch of all operators over
/// it, others at most shard optimizers over it, and nothing names devices, which would tell the replicas
/// apart. What the micro-batches of the replicas add up to must not depend on how many there are.
/// @param alike  says no where the cluster tells the replicas apart
/// @return nothing where that cannot be; the plan is then to be made device by device
std::optional<TableInUnits> findUnits(const Model &model, std::int32_t deviceCount,
    const ConstraintTable &table, const std::function<bool(const ScaleUnits &)> &alike = {});

} // namespace planloom
