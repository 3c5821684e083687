// Discrete Fourier transforms as products with matrices of cosines and sines, of real and imaginary parts.
#include "engine/frontend/torch/aten/aten_formula.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

constexpr std::int64_t kLargestFactor = 1024; ///< Of which a matrix is written out.
constexpr double kPi = 3.14159265358979323846;

/// cos and sin of 2 pi k / n, exact where they are 0, 1 or -1.
std::pair<double, double> unitRoot(std::int64_t k, std::int64_t n)
{
    k %= n;
    if ((4 * k) % n == 0) {
        const std::int64_t quarter = 4 * k / n;
        return {quarter == 0   ? 1.0
                : quarter == 2 ? -1.0
                               : 0.0,
            quarter == 1       ? 1.0
                : quarter == 3 ? -1.0
                               : 0.0};
    }
    const double angle = 2 * kPi * static_cast<double>(k) / static_cast<double>(n);
    return {std::cos(angle), std::sin(angle)};
}

/// A known matrix by its elements.
template<typename Element>
TensorId matrixOf(
    AtenContext &context, DataType type, std::int64_t rows, std::int64_t columns, Element element)
{
    std::vector<double> values;
    values.reserve(axisIndex(rows * columns));
    for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t column = 0; column < columns; ++column)
            values.push_back(element(row, column));
    }
    return context.graph().addConstant(realTensor(type, values, {rows, columns}));
}

/// A transform along one dimension.
struct Transform {
    std::int64_t size = 1;
    double sign = -1; ///< Of the exponent: -1 forward, 1 back.
    double scale = 1;
};

/// a x + b y, where invalid tensors are 0 and so are their products.
Result<TensorId> joinedProducts(AtenContext &context, OperatorKind kind, TensorId a, TensorId x, TensorId b,
    TensorId y, std::string_view suffix)
{
    TensorId first;
    TensorId second;
    const std::string name(suffix);
    if (a) {
        TRY(first, context.make(OperatorKind::MatMul, {a, x}, {}, {}, name + "_of_real"));
    }
    if (b) {
        TRY(second, context.make(OperatorKind::MatMul, {b, y}, {}, {}, name + "_of_imaginary"));
    }
    if (!first || !second)
        return first ? first : second;
    return context.make(kind, {first, second}, {}, {}, suffix);
}

/// Along the last dimension, from n numbers to the first `made` of n.
Result<AtenComplex> directTransform(
    AtenContext &context, const AtenComplex &z, const Transform &transform, std::int64_t made)
{
    const DataType type = context.typeOf(z.real).dataType;
    const std::int64_t n = transform.size;
    const TensorId cosines = matrixOf(context, type, n, made,
        [&](std::int64_t j, std::int64_t k) { return transform.scale * unitRoot(j * k, n).first; });
    const TensorId sines = matrixOf(context, type, n, made, [&](std::int64_t j, std::int64_t k) {
        return transform.scale * transform.sign * unitRoot(j * k, n).second;
    });
    AtenComplex y;
    TRY(y.real, joinedProducts(context, OperatorKind::Sub, z.real, cosines, z.imaginary, sines, "real"));
    TRY(y.imaginary,
        joinedProducts(context, OperatorKind::Add, z.real, sines, z.imaginary, cosines, "imaginary"));
    return y;
}

/// The divisor of n next to its root; 1 of a prime.
std::int64_t middleDivisor(std::int64_t n)
{
    auto divisor = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n)));
    while (n % divisor != 0)
        --divisor;
    return divisor;
}

/// Does to either part what `function` does to a tensor.
template<typename Function> Result<AtenComplex> eachPart(const AtenComplex &z, Function function)
{
    AtenComplex made;
    TRY(made.real, function(z.real));
    if (z.imaginary) {
        TRY(made.imaginary, function(z.imaginary));
    }
    return made;
}

Shape withLast(Shape shape, std::initializer_list<std::int64_t> last)
{
    shape.pop_back();
    shape.insert(shape.end(), last);
    return shape;
}

Integers lastTwoSwapped(std::int64_t rank)
{
    Integers order(axisIndex(rank));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::swap(order[axisIndex(rank) - 1], order[axisIndex(rank) - 2]);
    return order;
}

