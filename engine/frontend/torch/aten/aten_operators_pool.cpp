// Pooling. Windows that the pooling operators have are theirs; others are made of picks at known places.
#include "engine/frontend/torch/aten/aten_formula.h"
#include "engine/frontend/writer/emit_windows.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;
using Made = AtenFormula::Made;

/// Of one dimension, the places that each window covers, in order; those in the padding are left out.
using Windows = std::vector<Integers>;

/// What max_pool and avg_pool have of a call, one number for each of their dimensions.
struct Pool {
    Integers kernel{};
    Integers strides{};
    Integers pads{};
    Integers dilations{};
    bool ceiling = false;

    WrittenWindows windows() const
    {
        Integers both = pads;
        both.insert(both.end(), pads.begin(), pads.end());
        return {kernel, strides, dilations, both};
    }
};

/// Strides are as long as the kernel where none are given.
Result<Pool> poolOf(AtenContext &context, std::size_t count)
{
    Pool pool;
    TRY(pool.kernel, context.perDimension("kernel_size", count, 1));
    TRY(const Integers strides, context.integers("stride", {}));
    TRY(pool.strides,
        strides.empty() ? Result<Integers>(pool.kernel) : context.perDimension("stride", count, 1));
    TRY(pool.pads, context.perDimension("padding", count, 0));
    TRY(pool.dilations, context.perDimension("dilation", count, 1));
    TRY(pool.ceiling, context.flag("ceil_mode", false));
    const auto small = [](std::int64_t value) { return value < 1; };
    if (std::any_of(pool.kernel.begin(), pool.kernel.end(), small)
        || std::any_of(pool.strides.begin(), pool.strides.end(), small)
        || std::any_of(pool.dilations.begin(), pool.dilations.end(), small))
        return context.invalid("its windows are of " + toString(pool.kernel) + ", " + toString(pool.strides)
            + " apart and with a dilation of " + toString(pool.dilations));
    return pool;
}

/// The windows of dimension `d` of a pool over `extent` elements.
Windows windowsOf(const Pool &pool, std::size_t d, std::int64_t extent)
{
    const std::int64_t reach = pool.dilations[d] * (pool.kernel[d] - 1) + 1;
    const std::int64_t room = extent + 2 * pool.pads[d] - reach;
    std::int64_t count = (room + (pool.ceiling ? pool.strides[d] - 1 : 0)) / pool.strides[d] + 1;
    if (pool.ceiling && (count - 1) * pool.strides[d] >= extent + pool.pads[d])
        --count; // it would begin behind the input
    Windows windows(axisIndex(std::max<std::int64_t>(0, room < 0 ? 0 : count)));
    for (std::size_t o = 0; o < windows.size(); ++o) {
        for (std::int64_t k = 0; k < pool.kernel[d]; ++k) {
            const std::int64_t place =
                static_cast<std::int64_t>(o) * pool.strides[d] - pool.pads[d] + k * pool.dilations[d];
            if (place >= 0 && place < extent)
                windows[o].push_back(place);
        }
    }
    return windows;
}

/// `count` windows that together cover `extent` elements, and overlap where it does not divide.
Windows adaptiveWindows(std::int64_t count, std::int64_t extent)
{
    Windows windows(axisIndex(count));
    for (std::int64_t o = 0; o < count; ++o) {
        const std::int64_t begin = o * extent / count;
        const std::int64_t end = ((o + 1) * extent + count - 1) / count;
        Integers &window = windows[axisIndex(o)];
        window.resize(axisIndex(end - begin));
        std::iota(window.begin(), window.end(), begin);
    }
    return windows;
}

/// What pooling over the last dimensions needs: the input, its first pooled dimension, and windows of each.
struct Windowed {
    TensorId x{};
    std::int64_t first = 0;
    std::vector<Windows> windows{};

    Shape outputShape(const Shape &input) const
    {
        Shape shape(input.begin(), input.begin() + first);
        for (const Windows &own : windows)
            shape.push_back(static_cast<std::int64_t>(own.size()));
        return shape;
    }
};

