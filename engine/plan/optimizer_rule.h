#pragma once

#include "engine/plan/plan_draft.h"

namespace planloom {

/// Decides the operators that update weights, after the forward ones; of clipping, clip_rule.h.
///
/// Where rows place or split one themselves, they are followed. Else it follows how forward operators see its
/// weight: if each device sees one box of it, and these boxes form a grid in which all have equally many
/// devices, the operator is cut along the grid and replicated over the devices of each cell. Otherwise (the
/// weight is shared by operators that cut it differently) every device that uses the weight updates all of
/// it.
///
/// Optimizer sharding cuts the replicas' work instead: along the first dimension that divides, else into
/// uneven parts along the longest uncut one; a weight that is small and divides nowhere stays replicated.
void decideOptimizers(PlanDraft &draft);

/// Shares the updates of sharded optimizer operators out over the scale units: each part is cut along the
/// first dimension that divides, else along that of which least is padding: all get ceil(extent /
/// units), but those at the end, which get what is left, and may get nothing. So any number of
/// units divides, as where trainers pad flat buckets (Megatron-LM's distributed optimizer, DeepSpeed, FSDP).
/// @param shardings  by operator: the row that says so, -1 where none does; may be empty
void shareOutUpdates(PlanDraft &draft, const std::vector<std::int32_t> &shardings);

/// Puts operators whose weights are gathered, or whose gradients are cut, into groups by layer; those outside
/// of any layer stay on their own. After `shareOutUpdates`.
void groupShardedWeights(PlanDraft &draft);

} // namespace planloom