/// Along the last dimension, all n numbers. With n = a b, of which element j is b j1 + j2 and result k is
/// k1 + a k2: transforms of a numbers each, turned by roots of n, then transforms of b numbers each (Cooley
/// and Tukey).
Result<AtenComplex> wholeTransform(AtenContext &context, const AtenComplex &z, const Transform &transform)
{
    const std::int64_t n = transform.size;
    if (n <= kLargestFactor)
        return directTransform(context, z, transform, n);
    const std::int64_t a = middleDivisor(n);
    const std::int64_t b = n / a;
    if (a == 1)
        return context.unsupported("a transform of " + std::to_string(n) + " numbers, a prime above "
                + std::to_string(kLargestFactor) + ", is not computed",
            "pad to a size with small factors: torch.fft.rfft(x, n=" + std::to_string(n + 1) + ")");
    const DataType type = context.typeOf(z.real).dataType;
    const Shape shape = context.shapeOf(z.real);
    const std::int64_t rank = context.rankOf(z.real) + 1;
    TRY(AtenComplex rows, eachPart(z, [&](TensorId x) -> Result<TensorId> {
        TRY(const TensorId apart, context.reshape(x, withLast(shape, {a, b}), "apart"));
        return context.permute(apart, lastTwoSwapped(rank), "columns");
    }));
    TRY(rows, wholeTransform(context, rows, {a, transform.sign, transform.scale}));
    const auto root = [&](bool isSine) {
        return matrixOf(context, type, b, a, [&](std::int64_t j, std::int64_t k) {
            const auto [cosine, sine] = unitRoot(j * k, n);
            return isSine ? transform.sign * sine : cosine;
        });
    };
    TRY(const AtenComplex turned,
        context.otherComplex(
            "mul", {{"self", rows}, {"other", AtenComplex{root(false), root(true)}}}, "turned"));
    TRY(AtenComplex columns,
        eachPart(turned, [&](TensorId x) { return context.permute(x, lastTwoSwapped(rank), "rows"); }));
    TRY(columns, wholeTransform(context, columns, {b, transform.sign, 1}));
    return eachPart(columns, [&](TensorId x) -> Result<TensorId> {
        TRY(const TensorId swapped, context.permute(x, lastTwoSwapped(rank), "order"));
        return context.reshape(swapped, shape, "joined");
    });
}

/// The first `made` of the n results.
Result<AtenComplex> transformLast(
    AtenContext &context, const AtenComplex &z, const Transform &transform, std::int64_t made)
{
    if (transform.size <= kLargestFactor)
        return directTransform(context, z, transform, made);
    TRY(const AtenComplex whole, wholeTransform(context, z, transform));
    return eachPart(
        whole, [&](TensorId x) { return context.slice(x, context.rankOf(x) - 1, 0, made, 1, "half"); });
}

/// x with so many zeros before each dimension, then behind each.
Result<TensorId> withZeros(AtenContext &context, TensorId x, const Integers &pads, std::string_view suffix)
{
    return context.part(suffix, emitPad, x, pads, "constant", Number::ofReal(0));
}

/// Real numbers from the first n / 2 + 1 of n, of which the others are the conjugates. Imaginary parts of the
/// first and of the middle one are not read.
Result<TensorId> realFromHalf(AtenContext &context, const AtenComplex &z, const Transform &transform)
{
    const DataType type = context.typeOf(z.real).dataType;
    const std::int64_t n = transform.size;
    const std::int64_t half = n / 2 + 1;
    const auto weight = [&](std::int64_t k) { return transform.scale * (k == 0 || 2 * k == n ? 1.0 : 2.0); };
    if (n > kLargestFactor) { // both halves: twice the real part of what the weighted half makes
        const TensorId weights = matrixOf(context, type, 1, half,
            [&](std::int64_t, std::int64_t k) { return weight(k) / transform.scale; });
        const TensorId own = matrixOf(context, type, 1, half,
            [&](std::int64_t, std::int64_t k) { return weight(k) == transform.scale ? 0.0 : 2.0; });
        Integers pads(2 * axisIndex(context.rankOf(z.real)), 0);
        pads.back() = n - half;
        AtenComplex whole = z;
        for (const auto &[part, factors] :
            {std::pair(&whole.real, weights), std::pair(&whole.imaginary, own)}) {
            TRY(*part, context.make(OperatorKind::Mul, {*part, factors}, {}, {}, "weighted"));
            TRY(*part, withZeros(context, *part, pads, "whole"));
        }
        TRY(const AtenComplex made, wholeTransform(context, whole, transform));
        return made.real;
    }
    const TensorId cosines = matrixOf(context, type, half, n,
        [&](std::int64_t k, std::int64_t j) { return weight(k) * unitRoot(j * k, n).first; });
    const TensorId sines = matrixOf(context, type, half, n, [&](std::int64_t k, std::int64_t j) {
        return 2 * k == n ? 0.0 : transform.sign * weight(k) * unitRoot(j * k, n).second;
    });
    return joinedProducts(context, OperatorKind::Sub, z.real, cosines, z.imaginary, sines, "real");
}

