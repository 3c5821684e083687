#pragma once

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/graph/annotation/combination.h"
#include "engine/graph/shape.h"
#include "engine/lowering/program/execution_plan.h"

#include <cstddef>
#include <cstdint>
#include <functional>

namespace planloom {

/// A dense row-major tensor in a device's memory, as a collective sees it.
struct CollectiveBuffer {
    std::byte *data = nullptr;
    DataType type = DataType::Float32;
    Shape shape{};
};

/// One member's part in a collective of a group of the plan (`ExecutionPlan::groups`). What each kind does:
///
/// - AllReduce: out = all members' `in`, combined. `out` may be `in` itself. Of this and of AllGather and
///   Broadcast, members that reach each other's memory may have one `out`.
/// - AllGather: out = all members' `in` concatenated along `dimension`; extents along it may differ.
/// - ReduceScatter: out = this member's chunk, along `dimension`, of all members' `in` combined. Chunks are
/// as
///   long as the members' `out`.
/// - AllToAll: cuts every `in` along `dimension` into the members' chunks; out = this member's chunks from
/// all
///   members, concatenated along `gatherDimension`, which is another dimension.
/// - Broadcast: out = member 0's `in`. Other members give no `in` (no data); member 0's `out` may have no
/// data,
///   or be its `in`.
/// - Shift: out = the `in` of the member before this one; member 0's is that of the last. Every member's
/// `out`
///   is another buffer than its `in`.
struct CollectiveCall {
    InstructionKind kind = InstructionKind::AllReduce;
    std::int32_t group = 0;
    std::int64_t sequence = 0; ///< Which of the group's it is: the same number on every member.
    CollectiveBuffer in{};
    CollectiveBuffer out{};
    std::int32_t dimension = -1;
    std::int32_t gatherDimension = -1;
    Combination combination = Combination::Sum;
};

/// What matches a send with its receive: the same tag and micro-batch between the same two devices. Several
/// with one key arrive in the order they were sent.
struct MessageKey {
    DeviceId peer{}; ///< The other device.
    std::int32_t tag = 0;
    std::int32_t microBatch = 0;
};

struct MessageCall {
    MessageKey key{};
    std::byte *data = nullptr; ///< What is sent, or where it goes.
    std::size_t bytes = 0;
    QueueKind queue = QueueKind::Pipeline; ///< Both devices': messages of one queue go and come in order.
};

/// One device's end of the communication of a run. Nothing here waits: every call returns at once and tells
/// `done` later, on any thread, perhaps before it returns. Buffers must stay until then. The order of a
/// group's members is the order of chunks and of additions, so that sums are the same bits on every member
/// and in every run.
///
/// Data types and shapes must agree between members; all members get InvalidInput if they do not. After an
/// abort, what waits and all that comes later gets Cancelled.
class Communicator
{
public:
    using Done = std::function<void(Result<void>)>;

    virtual ~Communicator() = default;

    virtual DeviceId device() const = 0;

    /// Joins a collective, which runs once all members have joined.
    virtual void join(const CollectiveCall &call, Done done) = 0;

    /// Done once `data` may be used again, whether or not the peer has asked for it: two devices that send to
    /// each other before they receive do not wait for one another.
    virtual void send(const MessageCall &message, Done done) = 0;

    /// Done once the peer's `send` of this key lies at `data`. InvalidInput for another number of bytes.
    virtual void receive(const MessageCall &message, Done done) = 0;
};

} // namespace planloom