Result<void> checkWindows(AtenContext &context, const Windowed &windowed)
{
    for (const Windows &own : windowed.windows) {
        const bool hasEmpty =
            std::any_of(own.begin(), own.end(), [](const Integers &w) { return w.empty(); });
        if (own.empty() || hasEmpty)
            return context.invalid("a window covers nothing of its input, which has the shape "
                + toString(context.shapeOf(windowed.x)));
    }
    return {};
}

/// The elements of every window as the last dimension, in their order. Shorter windows repeat their last
/// element, which changes no extreme.
Made windowElements(AtenFormula &f, const Windowed &windowed)
{
    const std::size_t count = windowed.windows.size();
    TensorId x = windowed.x;
    for (std::size_t d = count; d-- > 0;) { // from the last, so that those before keep their places
        const Windows &own = windowed.windows[d];
        std::size_t longest = 0;
        for (const Integers &window : own)
            longest = std::max(longest, window.size());
        Integers places;
        for (const Integers &window : own) {
            for (std::size_t k = 0; k < longest; ++k)
                places.push_back(window[std::min(k, window.size() - 1)]);
        }
        const Shape shape{static_cast<std::int64_t>(own.size()), static_cast<std::int64_t>(longest)};
        TRY(x,
            f.gather(x, f.integers(std::move(places), shape), windowed.first + static_cast<std::int64_t>(d)));
    }
    Integers order(axisIndex(windowed.first));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    for (const std::int64_t part : {0, 1}) { // windows, then their elements
        for (std::size_t d = 0; d < count; ++d)
            order.push_back(windowed.first + 2 * static_cast<std::int64_t>(d) + part);
    }
    TRY(x, f.permute(x, order));
    Shape shape(
        f.shapeOf(x).begin(), f.shapeOf(x).begin() + windowed.first + static_cast<std::int64_t>(count));
    shape.push_back(elementCount(f.shapeOf(x)) / std::max<std::int64_t>(1, elementCount(shape)));
    return f.reshape(x, std::move(shape));
}

/// For every element that `windowElements` makes of one sample, its place in the pooled dimensions as a list.
Made elementPlaces(AtenFormula &f, const Windowed &windowed)
{
    const Shape &shape = f.shapeOf(windowed.x);
    Integers numbers(axisIndex(elementCount(Shape(shape.begin() + windowed.first, shape.end()))));
    std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
    Windowed own = windowed;
    TRY(own.x, f.integers(std::move(numbers), Shape(shape.begin() + windowed.first, shape.end())));
    own.first = 0;
    TRY(const TensorId places, windowElements(f, own));
    return f.reshape(places, {elementCount(f.shapeOf(places))});
}

/// The largest element of every window, the first of equal ones, and its place as result 1.
Result<void> finishLargest(AtenContext &context, const Windowed &windowed)
{
    AtenFormula f(context);
    TRY_VOID(checkWindows(context, windowed));
    const Shape shape = windowed.outputShape(context.shapeOf(windowed.x));
    const auto last = static_cast<std::int64_t>(shape.size());
    TRY(const TensorId elements, windowElements(f, windowed));
    TRY(const TensorId place, f.placeOf(OperatorKind::ArgMax, elements, last));
    TRY_VOID(f.finish(f.reshape(f.pick(elements, place, last), shape)));
    if (!context.wants(1))
        return {};
    const Shape ofSample(shape.begin() + windowed.first, shape.end());
    const std::int64_t size = context.shapeOf(elements).back();
    Integers begins(axisIndex(elementCount(ofSample)));
    for (std::size_t i = 0; i < begins.size(); ++i)
        begins[i] = static_cast<std::int64_t>(i) * size;
    const auto element = f.add(f.reshape(place, shape), f.integers(begins, ofSample));
    return f.finish(f.gather(elementPlaces(f, windowed), element, 0), 1);
}

