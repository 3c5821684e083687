#pragma once

#include "engine/base/result.h"
#include "engine/frontend/onnx/onnx_builder.h"
#include "engine/frontend/onnx/onnx_model.h"
#include "engine/frontend/onnx/onnx_values.h"

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

/// What a node sees of the graph it stands in; implemented by the importer.
class OnnxScope
{
public:
    virtual ~OnnxScope() = default;
    /// True if something reads the value.
    virtual bool isUsed(const std::string &value) const = 0;
    /// True if the model returns the value.
    virtual bool isOutput(const std::string &value) const = 0;
    /// What the value of a node is, where it is stored as initializers are (import_onnx.h, "What is a
    /// weight"). @param value  with the name of the value in the file
    virtual std::optional<Classification> storedByNode(const OnnxTensor &value) const = 0;
    /// What the file declares of a value, if anything.
    virtual const OnnxValue *declared(const std::string &value) const = 0;
    /// Imports `graph` in place: its inputs are bound to `inputs`, and its outputs returned.
    virtual Result<std::vector<TensorId>> inlineGraph(
        const OnnxGraph &graph, const std::vector<TensorId> &inputs) = 0;
    /// Gives a value of the file a tensor.
    virtual Result<void> bind(const std::string &value, TensorId tensor) = 0;
    /// The tensors of a value that is a sequence of them; null if it is none, as in formats without
    /// sequences.
    virtual const std::vector<TensorId> *findSequence(const std::string &) const { return nullptr; }
    /// Says that a value of the file is a sequence of tensors.
    virtual Result<void> bindSequence(const std::string &value, std::vector<TensorId>)
    {
        return Error{ErrorCode::Internal, "'" + value + "' became a sequence of tensors", {}, {}};
    }
};

/// One node while it is made canonical: access to its inputs and attributes that reports what is wrong in the
/// node's name, and making of operators.
class OnnxNodeContext
{
public:
    OnnxNodeContext(
        const OnnxNode &node, std::vector<TensorId> inputs, OnnxBuilder &builder, OnnxScope &scope);
    /// The same for a node that stands for (a part of) what another format calls `source`.
    OnnxNodeContext(const OnnxNode &node, std::vector<TensorId> inputs, OnnxBuilder &builder,
        OnnxScope &scope, SourceNode source);

    const OnnxNode &node() const { return m_node; }
    OnnxBuilder &builder() { return m_builder; }
    OnnxScope &scope() { return m_scope; }
    std::int64_t opset() const { return m_builder.opset(); }

    /// Number of inputs written down, absent ones included.
    std::size_t inputCount() const { return m_inputs.size(); }
    bool has(std::size_t slot) const { return slot < m_inputs.size() && m_inputs[slot].valid(); }
    /// Invalid if absent.
    TensorId input(std::size_t slot) const { return slot < m_inputs.size() ? m_inputs[slot] : TensorId{}; }
    const std::vector<TensorId> &inputs() const { return m_inputs; }
    const TensorType &type(std::size_t slot) const { return m_builder.typeOf(m_inputs[slot]); }
    const Shape &shape(std::size_t slot) const { return type(slot).shape; }
    std::int64_t rank(std::size_t slot) const { return static_cast<std::int64_t>(shape(slot).size()); }
    /// @return InvalidInput unless inputs 0 .. count-1 are there
    Result<void> require(std::size_t count) const;

    bool hasAttribute(std::string_view name) const
    {
        return m_node.attributes.find(name) != m_node.attributes.end();
    }
    Result<std::int64_t> integer(std::string_view name, std::int64_t fallback) const;
    Result<double> real(std::string_view name, double fallback) const;
    Result<std::string> text(std::string_view name, std::string_view fallback) const;
    /// Empty optional if the attribute is missing.
    Result<std::optional<std::vector<std::int64_t>>> integers(std::string_view name) const;
    Result<std::shared_ptr<const OnnxGraph>> graph(std::string_view name) const;

    /// All attributes that are numbers or texts, as the file has them.
    Attributes writtenAttributes() const;

    /// Values of an input that must be known at import. @return NotSupported if they are not
    Result<std::shared_ptr<const TensorData>> values(std::size_t slot, std::string_view what);
    Result<std::vector<std::int64_t>> constantIntegers(std::size_t slot, std::string_view what);
    Result<std::vector<double>> constantReals(std::size_t slot, std::string_view what);
    /// The single number that an input is. @return InvalidInput if it has more or fewer
    Result<Number> constantNumber(std::size_t slot, std::string_view what);
    /// Attribute `name` before operator set `since`, input `slot` from then on; nothing if absent.
    Result<std::optional<std::vector<std::int64_t>>> attributeOrInput(
        std::string_view name, std::size_t slot, std::int64_t since);

