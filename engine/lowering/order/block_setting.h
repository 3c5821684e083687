#pragma once

#include "engine/lowering/order/order.h"
#include "engine/schedule/schedule.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Ranks and stages as the blocks' devices have them: what a template makes its schedule for.
ScheduleSetting settingOf(
    const std::vector<BlockInfo> &blocks, std::int32_t microBatches, std::int32_t stageCount);

} // namespace planloom
