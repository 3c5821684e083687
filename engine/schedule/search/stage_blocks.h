#pragma once

#include "engine/schedule/schedule.h"
#include "engine/schedule/search/block_starts.h"
#include "engine/schedule/search/placement.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// What one micro-batch takes of a stage, or of a lane of it.
struct StageBlocks {
    std::int64_t forward = 1;
    std::int64_t backward = 1; ///< Of inputs alone, where `weights` stands on its own.
    std::int64_t weights = 1;
    std::int64_t sendForward = 0; ///< To the next stage, if that lies elsewhere; 0: at once.
    std::int64_t sendBackward = 0; ///< To the stage before.
    std::int64_t memory = 1; ///< From its forward block to its last backward block.
    bool hasBackward = true;
};

/// A pipeline as a placement: devices are ranks.
struct StagePlacement {
    Placement placement{};
    /// By block: what it is in a schedule; none for what is sent, which has a queue of its own, one each way.
    std::vector<std::optional<BlockKey>> keys{};
};

/// The blocks of stages that lie as `setting` says. Forward blocks go through all stages, backward blocks
/// back through those that have them; each backward block waits for its forward block.
/// @param stages  by stage
/// @param splits  gradients of weights are blocks of their own; else `weights` is part of the backward block
StagePlacement placementOf(
    const ScheduleSetting &setting, const std::vector<StageBlocks> &stages, bool splits);

/// Plays a schedule: each rank in its order, each block as soon as what it waits for is there; two blocks
/// that run side by side as if one followed the other. What is sent leaves as soon as it is there. Memory is
/// not looked at (`violationsOf` does).
/// @return InvalidInput naming two blocks that wait for each other ("deadlock"), or a block that is missing
Result<std::vector<BlockStart>> playSchedule(
    const StagePlacement &stages, const Schedule &schedule, std::int32_t microBatches);

/// The order that starts have on every rank; copies of offloads, which `withOptions` adds, have none.
Schedule scheduleOf(const StagePlacement &stages, std::vector<BlockStart> starts);

} // namespace planloom
