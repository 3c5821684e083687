#include "engine/graph/operators/places.h"
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/indexing.h"
#include "engine/kernels/movement/pick_plans.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace planloom {

namespace {

/// The indices as non-negative positions below `bound`.
Result<std::vector<std::int64_t>> positions(const KernelCall &call, const Buffer &indices, std::int64_t bound)
{
    std::vector<std::int64_t> found(static_cast<std::size_t>(elementCount(indices)));
    for (std::size_t i = 0; i < found.size(); ++i) {
        const std::int64_t index = integerAt(indices, static_cast<std::int64_t>(i));
        if (index < -bound || index >= bound)
            return indexOutOfRange(call, index, bound);
        found[i] = index < 0 ? index + bound : index;
    }
    return found;
}

/// The same, each as `positionOf`.
Result<std::vector<std::int64_t>> positionsAlong(
    const KernelCall &call, const Buffer &indices, const Buffer &x, std::size_t axis)
{
    if (!hasPlaces(call.op->attributes))
        return positions(call, indices, x.shape[axis]);
    std::vector<std::int64_t> found(static_cast<std::size_t>(elementCount(indices)));
    for (std::size_t i = 0; i < found.size(); ++i) {
        TRY(found[i], positionOf(call, integerAt(indices, static_cast<std::int64_t>(i)), x, axis));
    }
    return found;
}

// --- Gather: y[outer, indices, inner] = x[outer, axis, inner]
// --------------------------------------------------

std::size_t axisOf(const KernelCall &call)
{
    return static_cast<std::size_t>(call.op->attributes.integer("axis"));
}

/// What rows without place hold: ones, of which quotients, roots and logarithms are numbers; zeros of
/// integers.
void fillNoPlace(std::byte *to, std::int64_t count, DataType type)
{
    switch (type) {
    case DataType::Float32:
        std::fill_n(reinterpret_cast<float *>(to), count, 1.0F);
        break;
    case DataType::Float64:
        std::fill_n(reinterpret_cast<double *>(to), count, 1.0);
        break;
    case DataType::Float16:
        std::fill_n(reinterpret_cast<std::uint16_t *>(to), count, std::uint16_t{0x3C00});
        break;
    case DataType::BFloat16:
        std::fill_n(reinterpret_cast<std::uint16_t *>(to), count, std::uint16_t{0x3F80});
        break;
    default:
        std::memset(to, 0, static_cast<std::size_t>(count * sizeOf(type)));
    }
}

/// The `run` elements of x that begin at element `offset`.
void pickRun(std::byte *to, const Buffer &x, std::int64_t offset, std::int64_t run)
{
    const std::int64_t size = sizeOf(x.dataType);
    if (offset == kNoOffset)
        fillNoPlace(to, run, x.dataType);
    else
        std::memcpy(to, x.data + offset * size, static_cast<std::size_t>(run * size));
}

Result<void> gatherForward(const KernelCall &call, const PickPlan &plan)
{
    const Buffer *x = plan.x;
    const AxisView view = axisView(x->shape, call.op->attributes.integer("axis"));
    TRY(const auto at, positionsAlong(call, *plan.indices, *x, axisOf(call)));
    std::byte *to = plan.y->data;
    for (std::int64_t o = 0; o < view.outer; ++o) {
        for (const std::int64_t position : at) {
            pickRun(to, *x, position == kNoOffset ? kNoOffset : (o * view.extent + position) * view.inner,
                view.inner);
            to += view.inner * sizeOf(x->dataType);
        }
    }
    return {};
}

template<typename T> void addRun(T *to, const T *from, std::int64_t count)
{
    for (std::int64_t i = 0; i < count; ++i)
        to[i] += from[i];
}

Result<void> gatherBackward(const KernelCall &call, const PickPlan &plan)
{
    const Buffer *dx = plan.x;
    const AxisView view = axisView(dx->shape, call.op->attributes.integer("axis"));
    TRY(const auto at, positionsAlong(call, *plan.indices, *dx, axisOf(call)));
    fillZero(*dx);
    return withFloat(call, dx->dataType, [&]<typename T>(T) {
        const T *from = elements<const T>(*plan.y);
        for (std::int64_t o = 0; o < view.outer; ++o) {
            for (const std::int64_t position : at) {
                if (position != kNoOffset)
                    addRun(elements<T>(*dx) + (o * view.extent + position) * view.inner, from, view.inner);
                from += view.inner;
            }
        }
    });
}

// --- Embedding: a table of which this part may hold only some rows
// ---------------------------------------------

Result<void> embeddingForward(const KernelCall &call, const EmbeddingPlan &plan)
{
    TRY(const auto at, positions(call, *plan.indices, plan.allRows));
    const std::int64_t run = plan.width * sizeOf(plan.table->dataType);
    std::byte *to = plan.y->data;
    for (const std::int64_t position : at) {
        const std::int64_t row = position - plan.first;
        if (row >= 0 && row < plan.rows)
            std::memcpy(to, plan.table->data + row * run, static_cast<std::size_t>(run));
        else
            std::memset(to, 0, static_cast<std::size_t>(run));
        to += run;
    }
    return {};
}

Result<void> embeddingBackward(const KernelCall &call, const EmbeddingPlan &plan)
{
    TRY(const auto at, positions(call, *plan.indices, plan.allRows));
    const Buffer *dx = plan.table;
    const std::int64_t width = plan.width;
    if (!addsTo(call, 0))
        fillZero(*dx);
    return withFloat(call, dx->dataType, [&]<typename T>(T) {
        // By columns, so that rows that occur twice are added in their order.
        const std::int64_t columns =
            std::max<std::int64_t>(64, kElementStretch / std::max<std::int64_t>(1, std::ssize(at)));
        forEachStretch(width, columns, [&](std::int64_t begin, std::int64_t end) {
            const T *from = elements<const T>(*plan.y) + begin;
            for (const std::int64_t position : at) {
                const std::int64_t row = position - plan.first;
                if (row >= 0 && row < plan.rows && position != plan.padding)
                    addRun(elements<T>(*dx) + row * width + begin, from, end - begin);
                from += width;
            }
        });
    });
}

} // namespace

