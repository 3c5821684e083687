#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_plan.h"
#include "engine/kernels/kernel_table.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace planloom {

namespace {

// --- LpNormalize: y = x / |x|_p along an axis --------------------------------------------------------------

template<typename T> double normOf(const T *x, std::int64_t count, std::int64_t step, double p)
{
    double sum = 0;
    for (std::int64_t j = 0; j < count; ++j) {
        const double size = std::fabs(static_cast<double>(x[j * step]));
        sum += p == 1 ? size : p == 2 ? size * size : std::pow(size, p);
    }
    return p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::pow(sum, 1 / p);
}

Result<void> lpForward(const KernelCall &call, const Buffer &x, const Buffer &y)
{
    const AxisView view = axisView(x.shape, call.op->attributes.integer("axis"));
    const auto p = static_cast<double>(call.op->attributes.integer("p", 2));
    return withFloat(call, x.dataType, [&]<typename T>(T) {
        forEachLine(view, [&](std::int64_t, std::int64_t first, std::int64_t step) {
            const T *from = elements<const T>(x) + first;
            const double norm = normOf(from, view.extent, step, p);
            for (std::int64_t j = 0; j < view.extent; ++j)
                elements<T>(y)[first + j * step] =
                    norm == 0 ? T(0) : static_cast<T>(static_cast<double>(from[j * step]) / norm);
        });
    });
}

/// dx = dy / n - sum(dy x) / n^2 dn/dx, with dn/dx = sign(x) (|x| / n)^(p - 1)
Result<void> lpBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *dx = back.wanted(0);
    if (dx == nullptr)
        return {};
    if (dy == nullptr || x == nullptr)
        return missingSlot(call, "a gradient or its saved input");
    const AxisView view = axisView(x->shape, call.op->attributes.integer("axis"));
    const auto p = static_cast<double>(call.op->attributes.integer("p", 2));
    return withFloat(call, x->dataType, [&]<typename T>(T) {
        forEachLine(view, [&](std::int64_t, std::int64_t first, std::int64_t step) {
            const T *from = elements<const T>(*x) + first;
            const T *gradient = elements<const T>(*dy) + first;
            T *to = elements<T>(*dx) + first;
            const double norm = normOf(from, view.extent, step, p);
            double dot = 0;
            for (std::int64_t j = 0; j < view.extent; ++j)
                dot += static_cast<double>(gradient[j * step]) * static_cast<double>(from[j * step]);
            for (std::int64_t j = 0; j < view.extent; ++j) {
                const auto value = static_cast<double>(from[j * step]);
                const double share = p == 1 ? 1.0 : std::pow(std::fabs(value) / norm, p - 1);
                const double slope = value > 0 ? share : value < 0 ? -share : 0.0;
                to[j * step] = norm == 0 ? T(0)
                                         : static_cast<T>(static_cast<double>(gradient[j * step]) / norm
                                             - dot / (norm * norm) * slope);
            }
        });
    });
}

// --- LocalResponseNorm: y = x / d^beta, d = bias + alpha / size * (sum of squares over neighbouring
// channels) --

/// x [n c ..] as [n, c, rest], the window of neighbours and the parameters.
struct Response {
    std::int64_t n = 1;
    std::int64_t c = 1;
    std::int64_t rest = 1;
    std::int64_t below = 0;
    std::int64_t above = 0;
    double factor = 0; ///< alpha / size
    double beta = 0.75;
    double bias = 1;
};

Response responseOf(const Operator &op, const Shape &x)
{
    Response r;
    r.n = x[0];
    r.c = x[1];
    for (std::size_t d = 2; d < x.size(); ++d)
        r.rest *= x[d];
    const std::int64_t size = op.attributes.integer("size", 1);
    r.below = (size - 1) / 2;
    r.above = size - 1 - r.below;
    r.factor = op.attributes.real("alpha", 1e-4) / static_cast<double>(size);
    r.beta = op.attributes.real("beta", 0.75);
    r.bias = op.attributes.real("bias", 1.0);
    return r;
}

template<typename T> std::vector<double> denominators(const Response &r, const T *x)
{
    std::vector<double> made(static_cast<std::size_t>(r.n * r.c * r.rest));
    for (std::int64_t i = 0; i < r.n; ++i) {
        for (std::int64_t c = 0; c < r.c; ++c) {
            for (std::int64_t s = 0; s < r.rest; ++s) {
                double sum = 0;
                for (std::int64_t j = std::max<std::int64_t>(0, c - r.below);
                     j <= std::min(r.c - 1, c + r.above); ++j) {
                    const auto value = static_cast<double>(x[(i * r.c + j) * r.rest + s]);
                    sum += value * value;
                }
                made[static_cast<std::size_t>((i * r.c + c) * r.rest + s)] = r.bias + r.factor * sum;
            }
        }
    }
    return made;
}

Result<void> responseForward(const KernelCall &call, const Buffer &x, const Buffer &y)
{
    const Response r = responseOf(*call.op, x.shape);
    return withFloat(call, x.dataType, [&]<typename T>(T) {
        const auto d = denominators(r, elements<const T>(x));
        for (std::size_t i = 0; i < d.size(); ++i)
            elements<T>(y)[i] =
                static_cast<T>(static_cast<double>(elements<const T>(x)[i]) * std::pow(d[i], -r.beta));
    });
}

Result<void> responseBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *dx = back.wanted(0);
    if (dx == nullptr)
        return {};
    if (dy == nullptr || x == nullptr)
        return missingSlot(call, "a gradient or its saved input");
    const Response r = responseOf(*call.op, x->shape);
    return withFloat(call, x->dataType, [&]<typename T>(T) {
        const T *value = elements<const T>(*x);
        const T *gradient = elements<const T>(*dy);
        const auto d = denominators(r, value);
        for (std::int64_t i = 0; i < r.n; ++i) {
            for (std::int64_t c = 0; c < r.c; ++c) {
                for (std::int64_t s = 0; s < r.rest; ++s) {
                    const auto at = static_cast<std::size_t>((i * r.c + c) * r.rest + s);
                    double sum = 0; // Over the channels in whose window c lies.
                    for (std::int64_t j = std::max<std::int64_t>(0, c - r.above);
                         j <= std::min(r.c - 1, c + r.below); ++j) {
                        const auto other = static_cast<std::size_t>((i * r.c + j) * r.rest + s);
                        sum += static_cast<double>(gradient[other]) * static_cast<double>(value[other])
                            * std::pow(d[other], -r.beta - 1);
                    }
                    elements<T>(*dx)[at] =
                        static_cast<T>(static_cast<double>(gradient[at]) * std::pow(d[at], -r.beta)
                            - 2 * r.factor * r.beta * static_cast<double>(value[at]) * sum);
                }
            }
        }
    });
}

} // namespace

void addLpKernels(KernelTable &table)
{
    table.add({OperatorKind::LpNormalize}, mapped<lpForward>, lpBackward);
    table.add({OperatorKind::LocalResponseNorm}, mapped<responseForward>, responseBackward);
}

} // namespace planloom
