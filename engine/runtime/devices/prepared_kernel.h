#pragma once

#include "engine/kernels/elements/rounded_kernel.h"
#include "engine/lowering/program/execution_plan.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace planloom {

/// A kernel instruction with all that can be known about it before it runs.
struct PreparedKernel {
    /// The operator with its `count` of one micro-batch, where that differs.
    std::unique_ptr<Operator> adapted{};
    KernelCall call{}; ///< All but data pointers and what depends on the micro-batch and the run.
    std::int32_t batchIdentifier = -1; ///< Range that moves with the micro-batch,
    std::int64_t batchShift = 0; ///< and by how much.
    std::optional<KernelRounding> rounding{}; ///< Where memory holds other types than it computes with.
    bool isFirstReplica = false; ///< Of those that make the same.
};

/// @param gradientFactor  what optimizer operators multiply gradients by
PreparedKernel prepareKernel(const ExecutionPlan &plan, const DeviceProgram &program,
    const Instruction &instruction, float gradientFactor = 1);

} // namespace planloom
