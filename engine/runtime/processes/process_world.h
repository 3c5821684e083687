#pragma once

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/base/work_pool.h"
#include "engine/runtime/communication/communicator.h"
#include "engine/runtime/communication/shared_memory.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// Which devices each process of a run, its *ranks*, holds: stretches of them, as even as can be.
struct RankLayout {
    std::int32_t devices = 1;
    std::int32_t ranks = 1; ///< At most as many as devices.

    std::int32_t first(std::int32_t rank) const
    {
        return static_cast<std::int32_t>(std::int64_t{rank} * devices / ranks);
    }
    std::int32_t end(std::int32_t rank) const { return first(rank + 1); }
    std::int32_t rankOf(DeviceId device) const
    {
        return static_cast<std::int32_t>(((std::int64_t{device.index} + 1) * ranks - 1) / devices);
    }
    friend bool operator==(const RankLayout &, const RankLayout &) = default;
};

class RankEnd;
struct WorldShared;

/// What the ranks of one run have in common, made before they are forked: memory that all of them map, and
/// for each an inbox (a socket pair) for short notices. Neither has a name in any file system, so that
/// nothing is left of them when the ranks have ended, however they do.
class ProcessWorld
{
public:
    /// @param groups  members of each group, all below `layout.devices`, each at most once in a group
    /// @return ResourceLimit if the system grants no memory or no sockets
    static Result<std::unique_ptr<ProcessWorld>> make(
        RankLayout layout, std::vector<std::vector<DeviceId>> groups);
    ~ProcessWorld();
    ProcessWorld(const ProcessWorld &) = delete;
    ProcessWorld &operator=(const ProcessWorld &) = delete;

    const RankLayout &layout() const;
    SharedMemory &memory();

    /// To be called in the process of `rank`: the inboxes of other ranks can only be written to from now on,
    /// so that nobody waits for one that is gone.
    void becomeRank(std::int32_t rank);

    /// The end of `rank`, once.
    /// @param pool  where calls are done that others' notices bring about; world and pool outlive the end
    std::unique_ptr<RankEnd> enter(std::int32_t rank, WorkPool &pool);

private:
    explicit ProcessWorld(std::unique_ptr<WorldShared> shared);
    std::unique_ptr<WorldShared> m_shared;
};

/// One rank's end: the communication of its devices, and what ranks tell each other beside the plan.
///
/// Members of a collective tell all ranks of its group where their buffers lie. A rank that has heard of all
/// of them does its own members' parts, which reads and writes all members' memory directly, and tells the
/// others; with the last of those, the collective is done:
///
///     rank 0   join ──┐ ┌── join arrives, part of member 0 ──┐ ┌── done
///                     ╳                                      ╳
///     rank 1   join ──┘ └── join arrives, part of member 1 ──┘ └── done
///
/// Buffers outside of the shared memory are copied there and back. What is sent is put aside in shared memory
/// until its receiver has asked for it. Sums are added in the members' order, as by threads: the same bits.
class RankEnd
{
public:
    struct Handlers {
        /// A rank has failed, first of all or at the same time as this one.
        std::function<void(Error)> failed{};
        /// At rank 0: what another rank has posted, in its order.
        std::function<void(std::span<const std::byte>)> posted{};
    };

    ~RankEnd();
    RankEnd(const RankEnd &) = delete;
    RankEnd &operator=(const RankEnd &) = delete;

    std::int32_t rank() const;
    const RankLayout &layout() const;
    SharedMemory &memory();

    /// The end of a device of this rank. Thread-safe.
    std::unique_ptr<Communicator> communicator(DeviceId device);

    /// Begins to listen. Before anything that waits.
    void start(Handlers handlers);

    /// Ends all calls that wait, and all later ones, with Cancelled, at every rank; the handlers of the
    /// others get `error`. Thread-safe; only the first call counts.
    void fail(const Error &error);

    /// Hands `bytes` of rank 0 to all; those of others are not looked at. Every rank calls this and
    /// `gatherBytes` in the same order, on one thread. @return Cancelled
    Result<std::string> broadcastBytes(std::string_view bytes);
    /// Hands all ranks' `bytes` to rank 0, by rank; the others get nothing. @return Cancelled
    Result<std::vector<std::string>> gatherBytes(std::string_view bytes);

    /// Sends `head` and `body` to rank 0 as one; what is posted arrives before what is gathered later.
    /// Thread-safe. @return ResourceLimit
    Result<void> post(std::span<const std::byte> head, std::span<const std::byte> body);

private:
    friend class ProcessWorld;
    class Impl;
    explicit RankEnd(std::unique_ptr<Impl> impl);
    std::unique_ptr<Impl> m_impl;
};

} // namespace planloom
