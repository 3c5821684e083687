#include "engine/runtime/communication/parcels.h"

#include "engine/runtime/devices/memory_pool.h"

#include <atomic>
#include <new>

namespace planloom {

namespace {

constexpr int kLooks = 8; ///< At blocks that may have come back, before a fresh one is taken.

/// In front of each block.
struct alignas(64) Label {
    std::atomic<bool> inUse{true};
};
static_assert(std::atomic<bool>::is_always_lock_free, "locks do not work across processes");

Label &labelOf(std::byte *parcel)
{
    return *std::launder(reinterpret_cast<Label *>(parcel - sizeof(Label)));
}

} // namespace

std::byte *Parcels::pack(std::size_t bytes)
{
    const std::size_t capacity = MemoryPool::capacityFor(bytes);
    const std::lock_guard lock{m_mutex};
    std::deque<std::byte *> &sent = m_sent[capacity];
    for (int look = 0; look < kLooks && !sent.empty(); ++look) {
        std::byte *const parcel = sent.front();
        sent.pop_front();
        sent.push_back(parcel);
        if (labelOf(parcel).inUse.load(std::memory_order_acquire))
            continue;
        labelOf(parcel).inUse.store(true, std::memory_order_relaxed);
        return parcel;
    }
    std::byte *const fresh = m_memory.take(capacity + sizeof(Label));
    if (fresh == nullptr)
        return nullptr;
    new (fresh) Label{};
    sent.push_back(fresh + sizeof(Label));
    return sent.back();
}

void Parcels::release(const std::byte *parcel)
{
    labelOf(const_cast<std::byte *>(parcel)).inUse.store(false, std::memory_order_release);
}

} // namespace planloom
