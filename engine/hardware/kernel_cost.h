#pragma once

#include "engine/hardware/cost_model.h"

namespace planloom {

/// Share of a multiplier's rate that a product reaches beside the largest ones, 0..1, by its shape.
///
/// A product is computed in tiles, a wave of one on each multiprocessor at a time. Lost are: what tiles stand
/// over the edges, the multiprocessors that have no tile in the last wave, the start of every tile's loop
/// over k, and with smaller tiles the reuse of what was read. The best of the tiles is taken, and k may be
/// cut into parts that are added up, as cuBLAS does where there are few tiles (split k).
/// @param multiprocessors  0: nothing is lost
double productShapeEfficiency(const MatrixProduct &product, double multiprocessors);

/// Share of peak that attention reaches whose scores stay on the chip.
///
/// @param headDimension, keys  of the local shapes
/// @return `DeviceModel::attentionEfficiency` (or that of the backward pass) is what long sequences reach
/// with heads of 128; narrower heads are limited by exponentials, and causal ones by the tiles on the
/// diagonal
double attentionShapeEfficiency(
    const DeviceModel &device, bool backward, bool causal, double headDimension, double keys);

/// Seconds of one kernel on a device of this kind.
double kernelSeconds(const DeviceModel &device, const KernelQuery &query);

/// What `CostModel::leastKernel` asks for: the work at the best rate, without launches, and nothing for what
/// may be fused into its neighbours.
double leastKernelSeconds(const DeviceModel &device, const KernelQuery &query);

} // namespace planloom
