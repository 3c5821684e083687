#include "engine/interop/autodist_operators.h"

#include "engine/base/text.h"
#include "engine/graph/annotation/annotation.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/interop/autodist_yaml.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace planloom {

namespace {

/// What PyTorch calls kinds whose names differ from ours by more than letters.
constexpr std::array kTorchNames{std::pair{OperatorKind::Linear, "torch.nn.functional.linear"},
    std::pair{OperatorKind::MatMul, "torch.matmul"}, std::pair{OperatorKind::MatMul, "torch.bmm"},
    std::pair{OperatorKind::Embedding, "torch.nn.functional.embedding"},
    std::pair{OperatorKind::LayerNorm, "torch.nn.functional.layer_norm"},
    std::pair{OperatorKind::RmsNorm, "torch.nn.functional.rms_norm"},
    std::pair{OperatorKind::Softmax, "torch.nn.functional.softmax"},
    std::pair{OperatorKind::Softmax, "torch.softmax"},
    std::pair{OperatorKind::Gelu, "torch.nn.functional.gelu"},
    std::pair{OperatorKind::Relu, "torch.nn.functional.relu"},
    std::pair{OperatorKind::Silu, "torch.nn.functional.silu"},
    std::pair{OperatorKind::Dropout, "torch.nn.functional.dropout"},
    std::pair{OperatorKind::Conv, "torch.conv2d"},
    std::pair{OperatorKind::Conv, "torch.nn.functional.conv2d"},
    std::pair{OperatorKind::Conv, "torch.conv1d"}, std::pair{OperatorKind::Conv, "torch.conv3d"},
    std::pair{OperatorKind::Attention, "torch.nn.functional.scaled_dot_product_attention"},
    std::pair{OperatorKind::Reshape, "torch.Tensor.view"}, std::pair{OperatorKind::Reshape, "torch.reshape"},
    std::pair{OperatorKind::Transpose, "torch.transpose"},
    std::pair{OperatorKind::Transpose, "torch.permute"}, std::pair{OperatorKind::Concat, "torch.cat"},
    std::pair{OperatorKind::ReduceSum, "torch.sum"}, std::pair{OperatorKind::ReduceMean, "torch.mean"}};

/// What kinds are made of that fusing puts in place of several operators of PyTorch, by bare names.
struct Inside {
    OperatorKind kind;
    std::string_view names; ///< Each between spaces.
};
constexpr std::array kInside{
    Inside{OperatorKind::Attention, " softmax matmul bmm baddbmm dropout mul div add maskedfill where "},
    Inside{OperatorKind::LayerNorm, " mean var varmean pow sub div sqrt rsqrt mul add "},
    Inside{OperatorKind::RmsNorm, " mean pow rsqrt sqrt div mul add "},
    Inside{OperatorKind::Gelu, " erf tanh pow mul add "}, Inside{OperatorKind::Silu, " sigmoid mul "},
    Inside{OperatorKind::Rotary, " mul add cat neg "}, Inside{OperatorKind::Linear, " matmul "},
    Inside{OperatorKind::CrossEntropy, " logsoftmax nllloss "}};

/// "layernorm" of "torch.nn.functional.layer_norm" and of "LayerNorm".
std::string bareName(std::string_view name)
{
    if (const std::size_t dot = name.rfind('.'); dot != std::string_view::npos)
        name.remove_prefix(dot + 1);
    std::string bare;
    for (const char c : name)
        if (c != '_')
            bare += lowerCase(c);
    return bare;
}

/// A position in the tensors of an operator itself, outputs behind inputs.
std::optional<DimensionRef> ownPosition(const Operator &op, std::int32_t input, std::int32_t dimension)
{
    DimensionRef ref{.kind = DimensionRef::Kind::Input, .name = {}};
    const auto inputs = static_cast<std::int32_t>(op.inputs.size());
    if (input >= inputs) {
        ref.kind = DimensionRef::Kind::Output;
        input -= inputs;
    }
    const auto &tensors =
        ref.kind == DimensionRef::Kind::Input ? op.annotation.inputs : op.annotation.outputs;
    if (static_cast<std::size_t>(input) >= tensors.size()
        || static_cast<std::size_t>(dimension) >= tensors[static_cast<std::size_t>(input)].terms.size())
        return std::nullopt;
    ref.slot = input;
    ref.dimension = dimension;
    return ref;
}

/// A position in what lies inside an attention: scores, or the operands of its two products, which have
/// batch and heads in common.
std::optional<DimensionRef> positionInAttention(
    const Operator &op, const std::string &bare, std::int32_t input, std::int32_t dimension)
{
    const auto rank = static_cast<std::int32_t>(op.annotation.inputs[0].terms.size());
    const bool isProduct = bare == "matmul" || bare == "bmm" || bare == "baddbmm";
    if (dimension < rank - (isProduct && input == 1 ? 2 : 1))
        return ownPosition(op, static_cast<std::int32_t>(op.inputs.size()), dimension); // of y
    return isProduct ? std::nullopt : ownPosition(op, 1, rank - 2); // the keys
}

} // namespace

bool isCalled(OperatorKind kind, const std::string &name)
{
    bool listed = false;
    for (const auto &[each, torch] : kTorchNames) {
        if (name == torch)
            return each == kind
                || std::any_of(kTorchNames.begin(), kTorchNames.end(),
                    [&](const auto &other) { return other.first == kind && name == other.second; });
        listed = listed || each == kind;
    }
    return bareName(nameOf(kind)) == bareName(name);
}

bool isInside(OperatorKind kind, const std::string &name)
{
    const std::string word = " " + bareName(name) + " ";
    return std::any_of(kInside.begin(), kInside.end(), [&](const Inside &inside) {
        return inside.kind == kind && inside.names.find(word) != std::string_view::npos;
    });
}

std::optional<DimensionRef> positionIn(
    const Operator &op, const std::string &name, std::pair<std::int32_t, std::int32_t> position)
{
    const auto [input, dimension] = position;
    const std::string bare = bareName(name);
    if (op.kind == OperatorKind::Linear) {
        // PyTorch's linear weights are [n k] and its matmul's [k n]; ours may be either.
        const bool isTurned = (op.attributes.integer("transposed") == 0) == isCalled(op.kind, name);
        if (input != 1 || dimension < 0 || dimension > 1)
            return ownPosition(op, input, dimension);
        // A projection in parts has [p n k] or [k p n], which PyTorch sees as [p*n k].
        const auto rank = static_cast<std::int32_t>(op.annotation.inputs[1].terms.size());
        return ownPosition(op, input, isTurned ? (rank - 1) * (1 - dimension) : rank - 2 + dimension);
    }
    if (isCalled(op.kind, name))
        return ownPosition(op, input, dimension);
    if (op.kind == OperatorKind::Attention)
        return positionInAttention(op, bare, input, dimension);
    return ownPosition(op, 0, dimension);
}

std::string torchNameOf(OperatorKind kind)
{
    for (const auto &[each, name] : kTorchNames)
        if (each == kind)
            return name;
    std::string snake;
    for (const char c : std::string_view(nameOf(kind))) {
        if (c >= 'A' && c <= 'Z' && !snake.empty())
            snake += '_';
        snake += lowerCase(c);
    }
    return "torch." + snake;
}

} // namespace planloom
