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
#define PLANLOOM_ADD_NUMBER(Name) addNumber<Name>(table, OperatorKind::Name);
#define PLANLOOM_ADD_FLOAT(Name) addUnary<Name>(table, OperatorKind::Name);
    PLANLOOM_NUMBER_FUNCTIONS(PLANLOOM_ADD_NUMBER)
    PLANLOOM_FLOAT_FUNCTIONS(PLANLOOM_ADD_FLOAT)
    table.add(OperatorKind::Gelu, Direction::Forward, geluForward);
    table.add(OperatorKind::Gelu, Direction::Backward, geluBackward);
}

} // namespace planloom
