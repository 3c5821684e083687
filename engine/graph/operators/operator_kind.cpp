#include "engine/graph/operators/operator_kind.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace planloom {

namespace {

/// In the order of the enumeration.
constexpr std::array kKindNames{"Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos",
    "Cosh", "Erf", "Exp", "Floor", "Identity", "IsInf", "IsNaN", "Log", "Neg", "Not", "Reciprocal", "Relu",
    "Round", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Tan", "Tanh", "Mish",
    "HardSwish", "Silu", "Gelu", "Elu", "Celu", "LeakyRelu", "ThresholdedRelu", "Selu", "HardSigmoid", "Clip",
    "Cast", "Dropout",
    // Broadcasting
    "Add", "Sub", "Mul", "Div", "Pow", "Mod", "Min", "Max", "And", "Or", "Xor", "Equal", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "PRelu",
    "Where",
    // Products
    "MatMul", "Linear", "Einsum", "Conv", "ConvTranspose",
    // Pooling
    "MaxPool", "AveragePool", "LpPool",
    // Normalisation
    "BatchMean", "BatchVariance", "BatchNormalize", "InstanceNorm", "LayerNorm", "RmsNorm",
    "LocalResponseNorm", "Softmax", "LogSoftmax", "LpNormalize",
    // Losses
    "CrossEntropy", "NegativeLogLikelihood", "ClassStatistics", "ClassLoss", "CountValid",
    // Reductions
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum",
    "ReduceLogSumExp", "ReduceSumSquare", "ArgMax", "ArgMin",
    // Moving elements
    "Reshape", "Transpose", "Expand", "Tile", "Concat", "Split", "Slice", "Pad", "Gather", "Embedding",
    "GatherElements", "GatherND", "ScatterElements", "ScatterND", "OneHot", "TopK", "NonZero", "CumSum",
    "Trilu", "Resize", "GridSample", "DepthToSpace", "SpaceToDepth", "ReverseSequence", "EyeLike", "Range",
    "Fill",
    // Composites
    "Rotary", "Attention", "Lstm", "Gru", "Rnn",
    // Optimizer steps
    "SgdStep", "AdamWStep", "SquareSum", "ClipFactor", "Custom", "Unknown"};
static_assert(kKindNames.size() == kOperatorKindCount);

using KindIndex = std::pair<std::string_view, OperatorKind>;

/// The names in alphabetical order, for binary search.
std::array<KindIndex, kOperatorKindCount> sortedNames()
{
    std::array<KindIndex, kOperatorKindCount> sorted;
    for (std::size_t i = 0; i < sorted.size(); ++i)
        sorted[i] = {kKindNames[i], static_cast<OperatorKind>(i)};
    std::sort(sorted.begin(), sorted.end());
    return sorted;
}

bool within(OperatorKind kind, OperatorKind first, OperatorKind last)
{
    return kind >= first && kind <= last;
}

} // namespace

const char *nameOf(OperatorKind kind)
{
    return kKindNames[static_cast<std::size_t>(kind)];
}

std::optional<OperatorKind> operatorKindNamed(std::string_view name)
{
    static const auto sorted = sortedNames();
    const auto found = std::lower_bound(sorted.begin(), sorted.end(), name,
        [](const KindIndex &entry, std::string_view wanted) { return entry.first < wanted; });
    if (found == sorted.end() || found->first != name)
        return std::nullopt;
    return found->second;
}

OperatorCategory categoryOf(OperatorKind kind)
{
    using enum OperatorKind;
    switch (kind) {
    case Relu:
    case Sigmoid:
    case Softplus:
    case Softsign:
    case Tanh:
    case Mish:
    case HardSwish:
    case Silu:
    case Gelu:
    case Elu:
    case Celu:
    case LeakyRelu:
    case ThresholdedRelu:
    case Selu:
    case HardSigmoid:
    case PRelu:
        return OperatorCategory::Activation;
    case MatMul:
    case Linear:
    case Einsum:
    case Conv:
    case ConvTranspose:
        return OperatorCategory::Product;
    case MaxPool:
    case AveragePool:
    case LpPool:
    case TopK:
    case CumSum:
        return OperatorCategory::Reduction;
    case Rotary:
        return OperatorCategory::Elementwise;
    case Attention:
        return OperatorCategory::Attention;
    case Custom:
    case Unknown:
        return OperatorCategory::Other;
    default:
        break;
    }
    if (isElementwise(kind))
        return OperatorCategory::Elementwise;
    if (within(kind, BatchMean, LpNormalize))
        return OperatorCategory::Normalization;
    if (within(kind, CrossEntropy, CountValid))
        return OperatorCategory::Loss;
    if (within(kind, ReduceSum, ArgMin))
        return OperatorCategory::Reduction;
    if (within(kind, Reshape, Fill))
        return OperatorCategory::Movement;
    if (within(kind, Lstm, Rnn))
        return OperatorCategory::Recurrent;
    return OperatorCategory::Optimizer;
}

bool isElementwise(OperatorKind kind)
{
    return kind <= OperatorKind::Where;
}

} // namespace planloom
