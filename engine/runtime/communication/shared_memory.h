#pragma once

#include <cstddef>

namespace planloom {

/// Memory that this process shares with those it forks afterwards, at the same addresses in all of them. It
/// has no name and no file: it is gone when the last of them has ended, however that comes.
///
/// As much address space as the machine has memory is set aside; a page costs memory once it is written.
class SharedMemory
{
public:
    SharedMemory();
    ~SharedMemory();
    SharedMemory(const SharedMemory &) = delete;
    SharedMemory &operator=(const SharedMemory &) = delete;

    /// False if the system grants none.
    bool valid() const { return m_begin != nullptr; }

    /// Memory that nobody else was given, zeroed, aligned to 64 bytes; null if none is left. It is never
    /// taken back. In all processes, on all threads.
    std::byte *take(std::size_t bytes);

    bool holds(const std::byte *address) const { return address >= m_begin && address < m_begin + m_size; }

private:
    std::byte *m_begin = nullptr; ///< Starts with an atomic offset of what is free.
    std::size_t m_size = 0;
};

} // namespace planloom
