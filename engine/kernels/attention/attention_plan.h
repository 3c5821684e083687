#pragma once

#include "engine/graph/operators/attention.h"
#include "engine/kernels/attention/attention_sizes.h"
#include "engine/kernels/kernel_plan.h"
#include "engine/kernels/movement/draw.h"

#include <vector>

namespace planloom {

/// An Attention, in both directions. A buffer is null where its direction has none, where it is absent, or
/// not wanted.
struct AttentionPlan : AttentionSizes {
    /// Of the scores [.. heads, queries, keys]; broadcast.
    struct Mask {
        const Buffer *buffer = nullptr; ///< Null if it is absent.
        Shape heads{}; ///< Strides of the leading dimensions, in elements; 0 where it has one for all.
        std::int64_t row = 0; ///< Of queries,
        std::int64_t column = 0; ///< and of keys.
        const Buffer *gradient = nullptr;
    };
    /// What a dropout draws.
    struct Dropped {
        double ratio = 0; ///< 0: there is none.
        DropoutDraw draw{0, 0, 0};
        std::int64_t first = 0; ///< The part's first score among those of the whole operator,
        Shape heads{}; ///< and how far apart those of other heads are there.
    };
    const Buffer *q = nullptr;
    const Buffer *k = nullptr;
    const Buffer *v = nullptr;
    std::vector<Mask> masks{}; ///< In the order of their slots.
    const Buffer *y = nullptr;
    const Buffer *logSum = nullptr;
    const Buffer *probabilities = nullptr;
    const Buffer *dy = nullptr; ///< Null: forward.
    const Buffer *dq = nullptr;
    const Buffer *dk = nullptr;
    const Buffer *dv = nullptr;

    Shape leading{}; ///< Extents of the leading dimensions: heads in all.
    std::int64_t valueWidth = 0;
    AttentionReach reach{};
    double scale = 1;
    double softcap = 0; ///< 0: none.
    double maskedScore = 0;
    Dropped dropped{};

    /// Whether gradients need those of the scores.
    bool needsSlope() const;
    /// The part has every key that any of its queries sees.
    bool hasAllKeys() const;
};
Planned<AttentionPlan> planAttention(const KernelCall &call);

} // namespace planloom
