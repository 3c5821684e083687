#include "engine/kernels/elements/logic_functions.h"
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"

#include <type_traits>

namespace planloom {

namespace {

/// Runs y = function(a, b) with broadcasting, where a and b have type T and y has type Y.
template<typename T, typename Y, typename Function>
void broadcastLoop(const Buffer &a, const Buffer &b, const Buffer &y, Function function)
{
    const LoopNest<3> nest(y.shape,
        {broadcastStrides(a.shape, y.shape), broadcastStrides(b.shape, y.shape), denseStrides(y.shape)});
    nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
        const T *first = elements<const T>(a) + at[0];
        const T *second = elements<const T>(b) + at[1];
        Y *to = elements<Y>(y) + at[2];
        for (std::int64_t i = 0; i < count; ++i)
            to[i] = static_cast<Y>(function(first[i * steps[0]], second[i * steps[1]]));
    });
}

Result<void> checkBoth(const KernelCall &call)
{
    if (findInput(call, 0) == nullptr || findInput(call, 1) == nullptr)
        return missingSlot(call, "both its inputs");
    if (call.inputs[0].dataType != call.inputs[1].dataType) {
        return invalidInput(call,
            "operator " + call.op->name + " got inputs of types " + nameOf(call.inputs[0].dataType) + " and "
                + nameOf(call.inputs[1].dataType) + ", expected the same");
    }
    return {};
}

/// Comparisons and logic: the output is Bool, one byte per element.
template<typename Function> Result<void> predicate(const KernelCall &call)
{
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    TRY_VOID(checkBoth(call));
    if (sizeOf(y->dataType) != 1)
        return unsupportedType(call, y->dataType);
    return withNumber(call, call.inputs[0].dataType, [&]<typename T>(T) {
        broadcastLoop<T, std::uint8_t>(call.inputs[0], call.inputs[1], *y, Function{});
    });
}

/// The remainder with the sign of the divisor (Python's), or of the dividend where `fmod` is 1 (C's).
Result<void> remainder(const KernelCall &call)
{
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    TRY_VOID(checkBoth(call));
    const bool likeC = call.op->attributes.integer("fmod") != 0;
    return withNumber(call, y->dataType, [&](auto zero) -> Result<void> {
        using T = decltype(zero);
        const Buffer &b = call.inputs[1];
        if constexpr (std::is_integral_v<T>) {
            for (std::int64_t i = 0; i < elementCount(b); ++i) {
                if (elements<const T>(b)[i] == 0)
                    return invalidInput(call, "operator " + call.op->name + " takes a remainder by zero");
            }
        }
        broadcastLoop<T, T>(call.inputs[0], b, *y,
            [likeC](T a, T divisor) -> T { return logic::remainder(a, divisor, likeC); });
        return {};
    });
}

Result<void> bitShift(const KernelCall &call)
{
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    TRY_VOID(checkBoth(call));
    if (isFloating(y->dataType))
        return unsupportedType(call, y->dataType);
    const bool left = call.op->attributes.text("direction") == "LEFT";
    return withElement(y->dataType, [&]<typename T>(T) {
        // Unsigned, as ONNX has it.
        broadcastLoop<T, T>(call.inputs[0], call.inputs[1], *y,
            [left](T a, T by) -> T { return static_cast<T>(logic::shifted(a, by, 8 * sizeof(T), left)); });
    });
}

/// Of the bits of integers.
template<typename Function> Result<void> bitwise(const KernelCall &call)
{
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    TRY_VOID(checkBoth(call));
    if (isFloating(y->dataType))
        return unsupportedType(call, y->dataType);
    return withElement(y->dataType,
        [&]<typename T>(T) { broadcastLoop<T, T>(call.inputs[0], call.inputs[1], *y, Function{}); });
}

} // namespace

void addLogicKernels(KernelTable &table)
{
    const auto add = [&table](
                         OperatorKind kind, Kernel kernel) { table.add(kind, Direction::Forward, kernel); };
    add(OperatorKind::Equal, predicate<logic::Equal>);
    add(OperatorKind::Greater, predicate<logic::Greater>);
    add(OperatorKind::GreaterOrEqual, predicate<logic::GreaterOrEqual>);
    add(OperatorKind::Less, predicate<logic::Less>);
    add(OperatorKind::LessOrEqual, predicate<logic::LessOrEqual>);
    add(OperatorKind::And, predicate<logic::And>);
    add(OperatorKind::Or, predicate<logic::Or>);
    add(OperatorKind::Xor, predicate<logic::Xor>);
    add(OperatorKind::Mod, remainder);
    add(OperatorKind::BitShift, bitShift);
    add(OperatorKind::BitwiseAnd, bitwise<logic::BitwiseAnd>);
    add(OperatorKind::BitwiseOr, bitwise<logic::BitwiseOr>);
    add(OperatorKind::BitwiseXor, bitwise<logic::BitwiseXor>);
}

} // namespace planloom
