// Patterns of activations (Gelu, Silu, Rotary), and operators that do nothing.
#include "engine/frontend/passes/fuse/fuse_editor.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

using Members = std::vector<const Operator *>;

/// The other operand of a product or sum that reads `id`.
TensorId otherOperand(const Operator &op, TensorId id)
{
    return op.inputs[0] == id ? op.inputs[1] : op.inputs[0];
}

/// If `id` is made by Mul or Div by a constant: the constant factor and the other operand.
struct Scaled {
    const Operator *op = nullptr;
    TensorId of{};
    double factor = 1;
};
std::optional<Scaled> scaledBy(const FuseEditor &editor, TensorId id)
{
    if (const Operator *product = editor.madeBy(id, OperatorKind::Mul)) {
        for (const std::size_t slot : {0U, 1U}) {
            if (const auto factor = editor.constant(product->inputs[slot]))
                return Scaled{product, product->inputs[1 - slot], *factor};
        }
    }
    if (const Operator *quotient = editor.madeBy(id, OperatorKind::Div)) {
        if (const auto divisor = editor.constant(quotient->inputs[1]); divisor && *divisor != 0)
            return Scaled{quotient, quotient->inputs[0], 1 / *divisor};
    }
    return std::nullopt;
}

bool isNear(double value, double expected)
{
    return std::abs(value - expected) <= 1e-5 * std::abs(expected);
}

/// From y = 1 + erf(..) or 1 + tanh(..) on, collects the products that make 0.5 * x * y, in any order.
/// @return the last product's output, or an invalid id; `members` gets the products
TensorId halfTimes(const FuseEditor &editor, TensorId x, TensorId y, Members &members)
{
    bool half = false;
    bool times = false;
    for (int step = 0; step < 2 && !(half && times); ++step) {
        const Operator *next = editor.onlyUser(y);
        if (next == nullptr)
            return {};
        if (next->kind == OperatorKind::Div) {
            if (half || next->inputs[0] != y || !editor.isConstant(next->inputs[1], 2))
                return {};
            half = true;
        } else if (next->kind == OperatorKind::Mul) {
            const TensorId other = otherOperand(*next, y);
            const auto scaled = scaledBy(editor, other);
            if (!half && editor.isConstant(other, 0.5)) {
                half = true;
            } else if (!times && other == x) {
                times = true;
            } else if (!half && !times && scaled && scaled->of == x && isNear(scaled->factor, 0.5)
                && editor.onlyUser(other) == next) {
                members.push_back(scaled->op);
                half = times = true;
            } else {
                return {};
            }
        } else {
            return {};
        }
        members.push_back(next);
        y = next->outputs[0];
    }
    return half && times ? y : TensorId{};
}

/// The shared end of both forms: `inner` (Erf or Tanh) of something of x, plus 1, times x, halved.
void finishGelu(
    FuseEditor &editor, const Operator &inner, TensorId x, const char *approximate, Members members)
{
    const Operator *plusOne = editor.onlyUser(inner.outputs[0]);
    if (plusOne == nullptr || plusOne->kind != OperatorKind::Add
        || !editor.isConstant(otherOperand(*plusOne, inner.outputs[0]), 1))
        return;
    members.push_back(&inner);
    members.push_back(plusOne);
    const TensorId output = halfTimes(editor, x, plusOne->outputs[0], members);
    if (!output || editor.shape(output) != editor.shape(x))
        return;
    Operator fused;
    fused.kind = OperatorKind::Gelu;
    fused.attributes.set("approximate", std::string(approximate));
    fused.inputs = {x};
    fused.outputs = {output};
    editor.replace(members, std::move(fused));
}

/// 0.5 x (1 + erf(x / sqrt 2))
void fuseGeluErf(FuseEditor &editor, const Operator &erf)
{
    const auto scaled = scaledBy(editor, erf.inputs[0]);
    if (!scaled || !isNear(scaled->factor, std::sqrt(0.5)) || editor.onlyUser(erf.inputs[0]) != &erf)
        return;
    finishGelu(editor, erf, scaled->of, "none", {scaled->op});
}

