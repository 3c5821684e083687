#include "engine/kernels/convolution.h"
#include "engine/kernels/gemm.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement.h"
#include "engine/kernels/vector_reduce.h"

#include <algorithm>
#include <vector>

namespace planloom {

namespace {

/// Offsets into a plane of the input by (tap, window), -1 for padding.
std::vector<std::int32_t> unfoldedOffsets(const WindowGeometry &g)
{
    std::vector<std::int32_t> offsets(static_cast<std::size_t>(g.kernelCount() * g.outCount()), -1);
    if (offsets.empty())
        return offsets;
    Shape position(g.rank(), 0);
    std::int64_t window = 0;
    do {
        forEachTap(g, position, [&](std::int64_t tap, std::int64_t offset) {
            offsets[static_cast<std::size_t>(tap * g.outCount() + window)] =
                static_cast<std::int32_t>(offset);
        });
        ++window;
    } while (advance(position, g.out));
    return offsets;
}

/// columns [c kernel, out] of one group of one image.
template<typename T>
void unfold(const Convolution &conv, const std::vector<std::int32_t> &offsets, const T *x, T *columns)
{
    const std::size_t plane = offsets.size();
    for (std::int64_t c = 0; c < conv.c; ++c) {
        const T *from = x + c * conv.window.inCount();
        T *to = columns + static_cast<std::size_t>(c) * plane;
        for (std::size_t i = 0; i < plane; ++i)
            to[i] = offsets[i] < 0 ? T(0) : from[offsets[i]];
    }
}

/// The reverse, summing where windows overlap.
template<typename T>
void foldBack(const Convolution &conv, const std::vector<std::int32_t> &offsets, const T *columns, T *x)
{
    const std::size_t plane = offsets.size();
    for (std::int64_t c = 0; c < conv.c; ++c) {
        const T *from = columns + static_cast<std::size_t>(c) * plane;
        T *to = x + c * conv.window.inCount();
        for (std::size_t i = 0; i < plane; ++i) {
            if (offsets[i] >= 0)
                to[offsets[i]] += from[i];
        }
    }
}

/// y = w * unfolded x
template<typename T> void convolve(const Convolution &conv, const T *x, const T *w, T *y)
{
    const bool pointwise = conv.isPointwise();
    const auto offsets = pointwise ? std::vector<std::int32_t>{} : unfoldedOffsets(conv.window);
    std::vector<T> columns(pointwise ? 0 : static_cast<std::size_t>(conv.rows() * conv.window.outCount()));
    for (std::int64_t i = 0; i < conv.n * conv.groups; ++i) {
        const T *image = x + i * conv.xGroup();
        if (!pointwise)
            unfold(conv, offsets, image, columns.data());
        MatrixProduct<T> product;
        product.m = conv.o;
        product.n = conv.window.outCount();
        product.k = conv.rows();
        product.a = w + i % conv.groups * conv.o * conv.rows();
        product.aRow = product.k;
        product.b = pointwise ? image : columns.data();
        product.bRow = product.n;
        product.c = y + i * conv.yGroup();
        product.cRow = product.n;
        multiply(std::move(product));
    }
}

/// dx = w^T * dy, folded back
template<typename T> void convolveData(const Convolution &conv, const T *dy, const T *w, T *dx)
{
    const bool pointwise = conv.isPointwise();
    const auto offsets = pointwise ? std::vector<std::int32_t>{} : unfoldedOffsets(conv.window);
    std::vector<T> columns(pointwise ? 0 : static_cast<std::size_t>(conv.rows() * conv.window.outCount()));
    if (!pointwise)
        std::fill_n(dx, conv.n * conv.groups * conv.xGroup(), T(0));
    for (std::int64_t i = 0; i < conv.n * conv.groups; ++i) {
        MatrixProduct<T> product;
        product.m = conv.rows();
        product.n = conv.window.outCount();
        product.k = conv.o;
        product.a = w + i % conv.groups * conv.o * conv.rows();
        product.aRow = 1;
        product.aColumn = conv.rows();
        product.b = dy + i * conv.yGroup();
        product.bRow = product.n;
        product.c = pointwise ? dx + i * conv.xGroup() : columns.data();
        product.cRow = product.n;
        multiply(std::move(product));
        if (!pointwise)
            foldBack(conv, offsets, columns.data(), dx + i * conv.xGroup());
    }
}

/// dw = sum over images of dy * (unfolded x)^T
template<typename T> void convolveWeights(const Convolution &conv, const T *x, const T *dy, T *dw)
{
    const bool pointwise = conv.isPointwise();
    const auto offsets = pointwise ? std::vector<std::int32_t>{} : unfoldedOffsets(conv.window);
    std::vector<T> columns(pointwise ? 0 : static_cast<std::size_t>(conv.rows() * conv.window.outCount()));
    const std::int64_t size = conv.o * conv.rows();
    std::vector<T> summand(static_cast<std::size_t>(size));
    std::fill_n(dw, conv.groups * size, T(0));
    for (std::int64_t i = 0; i < conv.n * conv.groups; ++i) {
        const T *image = x + i * conv.xGroup();
        if (!pointwise)
            unfold(conv, offsets, image, columns.data());
        MatrixProduct<T> product;
        product.m = conv.o;
        product.n = conv.rows();
        product.k = conv.window.outCount();
        product.a = dy + i * conv.yGroup();
        product.aRow = product.k;
        product.b = pointwise ? image : columns.data();
        product.bRow = 1;
        product.bColumn = product.k;
        product.c = summand.data();
        product.cRow = product.n;
        multiply(std::move(product));
        T *to = dw + i % conv.groups * size;
        for (std::int64_t j = 0; j < size; ++j)
            to[j] += summand[static_cast<std::size_t>(j)];
    }
}

/// Extents of y as [n, channels, rest].
std::int64_t restOf(const Shape &y)
{
    std::int64_t rest = 1;
    for (std::size_t d = 2; d < y.size(); ++d)
        rest *= y[d];
    return rest;
}

template<typename T> void addBias(const Buffer &y, const Buffer &bias)
{
    const std::int64_t rest = restOf(y.shape);
    T *to = elements<T>(y);
    for (std::int64_t i = 0; i < y.shape[0] * y.shape[1]; ++i) {
        const T value = elements<const T>(bias)[i % y.shape[1]];
        for (std::int64_t j = 0; j < rest; ++j)
            *to++ += value;
    }
}

template<typename T> void sumBias(const Buffer &dy, const Buffer &dbias)
{
    const std::int64_t rest = restOf(dy.shape);
    std::vector<double> sums(static_cast<std::size_t>(dy.shape[1]), 0.0);
    for (std::int64_t i = 0; i < dy.shape[0] * dy.shape[1]; ++i)
        sums[static_cast<std::size_t>(i % dy.shape[1])] += sumOf(elements<const T>(dy) + i * rest, rest);
    storeSums<T>(sums, dbias);
}

Result<void> convForward(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0);
    const Buffer *w = findInput(call, 1);
    const Buffer *bias = findInput(call, 2);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (x == nullptr || w == nullptr)
        return missingSlot(call, "its input or its weight");
    const bool transposed = call.op->kind == OperatorKind::ConvTranspose;
    const Convolution conv =
        transposed ? convolutionOf(*call.op, *y, *w, *x) : convolutionOf(*call.op, *x, *w, *y);
    return withFloat(call, y->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        if (transposed)
            convolveData(conv, elements<const T>(*x), elements<const T>(*w), elements<T>(*y));
        else
            convolve(conv, elements<const T>(*x), elements<const T>(*w), elements<T>(*y));
        if (bias != nullptr && makesTerm(call, 0, {2}))
            addBias<T>(*y, *bias);
        return {};
    });
}

