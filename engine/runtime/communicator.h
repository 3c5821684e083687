#pragma once

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/graph/combination.h"
#include "engine/graph/shape.h"
#include "engine/runtime/memory_pool.h"

#include <cstddef>
#include <cstdint>

namespace planloom {

/// A dense row-major tensor in a device's memory, as a collective sees it.
struct CollectiveBuffer {
    std::byte *data = nullptr;
    DataType type = DataType::Float32;
    Shape shape{};
};

/// What matches a send with its receive: the same tag and micro-batch between the same two devices. Several
/// with one key arrive in the order they were sent.
struct MessageKey {
    DeviceId peer{}; ///< The other device.
    std::int32_t tag = 0;
    std::int32_t microBatch = 0;
};

/// One device's end of the communication of a run. Groups are the plan's (`ExecutionPlan::groups`); the order
/// of members is the order of chunks and of additions, so that sums are the same bits on every member and in
/// every run.
///
/// Every member of a group calls the same collectives in the same order. Data types and shapes must agree
/// between members; all members get InvalidInput if they do not. Buffers may be used again once a call
/// returns. After an abort, and when any device failed, every call that waits or would wait returns
/// Cancelled.
class Communicator
{
public:
    virtual ~Communicator() = default;

    virtual DeviceId device() const = 0;

    /// Waits for all devices of the run.
    virtual Result<void> barrier() = 0;

    /// out = all members' `in`, combined. `out` may be `in` itself.
    virtual Result<void> allReduce(std::int32_t group, const CollectiveBuffer &in,
        const CollectiveBuffer &out, Combination combination = Combination::Sum) = 0;

    /// out = all members' `in` concatenated along `dimension`. Extents along it may differ between members.
    virtual Result<void> allGather(std::int32_t group, const CollectiveBuffer &in,
        const CollectiveBuffer &out, std::int32_t dimension) = 0;

    /// out = this member's chunk, along `dimension`, of all members' `in` combined. Chunks are as long as the
    /// members' `out`.
    virtual Result<void> reduceScatter(std::int32_t group, const CollectiveBuffer &in,
        const CollectiveBuffer &out, std::int32_t dimension, Combination combination = Combination::Sum) = 0;

    /// Cuts every `in` along `dimension` into the members' chunks; out = this member's chunks from all
    /// members, concatenated along `gatherDimension`, which is another dimension.
    virtual Result<void> allToAll(std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out,
        std::int32_t dimension, std::int32_t gatherDimension) = 0;

    /// out = member 0's `in`. Other members give no `in` (no data); member 0's `out` may have no data, or be
    /// its `in`.
    virtual Result<void> broadcast(
        std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out) = 0;

    /// out = the `in` of the member before this one; member 0's is that of the last. Every member's `out` is
    /// another buffer than its `in`.
    virtual Result<void> shift(
        std::int32_t group, const CollectiveBuffer &in, const CollectiveBuffer &out) = 0;

    /// Gives `block` to the peer; does not wait for it.
    virtual Result<void> send(const MessageKey &key, MemoryBlock block) = 0;

    /// Waits for the peer's `send` of this key.
    virtual Result<MemoryBlock> receive(const MessageKey &key) = 0;
};

} // namespace planloom