/// x with dimension `axis` last, or from there back to its place.
Result<TensorId> withAxisLast(AtenContext &context, TensorId x, std::int64_t axis, bool back)
{
    const std::int64_t last = context.rankOf(x) - 1;
    if (axis == last)
        return x;
    return context.other("movedim",
        {{"self", x}, {"source", back ? last : axis}, {"destination", back ? axis : last}},
        back ? "in_place" : "last");
}

/// Cut or filled up with zeros to `size` along the last dimension.
Result<TensorId> resizedLast(AtenContext &context, TensorId x, std::int64_t size)
{
    const std::int64_t last = context.rankOf(x) - 1;
    const std::int64_t extent = context.shapeOf(x).back();
    if (size < extent)
        return context.slice(x, last, 0, size, 1, "cut");
    if (size == extent)
        return x;
    Integers pads(2 * axisIndex(last + 1), 0);
    pads.back() = size - extent;
    return withZeros(context, x, pads, "filled");
}

enum class Spectrum : std::uint8_t { Whole, HalfOfReal, RealOfHalf };

/// One dimension of a transform of `z`; of RealOfHalf the imaginary part is invalid.
Result<AtenComplex> transformAlong(
    AtenContext &context, const AtenComplex &z, std::int64_t axis, const Transform &transform, Spectrum kind)
{
    const std::int64_t read = kind == Spectrum::RealOfHalf ? transform.size / 2 + 1 : transform.size;
    TRY(const AtenComplex last, eachPart(z, [&](TensorId x) -> Result<TensorId> {
        TRY(const TensorId moved, withAxisLast(context, x, axis, false));
        return resizedLast(context, moved, read);
    }));
    AtenComplex made;
    if (kind == Spectrum::RealOfHalf) {
        TRY(made.real, realFromHalf(context, last, transform));
    } else {
        TRY(made,
            transformLast(context, last, transform,
                kind == Spectrum::HalfOfReal ? transform.size / 2 + 1 : transform.size));
    }
    return eachPart(made, [&](TensorId x) { return withAxisLast(context, x, axis, true); });
}

/// Dimensions in the order in which they are transformed, with their sizes.
struct TransformAxes {
    Integers axes{};
    Integers sizes{};
    double count() const
    {
        return std::accumulate(sizes.begin(), sizes.end(), 1.0,
            [](double all, std::int64_t size) { return all * static_cast<double>(size); });
    }
};

Result<AtenComplex> transformed(
    AtenContext &context, AtenComplex z, const TransformAxes &axes, double sign, double scale, Spectrum kind)
{
    // A half lies along the last one: of real numbers it comes first, back to them it goes last.
    Integers order(axes.axes.size());
    std::iota(order.begin(), order.end(), std::int64_t{0});
    if (kind == Spectrum::HalfOfReal)
        std::reverse(order.begin(), order.end());
    const auto half = static_cast<std::int64_t>(order.size()) - 1;
    for (std::size_t i = 0; i < order.size(); ++i) {
        const std::size_t at = axisIndex(order[i]);
        const Transform transform{axes.sizes[at], sign, i == 0 ? scale : 1};
        TRY(z,
            transformAlong(context, z, axes.axes[at], transform, order[i] == half ? kind : Spectrum::Whole));
    }
    return z;
}

Result<AtenComplex> transformOperand(AtenContext &context)
{
    if (const auto *complex = std::get_if<AtenComplex>(&context.value("self")))
        return *complex;
    TRY(const TensorId x, context.tensor("self"));
    TRY(const TensorId real, context.cast(x, floatingTypeOf(context.typeOf(x).dataType)));
    return AtenComplex{real, {}};
}

Result<void> finishTransform(AtenContext &context, AtenComplex z, Spectrum kind)
{
    if (kind == Spectrum::RealOfHalf)
        return context.bind(0, z.real);
    return context.bindComplex(0, z);
}

// --- torch.fft ---------------------------------------------------------------------------------------------