Result<void> convBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *w = back.input(1);
    const Buffer *dx = back.wanted(0);
    const Buffer *dw = back.wanted(1);
    const Buffer *dbias = back.wanted(2);
    if (dy == nullptr || (dx != nullptr && w == nullptr) || (dw != nullptr && x == nullptr))
        return missingSlot(call, "a gradient, its input or its weight");
    const bool transposed = call.op->kind == OperatorKind::ConvTranspose;
    return withFloat(call, dy->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        // Windows of its neighbours are in the gradient of the part's share, not in what is summed.
        std::vector<std::byte> memory;
        const Buffer own = pieceOf(*dy, ownBox(call, 0), memory);
        if (dx != nullptr) {
            const Convolution conv =
                transposed ? convolutionOf(*call.op, *dy, *w, *dx) : convolutionOf(*call.op, *dx, *w, *dy);
            const auto work = transposed ? convolve<T> : convolveData<T>;
            work(conv, elements<const T>(*dy), elements<const T>(*w), elements<T>(*dx));
        }
        if (dw != nullptr && transposed) {
            convolveWeights(convolutionOf(*call.op, *dy, *dw, *x), elements<const T>(*dy),
                elements<const T>(*x), elements<T>(*dw));
        } else if (dw != nullptr) {
            convolveWeights(convolutionOf(*call.op, *x, *dw, own), elements<const T>(*x),
                elements<const T>(own), elements<T>(*dw));
        }
        if (dbias != nullptr) {
            if (makesTerm(call, 2, {0}))
                sumBias<T>(own, *dbias);
            else
                fillZero(*dbias);
        }
        return {};
    });
}

} // namespace

void addConvKernels(KernelTable &table)
{
    for (const OperatorKind kind : {OperatorKind::Conv, OperatorKind::ConvTranspose}) {
        table.add(kind, Direction::Forward, convForward);
        table.add(kind, Direction::Backward, convBackward);
    }
}

} // namespace planloom
