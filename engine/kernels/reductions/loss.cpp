#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/reductions/vector_reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

namespace planloom {

namespace {

/// Labels other than the one to ignore, with their weights.
class Labels
{
public:
    Labels(const KernelCall &call, const Buffer &labels, const Buffer *weights)
        : m_call(call)
        , m_labels(labels)
        , m_weights(weights)
    {
        if (call.op->attributes.has("ignore_index"))
            m_ignored = call.op->attributes.integer("ignore_index");
    }

    /// The class of item i, or -1 if it is to be ignored; InvalidInput if it is none of the `classes`.
    Result<std::int64_t> classOf(std::int64_t i, std::int64_t classes) const
    {
        if (isFloating(m_labels.dataType))
            return unsupportedType(m_call, m_labels.dataType);
        const std::int64_t label = integerAt(m_labels, i);
        if (m_ignored && label == *m_ignored)
            return std::int64_t{-1};
        if (label < 0 || label >= classes) {
            return invalidInput(m_call,
                "operator " + m_call.op->name + " got label " + std::to_string(label)
                    + ", expected one in [0, " + std::to_string(classes) + ")",
                "check the labels fed to the model, and the label to ignore");
        }
        return label;
    }

    /// What the item of class `label` counts.
    double weightOf(std::int64_t label) const
    {
        if (m_weights == nullptr)
            return 1;
        return m_weights->dataType == DataType::Float64
            ? elements<const double>(*m_weights)[label]
            : static_cast<double>(elements<const float>(*m_weights)[label]);
    }

private:
    const KernelCall &m_call;
    const Buffer &m_labels;
    const Buffer *m_weights;
    std::optional<std::int64_t> m_ignored{};
};

/// How many classes there are as far as their weights tell: without any, labels may be as large as they like.
std::int64_t classesKnown(const Buffer *weights)
{
    return weights == nullptr ? std::numeric_limits<std::int64_t>::max() : elementCount(*weights);
}

/// Largest logit and sum of the exponentials of their distances from it.
template<typename T> struct Normaliser {
    T largest{};
    double sum = 0;
};

template<typename T> PLANLOOM_INLINE Normaliser<T> normaliserOfRow(const T *x, std::int64_t count)
{
    Normaliser<T> made;
    const T largest = maximumOf(x, count);
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i)
        sum += static_cast<double>(expOf(x[i] - largest));
    made.largest = largest;
    made.sum = sum;
    return made;
}

PLANLOOM_HOT void normalise(const float *x, std::int64_t count, Normaliser<float> &made)
{
    made = normaliserOfRow(x, count);
}
void normalise(const double *x, std::int64_t count, Normaliser<double> &made)
{
    made = normaliserOfRow(x, count);
}

PLANLOOM_HOT void scaledSoftmax(const float *x, float *dx, std::int64_t count, float largest, float scale)
{
    for (std::int64_t i = 0; i < count; ++i)
        dx[i] = expOf(x[i] - largest) * scale;
}
void scaledSoftmax(const double *x, double *dx, std::int64_t count, double largest, double scale)
{
    for (std::int64_t i = 0; i < count; ++i)
        dx[i] = expOf(x[i] - largest) * scale;
}

/// Logits are [n c ..], or [c] with a single label.
AxisView classView(const Shape &logits)
{
    return axisView(logits, logits.size() == 1 ? 0 : 1);
}

/// The classes of one item: in place, or gathered where they are apart.
template<typename T>
const T *rowOf(const T *x, const AxisView &view, std::int64_t o, std::int64_t i, std::vector<T> &line)
{
    const T *row = x + o * view.extent * view.inner + i;
    if (view.inner == 1)
        return row;
    line.resize(static_cast<std::size_t>(view.extent));
    for (std::int64_t c = 0; c < view.extent; ++c)
        line[static_cast<std::size_t>(c)] = row[c * view.inner];
    return line.data();
}

/// The class of every item, or -1 if it is to be ignored.
Result<std::vector<std::int64_t>> classesOf(const Labels &labels, const AxisView &view)
{
    std::vector<std::int64_t> classes(static_cast<std::size_t>(view.outer * view.inner));
    for (std::size_t item = 0; item < classes.size(); ++item) {
        TRY(classes[item], labels.classOf(static_cast<std::int64_t>(item), view.extent));
    }
    return classes;
}

/// Calls work(begin, end) for stretches of items, side by side.
template<typename Work> void forEachItems(const AxisView &view, const Work &work)
{
    const std::int64_t atOnce =
        std::max<std::int64_t>(1, kElementStretch / std::max<std::int64_t>(view.extent, 1));
    forEachStretch(view.outer * view.inner, atOnce, work);
}

Result<void> lossForward(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0);
    const Buffer *labels = findInput(call, 1);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (x == nullptr || labels == nullptr)
        return missingSlot(call, "its logits or its labels");
    const Labels known(call, *labels, findInput(call, 2));
    const AxisView view = classView(x->shape);
    const bool sum = call.op->attributes.text("reduction", "sum") == "sum";
    const bool logits = call.op->kind == OperatorKind::CrossEntropy;
    TRY(const auto classes, classesOf(known, view));
    return withFloat(call, x->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        std::vector<double> losses(classes.size(), 0.0);
        forEachItems(view, [&](std::int64_t begin, std::int64_t end) {
            std::vector<T> line;
            for (std::int64_t item = begin; item < end; ++item) {
                const std::int64_t o = item / view.inner;
                const std::int64_t i = item % view.inner;
                const std::int64_t label = classes[static_cast<std::size_t>(item)];
                double &loss = losses[static_cast<std::size_t>(item)];
                if (label >= 0 && logits) {
                    const T *row = rowOf(elements<const T>(*x), view, o, i, line);
                    Normaliser<T> normaliser;
                    normalise(row, view.extent, normaliser);
                    loss = known.weightOf(label)
                        * (std::log(normaliser.sum) + static_cast<double>(normaliser.largest)
                            - static_cast<double>(row[label]));
                } else if (label >= 0) {
                    loss = -known.weightOf(label)
                        * static_cast<double>(
                            elements<const T>(*x)[(o * view.extent + label) * view.inner + i]);
                }
                if (!sum)
                    elements<T>(*y)[item] = static_cast<T>(loss);
            }
        });
        if (sum)
            elements<T>(*y)[0] = static_cast<T>(std::accumulate(losses.begin(), losses.end(), 0.0));
        return {};
    });
}

