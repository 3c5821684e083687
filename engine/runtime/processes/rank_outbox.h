#pragma once

#include "engine/runtime/communication/parcels.h"
#include "engine/runtime/processes/rank_notice.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace planloom {

/// Sends what a rank tells others. Thread-safe.
class RankOutbox
{
public:
    RankOutbox(WorldShared &shared, std::int32_t rank)
        : m_shared(shared)
        , m_rank(rank)
        , m_parcels(shared.memory)
    {
    }

    Parcels &parcels() { return m_parcels; }

    /// To one that is gone nothing is told: the supervisor ends the rest.
    /// @param flags  of send(2)
    void tell(std::int32_t rank, const RankNotice &notice, int flags = 0);
    /// To all other ranks with members in `group`.
    void tellOthers(std::int32_t group, const RankNotice &notice);

    /// Puts `head` and `body` into a parcel of `notice`. @return false if memory is exhausted
    bool pack(RankNotice &notice, std::span<const std::byte> head, std::span<const std::byte> body);
    /// The parcel of `notice`, if it has one, has been read.
    static void unpacked(const RankNotice &notice);

private:
    WorldShared &m_shared;
    std::int32_t m_rank;
    Parcels m_parcels;
};

} // namespace planloom
