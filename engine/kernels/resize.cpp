#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement.h"

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

double sourceCoordinate(
    const std::string &mode, double position, double scale, std::int64_t in, std::int64_t out)
{
    if (mode == "asymmetric")
        return position / scale;
    if (mode == "align_corners")
        return out > 1 ? position * static_cast<double>(in - 1) / static_cast<double>(out - 1) : 0;
    if (mode == "pytorch_half_pixel" && out <= 1)
        return 0;
    return (position + 0.5) / scale - 0.5;
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

Taps tapsOf(const Operator &op, std::size_t dimension, std::int64_t in, std::int64_t out)
{
    double scale = in == 0 ? 1 : static_cast<double>(out) / static_cast<double>(in);
    const auto found = op.attributes.all().find("scales");
    if (found != op.attributes.all().end()) {
        const auto *scales = std::get_if<std::vector<double>>(&found->second);
        if (scales != nullptr && dimension < scales->size())
            scale = (*scales)[dimension];
    }
    if (in == out && scale == 1.0)
        return {};
    const std::string mode = op.attributes.text("mode", "nearest");
    const std::string coordinates = op.attributes.text("coordinate_transformation_mode", "half_pixel");
    const std::string rounding = op.attributes.text("nearest_mode", "round_prefer_floor");
    const double a = op.attributes.real("cubic_coeff_a", -0.75);
    const auto inside = [in](std::int64_t index) { return std::clamp<std::int64_t>(index, 0, in - 1); };
    Taps taps(static_cast<std::size_t>(out));
    for (std::int64_t i = 0; i < out; ++i) {
        const double at = sourceCoordinate(coordinates, static_cast<double>(i), scale, in, out);
        std::vector<Tap> &here = taps[static_cast<std::size_t>(i)];
        const auto below = static_cast<std::int64_t>(std::floor(at));
        const double rest = at - static_cast<double>(below);
        if (mode == "linear") {
            here = {{inside(below), 1 - rest}, {inside(below + 1), rest}};
        } else if (mode == "cubic") {
            for (std::int64_t j = -1; j <= 2; ++j)
                here.push_back({inside(below + j), cubicWeight(rest - static_cast<double>(j), a)});
        } else {
            here = {{inside(nearest(rounding, at)), 1}};
        }
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

template<typename T> std::vector<double> widened(const Buffer &buffer)
{
    const T *from = elements<const T>(buffer);
    return {from, from + elementCount(buffer)};
}

Result<void> resizeForward(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (x == nullptr)
        return missingSlot(call, "its input");
    return withFloat(call, x->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        std::vector<double> values = widened<T>(*x);
        Shape shape = x->shape;
        for (std::size_t d = 0; d < shape.size(); ++d) {
            const Taps taps = tapsOf(*call.op, d, shape[d], y->shape[d]);
            if (taps.empty())
                continue;
            values = apply(values, axisView(shape, static_cast<std::int64_t>(d)), taps, shape[d], false);
            shape[d] = y->shape[d];
        }
        storeSums<T>(values, *y);
        return {};
    });
}

Result<void> resizeBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *dx = back.wanted(0);
    if (dx == nullptr)
        return {};
    if (dy == nullptr)
        return missingSlot(call, "a gradient");
    return withFloat(call, dx->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        std::vector<double> values = widened<T>(*dy);
        Shape shape = dy->shape;
        for (std::size_t d = shape.size(); d-- > 0;) {
            const Taps taps = tapsOf(*call.op, d, dx->shape[d], shape[d]);
            if (taps.empty())
                continue;
            values = apply(values, axisView(shape, static_cast<std::int64_t>(d)), taps, dx->shape[d], true);
            shape[d] = dx->shape[d];
        }
        storeSums<T>(values, *dx);
        return {};
    });
}

} // namespace

void addResizeKernels(KernelTable &table)
{
    table.add(OperatorKind::Resize, Direction::Forward, resizeForward);
    table.add(OperatorKind::Resize, Direction::Backward, resizeBackward);
}

} // namespace planloom
