#pragma once

#include "engine/lowering/program/execution_plan.h"
#include "engine/runtime/communication/communicator.h"

#include <cstdint>
#include <set>
#include <vector>

namespace planloom {

/// How long the members' pieces of one collective are, in the members' order.
struct NcclPieces {
    /// Along `dimension`: of an all-gather what each brings, of a reduce-scatter and an all-to-all what each
    /// gets.
    std::vector<std::int64_t> cut{};
    std::vector<std::int64_t> joined{}; ///< All-to-all: what each brings along `gatherDimension`.
    friend bool operator==(const NcclPieces &, const NcclPieces &) = default;
};

/// What one device has to know of the others' part in a plan's communication: NCCL matches calls by their
/// order alone, and its calls see one member's buffers.
struct NcclOrder {
    /// By group of the plan, by its collective in a step. Empty for groups that the device is not in.
    std::vector<std::vector<NcclPieces>> groups{};
    /// That messages of any device wait in: the same for all devices.
    std::set<QueueKind> messageQueues{};

    const NcclPieces &of(const CollectiveCall &call) const
    {
        const auto &steps = groups[static_cast<std::size_t>(call.group)];
        return steps[static_cast<std::size_t>(call.sequence) % steps.size()];
    }
};

/// Goes through a step in which every device does all it has to in one order, and every send waits for its
/// receive: what ends so cannot deadlock on streams either, which only wait less. Each call meets its
/// counterparts, and they fit: both ends of a message wait in the same queue.
///
/// @return InvalidInput for members whose buffers do not fit; NotSupported, with who waits where, if it does
/// not end. O(instructions x members).
Result<NcclOrder> ncclOrder(const ExecutionPlan &plan, DeviceId device);

} // namespace planloom
