#pragma once

#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"

#include <cstring>
#include <vector>

namespace planloom {

/// to[i . toStrides] = from[i . fromStrides] for every index i below `extents`. T is any type of the
/// element's size: only bits are moved.
template<typename T>
void copyStrided(const Shape &extents, const T *from, const Shape &fromStrides, T *to, const Shape &toStrides)
{
    const LoopNest<2> nest(extents, {fromStrides, toStrides});
    nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
        const T *source = from + at[0];
        T *target = to + at[1];
        if (steps[0] == 1 && steps[1] == 1) {
            std::memcpy(target, source, static_cast<std::size_t>(count) * sizeof(T));
        } else {
            for (std::int64_t i = 0; i < count; ++i)
                target[i * steps[1]] = source[i * steps[0]];
        }
    });
}

/// The same where the call's buffers are.
template<typename T>
void copyStrided(const KernelCall &call, const Shape &extents, const T *from, const Shape &fromStrides, T *to,
    const Shape &toStrides)
{
    if (call.mover != nullptr)
        call.mover->move(sizeof(T), extents, from, fromStrides, to, toStrides);
    else
        copyStrided(extents, from, fromStrides, to, toStrides);
}

/// sums[i . sumStrides] += from[i . fromStrides], in double.
template<typename T>
void addStrided(
    const Shape &extents, const T *from, const Shape &fromStrides, double *sums, const Shape &sumStrides)
{
    const LoopNest<2> nest(extents, {fromStrides, sumStrides});
    nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
        const T *source = from + at[0];
        double *target = sums + at[1];
        for (std::int64_t i = 0; i < count; ++i)
            target[i * steps[1]] += static_cast<double>(source[i * steps[0]]);
    });
}

/// y = x with its dimensions permuted: extents are y's, `strides` those of x in y's order. Blocked where x's
/// innermost dimension is not y's.
template<typename T> void copyTransposed(const Shape &extents, const T *x, const Shape &strides, T *y)
{
    const std::size_t rank = extents.size();
    const Shape dense = denseStrides(extents);
    std::size_t inner = rank; // Which of y's dimensions is x's innermost.
    for (std::size_t d = 0; d < rank; ++d) {
        if (strides[d] == 1 && extents[d] > 1)
            inner = d;
    }
    if (rank < 2 || inner + 1 >= rank || extents[rank - 1] == 1) {
        copyStrided(extents, x, strides, y, dense);
        return;
    }
    constexpr std::int64_t kBlock = 16;
    const std::size_t last = rank - 1;
    Shape outer = extents;
    outer[inner] = 1;
    outer[last] = 1;
    const std::int64_t rows = extents[inner];
    const std::int64_t columns = extents[last];
    const LoopNest<2> nest(outer, {strides, dense});
    nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
        for (std::int64_t i = 0; i < count; ++i) {
            const T *from = x + at[0] + i * steps[0];
            T *to = y + at[1] + i * steps[1];
            for (std::int64_t r0 = 0; r0 < rows; r0 += kBlock) {
                const std::int64_t r1 = std::min(rows, r0 + kBlock);
                for (std::int64_t c0 = 0; c0 < columns; c0 += kBlock) {
                    const std::int64_t c1 = std::min(columns, c0 + kBlock);
                    for (std::int64_t r = r0; r < r1; ++r) {
                        for (std::int64_t c = c0; c < c1; ++c)
                            to[r * dense[inner] + c] = from[r + c * strides[last]];
                    }
                }
            }
        }
    });
}

/// Writes `sums` into a buffer of floats.
template<typename T> void storeSums(const std::vector<double> &sums, const Buffer &to)
{
    for (std::size_t i = 0; i < sums.size(); ++i)
        elements<T>(to)[i] = static_cast<T>(sums[i]);
}

/// The kernel that moves its first input, or, backward, the gradient, to its first output, if there is
/// something to make: `move(call, from, to)`.
template<auto move> Result<void> moved(const KernelCall &call)
{
    const Buffer *from = findInput(call, 0);
    const Buffer *to = findOutput(call, 0);
    if (to == nullptr || elementCount(*to) == 0)
        return {};
    if (from == nullptr)
        return missingSlot(call, "what it moves");
    return move(call, *from, *to);
}

/// Makes the gradient of an operator's only input, whose elements may have gone to several places, if it is
/// wanted: addUp(dy's elements, sums in double by element of dx, dx, dy).
template<typename AddUp> Result<void> addUpGradient(const KernelCall &call, AddUp &&addUp)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *dx = back.wanted(0);
    if (dx == nullptr)
        return {};
    if (dy == nullptr)
        return missingSlot(call, "a gradient");
    return withFloat(call, dx->dataType, [&]<typename T>(T) {
        std::vector<double> sums(static_cast<std::size_t>(elementCount(*dx)), 0.0);
        addUp(elements<const T>(*dy), sums.data(), *dx, *dy);
        storeSums<T>(sums, *dx);
    });
}

} // namespace planloom
