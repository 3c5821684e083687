#include "engine/kernels/kernel_call.h"

#include "engine/base/work_pool.h"
#include "engine/graph/annotation/annotation.h"

#include <algorithm>
#include <cstring>

namespace planloom {

namespace {

Error errorOf(const KernelCall &call, ErrorCode code, std::string message, std::string advice)
{
    return Error{code, std::move(message), std::move(advice), "operator:" + call.op->name};
}

} // namespace

Error invalidInput(const KernelCall &call, std::string message, std::string advice)
{
    return errorOf(call, ErrorCode::InvalidInput, std::move(message), std::move(advice));
}

Error notSupported(const KernelCall &call, std::string message, std::string advice)
{
    return errorOf(call, ErrorCode::NotSupported, std::move(message), std::move(advice));
}

Error unsupportedType(const KernelCall &call, DataType type)
{
    return notSupported(call,
        "operator " + call.op->name + " (" + nameOf(call.op->kind) + ") cannot compute with " + nameOf(type),
        "cast its inputs to float32");
}

Error missingSlot(const KernelCall &call, const char *what)
{
    return errorOf(call, ErrorCode::Internal,
        "operator " + call.op->name + " (" + nameOf(call.op->kind) + ") was called without " + what, {});
}

Error indexOutOfRange(const KernelCall &call, std::int64_t index, std::int64_t bound)
{
    return invalidInput(call,
        "operator " + call.op->name + " got index " + std::to_string(index) + ", expected one in [-"
            + std::to_string(bound) + ", " + std::to_string(bound) + ")",
        "check the values fed to the model's inputs");
}

bool makesTerm(const KernelCall &call, std::size_t output, std::initializer_list<std::size_t> from)
{
    const Annotation &annotation = call.op->annotation;
    if (call.value.index != 0) {
        const auto isLinear = [&annotation](std::size_t slot) {
            return std::find(annotation.linearInputs.begin(), annotation.linearInputs.end(),
                       static_cast<std::int32_t>(slot))
                != annotation.linearInputs.end();
        };
        bool divided = std::any_of(from.begin(), from.end(), isLinear);
        if (call.op->direction == Direction::Backward)
            divided = divided || isLinear(BackwardCall(call).inputSlot(output));
        if (!divided)
            return false;
    }
    for (std::size_t d = 0; d < call.ranges.size() && d < annotation.dimensions.size(); ++d) {
        const Dimension &dimension = annotation.dimensions[d];
        if (dimension.mark != DimensionMark::Reduce || call.ranges[d].begin == 0)
            continue;
        const auto index = static_cast<std::int32_t>(d);
        bool seen = output < annotation.outputs.size() && mentions(annotation.outputs[output], index);
        for (const std::size_t slot : from)
            seen = seen || (slot < annotation.inputs.size() && mentions(annotation.inputs[slot], index));
        if (!seen)
            return false;
    }
    return true;
}

IndexMask ownBox(const KernelCall &call, std::size_t slot)
{
    const Buffer &buffer = call.inputs[slot];
    IndexMask box = buffer.mask.ranges.empty() ? wholeMask(buffer.shape) : buffer.mask;
    const Annotation &annotation = call.op->annotation;
    if (call.ranges.empty() || slot >= annotation.inputs.size())
        return box;
    const auto &terms = annotation.inputs[slot].terms;
    for (std::size_t d = 0; d < terms.size(); ++d) {
        if (terms[d].reach != WindowReach::Met && terms[d].reach != WindowReach::Covered)
            continue;
        const auto counted = static_cast<std::size_t>(terms[d].factors[0]);
        box.ranges[d] = reached(*findWindow(annotation, terms[d].factors[0]),
            annotation.dimensions[counted].size, call.ranges[counted],
            terms[d].reach == WindowReach::Met ? WindowReach::Own : WindowReach::Share);
    }
    return box;
}

Buffer pieceOf(const Buffer &from, const IndexMask &box, std::vector<std::byte> &memory)
{
    if (from.shape == shapeOf(box))
        return from;
    Buffer piece = from;
    piece.shape = shapeOf(box);
    piece.mask = box;
    memory.resize(byteCount(piece));
    piece.data = memory.data();
    const std::size_t rank = box.ranges.size();
    const std::int64_t size = sizeOf(from.dataType);
    const auto run = static_cast<std::size_t>(piece.shape[rank - 1] * size);
    Shape at(rank - 1, 0);
    const std::int64_t rows = run == 0 ? 0 : static_cast<std::int64_t>(memory.size() / run);
    for (std::int64_t row = 0; row < rows; ++row) {
        std::int64_t offset = 0;
        for (std::size_t d = 0; d < rank; ++d) {
            const std::int64_t first = box.ranges[d].begin - firstOf(from, d);
            offset = offset * from.shape[d] + first + (d + 1 < rank ? at[d] : 0);
        }
        std::memcpy(piece.data + static_cast<std::size_t>(row) * run, from.data + offset * size, run);
        for (std::size_t d = rank - 1; d-- > 0;) {
            if (++at[d] < piece.shape[d])
                break;
            at[d] = 0;
        }
    }
    return piece;
}

void fillZero(const Buffer &buffer)
{
    if (buffer.data == nullptr)
        return;
    constexpr std::int64_t kStretch = std::int64_t{1} << 20; // bytes that are worth a thread
    forEachStretch(
        static_cast<std::int64_t>(byteCount(buffer)), kStretch, [&](std::int64_t begin, std::int64_t end) {
            std::memset(buffer.data + begin, 0, static_cast<std::size_t>(end - begin));
        });
}

void fillZero(const KernelCall &call, const Buffer &buffer)
{
    if (call.mover == nullptr)
        fillZero(buffer);
    else if (buffer.data != nullptr)
        call.mover->clear(buffer.data, byteCount(buffer));
}

std::int64_t integerAt(const Buffer &buffer, std::int64_t i)
{
    switch (buffer.dataType) {
    case DataType::Int64:
        return elements<const std::int64_t>(buffer)[i];
    case DataType::Int32:
        return elements<const std::int32_t>(buffer)[i];
    case DataType::Int16:
        return elements<const std::int16_t>(buffer)[i];
    case DataType::Int8:
        return elements<const std::int8_t>(buffer)[i];
    case DataType::UInt8:
    case DataType::Bool:
        return elements<const std::uint8_t>(buffer)[i];
    default:
        return 0;
    }
}

} // namespace planloom
