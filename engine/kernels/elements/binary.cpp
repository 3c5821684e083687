#include "engine/kernels/elements/binary_functions.h"
#include "engine/kernels/elements/element_plans.h"
#include "engine/kernels/elements/vector_math.h"
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"

#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

namespace planloom {

namespace {

using namespace binary;

template<typename Function, typename T>
PLANLOOM_INLINE void valueLoop(
    const T *a, std::int64_t stepA, const T *b, std::int64_t stepB, T *y, std::int64_t count)
{
    if (stepA == 1 && stepB == 1) {
        for (std::int64_t i = 0; i < count; ++i)
            y[i] = Function::value(a[i], b[i]);
    } else if (stepA == 1 && stepB == 0) {
        const T second = *b;
        for (std::int64_t i = 0; i < count; ++i)
            y[i] = Function::value(a[i], second);
    } else if (stepA == 0 && stepB == 1) {
        const T first = *a;
        for (std::int64_t i = 0; i < count; ++i)
            y[i] = Function::value(first, b[i]);
    } else {
        for (std::int64_t i = 0; i < count; ++i)
            y[i] = Function::value(a[i * stepA], b[i * stepB]);
    }
}

/// A run of the gradient's loop: adds dy * slope to `d`, in double where it is a sum over broadcast elements.
template<int Side, typename Function, typename T>
PLANLOOM_INLINE void slopeLoop(const T *dy, const T *a, std::int64_t stepA, const T *b, std::int64_t stepB,
    T *direct, double *sums, std::int64_t stepD, std::int64_t count)
{
    if (direct != nullptr) {
        if (stepA == 1 && stepB == 1) {
            for (std::int64_t i = 0; i < count; ++i)
                direct[i] = gradient<Function, Side>(dy[i], Function::template slope<Side>(a[i], b[i]));
        } else {
            for (std::int64_t i = 0; i < count; ++i)
                direct[i] = gradient<Function, Side>(
                    dy[i], Function::template slope<Side>(a[i * stepA], b[i * stepB]));
        }
    } else if (stepD == 0) {
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::int64_t i = 0; i < count; ++i)
            sum += static_cast<double>(
                gradient<Function, Side>(dy[i], Function::template slope<Side>(a[i * stepA], b[i * stepB])));
        *sums += sum;
    } else {
        for (std::int64_t i = 0; i < count; ++i)
            sums[i * stepD] += static_cast<double>(
                gradient<Function, Side>(dy[i], Function::template slope<Side>(a[i * stepA], b[i * stepB])));
    }
}

/// The loops of one function; those of the frequent ones on float are specialised below.
template<typename Function> struct BinaryLoops {
    template<typename T>
    static void value(
        const T *a, std::int64_t stepA, const T *b, std::int64_t stepB, T *y, std::int64_t count)
    {
        valueLoop<Function>(a, stepA, b, stepB, y, count);
    }
    template<int Side, typename T>
    static void slope(const T *dy, const T *a, std::int64_t stepA, const T *b, std::int64_t stepB, T *direct,
        double *sums, std::int64_t stepD, std::int64_t count)
    {
        slopeLoop<Side, Function>(dy, a, stepA, b, stepB, direct, sums, stepD, count);
    }
};

#define PLANLOOM_HOT_BINARY_FUNCTION(Name)                                                                   \
    PLANLOOM_HOT void value##Name(const float *a, std::int64_t stepA, const float *b, std::int64_t stepB,    \
        float *y, std::int64_t count)                                                                        \
    {                                                                                                        \
        valueLoop<Name>(a, stepA, b, stepB, y, count);                                                       \
    }                                                                                                        \
    PLANLOOM_HOT void slopeA##Name(const float *dy, const float *a, std::int64_t stepA, const float *b,      \
        std::int64_t stepB, float *direct, double *sums, std::int64_t stepD, std::int64_t count)             \
    {                                                                                                        \
        slopeLoop<0, Name>(dy, a, stepA, b, stepB, direct, sums, stepD, count);                              \
    }                                                                                                        \
    PLANLOOM_HOT void slopeB##Name(const float *dy, const float *a, std::int64_t stepA, const float *b,      \
        std::int64_t stepB, float *direct, double *sums, std::int64_t stepD, std::int64_t count)             \
    {                                                                                                        \
        slopeLoop<1, Name>(dy, a, stepA, b, stepB, direct, sums, stepD, count);                              \
    }                                                                                                        \
    template<> struct BinaryLoops<Name> {                                                                    \
        template<typename T>                                                                                 \
        static void value(                                                                                   \
            const T *a, std::int64_t stepA, const T *b, std::int64_t stepB, T *y, std::int64_t count)        \
        {                                                                                                    \
            if constexpr (std::is_same_v<T, float>)                                                          \
                value##Name(a, stepA, b, stepB, y, count);                                                   \
            else                                                                                             \
                valueLoop<Name>(a, stepA, b, stepB, y, count);                                               \
        }                                                                                                    \
        template<int Side, typename T>                                                                       \
        static void slope(const T *dy, const T *a, std::int64_t stepA, const T *b, std::int64_t stepB,       \
            T *direct, double *sums, std::int64_t stepD, std::int64_t count)                                 \
        {                                                                                                    \
            if constexpr (std::is_same_v<T, float>)                                                          \
                (Side == 0 ? slopeA##Name : slopeB##Name)(                                                   \
                    dy, a, stepA, b, stepB, direct, sums, stepD, count);                                     \
            else                                                                                             \
                slopeLoop<Side, Name>(dy, a, stepA, b, stepB, direct, sums, stepD, count);                   \
        }                                                                                                    \
    };

