#pragma once

#include "engine/kernels/kernel_call.h"
#include "engine/kernels/products/gemm.h"

#include <utility>

namespace planloom {

/// Calls `work` with a number of the type that products of `operand` are made of: BFloat16 as it lies in
/// memory, where the processor multiplies that (`multipliesBFloat16`), else as `withFloat`.
template<typename Work> Result<void> withOperand(const KernelCall &call, const Buffer &operand, Work &&work)
{
    if (operand.dataType == DataType::BFloat16)
        return doneWith(work, BFloat16{});
    return withFloat(call, operand.dataType, std::forward<Work>(work));
}

} // namespace planloom