Result<void> lossBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dx = back.wanted(0);
    const Buffer *dy = back.gradient();
    const Buffer *x = back.input(0);
    const Buffer *labels = back.input(1);
    if (dx == nullptr)
        return {};
    const bool logits = call.op->kind == OperatorKind::CrossEntropy;
    if (dy == nullptr || labels == nullptr || (logits && x == nullptr))
        return missingSlot(call, "a gradient, its logits or its labels");
    const Labels known(call, *labels, back.input(2));
    const AxisView view = classView(dx->shape);
    const bool sum = call.op->attributes.text("reduction", "sum") == "sum";
    if (!logits || view.inner != 1)
        fillZero(*dx);
    TRY(const auto classes, classesOf(known, view));
    return withFloat(call, dx->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        forEachItems(view, [&](std::int64_t begin, std::int64_t end) {
            std::vector<T> line;
            std::vector<T> made(static_cast<std::size_t>(view.extent));
            for (std::int64_t item = begin; item < end; ++item) {
                const std::int64_t o = item / view.inner;
                const std::int64_t i = item % view.inner;
                const std::int64_t label = classes[static_cast<std::size_t>(item)];
                T *to = elements<T>(*dx) + o * view.extent * view.inner + i;
                if (label < 0) {
                    for (std::int64_t c = 0; c < view.extent; ++c)
                        to[c * view.inner] = T(0);
                    continue;
                }
                const double gradient =
                    static_cast<double>(elements<const T>(*dy)[sum ? 0 : item]) * known.weightOf(label);
                if (logits) {
                    const T *row = rowOf(elements<const T>(*x), view, o, i, line);
                    Normaliser<T> normaliser;
                    normalise(row, view.extent, normaliser);
                    T *target = view.inner == 1 ? to : made.data();
                    scaledSoftmax(row, target, view.extent, normaliser.largest,
                        static_cast<T>(gradient / normaliser.sum));
                    if (view.inner != 1) {
                        for (std::int64_t c = 0; c < view.extent; ++c)
                            to[c * view.inner] = made[static_cast<std::size_t>(c)];
                    }
                }
                to[label * view.inner] -= static_cast<T>(gradient);
            }
        });
        return {};
    });
}

