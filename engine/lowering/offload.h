#pragma once

#include "engine/hardware/cost_model.h"
#include "engine/lowering/program/program_builder.h"
#include "engine/plan/plan.h"

#include <vector>

namespace planloom {

/// Moves to host memory what the plan says may wait there, in programs that are complete but for the deaths
/// of buffers, whatever made them:
/// - states, and weights that the optimizer alone reads: their persistent buffers are on the host. Where they
///   are read, they are fetched; where they are written, the new value is copied back behind the update;
/// - activations: what forward blocks made and backward blocks read. It is copied behind its last use in its
///   forward block, dies on the device once nobody else needs it, and is fetched for its backward use.
///
/// Copies too short to use the link well are launched together, as buckets of gradients are. What is fetched
/// is there just in time: its copy starts as many kernels ahead as it takes, but not before what the fetch
/// before it brought is in use, so that no more than two of them are on the device at once (as double buffers
/// hold parameters in ZeRO-Infinity, arXiv:2104.07857, section 6.2).
/// @param kernelSeconds  by operator: what one part of it takes
void offload(const Plan &plan, const CostModel &costs, const std::vector<double> &kernelSeconds,
    ProgramBuilder &builder);

} // namespace planloom
