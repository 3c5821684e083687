#include "engine/base/work_pool.h"
#include "engine/kernels/elements/vector_math.h"
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/window_plans.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace planloom {

namespace {

/// What an average is divided by: the window's elements inside the input, or inside its padding as well.
double averagedElements(const WindowGeometry &g, const Shape &position, bool countPadding)
{
    double count = 1;
    for (std::size_t d = 0; d < g.rank(); ++d) {
        std::int64_t inside = 0;
        for (std::int64_t t = 0; t < g.kernel[d]; ++t) {
            const std::int64_t at = g.elementAt(d, position[d], t);
            const bool counted = countPadding ? at >= -g.pads[d] && at < g.inWhole[d] + g.padsAfter[d]
                                              : at >= 0 && at < g.inWhole[d];
            inside += counted ? 1 : 0;
        }
        count *= static_cast<double>(inside);
    }
    return std::max(count, 1.0);
}

/// The taps of every window, found once for all images and channels.
struct WindowTaps {
    std::vector<std::int64_t> numbers{}; ///< Of the tap within its window.
    std::vector<std::int64_t> offsets{};
    std::vector<std::size_t> firsts{0}; ///< Of every window, and one past the last.
    std::vector<double> divisors{};
};

WindowTaps windowTaps(const WindowGeometry &g, bool countPadding)
{
    WindowTaps taps;
    if (g.outCount() == 0)
        return taps;
    Shape position(g.rank(), 0);
    do {
        forEachTap(g, position, [&](std::int64_t number, std::int64_t offset) {
            taps.numbers.push_back(number);
            taps.offsets.push_back(offset);
        });
        taps.firsts.push_back(taps.offsets.size());
        taps.divisors.push_back(averagedElements(g, position, countPadding));
    } while (advance(position, g.out));
    return taps;
}

/// By tap of `read`: its offset in what `made` lies over, -1 where that is without it. A part makes the
/// gradient of its share, and reads all of the windows that reach into it.
std::vector<std::int64_t> madeOffsets(const WindowTaps &read, const WindowTaps &made)
{
    std::vector<std::int64_t> offsets(read.offsets.size(), -1);
    for (std::size_t w = 0; w + 1 < read.firsts.size(); ++w) {
        std::size_t at = made.firsts[w];
        for (std::size_t i = read.firsts[w]; i < read.firsts[w + 1]; ++i) {
            while (at < made.firsts[w + 1] && made.numbers[at] < read.numbers[i])
                ++at;
            if (at < made.firsts[w + 1] && made.numbers[at] == read.numbers[i])
                offsets[i] = made.offsets[at];
        }
    }
    return offsets;
}

/// Calls visit(plane) for every plane of `read` elements, in pieces.
template<typename Visit> void forEachPlane(std::int64_t planes, std::size_t read, const Visit &visit)
{
    const auto each = std::max<std::int64_t>(1, static_cast<std::int64_t>(read));
    forEachStretch(
        planes, std::max<std::int64_t>(1, kElementStretch / each), [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t plane = begin; plane < end; ++plane)
                visit(plane);
        });
}

/// The larger of the two, or the one that is no number.
template<typename T> PLANLOOM_INLINE T largerOf(T kept, T other)
{
    return other > kept || other != other ? other : kept;
}

template<typename T> PLANLOOM_INLINE void raise(T *to, const T *from, std::int64_t count)
{
#pragma GCC ivdep
    for (std::int64_t i = 0; i < count; ++i)
        to[i] = largerOf(to[i], from[i]);
}
PLANLOOM_HOT void raiseAll(float *to, const float *from, std::int64_t count)
{
    raise(to, from, count);
}
void raiseAll(double *to, const double *from, std::int64_t count)
{
    raise(to, from, count);
}

/// The largest element of every window, one dimension after another: a window is the product of its taps
/// along each, so each element is looked at along one dimension in place of all of them together.
template<typename T> class LargestOfWindows
{
public:
    explicit LargestOfWindows(const WindowGeometry &g)
        : m_geometry(g)
    {
        for (std::size_t d = 0; d < g.rank(); ++d) {
            auto &lines = m_lines.emplace_back();
            for (std::int64_t at = 0; at < g.out[d]; ++at)
                lines.push_back(lineAt(d, at));
        }
    }

    /// Of the plane at x, into the one at y.
    void operator()(const T *x, T *y) const
    {
        std::array<std::vector<T>, 2> between;
        std::int64_t outer = 1;
        for (std::size_t d = 0; d < m_geometry.rank(); ++d) {
            std::int64_t inner = 1;
            for (std::size_t later = d + 1; later < m_geometry.rank(); ++later)
                inner *= m_geometry.in[later];
            T *to = y;
            if (d + 1 < m_geometry.rank()) {
                between[d % 2].resize(static_cast<std::size_t>(outer * m_geometry.out[d] * inner));
                to = between[d % 2].data();
            }
            along(d, outer, inner, x, to);
            x = to;
            outer *= m_geometry.out[d];
        }
    }

private:
    /// The taps of a window along one dimension that lie inside.
    struct Line {
        std::int64_t first = 0; ///< Element.
        std::int64_t count = 0;
    };

    Line lineAt(std::size_t d, std::int64_t position) const
    {
        Line line;
        for (std::int64_t tap = 0; tap < m_geometry.kernel[d]; ++tap) {
            const std::int64_t at = m_geometry.elementAt(d, position, tap) - m_geometry.inFirst[d];
            if (at < 0 || at >= m_geometry.in[d])
                continue;
            if (line.count++ == 0)
                line.first = at;
        }
        return line;
    }

    void along(std::size_t d, std::int64_t outer, std::int64_t inner, const T *x, T *to) const
    {
        const std::int64_t step = m_geometry.dilations[d] * inner;
        for (std::int64_t o = 0; o < outer; ++o, x += m_geometry.in[d] * inner) {
            for (const Line &line : m_lines[d]) {
                const T *from = x + line.first * inner;
                if (inner == 1) {
                    T largest = kNone;
                    for (std::int64_t tap = 0; tap < line.count; ++tap)
                        largest = largerOf(largest, from[tap * step]);
                    *to = largest;
                } else {
                    std::fill_n(to, inner, kNone);
                    for (std::int64_t tap = 0; tap < line.count; ++tap)
                        raiseAll(to, from + tap * step, inner);
                }
                to += inner;
            }
        }
    }

    static constexpr T kNone = -std::numeric_limits<T>::infinity();
    const WindowGeometry &m_geometry;
    std::vector<std::vector<Line>> m_lines{}; ///< By dimension and window.
};

/// The mean of a window, or its norm.
template<typename T>
T pooled(const PoolRule &rule, const T *x, const std::int64_t *offsets, std::size_t count, double divisor)
{
    const bool average = rule.pooling == Pooling::Average;
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto value = static_cast<double>(x[offsets[i]]);
        sum += average ? value : std::pow(std::fabs(value), rule.p);
    }
    return static_cast<T>(average ? sum / divisor : std::pow(sum, 1 / rule.p));
}

