#include "engine/interop/torch/operator_text.h"

#include "engine/interop/torch/python_text.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

const Buffer kNoBuffer{};

const OperatorWriters &operatorWriters()
{
    static const OperatorWriters kWriters = [] {
        OperatorWriters writers;
        addElementTexts(writers);
        addProductTexts(writers);
        addRowTexts(writers);
        addMovementTexts(writers);
        addRecurrentTexts(writers);
        addCustomTexts(writers);
        return writers;
    }();
    return kWriters;
}

bool isThere(const Buffer &buffer)
{
    return buffer.data != nullptr;
}

} // namespace

OperatorSlots::OperatorSlots(
    const KernelCall &call, std::vector<std::string> inputs, std::vector<DataType> outputTypes)
    : m_call(call)
    , m_inputs(std::move(inputs))
    , m_outputTypes(std::move(outputTypes))
{
}

std::size_t OperatorSlots::forwardOutputs() const
{
    return isBackward() ? (m_call.inputs.size() - m_call.outputs.size()) / 2 : m_call.outputs.size();
}

const std::string &OperatorSlots::at(std::size_t slot) const
{
    static const std::string kNone = "None";
    return slot < m_inputs.size() ? m_inputs[slot] : kNone;
}

const Buffer &OperatorSlots::bufferX(std::size_t i) const
{
    const std::size_t slot = isBackward() ? forwardOutputs() + i : i;
    if (slot < m_call.inputs.size() && isThere(m_call.inputs[slot]))
        return m_call.inputs[slot];
    return isBackward() && wants(i) ? m_call.outputs[i] : kNoBuffer;
}

const Buffer &OperatorSlots::bufferY(std::size_t k) const
{
    if (!isBackward())
        return m_call.outputs[k];
    const std::size_t saved = forwardOutputs() + forwardInputs() + k;
    return isThere(m_call.inputs[k]) || saved >= m_call.inputs.size() ? m_call.inputs[k]
                                                                      : m_call.inputs[saved];
}

bool OperatorSlots::wants(std::size_t output) const
{
    return output < m_call.outputs.size() && isThere(m_call.outputs[output]);
}

std::string OperatorSlots::mask() const
{
    std::vector<std::string> flags;
    for (const Buffer &output : m_call.outputs)
        flags.emplace_back(pythonFlag(isThere(output)));
    return "(" + joinedBy(flags) + (flags.size() == 1 ? ",)" : ")");
}

Result<TorchText> torchText(const OperatorSlots &slots)
{
    const auto found = operatorWriters().find(slots.kind());
    if (found == operatorWriters().end())
        return noText(slots, "it has no counterpart there yet");
    return found->second(slots);
}

Error noText(const OperatorSlots &slots, const std::string &what)
{
    const Operator &op = *slots.call().op;
    return Error{ErrorCode::NotSupported,
        typeNameOf(op) + " " + op.name + (slots.isBackward() ? " (its gradient)" : "")
            + " cannot be written for PyTorch: " + what,
        {}, "operator:" + op.name};
}

TorchText oneText(std::string text, std::int32_t viewOf)
{
    return {{std::move(text)}, {}, {viewOf}};
}

std::string callText(const std::string &name, const std::vector<std::string> &arguments)
{
    return name + "(" + joinedBy(arguments) + ")";
}

std::string summedTo(const std::string &expression, const Shape &from, const Shape &shape)
{
    return from == shape ? expression : callText("ops.sum_to", {expression, pythonTuple(shape)});
}

std::string operandText(const std::string &expression)
{
    const bool word = std::all_of(expression.begin(), expression.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
            || c == '.';
    });
    return word ? expression : "(" + expression + ")";
}

TorchText derivativeText(
    const OperatorSlots &slots, const std::string &function, const std::vector<std::size_t> &inputs)
{
    std::vector<std::string> letters;
    std::vector<std::string> arguments;
    std::vector<std::string> flags;
    TorchText made;
    for (const std::size_t i : inputs) {
        letters.emplace_back(1, static_cast<char>('a' + letters.size()));
        arguments.push_back(slots.x(i));
        flags.emplace_back(pythonFlag(slots.wants(i)));
    }
    std::vector<std::string> gradients;
    for (std::size_t k = 0; k < slots.forwardOutputs(); ++k)
        gradients.push_back(slots.dy(k));
    const std::string dy = gradients.size() == 1 ? gradients[0] : "(" + joinedBy(gradients) + ")";
    if (inputs.size() == 1 && slots.forwardInputs() == 1 && gradients.size() == 1)
        return oneText(callText("ops.derivative", {"lambda a: " + function, dy, arguments[0]}));
    made.all = "ops.derivatives(lambda " + joinedBy(letters) + ": " + function + ", " + dy + ", ("
        + joinedBy(arguments) + ",), (" + joinedBy(flags) + ",))";
    return made;
}

} // namespace planloom