PLANLOOM_HOT_BINARY_FUNCTION(Add)
PLANLOOM_HOT_BINARY_FUNCTION(Sub)
PLANLOOM_HOT_BINARY_FUNCTION(Mul)
PLANLOOM_HOT_BINARY_FUNCTION(Div)

/// `buffer` as values of T, converted into `storage` where it has another type (the exponent of an ONNX Pow).
template<typename T> const T *valuesAs(const Buffer &buffer, DataType type, std::vector<T> &storage)
{
    if (buffer.dataType == type)
        return elements<const T>(buffer);
    const std::int64_t count = elementCount(buffer);
    storage.resize(static_cast<std::size_t>(count));
    for (std::int64_t i = 0; i < count; ++i) {
        T &value = storage[static_cast<std::size_t>(i)];
        if (buffer.dataType == DataType::Float32)
            value = static_cast<T>(elements<const float>(buffer)[i]);
        else if (buffer.dataType == DataType::Float64)
            value = static_cast<T>(elements<const double>(buffer)[i]);
        else
            value = static_cast<T>(integerAt(buffer, i));
    }
    return storage.data();
}

template<typename Function, typename T>
Result<void> checkOperands(const KernelCall &call, const T *b, std::int64_t count)
{
    if constexpr (std::is_same_v<Function, Div> && std::is_integral_v<T>) {
        for (std::int64_t i = 0; i < count; ++i) {
            if (b[i] == 0)
                return invalidInput(call, "operator " + call.op->name + " divides integers by zero");
        }
    }
    return {};
}

template<typename Function> Result<void> binaryForward(const KernelCall &call)
{
    const Buffer *a = findInput(call, 0);
    const Buffer *b = findInput(call, 1);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (a == nullptr || b == nullptr)
        return missingSlot(call, "both its inputs");
    return withNumber(call, y->dataType, [&]<typename T>(T) -> Result<void> {
        std::vector<T> storageA;
        std::vector<T> storageB;
        const T *dataA = valuesAs<T>(*a, y->dataType, storageA);
        const T *dataB = valuesAs<T>(*b, y->dataType, storageB);
        T *dataY = elements<T>(*y);
        TRY_VOID(checkOperands<Function>(call, dataB, elementCount(*b)));
        if constexpr (std::is_same_v<Function, Pow> && std::is_floating_point_v<T>) {
            // Squares and cubes are most of the powers in models; they need no pow().
            if (elementCount(*b) == 1 && a->shape == y->shape && (*dataB == T(2) || *dataB == T(3))) {
                const bool cube = *dataB == T(3);
                const std::int64_t count = elementCount(*y);
                for (std::int64_t i = 0; i < count; ++i)
                    dataY[i] = cube ? dataA[i] * dataA[i] * dataA[i] : dataA[i] * dataA[i];
                return {};
            }
        }
        const LoopNest<3> nest(y->shape,
            {broadcastStrides(a->shape, y->shape), broadcastStrides(b->shape, y->shape),
                denseStrides(y->shape)});
        nest.forEachStretchOfRow([&](const auto &at, std::int64_t count, const auto &steps) {
            BinaryLoops<Function>::value(
                dataA + at[0], steps[0], dataB + at[1], steps[1], dataY + at[2], count);
        });
        return {};
    });
}

template<typename T> void store(const std::vector<double> &sums, T *to)
{
    for (std::size_t i = 0; i < sums.size(); ++i)
        to[i] = static_cast<T>(sums[i]);
}

template<typename Function, int Side, typename T> Result<void> gradientOf(const KernelCall &call)
{
    TRY(const auto plan, planBinarySlope(call, Function::kSlopeNeeds[Side], Side));
    if (!plan)
        return {};
    const Buffer &dy = *plan->dy;
    const Buffer *target = plan->made;
    // An operand that the slope does not depend on is replaced by a constant.
    const T one(1);
    std::vector<T> storageA;
    std::vector<T> storageB;
    const T *dataA = plan->a != nullptr ? valuesAs<T>(*plan->a, dy.dataType, storageA) : &one;
    const T *dataB = plan->b != nullptr ? valuesAs<T>(*plan->b, dy.dataType, storageB) : &one;
    const bool direct = !plan->isSum();
    std::vector<double> sums(direct ? 0 : static_cast<std::size_t>(elementCount(*target)), 0.0);
    const LoopNest<4> nest(
        dy.shape, {denseStrides(dy.shape), plan->stridesA, plan->stridesB, plan->stridesMade});
    const auto row = [&](const auto &at, std::int64_t count, const auto &steps) {
        BinaryLoops<Function>::template slope<Side>(elements<const T>(dy) + at[0], dataA + at[1], steps[1],
            dataB + at[2], steps[2], direct ? elements<T>(*target) + at[3] : nullptr,
            direct ? nullptr : sums.data() + at[3], steps[3], count);
    };
    if (direct)
        nest.forEachStretchOfRow(row);
    else // several elements are added to one
        nest.forEachRow(row);
    if (!direct)
        store(sums, elements<T>(*target));
    return {};
}