/// If `id` is x^3: x, and the operators that make it.
TensorId cubeOf(const FuseEditor &editor, TensorId id, Members &members)
{
    if (const Operator *power = editor.madeBy(id, OperatorKind::Pow)) {
        if (!editor.isConstant(power->inputs[1], 3))
            return {};
        members.push_back(power);
        return power->inputs[0];
    }
    const Operator *product = editor.madeBy(id, OperatorKind::Mul);
    if (product == nullptr)
        return {};
    for (const std::size_t slot : {0U, 1U}) {
        const Operator *square = editor.madeBy(product->inputs[slot], OperatorKind::Mul);
        const TensorId x = product->inputs[1 - slot];
        if (square != nullptr && square->inputs[0] == x && square->inputs[1] == x
            && editor.onlyUser(product->inputs[slot]) == product) {
            members.insert(members.end(), {square, product});
            return x;
        }
    }
    return {};
}

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
void fuseGeluTanh(FuseEditor &editor, const Operator &tanh)
{
    const auto scaled = scaledBy(editor, tanh.inputs[0]);
    if (!scaled || !isNear(scaled->factor, std::sqrt(2 / std::acos(-1.0)))
        || editor.onlyUser(tanh.inputs[0]) != &tanh)
        return;
    const Operator *sum = editor.madeBy(scaled->of, OperatorKind::Add);
    if (sum == nullptr || editor.onlyUser(scaled->of) != scaled->op)
        return;
    for (const std::size_t slot : {0U, 1U}) {
        const TensorId x = sum->inputs[slot];
        const auto part = scaledBy(editor, sum->inputs[1 - slot]);
        if (!part || !isNear(part->factor, 0.044715) || editor.onlyUser(sum->inputs[1 - slot]) != sum
            || editor.onlyUser(part->of) != part->op)
            continue;
        Members members{scaled->op, sum, part->op};
        if (cubeOf(editor, part->of, members) == x) {
            finishGelu(editor, tanh, x, "tanh", std::move(members));
            return;
        }
    }
}

/// x sigmoid(x)
void fuseSilu(FuseEditor &editor, const Operator &sigmoid)
{
    const TensorId x = sigmoid.inputs[0];
    const Operator *product = editor.onlyUser(sigmoid.outputs[0]);
    if (product == nullptr || product->kind != OperatorKind::Mul
        || otherOperand(*product, sigmoid.outputs[0]) != x)
        return;
    Operator fused;
    fused.kind = OperatorKind::Silu;
    fused.inputs = {x};
    fused.outputs = product->outputs;
    editor.replace({&sigmoid, product}, std::move(fused));
}

/// True if `slice` takes [begin, end) of the last dimension of x and all of the others.
bool takesLast(
    const FuseEditor &editor, const Operator &slice, TensorId x, std::int64_t begin, std::int64_t end)
{
    const Shape &in = editor.shape(x);
    Shape expected = in;
    expected.back() = end - begin;
    std::vector<std::int64_t> starts(in.size(), 0);
    starts.back() = begin;
    return slice.inputs[0] == x && editor.shape(slice.outputs[0]) == expected
        && slice.attributes.integers("starts") == starts
        && slice.attributes.integers("steps") == std::vector<std::int64_t>(in.size(), 1);
}

