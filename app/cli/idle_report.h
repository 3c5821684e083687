#pragma once

#include "engine/analyse/idle_times.h"

#include <nlohmann/json_fwd.hpp>

namespace planloom::cli {

/// {"total": {"fill_seconds": ..., ...}, "devices": [{...}, ...]}: seconds by `IdleReason`, of all devices
/// together and of each. Of a device they add up to its step without what it computes.
nlohmann::json idleToJson(const IdleTimes &idle);

/// The same of all devices together, to read.
void printIdle(const IdleTimes &idle);

} // namespace planloom::cli
