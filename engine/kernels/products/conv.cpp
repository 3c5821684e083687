#include "engine/base/work_pool.h"
#include "engine/kernels/elements/operand_type.h"
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/movement.h"
#include "engine/kernels/movement/window_plans.h"
#include "engine/kernels/products/blocked_convolution.h"
#include "engine/kernels/products/convolution_onednn.h"
#include "engine/kernels/products/gemm.h"
#include "engine/kernels/reductions/vector_reduce.h"

#include <algorithm>
#include <memory>
#include <type_traits>
#include <vector>

namespace planloom {

namespace {

/// Calls work(begin, end) for stretches of `count` parts, each of about `work` multiplications.
template<typename Work> void forEachShare(std::int64_t count, std::int64_t work, const Work &visit)
{
    forEachStretch(count, std::max<std::int64_t>(1, kWorkOfPiece / std::max<std::int64_t>(1, work)), visit);
}

template<typename T> std::unique_ptr<T[]> scratch(std::int64_t size)
{
    return std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(size));
}

/// Into how many parts to cut the channels of a group: no more than `most`, each with as many rows as a
/// product is worth.
std::int64_t channelParts(const Convolution &conv, std::int64_t most)
{
    constexpr std::int64_t kRows = 128;
    return std::clamp<std::int64_t>(std::min(conv.c, conv.rows() / kRows), 1, most);
}

/// y = w * unfolded x
template<typename T> void convolve(const Convolution &conv, const T *x, const T *w, SumOf<T> *y)
{
    if constexpr (std::is_same_v<T, float>)
        if (convolveWithOneDnn(conv, x, w, y))
            return;
    const BlockedConvolution blocked(conv);
    const std::int64_t work = conv.o * conv.rows() * blocked.mostWindows();
    forEachShare(blocked.blocks() * conv.groups, work, [&](std::int64_t begin, std::int64_t end) {
        const auto columns = scratch<T>(blocked.unfoldedSize(conv.c));
        const auto joined = scratch<SumOf<T>>(blocked.outputsSize());
        for (std::int64_t i = begin; i < end; ++i) {
            const WindowBlock block = blocked.block(i / conv.groups);
            const std::int64_t group = i % conv.groups;
            const auto from = blocked.unfolded(block, group, 0, conv.c, x, columns.get());
            const auto to = blocked.toOutputs(block, group, y, joined.get());
            MatrixProduct<T> product;
            product.m = conv.o;
            product.n = blocked.windowsOf(block);
            product.k = conv.rows();
            product.a = w + group * conv.o * conv.rows();
            product.aRow = product.k;
            product.b = from.data;
            product.bRow = from.stride;
            product.c = to.data;
            product.cRow = to.stride;
            multiply(std::move(product));
            blocked.spreadOutputs(block, group, joined.get(), y);
        }
    });
}

/// dx = w^T * dy, folded back. Windows overlap: a part has all those of its images and channels.
template<typename T> void convolveData(const Convolution &conv, const T *dy, const T *w, SumOf<T> *dx)
{
    if constexpr (std::is_same_v<T, float>)
        if (convolveDataWithOneDnn(conv, dy, w, dx))
            return;
    const BlockedConvolution blocked(conv);
    const std::int64_t groups = blocked.imageBlocks() * conv.groups;
    const std::int64_t parts = channelParts(conv, groups >= 4 ? 1 : 4);
    const std::int64_t channels = (conv.c + parts - 1) / parts;
    const std::int64_t taps = conv.window.kernelCount();
    const std::int64_t plane = conv.window.inCount();
    const std::int64_t work = conv.o * channels * taps * blocked.mostWindows() * blocked.blocksOfImages();
    const bool folds = blocked.unfoldedSize(1) > 0 || blocked.blocksOfImages() == 0;
    forEachShare(groups * parts, work, [&](std::int64_t begin, std::int64_t end) {
        const auto columns = scratch<SumOf<T>>(blocked.unfoldedSize(channels));
        const auto joined = scratch<T>(blocked.outputsSize());
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t from = i % parts * channels;
            const std::int64_t to = std::min(conv.c, from + channels);
            const std::int64_t group = i / parts % conv.groups;
            const std::int64_t images = i / parts / conv.groups;
            if (from >= to)
                continue;
            for (std::int64_t image = images * blocked.imagesOfBlock();
                 folds && image < std::min(conv.n, (images + 1) * blocked.imagesOfBlock()); ++image)
                std::fill_n(dx + (image * conv.groups + group) * conv.xGroup() + from * plane,
                    (to - from) * plane, SumOf<T>(0));
            for (std::int64_t b = 0; b < blocked.blocksOfImages(); ++b) {
                const WindowBlock block = blocked.block(images * blocked.blocksOfImages() + b);
                const auto gradient = blocked.outputs(block, group, dy, joined.get());
                const auto unfolded = blocked.toFold(block, group, from, dx, columns.get());
                MatrixProduct<T> product;
                product.m = (to - from) * taps;
                product.n = blocked.windowsOf(block);
                product.k = conv.o;
                product.a = w + group * conv.o * conv.rows() + from * taps;
                product.aRow = 1;
                product.aColumn = conv.rows();
                product.b = gradient.data;
                product.bRow = gradient.stride;
                product.c = unfolded.data;
                product.cRow = unfolded.stride;
                multiply(std::move(product));
                blocked.foldBack(block, group, from, to, columns.get(), dx);
            }
        }
    });
}

