#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/optimizer_parameters.h"
#include "engine/kernels/vector_math.h"

#include <cmath>

namespace planloom {

namespace {

template<typename T> struct AdamWState {
    const T *weight;
    const T *gradient;
    const T *m;
    const T *v;
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
        const T g = s.gradient[i];
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
    return withFloat(call, call.inputs[0].dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        const AdamW<T> p = adamWOf<T>(call);
        const AdamWState<T> state{elements<const T>(call.inputs[0]), elements<const T>(call.inputs[1]),
            elements<const T>(call.inputs[2]), elements<const T>(call.inputs[3]),
            elements<T>(call.outputs[0]), elements<T>(call.outputs[1]), elements<T>(call.outputs[2])};
        forEachStretch(
            elementCount(call.outputs[0]), kElementStretch, [&](std::int64_t begin, std::int64_t end) {
                adamWStep({state.weight + begin, state.gradient + begin, state.m + begin, state.v + begin,
                              state.newWeight + begin, state.newM + begin, state.newV + begin},
                    end - begin, p);
            });
        return {};
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
    return withFloat(call, weight->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        const auto rate = static_cast<T>(learningRateOf(call));
        const auto decay = static_cast<T>(a.real("weight_decay", 0));
        const auto kept = static_cast<T>(a.real("momentum", 0));
        for (std::int64_t i = 0; i < elementCount(*newWeight); ++i) {
            const T w = elements<const T>(*weight)[i];
            T direction = elements<const T>(*gradient)[i] + decay * w;
            if (momentum != nullptr)
                direction += kept * elements<const T>(*momentum)[i];
            if (newMomentum != nullptr)
                elements<T>(*newMomentum)[i] = direction;
            elements<T>(*newWeight)[i] = w - rate * direction;
        }
        return {};
    });
}

} // namespace

void addOptimizerKernels(KernelTable &table)
{
    table.add(OperatorKind::AdamWStep, Direction::Optimizer, adamW);
    table.add(OperatorKind::SgdStep, Direction::Optimizer, sgd);
}

} // namespace planloom
