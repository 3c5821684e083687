#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/indexing.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace planloom {

namespace {

Result<std::vector<std::int64_t>> scatteredOffsets(
    const KernelCall &call, const Buffer &indices, const Buffer &x, std::int64_t &run)
{
    if (isFloating(indices.dataType))
        return unsupportedType(call, indices.dataType);
    run = 1;
    if (call.op->kind == OperatorKind::ScatterElements)
        return elementOffsets(call, indices, x.shape);
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
    TRY(const auto offsets, scatteredOffsets(call, *indices, *x, run));
    if (makesTerm(call, 0, {0}))
        std::memcpy(y->data, x->data, byteCount(*y));
    else
        fillZero(*y);
    const std::string reduction = call.op->attributes.text("reduction", "none");
    return withNumber(call, x->dataType, [&]<typename T>(T) {
        const T *from = elements<const T>(*updates);
        for (const std::int64_t offset : offsets) {
            T *to = elements<T>(*y) + offset;
            for (std::int64_t i = 0; i < run && offset != kNoOffset; ++i) {
                if (reduction == "add")
                    to[i] = static_cast<T>(to[i] + from[i]);
                else if (reduction == "mul")
                    to[i] = static_cast<T>(to[i] * from[i]);
                else if (reduction == "max")
                    to[i] = std::max(to[i], from[i]);
                else if (reduction == "min")
                    to[i] = std::min(to[i], from[i]);
                else
                    to[i] = from[i];
            }
            from += run;
        }
    });
}

/// Slots and places of a scatter whose result is a product or an extreme of all that goes to a place.
struct ScatterTerms {
    const Buffer *dy = nullptr;
    const Buffer *x = nullptr;
    const Buffer *updates = nullptr;
    const Buffer *dx = nullptr;
    const Buffer *dupdates = nullptr;
    std::vector<std::int64_t> offsets{};
    std::int64_t run = 1;

