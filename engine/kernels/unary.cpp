#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/vector_math.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <type_traits>

namespace planloom {

namespace {

/// Attributes of the activations that have some, as numbers of the type computed in.
template<typename T> struct Parameters {
    T alpha{};
    T beta{};
    T gamma{};
    T least{};
    T most{};
};

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
PLANLOOM_UNARY_FUNCTION(Sign, x > T(0) ? T(1) : x < T(0) ? T(-1) : T(0), T(0))
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
        return x <= T(-3) ? T(0) : x >= T(3) ? x : x * (x + T(3)) / T(6);
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

template<typename Function, typename T>
PLANLOOM_INLINE void applyLoop(const T *x, T *y, std::int64_t count, const Parameters<T> &p)
{
    for (std::int64_t i = 0; i < count; ++i)
        y[i] = Function::value(x[i], p);
}

template<typename Function, typename T>
PLANLOOM_INLINE void slopeLoop(const T *dy, const T *x, T *dx, std::int64_t count, const Parameters<T> &p)
{
    for (std::int64_t i = 0; i < count; ++i)
        dx[i] = dy[i] * Function::slope(x[i], p);
}

template<typename Function, typename T>
PLANLOOM_INLINE void valueSlopeLoop(
    const T *dy, const T *y, T *dx, std::int64_t count, const Parameters<T> &p)
{
    for (std::int64_t i = 0; i < count; ++i)
        dx[i] = dy[i] * Function::slopeOfValue(y[i], p);
}

/// The loops of one function; those of the frequent ones on float are specialised below.
template<typename Function> struct UnaryLoops {
    template<typename T> static void apply(const T *x, T *y, std::int64_t count, const Parameters<T> &p)
    {
        applyLoop<Function>(x, y, count, p);
    }
    template<typename T>
    static void slope(const T *dy, const T *x, T *dx, std::int64_t count, const Parameters<T> &p)
    {
        slopeLoop<Function>(dy, x, dx, count, p);
    }
};

#define PLANLOOM_HOT_UNARY_FUNCTION(Name)                                                                    \
    PLANLOOM_HOT void apply##Name(const float *x, float *y, std::int64_t count, const Parameters<float> &p)  \
    {                                                                                                        \
        applyLoop<Name>(x, y, count, p);                                                                     \
    }                                                                                                        \
    PLANLOOM_HOT void slope##Name(                                                                           \
        const float *dy, const float *x, float *dx, std::int64_t count, const Parameters<float> &p)          \
    {                                                                                                        \
        slopeLoop<Name>(dy, x, dx, count, p);                                                                \
    }                                                                                                        \
    template<> struct UnaryLoops<Name> {                                                                     \
        static void apply(const float *x, float *y, std::int64_t count, const Parameters<float> &p)          \
        {                                                                                                    \
            apply##Name(x, y, count, p);                                                                     \
        }                                                                                                    \
        static void slope(                                                                                   \
            const float *dy, const float *x, float *dx, std::int64_t count, const Parameters<float> &p)      \
        {                                                                                                    \
            slope##Name(dy, x, dx, count, p);                                                                \
        }                                                                                                    \
        template<typename T> static void apply(const T *x, T *y, std::int64_t count, const Parameters<T> &p) \
        {                                                                                                    \
            applyLoop<Name>(x, y, count, p);                                                                 \
        }                                                                                                    \
        template<typename T>                                                                                 \
        static void slope(const T *dy, const T *x, T *dx, std::int64_t count, const Parameters<T> &p)        \
        {                                                                                                    \
            slopeLoop<Name>(dy, x, dx, count, p);                                                            \
        }                                                                                                    \
    };

PLANLOOM_HOT_UNARY_FUNCTION(Erf)
PLANLOOM_HOT_UNARY_FUNCTION(Exp)
PLANLOOM_HOT_UNARY_FUNCTION(Relu)
PLANLOOM_HOT_UNARY_FUNCTION(Sigmoid)
PLANLOOM_HOT_UNARY_FUNCTION(Sqrt)
PLANLOOM_HOT_UNARY_FUNCTION(Tanh)
PLANLOOM_HOT_UNARY_FUNCTION(Silu)
PLANLOOM_HOT_UNARY_FUNCTION(GeluErf)
PLANLOOM_HOT_UNARY_FUNCTION(GeluTanh)

template<typename Function> Result<void> unaryForward(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (x == nullptr)
        return missingSlot(call, "its input");
    return withFloat(call, x->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        const Parameters<T> p = parametersOf<T>(*call.op);
        forEachStretch(elementCount(*y), kElementStretch, [&](std::int64_t begin, std::int64_t end) {
            UnaryLoops<Function>::apply(
                elements<const T>(*x) + begin, elements<T>(*y) + begin, end - begin, p);
        });
        return {};
    });
}

