#pragma once

#include "engine/lowering/layout/layout.h"

#include <vector>

namespace planloom {

/// What is left of `holdings` where summands that several devices hold beside different others are kept by
/// some of them only, so that all there is of a box can be added up by reductions:
///
///     device 0: {0} {1}          device 0: {0} {1}
///     device 1: {0} {2}    ->    device 1: {2}         and not {0} twice
///
/// The gradient of a residual stream is such a sum: whole from the addition that follows, in parts from the
/// columns of the products beside it.
///
/// @return all of `holdings` where their sets are equal or disjoint already, where some device has
/// everything, or where that leaves a device of a box with nothing. O(n log n)
std::vector<Holding> withoutShared(const std::vector<Holding> &holdings);

/// Whether two of `holdings` have some summands of one place in common, but not the same ones: nobody can add
/// such two up any more. No summands at all stand for everything. O(n^2)
bool shareSome(const std::vector<Holding> &holdings);

} // namespace planloom