Result<void> poolForward(const KernelCall &call, const PoolPlan &plan)
{
    const Buffer *x = plan.x;
    const Buffer *y = plan.y;
    const WindowGeometry &g = plan.windows;
    return withFloat(call, x->dataType, [&]<typename T>(T) -> Result<void> {
        const std::int64_t planes = x->shape[0] * x->shape[1];
        if (plan.rule.pooling == Pooling::Largest) {
            const LargestOfWindows<T> largest(g);
            forEachPlane(
                planes, static_cast<std::size_t>(g.outCount() * g.kernelCount()), [&](std::int64_t plane) {
                    largest(
                        elements<const T>(*x) + plane * g.inCount(), elements<T>(*y) + plane * g.outCount());
                });
            return {};
        }
        const WindowTaps taps = windowTaps(g, plan.rule.countPadding);
        const auto windows = static_cast<std::size_t>(g.outCount());
        forEachPlane(planes, taps.offsets.size(), [&](std::int64_t plane) {
            const T *from = elements<const T>(*x) + plane * g.inCount();
            T *to = elements<T>(*y) + plane * g.outCount();
            for (std::size_t w = 0; w < windows; ++w) {
                to[w] = pooled(plan.rule, from, taps.offsets.data() + taps.firsts[w],
                    taps.firsts[w + 1] - taps.firsts[w], taps.divisors[w]);
            }
        });
        return {};
    });
}

