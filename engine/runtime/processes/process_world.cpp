#include "engine/runtime/processes/process_world.h"

#include "engine/runtime/processes/rank_notice.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/socket.h>

namespace planloom {

ProcessWorld::ProcessWorld(std::unique_ptr<WorldShared> shared)
    : m_shared(std::move(shared))
{
}

ProcessWorld::~ProcessWorld() = default;

Result<std::unique_ptr<ProcessWorld>> ProcessWorld::make(
    RankLayout layout, std::vector<std::vector<DeviceId>> groups)
{
    auto shared = std::make_unique<WorldShared>();
    shared->layout = layout;
    if (!shared->memory.valid())
        return Error{ErrorCode::ResourceLimit, "the system grants no shared memory",
            "run in one process, or raise the limit of address space (ulimit -v)", {}};
    for (const auto &members : groups) {
        std::vector<std::int32_t> &ranks = shared->ranksOf.emplace_back();
        for (const DeviceId member : members)
            ranks.push_back(layout.rankOf(member));
        std::sort(ranks.begin(), ranks.end());
        ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    }
    shared->groups = std::move(groups);
    for (std::int32_t rank = 0; rank < layout.ranks; ++rank) {
        std::array<int, 2> ends{};
        if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
            return Error{ErrorCode::ResourceLimit,
                std::string{"no sockets between the processes: "} + std::strerror(errno),
                "run in fewer processes", {}};
        shared->inboxes.push_back({ends[0], ends[1]});
    }
    return std::unique_ptr<ProcessWorld>{new ProcessWorld{std::move(shared)}};
}

const RankLayout &ProcessWorld::layout() const
{
    return m_shared->layout;
}

SharedMemory &ProcessWorld::memory()
{
    return m_shared->memory;
}

void ProcessWorld::becomeRank(std::int32_t rank)
{
    for (std::size_t i = 0; i < m_shared->inboxes.size(); ++i)
        if (static_cast<std::int32_t>(i) != rank)
            closeEnd(m_shared->inboxes[i].reading);
}

} // namespace planloom
