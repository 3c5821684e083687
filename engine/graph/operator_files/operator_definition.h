#pragma once

#include "engine/base/result.h"
#include "engine/graph/attributes.h"
#include "engine/graph/operator_files/size_expression.h"
#include "engine/graph/operators/operator_kind.h"
#include "engine/graph/shape.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace planloom {

/// The name of an operator: ONNX's domain and type ("my.ops", "Swish"), or PyTorch's library and function.
struct DefinedName {
    std::string domain{}; ///< Empty for ai.onnx.
    std::string type{};
    friend auto operator<=>(const DefinedName &, const DefinedName &) = default;
};

/// "my.ops::Swish", "Swish".
std::string toString(const DefinedName &name);

/// What an operator reads or makes, as its definition calls it.
struct DefinedTensor {
    std::string name{};
    bool optional = false; ///< Of inputs: may be absent.
    /// Of inputs: the only type it may have; any if missing. Of outputs: its type, that of `like` if missing.
    std::optional<DataType> type{};
    std::string like{}; ///< Of outputs: the input whose type it has; the first one if empty.
    friend bool operator==(const DefinedTensor &, const DefinedTensor &) = default;
};

struct DefinedAttribute {
    std::string name{};
    std::optional<Attribute> fallback{}; ///< Without one, every node has to have it.
    friend bool operator==(const DefinedAttribute &, const DefinedAttribute &) = default;
};

/// A name with what it stands for.
struct NamedExpression {
    std::string name{};
    SizeExpression value{};
    friend bool operator==(const NamedExpression &, const NamedExpression &) = default;
};

/// Extents of an output, where the annotation does not give them; empty for a scalar.
struct DefinedShape {
    std::string name{};
    std::vector<SizeExpression> extents{};
    friend bool operator==(const DefinedShape &, const DefinedShape &) = default;
};

/// An attribute's value in a step of a body: a number, numbers, or a text.
using StepAttribute = std::variant<SizeExpression, std::vector<SizeExpression>, std::string>;

/// One line of a body: "y, z = Split(x, axis=-1, sizes=[h, h])".
struct BodyStep {
    std::vector<std::string> outputs{};
    OperatorKind kind = OperatorKind::Identity;
    /// Names of values; or numbers, which take the type of the first value among the step's inputs.
    std::vector<std::variant<std::string, double>> inputs{};
    std::vector<std::pair<std::string, StepAttribute>> attributes{};
    std::optional<DataType> type{}; ///< Of its output, where the kind leaves it open (Cast).
    std::optional<std::vector<SizeExpression>> shape{}; ///< Likewise (Reshape, Expand).
    std::int32_t line = 0; ///< In the file, from 1.
    friend bool operator==(const BodyStep &a, const BodyStep &b)
    {
        return a.outputs == b.outputs && a.kind == b.kind && a.inputs == b.inputs
            && a.attributes == b.attributes && a.type == b.type && a.shape == b.shape;
    }
};

struct OperatorDefinition;

/// A value of the step that a gradient operator reads or makes: "d.y", "x".
struct DerivativeValue {
    std::string name{};
    bool gradient = false;
    friend bool operator==(const DerivativeValue &, const DerivativeValue &) = default;
};

/// How the gradients of an operator come about.
struct DefinedDerivative {
    enum class Way : std::uint8_t {
        None, ///< No gradient flows through it.
        Body, ///< That of its body, step by step backwards.
        Operator, ///< Another operator of the file makes them.
    };
    Way way = Way::None;
    DefinedName operatorName{};
    std::vector<DerivativeValue> reads{}; ///< The other operator's inputs, in their order.
    std::vector<DerivativeValue> makes{}; ///< Its outputs, all gradients of inputs.
    std::shared_ptr<const OperatorDefinition> definition{}; ///< Of the other operator.
    friend bool operator==(const DefinedDerivative &a, const DefinedDerivative &b);
};

/// A function of a shared library (planloom_operator.h).
struct DefinedLibrary {
    std::string path{}; ///< Absolute once the file was read from a folder.
    std::string function{};
    friend bool operator==(const DefinedLibrary &, const DefinedLibrary &) = default;
};

/// What an operator file says of one operator: all that Planloom needs to import, plan, simulate,
/// differentiate and run it. See resources/operators.md for the file, and `readOperatorFile`.
struct OperatorDefinition {
    DefinedName name{};
    std::vector<DefinedName> alsoNamed{};
    std::vector<DefinedTensor> inputs{};
    std::vector<DefinedTensor> outputs{};
    /// Outputs that models do not see: what the forward pass keeps for the derivative. They follow `outputs`
    /// in the operator's slots.
    std::vector<DefinedTensor> saved{};
    std::vector<DefinedAttribute> attributes{};
    std::string annotation{}; ///< Of the inputs, the outputs and what is saved. Empty: never split.
    std::vector<std::string> linear{}; ///< Inputs in which the outputs are jointly linear.
    std::vector<NamedExpression> sizes{}; ///< "where n = 2 * k": dimensions that no input has.
    std::vector<DefinedShape> shapes{};
    std::optional<SizeExpression> flops{};
    std::optional<SizeExpression> backwardFlops{};
    bool matrixUnits = false; ///< Its work runs at the rate of matrix products.
    std::optional<SizeExpression> workspace{}; ///< Bytes that its function needs while it runs.
    std::vector<BodyStep> body{};
    DefinedDerivative derivative{};
    std::optional<DefinedLibrary> library{};
    std::string torch{}; ///< What it is in PyTorch (torch_expression.h); empty if nothing says it.
    std::string file{}; ///< Where it was read; for people. Not compared.
    std::int32_t line = 0; ///< In the file, from 1. Not compared.

    /// `saved` behind `outputs`.
    std::size_t resultCount() const { return outputs.size() + saved.size(); }
    const DefinedTensor &result(std::size_t slot) const
    {
        return slot < outputs.size() ? outputs[slot] : saved[slot - outputs.size()];
    }
};
bool operator==(const OperatorDefinition &a, const OperatorDefinition &b);

/// Definitions by name.
class OperatorDefinitions
{
public:
    /// @return InvalidInput if another file defines an operator of this name otherwise; `where` is the place
    Result<void> add(std::shared_ptr<const OperatorDefinition> definition);
    /// Null if there is none.
    std::shared_ptr<const OperatorDefinition> find(const std::string &domain, const std::string &type) const;
    const std::vector<std::shared_ptr<const OperatorDefinition>> &all() const { return m_all; }

private:
    std::vector<std::shared_ptr<const OperatorDefinition>> m_all{};
    std::map<DefinedName, std::size_t> m_byName{};
};

/// Index of the input or result called `name`; -1 if there is none.
std::int32_t inputNamed(const OperatorDefinition &definition, std::string_view name);
std::int32_t resultNamed(const OperatorDefinition &definition, std::string_view name);

} // namespace planloom
