#pragma once

#include "engine/design/make_plan.h"
#include "sessions/session_store.h"

namespace planloom {

/// What the step that a session stands at asks to be planned, with its model opened: rows, sizes, cluster,
/// devices. How far, and whether what rows leave open is searched for, is left to the caller.
/// @return as `modelOptionsIn` and `openModel`. Waits for the disk.
Result<PlanRequest> requestOf(const SessionContents &contents);

} // namespace planloom
