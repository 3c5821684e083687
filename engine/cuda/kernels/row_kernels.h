#pragma once

#include "engine/cuda/kernels/element_kernels.h"
#include "engine/kernels/reductions/norm_rows.h"

// Kernels of which a team of threads makes one row together. All of a team's threads come to each `meet`,
// `sum` and `largest`.

namespace planloom {

PLANLOOM_INLINE float minusInfinity()
{
    return -std::numeric_limits<float>::infinity();
}

/// A row whose elements are `inner` apart: row r of a tensor [outer, extent, inner].
struct RowElements {
    std::int64_t extent = 1;
    std::int64_t inner = 1;

    PLANLOOM_INLINE std::int64_t begin(std::int64_t row) const
    {
        return row / inner * extent * inner + row % inner;
    }
    PLANLOOM_INLINE std::int64_t operator()(std::int64_t row, std::int64_t i) const
    {
        return begin(row) + i * inner;
    }
};

/// The largest element of a row, and the sum of the exponentials of their distances from it.
template<typename Team>
PLANLOOM_INLINE void normaliserOf(
    const Team &team, const Elements &x, const RowElements &place, std::int64_t row, float &top, double &sum)
{
    float largest = minusInfinity();
    for (std::int64_t i = team.index(); i < place.extent; i += team.size()) {
        const float value = at(x, place(row, i));
        largest = value > largest ? value : largest;
    }
    top = team.largest(largest);
    double part = 0;
    for (std::int64_t i = team.index(); i < place.extent; i += team.size())
        part += static_cast<double>(expOf(at(x, place(row, i)) - top));
    sum = team.sum(part);
}

/// Softmax of a row, or its logarithm; with dy, their gradient from y: y (dy - sum(dy y)), dy - e^y sum(dy).
struct SoftmaxKernel {
    Elements x{}; ///< y in the backward pass.
    Elements dy{}; ///< No data: forward.
    Elements made{};
    RowElements place{};
    bool logarithm = false;

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t row) const
    {
        if (dy.data != nullptr)
            return slope(team, row);
        float top = 0;
        double sum = 0;
        normaliserOf(team, x, place, row, top, sum);
        const float share = static_cast<float>(1 / sum);
        const float shift = top + static_cast<float>(log(sum));
        for (std::int64_t i = team.index(); i < place.extent; i += team.size()) {
            const std::int64_t here = place(row, i);
            store(made, here, logarithm ? at(x, here) - shift : expOf(at(x, here) - top) * share);
        }
    }
    template<typename Team> PLANLOOM_INLINE void slope(const Team &team, std::int64_t row) const
    {
        double part = 0;
        for (std::int64_t i = team.index(); i < place.extent; i += team.size()) {
            const std::int64_t here = place(row, i);
            part += static_cast<double>(logarithm ? at(dy, here) : at(dy, here) * at(x, here));
        }
        const auto sum = static_cast<float>(team.sum(part));
        for (std::int64_t i = team.index(); i < place.extent; i += team.size()) {
            const std::int64_t here = place(row, i);
            const float value = at(x, here);
            store(made, here, logarithm ? at(dy, here) - expOf(value) * sum : value * (at(dy, here) - sum));
        }
    }
};

/// Mean (0 where the norm does not centre) and 1 / sqrt(variance + epsilon) of a row of x.
template<typename Team>
PLANLOOM_INLINE void rowStatistics(const Team &team, const Elements &x, std::int64_t begin,
    std::int64_t width, bool centred, double epsilon, float &mean, float &inverse)
{
    double part = 0;
    if (centred)
        for (std::int64_t i = team.index(); i < width; i += team.size())
            part += static_cast<double>(at(x, begin + i));
    const double centre = centred ? team.sum(part) / static_cast<double>(width) : 0.0;
    double squares = 0;
    for (std::int64_t i = team.index(); i < width; i += team.size()) {
        const double d = static_cast<double>(at(x, begin + i)) - centre;
        squares += d * d;
    }
    mean = static_cast<float>(centre);
    inverse = static_cast<float>(1 / sqrt(team.sum(squares) / static_cast<double>(width) + epsilon));
}

/// As norm.cpp's normRowOf; with dy, normSlopeRowOf's dx.
struct NormKernel {
    Elements x{};
    Elements scale{}; ///< No data: 1.
    Elements bias{};
    Elements dy{};
    Elements made{}; ///< No data: only the statistics are wanted.
    float *statistics = nullptr; ///< Backward: mean and inverse of each row.
    NormRows place{};