template<typename Function> Result<void> binaryBackward(const KernelCall &call)
{
    if (findInput(call, 0) == nullptr)
        return missingSlot(call, "a gradient");
    return withFloat(call, call.inputs[0].dataType, [&]<typename T>(T) -> Result<void> {
        TRY_VOID((gradientOf<Function, 0, T>(call)));
        return gradientOf<Function, 1, T>(call);
    });
}

Result<void> modBackward(const KernelCall &call)
{
    return call.op->attributes.integer("fmod") != 0 ? binaryBackward<TruncatedMod>(call)
                                                    : binaryBackward<FloorMod>(call);
}

Result<void> whereForward(const KernelCall &call)
{
    const Buffer *condition = findInput(call, 0);
    const Buffer *a = findInput(call, 1);
    const Buffer *b = findInput(call, 2);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (condition == nullptr || a == nullptr || b == nullptr)
        return missingSlot(call, "its three inputs");
    if (sizeOf(condition->dataType) != 1)
        return unsupportedType(call, condition->dataType);
    return withElement(y->dataType, [&]<typename T>(T) {
        const LoopNest<4> nest(y->shape,
            {broadcastStrides(condition->shape, y->shape), broadcastStrides(a->shape, y->shape),
                broadcastStrides(b->shape, y->shape), denseStrides(y->shape)});
        nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
            const std::uint8_t *c = elements<const std::uint8_t>(*condition) + at[0];
            const T *first = elements<const T>(*a) + at[1];
            const T *second = elements<const T>(*b) + at[2];
            T *to = elements<T>(*y) + at[3];
            for (std::int64_t i = 0; i < count; ++i)
                to[i] = c[i * steps[0]] != 0 ? first[i * steps[1]] : second[i * steps[2]];
        });
    });
}

/// The gradient of what a Where takes where its condition is true (side 1), or false.
Result<void> whereSlope(const KernelCall &call, std::size_t side)
{
    TRY(const auto plan, planWhereSlope(call, side));
    if (!plan)
        return {};
    return withFloat(call, plan->dy->dataType, [&]<typename T>(T) {
        const bool whenTrue = side == 1;
        const bool direct = !plan->isSum();
        std::vector<double> sums(direct ? 0 : static_cast<std::size_t>(elementCount(*plan->made)), 0.0);
        const LoopNest<3> nest(
            plan->dy->shape, {plan->stridesA, denseStrides(plan->dy->shape), plan->stridesMade});
        nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
            const std::uint8_t *c = elements<const std::uint8_t>(*plan->a) + at[0];
            const T *from = elements<const T>(*plan->dy) + at[1];
            if (direct) {
                T *to = elements<T>(*plan->made) + at[2];
                for (std::int64_t i = 0; i < count; ++i)
                    to[i] = (c[i * steps[0]] != 0) == whenTrue ? from[i] : T(0);
                return;
            }
            double *to = sums.data() + at[2];
            for (std::int64_t i = 0; i < count; ++i) {
                if ((c[i * steps[0]] != 0) == whenTrue)
                    to[i * steps[2]] += static_cast<double>(from[i]);
            }
        });
        if (!direct)
            store(sums, elements<T>(*plan->made));
    });
}

Result<void> whereBackward(const KernelCall &call)
{
    TRY_VOID(whereSlope(call, 1));
    return whereSlope(call, 2);
}

template<typename Function> void addBinary(KernelTable &table, OperatorKind kind)
{
    table.add(kind, Direction::Forward, binaryForward<Function>);
    table.add(kind, Direction::Backward, binaryBackward<Function>);
}

} // namespace

void addBinaryKernels(KernelTable &table)
{
    addBinary<Add>(table, OperatorKind::Add);
    addBinary<Sub>(table, OperatorKind::Sub);
    addBinary<Mul>(table, OperatorKind::Mul);
    addBinary<Div>(table, OperatorKind::Div);
    addBinary<Pow>(table, OperatorKind::Pow);
    addBinary<Min>(table, OperatorKind::Min);
    addBinary<Max>(table, OperatorKind::Max);
    addBinary<PRelu>(table, OperatorKind::PRelu);
    table.add(OperatorKind::Mod, Direction::Backward, modBackward);
    table.add({OperatorKind::Where}, whereForward, whereBackward);
}

} // namespace planloom
