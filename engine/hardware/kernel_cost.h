#pragma once

#include "engine/hardware/cost_model.h"

namespace planloom {

/// Seconds that the multipliers take for a product, without moving its operands from memory.
///
/// A product is computed in tiles, a wave of one on each multiprocessor at a time, each at its part of
/// `KernelRate::Tile`. Lost are: what tiles stand over the edges, the multiprocessors that have no tile in
/// the last wave, the start of every wave, and with smaller tiles the reuse of what was read. The best of the
/// tiles is taken, and k may be cut into parts that are added up, as cuBLAS does where there are few tiles
/// (split k). Where all multiprocessors work, the power of the board allows for `KernelRate::Product` (of
/// several products at once: `Grouped`), whatever the tiles.
double productSeconds(const DeviceModel &device, const MatrixProduct &product, DataType dataType);

/// Seconds of computing and of moving the operands of a product in tiles, which overlap but in part: what is
/// short of both is as long as both matter (the root of the sum of their squares).
double overlapped(const DeviceModel &device, double computing, double moving);

/// Bytes that rounding an operand of a product to 8 bits moves for each of its elements, by kernels of their
/// own, and how many those are: the largest magnitude is found, then all is read and written.
constexpr double kRoundingBytes = 7.5;
constexpr double kRoundingLaunches = 2;

/// Share of peak that attention reaches whose scores stay on the chip.
///
/// @param headDimension, keys  of the local shapes
/// @return `DeviceModel::attentionEfficiency` (or that of the backward pass) is what long sequences reach
/// with heads of 128; narrower heads are limited by exponentials, and causal ones by the tiles on the
/// diagonal
double attentionShapeEfficiency(const DeviceModel &device, DataType dataType, bool backward, bool causal,
    double headDimension, double keys);

/// Seconds of one kernel on a device of this kind.
double kernelSeconds(const DeviceModel &device, const KernelQuery &query);

/// What `CostModel::leastKernel` asks for: the work at the best rate, without launches, and nothing for what
/// may be fused into its neighbours.
double leastKernelSeconds(const DeviceModel &device, const KernelQuery &query);

} // namespace planloom