/// Of the classes that this part has: their log-sum-exp, and the label's logit if it is among them.
Result<void> statisticsForward(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0);
    const Buffer *labels = findInput(call, 1);
    const Buffer *sums = findOutput(call, 0);
    const Buffer *picked = findOutput(call, 1);
    if (sums == nullptr && picked == nullptr)
        return {};
    if (x == nullptr || labels == nullptr)
        return missingSlot(call, "its logits or its labels");
    const Labels known(call, *labels, nullptr);
    const AxisView view = classView(x->shape);
    const std::size_t axis = x->shape.size() == 1 ? 0 : 1;
    const std::int64_t first = firstOf(*x, axis);
    return withFloat(call, x->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        std::vector<T> line;
        for (std::int64_t o = 0; o < view.outer; ++o) {
            for (std::int64_t i = 0; i < view.inner; ++i) {
                const std::int64_t item = o * view.inner + i;
                TRY(const std::int64_t label, known.classOf(item, wholeExtent(*x, axis)));
                const T *row = rowOf(elements<const T>(*x), view, o, i, line);
                if (sums != nullptr) {
                    Normaliser<T> normaliser;
                    normalise(row, view.extent, normaliser);
                    const bool none = normaliser.largest == -std::numeric_limits<T>::infinity();
                    elements<T>(*sums)[item] = none
                        ? normaliser.largest
                        : static_cast<T>(std::log(normaliser.sum) + static_cast<double>(normaliser.largest));
                }
                const bool here = label >= first && label < first + view.extent;
                if (picked != nullptr)
                    elements<T>(*picked)[item] = here ? row[label - first] : T(0);
            }
        }
        return {};
    });
}

/// dx = softmax(x) d(log-sum-exp), and at the label d(its logit): all of it local to a part's classes.
Result<void> statisticsBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dx = back.wanted(0);
    const Buffer *dSums = back.gradient(0);
    const Buffer *dPicked = back.gradient(1);
    const Buffer *x = back.input(0);
    const Buffer *labels = back.input(1);
    const Buffer *sums = back.output(0);
    if (dx == nullptr)
        return {};
    if (labels == nullptr || x == nullptr || (dSums != nullptr && sums == nullptr))
        return missingSlot(call, "its logits, its labels or their log-sum-exp");
    const Labels known(call, *labels, nullptr);
    const AxisView view = classView(dx->shape);
    const std::size_t axis = dx->shape.size() == 1 ? 0 : 1;
    const std::int64_t first = firstOf(*dx, axis);
    return withFloat(call, dx->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        std::vector<T> line;
        std::vector<T> made(static_cast<std::size_t>(view.extent));
        for (std::int64_t o = 0; o < view.outer; ++o) {
            for (std::int64_t i = 0; i < view.inner; ++i) {
                const std::int64_t item = o * view.inner + i;
                TRY(const std::int64_t label, known.classOf(item, wholeExtent(*dx, axis)));
                T *to = elements<T>(*dx) + o * view.extent * view.inner + i;
                T *target = view.inner == 1 ? to : made.data();
                if (dSums != nullptr)
                    scaledSoftmax(rowOf(elements<const T>(*x), view, o, i, line), target, view.extent,
                        elements<const T>(*sums)[item], elements<const T>(*dSums)[item]);
                else
                    std::fill(target, target + view.extent, T(0));
                if (dPicked != nullptr && label >= first && label < first + view.extent)
                    target[label - first] += elements<const T>(*dPicked)[item];
                for (std::int64_t c = 0; target != to && c < view.extent; ++c)
                    to[c * view.inner] = target[c];
            }
        }
        return {};
    });
}

