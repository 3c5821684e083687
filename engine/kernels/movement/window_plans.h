#pragma once

#include "engine/kernels/kernel_plan.h"
#include "engine/kernels/movement/pooling.h"
#include "engine/kernels/products/convolution.h"

#include <vector>

namespace planloom {

/// What is made of the other two, in a convolution from x to y with weights w.
enum class ConvolutionPass { Forward, OfData, OfWeights };

struct PlannedConvolution {
    ConvolutionPass pass{};
    Convolution conv{};
    const Buffer *x = nullptr;
    const Buffer *w = nullptr;
    const Buffer *y = nullptr; ///< Null: the plan's `own`.
};

/// Conv and ConvTranspose, in both directions: a transposed convolution makes the data of one.
struct ConvolutionPlan {
    std::vector<PlannedConvolution> products{};
    const Buffer *bias = nullptr; ///< Forward: what this part adds to the channels of the result.
    const Buffer *dy = nullptr; ///< Null: forward.
    /// The piece of dy that the part has to itself, without the windows of its neighbours; its data is for
    /// the kernel to find.
    Buffer own{};
    const Buffer *dbias = nullptr;
    bool addsUpBias = false; ///< Else another part does, and this one's gradient of the bias is zeros.
};
Planned<ConvolutionPlan> planConvolution(const KernelCall &call);

/// MaxPool, AveragePool and LpPool.
struct PoolPlan {
    const Buffer *x = nullptr; ///< Backward, averages need neither x
    const Buffer *y = nullptr; ///< nor y.
    const Buffer *dy = nullptr; ///< Null: forward.
    const Buffer *dx = nullptr;
    PoolRule rule{};
    WindowGeometry windows{}; ///< Over what is read.
    WindowGeometry share{}; ///< Backward: over dx, of which the part makes its share alone.
};
Planned<PoolPlan> planPool(const KernelCall &call);

} // namespace planloom