/// Arguments n and dim, or s and dim, of functions of `dimensions` dimensions (0 for any number of them).
Result<TransformAxes> axesOf(AtenContext &context, const Shape &shape, std::size_t dimensions, Spectrum kind)
{
    const auto rank = static_cast<std::int64_t>(shape.size());
    const char *sizeName = context.given("n") ? "n" : "s";
    TRY(const Integers sizes, context.integers(sizeName, {}));
    TransformAxes axes;
    const std::size_t count = dimensions != 0 ? dimensions : !sizes.empty() ? sizes.size() : shape.size();
    Integers fallback(count);
    std::iota(fallback.begin(), fallback.end(), rank - static_cast<std::int64_t>(count));
    TRY(axes.axes, context.dimensions("dim", rank, fallback));
    for (std::size_t i = 0; i < axes.axes.size(); ++i) {
        const std::int64_t own = shape[axisIndex(axes.axes[i])];
        const bool isHalf = kind == Spectrum::RealOfHalf && i + 1 == axes.axes.size();
        const bool isGiven = i < sizes.size() && sizes[i] != -1;
        axes.sizes.push_back(isGiven ? sizes[i] : isHalf ? 2 * (own - 1) : own);
        if (axes.sizes.back() < 1)
            return context.invalid("it transforms " + std::to_string(axes.sizes.back()) + " numbers");
    }
    return axes;
}

/// @param back  transforms whose exponents are positive, and which divide by n unless `norm` says otherwise
Result<void> transformAs(AtenContext &context, std::size_t dimensions, Spectrum kind, bool back)
{
    TRY(AtenComplex z, transformOperand(context));
    TRY(const TransformAxes axes, axesOf(context, context.shapeOf(z.real), dimensions, kind));
    TRY(const std::string norm, context.text("norm", "backward"));
    if (norm != "backward" && norm != "ortho" && norm != "forward")
        return context.invalid("argument 'norm' is '" + norm + "'");
    const bool divides = norm == (back ? "backward" : "forward");
    const double scale = norm == "ortho" ? 1 / std::sqrt(axes.count()) : divides ? 1 / axes.count() : 1;
    TRY(const AtenComplex made, transformed(context, z, axes, back ? 1 : -1, scale, kind));
    return finishTransform(context, made, kind);
}

template<std::size_t dimensions, Spectrum kind, bool back> Result<void> fourier(AtenContext &context)
{
    return transformAs(context, dimensions, kind, back);
}

/// hfft: the real numbers whose inverse transform begins so: exponents of irfft, of the conjugates.
Result<void> hermitian(AtenContext &context)
{
    TRY(AtenComplex z, transformOperand(context));
    AtenArguments arguments = context.arguments();
    if (z.imaginary) {
        TRY(z.imaginary, context.make(OperatorKind::Neg, {z.imaginary}, {}, {}, "conjugate"));
    }
    arguments["self"] = z;
    TRY(const std::string norm, context.text("norm", "backward"));
    arguments["norm"] = std::string(norm == "backward" ? "forward" : norm == "forward" ? "backward" : norm);
    TRY(const TensorId y, context.other("fft_irfft", std::move(arguments), "real"));
    return context.bind(0, y);
}

/// fftshift and its inverse: the zero frequency in the middle.
template<bool back> Result<void> shifted(AtenContext &context, TensorId x)
{
    const Shape shape = context.shapeOf(x);
    Integers all(shape.size());
    std::iota(all.begin(), all.end(), std::int64_t{0});
    TRY(const Integers axes, context.dimensions("dim", context.rankOf(x), all));
    Integers shifts;
    for (const std::int64_t axis : axes) {
        const std::int64_t extent = shape[axisIndex(axis)];
        shifts.push_back(back ? (extent + 1) / 2 : extent / 2);
    }
    TRY(const TensorId y, context.other("roll", {{"self", x}, {"shifts", shifts}, {"dims", axes}}, "rolled"));
    return context.bind(0, y);
}

// --- core ATen ---------------------------------------------------------------------------------------------