// --- GatherElements: y[i j k] = x[i indices[i j k] k]
// ----------------------------------------------------------

Result<std::vector<std::int64_t>> elementOffsets(
    const KernelCall &call, const Buffer &indices, const Shape &x)
{
    const auto axis = static_cast<std::size_t>(call.op->attributes.integer("axis"));
    TRY(auto offsets, positions(call, indices, x[axis]));
    const Shape dense = denseStrides(x);
    Shape strides = dense;
    strides[axis] = 0;
    const LoopNest<2> nest(indices.shape, {denseStrides(indices.shape), strides});
    nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
        for (std::int64_t i = 0; i < count; ++i) {
            std::int64_t &offset = offsets[static_cast<std::size_t>(at[0] + i * steps[0])];
            offset = offset * dense[axis] + at[1] + i * steps[1];
        }
    });
    return offsets;
}

// --- GatherND: an index names the first dimensions of x behind the batch
// ---------------------------------------

Result<std::int64_t> positionOf(const KernelCall &call, std::int64_t index, const Buffer &x, std::size_t axis)
{
    const bool places = hasPlaces(call.op->attributes);
    const std::int64_t whole = places ? wholeExtent(x, axis) : x.shape[axis];
    if (places && isNoPlace(index, whole))
        return kNoOffset;
    if (index < -whole || index >= whole)
        return indexOutOfRange(call, index, whole);
    const std::int64_t position = (index < 0 ? index + whole : index) - (places ? firstOf(x, axis) : 0);
    // What one group finds lies in that group: an index into another one was not found by the NonZero.
    if (position < 0 || position >= x.shape[axis])
        return indexOutOfRange(call, index, whole);
    return position;
}

Result<std::vector<std::int64_t>> sliceOffsets(const KernelCall &call, const Buffer &indices,
    const Buffer &of, std::int64_t batchDims, std::int64_t &run)
{
    const Shape &x = of.shape;
    const Shape dense = denseStrides(x);
    const std::int64_t width = indices.shape.back();
    const std::int64_t tuples = width == 0 ? 0 : elementCount(indices) / width;
    std::int64_t batches = 1;
    for (std::int64_t d = 0; d < batchDims; ++d)
        batches *= x[static_cast<std::size_t>(d)];
    const std::int64_t perBatch = batches == 0 ? 0 : tuples / batches;
    const std::int64_t batchStride = batchDims == 0 ? 0 : dense[static_cast<std::size_t>(batchDims - 1)];
    run = 1;
    for (auto d = static_cast<std::size_t>(batchDims + width); d < x.size(); ++d)
        run *= x[d];
    std::vector<std::int64_t> offsets(static_cast<std::size_t>(tuples));
    for (std::int64_t t = 0; t < tuples; ++t) {
        std::int64_t offset = perBatch == 0 ? 0 : t / perBatch * batchStride;
        for (std::int64_t q = 0; q < width; ++q) {
            const auto d = static_cast<std::size_t>(batchDims + q);
            TRY(const std::int64_t position, positionOf(call, integerAt(indices, t * width + q), of, d));
            offset = position == kNoOffset || offset == kNoOffset ? kNoOffset : offset + position * dense[d];
        }
        offsets[static_cast<std::size_t>(t)] = offset;
    }
    return offsets;
}

namespace {

/// Offsets in x for both kinds, with the length of the runs they begin.
Result<std::vector<std::int64_t>> pickedOffsets(
    const KernelCall &call, const Buffer &indices, const Buffer &x, std::int64_t &run)
{
    run = 1;
    if (call.op->kind == OperatorKind::GatherElements)
        return elementOffsets(call, indices, x.shape);
    return sliceOffsets(call, indices, x, call.op->attributes.integer("batch_dims"), run);
}

Result<void> pickForward(const KernelCall &call, const PickPlan &plan)
{
    const Buffer *x = plan.x;
    std::int64_t run = 1;
    TRY(const auto offsets, pickedOffsets(call, *plan.indices, *x, run));
    const std::int64_t size = sizeOf(x->dataType);
    std::byte *to = plan.y->data;
    for (const std::int64_t offset : offsets) {
        pickRun(to, *x, offset, run);
        to += run * size;
    }
    return {};
}

Result<void> pickBackward(const KernelCall &call, const PickPlan &plan)
{
    const Buffer *dx = plan.x;
    std::int64_t run = 1;
    TRY(const auto offsets, pickedOffsets(call, *plan.indices, *dx, run));
    fillZero(*dx);
    return withFloat(call, dx->dataType, [&]<typename T>(T) {
        const T *from = elements<const T>(*plan.y);
        for (const std::int64_t offset : offsets) {
            if (offset != kNoOffset)
                addRun(elements<T>(*dx) + offset, from, run);
            from += run;
        }
    });
}

} // namespace

void addGatherKernels(KernelTable &table)
{
    table.add({OperatorKind::Gather}, planned<planPick, gatherForward>, planned<planPick, gatherBackward>);
    table.add({OperatorKind::Embedding}, planned<planEmbedding, embeddingForward>,
        planned<planEmbedding, embeddingBackward>);
    table.add({OperatorKind::GatherElements, OperatorKind::GatherND}, planned<planPick, pickForward>,
        planned<planPick, pickBackward>);
}

} // namespace planloom
