#pragma once

#include "engine/hardware/cost_model.h"

namespace planloom {

/// The same costs, of which what a collective takes is worked out once for every kind, size and shape of
/// group: a search asks for few of them very often. Keeps the newest some ten thousands. May be called from
/// several threads, as `costs`.
CostModel withRememberedCollectives(CostModel costs);

} // namespace planloom
