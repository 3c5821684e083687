#include "engine/graph/operator_files/custom_operator.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/places.h"

#include <algorithm>
#include <cstddef>

namespace planloom {

namespace {

double count(const Shape &shape)
{
    double product = 1;
    for (const std::int64_t extent : shape)
        product *= static_cast<double>(extent);
    return product;
}

/// The shapes of the forward operator's tensors, found in the slots of a forward or a backward operator.
class Shapes
{
public:
    Shapes(const Operator &op, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs)
        : m_op(op)
        , m_inputs(inputs)
        , m_outputs(outputs)
        , m_backward(op.direction == Direction::Backward)
    {
        m_inCount = m_backward ? op.outputs.size() : op.inputs.size();
        m_outCount =
            m_backward ? (op.inputs.size() - std::min(op.inputs.size(), m_inCount)) / 2 : op.outputs.size();
    }

    bool isBackward() const { return m_backward; }
    std::size_t inCount() const { return m_inCount; }
    std::size_t outCount() const { return m_outCount; }

    /// Null where the slot is empty (or, in a backward operator, where nothing has that tensor's shape).
    const Shape *in(std::size_t slot) const
    {
        if (!m_backward)
            return input(slot);
        if (slot < m_inCount && isWanted(slot))
            return &m_outputs[slot].shape;
        return slot < m_inCount ? input(m_outCount + slot) : nullptr;
    }
    const Shape *out(std::size_t slot) const
    {
        if (!m_backward)
            return slot < m_op.outputs.size() && m_op.outputs[slot].valid() ? &m_outputs[slot].shape
                                                                            : nullptr;
        if (slot >= m_outCount)
            return nullptr;
        const Shape *gradient = input(slot);
        return gradient != nullptr ? gradient : input(m_outCount + m_inCount + slot);
    }
    /// In a backward operator: the gradient of forward input `slot` is made.
    bool isWanted(std::size_t slot) const { return slot < m_op.outputs.size() && m_op.outputs[slot].valid(); }

    double inElements(std::size_t slot) const { return elements(in(slot)); }
    double outElements(std::size_t slot) const { return elements(out(slot)); }

private:
    const Shape *input(std::size_t slot) const
    {
        return slot < m_op.inputs.size() && m_op.inputs[slot].valid() ? &m_inputs[slot].shape : nullptr;
    }
    static double elements(const Shape *shape) { return shape == nullptr ? 0 : count(*shape); }

