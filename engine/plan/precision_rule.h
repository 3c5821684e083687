#pragma once

#include "engine/graph/precision.h"
#include "engine/plan/plan_draft.h"

#include <string>

namespace planloom {

/// Gives every operator its precision. A forward operator has what rows say of it, and `fallback` where they
/// leave something open; a backward one that of its forward; an optimizer what rows say of it, and else that
/// of the first forward operator that reads its weight. Needs the other decisions to be made.
void decidePrecisions(PlanDraft &draft, PrecisionPreset fallback);

/// In which precisions a plan's operators work, the most frequent first: "bf16", "bf16 (120 operators), fp32
/// (3)"; and whether no row asked for it: "bf16 by default".
std::string precisionSummary(const Plan &plan);

} // namespace planloom
