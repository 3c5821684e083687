#include "engine/runtime/processes/rank_outbox.h"

#include <cerrno>
#include <cstring>

#include <sys/socket.h>

namespace planloom {

void RankOutbox::tell(std::int32_t rank, const RankNotice &notice, int flags)
{
    const int inbox = m_shared.inboxes[static_cast<std::size_t>(rank)].writing;
    while (::send(inbox, &notice, sizeof(notice), MSG_NOSIGNAL | flags) < 0 && errno == EINTR) { }
}

void RankOutbox::tellOthers(std::int32_t group, const RankNotice &notice)
{
    for (const std::int32_t rank : m_shared.ranksOf[static_cast<std::size_t>(group)])
        if (rank != m_rank)
            tell(rank, notice);
}

bool RankOutbox::pack(RankNotice &notice, std::span<const std::byte> head, std::span<const std::byte> body)
{
    notice.bytes = head.size() + body.size();
    if (notice.bytes == 0)
        return true;
    notice.parcel = m_parcels.pack(notice.bytes);
    if (notice.parcel == nullptr)
        return false;
    if (!head.empty())
        std::memcpy(notice.parcel, head.data(), head.size());
    if (!body.empty())
        std::memcpy(notice.parcel + head.size(), body.data(), body.size());
    return true;
}

void RankOutbox::unpacked(const RankNotice &notice)
{
    if (notice.parcel != nullptr)
        Parcels::release(notice.parcel);
}

} // namespace planloom
