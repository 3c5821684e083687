#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

/// What a kernel does, as far as its name says; kernels that are neither are told apart by order alone.
enum class KernelClass : std::uint8_t { Product, Attention, Other };

/// "ampere_bf16_s16816gemm_...", "aten::mm": what frameworks and libraries call products and attentions.
KernelClass kernelClassOf(std::string_view name);

/// A kernel of a plan's device, or an event of a rank, in order.
struct KernelStep {
    KernelClass kind{};
    std::int64_t duration = 0; ///< Nanoseconds: predicted, or measured.
};

/// Which of the plan's products and attentions is which of the trace's: indices, both ascending. All in order
/// where there are as many of both; else those whose durations fit best, in order. O(plan x trace), of at
/// most 4 million pairs; beyond that those in the same place of both
std::vector<std::pair<std::size_t, std::size_t>> matchKernels(
    const std::vector<KernelStep> &plan, const std::vector<KernelStep> &trace);

} // namespace planloom