/// Weighted sums over windows: of each dimension in turn, by a matrix of what each window takes.
Result<void> finishSums(AtenContext &context, const Windowed &windowed, bool means, double factor)
{
    AtenFormula f(context);
    TRY_VOID(checkWindows(context, windowed));
    TensorId x = windowed.x;
    for (std::size_t d = 0; d < windowed.windows.size(); ++d) {
        const Windows &own = windowed.windows[d];
        const std::size_t axis = axisIndex(windowed.first) + d;
        const std::int64_t extent = context.shapeOf(x)[axis];
        const auto count = static_cast<std::int64_t>(own.size());
        std::vector<double> weights(axisIndex(extent * count), 0.0);
        for (std::size_t o = 0; o < own.size(); ++o) {
            for (const std::int64_t place : own[o])
                weights[axisIndex(place * count) + o] +=
                    means ? 1.0 / static_cast<double>(own[o].size()) : 1.0;
        }
        std::string letters(context.shapeOf(x).size(), 'a');
        std::iota(letters.begin(), letters.end(), 'a');
        std::string made = letters;
        made[axis] = 'z';
        const std::string equation = letters + "," + letters[axis] + "z->" + made;
        const auto matrix = f.reals(context.typeOf(x).dataType, weights, {extent, count});
        TRY(x, f.make(OperatorKind::Einsum, {x, matrix}, attributesFrom({{"equation", equation}})));
    }
    return f.finish(factor == 1 ? Made(x) : f.mul(x, factor));
}

/// A pooling by an operator of its own; whether the average counts what is padded matters to that alone.
struct PlainPool {
    OperatorKind kind = OperatorKind::MaxPool;
    WrittenWindows windows{};
    bool roundsUp = false;
    bool countsPads = false;
};

Result<TensorId> emitPool(NodeWriter &writer, TensorId x, const PlainPool &pool)
{
    TRY(Attributes attributes, poolAttributes(writer, x, pool.windows, pool.roundsUp));
    if (pool.kind == OperatorKind::AveragePool)
        attributes.set("count_include_pad", std::int64_t{pool.countsPads ? 1 : 0});
    return writer.make(pool.kind, {x}, std::move(attributes));
}

/// Pools [n c ..]; one sample without a batch becomes a batch of one.
Result<void> finishPooled(AtenContext &context, std::size_t count, TensorId x, const PlainPool &pool)
{
    Shape shape = context.shapeOf(x);
    if (shape.size() != count + 1)
        return context.finishWith(emitPool, x, pool);
    shape.insert(shape.begin(), 1);
    TRY(x, context.reshape(x, std::move(shape), "batch"));
    TRY(const TensorId y, context.part("batched", emitPool, x, pool));
    TRY(x, context.reshape(y, Shape(context.shapeOf(y).begin() + 1, context.shapeOf(y).end()), ""));
    return context.bind(0, x);
}

Result<TensorId> pooledInput(AtenContext &context, std::size_t count)
{
    TRY(const TensorId x, context.tensor("self"));
    const std::size_t rank = context.shapeOf(x).size();
    if (rank != count + 1 && rank != count + 2)
        return context.invalid("its input has the shape " + toString(context.shapeOf(x)) + ", where "
            + std::to_string(count) + " pooled dimensions behind channels were expected");
    return x;
}

Windowed windowedBy(AtenContext &context, TensorId x, const Pool &pool)
{
    const std::size_t count = pool.kernel.size();
    Windowed windowed{x, context.rankOf(x) - static_cast<std::int64_t>(count), {}};
    for (std::size_t d = 0; d < count; ++d)
        windowed.windows.push_back(windowsOf(pool, d, context.shapeOf(x)[axisIndex(windowed.first) + d]));
    return windowed;
}

template<std::size_t count> Result<void> maxPool(AtenContext &context)
{
    TRY(const TensorId x, pooledInput(context, count));
    TRY(const Pool pool, poolOf(context, count));
    if (context.resultCount() > 1 && context.wants(1))
        return finishLargest(context, windowedBy(context, x, pool));
    return finishPooled(context, count, x, {OperatorKind::MaxPool, pool.windows(), pool.ceiling});
}

template<std::size_t count> Result<void> averagePool(AtenContext &context)
{
    TRY(const TensorId x, pooledInput(context, count));
    TRY(const Pool pool, poolOf(context, count));
    TRY(const std::int64_t divisor, context.integer("divisor_override", 0));
    if (divisor != 0)
        return finishSums(context, windowedBy(context, x, pool), false, 1 / static_cast<double>(divisor));
    TRY(const bool include, context.flag("count_include_pad", true));
    return finishPooled(
        context, count, x, {OperatorKind::AveragePool, pool.windows(), pool.ceiling, include});
}

