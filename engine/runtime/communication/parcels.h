#pragma once

#include "engine/runtime/communication/shared_memory.h"

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>

namespace planloom {

/// Blocks of shared memory that one process fills and hands to another, which says when it has read them;
/// then they are filled again. Thread-safe.
class Parcels
{
public:
    explicit Parcels(SharedMemory &memory)
        : m_memory(memory)
    {
    }

    /// A block of `bytes`, uninitialised, aligned to 64 bytes. @return null if memory is exhausted
    std::byte *pack(std::size_t bytes);

    /// Gives a block back, in whatever process. Once for each `pack`.
    static void release(const std::byte *parcel);

private:
    SharedMemory &m_memory;
    std::mutex m_mutex{};
    std::map<std::size_t, std::deque<std::byte *>> m_sent{}; ///< By capacity, read ones among them.
};

} // namespace planloom
