#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_plan.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/movement.h"

#include <algorithm>
#include <cmath>
#include <variant>
#include <vector>

namespace planloom {

namespace {

/// One input element that an output position reads, with its weight.
struct Tap {
    std::int64_t index = 0;
    double weight = 1;
};

/// The taps of every output position along one dimension; empty where the dimension goes through.
using Taps = std::vector<std::vector<Tap>>;

/// One dimension of a Resize.
struct ResizeAxis {
    std::int64_t in = 0;
    std::int64_t out = 0;
    double scale = 1;
    double begin = 0; ///< Of the region that is cropped, as a fraction.
    double end = 1;

    bool goesThrough() const { return in == out && scale == 1.0 && begin == 0 && end == 1; }
};

/// Number `at` of attribute `name`; `fallback` where there is none.
double resizeNumber(const Operator &op, const char *name, std::size_t at, double fallback)
{
    const auto found = op.attributes.all().find(name);
    const auto *list =
        found == op.attributes.all().end() ? nullptr : std::get_if<std::vector<double>>(&found->second);
    return list != nullptr && at < list->size() ? (*list)[at] : fallback;
}

ResizeAxis resizeAxis(
    const Operator &op, std::size_t dimension, std::size_t rank, std::int64_t in, std::int64_t out)
{
    const double usual = in == 0 ? 1 : static_cast<double>(out) / static_cast<double>(in);
    return {in, out, resizeNumber(op, "scales", dimension, usual), resizeNumber(op, "roi", dimension, 0),
        resizeNumber(op, "roi", rank + dimension, 1)};
}

double sourceCoordinate(const std::string &mode, double position, const ResizeAxis &axis)
{
    const auto in = static_cast<double>(axis.in);
    const auto out = static_cast<double>(axis.out);
    if (mode == "tf_half_pixel_for_nn")
        return static_cast<double>(
            static_cast<float>((position + 0.5) / axis.scale)); // as ONNX Runtime rounds
    if (mode == "asymmetric")
        return position / axis.scale;
    if (mode == "align_corners") { // of the extent before it was rounded, as ONNX's own tests have it
        const double last = axis.scale * in - 1;
        return axis.out > 1 && last > 0 ? position * (in - 1) / last : 0;
    }
    if (mode == "tf_crop_and_resize")
        return axis.out > 1
            ? axis.begin * (in - 1) + position * (axis.end - axis.begin) * (in - 1) / (out - 1)
            : 0.5 * (axis.begin + axis.end) * (in - 1);
    if (mode == "pytorch_half_pixel" && axis.out <= 1)
        return 0;
    // The middle of what is shown stays the middle, though the extent was rounded.
    const double moved = mode == "half_pixel_symmetric" ? in / 2 * (1 - out / (axis.scale * in)) : 0.0;
    return moved + (position + 0.5) / axis.scale - 0.5;
}

std::int64_t nearest(const std::string &mode, double coordinate)
{
    if (mode == "floor")
        return static_cast<std::int64_t>(std::floor(coordinate));
    if (mode == "ceil")
        return static_cast<std::int64_t>(std::ceil(coordinate));
    if (mode == "round_prefer_ceil")
        return static_cast<std::int64_t>(std::floor(coordinate + 0.5));
    return static_cast<std::int64_t>(std::ceil(coordinate - 0.5));
}

/// Keys, Cubic Convolution Interpolation for Digital Image Processing (1981), with its free parameter a.
double cubicWeight(double distance, double a)
{
    const double d = std::fabs(distance);
    if (d <= 1)
        return ((a + 2) * d - (a + 3)) * d * d + 1;
    if (d < 2)
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    return 0;
}

/// Weights of the elements around a place, which lies `rest` behind element `below`. Where an image shrinks,
/// `narrow` below 1 makes the filter as wide as an output element (antialiasing), and weights add up to 1.
std::vector<Tap> filterTaps(bool cubic, double a, std::int64_t below, double rest, double narrow)
{
    std::vector<Tap> taps;
    const double radius = (cubic ? 2 : 1) / narrow;
    const auto first = static_cast<std::int64_t>(std::floor(-radius)) + 1;
    const auto last = static_cast<std::int64_t>(std::ceil(radius));
    double sum = 0;
    for (std::int64_t j = first; j <= last; ++j) {
        const double distance = (rest - static_cast<double>(j)) * narrow;
        const double weight = cubic ? cubicWeight(distance, a) : std::max(0.0, 1 - std::fabs(distance));
        taps.push_back({below + j, weight});
        sum += weight;
    }
    for (Tap &tap : taps)
        tap.weight /= narrow < 1 ? sum : 1.0;
    return taps;
}

/// Elements outside of the input are those at its border; or, where `excluded`, have no weight.
void bound(std::vector<Tap> &taps, std::int64_t in, bool excluded)
{
    if (excluded) {
        taps.erase(std::remove_if(taps.begin(), taps.end(),
                       [in](const Tap &tap) { return tap.index < 0 || tap.index >= in; }),
            taps.end());
        double sum = 0;
        for (const Tap &tap : taps)
            sum += tap.weight;
        for (Tap &tap : taps)
            tap.weight /= sum;
    }
    for (Tap &tap : taps)
        tap.index = std::clamp<std::int64_t>(tap.index, 0, in - 1);
}

Taps tapsOf(const Operator &op, const ResizeAxis &axis)
{
    if (axis.goesThrough())
        return {};
    const std::string mode = op.attributes.text("mode", "nearest");
    const std::string coordinates = op.attributes.text("coordinate_transformation_mode", "half_pixel");
    const std::string rounding = op.attributes.text("nearest_mode", "round_prefer_floor");
    const double a = op.attributes.real("cubic_coeff_a", -0.75);
    const double narrow = op.attributes.integer("antialias") != 0 ? std::min(1.0, axis.scale) : 1.0;
    const bool crops = coordinates == "tf_crop_and_resize";
    Taps taps(static_cast<std::size_t>(axis.out));
    for (std::int64_t i = 0; i < axis.out; ++i) {
        const double at = sourceCoordinate(coordinates, static_cast<double>(i), axis);
        std::vector<Tap> &here = taps[static_cast<std::size_t>(i)];
        if (crops && (at < 0 || at > static_cast<double>(axis.in - 1)))
            continue; // the value for what lies outside
        const auto below = static_cast<std::int64_t>(std::floor(at));
        const double rest = at - static_cast<double>(below);
        if (mode == "linear" || mode == "cubic")
            here = filterTaps(mode == "cubic", a, below, rest, narrow);
        else
            here = {{nearest(rounding, at), 1}};
        bound(here, axis.in, op.attributes.integer("exclude_outside") != 0);
    }
    return taps;
}

/// Interpolates along one dimension; or, `transposed`, spreads gradients back along it.
std::vector<double> apply(
    const std::vector<double> &from, const AxisView &wide, const Taps &taps, std::int64_t in, bool transposed)
{
    const auto out = static_cast<std::int64_t>(taps.size());
    std::vector<double> to(static_cast<std::size_t>(wide.outer * (transposed ? in : out) * wide.inner), 0.0);
    for (std::int64_t o = 0; o < wide.outer; ++o) {
        for (std::int64_t i = 0; i < out; ++i) {
            for (const Tap &tap : taps[static_cast<std::size_t>(i)]) {
                const std::int64_t left = (o * out + i) * wide.inner;
                const std::int64_t right = (o * in + tap.index) * wide.inner;
                const double *source = from.data() + (transposed ? left : right);
                double *target = to.data() + (transposed ? right : left);
                for (std::int64_t j = 0; j < wide.inner; ++j)
                    target[j] += tap.weight * source[j];
            }
        }
    }
    return to;
}

/// Positions that read nothing are `value`.
void fillOutside(std::vector<double> &values, const AxisView &view, const Taps &taps, double value)
{
    const auto out = static_cast<std::int64_t>(taps.size());
    for (std::int64_t o = 0; o < view.outer; ++o) {
        for (std::int64_t i = 0; i < out; ++i) {
            if (taps[static_cast<std::size_t>(i)].empty())
                std::fill_n(values.begin() + (o * out + i) * view.inner, view.inner, value);
        }
    }
}

template<typename T> std::vector<double> widened(const Buffer &buffer)
{
    const T *from = elements<const T>(buffer);
    return {from, from + elementCount(buffer)};
}

Result<void> resizeForward(const KernelCall &call, const Buffer &x, const Buffer &y)
{
    return withFloat(call, x.dataType, [&]<typename T>(T) {
        std::vector<double> values = widened<T>(x);
        Shape shape = x.shape;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const Taps taps = tapsOf(*call.op, resizeAxis(*call.op, d, shape.size(), shape[d], y.shape[d]));
            if (taps.empty())
                continue;
            const AxisView view = axisView(shape, static_cast<std::int64_t>(d));
            values = apply(values, view, taps, shape[d], false);
            shape[d] = y.shape[d];
            // Only part 0 of a sum of values has what is constant.
            if (call.value.index == 0)
                fillOutside(values, view, taps, call.op->attributes.real("extrapolation_value", 0));
        }
        storeSums<T>(values, y);
    });
}

Result<void> resizeBackward(const KernelCall &call, const Buffer &dy, const Buffer &dx)
{
    return withFloat(call, dx.dataType, [&]<typename T>(T) {
        std::vector<double> values = widened<T>(dy);
        Shape shape = dy.shape;
        for (std::size_t d = shape.size(); d-- > 0;) {
            const Taps taps = tapsOf(*call.op, resizeAxis(*call.op, d, shape.size(), dx.shape[d], shape[d]));
            if (taps.empty())
                continue;
            values = apply(values, axisView(shape, static_cast<std::int64_t>(d)), taps, dx.shape[d], true);
            shape[d] = dx.shape[d];
        }
        storeSums<T>(values, dx);
    });
}

} // namespace

void addResizeKernels(KernelTable &table)
{
    table.add({OperatorKind::Resize}, mapped<resizeForward>, mapped<resizeBackward>);
}

} // namespace planloom
