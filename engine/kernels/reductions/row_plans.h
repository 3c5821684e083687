#pragma once

#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_plan.h"
#include "engine/kernels/reductions/channel_view.h"
#include "engine/kernels/reductions/norm_rows.h"

namespace planloom {

// Softmax, norms and reductions. A plan serves both directions unless it says otherwise: a buffer is null
// where its direction has none, where it is absent, or where it is not wanted.

struct SoftmaxPlan {
    const Buffer *x = nullptr; ///< Backward: the result.
    const Buffer *dy = nullptr; ///< Null: forward.
    const Buffer *made = nullptr;
    AxisView view{};
    bool logarithm = false;
};
Planned<SoftmaxPlan> planSoftmax(const KernelCall &call);

/// Of LayerNorm, RmsNorm and InstanceNorm.
struct NormPlan {
    const Buffer *x = nullptr;
    const Buffer *scale = nullptr;
    const Buffer *bias = nullptr;
    const Buffer *dy = nullptr; ///< Null: forward.
    const Buffer *made = nullptr; ///< Backward: dx.
    const Buffer *dscale = nullptr;
    const Buffer *dbias = nullptr;
    NormRows rows{};
};
Planned<NormPlan> planNorm(const KernelCall &call);

/// Of all Reduce kinds.
struct ReducePlan {
    const Buffer *x = nullptr; ///< Forward: may have no elements, and no data then.
    const Buffer *y = nullptr;
    const Buffer *dy = nullptr; ///< Null: forward.
    const Buffer *dx = nullptr;
    Shape strides{}; ///< With which y is addressed from x's dimensions: 0 along those reduced.
    double divisor = 1; ///< Of a mean: that of the whole pTensor, whatever part this is.
};
Planned<ReducePlan> planReduce(const KernelCall &call);

/// BatchMean and BatchVariance: sums per channel, or group of a sample, divided by the number of elements in
/// the whole pTensor.
struct StatisticPlan {
    const Buffer *x = nullptr;
    const Buffer *mean = nullptr; ///< Null: of a mean.
    const Buffer *y = nullptr;
    const Buffer *dy = nullptr; ///< Null: forward.
    const Buffer *dx = nullptr;
    const Buffer *dmean = nullptr;
    ChannelView view{};
    double count = 1;
};
Planned<StatisticPlan> planStatistic(const KernelCall &call);

/// BatchNormalize: y = (x - mean) / sqrt(variance + epsilon) * scale + bias.
struct NormalizePlan {
    const Buffer *x = nullptr;
    const Buffer *mean = nullptr;
    const Buffer *variance = nullptr;
    const Buffer *scale = nullptr;
    const Buffer *bias = nullptr;
    const Buffer *dy = nullptr; ///< Null: forward.
    const Buffer *made = nullptr; ///< Backward: dx.
    const Buffer *dmean = nullptr;
    const Buffer *dvariance = nullptr;
    const Buffer *dscale = nullptr;
    const Buffer *dbias = nullptr;
    ChannelView view{};
    double epsilon = 1e-5;
};
Planned<NormalizePlan> planNormalize(const KernelCall &call);

} // namespace planloom
