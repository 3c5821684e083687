#include "engine/graph/operators/weight_update.h"
#include "engine/kernels/elements/vector_math.h"
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/optimizers/optimizer_parameters.h"

#include <cmath>
#include <numeric>
#include <vector>

namespace planloom {

namespace {

template<typename T> struct AdamWState {
    const T *weight;
    const T *gradient;
    const T *m;
    const T *v;
    T factor; ///< Of the gradient.
    T *newWeight;
    T *newM;
    T *newV;
};

/// Loshchilov and Hutter, Decoupled Weight Decay Regularization (arXiv:1711.05101), in PyTorch's order.
template<typename T>
PLANLOOM_INLINE void adamWLoop(const AdamWState<T> &s, std::int64_t count, const AdamW<T> &p)
{
#pragma omp simd
    for (std::int64_t i = 0; i < count; ++i) {
        const T g = s.gradient[i] * s.factor;
        const T m = p.beta1 * s.m[i] + p.rest1 * g;
        const T v = p.beta2 * s.v[i] + p.rest2 * g * g;
        s.newM[i] = m;
        s.newV[i] = v;
        s.newWeight[i] = s.weight[i] * p.keep - p.rate * m / (std::sqrt(v) * p.scale + p.epsilon);
    }
}

PLANLOOM_HOT void adamWStep(const AdamWState<float> &s, std::int64_t count, const AdamW<float> &p)
{
    adamWLoop(s, count, p);
}
void adamWStep(const AdamWState<double> &s, std::int64_t count, const AdamW<double> &p)
{
    adamWLoop(s, count, p);
}

/// What gradients are multiplied with.
template<typename T> T factorOf(const KernelCall &call)
{
    const auto slot = factorSlot(*call.op);
    const Buffer *factor = slot ? findInput(call, *slot) : nullptr;
    if (factor == nullptr)
        return T{1};
    return factor->dataType == DataType::Float64 ? static_cast<T>(elements<const double>(*factor)[0])
                                                 : static_cast<T>(elements<const float>(*factor)[0]);
}

Result<void> adamW(const KernelCall &call)
{
    for (std::size_t slot = 0; slot < 4; ++slot) {
        if (findInput(call, slot) == nullptr)
            return missingSlot(call, "its weight, gradient or state");
    }
    for (std::size_t slot = 0; slot < 3; ++slot) {
        if (findOutput(call, slot) == nullptr)
            return missingSlot(call, "room for its new weight or state");
    }
    return withFloat(call, call.inputs[0].dataType, [&]<typename T>(T) {
        const AdamW<T> p = adamWOf<T>(call);
        const AdamWState<T> state{elements<const T>(call.inputs[0]), elements<const T>(call.inputs[1]),
            elements<const T>(call.inputs[2]), elements<const T>(call.inputs[3]), factorOf<T>(call),
            elements<T>(call.outputs[0]), elements<T>(call.outputs[1]), elements<T>(call.outputs[2])};
        forEachStretch(
            elementCount(call.outputs[0]), kElementStretch, [&](std::int64_t begin, std::int64_t end) {
                adamWStep({state.weight + begin, state.gradient + begin, state.m + begin, state.v + begin,
                              state.factor, state.newWeight + begin, state.newM + begin, state.newV + begin},
                    end - begin, p);
            });
    });
}

/// PyTorch's: weight decay joins the gradient, and the momentum is a running sum of gradients.
Result<void> sgd(const KernelCall &call)
{
    const Buffer *weight = findInput(call, 0);
    const Buffer *gradient = findInput(call, 1);
    const Buffer *momentum = findInput(call, 2);
    const Buffer *newWeight = findOutput(call, 0);
    const Buffer *newMomentum = findOutput(call, 1);
    if (weight == nullptr || gradient == nullptr || newWeight == nullptr)
        return missingSlot(call, "its weight or gradient");
    const Attributes &a = call.op->attributes;
    return withFloat(call, weight->dataType, [&]<typename T>(T) {
        const auto rate = static_cast<T>(learningRateOf(call));
        const auto decay = static_cast<T>(a.real("weight_decay", 0));
        const auto kept = static_cast<T>(a.real("momentum", 0));
        const T factor = factorOf<T>(call);
        for (std::int64_t i = 0; i < elementCount(*newWeight); ++i) {
            const T w = elements<const T>(*weight)[i];
            T direction = elements<const T>(*gradient)[i] * factor + decay * w;
            if (momentum != nullptr)
                direction += kept * elements<const T>(*momentum)[i];
            if (newMomentum != nullptr)
                elements<T>(*newMomentum)[i] = direction;
            elements<T>(*newWeight)[i] = w - rate * direction;
        }
    });
}

/// In several lanes: one sum would wait for each of its additions.
template<typename T> PLANLOOM_INLINE double squaresLoop(const T *x, std::int64_t count)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t i = 0; i < count; ++i)
        sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    return sum;
}

PLANLOOM_HOT double squaresOf(const float *x, std::int64_t count)
{
    return squaresLoop(x, count);
}
double squaresOf(const double *x, std::int64_t count)
{
    return squaresLoop(x, count);
}

/// By stretches, which are added up in their order whoever found their sums.
Result<void> squareSum(const KernelCall &call)
{
    const Buffer *gradient = findInput(call, 0);
    const Buffer *made = findOutput(call, 0);
    if (gradient == nullptr || made == nullptr)
        return missingSlot(call, "its gradient, or room for the sum");
    return withFloat(call, gradient->dataType, [&]<typename T>(T) {
        const T *x = elements<const T>(*gradient);
        const std::int64_t count = elementCount(*gradient);
        std::vector<double> sums(static_cast<std::size_t>((count + kElementStretch - 1) / kElementStretch));
        forEachStretch(count, kElementStretch, [&](std::int64_t begin, std::int64_t end) {
            sums[static_cast<std::size_t>(begin / kElementStretch)] = squaresOf(x + begin, end - begin);
        });
        const double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
        if (made->dataType == DataType::Float64)
            elements<double>(*made)[0] = sum;
        else
            elements<float>(*made)[0] = static_cast<float>(sum);
    });
}

/// PyTorch's clip_grad_norm_.
Result<void> clipFactor(const KernelCall &call)
{
    const Buffer *squares = findInput(call, 0);
    const Buffer *factor = findOutput(call, 0);
    if (squares == nullptr || factor == nullptr)
        return missingSlot(call, "the sum of squares, or room for the factor");
    return withFloat(call, squares->dataType, [&]<typename T>(T) {
        const T norm = std::sqrt(elements<const T>(*squares)[0]);
        const auto most = static_cast<T>(call.op->attributes.real("clip_norm"));
        const T ratio = most / (norm + T(1e-6));
        // A norm that is none stays none: it must not pass for a small one.
        elements<T>(*factor)[0] = ratio > 1 ? 1 : ratio;
    });
}

} // namespace

void addOptimizerKernels(KernelTable &table)
{
    table.add(OperatorKind::AdamWStep, Direction::Optimizer, adamW);
    table.add(OperatorKind::SgdStep, Direction::Optimizer, sgd);
    table.add(OperatorKind::SquareSum, Direction::Optimizer, squareSum);
    table.add(OperatorKind::ClipFactor, Direction::Optimizer, clipFactor);
}

} // namespace planloom
