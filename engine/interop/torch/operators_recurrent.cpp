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
    if (slots.kind() != Lstm)
        return noText(slots, "this recurrence is not written yet");
    for (const std::size_t slot : {4, 7})
        if (slot < slots.forwardInputs() && slots.hasX(slot))
            return noText(slots, "lengths and peepholes are not written yet");
    std::string options = ", direction=" + pythonText(a.text("direction", "forward"));
    if (a.integer("layout") == 1)
        options += ", batch_first=True";
    // x, w, r, bias, and the first states
    std::vector<std::string> arguments;
    for (const std::size_t slot : {0, 1, 2, 3, 5, 6})
        arguments.push_back(slot < slots.forwardInputs() ? slots.x(slot) : "None");
    TorchText made;
    if (!slots.isBackward()) {
        made.all = "ops.lstm(" + joinedBy(arguments) + options + ")";
        if (slots.call().outputs.size() < 3)
            made.all += "[:" + std::to_string(slots.call().outputs.size()) + "]";
        return made;
    }
    std::vector<std::string> gradients;
    for (std::size_t k = 0; k < slots.forwardOutputs(); ++k)
        gradients.push_back(slots.dy(k));
    made.all = "ops.lstm_backward((" + joinedBy(gradients) + ",), (" + joinedBy(arguments)
        + "), mask=" + slots.mask() + options + ")";
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
