#pragma once

#include "engine/cuda/backend/cuda_communicator.h"
#include "engine/cuda/nccl/nccl_functions.h"
#include "engine/cuda/nccl/nccl_order.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

/// What a world of NCCL is made with.
struct NcclWorldOptions {
    DeviceId device{}; ///< Of this process, and its rank: one process runs one device.
    std::int32_t devices = 1;
    std::vector<std::vector<DeviceId>> groups{}; ///< Of the plan.
    NcclOrder order{};
    /// A call that is in progress for so long is given up; the first, that waits for all processes to have
    /// come so far, after four times as long.
    std::chrono::milliseconds deadline{12'000};
    std::function<std::string()> log{}; ///< Warnings of NCCL, for errors.
};

/// One device's communicators: of all devices, one for the messages of each queue, and one for each group of
/// the plan that it is in. NCCL runs the calls of a communicator one after another, whatever streams they are
/// in: so the queues that messages wait in do not wait for one another. What is launched is in its stream at
/// once, in the order of the calls, and waits there for the other devices; these issue theirs in orders that
/// `ncclOrder` has found to fit.
///
/// An error, a deadline or `abort` ends all of it: the communicators are aborted by the thread that issues,
/// when it next looks, since no call of NCCL may be running then.
class NcclWorld
{
public:
    /// @param nccl  outlives it; may be null where there is one device
    NcclWorld(NcclFunctions *nccl, NcclWorldOptions options);
    ~NcclWorld();
    NcclWorld(const NcclWorld &) = delete;
    NcclWorld &operator=(const NcclWorld &) = delete;

    /// Makes the communicators, as all devices do at the same time. The GPU of this thread is the device.
    Result<void> connect(const NcclId &id);

    /// The world must outlive it.
    std::unique_ptr<CudaCommunicator> communicator();

    /// Thread-safe.
    void abort();

    class Impl;

private:
    std::unique_ptr<Impl> m_impl;
};

} // namespace planloom