/// Pooling to a given size: windows as ONNX has them where the size divides.
template<std::size_t count, bool isMax> Result<void> adaptivePool(AtenContext &context)
{
    TRY(const TensorId x, pooledInput(context, count));
    TRY(const Integers size, context.perDimension("output_size", count, 1));
    const Shape shape = context.shapeOf(x);
    Windowed windowed{x, context.rankOf(x) - static_cast<std::int64_t>(count), {}};
    Integers axes;
    Integers kernel;
    bool divides = true;
    for (std::size_t d = 0; d < count; ++d) {
        const std::size_t axis = axisIndex(windowed.first) + d;
        if (size[d] < 1)
            return context.invalid("it pools to the size " + toString(size));
        axes.push_back(static_cast<std::int64_t>(axis));
        kernel.push_back(shape[axis] / size[d]);
        divides = divides && shape[axis] % size[d] == 0;
        windowed.windows.push_back(adaptiveWindows(size[d], shape[axis]));
    }
    if (isMax && ((context.resultCount() > 1 && context.wants(1)) || !divides))
        return finishLargest(context, windowed);
    if (!divides)
        return finishSums(context, windowed, true, 1);
    const bool whole = std::all_of(size.begin(), size.end(), [](std::int64_t s) { return s == 1; });
    if (whole && !isMax)
        return context.finishWith(emitReduction, OperatorKind::ReduceMean, x, axes, true, std::string_view{});
    return finishPooled(context, count, x,
        {isMax ? OperatorKind::MaxPool : OperatorKind::AveragePool, WrittenWindows{kernel, kernel}});
}

/// Zeros, with elements at the places that a pool took them from.
template<std::size_t count> Result<void> maxUnpool(AtenContext &context, AtenFormula &f)
{
    TRY(const TensorId x, pooledInput(context, count));
    TRY(const TensorId indices, context.tensor("indices"));
    TRY(const Integers size, context.perDimension("output_size", count, 1));
    const auto axis = context.rankOf(x) - static_cast<std::int64_t>(count);
    Shape shape(context.shapeOf(x).begin(), context.shapeOf(x).begin() + axis);
    Shape lists = shape;
    lists.push_back(elementCount(context.shapeOf(x)) / std::max<std::int64_t>(1, elementCount(shape)));
    Shape made = shape;
    made.push_back(std::accumulate(size.begin(), size.end(), std::int64_t{1}, std::multiplies<>()));
    shape.insert(shape.end(), size.begin(), size.end());
    const auto zeros = f.filled({context.typeOf(x).dataType, made}, 0);
    const auto list =
        f.make(OperatorKind::ScatterElements, {zeros, f.reshape(indices, lists), f.reshape(x, lists)},
            attributesFrom({{"axis", axis}, {"reduction", std::string("none")}}));
    return f.finish(f.reshape(list, std::move(shape)));
}

} // namespace

const AtenHandlers &atenPoolHandlers()
{
    static const AtenHandlers kHandlers = {{"max_pool1d", maxPool<1>}, {"max_pool2d", maxPool<2>},
        {"max_pool3d", maxPool<3>}, {"max_pool1d_with_indices", maxPool<1>},
        {"max_pool2d_with_indices", maxPool<2>}, {"max_pool3d_with_indices", maxPool<3>},
        {"avg_pool1d", averagePool<1>}, {"avg_pool2d", averagePool<2>}, {"avg_pool3d", averagePool<3>},
        {"adaptive_avg_pool1d", adaptivePool<1, false>}, {"adaptive_avg_pool2d", adaptivePool<2, false>},
        {"adaptive_avg_pool3d", adaptivePool<3, false>}, {"_adaptive_avg_pool2d", adaptivePool<2, false>},
        {"_adaptive_avg_pool3d", adaptivePool<3, false>}, {"adaptive_max_pool1d", adaptivePool<1, true>},
        {"adaptive_max_pool2d", adaptivePool<2, true>}, {"adaptive_max_pool3d", adaptivePool<3, true>},
        {"max_unpool2d", formula<maxUnpool<2>>}, {"max_unpool3d", formula<maxUnpool<3>>}};
    return kHandlers;
}

} // namespace planloom
