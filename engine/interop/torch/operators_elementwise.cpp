// Operators that work element by element.

#include "engine/interop/torch/operator_text.h"
#include "engine/interop/torch/python_text.h"
#include "engine/interop/torch/rank_numbers.h"
#include "engine/kernels/movement/pick_plans.h"

#include <utility>

namespace planloom {

namespace element_texts {

using enum OperatorKind;

/// `form` with "X", "Y", "D" (the gradient), "A", "B" (attributes alpha and beta) and "G" (gamma) in their
/// places.
std::string filledIn(const OperatorSlots &slots, const char *form)
{
    std::string text;
    for (const char *c = form; *c != '\0'; ++c) {
        const Attributes &a = slots.attributes();
        switch (*c) {
        case 'X':
            text += operandText(slots.x());
            break;
        case 'Y':
            text += operandText(slots.y());
            break;
        case 'D':
            text += operandText(slots.dy());
            break;
        case 'A': {
            const bool slope = slots.kind() == HardSigmoid;
            const bool leaky = slots.kind() == LeakyRelu;
            text += pythonNumber(a.real("alpha",
                slope                      ? 0.2
                    : leaky                ? 0.01
                    : slots.kind() == Selu ? 1.67326319217681884765625
                                           : 1));
            break;
        }
        case 'B':
            text += pythonNumber(a.real("beta", 0.5));
            break;
        case 'G':
            text += pythonNumber(a.real("gamma", 1.05070102214813232421875));
            break;
        default:
            text += *c;
        }
    }
    return text;
}

/// A function of one operand: its value, and the gradient of that, if it is not left to autograd.
struct UnaryForm {
    OperatorKind kind;
    const char *value;
    const char *gradient = nullptr;
};

constexpr UnaryForm kUnary[] = {{Abs, "torch.abs(X)", "D * torch.sign(X)"}, {Acos, "torch.acos(X)"},
    {Acosh, "torch.acosh(X)"}, {Asin, "torch.asin(X)"}, {Asinh, "torch.asinh(X)"}, {Atan, "torch.atan(X)"},
    {Atanh, "torch.atanh(X)"}, {Ceil, "torch.ceil(X)"}, {Cos, "torch.cos(X)", "-D * torch.sin(X)"},
    {Cosh, "torch.cosh(X)"}, {Erf, "torch.erf(X)"}, {Exp, "torch.exp(X)", "D * Y"}, {Floor, "torch.floor(X)"},
    {IsNaN, "torch.isnan(X)"}, {Log, "torch.log(X)", "D / X"}, {Neg, "-X", "-D"},
    {Not, "torch.logical_not(X)"}, {Reciprocal, "torch.reciprocal(X)", "-D * Y * Y"},
    {Relu, "torch.relu(X)", "torch.ops.aten.threshold_backward(D, Y, 0)"}, {Round, "torch.round(X)"},
    {Sigmoid, "torch.sigmoid(X)", "torch.ops.aten.sigmoid_backward(D, Y)"}, {Sign, "torch.sign(X)"},
    {Sin, "torch.sin(X)", "D * torch.cos(X)"}, {Sinh, "torch.sinh(X)"}, {Softplus, "F.softplus(X)"},
    {Softsign, "F.softsign(X)"}, {Sqrt, "torch.sqrt(X)", "D * 0.5 / Y"},
    {Tan, "torch.tan(X)", "D * (1 + Y * Y)"}, {Tanh, "torch.tanh(X)", "torch.ops.aten.tanh_backward(D, Y)"},
    {Mish, "F.mish(X)"}, {HardSwish, "F.hardswish(X)"},
    {Silu, "F.silu(X)", "torch.ops.aten.silu_backward(D, X)"}, {Elu, "F.elu(X, A)"}, {Celu, "F.celu(X, A)"},
    {LeakyRelu, "F.leaky_relu(X, A)"}, {ThresholdedRelu, "F.threshold(X, A, 0.0)"}, {Selu, "G * F.elu(X, A)"},
    {HardSigmoid, "torch.clamp(A * X + B, 0.0, 1.0)"}};

Result<TorchText> unary(const OperatorSlots &slots, const UnaryForm &form)
{
    if (!slots.isBackward())
        return oneText(filledIn(slots, form.value));
    if (form.gradient != nullptr)
        return oneText(filledIn(slots, form.gradient));
    std::string function = filledIn(slots, form.value);
    const std::string value = operandText(slots.x());
    if (const std::size_t at = function.find(value); at != std::string::npos)
        function.replace(at, value.size(), "a");
    return derivativeText(slots, function, {0});
}

Result<TorchText> gelu(const OperatorSlots &slots)
{
    const std::string how = slots.attributes().text("approximate", "none");
    const std::string more = how == "none" ? "" : ", approximate=" + pythonText(how);
    if (slots.isBackward())
        return oneText("torch.ops.aten.gelu_backward(" + slots.dy() + ", " + slots.x() + more + ")");
    return oneText("F.gelu(" + slots.x() + more + ")");
}

Result<TorchText> clip(const OperatorSlots &slots)
{
    const auto bound = [&](const char *name) {
        const auto &all = slots.attributes().all();
        const auto found = all.find(name);
        if (found == all.end())
            return std::string("None");
        if (const auto *whole = std::get_if<std::int64_t>(&found->second))
            return std::to_string(*whole);
        return pythonNumber(slots.attributes().real(name));
    };
    const std::string bounds = ", " + bound("min") + ", " + bound("max") + ")";
    if (slots.isBackward())
        return derivativeText(slots, "torch.clamp(a" + bounds, {0});
    return oneText("torch.clamp(" + slots.x() + bounds);
}

Result<TorchText> isInfinite(const OperatorSlots &slots)
{
    const bool negative = slots.attributes().integer("detect_negative", 1) != 0;
    const bool positive = slots.attributes().integer("detect_positive", 1) != 0;
    const char *name = negative && positive ? "torch.isinf" : negative ? "torch.isneginf" : "torch.isposinf";
    return oneText(callText(name, {slots.x()}));
}

/// What is passed on in another type, or as it is.
Result<TorchText> passedOn(const OperatorSlots &slots)
{
    const std::string &from = slots.isBackward() ? slots.dy() : slots.x();
    if (slots.call().inputs[0].dataType == slots.madeAs(0))
        return oneText(from, 0);
    return oneText(
        operandText(from) + ".to(" + pythonType(slots.madeAs(0)) + ")", 0); // of one type it is the same
}

/// "(ratio, seed, [first, strides])": where a dropout's elements lie in the whole tensor.
Result<TorchText> dropout(const OperatorSlots &slots)
{
    TRY(const auto plan, planDropout(slots.call()));
    const std::string &from = slots.isBackward() ? slots.dy() : slots.x();
    if (plan->ratio <= 0)
        return oneText(from, 0);
    return oneText(callText("ops.dropout",
        {from, pythonNumber(plan->ratio), std::to_string(slots.attributes().integer("seed")), "m",
            rankNumber("part", plan->first), pythonTuple(plan->strides)}));
}

// --- two operands

const char *binaryForm(OperatorKind kind)
{
    switch (kind) {
    case Add:
        return " + ";
    case Sub:
        return " - ";
    case Mul:
        return " * ";
    case Div:
        return " / ";
    case Pow:
        return "torch.pow";
    case Min:
        return "torch.minimum";
    case Max:
        return "torch.maximum";
    case And:
        return "torch.logical_and";
    case Or:
        return "torch.logical_or";
    case Xor:
        return "torch.logical_xor";
    case Equal:
        return "torch.eq";
    case Greater:
        return "torch.gt";
    case GreaterOrEqual:
        return "torch.ge";
    case Less:
        return "torch.lt";
    case LessOrEqual:
        return "torch.le";
    case BitwiseAnd:
        return "torch.bitwise_and";
    case BitwiseOr:
        return "torch.bitwise_or";
    case BitwiseXor:
        return "torch.bitwise_xor";
    default:
        return nullptr;
    }
}

std::string binaryValue(const OperatorSlots &slots, const std::string &a, const std::string &b)
{
    const OperatorKind kind = slots.kind();
    if (kind == Div && !isFloating(slots.bufferY().dataType))
        return "torch.div(" + a + ", " + b + ", rounding_mode=\"trunc\")";
    if (kind == Mod)
        return callText(slots.attributes().integer("fmod") != 0 ? "torch.fmod" : "torch.remainder", {a, b});
    if (kind == BitShift) {
        const bool left = slots.attributes().text("direction", "LEFT") == "LEFT";
        return callText(left ? "torch.bitwise_left_shift" : "torch.bitwise_right_shift", {a, b});
    }
    const char *form = binaryForm(kind);
    return form[0] == ' ' ? operandText(a) + form + operandText(b) : callText(form, {a, b});
}

/// Sums, products and quotients, whose gradients are written out.
Result<TorchText> arithmeticGradient(const OperatorSlots &slots)
{
    const Shape &from = slots.bufferY().shape;
    const std::string dy = operandText(slots.dy());
    TorchText made;
    for (std::size_t i = 0; i < 2; ++i) {
        std::string text;
        const std::string other = slots.wants(i) ? operandText(slots.x(1 - i)) : "";
        switch (slots.kind()) {
        case Add:
            text = slots.dy();
            break;
        case Sub:
            text = i == 0 ? slots.dy() : "-" + dy;
            break;
        case Mul:
            text = dy + " * " + other;
            break;
        default: // Div
            text = i == 0 ? dy + " / " + other
                          : "-" + dy + " * " + other + " / (" + operandText(slots.x(1)) + " * "
                    + operandText(slots.x(1)) + ")";
        }
        const bool summed = slots.wants(i) && slots.bufferX(i).shape != from;
        made.each.push_back(slots.wants(i) ? summedTo(text, from, slots.bufferX(i).shape) : "");
        made.viewOf.push_back(!summed && text == slots.dy() ? 0 : -1);
    }
    return made;
}

Result<TorchText> binary(const OperatorSlots &slots)
{
    if (!slots.isBackward())
        return oneText(binaryValue(slots, slots.x(0), slots.x(1)));
    switch (slots.kind()) {
    case Add:
    case Sub:
    case Mul:
    case Div:
        return arithmeticGradient(slots);
    default:
        return derivativeText(slots, binaryValue(slots, "a", "b"), {0, 1});
    }
}

Result<TorchText> prelu(const OperatorSlots &slots)
{
    if (slots.isBackward())
        return derivativeText(slots, "torch.where(a > 0, a, a * b)", {0, 1});
    return oneText(callText("ops.prelu", {slots.x(0), slots.x(1)}));
}

Result<TorchText> where(const OperatorSlots &slots)
{
    if (!slots.isBackward())
        return oneText(callText("torch.where", {slots.x(0), slots.x(1), slots.x(2)}));
    TorchText made;
    made.each.emplace_back();
    for (const std::size_t i : {1, 2}) {
        const std::string text =
            "torch.where(" + slots.x(0) + ", " + (i == 1 ? slots.dy() + ", 0" : "0, " + slots.dy()) + ")";
        made.each.push_back(
            slots.wants(i) ? summedTo(text, slots.bufferY().shape, slots.bufferX(i).shape) : std::string{});
    }
    return made;
}

} // namespace element_texts

void addElementTexts(OperatorWriters &writers)
{
    using namespace element_texts;
    for (const UnaryForm &form : kUnary)
        writers[form.kind] = [&form](const OperatorSlots &slots) { return unary(slots, form); };
    writers[Gelu] = gelu;
    writers[Clip] = clip;
    writers[IsInf] = isInfinite;
    for (const OperatorKind kind : {Identity, Cast})
        writers[kind] = passedOn;
    writers[Dropout] = dropout;
    for (const OperatorKind kind : {Add, Sub, Mul, Div, Pow, Mod, Min, Max, And, Or, Xor, Equal, Greater,
             GreaterOrEqual, Less, LessOrEqual, BitShift, BitwiseAnd, BitwiseOr, BitwiseXor})
        writers[kind] = binary;
    writers[PRelu] = prelu;
    writers[Where] = where;
}

} // namespace planloom
