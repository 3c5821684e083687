#include "engine/cuda/backend/cuda_chain.h"

#include "engine/cuda/backend/cuda_error.h"

#include <utility>
#include <vector>

namespace planloom {

void CudaChain::begin(std::function<Result<void>()> parted)
{
    m_parted = std::move(parted);
    m_before.clear();
    m_others = m_chain.size();
    m_othersBytes = m_bytes;
}

bool CudaChain::take(const ChainKernel &kernel, std::int64_t items)
{
    if (m_parted && m_chain.size() == m_others)
        m_before = m_chain;
    if (!m_chain.take(kernel, items))
        return false;
    m_bytes += bytesMoved(kernel, items);
    return true;
}

Result<bool> CudaChain::hold(const ChainKernel &kernel, std::int64_t items)
{
    if (take(kernel, items))
        return true;
    if (m_parted) {
        TRY_VOID(part());
        if (take(kernel, items))
            return true;
    }
    TRY_VOID(launch());
    return take(kernel, items);
}

Result<void> CudaChain::hold(HeldProduct product)
{
    TRY_VOID(settle());
    m_bytes = product.moved;
    m_product = std::move(product);
    return {};
}

void CudaChain::ends(std::span<const std::byte> memory)
{
    m_chain.ends(memory);
    if (m_product && m_product->made.data() >= memory.data()
        && m_product->made.data() + m_product->made.size() <= memory.data() + memory.size())
        m_product->isOver = true;
}

Result<void> CudaChain::part()
{
    const auto parted = std::exchange(m_parted, {});
    std::vector<ChainKernel> own;
    const std::int64_t items = m_chain.items();
    for (std::size_t k = m_others; k < m_chain.size(); ++k)
        own.push_back(m_chain.steps()[k].kernel);
    if (!own.empty()) {
        m_chain = std::move(m_before);
        m_bytes = m_othersBytes;
    }
    m_before.clear();
    TRY_VOID(parted());
    for (const ChainKernel &kernel : own) {
        TRY(const bool held, hold(kernel, items));
        if (!held)
            TRY_VOID(launch(kernel, items));
    }
    return {};
}

Result<void> CudaChain::settle()
{
    if (m_parted)
        TRY_VOID(part());
    return launch();
}

Result<void> CudaChain::launch(const ChainKernel &kernel, std::int64_t items)
{
    return std::visit(
        [&](const auto &own) -> Result<void> {
            CUDA_TRY(m_cuda, "cudaLaunchKernel",
                m_cuda.launch(KernelOf<std::decay_t<decltype(own)>>::kKernel, &own, items, m_stream));
            return {};
        },
        kernel);
}

Result<void> CudaChain::launch()
{
    const ElementChain chain = std::exchange(m_chain, {});
    m_bytes = 0;
    if (const auto product = std::exchange(m_product, std::nullopt)) {
        // Several kernels read its result once anyway, as a chain.
        const ElementChain::Step *const next = chain.size() == 1 ? &chain.steps()[0] : nullptr;
        TRY(const bool both, product->run(*product, next, chain.items(), m_stream));
        if (both)
            return {};
    }
    if (chain.size() > 1) {
        const ElementChain::Program program = chain.program();
        if (const CudaKernel kernel = m_kernels.kernelOf(program, m_warning)) {
            CUDA_TRY(m_cuda, "cudaLaunchKernel",
                m_cuda.launchCompiled(kernel, program.words, chain.items(), m_stream));
            return {};
        }
    }
    for (const ElementChain::Step &step : chain.steps())
        TRY_VOID(launch(step.kernel, chain.items()));
    return {};
}

void CudaChain::forget()
{
    m_product.reset();
    m_chain.clear();
    m_before.clear();
    m_parted = {};
    m_bytes = 0;
}

} // namespace planloom
