#pragma once

#include "engine/runtime/communicator.h"

#include <memory>
#include <vector>

namespace planloom {

/// Communication between device threads of one process. Members of a collective publish where their buffers
/// lie and then read each other's memory directly: an all-reduce moves no byte that is not added.
///
/// The world outlives its communicators, and the pools of the blocks sent through it outlive the world.
class ThreadWorld
{
public:
    /// @param groups  members of each group, all below `deviceCount`, each at most once in a group
    ThreadWorld(std::int32_t deviceCount, std::vector<std::vector<DeviceId>> groups);
    ~ThreadWorld();
    ThreadWorld(const ThreadWorld &) = delete;
    ThreadWorld &operator=(const ThreadWorld &) = delete;

    /// The end of `device`. To be used by one thread at a time.
    std::unique_ptr<Communicator> communicator(DeviceId device);

    /// Makes all calls that wait, and all later ones, return Cancelled. Thread-safe; may be repeated.
    void abort();

private:
    class Impl;
    std::unique_ptr<Impl> m_impl;
};

} // namespace planloom
