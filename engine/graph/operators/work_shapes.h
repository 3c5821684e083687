#pragma once

// Private to the graph room: what the families' counts of floating-point operations are made of.

#include "engine/graph/operator.h"
#include "engine/graph/tensor.h"

#include <cstddef>
#include <vector>

namespace planloom {

/// The shapes of the forward operator's tensors, found in the slots of a forward, optimizer or backward
/// operator.
class WorkShapes
{
public:
    WorkShapes(
        const Operator &op, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs);

    const Operator &op() const { return m_op; }
    const Attributes &attributes() const { return m_op.attributes; }
    bool isBackward() const { return m_backward; }

    /// Null where the slot is empty (or, in a backward operator, where nothing has that tensor's shape).
    const Shape *in(std::size_t slot) const;
    const Shape *out(std::size_t slot) const;

    /// In a backward operator: the gradient of forward input `slot` is made.
    bool isWanted(std::size_t slot) const { return slot < m_op.outputs.size() && m_op.outputs[slot].valid(); }
    double wantedCount() const; ///< How many gradients are made.

    double inElements(std::size_t slot) const; ///< 0 where there is no shape.
    double outElements(std::size_t slot) const;

private:
    const Shape *input(std::size_t slot) const;

    const Operator &m_op;
    const std::vector<TensorType> &m_inputs;
    const std::vector<TensorType> &m_outputs;
    bool m_backward;
    std::size_t m_inCount = 0;
    std::size_t m_outCount = 0;
};

double countOf(const Shape &shape);
/// The extent `fromEnd` dimensions before the last; 0 if there is none.
double lastExtent(const Shape *shape, std::size_t fromEnd);
/// The extent that a Linear's weight [k n], [k p n], or transposed [n k], [p n k], sums over; 0 if not known.
double summedByWeight(const Shape *weight, bool transposed);

// What entries of several families count (`WorkRule`).
double firstOutput(const WorkShapes &shapes); ///< Elements of output 0.
double firstInput(const WorkShapes &shapes); ///< Elements of input 0.
/// The elements of the outputs' gradient, which are added up.
double onePerOutput(const WorkShapes &shapes, double forward);
/// One product as large as the forward one for each of inputs 0 and 1 whose gradient is made.
double onePerFactor(const WorkShapes &shapes, double forward);

} // namespace planloom
