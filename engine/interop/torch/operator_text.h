#pragma once

#include "engine/base/result.h"
#include "engine/kernels/kernel_call.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace planloom {

/// What an instruction makes, as Python expressions.
struct TorchText {
    std::vector<std::string> each{}; ///< By output; empty where it is not wanted. Or none, and `all`:
    std::string all{}; ///< One that has all outputs, in their order.
    /// By output: the input in whose memory it may lie, -1 for memory of its own. Empty: all have their own.
    std::vector<std::int32_t> viewOf{};
};

/// What the texts of operators are made of: a call of the operator, of this device's part.
class OperatorSlots
{
public:
    /// @param inputs  expressions by slot; "None" where absent
    OperatorSlots(const KernelCall &call, std::vector<std::string> inputs, std::vector<DataType> outputTypes);

    const KernelCall &call() const { return m_call; }
    OperatorKind kind() const { return m_call.op->kind; }
    bool isForward() const { return m_call.op->direction == Direction::Forward; }
    bool isBackward() const { return m_call.op->direction == Direction::Backward; }
    const Attributes &attributes() const { return m_call.op->attributes; }
    std::size_t forwardInputs() const { return isBackward() ? m_call.outputs.size() : m_call.inputs.size(); }
    std::size_t forwardOutputs() const;

    // By slot of the forward operator, in either direction.
    const std::string &x(std::size_t i = 0) const { return at(isBackward() ? forwardOutputs() + i : i); }
    const std::string &y(std::size_t k = 0) const { return at(forwardOutputs() + forwardInputs() + k); }
    const std::string &dy(std::size_t k = 0) const { return at(k); }
    bool hasX(std::size_t i) const { return x(i) != "None"; }
    bool hasY(std::size_t k = 0) const { return isBackward() && y(k) != "None"; }
    bool hasDy(std::size_t k = 0) const { return dy(k) != "None"; }
    /// The buffer of forward input i: its value, or its gradient; with no data where there is neither.
    const Buffer &bufferX(std::size_t i) const;
    /// That of forward output k, or of its gradient.
    const Buffer &bufferY(std::size_t k = 0) const;
    bool wants(std::size_t output) const;
    /// Where an output is in memory in another type than its operator makes it in.
    DataType madeAs(std::size_t output) const { return m_outputTypes[output]; }
    std::string mask() const; ///< "(True, False)": which outputs are wanted.

private:
    const std::string &at(std::size_t slot) const;

    const KernelCall &m_call;
    std::vector<std::string> m_inputs;
    std::vector<DataType> m_outputTypes;
};

/// @return NotSupported naming the operator, and why it has no text
using OperatorWriter = std::function<Result<TorchText>(const OperatorSlots &)>;
/// By kind, for both directions unless a writer tells them apart.
using OperatorWriters = std::map<OperatorKind, OperatorWriter>;

// Each family adds its kinds.
void addElementTexts(OperatorWriters &writers);
void addProductTexts(OperatorWriters &writers);
void addRowTexts(OperatorWriters &writers); ///< Norms, softmaxes, reductions, losses, attention.
void addMovementTexts(OperatorWriters &writers);
void addRecurrentTexts(OperatorWriters &writers);
void addCustomTexts(OperatorWriters &writers); ///< Of operator files.

/// The operator as Python. @return as `OperatorWriter`
Result<TorchText> torchText(const OperatorSlots &slots);

// What writers share.

/// NotSupported: the operator has no text because of `what`.
Error noText(const OperatorSlots &slots, const std::string &what);
TorchText oneText(std::string text, std::int32_t viewOf = -1);
/// "name(a, b)"
std::string callText(const std::string &name, const std::vector<std::string> &arguments);
/// `expression`, summed over the dimensions along which an operand of `shape` was broadcast to `from`.
std::string summedTo(const std::string &expression, const Shape &from, const Shape &shape);
/// In brackets, unless it is one word.
std::string operandText(const std::string &expression);
/// The gradients that are wanted, of the expression `function` of its inputs, by autograd: one operator's.
/// Each input is called by its letter: "a", "b", ..
TorchText derivativeText(
    const OperatorSlots &slots, const std::string &function, const std::vector<std::size_t> &inputs);

} // namespace planloom
