#pragma once

#include "engine/kernels/kernel.h"

#include <optional>
#include <vector>

namespace planloom {

/// How a kernel is to be run whose values are not plain floats.
struct KernelRounding {
    /// By slot: the type in memory. Where it is not the one of the call's buffer, which says what the kernel
    /// computes with, the elements are widened before, and rounded behind.
    std::vector<DataType> inputs{};
    std::vector<DataType> outputs{};
    DataType compute = DataType::Float32; ///< What products see of their operands (`Precision::compute`).
    float gradientFactor = 1; ///< Optimizer operators: the gradient is multiplied by it first.
    friend bool operator==(const KernelRounding &, const KernelRounding &) = default;
};

/// The type that kernels compute values of `type` with: Float32 for narrower floats.
DataType computedAs(DataType type);

/// What a run of `op` has to round; nothing where it computes with what lies in memory.
/// @param call  its buffers' types are those that the kernel computes with
std::optional<KernelRounding> roundingOf(const KernelCall &call, KernelRounding rounding);

/// True if the build has oneDNN and the processor multiplies BFloat16 by itself (AVX512-BF16, AMX): elsewhere
/// products of floats are faster. ONEDNN_MAX_CPU_ISA, which oneDNN reads, can say that it does not.
bool hasBFloat16Products();

/// Runs `call` with floats in place of narrower types; sums are floats until they are rounded once. Works on
/// copies in scratch memory of its own.
/// @param bfloat16Products  products (Linear, MatMul, Einsum, Conv, ConvTranspose) read operands of BFloat16
///   as such, or rounded to it: the same products, summed in another order
/// @return as `runKernel`
Result<void> runRounded(
    const KernelCall &call, const KernelRounding &rounding, bool bfloat16Products = hasBFloat16Products());

/// True for such a product all of whose operands are BFloat16, and whose results are floats (or, of a Linear,
/// BFloat16): its kernel reads the operands as they are.
bool multipliesBFloat16(const KernelCall &call);

/// True if a buffer of `call` holds floats that kernels do not compute with: `runWidened` does.
bool isNarrow(const KernelCall &call);
/// Runs such a call with floats in their place, each result rounded once. @return as `runKernel`
Result<void> runWidened(const KernelCall &call);

} // namespace planloom
