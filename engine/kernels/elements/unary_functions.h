#pragma once

#include "engine/kernels/elements/vector_math.h"

#include <cmath>
#include <numbers>

// The functions of one operand: of all elements alike, and the same code on every kind of device.

namespace planloom::unary {

/// Attributes of the activations that have some, as numbers of the type computed in.
template<typename T> struct Parameters {
    T alpha{};
    T beta{};
    T gamma{};
    T least{};
    T most{};
};

// Each function gives its value and its slope, both from x. Where the slope follows from the value y alone,
// slopeOfValue says so: the operator may then save its output in place of its input.
#define PLANLOOM_UNARY_FUNCTION(Name, valueOfX, slopeOfX)                                                    \
    struct Name {                                                                                            \
        [[maybe_unused]] static constexpr bool kFromValue = false;                                           \
        template<typename T> PLANLOOM_INLINE static T value(T x, [[maybe_unused]] const Parameters<T> &p)    \
        {                                                                                                    \
            return static_cast<T>(valueOfX);                                                                 \
        }                                                                                                    \
        template<typename T>                                                                                 \
        PLANLOOM_INLINE static T slope([[maybe_unused]] T x, [[maybe_unused]] const Parameters<T> &p)        \
        {                                                                                                    \
            return static_cast<T>(slopeOfX);                                                                 \
        }                                                                                                    \
    };
#define PLANLOOM_UNARY_FUNCTION_OF_VALUE(Name, valueOfX, slopeOfX, slopeOfY)                                 \
    PLANLOOM_UNARY_FUNCTION(Name##OfInput, valueOfX, slopeOfX)                                               \
    struct Name : Name##OfInput {                                                                            \
        static constexpr bool kFromValue = true;                                                             \
        template<typename T>                                                                                 \
        PLANLOOM_INLINE static T slopeOfValue(T y, [[maybe_unused]] const Parameters<T> &p)                  \
        {                                                                                                    \
            return static_cast<T>(slopeOfY);                                                                 \
        }                                                                                                    \
    };

PLANLOOM_UNARY_FUNCTION(Abs, x<T(0) ? -x : x, x> T(0) ? T(1) : x < T(0) ? T(-1) : T(0))
PLANLOOM_UNARY_FUNCTION(Acos, std::acos(x), T(-1) / std::sqrt(T(1) - x * x))
PLANLOOM_UNARY_FUNCTION(Acosh, std::acosh(x), T(1) / std::sqrt(x * x - T(1)))
PLANLOOM_UNARY_FUNCTION(Asin, std::asin(x), T(1) / std::sqrt(T(1) - x * x))
PLANLOOM_UNARY_FUNCTION(Asinh, std::asinh(x), T(1) / std::sqrt(x * x + T(1)))
PLANLOOM_UNARY_FUNCTION(Atan, std::atan(x), T(1) / (T(1) + x * x))
PLANLOOM_UNARY_FUNCTION(Atanh, std::atanh(x), T(1) / (T(1) - x * x))
PLANLOOM_UNARY_FUNCTION(Ceil, std::ceil(x), T(0))
PLANLOOM_UNARY_FUNCTION(Cos, std::cos(x), -std::sin(x))
PLANLOOM_UNARY_FUNCTION(Cosh, std::cosh(x), std::sinh(x))
PLANLOOM_UNARY_FUNCTION(Erf, erfOf(x), T(2) * std::numbers::inv_sqrtpi_v<T> * expOf(-x * x))
PLANLOOM_UNARY_FUNCTION_OF_VALUE(Exp, expOf(x), expOf(x), y)
PLANLOOM_UNARY_FUNCTION(Floor, std::floor(x), T(0))
PLANLOOM_UNARY_FUNCTION(Log, std::log(x), T(1) / x)
PLANLOOM_UNARY_FUNCTION(Neg, -x, T(-1))
PLANLOOM_UNARY_FUNCTION_OF_VALUE(Reciprocal, T(1) / x, T(-1) / (x * x), -y *y)
PLANLOOM_UNARY_FUNCTION_OF_VALUE(Relu, x<T(0) ? T(0) : x, x> T(0) ? T(1) : T(0), y > T(0) ? T(1) : T(0))
PLANLOOM_UNARY_FUNCTION(Round, std::nearbyint(x), T(0))
PLANLOOM_UNARY_FUNCTION_OF_VALUE(Sigmoid, sigmoidOf(x), sigmoidOf(x) * (T(1) - sigmoidOf(x)), y *(T(1) - y))
// NaN stays what it is: x != x.
PLANLOOM_UNARY_FUNCTION(Sign, x > T(0) ? T(1) : x < T(0) ? T(-1) : x != x ? x : T(0), T(0))
PLANLOOM_UNARY_FUNCTION(Sin, std::sin(x), std::cos(x))
PLANLOOM_UNARY_FUNCTION(Sinh, std::sinh(x), std::cosh(x))
PLANLOOM_UNARY_FUNCTION(
    Softplus, x > T(0) ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)), sigmoidOf(x))
