#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/simulate/timeline.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// All that one stage computes of one micro-batch in one pass, over all of its devices.
struct PipelineBlock {
    StageId stage{};
    bool backward = false;
    std::int32_t microBatch = 0;
    std::int64_t start = 0; ///< Nanoseconds: of the first span.
    std::int64_t end = 0; ///< Of the last.
    bool ofWeights = false; ///< Gradients of weights, of a split backward pass.
    friend bool operator==(const PipelineBlock &, const PipelineBlock &) = default;
};

/// The phases of one stage.
struct StagePhases {
    StageId stage{};
    std::int64_t firstBackward = 0; ///< Nanoseconds: start of its first backward block.
    std::int64_t lastForward = 0; ///< End of its last forward block.
    std::int32_t warmUp = 0; ///< Forward blocks before its first backward block: the bracket of warm-up.
    std::int32_t coolDown = 0; ///< Backward blocks from its last forward block on.
    friend bool operator==(const StagePhases &, const StagePhases &) = default;
};

/// The bands of a pipeline's step and what repeats in them.
///
/// - Warm-up, [0, steadyBegin): until the first backward block starts anywhere.
/// - Steady, [steadyBegin, steadyEnd): both directions run.
/// - Cool-down, [steadyEnd, end): from the end of the last forward block anywhere.
///
/// Of split backward passes the gradients of inputs count as backward blocks: those of weights only fill
/// time.
///
/// With p equal stages, m micro-batches, forward f and backward b long and transfers free: GPipe has no
/// steady band, and warms up for (m + p - 1) f; 1F1B warms up for p f and is steady for (m - 1)(f + b), m - 1
/// periods of f + b. Both end at (m + p - 1)(f + b).
struct SteadyState {
    std::int64_t steadyBegin = 0;
    std::int64_t steadyEnd = 0;
    std::int64_t end = 0; ///< Of the last block; the optimizer comes behind.
    std::int64_t period =
        0; ///< Nanoseconds after which the last stage's backward blocks repeat; 0 if they do not.
    std::int32_t microBatchesPerPeriod = 0;
    std::int32_t repeats = 0; ///< Periods one after the other.
    std::int64_t periodBegin = 0; ///< When the first of them begins.
    std::int64_t fillPeriod =
        0; ///< Between forward blocks of the last stage during warm-up; 0 if they do not repeat.
    std::int64_t drainPeriod = 0; ///< Between backward blocks of the first stage during cool-down.
    std::vector<StagePhases> stages{}; ///< That run both ways, ascending.
    friend bool operator==(const SteadyState &, const SteadyState &) = default;
};

/// Blocks of all stages by (stage, start). O(spans).
std::vector<PipelineBlock> pipelineBlocks(const ExecutionPlan &plan, const Timeline &timeline);

/// Of a predicted or measured step. Distances count as equal up to `tolerance` times themselves.
/// @return nothing for a step without a forward and a backward block of one stage. O(spans + blocks log
/// blocks)
std::optional<SteadyState> steadyStateOf(
    const ExecutionPlan &plan, const Timeline &timeline, double tolerance = 0);

} // namespace planloom
