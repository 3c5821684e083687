#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/kernel_table.h"
#include "engine/kernels/number_attribute.h"

#include <algorithm>

namespace planloom {

namespace {

Result<void> fill(const KernelCall &call)
{
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    return withNumber(call, y->dataType, [&]<typename T>(T) {
        std::fill_n(elements<T>(*y), elementCount(*y), numberOf<T>(call.op->attributes, "value", T(0)));
    });
}

Result<void> range(const KernelCall &call)
{
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    const std::int64_t first = y->shape.empty() ? 0 : firstOf(*y, 0);
    return withNumber(call, y->dataType, [&]<typename T>(T) {
        using Wide = std::conditional_t<std::is_floating_point_v<T>, double, std::int64_t>;
        const auto start = numberOf<Wide>(call.op->attributes, "start", Wide(0));
        const auto delta = numberOf<Wide>(call.op->attributes, "delta", Wide(1));
        for (std::int64_t i = 0; i < elementCount(*y); ++i)
            elements<T>(*y)[i] = static_cast<T>(start + static_cast<Wide>(first + i) * delta);
    });
}

Result<void> oneHot(const KernelCall &call)
{
    const Buffer *indices = findInput(call, 0);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (indices == nullptr)
        return missingSlot(call, "its indices");
    const std::int64_t axis = call.op->attributes.integer("axis");
    const std::int64_t first = firstOf(*y, static_cast<std::size_t>(axis));
    const std::int64_t depth = wholeExtent(*y, static_cast<std::size_t>(axis));
    const AxisView view = axisView(y->shape, axis);
    return withNumber(call, y->dataType, [&]<typename T>(T) {
        const T on = numberOf<T>(call.op->attributes, "on", T(1));
        std::fill_n(elements<T>(*y), elementCount(*y), numberOf<T>(call.op->attributes, "off", T(0)));
        for (std::int64_t o = 0; o < view.outer; ++o) {
            for (std::int64_t i = 0; i < view.inner; ++i) {
                const std::int64_t item = o * view.inner + i;
                std::int64_t index = integerAt(*indices, item);
                if (indices->dataType == DataType::Float32)
                    index = static_cast<std::int64_t>(elements<const float>(*indices)[item]);
                index = (index < 0 ? index + depth : index) - first; // ONNX: out of range, nothing is on.
                if (index >= 0 && index < view.extent)
                    elements<T>(*y)[(o * view.extent + index) * view.inner + i] = on;
            }
        }
    });
}

Result<void> eyeLike(const KernelCall &call)
{
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    const std::int64_t k = call.op->attributes.integer("k");
    fillZero(*y);
    return withNumber(call, y->dataType, [&]<typename T>(T) {
        for (std::int64_t r = 0; r < y->shape[0]; ++r) {
            const std::int64_t column = firstOf(*y, 0) + r + k - firstOf(*y, 1);
            if (column >= 0 && column < y->shape[1])
                elements<T>(*y)[r * y->shape[1] + column] = T(1);
        }
    });
}

/// Keeps the triangle of every matrix, of x or of its gradient.
Result<void> triangle(const KernelCall &call)
{
    const Buffer *x = findInput(call, 0);
    const Buffer *y = findOutput(call, 0);
    if (y == nullptr)
        return {};
    if (x == nullptr || y->shape.size() < 2)
        return missingSlot(call, "matrices");
    const bool upper = call.op->attributes.integer("upper", 1) != 0;
    const std::int64_t k = call.op->attributes.integer("k");
    const std::size_t rank = y->shape.size();
    const std::int64_t rows = y->shape[rank - 2];
    const std::int64_t columns = y->shape[rank - 1];
    const std::int64_t shift = k + firstOf(*y, rank - 2) - firstOf(*y, rank - 1);
    return withElement(y->dataType, [&]<typename T>(T) {
        for (std::int64_t i = 0; i < elementCount(*y); ++i) {
            const std::int64_t row = i / columns % rows;
            const std::int64_t column = i % columns;
            const bool kept = upper ? column >= row + shift : column <= row + shift;
            elements<T>(*y)[i] = kept ? elements<const T>(*x)[i] : T(0);
        }
    });
}

} // namespace

void addGenerateKernels(KernelTable &table)
{
    table.add(OperatorKind::Fill, Direction::Forward, fill);
    table.add(OperatorKind::Range, Direction::Forward, range);
    table.add(OperatorKind::OneHot, Direction::Forward, oneHot);
    table.add(OperatorKind::EyeLike, Direction::Forward, eyeLike);
    table.add({OperatorKind::Trilu}, triangle, triangle);
}

} // namespace planloom
