#include "engine/runtime/devices/memory_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <utility>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace planloom {

namespace {

constexpr std::size_t kAlignment = 64;
constexpr std::size_t kHugePage = std::size_t{2} << 20U;

std::byte *reserve(std::size_t capacity)
{
    const std::size_t alignment = capacity >= 2 * kHugePage ? kHugePage : kAlignment;
    auto *data = static_cast<std::byte *>(
        std::aligned_alloc(alignment, (capacity + alignment - 1) / alignment * alignment));
#ifdef __linux__
    if (data != nullptr && alignment == kHugePage)
        (void)madvise(data, capacity, MADV_HUGEPAGE); // a hint: fewer page faults where the system grants it
#endif
    return data;
}

} // namespace

std::size_t MemoryPool::capacityFor(std::size_t size)
{
    size = std::max(size, kAlignment);
    const std::size_t step = std::max(kAlignment, std::bit_ceil(size) / 16);
    return (size + step - 1) / step * step;
}

MemoryBlock::MemoryBlock(MemoryBlock &&other) noexcept
    : m_pool(other.m_pool)
    , m_data(std::exchange(other.m_data, nullptr))
    , m_size(std::exchange(other.m_size, 0))
    , m_capacity(std::exchange(other.m_capacity, 0))
{
}

MemoryBlock &MemoryBlock::operator=(MemoryBlock &&other) noexcept
{
    if (this != &other) {
        reset();
        m_pool = other.m_pool;
        m_data = std::exchange(other.m_data, nullptr);
        m_size = std::exchange(other.m_size, 0);
        m_capacity = std::exchange(other.m_capacity, 0);
    }
    return *this;
}

void MemoryBlock::reset()
{
    if (m_data != nullptr)
        m_pool->release(m_data, m_capacity);
    m_data = nullptr;
    m_size = 0;
    m_capacity = 0;
}

MemoryPool::~MemoryPool()
{
    const std::lock_guard lock{m_mutex};
    releaseFree();
}

std::byte *MemoryPool::fresh(std::size_t capacity) const
{
    return m_source ? m_source(capacity) : reserve(capacity);
}

void MemoryPool::releaseFree()
{
    if (m_source)
        return;
    for (auto &[capacity, blocks] : m_free) {
        for (std::byte *block : blocks) {
            std::free(block);
            m_reserved -= capacity;
        }
    }
    m_free.clear();
}

MemoryBlock MemoryPool::allocate(std::size_t size)
{
    const std::size_t capacity = capacityFor(size);
    MemoryBlock block;
    block.m_pool = this;
    block.m_size = size;
    const std::lock_guard lock{m_mutex};
    // A free block up to a quarter larger will do: better than fresh pages.
    if (const auto found = m_free.lower_bound(capacity);
        found != m_free.end() && found->first <= capacity + capacity / 4) {
        block.m_capacity = found->first;
        block.m_data = found->second.back();
        found->second.pop_back();
        if (found->second.empty())
            m_free.erase(found);
        return block;
    }
    block.m_data = fresh(capacity);
    if (block.m_data == nullptr) { // make room from what is free but of other sizes
        releaseFree();
        block.m_data = fresh(capacity);
    }
    if (block.m_data == nullptr)
        return {};
    block.m_capacity = capacity;
    m_reserved += capacity;
    return block;
}

std::size_t MemoryPool::reserved() const
{
    const std::lock_guard lock{m_mutex};
    return m_reserved;
}

void MemoryPool::release(std::byte *data, std::size_t capacity)
{
    const std::lock_guard lock{m_mutex};
    m_free[capacity].push_back(data);
}

} // namespace planloom
