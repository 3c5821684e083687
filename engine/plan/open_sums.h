#pragma once

#include "engine/plan/plan_draft.h"

namespace planloom {

/// True if `op` adds sums that are still open over mesh axis `axis`: all it reads are summands of forward
/// operators over that axis, which nothing else of the forward pass reads, each as large as its output. Split
/// by value over the axis, it adds what the devices have, and its output is reduced once in place of every
/// input.
///
/// Its producers must be decided. O(inputs x splits)
bool addsOpenSums(PlanDraft &draft, OperatorId op, const MeshAxis &axis);

} // namespace planloom