/// If `id` is Concat(-x[.., d/2:], x[.., :d/2]) of the last dimension: the operators that make it.
Members halfRotation(const FuseEditor &editor, TensorId id, TensorId x)
{
    const Operator *concat = editor.madeBy(id, OperatorKind::Concat);
    const Shape &in = editor.shape(x);
    if (concat == nullptr || in.empty() || in.back() % 2 != 0 || concat->inputs.size() != 2
        || concat->attributes.integer("axis") != static_cast<std::int64_t>(in.size()) - 1)
        return {};
    const Operator *negative = editor.madeBy(concat->inputs[0], OperatorKind::Neg);
    if (negative == nullptr || editor.onlyUser(concat->inputs[0]) != concat
        || editor.onlyUser(concat->inputs[1]) != concat || editor.onlyUser(negative->inputs[0]) != negative)
        return {};
    const Operator *back = editor.maker(negative->inputs[0]);
    const Operator *front = editor.maker(concat->inputs[1]);
    if (back == nullptr || front == nullptr)
        return {};
    const std::int64_t half = in.back() / 2;
    if (back == front && back->kind == OperatorKind::Split && back->inputs[0] == x
        && back->outputs.size() == 2 && back->outputs[1] == negative->inputs[0]
        && back->attributes.integer("axis") == static_cast<std::int64_t>(in.size()) - 1
        && back->attributes.integers("sizes") == std::vector<std::int64_t>{half, half})
        return {back, negative, concat};
    if (back->kind == OperatorKind::Slice && front->kind == OperatorKind::Slice
        && takesLast(editor, *back, x, half, in.back()) && takesLast(editor, *front, x, 0, half))
        return {front, back, negative, concat};
    return {};
}

/// True if `slice` takes every other element of the last dimension of x, from `first` on, and all of the
/// others.
bool takesEveryOther(const FuseEditor &editor, const Operator &slice, TensorId x, std::int64_t first)
{
    Shape expected = editor.shape(x);
    std::vector<std::int64_t> starts(expected.size(), 0);
    std::vector<std::int64_t> steps(expected.size(), 1);
    expected.back() /= 2;
    starts.back() = first;
    if (expected.back() > 1)
        steps.back() = 2; // of one element there is no step
    return slice.kind == OperatorKind::Slice && slice.inputs[0] == x
        && editor.shape(slice.outputs[0]) == expected && slice.attributes.integers("starts") == starts
        && slice.attributes.integers("steps") == steps;
}

/// If `id` is (-x1 x0 -x3 x2 ..) of the last dimension, stacked as pairs: the operators that make it.
Members pairRotation(const FuseEditor &editor, TensorId id, TensorId x)
{
    const Operator *flat = editor.madeBy(id, OperatorKind::Reshape);
    const Shape &in = editor.shape(x);
    if (flat == nullptr || in.empty() || in.back() % 2 != 0 || editor.shape(id) != in)
        return {};
    Shape pairs = in;
    pairs.back() /= 2;
    pairs.push_back(2);
    const Operator *stack = editor.madeBy(flat->inputs[0], OperatorKind::Concat);
    if (stack == nullptr || editor.onlyUser(flat->inputs[0]) != flat || stack->inputs.size() != 2
        || stack->attributes.integer("axis") != static_cast<std::int64_t>(in.size())
        || editor.shape(flat->inputs[0]) != pairs)
        return {};
    Members members{stack, flat};
    for (const std::size_t slot : {0U, 1U}) {
        const Operator *user = stack;
        TensorId value = stack->inputs[slot];
        // A column, negated in front; then the slice.
        for (const OperatorKind kind : {OperatorKind::Reshape, OperatorKind::Neg, OperatorKind::Slice}) {
            if (slot == 1 && kind == OperatorKind::Neg)
                continue;
            const Operator *made = editor.madeBy(value, kind);
            if (made == nullptr || editor.onlyUser(value) != user)
                return {};
            members.push_back(made);
            user = made;
            value = made->inputs[0];
        }
        if (!takesEveryOther(editor, *user, x, slot == 0 ? 1 : 0))
            return {};
    }
    return members;
}