PLANLOOM_UNARY_FUNCTION(
    Softsign, x / (T(1) + std::fabs(x)), T(1) / ((T(1) + std::fabs(x)) * (T(1) + std::fabs(x))))
PLANLOOM_UNARY_FUNCTION_OF_VALUE(Sqrt, std::sqrt(x), T(0.5) / std::sqrt(x), T(0.5) / y)
PLANLOOM_UNARY_FUNCTION_OF_VALUE(Tan, std::tan(x), T(1) + std::tan(x) * std::tan(x), T(1) + y * y)
PLANLOOM_UNARY_FUNCTION_OF_VALUE(Tanh, tanhOf(x), T(1) - tanhOf(x) * tanhOf(x), T(1) - y * y)
PLANLOOM_UNARY_FUNCTION(Silu, x *sigmoidOf(x), sigmoidOf(x) * (T(1) + x * (T(1) - sigmoidOf(x))))
PLANLOOM_UNARY_FUNCTION(
    Elu, x > T(0) ? x : p.alpha * (std::exp(x) - T(1)), x > T(0) ? T(1) : p.alpha * std::exp(x))
PLANLOOM_UNARY_FUNCTION(
    Celu, x > T(0) ? x : p.alpha * (std::exp(x / p.alpha) - T(1)), x > T(0) ? T(1) : std::exp(x / p.alpha))
PLANLOOM_UNARY_FUNCTION(LeakyRelu, x > T(0) ? x : p.alpha * x, x > T(0) ? T(1) : p.alpha)
PLANLOOM_UNARY_FUNCTION(ThresholdedRelu, x > p.alpha ? x : T(0), x > p.alpha ? T(1) : T(0))
PLANLOOM_UNARY_FUNCTION(Selu, p.gamma *(x > T(0) ? x : p.alpha * (std::exp(x) - T(1))),
    p.gamma *(x > T(0) ? T(1) : p.alpha * std::exp(x)))
PLANLOOM_UNARY_FUNCTION(
    Clip, x<p.least ? p.least : x> p.most ? p.most : x, x >= p.least && x <= p.most ? T(1) : T(0))

struct HardSigmoid {
    static constexpr bool kFromValue = false;
    template<typename T> PLANLOOM_INLINE static T value(T x, const Parameters<T> &p)
    {
        const T line = p.alpha * x + p.beta;
        return line < T(0) ? T(0) : line > T(1) ? T(1) : line;
    }
    template<typename T> PLANLOOM_INLINE static T slope(T x, const Parameters<T> &p)
    {
        const T line = p.alpha * x + p.beta;
        return line > T(0) && line < T(1) ? p.alpha : T(0);
    }
};

struct HardSwish {
    static constexpr bool kFromValue = false;
    template<typename T> PLANLOOM_INLINE static T value(T x, const Parameters<T> &)
    {
        return x <= T(-3) ? x * T(0) : x >= T(3) ? x : x * (x + T(3)) / T(6);
    }
    template<typename T> PLANLOOM_INLINE static T slope(T x, const Parameters<T> &)
    {
        return x <= T(-3) ? T(0) : x >= T(3) ? T(1) : (T(2) * x + T(3)) / T(6);
    }
};

struct Mish {
    static constexpr bool kFromValue = false;
    template<typename T> PLANLOOM_INLINE static T value(T x, const Parameters<T> &p)
    {
        return x * tanhOf(Softplus::value(x, p));
    }
    template<typename T> PLANLOOM_INLINE static T slope(T x, const Parameters<T> &p)
    {
        const T t = tanhOf(Softplus::value(x, p));
        return t + x * (T(1) - t * t) * sigmoidOf(x);
    }
};