    /// Counts a negative axis from the end. @return InvalidInput if it is outside -rank .. rank - 1
    Result<std::int64_t> axis(std::int64_t value, std::int64_t rank) const;
    /// Attribute "axis", resolved against input 0.
    Result<std::int64_t> axisAttribute(std::int64_t fallback) const;

    /// True if output `slot` is written down and something uses it.
    bool wants(std::size_t slot) const;

    /// Makes an operator with one output. `suffix` is added to the node's name; empty for its main operator.
    Result<TensorId> make(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes = {},
        std::optional<TensorType> declared = {}, std::string_view suffix = {});
    /// The same with any number of outputs.
    Result<std::vector<TensorId>> makeMany(OperatorKind kind, std::vector<TensorId> inputs,
        Attributes attributes = {}, std::vector<TensorType> declared = {}, std::string_view suffix = {});
    /// Makes an operator and gives its output to the node's output 0.
    Result<void> finish(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes = {},
        std::optional<TensorType> declared = {});
    /// Gives a tensor to output `slot`, through an Identity where the model returns it under another name.
    Result<void> bind(std::size_t slot, TensorId tensor);
    /// A known scalar of the given type.
    TensorId scalar(DataType type, double value);
    /// Reshapes unless the shape is that already.
    Result<TensorId> reshape(TensorId x, Shape shape, std::string_view suffix);

    /// Makes the operator that an operator file defines. Inputs at the end that the definition has and the
    /// node has not are absent.
    /// @param attributes  as the model has them
    Result<void> makeDefined(const std::shared_ptr<const OperatorDefinition> &definition,
        std::vector<TensorId> inputs, const Attributes &attributes);
    /// The places of what is not zero in a mask whose values are not known (chosen_writer.h).
    Result<TensorId> choosePlaces(TensorId mask);

    /// Keeps the node as an operator Planloom cannot look into. @return NotSupported with `reason` if the
    /// file does not declare its outputs' types
    Result<void> keepUnknown(std::string_view reason);
    /// Keeps the node to be looked at: nothing is known of what it makes. Outputs that are bound stay.
    /// @param why  see `OnnxBuilder::emitOpaque`
    void keepOpaque(const Error *why);

    Error invalid(std::string message, std::string advice = {}) const;
    Error unsupported(std::string message, std::string advice = {}) const;

private:
    Error attributeError(std::string_view name, std::string_view expected, const OnnxAttribute &found) const;

    const OnnxNode &m_node;
    std::vector<TensorId> m_inputs;
    OnnxBuilder &m_builder;
    OnnxScope &m_scope;
    std::string m_name; ///< Of its main operator.
    SourceNode m_source;
};

/// Attributes from a list: `attributesFrom({{"axis", axis}})`.
Attributes attributesFrom(std::initializer_list<std::pair<std::string_view, Attribute>> values);

/// A number as an attribute, exact where it is an integer.
inline Attribute numberAttribute(Number number)
{
    return number.floating ? Attribute(number.real) : Attribute(number.integer);
}

/// The type with this code of ONNX's TensorProto.DataType; nothing if Planloom has not that type.
std::optional<DataType> onnxElementType(std::int64_t code);

/// Makes one node canonical: adds its operators (or constants) and binds its outputs.
Result<void> importNode(OnnxNodeContext &context);

using OnnxHandler = Result<void> (*)(OnnxNodeContext &);
/// The handler of an operator type of ai.onnx, by file; null if it is not there.
OnnxHandler findAttentionHandler(std::string_view type);
OnnxHandler findControlHandler(std::string_view type);
OnnxHandler findElementwiseHandler(std::string_view type);
OnnxHandler findImageHandler(std::string_view type);
OnnxHandler findMovementHandler(std::string_view type);
OnnxHandler findNetworkHandler(std::string_view type);
OnnxHandler findProductHandler(std::string_view type);
OnnxHandler findQuantizeHandler(std::string_view type);
OnnxHandler findReductionHandler(std::string_view type);
OnnxHandler findSequenceHandler(std::string_view type);
OnnxHandler findShapeHandler(std::string_view type);
/// The same of the domain com.microsoft.
OnnxHandler findContributedHandler(std::string_view type);

} // namespace planloom
