#pragma once

#include "engine/lowering/schedule.h"
#include "engine/table/table.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// What one micro-batch takes of a stage's devices.
struct StageTime {
    double forward = 0; ///< Seconds.
    double backward = 0; ///< With what is computed again, without `weights`.
    double weights = 0; ///< Gradients of weights, where a schedule makes them in a pass of their own.
    double sendForward = 0; ///< To the next stage; beside computation.
    double sendBackward = 0; ///< To the stage before.
};

/// How a pipeline's blocks run.
struct PipelineTime {
    double makespan = 0; ///< From the first block to the end of the last.
    std::vector<double> lastBackward{}; ///< By stage: when its last backward block begins.
    std::vector<double> end{}; ///< By stage: when its last block is over.
    std::vector<std::int32_t> inFlight{}; ///< By stage: the most micro-batches held at once.
};

/// Plays a schedule of whole blocks: each rank in its order, each block when what it reads is there.
/// Stage s runs on rank s mod `ranks`.
/// @return InvalidInput where the schedule cannot be made for the setting
/// O(stages x micro-batches).
Result<PipelineTime> playPipeline(ScheduleKind schedule, const std::vector<StageTime> &stages,
    std::int32_t ranks, std::int32_t microBatches, bool backward);

} // namespace planloom
