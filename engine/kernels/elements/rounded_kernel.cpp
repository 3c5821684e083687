#include "engine/kernels/elements/rounded_kernel.h"

#include "engine/graph/operators/weight_update.h"
#include "engine/kernels/elements/narrow_float.h"
#include "engine/kernels/iteration.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/products/gemm.h"

#include <algorithm>
#include <memory>

namespace planloom {

namespace {

/// True for inputs that the matrix units of a product would read; a bias is added behind them.
bool isOperand(const Operator &op, std::size_t slot)
{
    switch (op.kind) {
    case OperatorKind::Linear:
    case OperatorKind::Conv:
    case OperatorKind::ConvTranspose:
        return op.direction != Direction::Forward || slot < 2;
    case OperatorKind::Attention: { // queries, keys, values, and the gradient of what it makes
        const std::size_t first =
            op.direction == Direction::Forward ? 0 : (op.inputs.size() - op.outputs.size()) / 2;
        return (slot >= first && slot < first + 3) || (first > 0 && slot == 0);
    }
    default: {
        const OperatorCategory category = categoryOf(op.kind);
        return op.direction != Direction::Optimizer
            && (category == OperatorCategory::Product || category == OperatorCategory::Recurrent);
    }
    }
}

/// The type that an operand is rounded to; `memory` where it is not.
DataType seenBy(const KernelCall &call, DataType compute, std::size_t slot, DataType memory)
{
    const DataType own = call.inputs[slot].dataType;
    if (compute == DataType::Float32 || own != DataType::Float32 || !isOperand(*call.op, slot))
        return memory;
    if (compute == DataType::Float8E4M3) {
        // Gradients need the range more than the digits.
        const bool gradient =
            call.op->direction == Direction::Backward && slot < BackwardCall(call).forwardOutputs();
        return gradient ? DataType::Float8E5M2 : DataType::Float8E4M3;
    }
    // What lies in memory as 16 bits has no more digits to lose to TensorFloat32.
    return compute == DataType::TensorFloat32 && isNarrowFloat(memory) ? memory : compute;
}

/// Operators whose kernels can read BFloat16: products that oneDNN makes.
bool isProduct(const Operator &op)
{
    switch (op.kind) {
    case OperatorKind::Linear:
    case OperatorKind::MatMul:
    case OperatorKind::Einsum:
    case OperatorKind::Conv:
    case OperatorKind::ConvTranspose:
        return op.direction != Direction::Optimizer;
    default:
        return false;
    }
}

/// True for slots whose values such an operator multiplies; `isOperand` is true for all of them.
bool isFactor(const KernelCall &call, std::size_t slot)
{
    const std::size_t most = call.op->kind == OperatorKind::Einsum ? call.inputs.size() : 2; // then a bias
    if (call.op->direction == Direction::Forward)
        return slot < most;
    const BackwardCall back(call);
    const std::size_t first = back.inputSlot(0);
    return slot == 0 || (slot >= first && slot < first + std::min(most, back.forwardInputs()));
}

/// True of products whose kernel can round its results to BFloat16 by itself; those of others may be sums of
/// several products.
bool roundsResults(const Operator &op)
{
    return op.kind == OperatorKind::Linear;
}

/// True if all factors of `call` are numbers of BFloat16 in memory, or floats that are rounded to them.
bool seesBFloat16(const KernelCall &call, const KernelRounding &rounding)
{
    if (!isProduct(*call.op))
        return false;
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        const Buffer &buffer = call.inputs[slot];
        const DataType memory = rounding.inputs[slot];
        if (isFactor(call, slot) && buffer.data != nullptr
            && (buffer.dataType != DataType::Float32
                || (memory != DataType::Float32 && memory != DataType::BFloat16)
                || seenBy(call, rounding.compute, slot, memory) != DataType::BFloat16))
            return false;
    }
    return true;
}

/// As `convertFloats`, in pieces.
void convertAll(const std::byte *from, DataType fromType, std::byte *to, DataType toType, std::size_t count)
{
    forEachStretch(
        static_cast<std::int64_t>(count), kElementStretch, [&](std::int64_t begin, std::int64_t end) {
            (void)convertFloats(from + begin * sizeOf(fromType), fromType, to + begin * sizeOf(toType),
                toType, static_cast<std::size_t>(end - begin));
        });
}

/// Memory for the values of one slot; what it holds at first is left to chance.
class Scratch
{
public:
    std::byte *take(std::size_t bytes)
    {
        m_bytes = std::make_unique_for_overwrite<std::byte[]>(std::max<std::size_t>(bytes, 1));
        return m_bytes.get();
    }

private:
    std::unique_ptr<std::byte[]> m_bytes{};
};

} // namespace

bool multipliesBFloat16(const KernelCall &call)
{
    if (!isProduct(*call.op))
        return false;
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        const Buffer &buffer = call.inputs[slot];
        if (buffer.data != nullptr
            && buffer.dataType != (isFactor(call, slot) ? DataType::BFloat16 : DataType::Float32))
            return false;
    }
    return std::all_of(call.outputs.begin(), call.outputs.end(), [&](const Buffer &buffer) {
        return buffer.data == nullptr || buffer.dataType == DataType::Float32
            || (buffer.dataType == DataType::BFloat16 && roundsResults(*call.op));
    });
}

