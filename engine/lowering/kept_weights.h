#pragma once

#include "engine/lowering/lowered_blocks.h"

#include <map>
#include <optional>
#include <vector>

namespace planloom {

/// A weight whose replicas share out more than its update: ZeRO's stages 2 and 3.
struct ShardedWeight {
    OperatorId update{};
    WeightSharding sharding{};
    std::optional<UnitShard> shard{}; ///< Of the units; nothing where devices of the unit alone share.
    /// Whether devices of a unit share what it reads: what all units' shares are together is a part of that.
    bool isCutInUnit = true;
    std::map<DeviceId, std::vector<IndexMask>> places{}; ///< By device: the boxes it updates.

    /// Of a box that a device updates: what it is with the other units' shares.
    IndexMask inUnit(const IndexMask &box) const { return shard ? shard->joined(box) : box; }
};

/// A box of a tensor on a device; of a weight with several versions, that of the newest.
struct KeptBox {
    DeviceId device{};
    IndexMask box{};
    std::int32_t buffer = -1;
    DataType dataType = DataType::Float32;
    std::int32_t staleness = 0; ///< Where it is a box that is read: of which version.
};

/// Buffers that live across steps: weights, states of the optimizer, and what else the graph reads and nobody
/// makes. They are made when they are asked for, one for each type that a device reads, each as large as the
/// largest box that any of its operators reads.
class KeptWeights
{
public:
    /// Finds all boxes that are read. @param blocks  of the work; both must outlive this
    KeptWeights(LoweringWork &work, const LoweredBlocks &blocks);

    /// What is kept of a weight so far.
    const std::vector<KeptBox> &held(TensorId weight) const { return m_held[at(weight)]; }
    /// Every box of it that operators read, of any version, by device.
    const std::vector<KeptBox> &boxesOf(TensorId weight) const { return m_boxes[at(weight)]; }

    /// A buffer that holds `box`. @param shard  where every unit has a box of its own; null if all have the
    /// same
    std::int32_t buffer(TensorId tensor, DeviceId device, const IndexMask &box, DataType type,
        const UnitShard *shard = nullptr);
    /// A device's own shard of a sharded weight.
    std::int32_t shardBuffer(
        const ShardedWeight &sharded, TensorId weight, DeviceId device, const IndexMask &box, DataType type);
    /// The largest box that any operator of a device reads, of any version: it serves all that lie inside it.
    IndexMask largestBox(TensorId tensor, DeviceId device, const IndexMask &box, DataType type) const;
    /// The buffer that an update of `buffer`, the newest version, writes: over the oldest.
    std::int32_t oldestVersion(DeviceId device, std::int32_t buffer) const;

private:
    void collectBoxes();
    std::int32_t versionsOn(TensorId weight, DeviceId device, std::optional<DataType> type) const;
    std::int32_t addVersions(BufferInfo info, DeviceId device, std::int32_t versions, bool readInPlace);
    std::optional<std::int32_t> gatheredAhead(
        TensorId tensor, DeviceId device, const IndexMask &box, DataType type);
    std::vector<Need> readBy(const std::vector<TransformedPart> &parts, TensorId weight, DataType type) const;

    LoweringWork &m_work;
    const LoweredBlocks &m_blocks;
    std::map<WeightVersion, TensorId> m_versionTensors{};
    std::vector<std::vector<KeptBox>> m_held; ///< By tensor; of versions, under their weight.
    std::vector<std::vector<KeptBox>> m_gathered; ///< By tensor: copies made anew in every step.
    std::vector<std::vector<KeptBox>>
        m_boxes; ///< By tensor, those that are read; of versions, under their weight.
};

} // namespace planloom
