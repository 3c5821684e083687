#pragma once

#include "engine/plan/plan_draft.h"

namespace planloom {

/// Numbers the regions of coshard rows: operators that run part by part, all of them their first part before
/// any its second (nnScaler's coshard, OSDI '24, section 6), so that what is between them takes the memory
/// of one part:
///
///     turn 0: [a 0/2]-[b 0/2]-[c 0/2]     turn 1: [a 1/2]-[b 1/2]-[c 1/2]
///
/// A region holds operators of coshard rows, in one layer and stage, cut into as many parts, and all of them
/// recomputed or kept (`keep`). It ends where its parts cannot go on alone:
///
/// 1. where an operator, or its backward operator, reads what several turns make together (a sum over the
///    parts, a normalisation over what they cut), unless that comes from outside;
/// 2. where an operator reads what one outside the region makes of what the region makes;
/// 3. at operators that divide a value, or run once per step.
///
/// An operator that cannot even take turns with its own backward operator is in no region: its parts run one
/// after the other, but nothing is saved. The first end of kind 1 of every row is told in its report.
/// O(operators x parts^2) at most, where coshard rows act.
void assignCoshardRegions(PlanDraft &draft);

/// Regions of a plan hold what `assignCoshardRegions` promises, but for layers.
/// @return InvalidInput naming an operator
Result<void> checkCoshardRegions(const Plan &plan);

} // namespace planloom