/// x cos + rotated(x) sin, where cos and sin do not enlarge x.
void fuseRotary(FuseEditor &editor, const Operator &sum)
{
    for (const std::size_t slot : {0U, 1U}) {
        const Operator *straight = editor.madeBy(sum.inputs[slot], OperatorKind::Mul);
        const Operator *rotated = editor.madeBy(sum.inputs[1 - slot], OperatorKind::Mul);
        if (straight == nullptr || rotated == nullptr || editor.onlyUser(sum.inputs[slot]) != &sum
            || editor.onlyUser(sum.inputs[1 - slot]) != &sum)
            continue;
        for (const std::size_t a : {0U, 1U}) {
            for (const std::size_t b : {0U, 1U}) {
                const TensorId x = straight->inputs[a];
                Members members = halfRotation(editor, rotated->inputs[b], x);
                const bool interleaved = members.empty();
                if (interleaved)
                    members = pairRotation(editor, rotated->inputs[b], x);
                if (members.empty() || editor.onlyUser(rotated->inputs[b]) != rotated
                    || editor.shape(sum.outputs[0]) != editor.shape(x))
                    continue;
                members.insert(members.end(), {straight, rotated, &sum});
                Operator fused;
                fused.kind = OperatorKind::Rotary;
                fused.attributes.set("interleaved", std::int64_t{interleaved ? 1 : 0});
                fused.inputs = {x, straight->inputs[1 - a], rotated->inputs[1 - b]};
                fused.outputs = sum.outputs;
                editor.replace(members, std::move(fused));
                return;
            }
        }
    }
}

/// True if the operator's output is its first input.
bool doesNothing(const FuseEditor &editor, const Operator &op)
{
    if (op.inputs.empty() || !op.inputs[0] || op.outputs.size() != 1 || !op.outputs[0])
        return false;
    const TensorType &in = editor.tensor(op.inputs[0]).type;
    if (in != editor.tensor(op.outputs[0]).type)
        return false;
    switch (op.kind) {
    case OperatorKind::Identity:
        return op.attributes.integer("detached") == 0;
    case OperatorKind::Cast:
    case OperatorKind::Reshape:
    case OperatorKind::Expand:
        return true;
    case OperatorKind::Concat:
        return op.inputs.size() == 1;
    case OperatorKind::Slice: {
        const std::vector<std::int64_t> steps = op.attributes.integers("steps");
        return std::all_of(steps.begin(), steps.end(), [](std::int64_t step) { return step > 0; });
    }
    case OperatorKind::Transpose: {
        const std::vector<std::int64_t> permutation = op.attributes.integers("permutation");
        return !permutation.empty() && std::is_sorted(permutation.begin(), permutation.end());
    }
    default:
        return false;
    }
}

} // namespace

void removeNoOperations(FuseEditor &editor)
{
    for (std::size_t i = 0; i < editor.operatorCount(); ++i) {
        if (!editor.isAlive(i))
            continue;
        const Operator &op = editor.op(i);
        if (doesNothing(editor, op))
            editor.bypass(op, op.inputs[0]);
    }
}

void mergeReshapes(FuseEditor &editor)
{
    for (std::size_t i = 0; i < editor.operatorCount(); ++i) {
        if (!editor.isAlive(i) || editor.op(i).kind != OperatorKind::Reshape)
            continue;
        const Operator &op = editor.op(i);
        const Operator *before = editor.madeBy(op.inputs[0], OperatorKind::Reshape);
        if (before == nullptr || editor.onlyUser(op.inputs[0]) != &op)
            continue;
        Operator fused = op;
        fused.sources.clear();
        fused.inputs = {before->inputs[0]};
        editor.replace({before, &op}, std::move(fused));
        if (doesNothing(editor, editor.op(i)))
            editor.bypass(editor.op(i), editor.op(i).inputs[0]);
    }
}

void fuseActivations(FuseEditor &editor)
{
    for (std::size_t i = 0; i < editor.operatorCount(); ++i) {
        if (!editor.isAlive(i))
            continue;
        switch (editor.op(i).kind) {
        case OperatorKind::Erf:
            fuseGeluErf(editor, editor.op(i));
            break;
        case OperatorKind::Tanh:
            fuseGeluTanh(editor, editor.op(i));
            break;
        case OperatorKind::Sigmoid:
            fuseSilu(editor, editor.op(i));
            break;
        case OperatorKind::Add:
            fuseRotary(editor, editor.op(i));
            break;
        default:
            break;
        }
    }
}

} // namespace planloom
