#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/movement/pick_plans.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

namespace planloom {

namespace {

Result<void> argForward(const KernelCall &call, const Buffer &x, const Buffer &y)
{
    if (y.dataType != DataType::Int64)
        return unsupportedType(call, y.dataType);
    const bool largest = call.op->kind == OperatorKind::ArgMax;
    const bool last = call.op->attributes.integer("select_last_index") != 0;
    const AxisView view = axisView(x.shape, call.op->attributes.integer("axis"));
    return withNumber(call, x.dataType, [&]<typename T>(T) {
        const T *from = elements<const T>(x);
        forEachLine(view, [&](std::int64_t line, std::int64_t first, std::int64_t step) {
            std::int64_t best = 0;
            for (std::int64_t j = 1; j < view.extent; ++j) {
                const T value = from[first + j * step];
                const T held = from[first + best * step];
                if ((largest ? value > held : value < held) || (last && value == held))
                    best = j;
            }
            elements<std::int64_t>(y)[line] = best;
        });
    });
}

Result<void> topKForward(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0);
    const Buffer *values = findOutput(call, 0);
    const Buffer *indices = findOutput(call, 1);
    if (values == nullptr && indices == nullptr)
        return {};
    if (x == nullptr)
        return missingSlot(call, "its input");
    if (indices != nullptr && indices->dataType != DataType::Int64)
        return unsupportedType(call, indices->dataType);
    const std::int64_t axis = call.op->attributes.integer("axis");
    const bool largest = call.op->attributes.integer("largest", 1) != 0;
    const AxisView view = axisView(x->shape, axis);
    const std::int64_t k = (values != nullptr ? values : indices)->shape[static_cast<std::size_t>(axis)];
    if (k > view.extent)
        return invalidInput(call,
            "operator " + call.op->name + " asks for the first " + std::to_string(k) + " of "
                + std::to_string(view.extent) + " elements");
    return withNumber(call, x->dataType, [&]<typename T>(T) {
        const T *from = elements<const T>(*x);
        std::vector<std::int64_t> order(static_cast<std::size_t>(view.extent));
        forEachLine(view, [&](std::int64_t line, std::int64_t first, std::int64_t step) {
            std::iota(order.begin(), order.end(), std::int64_t{0});
            // Of equal elements the one with the lower index comes first, as ONNX has it.
            std::partial_sort(
                order.begin(), order.begin() + k, order.end(), [&](std::int64_t a, std::int64_t b) {
                    const T left = from[first + a * step];
                    const T right = from[first + b * step];
                    return left == right ? a < b : largest ? left > right : left < right;
                });
            const std::int64_t start = line / view.inner * k * view.inner + line % view.inner;
            for (std::int64_t j = 0; j < k; ++j) {
                const std::int64_t at = order[static_cast<std::size_t>(j)];
                if (values != nullptr)
                    elements<T>(*values)[start + j * view.inner] = from[first + at * step];
                if (indices != nullptr)
                    elements<std::int64_t>(*indices)[start + j * view.inner] = at;
            }
        });
    });
}

Result<void> topKBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    const Buffer *dx = back.wanted(0);
    const Buffer *dy = back.gradient();
    const Buffer *indices = back.output(1);
    if (dx == nullptr)
        return {};
    if (dy == nullptr || indices == nullptr)
        return missingSlot(call, "a gradient or its saved indices");
    const std::int64_t axis = call.op->attributes.integer("axis");
    const AxisView view = axisView(dx->shape, axis);
    const AxisView chosen = axisView(dy->shape, axis);
    fillZero(*dx);
    return withFloat(call, dx->dataType, [&]<typename T>(T) {
        for (std::int64_t o = 0; o < chosen.outer; ++o) {
            for (std::int64_t j = 0; j < chosen.extent; ++j) {
                for (std::int64_t i = 0; i < chosen.inner; ++i) {
                    const std::int64_t from = (o * chosen.extent + j) * chosen.inner + i;
                    const std::int64_t at = elements<const std::int64_t>(*indices)[from];
                    elements<T>(*dx)[(o * view.extent + at) * view.inner + i] = elements<const T>(*dy)[from];
                }
            }
        }
    });
}

Result<void> runningSums(const KernelCall &call, const ScanPlan &plan)
{
    const AxisView &view = plan.view;
    return withNumber(call, plan.x->dataType, [&]<typename T>(T) {
        using Sum = std::conditional_t<std::is_floating_point_v<T>, double, T>;
        const T *from = elements<const T>(*plan.x);
        T *to = elements<T>(*plan.made);
        forEachLine(view, [&](std::int64_t, std::int64_t first, std::int64_t step) {
            Sum sum = 0;
            for (std::int64_t j = 0; j < view.extent; ++j) {
                const std::int64_t at = first + (plan.fromBack ? view.extent - 1 - j : j) * step;
                const auto value = static_cast<Sum>(from[at]);
                to[at] = static_cast<T>(plan.exclusive ? sum : static_cast<Sum>(sum + value));
                sum = static_cast<Sum>(sum + value);
            }
        });
    });
}

/// Reverses the first lengths[b] steps of batch entry b. It is its own inverse, hence its own gradient.
Result<void> reverse(const KernelCall &call, const Buffer *x, const Buffer *lengths, const Buffer *y)
{
    if (y == nullptr)
        return {};
    if (x == nullptr || lengths == nullptr)
        return missingSlot(call, "what it reverses or its lengths");
    const auto batch = static_cast<std::size_t>(call.op->attributes.integer("batch_axis", 1));
    const auto time = static_cast<std::size_t>(call.op->attributes.integer("time_axis", 0));
    const Shape strides = denseStrides(x->shape);
    const std::int64_t steps = x->shape[time];
    Shape rest = x->shape;
    rest[batch] = 1;
    rest[time] = 1;
    const LoopNest<1> nest(rest, {strides});
    return withElement(x->dataType, [&]<typename T>(T) -> Result<void> {
        for (std::int64_t b = 0; b < x->shape[batch]; ++b) {
            const std::int64_t length = integerAt(*lengths, b);
            if (length < 0 || length > steps)
                return invalidInput(call,
                    "operator " + call.op->name + " got a sequence of length " + std::to_string(length)
                        + ", expected at most " + std::to_string(steps));
            for (std::int64_t t = 0; t < steps; ++t) {
                const T *from = elements<const T>(*x) + b * strides[batch]
                    + (t < length ? length - 1 - t : t) * strides[time];
                T *to = elements<T>(*y) + b * strides[batch] + t * strides[time];
                nest.forEachRow([&](const auto &at, std::int64_t count, const auto &step) {
                    for (std::int64_t i = 0; i < count; ++i)
                        to[at[0] + i * step[0]] = from[at[0] + i * step[0]];
                });
            }
        }
        return {};
    });
}

Result<void> reverseForward(const KernelCall &call)
{
    return reverse(call, findInput(call, 0), findInput(call, 1), findOutput(call, 0));
}

Result<void> reverseBackward(const KernelCall &call)
{
    const BackwardCall back(call);
    return reverse(call, back.gradient(), back.input(1), back.wanted(0));
}

} // namespace

void addSequenceKernels(KernelTable &table)
{
    table.add(OperatorKind::ArgMax, Direction::Forward, mapped<argForward>);
    table.add(OperatorKind::ArgMin, Direction::Forward, mapped<argForward>);
    table.add({OperatorKind::TopK}, topKForward, topKBackward);
    table.add({OperatorKind::CumSum}, planned<planScan, runningSums>, planned<planScan, runningSums>);
    table.add({OperatorKind::ReverseSequence}, reverseForward, reverseBackward);
}

} // namespace planloom
