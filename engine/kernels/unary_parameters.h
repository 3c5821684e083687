#pragma once

#include "engine/graph/operator.h"
#include "engine/kernels/unary_functions.h"

#include <limits>
#include <type_traits>

namespace planloom::unary {

/// Those of an operator.
template<typename T> Parameters<T> parametersOf(const Operator &op)
{
    const OperatorKind kind = op.kind;
    const Attributes &a = op.attributes;
    double alpha = 1;
    double beta = 0.5;
    double gamma = 1.0507009873554805;
    if (kind == OperatorKind::LeakyRelu)
        alpha = 0.01;
    if (kind == OperatorKind::Selu)
        alpha = 1.6732632423543772;
    if (kind == OperatorKind::HardSigmoid)
        alpha = 0.2;
    Parameters<T> p;
    p.alpha = static_cast<T>(a.real("alpha", alpha));
    p.beta = static_cast<T>(a.real("beta", beta));
    p.gamma = static_cast<T>(a.real("gamma", gamma));
    p.least = std::numeric_limits<T>::lowest();
    p.most = std::numeric_limits<T>::max();
    if constexpr (std::is_floating_point_v<T>) {
        p.least = -std::numeric_limits<T>::infinity();
        p.most = std::numeric_limits<T>::infinity();
    }
    if (a.has("min"))
        p.least = static_cast<T>(a.real("min", static_cast<double>(a.integer("min"))));
    if (a.has("max"))
        p.most = static_cast<T>(a.real("max", static_cast<double>(a.integer("max"))));
    return p;
}

} // namespace planloom::unary
