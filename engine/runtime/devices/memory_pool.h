#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace planloom {

class MemoryPool;

/// Memory of one buffer, 64-byte aligned; goes back to its pool when it dies. Move-only.
class MemoryBlock
{
public:
    MemoryBlock() = default;
    MemoryBlock(MemoryBlock &&other) noexcept;
    MemoryBlock &operator=(MemoryBlock &&other) noexcept;
    MemoryBlock(const MemoryBlock &) = delete;
    MemoryBlock &operator=(const MemoryBlock &) = delete;
    ~MemoryBlock() { reset(); }

    std::byte *data() { return m_data; }
    const std::byte *data() const { return m_data; }
    std::size_t size() const { return m_size; }
    explicit operator bool() const { return m_data != nullptr; }

    /// Gives the memory back; the block is empty afterwards.
    void reset();

private:
    friend class MemoryPool;
    MemoryPool *m_pool = nullptr;
    std::byte *m_data = nullptr;
    std::size_t m_size = 0;
    std::size_t m_capacity = 0;
};

/// Keeps freed blocks for reuse until it dies: a page touched for the first time costs as much as copying it,
/// and training steps need the same sizes over and over. Thread-safe, so that a block can be handed from
/// device to device. Must outlive its blocks.
class MemoryPool
{
public:
    /// Fresh memory of so many bytes, 64-byte aligned; null if there is none left.
    using Source = std::function<std::byte *(std::size_t)>;

    MemoryPool() = default;
    /// Takes fresh memory from `source`, to which nothing goes back: it outlives the pool.
    explicit MemoryPool(Source source)
        : m_source(std::move(source))
    {
    }
    MemoryPool(const MemoryPool &) = delete;
    MemoryPool &operator=(const MemoryPool &) = delete;
    ~MemoryPool();

    /// A block of `size` bytes (at least 64 are kept), uninitialised. @return an empty block if memory is
    /// exhausted
    MemoryBlock allocate(std::size_t size);

    /// What is set aside for `size` bytes: one of eight sizes per power of two, so that nearly equal ones
    /// share blocks.
    static std::size_t capacityFor(std::size_t size);

    /// Bytes asked of the operating system and not given back.
    std::size_t reserved() const;

private:
    friend class MemoryBlock;
    void release(std::byte *data, std::size_t capacity);
    void releaseFree(); ///< Needs the lock.
    std::byte *fresh(std::size_t capacity) const;

    Source m_source{}; ///< Empty: the operating system.
    mutable std::mutex m_mutex;
    std::map<std::size_t, std::vector<std::byte *>> m_free; ///< By capacity.
    std::size_t m_reserved = 0;
};

} // namespace planloom
