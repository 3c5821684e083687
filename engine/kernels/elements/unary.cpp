#include "engine/kernels/elements/element_plans.h"
#include "engine/kernels/elements/unary_parameters.h"
#include "engine/kernels/elements/vector_math.h"
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"

namespace planloom {

namespace {

using namespace unary;

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
        dx[i] = gradient<Function>(dy[i], Function::slope(x[i], p));
}

template<typename Function, typename T>
PLANLOOM_INLINE void valueSlopeLoop(
    const T *dy, const T *y, T *dx, std::int64_t count, const Parameters<T> &p)
{
    for (std::int64_t i = 0; i < count; ++i)
        dx[i] = gradient<Function>(dy[i], Function::slopeOfValue(y[i], p));
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

template<typename Function> Planned<UnaryPlan> planOf(const KernelCall &call)
{
    return planUnary(call, Function::kFromValue);
}

template<typename Function> Result<void> ofFloats(const KernelCall &call, const UnaryPlan &plan)
{
    return withFloat(call, plan.made->dataType, [&]<typename T>(T) {
        const Parameters<T> p = parametersOf<T>(*call.op);
        forEachStretch(elementCount(*plan.made), kElementStretch, [&](std::int64_t begin, std::int64_t end) {
            const T *x = elements<const T>(*plan.x) + begin;
            T *to = elements<T>(*plan.made) + begin;
            if (plan.dy == nullptr)
                return UnaryLoops<Function>::apply(x, to, end - begin, p);
            const T *dy = elements<const T>(*plan.dy) + begin;
            if constexpr (Function::kFromValue)
                if (plan.fromValue)
                    return valueSlopeLoop<Function>(dy, x, to, end - begin, p);
            UnaryLoops<Function>::slope(dy, x, to, end - begin, p);
        });
    });
}

/// Functions that integers have as well: Abs, Neg, Relu, Sign, Clip.
template<typename Function> Result<void> ofNumbers(const KernelCall &call, const UnaryPlan &plan)
{
    if (plan.dy != nullptr || isFloating(plan.x->dataType))
        return ofFloats<Function>(call, plan);
    return withNumber(call, plan.x->dataType, [&]<typename T>(T) {
        applyLoop<Function>(elements<const T>(*plan.x), elements<T>(*plan.made), elementCount(*plan.made),
            parametersOf<T>(*call.op));
    });
}

Result<void> gelu(const KernelCall &call)
{
    return call.op->attributes.text("approximate", "none") == "tanh"
        ? planned<planOf<GeluTanh>, ofFloats<GeluTanh>>(call)
        : planned<planOf<GeluErf>, ofFloats<GeluErf>>(call);
}

void addBoth(KernelTable &table, OperatorKind kind, Kernel kernel)
{
    table.add(kind, Direction::Forward, kernel);
    table.add(kind, Direction::Backward, kernel);
}

} // namespace

void addUnaryKernels(KernelTable &table)
{
#define PLANLOOM_ADD_NUMBER(Name) addBoth(table, OperatorKind::Name, planned<planOf<Name>, ofNumbers<Name>>);
#define PLANLOOM_ADD_FLOAT(Name) addBoth(table, OperatorKind::Name, planned<planOf<Name>, ofFloats<Name>>);
    PLANLOOM_NUMBER_FUNCTIONS(PLANLOOM_ADD_NUMBER)
    PLANLOOM_FLOAT_FUNCTIONS(PLANLOOM_ADD_FLOAT)
    addBoth(table, OperatorKind::Gelu, gelu);
}

} // namespace planloom