    /// Calls visit(element of the updates, element of x that it goes to).
    template<typename Visit> void forEachUpdate(Visit &&visit) const
    {
        std::int64_t at = 0;
        for (const std::int64_t offset : offsets) {
            for (std::int64_t i = 0; i < run && offset != kNoOffset; ++i)
                visit(at + i, offset + i);
            at += run;
        }
    }
};

/// Each factor's gradient is the product of the others. Zeros are counted, not multiplied.
template<typename T> void productBackward(const ScatterTerms &terms)
{
    const T *x = elements<const T>(*terms.x);
    const T *updates = elements<const T>(*terms.updates);
    const T *dy = elements<const T>(*terms.dy);
    const auto count = static_cast<std::size_t>(elementCount(*terms.x));
    std::vector<double> products(count, 1.0);
    std::vector<int> zeros(count, 0);
    const auto take = [&](std::int64_t place, double factor) {
        const auto at = static_cast<std::size_t>(place);
        zeros[at] += factor == 0 ? 1 : 0;
        products[at] *= factor == 0 ? 1.0 : factor;
    };
    const auto slope = [&](std::int64_t place, double factor) {
        const auto at = static_cast<std::size_t>(place);
        const double others = factor == 0 ? (zeros[at] == 1 ? products[at] : 0.0)
                                          : (zeros[at] == 0 ? products[at] / factor : 0.0);
        return static_cast<T>(static_cast<double>(dy[place]) * others);
    };
    for (std::int64_t i = 0; i < elementCount(*terms.x); ++i)
        take(i, static_cast<double>(x[i]));
    terms.forEachUpdate(
        [&](std::int64_t at, std::int64_t place) { take(place, static_cast<double>(updates[at])); });
    for (std::int64_t i = 0; terms.dx != nullptr && i < elementCount(*terms.x); ++i)
        elements<T>(*terms.dx)[i] = slope(i, static_cast<double>(x[i]));
    if (terms.dupdates != nullptr)
        terms.forEachUpdate([&](std::int64_t at, std::int64_t place) {
            elements<T>(*terms.dupdates)[at] = slope(place, static_cast<double>(updates[at]));
        });
}

/// All that equal the extreme share its gradient.
template<typename T> void extremeBackward(const ScatterTerms &terms, bool largest)
{
    const T *x = elements<const T>(*terms.x);
    const T *updates = elements<const T>(*terms.updates);
    const T *dy = elements<const T>(*terms.dy);
    std::vector<T> extremes(x, x + elementCount(*terms.x));
    terms.forEachUpdate([&](std::int64_t at, std::int64_t place) {
        T &extreme = extremes[static_cast<std::size_t>(place)];
        extreme = largest ? std::max(extreme, updates[at]) : std::min(extreme, updates[at]);
    });
    std::vector<int> equal(extremes.size(), 0);
    for (std::size_t i = 0; i < extremes.size(); ++i)
        equal[i] = x[i] == extremes[i] ? 1 : 0;
    terms.forEachUpdate([&](std::int64_t at, std::int64_t place) {
        const auto i = static_cast<std::size_t>(place);
        equal[i] += updates[at] == extremes[i] ? 1 : 0;
    });
    const auto slope = [&](std::int64_t place, T value) {
        const auto i = static_cast<std::size_t>(place);
        return value == extremes[i] ? dy[place] / static_cast<T>(equal[i]) : T(0);
    };
    for (std::int64_t i = 0; terms.dx != nullptr && i < elementCount(*terms.x); ++i)
        elements<T>(*terms.dx)[i] = slope(i, x[i]);
    if (terms.dupdates != nullptr)
        terms.forEachUpdate([&](std::int64_t at, std::int64_t place) {
            elements<T>(*terms.dupdates)[at] = slope(place, updates[at]);
        });
}

Result<void> combiningBackward(const KernelCall &call, const BackwardCall &back, const std::string &reduction)
{
    ScatterTerms terms{back.gradient(), back.input(0), back.input(2), back.wanted(0), back.wanted(2), {}, 1};
    const Buffer *indices = back.input(1);
    if (terms.x == nullptr || terms.updates == nullptr || indices == nullptr)
        return missingSlot(call, "a saved input");
    TRY(terms.offsets, scatteredOffsets(call, *indices, *terms.x, terms.run));
    if (terms.dupdates != nullptr)
        fillZero(*terms.dupdates);
    return withFloat(call, terms.dy->dataType, [&]<typename T>(T) {
        if (reduction == "mul")
            productBackward<T>(terms);
        else
            extremeBackward<T>(terms, reduction == "max");
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
    if (reduction == "mul" || reduction == "max" || reduction == "min")
        return combiningBackward(call, back, reduction);
    if (dx != nullptr && makesTerm(call, 0, {0}))
        std::memcpy(dx->data, dy->data, byteCount(*dx));
    else if (dx != nullptr)
        fillZero(*dx);
    const bool replaces = reduction == "none";
    if (dupdates == nullptr && (dx == nullptr || !replaces))
        return {};
    if (indices == nullptr)
        return missingSlot(call, "its indices");
    std::int64_t run = 1;
    TRY(const auto offsets, scatteredOffsets(call, *indices, *dy, run));
    return withFloat(call, dy->dataType, [&]<typename T>(T) {
        std::int64_t at = 0;
        for (const std::int64_t offset : offsets) {
            if (dx != nullptr && replaces && offset != kNoOffset)
                std::fill_n(elements<T>(*dx) + offset, run, T(0));
            if (dupdates != nullptr && offset != kNoOffset)
                std::copy_n(elements<const T>(*dy) + offset, run, elements<T>(*dupdates) + at);
            else if (dupdates != nullptr)
                std::fill_n(elements<T>(*dupdates) + at, run, T(0));
            at += run;
        }
    });
}

} // namespace

void addScatterKernels(KernelTable &table)
{
    table.add({OperatorKind::ScatterElements, OperatorKind::ScatterND}, scatterForward, scatterBackward);
}

} // namespace planloom
