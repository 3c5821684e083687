#include "engine/runtime/communication/shared_memory.h"

#include <atomic>
#include <cstdint>
#include <new>

#include <sys/mman.h>
#include <unistd.h>

namespace planloom {

namespace {

constexpr std::size_t kAlignment = 64;
using Offset = std::atomic<std::uint64_t>;
static_assert(Offset::is_always_lock_free, "locks do not work across processes");

} // namespace

SharedMemory::SharedMemory()
{
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long page = ::sysconf(_SC_PAGE_SIZE);
    if (pages <= 0 || page <= 0)
        return;
    m_size = static_cast<std::size_t>(pages) * static_cast<std::size_t>(page);
    void *const memory =
        ::mmap(nullptr, m_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return;
    m_begin = static_cast<std::byte *>(memory);
    new (m_begin) Offset{kAlignment};
}

SharedMemory::~SharedMemory()
{
    if (valid())
        ::munmap(m_begin, m_size);
}

std::byte *SharedMemory::take(std::size_t bytes)
{
    if (!valid() || bytes > m_size)
        return nullptr;
    const std::uint64_t length = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    auto &next = *std::launder(reinterpret_cast<Offset *>(m_begin));
    std::uint64_t at = next.load();
    do {
        if (length > m_size - at)
            return nullptr;
    } while (!next.compare_exchange_weak(at, at + length));
    return m_begin + at;
}

} // namespace planloom
