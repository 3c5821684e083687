#pragma once

#include "engine/design/make_plan.h"

#include <stop_token>

namespace planloom {

/// The plan of a request with a gallery plan whose stages are balanced by what their operators take in
/// simulation, as placed, split, recomputed and typed: planned, measured and cut anew until that gives
/// nothing more (arXiv:2104.04473 balances by layers alone). Stages hold no more weights than their devices
/// have room for beside what else they held at their peak. Of at most `rounds` plans the fastest that fits
/// the devices' memory; if none does, the one with the least peak.
///
/// Goes as far as `PlanGrade::Simulated`; a request without stages is planned once.
/// @return as `planOf`
Result<PlanAnswerSnapshot> balancedPlanOf(
    const PlanRequest &request, std::int32_t rounds = 8, const std::stop_token &stop = {});

} // namespace planloom
