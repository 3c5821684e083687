#pragma once

#include "engine/plan/plan_draft.h"

namespace planloom {

/// Numbers the pipeline stages, after placement.
///
/// With stage rows: those numbers; an operator without one is in the last stage of its producers; one
/// computed from inputs and constants alone, in the stage of its first consumer. Without: runs of operators,
/// in topological order, on the same devices, each a stage of its own. Operators computed from inputs and
/// constants alone that no row places belong to their first consumer. More than 64 runs without a schedule
/// row are one stage: only schedules need stages.
///
/// Fails stage rows against the data flow.
void assignStages(PlanDraft &draft);

/// Numbers the recompute groups of recompute and coshard rows (within stages), for graphs with a backward
/// pass. A coshard region that no recompute row names is a group; what coshard rows leave outside of regions
/// makes one per layer and stage.
void assignRecomputeGroups(PlanDraft &draft);

} // namespace planloom
