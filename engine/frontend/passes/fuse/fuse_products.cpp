// Products: a matrix product with a parameter is a Linear, whatever reshapes, transposes and bias stand
// around it.
#include "engine/frontend/passes/fuse/fuse_editor.h"

#include <algorithm>
#include <cstddef>

namespace planloom {

namespace {

Operator linear(TensorId x, TensorId weight, TensorId bias, bool transposed, TensorId output)
{
    Operator fused;
    fused.kind = OperatorKind::Linear;
    fused.attributes.set("transposed", std::int64_t{transposed ? 1 : 0});
    fused.inputs = {x, weight};
    if (bias)
        fused.inputs.push_back(bias);
    fused.outputs = {output};
    return fused;
}

/// MatMul(x, w) and MatMul(x, Transpose(w)) with a parameter w [k n], or [n k].
void fuseMatMul(FuseEditor &editor, const Operator &op)
{
    const TensorId x = op.inputs[0];
    const TensorId right = op.inputs[1];
    if (editor.shape(x).size() < 2)
        return;
    if (editor.isParameter(right)) {
        if (editor.shape(right).size() != 2)
            return;
        editor.replace({&op}, linear(x, right, {}, false, op.outputs[0]));
        return;
    }
    const Operator *turn = editor.madeBy(right, OperatorKind::Transpose);
    if (turn == nullptr || !editor.isParameter(turn->inputs[0]) || editor.shape(turn->inputs[0]).size() != 2
        || turn->attributes.integers("permutation") != std::vector<std::int64_t>{1, 0})
        return;
    Operator fused = linear(x, turn->inputs[0], {}, true, op.outputs[0]);
    // A transpose with further users stays for them.
    if (editor.onlyUser(right) == &op)
        editor.replace({turn, &op}, std::move(fused));
    else
        editor.replace({&op}, std::move(fused));
}

/// Add(Linear(x, w), bias [n]), in either order of operands.
void fuseBias(FuseEditor &editor, const Operator &op)
{
    for (const std::size_t slot : {0U, 1U}) {
        const TensorId product = op.inputs[slot];
        const TensorId bias = op.inputs[1 - slot];
        const Operator *made = editor.madeBy(product, OperatorKind::Linear);
        if (made == nullptr || (made->inputs.size() > 2 && made->inputs[2]) || editor.onlyUser(product) != &op
            || !editor.isParameter(bias) || editor.shape(bias) != Shape{editor.shape(product).back()})
            continue;
        const bool transposed = made->attributes.integer("transposed") == 1;
        editor.replace(
            {made, &op}, linear(made->inputs[0], made->inputs[1], bias, transposed, op.outputs[0]));
        return;
    }
}

/// Reshape(Linear(Reshape(x))) where the reshapes only join and part the outer dimensions.
void fuseReshapes(FuseEditor &editor, const Operator &after)
{
    const Operator *product = editor.madeBy(after.inputs[0], OperatorKind::Linear);
    if (product == nullptr || editor.onlyUser(after.inputs[0]) != &after)
        return;
    const Operator *before = editor.madeBy(product->inputs[0], OperatorKind::Reshape);
    if (before == nullptr)
        return;
    const Shape &in = editor.shape(before->inputs[0]);
    const Shape &out = editor.shape(after.outputs[0]);
    const Shape &inner = editor.shape(product->inputs[0]);
    if (in.empty() || in.size() != out.size() || inner.empty() || in.back() != inner.back()
        || out.back() != editor.shape(product->outputs[0]).back()
        || !std::equal(in.begin(), in.end() - 1, out.begin()))
        return;
    Operator fused = *product;
    fused.sources.clear();
    fused.inputs[0] = before->inputs[0];
    fused.outputs = {after.outputs[0]};
    if (editor.onlyUser(product->inputs[0]) == product)
        editor.replace({before, product, &after}, std::move(fused));
    else // the reshaped x has further users
        editor.replace({product, &after}, std::move(fused));
}

/// True unless the values are known and one is negative, which a Gather would count from the end.
bool mayIndexTable(const Tensor &indices)
{
    if (indices.type.dataType != DataType::Int64 && indices.type.dataType != DataType::Int32)
        return false;
    if (!indices.data)
        return true;
    const std::vector<std::byte> &bytes = indices.data->bytes;
    const auto width = static_cast<std::size_t>(sizeOf(indices.type.dataType));
    for (std::size_t end = width; end <= bytes.size(); end += width) {
        // Little-endian: the last byte holds the sign.
        if ((bytes[end - 1] & std::byte{0x80}) != std::byte{0})
            return false;
    }
    return true;
}

/// Gather of rows of a trained table.
void fuseEmbedding(FuseEditor &editor, const Operator &op)
{
    const Tensor &table = editor.tensor(op.inputs[0]);
    if (table.role != TensorRole::Weight || table.type.shape.size() != 2 || op.attributes.integer("axis") != 0
        || !mayIndexTable(editor.tensor(op.inputs[1])))
        return;
    Operator fused;
    fused.kind = OperatorKind::Embedding;
    fused.inputs = op.inputs;
    fused.outputs = op.outputs;
    editor.replace({&op}, std::move(fused));
}

} // namespace

void fuseProducts(FuseEditor &editor)
{
    // Operators are in topological order, so that each finds its product fused already.
    for (std::size_t i = 0; i < editor.operatorCount(); ++i) {
        if (!editor.isAlive(i))
            continue;
        switch (editor.op(i).kind) {
        case OperatorKind::MatMul:
            fuseMatMul(editor, editor.op(i));
            break;
        case OperatorKind::Add:
            fuseBias(editor, editor.op(i));
            break;
        case OperatorKind::Reshape:
            fuseReshapes(editor, editor.op(i));
            break;
        case OperatorKind::Gather:
            fuseEmbedding(editor, editor.op(i));
            break;
        default:
            break;
        }
    }
}

} // namespace planloom