/// _fft_r2c, _fft_c2r and _fft_c2c: `normalization` 0 none, 1 by the root, 2 by the number.
template<Spectrum kind> Result<void> coreFourier(AtenContext &context)
{
    TRY(AtenComplex z, transformOperand(context));
    const Shape shape = context.shapeOf(z.real);
    TransformAxes axes;
    TRY(axes.axes, context.dimensions("dim", context.rankOf(z.real), {}));
    for (const std::int64_t axis : axes.axes)
        axes.sizes.push_back(shape[axisIndex(axis)]);
    if (axes.axes.empty())
        return context.invalid("it transforms no dimension");
    if (kind == Spectrum::RealOfHalf) {
        TRY(axes.sizes.back(), context.integer("last_dim_size"));
    }
    TRY(const std::int64_t normalization, context.integer("normalization", 0));
    TRY(const bool forward, context.flag("forward", kind == Spectrum::HalfOfReal));
    TRY(const bool onesided, context.flag("onesided", true));
    const double count = axes.count();
    const double scale = normalization == 1 ? 1 / std::sqrt(count) : normalization == 2 ? 1 / count : 1;
    const Spectrum made = kind == Spectrum::HalfOfReal && !onesided ? Spectrum::Whole : kind;
    TRY(const AtenComplex y, transformed(context, z, axes, forward ? -1 : 1, scale, made));
    return finishTransform(context, y, made);
}

// --- windows -----------------------------------------------------------------------------------------------

/// The window in the middle of n_fft places; all ones where none is given.
Result<TensorId> windowOf(AtenContext &context, DataType type, std::int64_t size)
{
    TRY(const std::int64_t length, context.integer("win_length", size));
    TRY(TensorId window, context.optionalTensor("window"));
    if (!window) {
        TRY(window, context.filled({type, {length}}, AtenValue(1.0), "window"));
    }
    TRY(window, context.cast(window, type, "window"));
    const std::int64_t before = (size - length) / 2;
    if (length == size)
        return window;
    return withZeros(context, window, {before, size - length - before}, "window");
}

/// Frames of the signal, each times the window, transformed: [.. frequencies frames].
Result<void> shortTime(AtenContext &context)
{
    TRY(TensorId x, context.tensor("self"));
    TRY(const std::int64_t size, context.integer("n_fft"));
    TRY(const std::int64_t hop, context.integer("hop_length", size / 4));
    // Overload stft.center pads unless it is told not to; the plain one has no such argument.
    TRY(const bool center, context.flag("center", context.target().find("stft.center") != std::string::npos));
    TRY(const std::string mode, context.text("pad_mode", "reflect"));
    TRY(const bool normalized, context.flag("normalized", false));
    TRY(const bool onesided, context.flag("onesided", true));
    TRY(const bool asComplex, context.flag("return_complex", false));
    TRY(const bool aligned, context.flag("align_to_window", false));
    if (aligned)
        return context.unsupported("frames that are aligned to the window are not computed");
    const DataType type = context.typeOf(x).dataType;
    TRY(const TensorId window, windowOf(context, type, size));
    if (center) {
        TRY(x,
            context.other(
                "pad", {{"self", x}, {"pad", Integers{size / 2, size / 2}}, {"mode", mode}}, "padded"));
    }
    TRY(TensorId frames,
        context.other("unfold", {{"self", x}, {"dimension", std::int64_t{-1}}, {"size", size}, {"step", hop}},
            "frames"));
    TRY(frames, context.make(OperatorKind::Mul, {frames, window}, {}, {}, "windowed"));
    TRY(const AtenComplex spectrum,
        context.otherComplex(onesided ? "fft_rfft" : "fft_fft",
            {{"self", frames}, {"norm", std::string(normalized ? "ortho" : "backward")}}, "spectrum"));
    TRY(const AtenComplex turned,
        context.otherComplex("transpose",
            {{"self", spectrum}, {"dim0", std::int64_t{-2}}, {"dim1", std::int64_t{-1}}}, "turned"));
    if (asComplex)
        return context.bindComplex(0, turned);
    TRY(const TensorId pairs, context.other("view_as_real", {{"self", turned}}, "pairs"));
    return context.bind(0, pairs);
}

/// Frames laid over one another `hop` apart: [.. frames size] -> [.. hop (frames - 1) + size]
Result<TensorId> laidOver(AtenContext &context, TensorId frames, std::int64_t hop, std::string_view suffix)
{
    Shape shape = context.shapeOf(frames);
    const std::int64_t size = shape.back();
    const std::int64_t count = shape[shape.size() - 2];
    const std::int64_t length = hop * (count - 1) + size;
    Integers places;
    for (std::int64_t frame = 0; frame < count; ++frame) {
        for (std::int64_t i = 0; i < size; ++i)
            places.push_back(frame * hop + i);
    }
    shape.pop_back();
    shape.back() = count * size;
    TRY(const TensorId flat, context.reshape(frames, shape, "flat"));
    shape.back() = length;
    TRY(const TensorId zero,
        context.filled({context.typeOf(frames).dataType, shape}, AtenValue(0.0), "silence"));
    return context.other("index_add",
        {{"self", zero}, {"dim", std::int64_t{-1}}, {"index", context.list(std::move(places))},
            {"source", flat}},
        suffix);
}