Result<void> classLossForward(const KernelCall &call)
{
    const Buffer *sums = findInput(call, 0);
    const Buffer *picked = findInput(call, 1);
    const Buffer *labels = findInput(call, 2);
    const Buffer *weights = findInput(call, 3);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (sums == nullptr || picked == nullptr || labels == nullptr)
        return missingSlot(call, "its statistics or its labels");
    const Labels known(call, *labels, weights);
    const bool sum = call.op->attributes.text("reduction", "sum") == "sum";
    return withFloat(call, y->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        double total = 0;
        for (std::int64_t item = 0; item < elementCount(*labels); ++item) {
            TRY(const std::int64_t label, known.classOf(item, classesKnown(weights)));
            const double loss = label < 0 ? 0
                                          : known.weightOf(label)
                    * (static_cast<double>(elements<const T>(*sums)[item])
                        - static_cast<double>(elements<const T>(*picked)[item]));
            total += loss;
            if (!sum)
                elements<T>(*y)[item] = static_cast<T>(loss);
        }
        if (sum)
            elements<T>(*y)[0] = static_cast<T>(total);
        return {};
    });
}

/// The gradient of the log-sum-exp is that of the loss, times the label's weight; of its logit the opposite.
Result<void> classLossBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dy = back.gradient();
    const Buffer *labels = back.input(2);
    const Buffer *weights = back.input(3);
    if (back.wanted(0) == nullptr && back.wanted(1) == nullptr)
        return {};
    if (dy == nullptr || labels == nullptr)
        return missingSlot(call, "a gradient or its labels");
    const Labels known(call, *labels, weights);
    const bool sum = call.op->attributes.text("reduction", "sum") == "sum";
    return withFloat(call, dy->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        for (std::int64_t item = 0; item < elementCount(*labels); ++item) {
            TRY(const std::int64_t label, known.classOf(item, classesKnown(weights)));
            const T gradient = label < 0 ? T(0)
                                         : static_cast<T>(known.weightOf(label)
                                             * static_cast<double>(elements<const T>(*dy)[sum ? 0 : item]));
            if (const Buffer *dSums = back.wanted(0))
                elements<T>(*dSums)[item] = gradient;
            if (const Buffer *dPicked = back.wanted(1))
                elements<T>(*dPicked)[item] = -gradient;
        }
        return {};
    });
}

Result<void> countValid(const KernelCall &call)
{
    const Buffer *labels = findInput(call, 0);
    const Buffer *weights = findInput(call, 1);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (labels == nullptr)
        return missingSlot(call, "its labels");
    const Labels known(call, *labels, weights);
    const std::int64_t classes = classesKnown(weights);
    double total = 0;
    for (std::int64_t i = 0; i < elementCount(*labels); ++i) {
        TRY(const std::int64_t label, known.classOf(i, classes));
        total += label < 0 ? 0 : known.weightOf(label);
    }
    return withFloat(call, y->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        elements<T>(*y)[0] = static_cast<T>(total);
        return {};
    });
}

} // namespace

void addLossKernels(KernelTable &table)
{
    for (const OperatorKind kind : {OperatorKind::CrossEntropy, OperatorKind::NegativeLogLikelihood}) {
        table.add(kind, Direction::Forward, lossForward);
        table.add(kind, Direction::Backward, lossBackward);
    }
    table.add(OperatorKind::ClassStatistics, Direction::Forward, statisticsForward);
    table.add(OperatorKind::ClassStatistics, Direction::Backward, statisticsBackward);
    table.add(OperatorKind::ClassLoss, Direction::Forward, classLossForward);
    table.add(OperatorKind::ClassLoss, Direction::Backward, classLossBackward);
    table.add(OperatorKind::CountValid, Direction::Forward, countValid);
}

} // namespace planloom
