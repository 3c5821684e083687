#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/table/kinds/order/block_part.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>

namespace planloom {

/// A stage on the devices of several others, around which it lies: the lookups or the head of an interlaced
/// pipeline, beside which a device has a stage of its own.
enum class WideStage : std::uint8_t { None, First, Last };

/// The stages whose blocks are named otherwise: only blocks of stages whose passes are several are named with
/// lane and slice.
struct StagesInParts {
    std::set<StageId> sliced{};
    std::set<StageId> inLanes{}; ///< A device has one lane of a stage, mostly.
    std::map<StageId, WideStage> wide{}; ///< Those that are.

    /// The part that a segment's blocks are named with; none where its stage has no several.
    BlockPart partOf(const Segment &segment) const;
    WideStage wideOf(StageId stage) const;
};
/// O(segments + stages squared).
StagesInParts stagesInParts(const ExecutionPlan &plan);

/// "a.2": lane 0 and slice 2; what is not said is left out.
std::string labelOf(const BlockPart &part);

/// "F0", "B3a.2", "W1", "T2", "Gradients", "Optimizer", "Once": what a block is called on every picture and
/// in every sentence. Those of wide stages are "E0" (the first ones) and "H0" (the last ones), "e0" and "h0"
/// in the backward pass, so that a device's lane tells them from those of its own stage.
std::string blockLabel(
    SegmentKind kind, std::int32_t microBatch, const BlockPart &part, WideStage wide = WideStage::None);

} // namespace planloom
