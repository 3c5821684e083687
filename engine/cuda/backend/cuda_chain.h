#pragma once

#include "engine/base/result.h"
#include "engine/cuda/kernels/compiled_kernels.h"
#include "engine/cuda/kernels/element_chain.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace planloom {

/// A product that waits for what is done with its result.
struct HeldProduct {
    std::span<const std::byte> made{};
    std::int64_t moved = 0; ///< Bytes that it reads and writes.
    bool isOver = false; ///< Nothing reads what it makes but the kernel behind it.
    /// Puts it into the stream: with `next`, the kernel behind it over so many items, if it can do both.
    /// @return whether it did; `next` may be null
    std::function<Result<bool>(
        const HeldProduct &self, const ElementChain::Step *next, std::int64_t items, CudaStream stream)>
        run{};
};

/// Element-wise kernels of a stream that wait in front of it: the next ones may become one with them. So does
/// a product, in front of them, which may do what the first one does.
///
/// They are those of the task that is being put into the stream, and of tasks before it, which are not in the
/// stream either, then. A task joins those before it with all of its kernels or none: if anything else of it
/// goes into the stream, what waited before goes there first, without it.
class CudaChain
{
public:
    using Warning = std::function<void(const std::string &)>;

    CudaChain(CudaFunctions &cuda, CompiledKernels &kernels, const Warning &warning, CudaStream stream)
        : m_cuda(cuda)
        , m_kernels(kernels)
        , m_warning(warning)
        , m_stream(stream)
    {
    }

    /// A task's kernels come next.
    /// @param parted  of a task that may join those that wait: called when it does not, to launch what has
    /// waited
    void begin(std::function<Result<void>()> parted);
    /// Lets a kernel wait, or sends off those that do, and lets it wait then. @return false if it is to be
    /// launched, now
    Result<bool> hold(const ChainKernel &kernel, std::int64_t items);
    /// Lets a product wait, behind nothing else.
    Result<void> hold(HeldProduct product);
    /// Something else comes into the stream: what waits goes first.
    Result<void> settle();
    /// Puts what waits into the stream: as one kernel, if that can be had.
    Result<void> launch();
    /// As those of ElementChain.
    void ends(std::span<const std::byte> memory);
    void forget();

    bool isEmpty() const { return m_chain.isEmpty() && !m_product; }
    /// What all that waits would move one by one.
    std::int64_t bytes() const { return m_bytes; }

private:
    Result<void> part();
    bool take(const ChainKernel &kernel, std::int64_t items);
    Result<void> launch(const ChainKernel &kernel, std::int64_t items);

    CudaFunctions &m_cuda;
    CompiledKernels &m_kernels;
    const Warning &m_warning;
    CudaStream m_stream;
    std::optional<HeldProduct> m_product{};
    ElementChain m_chain{};
    std::int64_t m_bytes = 0;
    // Where the task that is being put joins others:
    std::function<Result<void>()> m_parted{};
    ElementChain m_before{}; ///< Once it has kernels: what the others have.
    std::size_t m_others = 0; ///< Kernels of theirs,
    std::int64_t m_othersBytes = 0; ///< and what those move.
};

} // namespace planloom