/// dw = sum over windows of dy * (unfolded x)^T. Where channels are too few to be parts, windows are, whose
/// sums are added in their order.
template<typename T> void convolveWeights(const Convolution &conv, const T *x, const T *dy, SumOf<T> *dw)
{
    if constexpr (std::is_same_v<T, float>)
        if (convolveWeightsWithOneDnn(conv, x, dy, dw))
            return;
    const BlockedConvolution blocked(conv);
    const std::int64_t size = conv.groups * conv.o * conv.rows();
    if (blocked.blocks() == 0) {
        std::fill_n(dw, size, SumOf<T>(0));
        return;
    }
    const std::int64_t parts = channelParts(conv, conv.groups >= 8 ? 1 : 8);
    const std::int64_t channels = (conv.c + parts - 1) / parts;
    const std::int64_t taps = conv.window.kernelCount();
    const std::int64_t sums = parts * conv.groups >= 4 ? 1 : std::min<std::int64_t>(4, blocked.blocks());
    const std::int64_t blocks = (blocked.blocks() + sums - 1) / sums;
    std::vector<SumOf<T>> others(static_cast<std::size_t>((sums - 1) * size), SumOf<T>(0));
    const std::int64_t work = conv.o * channels * taps * blocked.mostWindows() * blocks;
    forEachShare(sums * conv.groups * parts, work, [&](std::int64_t begin, std::int64_t end) {
        const auto columns = scratch<T>(blocked.unfoldedSize(channels));
        const auto joined = scratch<T>(blocked.outputsSize());
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t from = i % parts * channels;
            const std::int64_t to = std::min(conv.c, from + channels);
            const std::int64_t group = i / parts % conv.groups;
            const std::int64_t sum = i / parts / conv.groups;
            SumOf<T> *target = (sum == 0 ? dw : others.data() + (sum - 1) * size)
                + group * conv.o * conv.rows() + from * taps;
            const std::int64_t last = std::min(blocked.blocks(), (sum + 1) * blocks);
            for (std::int64_t b = sum * blocks; from < to && b < last; ++b) {
                const WindowBlock block = blocked.block(b);
                const auto gradient = blocked.outputs(block, group, dy, joined.get());
                const auto unfolded = blocked.unfolded(block, group, from, to, x, columns.get());
                MatrixProduct<T> product;
                product.m = conv.o;
                product.n = (to - from) * taps;
                product.k = blocked.windowsOf(block);
                product.a = gradient.data;
                product.aRow = gradient.stride;
                product.b = unfolded.data;
                product.bRow = 1;
                product.bColumn = unfolded.stride;
                product.c = target;
                product.cRow = conv.rows();
                product.accumulate = b > sum * blocks;
                multiply(std::move(product));
            }
        }
    });
    for (std::int64_t sum = 1; sum < sums; ++sum)
        for (std::int64_t i = 0; i < size; ++i)
            dw[i] += others[static_cast<std::size_t>((sum - 1) * size + i)];
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
    const std::int64_t stretch = std::max<std::int64_t>(1, kElementStretch / std::max<std::int64_t>(1, rest));
    forEachStretch(y.shape[0] * y.shape[1], stretch, [&](std::int64_t begin, std::int64_t end) {
        T *to = elements<T>(y) + begin * rest;
        for (std::int64_t i = begin; i < end; ++i) {
            const T value = elements<const T>(bias)[i % y.shape[1]];
            for (std::int64_t j = 0; j < rest; ++j)
                *to++ += value;
        }
    });
}

template<typename T> void sumBias(const Buffer &dy, const Buffer &dbias)
{
    const std::int64_t rest = restOf(dy.shape);
    const std::int64_t channels = dy.shape[1];
    std::vector<double> sums(static_cast<std::size_t>(channels), 0.0);
    const std::int64_t each = std::max<std::int64_t>(1, dy.shape[0] * rest);
    forEachStretch(channels, std::max<std::int64_t>(1, kElementStretch / each),
        [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t n = 0; n < dy.shape[0]; ++n)
                for (std::int64_t c = begin; c < end; ++c)
                    sums[static_cast<std::size_t>(c)] +=
                        sumOf(elements<const T>(dy) + (n * channels + c) * rest, rest);
        });
    storeSums<SumOf<T>>(sums, dbias);
}

template<typename T> void run(const PlannedConvolution &planned, const Buffer &own)
{
    const Buffer &x = *planned.x;
    const Buffer &w = *planned.w;
    const Buffer &y = planned.y != nullptr ? *planned.y : own;
    using Sum = SumOf<T>;
    switch (planned.pass) {
    case ConvolutionPass::Forward:
        return convolve(planned.conv, elements<const T>(x), elements<const T>(w), elements<Sum>(y));
    case ConvolutionPass::OfData:
        return convolveData(planned.conv, elements<const T>(y), elements<const T>(w), elements<Sum>(x));
    case ConvolutionPass::OfWeights:
        return convolveWeights(planned.conv, elements<const T>(x), elements<const T>(y), elements<Sum>(w));
    }
}

Result<void> conv(const KernelCall &call, const ConvolutionPlan &plan)
{
    return withOperand(call, call.inputs[0], [&]<typename T>(T) {
        std::vector<std::byte> memory;
        const Buffer own = plan.dy == nullptr ? Buffer{} : pieceOf(*plan.dy, plan.own.mask, memory);
        for (const PlannedConvolution &planned : plan.products)
            run<T>(planned, own);
        if (plan.bias != nullptr)
            addBias<SumOf<T>>(call.outputs[0], *plan.bias);
        if (plan.addsUpBias)
            sumBias<T>(own, *plan.dbias);
        else if (plan.dbias != nullptr)
            fillZero(*plan.dbias);
    });
}

} // namespace

void addConvKernels(KernelTable &table)
{
    table.add({OperatorKind::Conv, OperatorKind::ConvTranspose}, planned<planConvolution, conv>,
        planned<planConvolution, conv>);
}

} // namespace planloom
