// Products: of matrices, by weights, and over windows.

#include "engine/interop/torch/operator_text.h"
#include "engine/interop/torch/python_text.h"
#include "engine/interop/torch/rank_numbers.h"
#include "engine/kernels/movement/window_plans.h"
#include "engine/kernels/products/matmul_plan.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace product_texts {

using enum OperatorKind;

Shape batchShape(const Shape &shape)
{
    return shape.size() < 2 ? Shape{} : Shape(shape.begin(), shape.end() - 2);
}

Result<TorchText> matrixProduct(const OperatorSlots &slots)
{
    if (!slots.isBackward())
        return oneText(operandText(slots.x(0)) + " @ " + operandText(slots.x(1)));
    const Shape &y = slots.bufferY().shape;
    TorchText made;
    for (std::size_t i = 0; i < 2; ++i) {
        std::string &text = made.each.emplace_back();
        if (!slots.wants(i))
            continue;
        const Shape &own = slots.bufferX(i).shape;
        const Shape &other = slots.bufferX(1 - i).shape;
        if (own.size() < 2 || other.size() < 2)
            return noText(slots, "gradients of products with a vector are not written yet");
        const std::string dy = operandText(slots.dy());
        const std::string factor = operandText(slots.x(1 - i));
        if (i == 1 && own.size() == 2 && other.size() > 2) {
            text = factor + ".flatten(0, -2).mT @ " + dy + ".flatten(0, -2)";
            continue;
        }
        text = i == 0 ? dy + " @ " + factor + ".mT" : factor + ".mT @ " + dy;
        if (batchShape(own) != batchShape(y)) {
            Shape from = batchShape(y);
            from.insert(from.end(), own.end() - 2, own.end());
            text = summedTo(text, from, own);
        }
    }
    return made;
}

bool isTransposed(const OperatorSlots &slots)
{
    return slots.attributes().integer("transposed") != 0;
}

/// The bias, if this part adds it.
std::string biasOf(const OperatorSlots &slots, std::size_t slot)
{
    if (!slots.hasX(slot))
        return "None";
    return rankChoice("adds_bias", makesTerm(slots.call(), 0, {slot}), slots.x(slot), "None");
}

Result<TorchText> linearValue(const OperatorSlots &slots)
{
    const Shape &weight = slots.bufferX(1).shape;
    const std::string w = operandText(slots.x(1));
    const bool transposed = isTransposed(slots);
    std::string bias = biasOf(slots, 2);
    const std::string more = bias == "None" ? "" : ", " + bias;
    if (weight.size() == 2) {
        std::vector<std::string> arguments{slots.x(0), transposed ? w : w + ".t()"};
        if (slots.hasX(2) && slots.bufferX(2).shape != Shape{weight[transposed ? 0 : 1]})
            return noText(slots, "its bias has not one element for each column");
        if (bias != "None")
            arguments.push_back(bias);
        return oneText(callText("F.linear", arguments));
    }
    return oneText(
        "ops.linear_parts(" + slots.x(0) + ", " + w + more + (transposed ? ", transposed=True)" : ")"));
}

Result<TorchText> linear(const OperatorSlots &slots)
{
    if (!slots.isBackward())
        return linearValue(slots);
    const bool transposed = isTransposed(slots);
    const bool parts = slots.call().op->annotation.inputs.size() > 2
        && slots.call().op->annotation.inputs[2].terms.size()
            == 3; // of the forward's weight, behind dy and x
    const std::string dy = operandText(slots.dy());
    const std::string flatDy = dy + (parts ? ".flatten(-2).flatten(0, -2)" : ".flatten(0, -2)");
    TorchText made;
    made.each.resize(slots.forwardInputs());
    if (slots.wants(0)) {
        std::string w = operandText(slots.x(1));
        if (parts)
            w += transposed ? ".flatten(0, 1)" : ".flatten(1)";
        made.each[0] = dy + (parts ? ".flatten(-2)" : "") + " @ " + w + (transposed ? "" : ".t()");
    }
    if (slots.wants(1)) {
        const std::string x = operandText(slots.x(0)) + ".flatten(0, -2)";
        made.each[1] = transposed ? flatDy + ".t() @ " + x : x + ".t() @ " + flatDy;
        if (parts) {
            const std::string shape = pythonTuple(slots.bufferX(1).shape);
            made.each[1] = "(" + made.each[1] + ").reshape" + shape;
        }
    }
    if (slots.wants(2)) {
        const Shape &bias = slots.bufferX(2).shape;
        std::string sum = dy + (parts ? ".flatten(0, -3).sum(0)" : ".flatten(0, -2).sum(0)");
        if (elementCount(bias) == 1)
            sum = dy + ".sum().reshape" + pythonTuple(bias);
        made.each[2] = rankChoice(
            "adds_bias", makesTerm(slots.call(), 2, {0}), sum, dy + ".new_zeros(" + pythonTuple(bias) + ")");
    }
    return made;
}