template<typename Function> Result<void> unaryBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dx = back.wanted(0);
    const Buffer *dy = back.gradient();
    if (dx == nullptr)
        return {};
    if (dy == nullptr)
        return missingSlot(call, "a gradient");
    const Buffer *x = back.input(0);
    const Buffer *y = back.output(0);
    return withFloat(call, dx->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        const Parameters<T> p = parametersOf<T>(*call.op);
        if (x != nullptr) {
            forEachStretch(elementCount(*dx), kElementStretch, [&](std::int64_t begin, std::int64_t end) {
                UnaryLoops<Function>::slope(elements<const T>(*dy) + begin, elements<const T>(*x) + begin,
                    elements<T>(*dx) + begin, end - begin, p);
            });
            return {};
        }
        if constexpr (Function::kFromValue) {
            if (y != nullptr) {
                forEachStretch(elementCount(*dx), kElementStretch, [&](std::int64_t begin, std::int64_t end) {
                    valueSlopeLoop<Function>(elements<const T>(*dy) + begin, elements<const T>(*y) + begin,
                        elements<T>(*dx) + begin, end - begin, p);
                });
                return {};
            }
        }
        if (call.op->kind == OperatorKind::Neg) { // The one slope that depends on neither.
            applyLoop<Neg>(elements<const T>(*dy), elements<T>(*dx), elementCount(*dx), p);
            return {};
        }
        return missingSlot(call, "its saved input");
    });
}

/// Functions that integers have as well: Abs, Neg, Relu, Sign, Clip.
template<typename Function> Result<void> numberForward(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (x == nullptr)
        return missingSlot(call, "its input");
    if (isFloating(x->dataType))
        return unaryForward<Function>(call);
    return withNumber(call, x->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        applyLoop<Function>(
            elements<const T>(*x), elements<T>(*y), elementCount(*y), parametersOf<T>(*call.op));
        return {};
    });
}

Result<void> geluForward(const KernelCall &call)
{
    return call.op->attributes.text("approximate", "none") == "tanh" ? unaryForward<GeluTanh>(call)
                                                                     : unaryForward<GeluErf>(call);
}

Result<void> geluBackward(const KernelCall &call)
{
    return call.op->attributes.text("approximate", "none") == "tanh" ? unaryBackward<GeluTanh>(call)
                                                                     : unaryBackward<GeluErf>(call);
}

template<typename Function> void addUnary(KernelTable &table, OperatorKind kind)
{
    table.add(kind, Direction::Forward, unaryForward<Function>);
    table.add(kind, Direction::Backward, unaryBackward<Function>);
}

template<typename Function> void addNumber(KernelTable &table, OperatorKind kind)
{
    table.add(kind, Direction::Forward, numberForward<Function>);
    table.add(kind, Direction::Backward, unaryBackward<Function>);
}

} // namespace

void addUnaryKernels(KernelTable &table)
{
    addNumber<Abs>(table, OperatorKind::Abs);
    addNumber<Neg>(table, OperatorKind::Neg);
    addNumber<Relu>(table, OperatorKind::Relu);
    addNumber<Sign>(table, OperatorKind::Sign);
    addNumber<Clip>(table, OperatorKind::Clip);
    addUnary<Acos>(table, OperatorKind::Acos);
    addUnary<Acosh>(table, OperatorKind::Acosh);
    addUnary<Asin>(table, OperatorKind::Asin);
    addUnary<Asinh>(table, OperatorKind::Asinh);
    addUnary<Atan>(table, OperatorKind::Atan);
    addUnary<Atanh>(table, OperatorKind::Atanh);
    addUnary<Ceil>(table, OperatorKind::Ceil);
    addUnary<Cos>(table, OperatorKind::Cos);
    addUnary<Cosh>(table, OperatorKind::Cosh);
    addUnary<Erf>(table, OperatorKind::Erf);
    addUnary<Exp>(table, OperatorKind::Exp);
    addUnary<Floor>(table, OperatorKind::Floor);
    addUnary<Log>(table, OperatorKind::Log);
    addUnary<Reciprocal>(table, OperatorKind::Reciprocal);
    addUnary<Round>(table, OperatorKind::Round);
    addUnary<Sigmoid>(table, OperatorKind::Sigmoid);
    addUnary<Sin>(table, OperatorKind::Sin);
    addUnary<Sinh>(table, OperatorKind::Sinh);
    addUnary<Softplus>(table, OperatorKind::Softplus);
    addUnary<Softsign>(table, OperatorKind::Softsign);
    addUnary<Sqrt>(table, OperatorKind::Sqrt);
    addUnary<Tan>(table, OperatorKind::Tan);
    addUnary<Tanh>(table, OperatorKind::Tanh);
    addUnary<Silu>(table, OperatorKind::Silu);
    addUnary<Elu>(table, OperatorKind::Elu);
    addUnary<Celu>(table, OperatorKind::Celu);
    addUnary<LeakyRelu>(table, OperatorKind::LeakyRelu);
    addUnary<ThresholdedRelu>(table, OperatorKind::ThresholdedRelu);
    addUnary<Selu>(table, OperatorKind::Selu);
    addUnary<HardSigmoid>(table, OperatorKind::HardSigmoid);
    addUnary<HardSwish>(table, OperatorKind::HardSwish);
    addUnary<Mish>(table, OperatorKind::Mish);
    table.add(OperatorKind::Gelu, Direction::Forward, geluForward);
    table.add(OperatorKind::Gelu, Direction::Backward, geluBackward);
}

} // namespace planloom
