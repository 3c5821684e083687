#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/reductions/loss_plans.h"
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

Result<void> lossForward(const KernelCall &call, const LossPlan &plan)
{
    const Labels known(call, *plan.labels, plan.weights);
    const AxisView &view = plan.view;
    TRY(const auto classes, classesOf(known, view));
    return withFloat(call, plan.x->dataType, [&]<typename T>(T) {
        std::vector<double> losses(classes.size(), 0.0);
        forEachItems(view, [&](std::int64_t begin, std::int64_t end) {
            std::vector<T> line;
            for (std::int64_t item = begin; item < end; ++item) {
                const std::int64_t o = item / view.inner;
                const std::int64_t i = item % view.inner;
                const std::int64_t label = classes[static_cast<std::size_t>(item)];
                double &loss = losses[static_cast<std::size_t>(item)];
                if (label >= 0 && plan.logits) {
                    const T *row = rowOf(elements<const T>(*plan.x), view, o, i, line);
                    Normaliser<T> normaliser;
                    normalise(row, view.extent, normaliser);
                    loss = known.weightOf(label)
                        * (std::log(normaliser.sum) + static_cast<double>(normaliser.largest)
                            - static_cast<double>(row[label]));
                } else if (label >= 0) {
                    loss = -known.weightOf(label)
                        * static_cast<double>(
                            elements<const T>(*plan.x)[(o * view.extent + label) * view.inner + i]);
                }
                if (!plan.isSum)
                    elements<T>(*plan.made)[item] = static_cast<T>(loss);
            }
        });
        if (plan.isSum)
            elements<T>(*plan.made)[0] = static_cast<T>(std::accumulate(losses.begin(), losses.end(), 0.0));
    });
}

