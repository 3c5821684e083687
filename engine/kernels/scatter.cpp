#include "engine/kernels/indexing.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace planloom {

namespace {

Result<std::vector<std::int64_t>> scatteredOffsets(
    const KernelCall &call, const Buffer &indices, const Shape &x, std::int64_t &run)
{
    run = 1;
    if (call.op->kind == OperatorKind::ScatterElements)
        return elementOffsets(call, indices, x);
    return sliceOffsets(call, indices, x, 0, run);
}

Result<void> scatterForward(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0);
    const Buffer *indices = findInput(call, 1);
    const Buffer *updates = findInput(call, 2);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (x == nullptr || indices == nullptr || updates == nullptr)
        return missingSlot(call, "its three inputs");
    std::int64_t run = 1;
    TRY(const auto offsets, scatteredOffsets(call, *indices, x->shape, run));
    std::memcpy(y->data, x->data, byteCount(*y));
    const std::string reduction = call.op->attributes.text("reduction", "none");
    return withNumber(call, x->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        const T *from = elements<const T>(*updates);
        for (const std::int64_t offset : offsets) {
            T *to = elements<T>(*y) + offset;
            for (std::int64_t i = 0; i < run; ++i) {
                if (reduction == "add")
                    to[i] = static_cast<T>(to[i] + from[i]);
                else if (reduction == "mul")
                    to[i] = static_cast<T>(to[i] * from[i]);
                else
                    to[i] = from[i];
            }
            from += run;
        }
        return {};
    });
}

/// An element that was replaced has no gradient; an update has that of the place it went to.
Result<void> scatterBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *indices = back.input(1);
    const Buffer *dx = back.wanted(0);
    const Buffer *dupdates = back.wanted(2);
    const std::string reduction = call.op->attributes.text("reduction", "none");
    if (dy == nullptr)
        return missingSlot(call, "a gradient");
    if (dx != nullptr)
        std::memcpy(dx->data, dy->data, byteCount(*dx));
    const bool replaces = reduction == "none";
    if (dupdates == nullptr && (dx == nullptr || !replaces))
        return {};
    if (indices == nullptr)
        return missingSlot(call, "its indices");
    std::int64_t run = 1;
    TRY(const auto offsets, scatteredOffsets(call, *indices, dy->shape, run));
    return withFloat(call, dy->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        std::int64_t at = 0;
        for (const std::int64_t offset : offsets) {
            if (dx != nullptr && replaces)
                std::fill_n(elements<T>(*dx) + offset, run, T(0));
            if (dupdates != nullptr)
                std::copy_n(elements<const T>(*dy) + offset, run, elements<T>(*dupdates) + at);
            at += run;
        }
        return {};
    });
}

} // namespace

void addScatterKernels(KernelTable &table)
{
    for (const OperatorKind kind : {OperatorKind::ScatterElements, OperatorKind::ScatterND}) {
        table.add(kind, Direction::Forward, scatterForward);
        table.add(kind, Direction::Backward, scatterBackward);
    }
}

} // namespace planloom
