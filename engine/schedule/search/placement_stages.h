#pragma once

#include "engine/schedule/search/stage_blocks.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// The pipeline that a placement is, as templates know it.
struct PipelineOfPlacement {
    /// The placement's blocks, on ranks in place of devices: a rank is a set of devices that run the same
    /// blocks.
    StagePlacement stages{};
    ScheduleSetting setting{};
    bool splits = false; ///< Gradients of weights are blocks of their own.
};

/// Reads stages from the kinds of blocks ("forward", "backward", "input-gradient", "weight-gradient", or F,
/// B, I, W; on queue 0): forward blocks in the order of the dependencies are the stages, parts without a
/// dependency between them lanes of the same stages; backward blocks go with the last forward block on their
/// devices that has none yet.
/// @return InvalidInput naming a block ("block:ID") that has no place in it, or if device sets overlap
///   otherwise than one that is all of them
Result<PipelineOfPlacement> pipelineOf(const Placement &placement, std::int32_t microBatches);

/// A template's schedule of a placement: a valid one, but for memory.
/// @return InvalidInput where the placement is no pipeline, or not one that the template is for
Result<std::vector<BlockStart>> templateStarts(
    const Placement &placement, ScheduleKind kind, std::int32_t microBatches);

} // namespace planloom
