#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/table/kinds/order/block_part.h"

#include <cstdint>
#include <set>
#include <string>

namespace planloom {

/// The stages whose passes are several blocks: only their blocks are named with lane and slice.
struct StagesInParts {
    std::set<StageId> sliced{};
    std::set<StageId> inLanes{}; ///< A device has one lane of a stage, mostly.

    /// The part that a segment's blocks are named with; none where its stage has no several.
    BlockPart partOf(const Segment &segment) const;
};
/// O(segments).
StagesInParts stagesInParts(const ExecutionPlan &plan);

/// "a.2": lane 0 and slice 2; what is not said is left out.
std::string labelOf(const BlockPart &part);

/// "F0", "B3a.2", "W1", "T2", "Gradients", "Optimizer", "Once": what a block is called on every picture and
/// in every sentence.
std::string blockLabel(SegmentKind kind, std::int32_t microBatch, const BlockPart &part);

} // namespace planloom