/// The signal whose frames have these transforms, as near as can be: frames times the window laid over one
/// another, divided by the sum of the windows' squares.
Result<void> fromShortTime(AtenContext &context)
{
    const auto *spectrum = std::get_if<AtenComplex>(&context.value("self"));
    TRY(const std::int64_t size, context.integer("n_fft"));
    TRY(const std::int64_t hop, context.integer("hop_length", size / 4));
    TRY(const bool center, context.flag("center", true));
    TRY(const bool normalized, context.flag("normalized", false));
    TRY(const bool asComplex, context.flag("return_complex", false));
    TRY(const std::int64_t wanted, context.integer("length", -1));
    if (spectrum == nullptr || asComplex)
        return context.unsupported(
            "complex signals are not computed", "use a onesided spectrum of a real signal");
    TRY(const bool onesided,
        context.flag("onesided",
            context.shapeOf(spectrum->real)[axisIndex(context.rankOf(spectrum->real)) - 2] != size));
    if (!onesided)
        return context.unsupported("spectra with both sides are not computed", "use onesided=True");
    const DataType type = context.typeOf(spectrum->real).dataType;
    TRY(const TensorId window, windowOf(context, type, size));
    TRY(const AtenComplex turned,
        context.otherComplex("transpose",
            {{"self", *spectrum}, {"dim0", std::int64_t{-2}}, {"dim1", std::int64_t{-1}}}, "turned"));
    TRY(TensorId frames,
        context.other("fft_irfft",
            {{"self", turned}, {"n", size}, {"norm", std::string(normalized ? "ortho" : "backward")}},
            "frames"));
    TRY(frames, context.make(OperatorKind::Mul, {frames, window}, {}, {}, "windowed"));
    const std::int64_t count = context.shapeOf(frames)[axisIndex(context.rankOf(frames)) - 2];
    TRY(TensorId signal, laidOver(context, frames, hop, "signal"));
    TRY(TensorId squares, context.make(OperatorKind::Mul, {window, window}, {}, {}, "squares"));
    TRY(squares, context.expand(squares, {count, size}, "all_squares"));
    TRY(TensorId envelope, laidOver(context, squares, hop, "envelope"));
    const std::int64_t begin = center ? size / 2 : 0;
    const std::int64_t whole = hop * (count - 1) + size;
    const std::int64_t end = wanted >= 0 ? std::min(begin + wanted, whole) : whole - begin;
    TRY(signal, context.slice(signal, context.rankOf(signal) - 1, begin, end, 1, "own"));
    TRY(envelope, context.slice(envelope, 0, begin, end, 1, "own_envelope"));
    TRY(signal, context.make(OperatorKind::Div, {signal, envelope}, {}, {}, "divided"));
    if (wanted >= 0) {
        TRY(signal, resizedLast(context, signal, wanted));
    }
    return context.bind(0, signal);
}

} // namespace

const AtenHandlers &atenFourierHandlers()
{
    using enum Spectrum;
    static const AtenHandlers kHandlers = {{"fft_fft", fourier<1, Whole, false>},
        {"fft_ifft", fourier<1, Whole, true>}, {"fft_rfft", fourier<1, HalfOfReal, false>},
        {"fft_irfft", fourier<1, RealOfHalf, true>}, {"fft_fft2", fourier<2, Whole, false>},
        {"fft_ifft2", fourier<2, Whole, true>}, {"fft_rfft2", fourier<2, HalfOfReal, false>},
        {"fft_irfft2", fourier<2, RealOfHalf, true>}, {"fft_fftn", fourier<0, Whole, false>},
        {"fft_ifftn", fourier<0, Whole, true>}, {"fft_rfftn", fourier<0, HalfOfReal, false>},
        {"fft_irfftn", fourier<0, RealOfHalf, true>}, {"fft_hfft", hermitian},
        {"fft_ihfft", fourier<1, HalfOfReal, true>}, {"fft_fftshift", ofSelf<shifted<false>>},
        {"fft_ifftshift", ofSelf<shifted<true>>}, {"_fft_r2c", coreFourier<HalfOfReal>},
        {"_fft_c2r", coreFourier<RealOfHalf>}, {"_fft_c2c", coreFourier<Whole>}, {"stft", shortTime},
        {"istft", fromShortTime}};
    return kHandlers;
}

} // namespace planloom