Result<void> lossBackward(const KernelCall &call, const LossPlan &plan)
{
    const Labels known(call, *plan.labels, plan.weights);
    const AxisView &view = plan.view;
    const Buffer *dx = plan.made;
    if (!plan.logits || view.inner != 1)
        fillZero(*dx);
    TRY(const auto classes, classesOf(known, view));
    return withFloat(call, dx->dataType, [&]<typename T>(T) {
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
                    static_cast<double>(elements<const T>(*plan.dy)[plan.isSum ? 0 : item])
                    * known.weightOf(label);
                if (plan.logits) {
                    const T *row = rowOf(elements<const T>(*plan.x), view, o, i, line);
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
    });
}

Result<void> statisticsForward(const KernelCall &call, const ClassStatisticsPlan &plan)
{
    const Labels known(call, *plan.labels, nullptr);
    const AxisView &view = plan.view;
    const Buffer *sums = plan.sums;
    const Buffer *picked = plan.picked;
    const std::int64_t first = plan.first;
    return withFloat(call, plan.x->dataType, [&]<typename T>(T) -> Result<void> {
        std::vector<T> line;
        for (std::int64_t o = 0; o < view.outer; ++o) {
            for (std::int64_t i = 0; i < view.inner; ++i) {
                const std::int64_t item = o * view.inner + i;
                TRY(const std::int64_t label, known.classOf(item, plan.classes));
                const T *row = rowOf(elements<const T>(*plan.x), view, o, i, line);
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
Result<void> statisticsBackward(const KernelCall &call, const ClassStatisticsPlan &plan)
{
    const Labels known(call, *plan.labels, nullptr);
    const AxisView &view = plan.view;
    const Buffer *dx = plan.dx;
    const std::int64_t first = plan.first;
    return withFloat(call, dx->dataType, [&]<typename T>(T) -> Result<void> {
        std::vector<T> line;
        std::vector<T> made(static_cast<std::size_t>(view.extent));
        for (std::int64_t o = 0; o < view.outer; ++o) {
            for (std::int64_t i = 0; i < view.inner; ++i) {
                const std::int64_t item = o * view.inner + i;
                TRY(const std::int64_t label, known.classOf(item, plan.classes));
                T *to = elements<T>(*dx) + o * view.extent * view.inner + i;
                T *target = view.inner == 1 ? to : made.data();
                if (plan.dSums != nullptr)
                    scaledSoftmax(rowOf(elements<const T>(*plan.x), view, o, i, line), target, view.extent,
                        elements<const T>(*plan.sums)[item], elements<const T>(*plan.dSums)[item]);
                else
                    std::fill(target, target + view.extent, T(0));
                if (plan.dPicked != nullptr && label >= first && label < first + view.extent)
                    target[label - first] += elements<const T>(*plan.dPicked)[item];
                for (std::int64_t c = 0; target != to && c < view.extent; ++c)
                    to[c * view.inner] = target[c];
            }
        }
        return {};
    });
}

Result<void> classLossForward(const KernelCall &call, const ClassLossPlan &plan)
{
    const Labels known(call, *plan.labels, plan.weights);
    return withFloat(call, plan.made->dataType, [&]<typename T>(T) -> Result<void> {
        double total = 0;
        for (std::int64_t item = 0; item < elementCount(*plan.labels); ++item) {
            TRY(const std::int64_t label, known.classOf(item, plan.classes));
            const double loss = label < 0 ? 0
                                          : known.weightOf(label)
                    * (static_cast<double>(elements<const T>(*plan.sums)[item])
                        - static_cast<double>(elements<const T>(*plan.picked)[item]));
            total += loss;
            if (!plan.isSum)
                elements<T>(*plan.made)[item] = static_cast<T>(loss);
        }
        if (plan.isSum)
            elements<T>(*plan.made)[0] = static_cast<T>(total);
        return {};
    });
}

/// The gradient of the log-sum-exp is that of the loss, times the label's weight; of its logit the opposite.
Result<void> classLossBackward(const KernelCall &call, const ClassLossPlan &plan)
{
    const Labels known(call, *plan.labels, plan.weights);
    return withFloat(call, plan.dy->dataType, [&]<typename T>(T) -> Result<void> {
        for (std::int64_t item = 0; item < elementCount(*plan.labels); ++item) {
            TRY(const std::int64_t label, known.classOf(item, plan.classes));
            const T gradient = label < 0
                ? T(0)
                : static_cast<T>(known.weightOf(label)
                    * static_cast<double>(elements<const T>(*plan.dy)[plan.isSum ? 0 : item]));
            if (plan.sums != nullptr)
                elements<T>(*plan.sums)[item] = gradient;
            if (plan.picked != nullptr)
                elements<T>(*plan.picked)[item] = -gradient;
        }
        return {};
    });
}

Result<void> countValid(const KernelCall &call, const ClassLossPlan &plan)
{
    const Labels known(call, *plan.labels, plan.weights);
    double total = 0;
    for (std::int64_t i = 0; i < elementCount(*plan.labels); ++i) {
        TRY(const std::int64_t label, known.classOf(i, plan.classes));
        total += label < 0 ? 0 : known.weightOf(label);
    }
    return withFloat(call, plan.made->dataType,
        [&]<typename T>(T) { elements<T>(*plan.made)[0] = static_cast<T>(total); });
}

} // namespace

void addLossKernels(KernelTable &table)
{
    table.add({OperatorKind::CrossEntropy, OperatorKind::NegativeLogLikelihood},
        planned<planLoss, lossForward>, planned<planLoss, lossBackward>);
    table.add({OperatorKind::ClassStatistics}, planned<planClassStatistics, statisticsForward>,
        planned<planClassStatistics, statisticsBackward>);
    table.add({OperatorKind::ClassLoss}, planned<planClassLoss, classLossForward>,
        planned<planClassLoss, classLossBackward>);
    table.add(OperatorKind::CountValid, Direction::Forward, planned<planCountValid, countValid>);
}

} // namespace planloom
