#include "engine/graph/operator_files/custom_operator.h"
#include "engine/graph/operators/catalogue.h"

#include <cstdint>
#include <vector>

namespace planloom {

namespace {

/// What the gradient of one input is made from, besides the gradients of the outputs: forward inputs and
/// outputs by slot.
struct Need {
    std::vector<int> inputs{};
    std::vector<int> outputs{};
};

bool isFloatingSlot(const Graph &graph, const std::vector<TensorId> &slots, std::size_t slot)
{
    return slot < slots.size() && slots[slot].valid() && isFloating(graph.at(slots[slot]).type.dataType);
}

/// True if the outputs depend continuously on input `slot`, given that it is floating.
bool isContinuous(const Operator &op, std::size_t slot)
{
    using enum OperatorKind;
    switch (op.kind) {
    case Ceil:
    case Floor:
    case IsInf:
    case IsNaN:
    case Not:
    case Round:
    case Sign:
    case And:
    case Or:
    case Xor:
    case Equal:
    case Greater:
    case GreaterOrEqual:
    case Less:
    case LessOrEqual:
    case BitShift:
    case BitwiseAnd:
    case BitwiseOr:
    case BitwiseXor:
    case CountValid:
    case ArgMax:
    case ArgMin:
    case OneHot:
    case NonZero:
    case EyeLike:
    case Range:
    case Fill:
    case SgdStep:
    case AdamWStep:
    case SquareSum:
    case ClipFactor:
    case Custom: // see customGradientRule
    case Unknown:
        return false;
    case Identity:
        return op.attributes.integer("detached") == 0;
    case Where:
        return slot != 0;
    case CrossEntropy:
    case NegativeLogLikelihood:
    case ClassStatistics:
    case Gather:
    case Embedding:
    case GatherElements:
    case GatherND:
    case ReverseSequence:
        return slot == 0; // labels, class weights, indices and lengths are constants
    case ClassLoss:
        return slot < 2;
    case Lstm:
    case Gru:
    case Rnn:
        return slot != 4; // lengths of sequences
    case ScatterElements:
    case ScatterND:
        return slot != 1;
    default:
        return true;
    }
}

/// For the gradient of input `slot`; only asked where `isContinuous`.
Need needOf(const Operator &op, int slot)
{
    using enum OperatorKind;
    switch (op.kind) {
    // From the output alone.
    case Exp:
    case Reciprocal:
    case Relu:
    case Sigmoid:
    case Sqrt:
    case Tan:
    case Tanh:
    case Softmax:
    case LogSoftmax:
    case ReduceLogSum:
        return {{}, {0}};

    // From neither: shapes come with the gradients' own buffers.
    case Identity:
    case Neg:
    case Cast:
    case Dropout:
    case Add:
    case Sub:
    case AveragePool:
    case BatchMean:
    case ReduceSum:
    case ReduceMean:
    case Reshape:
    case Transpose:
    case Expand:
    case Tile:
    case Concat:
    case Split:
    case Slice:
    case Pad:
    case CumSum:
    case Trilu:
    case Resize:
    case DepthToSpace:
    case SpaceToDepth:
        return {};

    case Mul:
    case MatMul:
        return {{1 - slot}, {}};
    case Div:
        return slot == 0 ? Need{{1}, {}} : Need{{0, 1}, {}};
    case Mod:
        return slot == 0 ? Need{} : Need{{0, 1}, {}};
    case Pow:
    case Min:
    case Max:
    case PRelu:
        return {{0, 1}, {}};
    case Where:
        return {{0}, {}};

    case Linear:
    case Conv:
    case ConvTranspose:
        return slot == 2 ? Need{} : Need{{1 - slot}, {}};
    case Einsum: {
        Need need;
        for (int other = 0; other < static_cast<int>(op.inputs.size()); ++other) {
            if (other != slot)
                need.inputs.push_back(other);
        }
        return need;
    }

    case MaxPool:
    case LpPool:
    case ReduceMax:
    case ReduceMin:
    case ReduceProd:
    case ReduceL2:
    case ReduceLogSumExp:
        return {{0}, {0}};

    case BatchVariance:
        return {{0, 1}, {}};
    case BatchNormalize: // (x, mean, variance, scale, bias)
        switch (slot) {
        case 0:
        case 1:
            return {{2, 3}, {}};
        case 2:
            return {{0, 1, 2, 3}, {}};
        case 3:
            return {{0, 1, 2}, {}};
        default:
            return {};
        }
    case InstanceNorm:
    case LayerNorm:
    case RmsNorm:
        switch (slot) {
        case 0:
            return {{0, 1}, {}};
        case 1:
            return {{0}, {}};
        default:
            return {};
        }

    case CrossEntropy:
        return {{0, 1, 2}, {}};
    case NegativeLogLikelihood:
        return {{1, 2}, {}};
    case ClassStatistics:
        return {{0, 1}, {0}};
    case ClassLoss:
        return {{2, 3}, {}};

    case Gather:
    case Embedding:
    case GatherElements:
    case GatherND:
    case ReverseSequence:
        return {{1}, {}};
    case ScatterElements:
    case ScatterND: {
        const std::string reduction = op.attributes.text("reduction", "none");
        if (reduction == "mul" || reduction == "max" || reduction == "min")
            return {{0, 1, 2}, {}};
        // An added update leaves the gradient of what it is added to as it is.
        return slot == 0 && reduction == "add" ? Need{} : Need{{1}, {}};
    }
    case TopK:
        return {{}, {1}};
    case Attention: { // that of the values asks neither for them nor for y
        Need need{{0, 1}, {1, 2}};
        for (int mask = 3; mask < static_cast<int>(op.inputs.size()); ++mask)
            need.inputs.push_back(mask);
        if (slot != 2) {
            need.inputs.push_back(2);
            need.outputs.push_back(0);
        }
        return need;
    }
    case GridSample: // (x, grid)
        return slot == 0 ? Need{{1}, {}} : Need{{0, 1}, {}};
    case Lstm:
    case Gru:
    case Rnn: // every sequence is run again
        return {{0, 1, 2, 3, 4, 5, 6, 7}, {}};
    case Rotary: // (x, cos, sin)
        return slot == 0 ? Need{{1, 2}, {}} : Need{{0}, {}};

    default: // element by element, from the input
        return {{0}, {}};
    }
}

} // namespace

GradientRule gradientRule(const Graph &graph, const Operator &forward, const std::vector<bool> &wanted)
{
    if (forward.kind == OperatorKind::Custom)
        return customGradientRule(graph, forward, wanted);
    GradientRule rule;
    rule.gradientOf.resize(forward.inputs.size(), false);
    rule.needsInput.resize(forward.inputs.size(), false);
    rule.needsOutput.resize(forward.outputs.size(), false);
    if (!isFloatingSlot(graph, forward.outputs, 0))
        return rule;
    for (std::size_t slot = 0; slot < forward.inputs.size(); ++slot) {
        if (!isFloatingSlot(graph, forward.inputs, slot) || !isContinuous(forward, slot))
            continue;
        rule.gradientOf[slot] = true;
        rule.differentiable = true;
        if (slot < wanted.size() && !wanted[slot])
            continue;
        const Need need = needOf(forward, static_cast<int>(slot));
        for (const int input : need.inputs) {
            const auto index = static_cast<std::size_t>(input);
            if (index < rule.needsInput.size() && forward.inputs[index].valid())
                rule.needsInput[index] = true;
        }
        for (const int output : need.outputs) {
            const auto index = static_cast<std::size_t>(output);
            if (index < rule.needsOutput.size() && forward.outputs[index].valid())
                rule.needsOutput[index] = true;
        }
    }
    return rule;
}

GradientRule gradientRule(const Graph &graph, const Operator &forward)
{
    return gradientRule(graph, forward, {});
}

} // namespace planloom
