#pragma once

#include "engine/plan/plan_draft.h"

namespace planloom {

/// Says of rows that the plan could do without, or that hardly do what they were written for: stages that all
/// run on the same devices, axes of the mesh along which all devices do the same, a schedule of a single
/// block. Of a draft whose forward and backward operators are decided. O(operators x devices)
void warnOfIdleRows(PlanDraft &draft);

} // namespace planloom
