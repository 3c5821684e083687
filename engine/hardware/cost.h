#pragma once

#include "engine/graph/operators/catalogue.h"
#include "engine/hardware/cluster.h"

#include <cstdint>
#include <vector>

namespace planloom {

/// Communication that a group of devices does together.
enum class CollectiveKind : std::uint8_t {
    AllReduce,
    AllGather,
    ReduceScatter,
    AllToAll,
    Broadcast,
    SendRecv,
    Shift, ///< Every member sends to the next and receives from the one before, all at once.
};

/// Seconds one operator (or part) takes: max(FLOPs / achievable, bytes / achievable bandwidth) + launch.
/// Products and attentions run at the rate of `dataType`'s matrix units; everything else at the memory's.
double operatorSeconds(
    const DeviceModel &device, OperatorCategory category, const Work &work, DataType dataType);

/// Seconds of a collective by NCCL 2.28's own tuning model (runtime-facts.md, section 5): the best over
/// algorithm and protocol of latency + bytes / bandwidth.
///
/// @param bytes    AllReduce, Broadcast, SendRecv, Shift: of the tensor on one device. AllGather: of the
/// gathered output.
///                 ReduceScatter: of the input on one device. AllToAll: of the input on one device.
/// @param members  devices of the group; a group of one takes no time
double collectiveSeconds(
    const Cluster &cluster, CollectiveKind kind, Bytes bytes, const std::vector<DeviceId> &members);

/// Peak rate of the units that multiply matrices of `dataType`.
double matrixFlopsOf(const DeviceModel &device, DataType dataType);
/// The same figure with its source.
const Sourced &matrixRateOf(const DeviceModel &device, DataType dataType);

/// What a share of peak is of.
enum class KernelRate : std::uint8_t {
    Product,
    Tile, ///< See `DeviceModel::tileEfficiency`.
    Grouped, ///< Products of several matrices each at once, of experts for instance.
    Attention,
    AttentionBackward,
};

/// The share of `matrixRateOf` that kernels of this format reach: that of the format, or else the device's
/// general one, or else what products reach.
const Sourced &efficiencyOf(const DeviceModel &device, KernelRate rate, DataType dataType);

/// Seconds to copy `bytes` within a device.
double copySeconds(const DeviceModel &device, Bytes bytes);

/// Seconds to copy `bytes` between a device and its host's pinned memory, either way. Of a device whose link
/// is not known, as over 16 lanes of PCI Express 4.0: 25 GB/s, 10 us.
double hostCopySeconds(const DeviceModel &device, Bytes bytes);

} // namespace planloom