    PLANLOOM_INLINE std::int64_t affine(std::int64_t row, std::int64_t i) const
    {
        return place.affineOffset(row) + i * place.affineStep();
    }
    PLANLOOM_INLINE float scaleAt(std::int64_t row, std::int64_t i) const
    {
        return scale.data == nullptr ? 1.0f : at(scale, affine(row, i));
    }
    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t row) const
    {
        const std::int64_t width = place.width;
        const std::int64_t begin = row * width;
        float mean = 0;
        float inverse = 0;
        rowStatistics(team, x, begin, width, place.centred, place.epsilon, mean, inverse);
        if (dy.data == nullptr) {
            for (std::int64_t i = team.index(); i < width; i += team.size())
                store(made, begin + i,
                    (at(x, begin + i) - mean) * inverse * scaleAt(row, i)
                        + (bias.data == nullptr ? 0.0f : at(bias, affine(row, i))));
            return;
        }
        if (team.index() == 0) {
            statistics[2 * row] = mean;
            statistics[2 * row + 1] = inverse;
        }
        if (made.data == nullptr)
            return;
        double partG = 0;
        double partGH = 0;
        for (std::int64_t i = team.index(); i < width; i += team.size()) {
            const float g = at(dy, begin + i) * scaleAt(row, i);
            partG += static_cast<double>(g);
            partGH += static_cast<double>(g * (at(x, begin + i) - mean) * inverse);
        }
        const double count = static_cast<double>(width);
        const double sumG = team.sum(partG);
        const float meanG = place.centred ? static_cast<float>(sumG / count) : 0.0f;
        const auto meanGH = static_cast<float>(team.sum(partGH) / count);
        for (std::int64_t i = team.index(); i < width; i += team.size())
            store(made, begin + i,
                inverse
                    * (at(dy, begin + i) * scaleAt(row, i) - meanG
                        - (at(x, begin + i) - mean) * inverse * meanGH));
    }
};

/// The gradients of a norm's scale or bias, one element each: sums over all rows of dy h, or dy. With
/// `channels`, over the rows of one channel and all their elements.
struct NormAffineKernel {
    Elements x{};
    Elements dy{};
    Elements made{};
    const float *statistics = nullptr; ///< Null: of the bias.
    NormRows place{};

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t which) const
    {
        double part = 0;
        const std::int64_t channels = place.channels;
        const std::int64_t rows = channels != 0 ? (place.rows - which + channels - 1) / channels : place.rows;
        const std::int64_t wide = channels != 0 ? place.width : 1;
        for (std::int64_t i = team.index(); i < rows * wide; i += team.size()) {
            const std::int64_t row = channels != 0 ? which + i / wide * channels : i;
            const std::int64_t here = row * place.width + (channels != 0 ? i % wide : which);
            const float h =
                statistics == nullptr ? 1.0f : (at(x, here) - statistics[2 * row]) * statistics[2 * row + 1];
            part += static_cast<double>(at(dy, here) * h);
        }
        const double sum = team.sum(part);
        if (team.index() == 0)
            store(made, which, static_cast<float>(sum));
    }
};

enum class RowReduction : std::int32_t { Sum, SumOfSizes, SumOfSquares, Largest, Smallest, Product };