DataType computedAs(DataType type)
{
    return isNarrowFloat(type) ? DataType::Float32 : type;
}

bool isNarrow(const KernelCall &call)
{
    const auto narrow = [](const Buffer &buffer) { return isNarrowFloat(buffer.dataType); };
    return std::any_of(call.inputs.begin(), call.inputs.end(), narrow)
        || std::any_of(call.outputs.begin(), call.outputs.end(), narrow);
}

Result<void> runWidened(const KernelCall &call)
{
    KernelCall wide = call;
    KernelRounding rounding;
    const auto widen = [](std::vector<Buffer> &buffers, std::vector<DataType> &types) {
        for (Buffer &buffer : buffers) {
            types.push_back(buffer.dataType);
            buffer.dataType = computedAs(buffer.dataType);
        }
    };
    widen(wide.inputs, rounding.inputs);
    widen(wide.outputs, rounding.outputs);
    return runRounded(wide, rounding);
}

std::optional<KernelRounding> roundingOf(const KernelCall &call, KernelRounding rounding)
{
    const auto differs = [](const std::vector<Buffer> &buffers, const std::vector<DataType> &memory) {
        for (std::size_t slot = 0; slot < buffers.size(); ++slot)
            if (buffers[slot].dataType != memory[slot])
                return true;
        return false;
    };
    bool needed = rounding.gradientFactor != 1 || differs(call.inputs, rounding.inputs)
        || differs(call.outputs, rounding.outputs);
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot)
        needed =
            needed || seenBy(call, rounding.compute, slot, rounding.inputs[slot]) != rounding.inputs[slot];
    if (!needed)
        return std::nullopt;
    return rounding;
}

Result<void> runRounded(const KernelCall &call, const KernelRounding &rounding, bool bfloat16Products)
{
    KernelCall wide = call;
    std::vector<Scratch> scratch(call.inputs.size() + call.outputs.size());
    const bool asBFloat16 = bfloat16Products && seesBFloat16(call, rounding);
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        Buffer &buffer = wide.inputs[slot];
        const DataType memory = rounding.inputs[slot];
        if (buffer.data == nullptr || buffer.dataType != DataType::Float32)
            continue;
        const auto count = static_cast<std::size_t>(elementCount(buffer));
        if (asBFloat16 && isFactor(call, slot)) {
            buffer.dataType = DataType::BFloat16;
            if (memory == DataType::BFloat16)
                continue;
            std::byte *const own = scratch[slot].take(count * sizeof(BFloat16));
            convertAll(buffer.data, memory, own, DataType::BFloat16, count);
            buffer.data = own;
            continue;
        }
        const DataType seen = seenBy(call, rounding.compute, slot, memory);
        const bool scaled = rounding.gradientFactor != 1 && gradientSlot(*call.op) == slot;
        if (memory == DataType::Float32 && seen == memory && !scaled)
            continue;
        auto *const own = reinterpret_cast<float *>(scratch[slot].take(count * sizeof(float)));
        convertAll(buffer.data, memory, reinterpret_cast<std::byte *>(own), DataType::Float32, count);
        if (seen != memory)
            roundFor(seen, own, own, count);
        if (scaled)
            for (std::size_t i = 0; i < count; ++i)
                own[i] *= rounding.gradientFactor;
        buffer.data = reinterpret_cast<std::byte *>(own);
    }
    for (std::size_t slot = 0; slot < call.outputs.size(); ++slot) {
        Buffer &buffer = wide.outputs[slot];
        if (buffer.data == nullptr || buffer.dataType == rounding.outputs[slot])
            continue;
        if (asBFloat16 && roundsResults(*call.op) && rounding.outputs[slot] == DataType::BFloat16) {
            buffer.dataType = DataType::BFloat16;
            continue;
        }
        // An optimizer works in place: its new state lies where the old one does.
        const auto same = std::find_if(call.inputs.begin(), call.inputs.end(),
            [&](const Buffer &input) { return input.data == buffer.data; });
        if (same != call.inputs.end()) {
            buffer.data = wide.inputs[static_cast<std::size_t>(same - call.inputs.begin())].data;
            continue;
        }
        buffer.data = scratch[call.inputs.size() + slot].take(byteCount(buffer));
    }
    TRY_VOID(runKernel(wide));
    for (std::size_t slot = 0; slot < call.outputs.size(); ++slot) {
        const Buffer &buffer = call.outputs[slot];
        if (buffer.data != nullptr && wide.outputs[slot].dataType != rounding.outputs[slot])
            convertAll(wide.outputs[slot].data, DataType::Float32, buffer.data, rounding.outputs[slot],
                static_cast<std::size_t>(elementCount(buffer)));
    }
    return {};
}

} // namespace planloom