/// The gradient of every window goes to its largest element: to the first one of equals, as in PyTorch.
template<typename T>
void giveToLargest(const WindowTaps &taps, const std::vector<std::int64_t> &targets, const T *x, const T *y,
    const T *dy, double *sums)
{
    for (std::size_t w = 0; w + 1 < taps.firsts.size(); ++w) {
        for (std::size_t i = taps.firsts[w]; i < taps.firsts[w + 1]; ++i) {
            if (x[taps.offsets[i]] != y[w])
                continue;
            if (targets[i] >= 0)
                sums[targets[i]] += static_cast<double>(dy[w]);
            break;
        }
    }
}

Result<void> poolBackward(const KernelCall &call, const PoolPlan &plan)
{
    const Buffer *x = plan.x;
    const Buffer *y = plan.y;
    const Buffer *dy = plan.dy;
    const Buffer *dx = plan.dx;
    const bool average = plan.rule.pooling == Pooling::Average;
    const bool largest = plan.rule.pooling == Pooling::Largest;
    const double p = plan.rule.p;
    const WindowGeometry &g = plan.windows;
    const std::int64_t made = plan.share.inCount();
    const WindowTaps taps = windowTaps(g, plan.rule.countPadding);
    const std::vector<std::int64_t> targets = average || x->shape == dx->shape
        ? taps.offsets
        : madeOffsets(taps, windowTaps(plan.share, plan.rule.countPadding));
    return withFloat(call, dx->dataType, [&]<typename T>(T) {
        const std::int64_t planes = dx->shape[0] * dx->shape[1];
        const auto windows = static_cast<std::size_t>(g.outCount());
        forEachPlane(planes, taps.offsets.size(), [&](std::int64_t plane) {
            const T *from = average ? nullptr : elements<const T>(*x) + plane * g.inCount();
            std::vector<double> sums(static_cast<std::size_t>(made), 0.0); // a plane's stay in the cache
            double *to = sums.data();
            if (largest)
                giveToLargest(taps, targets, from, elements<const T>(*y) + plane * g.outCount(),
                    elements<const T>(*dy) + plane * g.outCount(), to);
            for (std::size_t w = 0; w < windows && !largest; ++w) {
                const std::int64_t at = plane * g.outCount() + static_cast<std::int64_t>(w);
                const auto gradient = static_cast<double>(elements<const T>(*dy)[at]);
                for (std::size_t i = taps.firsts[w]; i < taps.firsts[w + 1]; ++i) {
                    const std::int64_t target = targets[i];
                    if (average) {
                        to[target] += gradient / taps.divisors[w];
                        continue;
                    }
                    const auto value = static_cast<double>(from[taps.offsets[i]]);
                    const auto result = static_cast<double>(elements<const T>(*y)[at]);
                    double share = 0;
                    if (result != 0 && value != 0)
                        share = std::copysign(std::pow(std::fabs(value) / result, p - 1), value);
                    if (target >= 0)
                        to[target] += gradient * share;
                }
            }
            T *target = elements<T>(*dx) + plane * made;
            for (std::size_t i = 0; i < sums.size(); ++i)
                target[i] = static_cast<T>(sums[i]);
        });
    });
}

} // namespace

void addPoolKernels(KernelTable &table)
{
    table.add({OperatorKind::MaxPool, OperatorKind::AveragePool, OperatorKind::LpPool},
        planned<planPool, poolForward>, planned<planPool, poolBackward>);
}

} // namespace planloom
