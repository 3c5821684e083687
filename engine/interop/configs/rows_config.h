#pragma once

#include "engine/base/result.h"
#include "engine/interop/configs/framework_config.h"
#include "engine/plan/plan.h"
#include "engine/table/model.h"
#include "engine/table/table.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// What rows say of a training run, in the words of configs: degrees, stages, micro-batches, sharding,
/// formats, recomputation. `planOfConfig` of it makes these rows as far as configs can say them.
/// @param batch  samples in a step
/// @return InvalidInput where the rows have no mesh of this many devices (`where` "mesh")
/// O(rows x operators).
Result<FrameworkConfig> configOfRows(
    const ConstraintTable &table, const Model &model, std::int32_t deviceCount, std::int64_t batch);

/// As `configOfRows`, of the rows that say no degrees alone: format of numbers, sharding, schedule, layers of
/// stages, recomputation, offloading.
FrameworkConfig settingsOfRows(const ConstraintTable &table, const Model &model);

/// The plans decide the same of every operator, whatever rows they follow from.
/// @param ranks  device of `a` that each of `b` stands for; empty: the same
bool decidesAlike(const Plan &a, const Plan &b, const std::vector<DeviceId> &ranks = {});

} // namespace planloom
