#include "engine/kernels/rounded_kernel.h"

#include "engine/graph/weight_update.h"
#include "engine/kernels/kernel_call.h"
#include "engine/kernels/narrow_float.h"

#include <algorithm>

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

} // namespace

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

Result<void> runRounded(const KernelCall &call, const KernelRounding &rounding)
{
    KernelCall wide = call;
    std::vector<std::vector<float>> scratch(call.inputs.size() + call.outputs.size());
    for (std::size_t slot = 0; slot < call.inputs.size(); ++slot) {
        Buffer &buffer = wide.inputs[slot];
        const DataType memory = rounding.inputs[slot];
        if (buffer.data == nullptr || buffer.dataType != DataType::Float32)
            continue;
        const DataType seen = seenBy(call, rounding.compute, slot, memory);
        const bool scaled = rounding.gradientFactor != 1 && gradientSlot(*call.op) == slot;
        if (memory == DataType::Float32 && seen == memory && !scaled)
            continue;
        const auto count = static_cast<std::size_t>(elementCount(buffer));
        std::vector<float> &own = scratch[slot];
        own.resize(std::max<std::size_t>(count, 1));
        convertFloats(
            buffer.data, memory, reinterpret_cast<std::byte *>(own.data()), DataType::Float32, count);
        if (seen != memory)
            roundFor(seen, own.data(), own.data(), count);
        if (scaled)
            for (float &value : own)
                value *= rounding.gradientFactor;
        buffer.data = reinterpret_cast<std::byte *>(own.data());
    }
    for (std::size_t slot = 0; slot < call.outputs.size(); ++slot) {
        Buffer &buffer = wide.outputs[slot];
        if (buffer.data == nullptr || buffer.dataType == rounding.outputs[slot])
            continue;
        // An optimizer works in place: its new state lies where the old one does.
        const auto same = std::find_if(call.inputs.begin(), call.inputs.end(),
            [&](const Buffer &input) { return input.data == buffer.data; });
        if (same != call.inputs.end()) {
            buffer.data = wide.inputs[static_cast<std::size_t>(same - call.inputs.begin())].data;
            continue;
        }
        std::vector<float> &own = scratch[call.inputs.size() + slot];
        own.resize(std::max<std::size_t>(static_cast<std::size_t>(elementCount(buffer)), 1));
        buffer.data = reinterpret_cast<std::byte *>(own.data());
    }
    TRY_VOID(runKernel(wide));
    for (std::size_t slot = 0; slot < call.outputs.size(); ++slot) {
        const Buffer &buffer = call.outputs[slot];
        if (buffer.data != nullptr && buffer.dataType != rounding.outputs[slot])
            narrow(reinterpret_cast<const float *>(wide.outputs[slot].data), rounding.outputs[slot],
                buffer.data, static_cast<std::size_t>(elementCount(buffer)));
    }
    return {};
}

} // namespace planloom
