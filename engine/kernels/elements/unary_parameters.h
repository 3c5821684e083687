#pragma once

#include "engine/graph/operator.h"
#include "engine/kernels/elements/unary_functions.h"
#include "engine/kernels/number_attribute.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>

namespace planloom::unary {

/// A bound that an attribute gives as an integer or as a real: the nearest that the type holds.
template<typename T> T boundOf(const Attributes &attributes, std::string_view name)
{
    if constexpr (std::is_integral_v<T>) {
        constexpr auto kLeast = static_cast<std::int64_t>(std::numeric_limits<T>::lowest());
        constexpr auto kMost = static_cast<std::int64_t>(std::numeric_limits<T>::max());
        const double real = attributes.real(name, 0);
        const std::int64_t whole = attributes.integer(name,
            real >= static_cast<double>(kMost)        ? kMost
                : real <= static_cast<double>(kLeast) ? kLeast
                                                      : static_cast<std::int64_t>(real));
        return static_cast<T>(std::clamp(whole, kLeast, kMost));
    } else {
        return numberOf<T>(attributes, name, T(0));
    }
}

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
        p.least = boundOf<T>(a, "min");
    if (a.has("max"))
        p.most = boundOf<T>(a, "max");
    return p;
}

} // namespace planloom::unary