// --- einsum

std::vector<std::string> splitEquation(const std::string &equation, std::string &result)
{
    std::string text;
    for (const char c : equation)
        if (c != ' ')
            text += c;
    const std::size_t arrow = text.find("->");
    result = text.substr(arrow + 2);
    std::vector<std::string> operands{""};
    for (const char c : text.substr(0, arrow)) {
        if (c == ',')
            operands.emplace_back();
        else
            operands.back() += c;
    }
    return operands;
}

Result<TorchText> einsum(const OperatorSlots &slots)
{
    const std::string equation = slots.attributes().text("equation");
    if (!slots.isBackward()) {
        std::vector<std::string> arguments{pythonText(equation)};
        for (std::size_t i = 0; i < slots.forwardInputs(); ++i)
            arguments.push_back(slots.x(i));
        return oneText(callText("torch.einsum", arguments));
    }
    std::string result;
    const std::vector<std::string> operands = splitEquation(equation, result);
    TorchText made;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        std::string &text = made.each.emplace_back();
        if (!slots.wants(i))
            continue;
        std::string letters = result;
        std::vector<std::string> arguments{slots.dy()};
        for (std::size_t other = 0; other < operands.size(); ++other) {
            if (other == i)
                continue;
            letters += "," + operands[other];
            arguments.push_back(slots.x(other));
        }
        for (const char c : operands[i])
            if (letters.find(c) == std::string::npos || operands[i].find(c) != operands[i].rfind(c))
                return noText(slots, "the gradient of '" + equation + "' is no product itself");
        arguments.insert(arguments.begin(), pythonText(letters + "->" + operands[i]));
        text = callText("torch.einsum", arguments);
    }
    return made;
}

// --- windows

/// What has to stand around the elements that a part has, so that its windows begin and end with them: less
/// than 0 where it has more than they see. In F.pad's order, the last dimension first.
std::string windowPads(const WindowGeometry &g, bool inverse = false)
{
    std::vector<std::string> pads;
    for (std::size_t d = g.rank(); d-- > 0;) {
        const std::int64_t begin = g.first[d] * g.strides[d] - g.pads[d];
        const std::int64_t end =
            (g.first[d] + g.out[d] - 1) * g.strides[d] - g.pads[d] + (g.kernel[d] - 1) * g.dilations[d] + 1;
        const std::int64_t sign = inverse ? -1 : 1;
        pads.push_back(rankNumber("pad", sign * (g.inFirst[d] - begin)));
        pads.push_back(rankNumber("pad", sign * (end - g.inFirst[d] - g.in[d])));
    }
    return "(" + joinedBy(pads) + ")";
}

std::string convolutionArguments(const Convolution &conv)
{
    const WindowGeometry &g = conv.window;
    return "pads=" + windowPads(g) + ", stride=" + pythonTuple(g.strides)
        + (std::all_of(g.dilations.begin(), g.dilations.end(), [](auto d) { return d == 1; })
                ? std::string{}
                : ", dilation=" + pythonTuple(g.dilations))
        + (conv.groups == 1 ? "" : ", groups=" + std::to_string(conv.groups));
}

/// The subscript of what a part has of a gradient to itself.
std::string ownPiece(const Buffer &own, const Buffer &all)
{
    return pythonBox(own.mask, all.mask.ranges.empty() ? wholeMask(all.shape) : all.mask);
}

std::string sumOfChannels(const std::string &dy, std::size_t rank)
{
    std::vector<std::int64_t> dimensions{0};
    for (std::size_t d = 2; d < rank; ++d)
        dimensions.push_back(static_cast<std::int64_t>(d));
    return operandText(dy) + ".sum(" + pythonTuple(dimensions) + ")";
}

