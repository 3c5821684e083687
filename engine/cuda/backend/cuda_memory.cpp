#include "engine/cuda/backend/cuda_memory.h"

#include <algorithm>

namespace planloom {

CudaPool::~CudaPool()
{
    for (const auto &[block, size] : m_size)
        (void)(m_kind == Kind::Device ? m_cuda.release(block) : m_cuda.releaseHost(block));
}

Result<std::byte *> CudaPool::take(std::size_t bytes)
{
    const std::lock_guard lock{m_mutex};
    constexpr std::size_t kLeast = 512;
    const std::size_t wanted = std::max(bytes, kLeast);
    if (const auto found = m_free.lower_bound(wanted); found != m_free.end() && found->first <= 2 * wanted) {
        std::byte *const block = found->second;
        m_free.erase(found);
        return block;
    }
    void *made = nullptr;
    if (m_kind == Kind::Device)
        CUDA_TRY(
            m_cuda, "cudaMalloc of " + std::to_string(wanted) + " bytes", m_cuda.allocate(&made, wanted));
    else
        CUDA_TRY(m_cuda, "cudaHostAlloc of " + std::to_string(wanted) + " bytes",
            m_cuda.allocateHost(&made, wanted));
    m_size.emplace(static_cast<std::byte *>(made), wanted);
    return static_cast<std::byte *>(made);
}

void CudaPool::giveBack(std::byte *block)
{
    const std::lock_guard lock{m_mutex};
    m_free.emplace(m_size.at(block), block);
}

CudaScratch::~CudaScratch()
{
    for (const Block &block : m_blocks)
        m_pool.giveBack(block.data);
}

Result<std::byte *> CudaScratch::take(std::size_t bytes)
{
    constexpr std::size_t kAlignment = 256;
    const std::size_t size = (std::max<std::size_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
    if (m_blocks.empty() || m_used + size > m_blocks.back().size) {
        // What was given out for this kernel stays where it is; the next ones find room for all of it.
        const std::size_t wanted = 2 * (m_used + size);
        TRY(std::byte *const made, m_pool.take(wanted));
        m_blocks.push_back({made, wanted});
        m_used = 0;
    }
    std::byte *const at = m_blocks.back().data + m_used;
    m_used += size;
    return at;
}

bool CudaScratch::has(const void *data) const
{
    return std::any_of(
        m_blocks.begin(), m_blocks.end(), [at = static_cast<const std::byte *>(data)](const Block &block) {
            return at >= block.data && at < block.data + block.size;
        });
}

} // namespace planloom
