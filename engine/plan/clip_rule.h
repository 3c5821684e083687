#pragma once

#include "engine/plan/plan_draft.h"

namespace planloom {

/// Decides the operators that clip gradients, after the updates and their precisions.
///
/// The squares of a gradient are added up where its update reads it, in the same boxes and the same type; of
/// replicas, the one whose device has the least of this work does it, so that every element counts once and
/// the sum costs each device about the n-th part. Every device that updates a weight makes the factor itself.
void decideClipping(PlanDraft &draft);

} // namespace planloom
