#pragma once

#include "engine/cuda/backend/cuda_communicator.h"

#include <memory>
#include <vector>

namespace planloom {

/// Devices of one process on one GPU: what they communicate are copies and additions in its memory, once all
/// members of a collective have come to it. Sums are added in the order of the members: the bits are those of
/// ThreadWorld.
class EmulatedWorld
{
public:
    EmulatedWorld(CudaShared &shared, std::int32_t deviceCount, std::vector<std::vector<DeviceId>> groups);
    ~EmulatedWorld();
    EmulatedWorld(const EmulatedWorld &) = delete;
    EmulatedWorld &operator=(const EmulatedWorld &) = delete;

    /// The world must outlive it.
    std::unique_ptr<CudaCommunicator> communicator(DeviceId device);

    /// Thread-safe.
    void abort();

    class Impl;

private:
    std::unique_ptr<Impl> m_impl;
};

} // namespace planloom
