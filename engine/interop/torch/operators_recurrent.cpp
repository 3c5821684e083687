// Recurrences.

#include "engine/interop/torch/operator_text.h"
#include "engine/interop/torch/python_text.h"

namespace planloom {

namespace recurrent_texts {

using enum OperatorKind;

Result<TorchText> recurrent(const OperatorSlots &slots)
{
    const Attributes &a = slots.attributes();
    for (const char *name : {"activations", "activation_alpha", "activation_beta", "clip", "input_forget"})
        if (a.has(name) && a.integer(name, 1) != 0)
            return noText(slots, std::string("it has '") + name + "'");
    // A part that has one of two directions alone may have the one from the end.
    const Buffer &recurrent = slots.bufferX(2);
    const bool isSecond = recurrent.data != nullptr && recurrent.shape[0] == 1 && firstOf(recurrent, 0) == 1;
    std::string options = ", direction=" + pythonText(isSecond ? "reverse" : a.text("direction", "forward"));
    if (a.integer("layout") == 1)
        options += ", batch_first=True";
    if (slots.kind() == Gru && a.integer("linear_before_reset") != 0)
        options += ", linear_before_reset=True";
    const std::string name = slots.kind() == Lstm ? "lstm" : slots.kind() == Gru ? "gru" : "rnn";
    const std::size_t most = slots.kind() == Lstm ? 8 : 6;
    std::vector<std::string> arguments; // x, w, r, bias, lengths, first states, first cells, peepholes
    for (std::size_t slot = 0; slot < most; ++slot)
        arguments.push_back(slot < slots.forwardInputs() ? slots.x(slot) : "None");
    TorchText made;
    if (!slots.isBackward()) {
        made.all = "ops." + name + "(" + joinedBy(arguments) + options + ")";
        if (const std::size_t outputs = slots.call().outputs.size();
            outputs < (slots.kind() == Lstm ? 3U : 2U))
            made.all += "[:" + std::to_string(outputs) + "]";
        return made;
    }
    std::vector<std::string> gradients;
    for (std::size_t k = 0; k < slots.forwardOutputs(); ++k)
        gradients.push_back(slots.dy(k));
    made.all = "ops.recurrence_backward(ops." + name + ", (" + joinedBy(gradients) + ",), ("
        + joinedBy(arguments) + "), " + slots.mask() + options + ")";
    return made;
}

} // namespace recurrent_texts

void addRecurrentTexts(OperatorWriters &writers)
{
    using namespace recurrent_texts;
    for (const OperatorKind kind : {Lstm, Gru, Rnn})
        writers[kind] = recurrent;
}

} // namespace planloom