    const Operator &m_op;
    const std::vector<TensorType> &m_inputs;
    const std::vector<TensorType> &m_outputs;
    bool m_backward;
    std::size_t m_inCount = 0;
    std::size_t m_outCount = 0;
};

/// Operations per element of kinds computed element by element; transcendental functions count as about the
/// number of polynomial steps that vector libraries take.
double operationsPerElement(OperatorKind kind)
{
    using enum OperatorKind;
    switch (kind) {
    case Identity:
    case Cast:
        return 0;
    case Erf:
    case Exp:
    case Log:
    case Sin:
    case Cos:
    case Tan:
    case Sinh:
    case Cosh:
    case Tanh:
    case Asin:
    case Acos:
    case Atan:
    case Asinh:
    case Acosh:
    case Atanh:
    case Sigmoid:
    case Pow:
        return 10;
    case Softplus:
    case Silu:
    case Elu:
    case Celu:
    case Selu:
        return 12;
    case Gelu:
    case Mish:
        return 16;
    case Dropout:
        return 20; // a counter-based draw
    case Reciprocal:
    case Sqrt:
    case Div:
    case Mod:
    case Softsign:
    case HardSwish:
    case HardSigmoid:
        return 4;
    default:
        return 1;
    }
}

double lastExtent(const Shape *shape, std::size_t fromEnd)
{
    return shape == nullptr || shape->size() <= fromEnd
        ? 0
        : static_cast<double>((*shape)[shape->size() - 1 - fromEnd]);
}

/// Product of the kernel's extents and the channels it joins: all of w but its first dimension.
double kernelElements(const Shape *weight)
{
    return weight == nullptr || weight->empty() ? 0 : count(Shape(weight->begin() + 1, weight->end()));
}

/// The extent that a Linear's weight [k n], [k p n], or transposed [n k], [p n k], sums over; 0 if not known.
double summedByWeight(const Shape *weight, bool transposed)
{
    return weight == nullptr ? 0 : static_cast<double>(transposed ? weight->back() : weight->front());
}

/// Multiplications and additions of one product with the forward's extents; each gradient costs the same.
double productFlops(const Operator &op, const Shapes &shapes)
{
    using enum OperatorKind;
    switch (op.kind) {
    case MatMul: {
        const Shape *b = shapes.in(1);
        const double k = shapes.in(0) != nullptr ? lastExtent(shapes.in(0), 0)
                                                 : lastExtent(b, b != nullptr && b->size() > 1 ? 1 : 0);
        return 2 * shapes.outElements(0) * k;
    }
    case Linear: {
        const bool transposed = op.attributes.integer("transposed") != 0;
        const double k =
            shapes.in(0) != nullptr ? lastExtent(shapes.in(0), 0) : summedByWeight(shapes.in(1), transposed);
        return 2 * shapes.outElements(0) * k;
    }
    case Einsum: {
        // One loop over all letters.
        double extents[128] = {};
        const std::string equation = op.attributes.text("equation");
        std::size_t slot = 0;
        std::size_t position = 0;
        std::size_t operands = 1;
        for (const char c : equation) {
            if (c == '-')
                break;
            if (c == ',') {
                ++slot;
                ++operands;
                position = 0;
                continue;
            }
            const auto letter = static_cast<unsigned char>(c);
            if (c == ' ' || letter >= 128)
                continue;
            const Shape *shape = shapes.in(slot);
            if (shape != nullptr && position < shape->size())
                extents[letter] = std::max(extents[letter], static_cast<double>((*shape)[position]));
            ++position;
        }
        const std::size_t arrow = equation.find("->");
        position = 0;
        const Shape *y = shapes.out(0);
        for (std::size_t i = arrow == std::string::npos ? equation.size() : arrow + 2; i < equation.size();
             ++i) {
            const auto letter = static_cast<unsigned char>(equation[i]);
            if (equation[i] == ' ' || letter >= 128)
                continue;
            if (y != nullptr && position < y->size())
                extents[letter] = std::max(extents[letter], static_cast<double>((*y)[position]));
            ++position;
        }
        double loop = 1;
        for (const double extent : extents)
            loop *= extent > 0 ? extent : 1;
        return loop * static_cast<double>(operands);
    }
    case Conv:
        return 2 * shapes.outElements(0) * kernelElements(shapes.in(1));
    case ConvTranspose:
        return 2 * shapes.inElements(0) * kernelElements(shapes.in(1));
    default:
        return 0;
    }
}

double windowElements(const Operator &op)
{
    double product = 1;
    for (const std::int64_t extent : op.attributes.integers("kernel_shape"))
        product *= static_cast<double>(extent);
    return product;
}

double recurrentFlops(const Operator &op, const Shapes &shapes)
{
    using enum OperatorKind;
    const Shape *x = shapes.in(0);
    const Shape *w = shapes.in(1);
    const Shape *r = shapes.in(2);
    if (x == nullptr || r == nullptr || x->size() < 3)
        return 0;
    const double steps = static_cast<double>((*x)[0]) * static_cast<double>((*x)[1]);
    const double gates = op.kind == Lstm ? 4 : op.kind == Gru ? 3 : 1;
    return steps * (2 * ((w == nullptr ? 0 : count(*w)) + count(*r)) + 12 * gates * lastExtent(r, 0));
}

/// Two products of every query with the keys that it sees.
double attentionFlops(const Operator &op, const Shapes &shapes)
{
    const Shape *y = shapes.out(0);
    const Shape *q = shapes.in(0);
    const Shape *k = shapes.in(1) != nullptr ? shapes.in(1) : shapes.in(2);
    const Shape *like = y != nullptr ? y : q;
    if (like == nullptr || like->empty() || k == nullptr)
        return 0;
    const double rows = count(Shape(like->begin(), like->end() - 1));
    const double valueWidth = lastExtent(y != nullptr ? y : shapes.in(2), 0);
    const double width = lastExtent(q != nullptr ? q : shapes.in(1), 0);
    return 2 * rows * attentionReach(op.attributes).meanKeys(lastExtent(k, 1)) * (width + valueWidth);
}

/// Of a forward or optimizer operator, or of the forward that a backward operator mirrors.
double forwardFlops(const Operator &op, const Shapes &shapes)
{
    using enum OperatorKind;
    switch (categoryOf(op.kind)) {
    case OperatorCategory::Product: {
        const bool bias = op.kind != MatMul && op.kind != Einsum && shapes.in(2) != nullptr;
        return productFlops(op, shapes) + (bias ? shapes.outElements(0) : 0);
    }
    case OperatorCategory::Attention:
        return attentionFlops(op, shapes);
    case OperatorCategory::Recurrent:
        return recurrentFlops(op, shapes);
    case OperatorCategory::Optimizer:
        return shapes.inElements(0) * (op.kind == AdamWStep ? 16 : op.kind == SquareSum ? 2 : 6);
    case OperatorCategory::Normalization: {
        const double x = std::max(shapes.inElements(0), shapes.outElements(0));
        switch (op.kind) {
        case BatchMean:
            return x;
        case BatchVariance:
            return 3 * x;
        case BatchNormalize:
            return 4 * x;
        case Softmax:
        case LogSoftmax:
            return 14 * x;
        case LocalResponseNorm:
            return (2 * static_cast<double>(op.attributes.integer("size", 1)) + 12) * x;
        default:
            return 8 * x;
        }
    }
    case OperatorCategory::Loss:
        return op.kind == CrossEntropy || op.kind == ClassStatistics
            ? 14 * shapes.inElements(0)
            : 2 * shapes.inElements(op.kind == CountValid ? 0 : 1);
    case OperatorCategory::Reduction:
        switch (op.kind) {
        case MaxPool:
        case AveragePool:
        case LpPool:
            return shapes.outElements(0) * windowElements(op);
        case ReduceLogSum:
        case ReduceL1:
        case ReduceL2:
        case ReduceSumSquare:
            return 2 * shapes.inElements(0);
        case ReduceLogSumExp:
            return 12 * shapes.inElements(0);
        case TopK:
            return 8 * shapes.inElements(0);
        default:
            return shapes.inElements(0);
        }
    case OperatorCategory::Movement:
        return op.kind == Resize || op.kind == GridSample ? 8 * shapes.outElements(0) : 0;
    case OperatorCategory::Activation:
    case OperatorCategory::Elementwise:
        if (op.kind == Rotary)
            return 3 * shapes.outElements(0);
        return operationsPerElement(op.kind) * shapes.outElements(0);
    case OperatorCategory::Other:
        break;
    }
    return 0;
}

double backwardFlops(const Operator &op, const Shapes &shapes)
{
    using enum OperatorKind;
    double wanted = 0;
    for (std::size_t slot = 0; slot < shapes.inCount(); ++slot)
        wanted += shapes.isWanted(slot) ? 1 : 0;
    if (wanted == 0)
        return 0;
    switch (categoryOf(op.kind)) {
    case OperatorCategory::Product: {
        const bool bias = op.kind != MatMul && op.kind != Einsum && shapes.isWanted(2);
        return productFlops(op, shapes) * (bias ? wanted - 1 : wanted) + (bias ? shapes.outElements(0) : 0);
    }
    case OperatorCategory::Attention:
        // Five products in place of two: the scores again, and two gradients of each product.
        return 2.5 * forwardFlops(op, shapes);
    case OperatorCategory::Normalization:
        return 1.5 * forwardFlops(op, shapes);
    case OperatorCategory::Movement:
        switch (op.kind) {
        case Expand:
        case Tile:
        case Gather:
        case Embedding:
        case GatherElements:
        case GatherND:
            return shapes.outElements(0); // added up
        default:
            return forwardFlops(op, shapes);
        }
    case OperatorCategory::Activation:
    case OperatorCategory::Elementwise:
        return std::max(1.0, operationsPerElement(op.kind)) * shapes.outElements(0) * wanted;
    default:
        return forwardFlops(op, shapes);
    }
}

double bytesOf(const TensorType &type)
{
    return count(type.shape) * static_cast<double>(sizeOf(type.dataType));
}

} // namespace

Work workOf(const Operator &op, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs,
    AttentionMode attention)
{
    using enum OperatorKind;
    const Shapes shapes(op, inputs, outputs);
    Work work;
    work.flops = op.kind == Custom ? customFlops(op, inputs, outputs)
        : shapes.isBackward()      ? backwardFlops(op, shapes)
                                   : forwardFlops(op, shapes);
    // Only the rows that are named are read.
    const bool rows = !shapes.isBackward()
        && (op.kind == Gather || op.kind == Embedding || (op.kind == GatherND && hasPlaces(op.attributes)));
    const bool fused = attention == AttentionMode::Fused;
    const auto leftIn = fused ? static_cast<std::size_t>(probabilitiesInput(op)) : op.inputs.size();
    const auto leftOut = fused ? static_cast<std::size_t>(probabilitiesOutput(op)) : op.outputs.size();
    for (std::size_t slot = 0; slot < op.inputs.size() && slot < inputs.size(); ++slot) {
        if (op.inputs[slot].valid() && !(rows && slot == 0) && slot != leftIn)
            work.bytes += bytesOf(inputs[slot]);
    }
    for (std::size_t slot = 0; slot < op.outputs.size() && slot < outputs.size(); ++slot) {
        if (op.outputs[slot].valid() && slot != leftOut)
            work.bytes += bytesOf(outputs[slot]) * (rows ? 2 : 1);
    }
    return work;
}

Work workOf(const Graph &graph, const Operator &op)
{
    return workOf(op, typesOf(graph, op.inputs), typesOf(graph, op.outputs));
}

std::vector<MatrixProduct> matrixProductsOf(
    const Operator &op, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs)
{
    using enum OperatorKind;
    if (op.kind != MatMul && op.kind != Linear)
        return {};
    const Shapes shapes(op, inputs, outputs);
    // Backward operators know the extents of what they do not read from what they make.
    const Shape *a = shapes.in(0);
    const Shape *b = shapes.in(1);
    const Shape *y = shapes.out(0);
    if (y == nullptr || (a == nullptr && b == nullptr))
        return {};
    const bool transposed = op.kind == Linear && op.attributes.integer("transposed") != 0;
    MatrixProduct product;
    if (op.kind == Linear) { // all columns of all parts
        product.k = a != nullptr ? lastExtent(a, 0) : summedByWeight(b, transposed);
        if (product.k > 0)
            product.n = b != nullptr ? count(*b) / product.k : count(*y) * product.k / count(*a);
    } else {
        product.k = a != nullptr ? lastExtent(a, 0) : lastExtent(b, b->size() < 2 ? 0 : 1);
        const bool vector = b != nullptr && b->size() < 2;
        product.n = vector ? 1 : lastExtent(y, 0);
    }
    // One weight for all leading dimensions: their rows are one matrix.
    const bool shared = op.kind == Linear || (b != nullptr && b->size() <= 2);
    const double rows = product.n > 0 ? count(*y) / product.n : 0;
    product.m = shared ? rows : std::max(lastExtent(y, 1), 1.0);
    product.count = product.m > 0 ? rows / product.m : 0;
    if (!shapes.isBackward())
        return {product};
    std::vector<MatrixProduct> products;
    if (shapes.isWanted(0))
        products.push_back({product.m, product.k, product.n, product.count});
    if (shapes.isWanted(1))
        products.push_back({product.k, product.n, product.m, product.count});
    return products;
}

bool isView(const Operator &op)
{
    using enum OperatorKind;
    return op.direction != Direction::Optimizer && (op.kind == Reshape || op.kind == Identity);
}

} // namespace planloom
