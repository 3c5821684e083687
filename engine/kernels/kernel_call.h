#pragma once

#include "engine/kernels/kernel.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace planloom {

// What kernels ask of the call they were given.

/// The buffer's elements as `T`; the caller has checked the data type.
template<typename T> T *elements(const Buffer &buffer)
{
    return reinterpret_cast<T *>(buffer.data);
}

/// Number of elements of this part.
inline std::int64_t elementCount(const Buffer &buffer)
{
    return elementCount(buffer.shape);
}

/// Bytes of this part.
inline std::size_t byteCount(const Buffer &buffer)
{
    return static_cast<std::size_t>(elementCount(buffer.shape) * sizeOf(buffer.dataType));
}

/// Input `slot`, or null where it is absent.
inline const Buffer *findInput(const KernelCall &call, std::size_t slot)
{
    return slot < call.inputs.size() && call.inputs[slot].data != nullptr ? &call.inputs[slot] : nullptr;
}

/// Output `slot`, or null where it is not wanted.
inline const Buffer *findOutput(const KernelCall &call, std::size_t slot)
{
    return slot < call.outputs.size() && call.outputs[slot].data != nullptr ? &call.outputs[slot] : nullptr;
}

/// First position of the part along `dimension` in its pTensor; 0 where the buffer carries no mask.
inline std::int64_t firstOf(const Buffer &buffer, std::size_t dimension)
{
    return dimension < buffer.mask.ranges.size() ? buffer.mask.ranges[dimension].begin : 0;
}

/// Extent of the whole pTensor along `dimension`.
inline std::int64_t wholeExtent(const Buffer &buffer, std::size_t dimension)
{
    return dimension < buffer.wholeShape.size() ? buffer.wholeShape[dimension] : buffer.shape[dimension];
}

/// Slots of a backward call, named after the forward operator's (see `Operator`).
class BackwardCall
{
public:
    explicit BackwardCall(const KernelCall &call)
        : m_call(call)
        , m_forwardInputs(call.outputs.size())
        , m_forwardOutputs((call.inputs.size() - call.outputs.size()) / 2)
    {
    }

    std::size_t forwardInputs() const { return m_forwardInputs; }
    std::size_t forwardOutputs() const { return m_forwardOutputs; }

    /// Gradient of forward output k; null where nothing depends on that output.
    const Buffer *gradient(std::size_t k = 0) const { return findInput(m_call, k); }
    /// Value of forward input i; null where the forward has no such input, or it was not saved.
    const Buffer *input(std::size_t i) const
    {
        return i < m_forwardInputs ? findInput(m_call, inputSlot(i)) : nullptr;
    }
    /// Value of forward output k; null where it was not saved.
    const Buffer *output(std::size_t k = 0) const
    {
        return findInput(m_call, m_forwardOutputs + m_forwardInputs + k);
    }
    /// Where the gradient of forward input i goes; null where it is not wanted.
    const Buffer *wanted(std::size_t i) const { return findOutput(m_call, i); }
    /// Slot of forward input i among the backward operator's inputs.
    std::size_t inputSlot(std::size_t i) const { return m_forwardOutputs + i; }

private:
    const KernelCall &m_call;
    std::size_t m_forwardInputs;
    std::size_t m_forwardOutputs;
};

/// An Error that names the call's operator.
Error invalidInput(const KernelCall &call, std::string message, std::string advice = {});
Error notSupported(const KernelCall &call, std::string message, std::string advice = {});

/// NotSupported: the kernel does not compute with `type`.
Error unsupportedType(const KernelCall &call, DataType type);

/// Internal: a slot that this kind cannot do without has no data.
Error missingSlot(const KernelCall &call, const char *what);

/// InvalidInput: an index lies outside [-bound, bound).
Error indexOutOfRange(const KernelCall &call, std::int64_t index, std::int64_t bound);

/// True if this part adds to output `output` a term that is computed from the inputs `from` alone.
///
/// Where a cut Reduce identifier occurs neither in the output nor in `from`, every part along it would add
/// the same term, so only the part whose range begins at 0 does; where a Value split divides inputs on which
/// the term does not depend, only the part of index 0 does. Gradients of the divided inputs themselves are
/// complete in every part (see `backwardAnnotation`).
bool makesTerm(const KernelCall &call, std::size_t output, std::initializer_list<std::size_t> from);

/// The box of input `slot` that this part has to itself: without its neighbours' windows, or their shares.
IndexMask ownBox(const KernelCall &call, std::size_t slot);

/// The piece `box` of `from`, which has it; `from` itself where that is all of it, else a copy in `memory`.
Buffer pieceOf(const Buffer &from, const IndexMask &box, std::vector<std::byte> &memory);

/// Output `slot` is added to what is there.
inline bool addsTo(const KernelCall &call, std::size_t slot)
{
    return (call.addsTo >> slot & 1U) != 0;
}

/// Fills the part with zero bytes.
void fillZero(const Buffer &buffer);
/// The same where the call's buffers are.
void fillZero(const KernelCall &call, const Buffer &buffer);

/// What `work` returns of a value; of work that cannot fail, that nothing is wrong.
template<typename Work, typename T> Result<void> doneWith(Work &work, T value)
{
    if constexpr (std::is_void_v<std::invoke_result_t<Work &, T>>) {
        work(value);
        return {};
    } else {
        return work(value);
    }
}

/// Calls `work`, which may return nothing or a Result, with a value of the C++ type of a floating `type`.
template<typename Work> Result<void> withFloat(const KernelCall &call, DataType type, Work &&work)
{
    switch (type) {
    case DataType::Float32:
        return doneWith(work, float{});
    case DataType::Float64:
        return doneWith(work, double{});
    default:
        return unsupportedType(call, type);
    }
}

/// As `withFloat`, also for integers and booleans.
template<typename Work> Result<void> withNumber(const KernelCall &call, DataType type, Work &&work)
{
    switch (type) {
    case DataType::Int64:
        return doneWith(work, std::int64_t{});
    case DataType::Int32:
        return doneWith(work, std::int32_t{});
    case DataType::Int16:
        return doneWith(work, std::int16_t{});
    case DataType::Int8:
        return doneWith(work, std::int8_t{});
    case DataType::UInt8:
    case DataType::Bool:
        return doneWith(work, std::uint8_t{});
    default:
        return withFloat(call, type, std::forward<Work>(work));
    }
}

/// Calls `work` with an unsigned integer as large as an element: for kernels that only move elements.
template<typename Work> Result<void> withElement(DataType type, Work &&work)
{
    switch (sizeOf(type)) {
    case 1:
        return doneWith(work, std::uint8_t{});
    case 2:
        return doneWith(work, std::uint16_t{});
    case 4:
        return doneWith(work, std::uint32_t{});
    default:
        return doneWith(work, std::uint64_t{});
    }
}

/// Element `i` of an integer buffer (Int64, Int32, ...); 0 for other types.
std::int64_t integerAt(const Buffer &buffer, std::int64_t i);

} // namespace planloom
