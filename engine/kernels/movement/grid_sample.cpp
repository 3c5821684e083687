// GridSample: interpolation at places that a tensor names, as PyTorch's grid_sample has it.
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/movement.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace planloom {

namespace {

constexpr double kGridCubic = -0.75; ///< Keys' free parameter, which ONNX fixes.

/// One input element along one dimension, with its weight and that weight's derivative by the place.
struct GridTap {
    std::int64_t index = 0;
    double weight = 1;
    double slope = 0;
};

/// One input element that an output reads.
struct GridCorner {
    std::int64_t offset = 0; ///< In one channel.
    double weight = 1;
    std::vector<double> slopes{}; ///< The weight's derivative by each number of the grid.
};

/// How places become elements.
class GridPlaces
{
public:
    explicit GridPlaces(const Operator &op)
        : m_mode(op.attributes.text("mode", "linear"))
        , m_padding(op.attributes.text("padding_mode", "zeros"))
        , m_aligned(op.attributes.integer("align_corners") != 0)
    {
    }

    /// What is read at a place, whose numbers are in the grid in the reverse order of dimensions.
    template<typename T> std::vector<GridCorner> cornersAt(const T *place, const Shape &extents) const
    {
        const std::size_t rank = extents.size();
        std::vector<GridCorner> corners{GridCorner{0, 1, std::vector<double>(rank, 1.0)}};
        for (std::size_t d = 0; d < rank; ++d) {
            const std::size_t number = rank - 1 - d;
            const auto taps = tapsAt(static_cast<double>(place[number]), extents[d]);
            std::vector<GridCorner> next;
            next.reserve(corners.size() * taps.size());
            for (const GridCorner &corner : corners) {
                for (const GridTap &tap : taps) {
                    GridCorner made = corner;
                    made.offset = corner.offset * extents[d] + tap.index;
                    made.weight *= tap.weight;
                    for (std::size_t n = 0; n < rank; ++n)
                        made.slopes[n] *= n == number ? tap.slope : tap.weight;
                    next.push_back(std::move(made));
                }
            }
            corners = std::move(next);
        }
        return corners;
    }

private:
    /// Reflects `at` at the borders until it is within; `slope` changes its sign each time.
    void reflect(double &at, double &slope, std::int64_t extent) const
    {
        const double low = m_aligned ? 0 : -0.5;
        const double span = static_cast<double>(extent) - (m_aligned ? 1 : 0);
        if (span <= 0) {
            at = slope = 0;
            return;
        }
        const double away = at - low;
        const double turns = std::floor(away / span);
        const double rest = away - turns * span;
        const bool even = std::fmod(turns, 2.0) == 0;
        at = low + (even ? rest : span - rest);
        slope = even ? slope : -slope;
    }

    std::vector<GridTap> tapsAt(double value, std::int64_t extent) const
    {
        const auto size = static_cast<double>(extent);
        double slope = m_aligned ? (size - 1) / 2 : size / 2;
        double at = m_aligned ? (value + 1) * slope : ((value + 1) * size - 1) / 2;
        if (!std::isfinite(at)) // beyond what any image has
            at = slope = 0;
        const bool cubic = m_mode == "cubic";
        if (!cubic && m_padding == "reflection")
            reflect(at, slope, extent);
        if (!cubic && m_padding != "zeros" && (at < 0 || at > size - 1)) {
            at = std::clamp(at, 0.0, size - 1);
            slope = 0;
        }
        // Far outside of the image all taps are; there they are cut off, so that they stay integers.
        at = std::clamp(at, -4 * size - 4, 5 * size + 4);
        std::vector<GridTap> taps;
        if (m_mode == "nearest") {
            add(taps, static_cast<std::int64_t>(std::nearbyint(at)), 1, 0, extent);
            return taps;
        }
        const double below = std::floor(at);
        const double rest = at - below;
        const auto first = static_cast<std::int64_t>(below);
        if (!cubic) {
            add(taps, first, 1 - rest, -slope, extent);
            add(taps, first + 1, rest, slope, extent);
            return taps;
        }
        for (std::int64_t j = -1; j <= 2; ++j) {
            const double distance = rest - static_cast<double>(j);
            const double d = std::fabs(distance);
            constexpr double a = kGridCubic;
            const double weight =
                d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1 : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
            const double steep =
                d <= 1 ? (3 * (a + 2) * d - 2 * (a + 3)) * d : (3 * a * d - 10 * a) * d + 8 * a;
            add(taps, first + j, weight, slope * (distance < 0 ? -steep : steep), extent);
        }
        return taps;
    }

    void add(std::vector<GridTap> &taps, std::int64_t index, double weight, double slope,
        std::int64_t extent) const
    {
        if (index < 0 || index >= extent) {
            if (m_padding == "zeros")
                return;
            if (m_padding == "reflection") {
                double at = static_cast<double>(index);
                double none = 0;
                reflect(at, none, extent);
                index = static_cast<std::int64_t>(at);
            }
            index = std::clamp<std::int64_t>(index, 0, extent - 1);
        }
        taps.push_back({index, weight, slope});
    }

    std::string m_mode;
    std::string m_padding;
    bool m_aligned;
};

/// Extents that forward and backward pass walk: samples, channels, elements of an image, places, numbers of a
/// place.
struct GridExtents {
    std::int64_t samples = 0;
    std::int64_t channels = 0;
    Shape image{};
    std::int64_t elements = 0;
    std::int64_t places = 0;
    std::int64_t numbers = 0;
};

GridExtents gridExtents(const Shape &x, const Shape &grid)
{
    GridExtents extents{x[0], x[1], Shape(x.begin() + 2, x.end()), 0, 0, grid.back()};
    extents.elements = elementCount(extents.image);
    extents.places = elementCount(Shape(grid.begin() + 1, grid.end() - 1));
    return extents;
}

Result<void> gridSampleForward(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0);
    const Buffer *grid = findInput(call, 1);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (x == nullptr || grid == nullptr)
        return missingSlot(call, "its image or its grid");
    const GridExtents extents = gridExtents(x->shape, grid->shape);
    const GridPlaces places(*call.op);
    return withFloat(call, x->dataType, [&]<typename T>(T) {
        for (std::int64_t n = 0; n < extents.samples; ++n) {
            for (std::int64_t p = 0; p < extents.places; ++p) {
                const auto corners = places.cornersAt(
                    elements<const T>(*grid) + (n * extents.places + p) * extents.numbers, extents.image);
                for (std::int64_t c = 0; c < extents.channels; ++c) {
                    const std::int64_t channel = n * extents.channels + c;
                    const T *image = elements<const T>(*x) + channel * extents.elements;
                    double sum = 0;
                    for (const GridCorner &corner : corners)
                        sum += corner.weight * static_cast<double>(image[corner.offset]);
                    elements<T>(*y)[channel * extents.places + p] = static_cast<T>(sum);
                }
            }
        }
    });
}

Result<void> gridSampleBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *grid = back.input(1);
    const Buffer *dx = back.wanted(0);
    const Buffer *dgrid = back.wanted(1);
    if (dx == nullptr && dgrid == nullptr)
        return {};
    if (dy == nullptr || grid == nullptr || (dgrid != nullptr && x == nullptr))
        return missingSlot(call, "a gradient or a saved input");
    const GridExtents extents = gridExtents((dx != nullptr ? dx : x)->shape, grid->shape);
    const GridPlaces places(*call.op);
    return withFloat(call, dy->dataType, [&]<typename T>(T) {
        std::vector<double> image(dx == nullptr ? 0 : static_cast<std::size_t>(elementCount(*dx)), 0.0);
        std::vector<double> numbers(
            dgrid == nullptr ? 0 : static_cast<std::size_t>(elementCount(*dgrid)), 0.0);
        for (std::int64_t n = 0; n < extents.samples; ++n) {
            for (std::int64_t p = 0; p < extents.places; ++p) {
                const std::int64_t place = (n * extents.places + p) * extents.numbers;
                const auto corners = places.cornersAt(elements<const T>(*grid) + place, extents.image);
                for (std::int64_t c = 0; c < extents.channels; ++c) {
                    const std::int64_t channel = n * extents.channels + c;
                    const auto gradient =
                        static_cast<double>(elements<const T>(*dy)[channel * extents.places + p]);
                    for (const GridCorner &corner : corners) {
                        const std::int64_t at = channel * extents.elements + corner.offset;
                        if (dx != nullptr)
                            image[static_cast<std::size_t>(at)] += gradient * corner.weight;
                        for (std::size_t d = 0; dgrid != nullptr && d < corner.slopes.size(); ++d)
                            numbers[static_cast<std::size_t>(place) + d] +=
                                gradient * corner.slopes[d] * static_cast<double>(elements<const T>(*x)[at]);
                    }
                }
            }
        }
        if (dx != nullptr)
            storeSums<T>(image, *dx);
        if (dgrid != nullptr)
            storeSums<T>(numbers, *dgrid);
    });
}

} // namespace

void addGridSampleKernels(KernelTable &table)
{
    table.add({OperatorKind::GridSample}, gridSampleForward, gridSampleBackward);
}

} // namespace planloom
