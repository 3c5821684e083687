#pragma once

#include "engine/runtime/communication/communicator.h"

#include <memory>
#include <vector>

namespace planloom {

/// Communication between devices of one process. Members of a collective publish where their buffers lie; the
/// one that comes last does the work, which reads and writes all members' memory directly: an all-reduce
/// moves no byte that is not added. Nobody waits: on a `WorkPool` other threads help.
///
/// The world outlives its communicators.
class ThreadWorld
{
public:
    /// @param groups  members of each group, all below `deviceCount`, each at most once in a group
    ThreadWorld(std::int32_t deviceCount, std::vector<std::vector<DeviceId>> groups);
    ~ThreadWorld();
    ThreadWorld(const ThreadWorld &) = delete;
    ThreadWorld &operator=(const ThreadWorld &) = delete;

    /// The end of `device`. Thread-safe.
    std::unique_ptr<Communicator> communicator(DeviceId device);

    /// Ends all calls that wait, and all later ones, with Cancelled. Thread-safe; may be repeated.
    void abort();

private:
    class Impl;
    std::unique_ptr<Impl> m_impl;
};

} // namespace planloom
