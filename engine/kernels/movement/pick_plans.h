#pragma once

#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_plan.h"
#include "engine/kernels/movement/draw.h"

namespace planloom {

// What indices, axes and windows choose. A plan serves both directions: of the backward pass, what is read is
// a gradient.

/// Gather, GatherElements and GatherND.
struct PickPlan {
    const Buffer *x = nullptr; ///< Backward: dx.
    const Buffer *indices = nullptr; ///< Integers.
    const Buffer *y = nullptr; ///< Backward: dy.
};
Planned<PickPlan> planPick(const KernelCall &call);

/// Embedding: rows of a table, of which this part may hold only some.
struct EmbeddingPlan {
    const Buffer *table = nullptr; ///< Backward: its gradient.
    const Buffer *indices = nullptr; ///< Integers.
    const Buffer *y = nullptr; ///< Backward: dy.
    std::int64_t first = 0; ///< Row that the part has,
    std::int64_t rows = 0; ///< their number,
    std::int64_t allRows = 0; ///< and that of the whole table's.
    std::int64_t width = 0;
    std::int64_t padding = -1; ///< Row that has no gradient.
};
Planned<EmbeddingPlan> planEmbedding(const KernelCall &call);

/// CumSum: running sums along an axis.
struct ScanPlan {
    const Buffer *x = nullptr;
    const Buffer *made = nullptr;
    AxisView view{};
    bool fromBack = false;
    bool exclusive = false;
};
Planned<ScanPlan> planScan(const KernelCall &call);

/// Dropout: y = x / (1 - ratio) where the element of the whole pTensor is kept, else 0.
struct DropoutPlan {
    const Buffer *x = nullptr;
    const Buffer *made = nullptr;
    double ratio = 0.5; ///< 0 or less: all is kept.
    DropoutDraw draw{0, 0, 0.5};
    std::int64_t first = 0; ///< Element of the whole pTensor that the part begins with,
    Shape strides{}; ///< and how far apart its others are there.

    double scale() const { return ratio >= 1 ? 0 : 1 / (1 - ratio); } ///< Of what is kept.
};
Planned<DropoutPlan> planDropout(const KernelCall &call);

/// Rotary: pairs of elements of the last dimension are rotated into one another; backward the other way
/// round.
struct RotaryPlan {
    const Buffer *x = nullptr; ///< Backward: dy.
    const Buffer *cosine = nullptr;
    const Buffer *sine = nullptr;
    const Buffer *made = nullptr; ///< Backward: dx, if it is wanted.
    const Buffer *value = nullptr; ///< Backward: x.
    const Buffer *dcos = nullptr;
    const Buffer *dsin = nullptr;
    bool inverse = false;
    bool interleaved = false; ///< Neighbours are pairs, else elements of the two halves.
};
Planned<RotaryPlan> planRotary(const KernelCall &call);

} // namespace planloom
