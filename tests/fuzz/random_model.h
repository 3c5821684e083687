#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"

#include <cstdint>

namespace planloom {

/// A small forward graph of operators of all kinds that models have, in any order: what they read is an
/// activation, a weight, a weight that others read too, an input, a buffer or a constant, whichever chance
/// gives to the slot, brought to the shape that it needs by views, products, slices or broadcasts. Some have
/// layers that repeat, with weights of their own or shared ones; most have a loss, of several parts; values
/// are such that no operator is asked for what it is not defined for (logarithms of negative numbers).
/// Annotated; the same for a seed on every machine.
Result<Graph> randomModel(std::uint64_t seed);

} // namespace planloom
