#pragma once

#include "engine/plan/plan_draft.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Places of forward operators, those kept together in one place: where one of them is placed by rows there;
/// else where the first of them would run. Others follow as `followPlaces` says. Fails rows that ask for it
/// of operators that rows place differently.
/// @param place  by operator: the number of the place that a row gives it, or -1; filled in
void followPlacesTogether(PlanDraft &draft, std::vector<std::int32_t> &place);

/// Fails rows that keep operators apart that share a device.
void checkSharing(PlanDraft &draft);

} // namespace planloom
