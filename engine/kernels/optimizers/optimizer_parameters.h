#pragma once

#include "engine/kernels/kernel_call.h"
#include "engine/kernels/optimizers/optimizer_values.h"

#include <cmath>

namespace planloom {

/// Of this step.
inline double learningRateOf(const KernelCall &call)
{
    return call.learningRate.value_or(call.op->attributes.real("learning_rate", 1e-3)) * call.rateShare;
}

template<typename T> AdamW<T> adamWOf(const KernelCall &call)
{
    const Attributes &a = call.op->attributes;
    const double rate = learningRateOf(call);
    const double beta1 = a.real("beta1", 0.9);
    const double beta2 = a.real("beta2", 0.999);
    const auto steps = static_cast<double>(call.step);
    AdamW<T> p;
    p.keep = static_cast<T>(1 - rate * a.real("weight_decay", 0.01));
    p.beta1 = static_cast<T>(beta1);
    p.beta2 = static_cast<T>(beta2);
    p.rest1 = static_cast<T>(1 - beta1);
    p.rest2 = static_cast<T>(1 - beta2);
    p.rate = static_cast<T>(rate / (1 - std::pow(beta1, steps)));
    p.scale = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, steps)));
    p.epsilon = static_cast<T>(a.real("epsilon", 1e-8));
    return p;
}

} // namespace planloom
