#pragma once

#include "engine/cuda/backend/cuda_functions.h"
#include "engine/cuda/kernels/element_chain.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>

namespace planloom {

/// Kernels that are compiled while a plan is run, each once: what a chain's source is compiled to is kept in
/// a folder, too, named by a digest of source, headers, architecture and compiler, and found there by later
/// runs and by other processes. What lies there and is not what was written, or is of another user, is
/// compiled anew.
class CompiledKernels
{
public:
    explicit CompiledKernels(CudaFunctions &cuda)
        : m_cuda(cuda)
    {
    }
    CompiledKernels(const CompiledKernels &) = delete;
    CompiledKernels &operator=(const CompiledKernels &) = delete;
    ~CompiledKernels();

    /// From now on kernels are those of GPU `gpu`. @param folder  where compiled ones are kept; empty:
    /// nowhere
    void open(std::int32_t gpu, const std::filesystem::path &folder);
    /// Why there are none; empty where there are. Before `open`: that it was not opened.
    const std::string &whyNot() const { return m_why; }

    /// The kernel of a chain's program; null if it cannot be compiled or loaded, of which `warning` is told
    /// once.
    CudaKernel kernelOf(
        const ElementChain::Program &program, const std::function<void(const std::string &)> &warning);

    int compiled() const { return m_compiled; } ///< So far,
    int found() const { return m_found; } ///< and those that were in the folder.

private:
    std::optional<std::string> inFolder(const std::filesystem::path &file) const;
    void keep(const std::filesystem::path &file, const std::string &code) const;
    CudaKernel make(const std::string &source, std::string &why);

    CudaFunctions &m_cuda;
    std::filesystem::path m_folder{};
    std::int32_t m_architecture = 0;
    std::string m_why = "no GPU was opened";
    std::unordered_map<std::string, CudaKernel> m_kernels{}; ///< By body; null: it cannot be made.
    int m_compiled = 0;
    int m_found = 0;
    bool m_saidWhy = false;
};

} // namespace planloom
