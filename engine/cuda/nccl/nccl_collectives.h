#pragma once

#include "engine/cuda/backend/cuda_queue.h"
#include "engine/cuda/nccl/nccl_functions.h"
#include "engine/cuda/nccl/nccl_order.h"

#include <functional>

namespace planloom {

/// A device's end of a communicator.
struct NcclMember {
    NcclFunctions *nccl = nullptr; ///< Not called in a communicator of one.
    NcclComm comm = nullptr;
    std::int32_t rank = 0;
    std::int32_t ranks = 1;
    /// Sees a call through. @param status  what it returned
    std::function<Result<void>(const char *function, NcclStatus status)> through{};
};

/// Puts one member's part in a collective into a queue, where it waits for the others'.
///
/// NCCL reduces sums, and maxima of integers (those of floats lose a NaN on their way); pieces that lie in
/// one stretch of memory are used where they are, others are packed. All else is made of an all-gather or an
/// exchange of the pieces, and a kernel that combines them in the members' order.
Result<void> launchCollective(
    const NcclMember &member, const CollectiveCall &call, const NcclPieces &pieces, CudaQueue &queue);

} // namespace planloom
