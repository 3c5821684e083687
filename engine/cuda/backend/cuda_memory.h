#pragma once

#include "engine/cuda/backend/cuda_error.h"

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

namespace planloom {

/// Blocks of one kind of memory, kept for reuse until the pool dies: every step needs the same sizes, and
/// taking memory of CUDA makes the device wait. Thread-safe.
class CudaPool
{
public:
    enum class Kind { Device, PinnedHost };

    CudaPool(CudaFunctions &cuda, Kind kind)
        : m_cuda(cuda)
        , m_kind(kind)
    {
    }
    CudaPool(const CudaPool &) = delete;
    CudaPool &operator=(const CudaPool &) = delete;
    ~CudaPool();

    /// At least `bytes`, of unknown content. @return ResourceLimit
    Result<std::byte *> take(std::size_t bytes);
    void giveBack(std::byte *block);

private:
    CudaFunctions &m_cuda;
    Kind m_kind;
    std::mutex m_mutex{};
    std::map<std::byte *, std::size_t> m_size{}; ///< Of all blocks.
    std::multimap<std::size_t, std::byte *> m_free{};
};

/// Memory that kernels of one stream use one after another: what a kernel puts there is gone with the next
/// one.
class CudaScratch
{
public:
    explicit CudaScratch(CudaPool &pool)
        : m_pool(pool)
    {
    }
    CudaScratch(const CudaScratch &) = delete;
    CudaScratch &operator=(const CudaScratch &) = delete;
    ~CudaScratch();

    /// Room for the next kernel begins anew.
    void begin() { m_used = 0; }
    /// Some of it, 256-byte aligned, until the next `begin`. @return ResourceLimit
    Result<std::byte *> take(std::size_t bytes);
    /// It was taken here.
    bool has(const void *data) const;

private:
    struct Block {
        std::byte *data = nullptr;
        std::size_t size = 0;
    };
    CudaPool &m_pool;
    std::vector<Block> m_blocks{}; ///< The last one is in use; kernels that still run may use those before.
    std::size_t m_used = 0;
};

} // namespace planloom
