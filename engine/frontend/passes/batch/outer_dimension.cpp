#include "engine/frontend/passes/batch/outer_dimension.h"

#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

bool isReduction(OperatorKind kind)
{
    return kind >= OperatorKind::ReduceSum && kind <= OperatorKind::ReduceSumSquare;
}

/// True for inputs that are broadcast against the operator's output, counted from the last dimension.
bool isBroadcast(OperatorKind kind, std::size_t slot)
{
    using enum OperatorKind;
    return isElementwise(kind) || kind == MatMul || kind == Expand || (kind == Attention && slot >= 3)
        || (kind == Rotary && slot >= 1);
}

/// Dimensions at the end that the operator's meaning depends on: rows and columns, heads, places.
std::int32_t ownDimensions(OperatorKind kind)
{
    using enum OperatorKind;
    return kind == Attention ? 3 : kind == Trilu || kind == Rotary ? 2 : kind == Linear ? 1 : 0;
}

std::int32_t rankOf(const TensorType &type)
{
    return static_cast<std::int32_t>(type.shape.size());
}

/// Counts `axis` from one further on behind dimension `d`. @return false for `d` itself
bool moveAxis(std::int64_t &axis, std::int32_t d)
{
    if (axis == d)
        return false;
    axis += axis > d ? 1 : 0;
    return true;
}

/// Axes, of which the cut one becomes two.
/// @param mayHold  false: nothing, if it is among them
std::optional<std::vector<std::int64_t>> movedAxes(
    const std::vector<std::int64_t> &axes, std::int32_t d, bool mayHold)
{
    std::vector<std::int64_t> moved;
    for (std::int64_t axis : axes) {
        if (axis == d) {
            if (!mayHold)
                return std::nullopt;
            moved.push_back(d);
            moved.push_back(d + 1);
        } else {
            moveAxis(axis, d);
            moved.push_back(axis);
        }
    }
    return moved;
}

/// Puts `value` at place `d` of each of the `lists` lists of one number a dimension that stand one behind
/// another.
void insertInto(Attributes &attributes, const char *name, std::int32_t d, std::int64_t value, int lists)
{
    std::vector<std::int64_t> numbers = attributes.integers(name);
    if (numbers.empty())
        return;
    const auto length = static_cast<std::ptrdiff_t>(numbers.size()) / lists;
    for (int list = lists; list-- > 0;)
        numbers.insert(numbers.begin() + list * length + d, value);
    attributes.set(name, std::move(numbers));
}

/// @param d  the dimension that `axis` and its like count: of the input they are about, or of the output
std::optional<Attributes> movedAttributes(const Operator &op, std::int32_t d)
{
    using enum OperatorKind;
    Attributes attributes = op.attributes;
    if (attributes.has("groups") || attributes.has("grouped"))
        return std::nullopt;
    if (d < 0)
        return attributes;
    if (attributes.has("axis")) {
        std::int64_t axis = attributes.integer("axis");
        if (!moveAxis(axis, d))
            return std::nullopt;
        attributes.set("axis", axis);
    }
    if (attributes.has("axes")) {
        // What is reduced to a dimension of 1 would be reduced to two.
        auto axes = movedAxes(
            attributes.integers("axes"), d, isReduction(op.kind) && attributes.integer("keepdims", 1) == 0);
        if (!axes)
            return std::nullopt;
        attributes.set("axes", *std::move(axes));
    }
    if (op.kind == Transpose)
        attributes.set("permutation", *movedAxes(attributes.integers("permutation"), d, true));
    if (op.kind == Slice) {
        insertInto(attributes, "starts", d, 0, 1);
        insertInto(attributes, "steps", d, 1, 1);
    }
    if (op.kind == Pad)
        insertInto(attributes, "pads", d, 0, 2);
    return attributes;
}

/// The dimension that an operator's attributes count from: that of input 0, or of the output where input 0
/// has none.
std::int32_t countedDimension(const Operator &op, const std::vector<std::int32_t> &inputDimensions,
    const std::vector<std::int32_t> &outputDimensions)
{
    using enum OperatorKind;
    if (op.kind == Gather || op.kind == Embedding) // `axis` is one of the table
        return inputDimensions[0];
    return op.kind == OneHot ? outputDimensions[0] : inputDimensions[0];
}