Result<TorchText> convolution(const OperatorSlots &slots)
{
    TRY(const auto plan, planConvolution(slots.call()));
    if (!plan)
        return noText(slots, "it makes nothing");
    const bool transposed = slots.kind() == ConvTranspose;
    if (!slots.isBackward()) {
        const PlannedConvolution &product = plan->products[0];
        const std::string bias = biasOf(slots, 2);
        const std::string more = bias == "None" ? "" : ", bias=" + bias;
        if (!transposed)
            return oneText("ops.conv(" + slots.x(0) + ", " + slots.x(1) + ", "
                + convolutionArguments(product.conv) + more + ")");
        return oneText("ops.conv_input(" + slots.x(0) + ", " + slots.x(1) + ", "
            + pythonTuple(product.x->shape) + ", " + convolutionArguments(product.conv) + more + ")");
    }
    TorchText made;
    made.each.resize(slots.forwardInputs());
    const std::string own = slots.dy() + ownPiece(plan->own, *plan->dy);
    for (const PlannedConvolution &product : plan->products) {
        const std::string arguments = convolutionArguments(product.conv);
        if (product.pass == ConvolutionPass::OfData)
            made.each[0] = "ops.conv_input(" + slots.dy() + ", " + slots.x(1) + ", "
                + pythonTuple(product.x->shape) + ", " + arguments + ")";
        else if (product.pass == ConvolutionPass::Forward)
            made.each[0] = "ops.conv(" + slots.dy() + ", " + slots.x(1) + ", " + arguments + ")";
        else
            made.each[1] = "ops.conv_weight("
                + (transposed ? slots.dy() + ", " + slots.x(0) : slots.x(0) + ", " + own) + ", "
                + pythonTuple(product.w->shape) + ", " + arguments + ")";
    }
    if (slots.wants(2))
        made.each[2] = rankChoice("adds_bias", plan->addsUpBias, sumOfChannels(own, plan->dy->shape.size()),
            operandText(slots.dy()) + ".new_zeros(" + pythonTuple(plan->dbias->shape) + ")");
    return made;
}

Result<TorchText> pool(const OperatorSlots &slots)
{
    TRY(const auto plan, planPool(slots.call()));
    const WindowGeometry &g = plan->windows;
    const std::string name = plan->rule.pooling == Pooling::Largest ? "max_pool"
        : plan->rule.pooling == Pooling::Average                    ? "average_pool"
                                                                    : "lp_pool";
    std::string arguments =
        "pads=" + windowPads(g) + ", kernel=" + pythonTuple(g.kernel) + ", stride=" + pythonTuple(g.strides);
    if (std::any_of(g.dilations.begin(), g.dilations.end(), [](auto d) { return d != 1; })) {
        if (plan->rule.pooling != Pooling::Largest)
            return noText(slots, "its windows have gaps");
        arguments += ", dilation=" + pythonTuple(g.dilations);
    }
    if (plan->rule.pooling == Pooling::Norm)
        arguments += ", p=" + pythonNumber(plan->rule.p);
    if (plan->rule.countPadding && slots.attributes().integer("ceil_mode") != 0)
        return noText(slots, "windows that reach beyond the padding count it");
    if (plan->rule.countPadding)
        arguments += ", count_padding=True";
    const std::string function = "ops." + name + "(a, " + arguments + ")";
    if (!slots.isBackward())
        return oneText("ops." + name + "(" + slots.x() + ", " + arguments + ")");
    // An average is linear: its gradient is that at any place.
    const std::string at = slots.hasX(0)
        ? slots.x()
        : operandText(slots.dy()) + ".new_zeros(" + pythonTuple(plan->dx->shape) + ")";
    std::string text = callText("ops.derivative", {"lambda a: " + function, slots.dy(), at});
    if (plan->x != nullptr)
        text += pythonBox(plan->dx->mask, plan->x->mask);
    return oneText(text);
}

} // namespace product_texts

void addProductTexts(OperatorWriters &writers)
{
    using namespace product_texts;
    writers[MatMul] = matrixProduct;
    writers[Linear] = linear;
    writers[Einsum] = einsum;
    writers[Conv] = convolution;
    writers[ConvTranspose] = convolution;
    for (const OperatorKind kind : {MaxPool, AveragePool, LpPool})
        writers[kind] = pool;
}

} // namespace planloom
