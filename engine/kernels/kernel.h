#pragma once

#include "engine/base/result.h"
#include "engine/graph/operator.h"
#include "engine/graph/operators/mask.h"
#include "engine/graph/shape.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

class OperatorLibraries;

/// A tensor in this device's memory: dense, row-major. Absent optional tensors have no data.
struct Buffer {
    std::byte *data = nullptr;
    DataType dataType = DataType::Float32;
    Shape shape{}; ///< Of this part, not of the whole pTensor.
    IndexMask mask{}; ///< Where this part lies in its pTensor (same extents as `shape`).
    Shape wholeShape{}; ///< Of the pTensor.
};

/// What moves elements in a memory that is not the processor's: kernels that only move some run there.
class ElementMover
{
public:
    virtual ~ElementMover() = default;
    /// to[i . toStrides] = from[i . fromStrides] for every index i below `extents`; strides in elements.
    virtual void move(std::int64_t elementSize, const Shape &extents, const void *from,
        const Shape &fromStrides, void *to, const Shape &toStrides) = 0;
    virtual void clear(void *to, std::size_t bytes) = 0; ///< To zero bytes.
};

/// One call of one operator, or of one part of it.
struct KernelCall {
    const Operator *op = nullptr;
    std::vector<Buffer> inputs{}; ///< By slot, as in `Operator`.
    std::vector<Buffer> outputs{}; ///< By slot; an output without data is not wanted. Never alias inputs,
                                   ///< except optimizer operators, whose state outputs alias state inputs.
    std::vector<Range>
        ranges{}; ///< Per identifier of the annotation: what this part covers (`PartBox::ranges`).
    ValueMask value{}; ///< `PartBox::value`: only part 0 of a Value split adds terms without linear inputs.
    std::uint64_t seed = 0; ///< Of the run; mixed with a Dropout's own.
    std::int64_t step = 1; ///< 1-based training step, for bias correction.
    std::optional<double> learningRate{}; ///< Of an optimizer: in place of its operator's.
    double rateShare = 1; ///< Of an optimizer: what its schedule leaves of the rate.
    const OperatorLibraries *libraries = nullptr; ///< What computes operators of files; may be null.
    ElementMover *mover = nullptr; ///< Of buffers that are elsewhere: for kinds of which `onlyMoves` is true.
    /// Outputs that are added to what is there already, one bit each: those for which `canAddTo` is true.
    std::uint32_t addsTo = 0;
    std::int64_t *dropped = nullptr; ///< If set, a NonZero adds what it had no room for (places.h).
};

/// Runs `call` on the calling thread, and where that belongs to a `WorkPool`, on others of it that have
/// nothing else to do: in pieces that depend on shapes alone, so that results are the same bits on any number
/// of threads (oneDNN is held to one thread for each piece). Values of 16 bits are computed with as floats,
/// and results rounded once.
///
/// Rules for parts: terms that do not contain a cut Reduce identifier (the bias of a Linear split along k)
/// are added, and their gradients made, only by the part whose range of that identifier begins at 0, others
/// write zeros; an Embedding whose vocabulary is cut writes zeros for indices outside its range; Dropout
/// draws by an element's index in its whole pTensor, so that every plan draws the same mask.
/// @return NotSupported naming the operator if it has no kernel; InvalidInput for values it cannot take (an
/// index
///   out of range, naming it)
Result<void> runKernel(const KernelCall &call);

/// True if `runKernel` has an implementation of this operator in its direction; of one of a file that a
/// library computes, if the library is there once it is run.
bool hasKernel(const Operator &op);

/// True if the operator's kernel can add output `output` to what is there, where that is of the type it
/// computes with: gradients of large weights, which are not worth writing twice.
bool canAddTo(const Operator &op, std::size_t output);

/// True if the operator does nothing but move elements, in its direction, and so heeds `KernelCall::mover`.
bool onlyMoves(const Operator &op);

} // namespace planloom
