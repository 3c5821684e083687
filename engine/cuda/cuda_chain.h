#pragma once

#include "engine/base/result.h"
#include "engine/cuda/compiled_kernels.h"
#include "engine/cuda/element_chain.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

namespace planloom {

/// Element-wise kernels of a stream that wait in front of it: the next ones may become one with them.
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
    /// Something else comes into the stream: what waits goes first.
    Result<void> settle();
    /// Puts what waits into the stream: as one kernel, if that can be had.
    Result<void> launch();
    /// As those of ElementChain.
    void ends(std::span<const std::byte> memory) { m_chain.ends(memory); }
    void forget();

    bool isEmpty() const { return m_chain.isEmpty(); }
    /// What the kernels that wait would move one by one.
    std::int64_t bytes() const { return m_bytes; }

private:
    Result<void> part();
    bool take(const ChainKernel &kernel, std::int64_t items);
    Result<void> launch(const ChainKernel &kernel, std::int64_t items);

    CudaFunctions &m_cuda;
    CompiledKernels &m_kernels;
    const Warning &m_warning;
    CudaStream m_stream;
    ElementChain m_chain{};
    std::int64_t m_bytes = 0;
    // Where the task that is being put joins others:
    std::function<Result<void>()> m_parted{};
    ElementChain m_before{}; ///< Once it has kernels: what the others have.
    std::size_t m_others = 0; ///< Kernels of theirs,
    std::int64_t m_othersBytes = 0; ///< and what those move.
};

} // namespace planloom