/// One element of a reduction: of x's elements, or with `slope` of dy times the slope of a function of two
/// operands, which is the gradient of one that was broadcast.
struct ReduceKernel {
    Elements x{}; ///< dy, with `slope`.
    Elements a{};
    Elements b{};
    Elements made{};
    RowReduction reduction = RowReduction::Sum;
    BinaryFunction function{};
    std::int32_t slope = -1;
    double divisor = 1;
    bool root = false; ///< Of what comes out.
    bool logarithm = false;
    std::int64_t count = 1; ///< Elements that go into each.
    Nest<3> outer{}; ///< Of x, a and b, over the elements made.
    Nest<3> inner{}; ///< Over those that go into one.

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t row) const
    {
        std::int64_t base[3] = {};
        outer.find(row, base);
        const bool extreme = reduction == RowReduction::Largest || reduction == RowReduction::Smallest;
        double part = reduction == RowReduction::Product ? 1 : 0;
        float most = minusInfinity();
        bool isNumber = true;
        for (std::int64_t i = team.index(); i < count; i += team.size()) {
            std::int64_t places[3] = {base[0], base[1], base[2]};
            inner.find(i, places);
            const float value = valueAt(places);
            const auto wide = static_cast<double>(value);
            if (extreme) {
                const float signedValue = reduction == RowReduction::Largest ? value : -value;
                isNumber = isNumber && signedValue == signedValue;
                most = signedValue > most ? signedValue : most;
            } else if (reduction == RowReduction::Product) {
                part *= wide;
            } else {
                part += reduction == RowReduction::SumOfSquares         ? wide * wide
                    : reduction == RowReduction::SumOfSizes && wide < 0 ? -wide
                                                                        : wide;
            }
        }
        finish(team, row, part, most, isNumber);
    }
    PLANLOOM_INLINE float valueAt(const std::int64_t *places) const
    {
        const float value = at(x, places[0]);
        if (slope < 0)
            return value;
        return binaryOf(function, slope, a.data == nullptr ? 1.0f : at(a, places[1]),
            b.data == nullptr ? 1.0f : at(b, places[2]), value);
    }
    template<typename Team>
    PLANLOOM_INLINE void finish(
        const Team &team, std::int64_t row, double part, float most, bool isNumber) const
    {
        if (reduction == RowReduction::Largest || reduction == RowReduction::Smallest) {
            const float found = team.largest(most);
            const double broken = team.sum(isNumber ? 0.0 : 1.0);
            const float value = reduction == RowReduction::Largest ? found : -found;
            if (team.index() == 0)
                store(made, row, broken > 0 ? std::numeric_limits<float>::quiet_NaN() : value);
            return;
        }
        double value = reduction == RowReduction::Product ? product(team, part) : team.sum(part);
        value /= divisor;
        if (root)
            value = sqrt(value);
        if (logarithm)
            value = log(value);
        if (team.index() == 0)
            store(made, row, static_cast<float>(value));
    }
    template<typename Team> PLANLOOM_INLINE double product(const Team &team, double part) const
    {
        // Each thread's part as two floats that stand for it, in the memory of the team.
        auto *parts = reinterpret_cast<double *>(team.shared());
        parts[team.index()] = part;
        team.meet();
        double all = 1;
        for (std::int64_t i = 0; i < team.size(); ++i)
            all *= parts[i];
        team.meet();
        return all;
    }
};

/// What losses know of labels.
struct LabelRules {
    Elements labels{};
    Elements weights{}; ///< No data: 1.
    bool ignores = false;
    std::int64_t ignored = 0;
    std::int64_t classes = 0; ///< Labels must lie below.
    Problem *problem = nullptr;

    /// -1 for an item to leave out.
    PLANLOOM_INLINE std::int64_t at(std::int64_t item) const
    {
        const auto label = load<std::int64_t>(labels, item);
        if (ignores && label == ignored)
            return -1;
        if (label < 0 || label >= classes) {
            problem->tell(label, classes);
            return -1;
        }
        return label;
    }
    PLANLOOM_INLINE double weight(std::int64_t label) const
    {
        return weights.data == nullptr ? 1 : load<double>(weights, label);
    }
};

/// The loss of one item into `losses` (as double), from logits, or from their logarithmic probabilities.
struct CrossEntropyKernel {
    Elements x{};
    LabelRules rules{};
    double *losses = nullptr;
    Elements made{}; ///< Of each item, if wanted.
    RowElements place{};
    bool logits = true;

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t item) const
    {
        const std::int64_t label = rules.at(item);
        double loss = 0;
        if (label >= 0 && logits) {
            float top = 0;
            double sum = 0;
            normaliserOf(team, x, place, item, top, sum);
            loss = rules.weight(label)
                * (log(sum) + static_cast<double>(top)
                    - static_cast<double>(planloom::at(x, place(item, label))));
        } else if (label >= 0) {
            loss = -rules.weight(label) * static_cast<double>(planloom::at(x, place(item, label)));
        }
        if (team.index() != 0)
            return;
        if (losses != nullptr)
            losses[item] = loss;
        if (made.data != nullptr)
            store(made, item, static_cast<float>(loss));
    }
};

/// made = the sum of all losses.
struct SumKernel {
    const double *losses = nullptr;
    Elements made{};
    std::int64_t count = 0;

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t) const
    {
        double part = 0;
        for (std::int64_t i = team.index(); i < count; i += team.size())
            part += losses[i];
        const double sum = team.sum(part);
        if (team.index() == 0)
            store(made, 0, static_cast<float>(sum));
    }
};