TensorType cut(TensorType type, std::int32_t d, std::int64_t before)
{
    type.shape[static_cast<std::size_t>(d)] /= before;
    type.shape.insert(type.shape.begin() + d, before);
    return type;
}

/// An input that does not have the dimension itself: one of 1 more where the output has it, counted from the
/// end.
bool alignBroadcast(TensorType &type, std::int32_t fromEnd)
{
    const std::int32_t d = rankOf(type) - fromEnd;
    if (d < 0)
        return true;
    if (type.shape[static_cast<std::size_t>(d)] != 1)
        return false;
    if (d > 0)
        type.shape.insert(type.shape.begin() + d, 1);
    return true;
}

} // namespace

bool hasRoomForDimension(OperatorKind kind)
{
    using enum OperatorKind;
    switch (kind) {
    case MatMul:
    case Linear:
    case Embedding:
    case LayerNorm:
    case RmsNorm:
    case Softmax:
    case LogSoftmax:
    case LpNormalize:
    case Transpose:
    case Expand:
    case Concat:
    case Split:
    case Slice:
    case Pad:
    case Gather:
    case GatherElements:
    case ScatterElements:
    case OneHot:
    case TopK:
    case CumSum:
    case ArgMax:
    case ArgMin:
    case Rotary:
    case Attention:
        return true;
    default:
        return isElementwise(kind) || isReduction(kind);
    }
}

bool mayReorder(OperatorKind kind)
{
    using enum OperatorKind;
    switch (kind) {
    case CrossEntropy:
    case NegativeLogLikelihood:
    case ClassStatistics:
    case ClassLoss:
    case CountValid:
    case Conv:
    case ConvTranspose:
    case MaxPool:
    case AveragePool:
    case LpPool:
    case BatchMean:
    case BatchVariance:
    case BatchNormalize:
    case InstanceNorm:
    case LocalResponseNorm:
    case GridSample:
    case Resize:
    case DepthToSpace:
    case SpaceToDepth:
        return true;
    case Attention:
    case Rotary:
        return false; // places in a sequence
    default:
        return hasRoomForDimension(kind);
    }
}

std::optional<OuterDimension> withOuterDimension(const Operator &op,
    const std::vector<std::int32_t> &inputDimensions, const std::vector<std::int32_t> &outputDimensions,
    std::int64_t before, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs)
{
    if (!hasRoomForDimension(op.kind) || outputs.empty())
        return std::nullopt;
    for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
        const std::int32_t d = inputDimensions[slot];
        if (d >= 0 && d >= rankOf(inputs[slot]) - ownDimensions(op.kind))
            return std::nullopt;
    }
    const std::int32_t fromEnd = outputDimensions[0] < 0 ? 0 : rankOf(outputs[0]) - outputDimensions[0];
    // Rows of a product stay together where the other factor comes in several matrices.
    if (op.kind == OperatorKind::MatMul
        && (fromEnd < 2 || inputDimensions[0] < 0 || (fromEnd == 2 && rankOf(inputs[1]) > 2)))
        return std::nullopt;
    auto attributes = movedAttributes(op, countedDimension(op, inputDimensions, outputDimensions));
    if (!attributes)
        return std::nullopt;
    OuterDimension result{*std::move(attributes), inputs, outputs};
    std::vector<bool> present;
    for (std::size_t slot = 0; slot < inputs.size(); ++slot) {
        present.push_back(op.inputs[slot].valid());
        if (inputDimensions[slot] >= 0)
            result.inputs[slot] = cut(inputs[slot], inputDimensions[slot], before);
        else if (op.inputs[slot] && fromEnd > 0 && isBroadcast(op.kind, slot)
            && !(op.kind == OperatorKind::MatMul && fromEnd == 2)
            && !alignBroadcast(result.inputs[slot], fromEnd))
            return std::nullopt;
    }
    for (std::size_t slot = 0; slot < outputs.size(); ++slot)
        if (outputDimensions[slot] >= 0)
            result.outputs[slot] = cut(outputs[slot], outputDimensions[slot], before);
    const auto inferred = inferTypes(op.kind, result.attributes, result.inputs, present, result.outputs);
    if (!inferred || inferred->size() < outputs.size())
        return std::nullopt;
    for (std::size_t slot = 0; slot < outputs.size(); ++slot)
        if (op.outputs[slot] && (*inferred)[slot] != result.outputs[slot])
            return std::nullopt;
    return result;
}

} // namespace planloom