struct GeluErf {
    static constexpr bool kFromValue = false;
    template<typename T> PLANLOOM_INLINE static T value(T x, const Parameters<T> &)
    {
        return T(0.5) * x * (T(1) + erfOf(x * static_cast<T>(1 / std::numbers::sqrt2)));
    }
    template<typename T> PLANLOOM_INLINE static T slope(T x, const Parameters<T> &)
    {
        const T density =
            expOf(T(-0.5) * x * x) * static_cast<T>(0.5 * std::numbers::inv_sqrtpi * std::numbers::sqrt2);
        return T(0.5) * (T(1) + erfOf(x * static_cast<T>(1 / std::numbers::sqrt2))) + x * density;
    }
};

struct GeluTanh {
    static constexpr bool kFromValue = false;
    static constexpr double kScale = std::numbers::inv_sqrtpi * std::numbers::sqrt2; // sqrt(2 / pi)
    template<typename T> PLANLOOM_INLINE static T value(T x, const Parameters<T> &)
    {
        const T t = tanhOf(static_cast<T>(kScale) * (x + T(0.044715) * x * x * x));
        return T(0.5) * x * (T(1) + t);
    }
    template<typename T> PLANLOOM_INLINE static T slope(T x, const Parameters<T> &)
    {
        const T t = tanhOf(static_cast<T>(kScale) * (x + T(0.044715) * x * x * x));
        const T inner = static_cast<T>(kScale) * (T(1) + T(3 * 0.044715) * x * x);
        return T(0.5) * (T(1) + t) + T(0.5) * x * (T(1) - t * t) * inner;
    }
};

/// Functions that are constant in places: no gradient comes through there, not even one that is no number,
/// such as that of a root at 0 behind a bound.
template<typename Function> inline constexpr bool kIsFlatInPlaces = false;
template<> inline constexpr bool kIsFlatInPlaces<Ceil> = true;
template<> inline constexpr bool kIsFlatInPlaces<Clip> = true;
template<> inline constexpr bool kIsFlatInPlaces<Floor> = true;
template<> inline constexpr bool kIsFlatInPlaces<HardSigmoid> = true;
template<> inline constexpr bool kIsFlatInPlaces<HardSwish> = true;
template<> inline constexpr bool kIsFlatInPlaces<Relu> = true;
template<> inline constexpr bool kIsFlatInPlaces<Round> = true;
template<> inline constexpr bool kIsFlatInPlaces<Sign> = true;
template<> inline constexpr bool kIsFlatInPlaces<ThresholdedRelu> = true;

/// The gradient of x from that of f(x), where the slope is known.
template<typename Function, typename T> PLANLOOM_INLINE T gradient(T dy, T slope)
{
    if constexpr (kIsFlatInPlaces<Function>)
        return slope == T(0) ? T(0) : dy * slope;
    else
        return dy * slope;
}

// All of them, by the name that their operator kind has, too; Gelu is GeluErf or GeluTanh. (The formatter
// would lay such lists out anew each time.) First those that integers have as well.
// clang-format off
#define PLANLOOM_NUMBER_FUNCTIONS(FUNCTION)                                                                  \
    FUNCTION(Abs) FUNCTION(Neg) FUNCTION(Relu) FUNCTION(Sign) FUNCTION(Clip)
#define PLANLOOM_FLOAT_FUNCTIONS(FUNCTION)                                                                   \
    FUNCTION(Acos)                                                                                           \
    FUNCTION(Acosh) FUNCTION(Asin) FUNCTION(Asinh) FUNCTION(Atan) FUNCTION(Atanh) FUNCTION(Ceil)             \
        FUNCTION(Cos) FUNCTION(Cosh) FUNCTION(Erf) FUNCTION(Exp) FUNCTION(Floor) FUNCTION(Log)               \
            FUNCTION(Reciprocal) FUNCTION(Round) FUNCTION(Sigmoid) FUNCTION(Sin) FUNCTION(Sinh)              \
                FUNCTION(Softplus) FUNCTION(Softsign) FUNCTION(Sqrt) FUNCTION(Tan) FUNCTION(Tanh)            \
                    FUNCTION(Silu) FUNCTION(Elu) FUNCTION(Celu) FUNCTION(LeakyRelu)                          \
                        FUNCTION(ThresholdedRelu) FUNCTION(Selu) FUNCTION(HardSigmoid) FUNCTION(HardSwish)   \
                            FUNCTION(Mish)
// clang-format on

} // namespace planloom::unary
