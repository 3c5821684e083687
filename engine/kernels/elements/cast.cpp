#include "engine/kernels/elements/conversion.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/kernels/elements/vector_math.h"
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_plan.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/pick_plans.h"

#include <cmath>
#include <cstring>
#include <type_traits>

namespace planloom {

namespace {

/// Conversion as in C, where that is defined.
template<typename To, typename From> To converted(From value)
{
    if constexpr (std::is_integral_v<To> && std::is_floating_point_v<From>)
        return wholeNumber<To>(value);
    else
        return static_cast<To>(value);
}

template<typename From> Result<void> castFrom(const KernelCall &call, const From *x, const Buffer &y)
{
    const std::int64_t count = elementCount(y);
    if (y.dataType == DataType::Bool) {
        for (std::int64_t i = 0; i < count; ++i)
            elements<std::uint8_t>(y)[i] = x[i] != From(0) ? 1 : 0;
        return {};
    }
    if (y.dataType == DataType::Float16 || y.dataType == DataType::BFloat16) {
        std::vector<float> wide(static_cast<std::size_t>(count));
        for (std::int64_t i = 0; i < count; ++i)
            wide[static_cast<std::size_t>(i)] = static_cast<float>(x[i]);
        narrow(wide.data(), y.dataType, y.data, wide.size());
        return {};
    }
    return withNumber(call, y.dataType, [&]<typename To>(To) {
        for (std::int64_t i = 0; i < count; ++i)
            elements<To>(y)[i] = converted<To>(x[i]);
    });
}

Result<void> cast(const KernelCall &call, const Buffer &x, const Buffer &y)
{
    if (x.dataType == y.dataType) {
        std::memmove(y.data, x.data, byteCount(y));
        return {};
    }
    if (x.dataType == DataType::Float16 || x.dataType == DataType::BFloat16) {
        std::vector<float> wide(static_cast<std::size_t>(elementCount(x)));
        widen(x.data, x.dataType, wide.data(), wide.size());
        return castFrom(call, wide.data(), y);
    }
    return withNumber(call, x.dataType,
        [&]<typename T>(T) -> Result<void> { return castFrom(call, elements<const T>(x), y); });
}

/// Cast and Identity; an Identity's types are the same.
Result<void> castAll(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0); // of the backward pass, the gradient
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    const bool forward = call.op->direction == Direction::Forward;
    if (x == nullptr)
        return forward && elementCount(*y) == 0 ? Result<void>{}
                                                : missingSlot(call, forward ? "its input" : "a gradient");
    return cast(call, *x, *y);
}

Result<void> notForward(const KernelCall &call, const Buffer &x, const Buffer &y)
{
    if (sizeOf(x.dataType) != 1)
        return unsupportedType(call, x.dataType);
    for (std::int64_t i = 0; i < elementCount(y); ++i)
        elements<std::uint8_t>(y)[i] = elements<const std::uint8_t>(x)[i] == 0 ? 1 : 0;
    return {};
}

template<bool kInfinite> Result<void> classify(const KernelCall &call, const Buffer &x, const Buffer &y)
{
    const bool negative = call.op->attributes.integer("detect_negative", 1) != 0;
    const bool positive = call.op->attributes.integer("detect_positive", 1) != 0;
    return withFloat(call, x.dataType, [&]<typename T>(T) {
        const auto *from = elements<const T>(x);
        for (std::int64_t i = 0; i < elementCount(y); ++i) {
            const bool found =
                kInfinite ? std::isinf(from[i]) && (from[i] < 0 ? negative : positive) : std::isnan(from[i]);
            elements<std::uint8_t>(y)[i] = found ? 1 : 0;
        }
    });
}

/// One run of elements that lie behind one another in the whole pTensor as well.
PLANLOOM_HOT void dropRun(const float *x, float *y, std::int64_t count, std::uint64_t key,
    std::uint64_t first, std::uint64_t bound, float scale)
{
    for (std::int64_t i = 0; i < count; ++i) {
        const float kept = x[i] * scale;
        y[i] = keeps(key, bound, first + static_cast<std::uint64_t>(i)) ? kept : 0.0f;
    }
}

Result<void> drop(const KernelCall &call, const DropoutPlan &plan)
{
    if (plan.ratio <= 0) {
        std::memmove(plan.made->data, plan.x->data, byteCount(*plan.made));
        return {};
    }
    return withFloat(call, plan.x->dataType, [&]<typename T>(T) {
        const DropoutDraw &draw = plan.draw;
        const auto scale = static_cast<T>(plan.scale());
        const T *from = elements<const T>(*plan.x);
        T *to = elements<T>(*plan.made);
        const LoopNest<2> nest(plan.made->shape, {denseStrides(plan.made->shape), plan.strides});
        nest.forEachRow([&](const auto &at, std::int64_t count, const auto &steps) {
            if constexpr (std::is_same_v<T, float>) {
                if (steps[0] == 1 && steps[1] == 1) {
                    dropRun(from + at[0], to + at[0], count, draw.key,
                        static_cast<std::uint64_t>(plan.first + at[1]), draw.bound, scale);
                    return;
                }
            }
            for (std::int64_t i = 0; i < count; ++i) {
                const std::int64_t here = at[0] + i * steps[0];
                const auto index = static_cast<std::uint64_t>(plan.first + at[1] + i * steps[1]);
                to[here] = keeps(draw.key, draw.bound, index) ? from[here] * scale : T(0);
            }
        });
    });
}

} // namespace

void addCastKernels(KernelTable &table)
{
    table.add({OperatorKind::Cast, OperatorKind::Identity}, castAll, castAll);
    table.add(OperatorKind::Not, Direction::Forward, mapped<notForward>);
    table.add(OperatorKind::IsInf, Direction::Forward, mapped<classify<true>>);
    table.add(OperatorKind::IsNaN, Direction::Forward, mapped<classify<false>>);
    table.add({OperatorKind::Dropout}, planned<planDropout, drop>, planned<planDropout, drop>);
}

} // namespace planloom
