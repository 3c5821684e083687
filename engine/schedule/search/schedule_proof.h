#pragma once

#include "engine/schedule/search/find_schedule.h"
#include "engine/schedule/search/placement.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace planloom {

/// What is known of how good a schedule is, in two sentences for a person: of its period ("GPU 2 is busy 100%
/// of the period of 12.3 ms: no schedule has a shorter one."), and of all its micro-batches ("16
/// micro-batches take 214 ms; none below 210 ms: at most 1.9% less.").
/// @param devices  names of the placement's devices
/// @param time     how a time is said
std::string proofOf(const Placement &placement, const ScheduleAnswer &answer,
    const std::vector<std::string> &devices, const std::function<std::string(std::int64_t)> &time);

} // namespace planloom