/// The weights of all labels that count.
struct CountValidKernel {
    LabelRules rules{};
    Elements made{};
    std::int64_t count = 0;

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t) const
    {
        double part = 0;
        for (std::int64_t i = team.index(); i < count; i += team.size())
            if (const std::int64_t label = rules.at(i); label >= 0)
                part += rules.weight(label);
        const double sum = team.sum(part);
        if (team.index() == 0)
            store(made, 0, static_cast<float>(sum));
    }
};

/// The loss of item i, of its statistics over all classes; with dy, the gradients of both.
struct ClassLossKernel {
    Elements sums{}; ///< Backward: its gradient, where wanted; as is picked.
    Elements picked{};
    Elements dy{}; ///< No data: forward.
    LabelRules rules{};
    double *losses = nullptr;
    Elements made{};
    bool oneGradient = true;

    PLANLOOM_INLINE void operator()(std::int64_t i) const
    {
        const std::int64_t label = rules.at(i);
        const double weight = label < 0 ? 0.0 : rules.weight(label);
        if (dy.data != nullptr) {
            const auto gradient = label < 0
                ? 0.0f
                : static_cast<float>(weight * static_cast<double>(at(dy, oneGradient ? 0 : i)));
            if (sums.data != nullptr)
                store(sums, i, gradient);
            if (picked.data != nullptr)
                store(picked, i, -gradient);
            return;
        }
        const double loss = label < 0
            ? 0.0
            : weight * (static_cast<double>(at(sums, i)) - static_cast<double>(at(picked, i)));
        if (losses != nullptr)
            losses[i] = loss;
        else
            store(made, i, static_cast<float>(loss));
    }
};

/// dx = softmax(x) g - g at the label, with g = dy times the label's weight.
struct CrossEntropySlopeKernel {
    Elements x{};
    Elements dy{};
    Elements made{};
    LabelRules rules{};
    RowElements place{};
    bool logits = true;
    bool oneGradient = true; ///< dy has one element for all items.

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t item) const
    {
        const std::int64_t label = rules.at(item);
        const double gradient = label < 0
            ? 0
            : static_cast<double>(planloom::at(dy, oneGradient ? 0 : item)) * rules.weight(label);
        float top = 0;
        double sum = 1;
        if (label >= 0 && logits)
            normaliserOf(team, x, place, item, top, sum);
        const auto factor = static_cast<float>(gradient / sum);
        for (std::int64_t i = team.index(); i < place.extent; i += team.size()) {
            const std::int64_t here = place(item, i);
            float value = label >= 0 && logits ? expOf(planloom::at(x, here) - top) * factor : 0.0f;
            if (i == label)
                value -= static_cast<float>(gradient);
            store(made, here, value);
        }
    }
};

/// Of the classes that a part has: their log-sum-exp, and the label's logit if it is among them.
struct ClassStatisticsKernel {
    Elements x{};
    Elements sums{}; ///< No data: not wanted.
    Elements picked{};
    LabelRules rules{};
    RowElements place{};
    std::int64_t first = 0; ///< Class of this part.

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t item) const
    {
        const std::int64_t label = rules.at(item);
        float top = 0;
        double sum = 0;
        normaliserOf(team, x, place, item, top, sum);
        if (team.index() != 0)
            return;
        if (sums.data != nullptr)
            store(sums, item,
                top == minusInfinity() ? top : static_cast<float>(log(sum) + static_cast<double>(top)));
        const bool here = label >= first && label < first + place.extent;
        if (picked.data != nullptr)
            store(picked, item, here ? planloom::at(x, place(item, label - first)) : 0.0f);
    }
};

/// dx = softmax(x) d(log-sum-exp), and at the label d(its logit).
struct ClassStatisticsSlopeKernel {
    Elements x{};
    Elements sums{};
    Elements dSums{}; ///< No data: nothing depends on them.
    Elements dPicked{};
    Elements made{};
    LabelRules rules{};
    RowElements place{};
    std::int64_t first = 0;

    template<typename Team> PLANLOOM_INLINE void operator()(const Team &team, std::int64_t item) const
    {
        const std::int64_t label = rules.at(item);
        for (std::int64_t i = team.index(); i < place.extent; i += team.size()) {
            const std::int64_t here = place(item, i);
            float value = dSums.data == nullptr
                ? 0.0f
                : expOf(planloom::at(x, here) - planloom::at(sums, item)) * planloom::at(dSums, item);
            if (dPicked.data != nullptr && label - first == i)
                value += planloom::at(dPicked, item);
            store(made, here, value);
        }
    }
};

} // namespace planloom
