#include "engine/graph/operator_files/custom_operator.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/graph/operators/kind_entry.h"
#include "engine/graph/operators/places.h"

#include <algorithm>

namespace planloom {

namespace {

double flopsOf(const WorkShapes &shapes)
{
    const WorkRule &rule = entryOf(shapes.op().kind).work;
    const double forward = rule.count ? rule.operations * rule.count(shapes) : 0;
    const bool addsBias =
        rule.hasBias && (shapes.isBackward() ? shapes.isWanted(2) : shapes.in(2) != nullptr);
    const double bias = addsBias ? shapes.outElements(0) : 0;
    if (!shapes.isBackward())
        return forward + bias;
    if (shapes.wantedCount() == 0)
        return 0;
    return (rule.backward ? rule.backward(shapes, forward) : forward) + bias;
}

double bytesOf(const TensorType &type)
{
    return countOf(type.shape) * static_cast<double>(sizeOf(type.dataType));
}

} // namespace

WorkShapes::WorkShapes(
    const Operator &op, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs)
    : m_op(op)
    , m_inputs(inputs)
    , m_outputs(outputs)
    , m_backward(op.direction == Direction::Backward)
{
    m_inCount = m_backward ? op.outputs.size() : op.inputs.size();
    m_outCount =
        m_backward ? (op.inputs.size() - std::min(op.inputs.size(), m_inCount)) / 2 : op.outputs.size();
}

const Shape *WorkShapes::input(std::size_t slot) const
{
    return slot < m_op.inputs.size() && m_op.inputs[slot].valid() ? &m_inputs[slot].shape : nullptr;
}

const Shape *WorkShapes::in(std::size_t slot) const
{
    if (!m_backward)
        return input(slot);
    if (slot < m_inCount && isWanted(slot))
        return &m_outputs[slot].shape;
    return slot < m_inCount ? input(m_outCount + slot) : nullptr;
}

const Shape *WorkShapes::out(std::size_t slot) const
{
    if (!m_backward)
        return slot < m_op.outputs.size() && m_op.outputs[slot].valid() ? &m_outputs[slot].shape : nullptr;
    if (slot >= m_outCount)
        return nullptr;
    const Shape *gradient = input(slot);
    return gradient != nullptr ? gradient : input(m_outCount + m_inCount + slot);
}

double WorkShapes::wantedCount() const
{
    return static_cast<double>(std::count_if(
        m_op.outputs.begin(), m_op.outputs.end(), [](TensorId gradient) { return gradient.valid(); }));
}

double WorkShapes::inElements(std::size_t slot) const
{
    const Shape *shape = in(slot);
    return shape == nullptr ? 0 : countOf(*shape);
}

double WorkShapes::outElements(std::size_t slot) const
{
    const Shape *shape = out(slot);
    return shape == nullptr ? 0 : countOf(*shape);
}

double countOf(const Shape &shape)
{
    double product = 1;
    for (const std::int64_t extent : shape)
        product *= static_cast<double>(extent);
    return product;
}

double lastExtent(const Shape *shape, std::size_t fromEnd)
{
    return shape == nullptr || shape->size() <= fromEnd
        ? 0
        : static_cast<double>((*shape)[shape->size() - 1 - fromEnd]);
}

double summedByWeight(const Shape *weight, bool transposed)
{
    return weight == nullptr ? 0 : static_cast<double>(transposed ? weight->back() : weight->front());
}

double firstOutput(const WorkShapes &shapes)
{
    return shapes.outElements(0);
}

double firstInput(const WorkShapes &shapes)
{
    return shapes.inElements(0);
}

double onePerOutput(const WorkShapes &shapes, double /*forward*/)
{
    return shapes.outElements(0);
}

double onePerFactor(const WorkShapes &shapes, double forward)
{
    return forward * ((shapes.isWanted(0) ? 1 : 0) + (shapes.isWanted(1) ? 1 : 0));
}

Work workOf(const Operator &op, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs,
    AttentionMode attention)
{
    using enum OperatorKind;
    Work work;
    work.flops =
        op.kind == Custom ? customFlops(op, inputs, outputs) : flopsOf(WorkShapes(op, inputs, outputs));
    // Only the rows that are named are read.
    const bool rows = op.direction != Direction::Backward
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
    const WorkShapes shapes(op, inputs, outputs);
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
            product.n = b != nullptr ? countOf(*b) / product.k : countOf(*y) * product.k / countOf(*a);
    } else {
        product.k = a != nullptr ? lastExtent(a, 0) : lastExtent(b, b->size() < 2 ? 0 : 1);
        const bool vector = b != nullptr && b->size() < 2;
        product.n = vector ? 1 : lastExtent(y, 0);
    }
    // One weight for all leading dimensions: their rows are one matrix.
    const bool shared = op.kind == Linear || (b != nullptr && b->size() <= 2);
    const double rows = product.n > 0 ? countOf(*y) / product.n : 0;
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
    return op.direction != Direction::Optimizer && entryOf(op.kind).marks.isView;
}

} // namespace planloom
