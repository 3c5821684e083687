#pragma once

#include "engine/base/result.h"
#include "engine/frontend/onnx/onnx_model.h"
#include "engine/frontend/writer/node_writer.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

/// What a node sees of the graph it stands in; implemented by the importer.
class OnnxScope : public ValueScope
{
public:
    /// Of ai.onnx.
    virtual std::int64_t opset() const = 0;
    /// What the value of a node is, where it is stored as initializers are (import_onnx.h, "What is a
    /// weight"). @param value  with the name of the value in the file
    virtual std::optional<Classification> storedByNode(const StoredTensor &value) const = 0;
    /// Imports `graph` in place: its inputs are bound to `inputs`, and its outputs returned.
    virtual Result<std::vector<TensorId>> inlineGraph(
        const OnnxGraph &graph, const std::vector<TensorId> &inputs) = 0;
    /// The tensors of a value that is a sequence of them; null if it is none.
    virtual const std::vector<TensorId> *findSequence(const std::string &value) const = 0;
    /// Says that a value of the file is a sequence of tensors.
    virtual Result<void> bindSequence(const std::string &value, std::vector<TensorId> sequence) = 0;
};

/// One node while it is made canonical: the writer of its operators, with access to the node's inputs and
/// attributes that reports what is wrong in its name.
class OnnxNodeContext : public NodeWriter
{
public:
    OnnxNodeContext(const OnnxNode &node, std::vector<TensorId> inputs, GraphWriter &graph, OnnxScope &scope);

    const OnnxNode &node() const { return m_node; }
    OnnxScope &scope() { return m_scope; }
    std::int64_t opset() const { return m_scope.opset(); }

    /// Number of inputs written down, absent ones included.
    std::size_t inputCount() const { return m_inputs.size(); }
    bool has(std::size_t slot) const { return slot < m_inputs.size() && m_inputs[slot].valid(); }
    /// Invalid if absent.
    TensorId input(std::size_t slot) const { return slot < m_inputs.size() ? m_inputs[slot] : TensorId{}; }
    const std::vector<TensorId> &inputs() const { return m_inputs; }
    const TensorType &type(std::size_t slot) const { return typeOf(m_inputs[slot]); }
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
    Result<std::shared_ptr<const OnnxGraph>> subgraph(std::string_view name) const;

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

    /// Attribute "axis", resolved against input 0.
    Result<std::int64_t> axisAttribute(std::int64_t fallback) const;

    /// Gives output 0 its tensor, if there is one.
    Result<void> finish(Result<TensorId> made);
    /// Makes an operator and gives its output to the node's output 0.
    Result<void> finish(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes = {},
        std::optional<TensorType> declared = {});
    /// Gives the outputs their tensors, if there are any.
    Result<void> finishMany(Result<std::vector<TensorId>> made);
    /// Makes an operator with as many outputs as its kind has, which become the node's.
    Result<void> finishMany(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes);

    /// Keeps the node as an operator Planloom cannot look into. @return as `NodeWriter::keepUnknown`
    Result<void> keepUnknown(std::string_view reason);

private:
    Error attributeError(std::string_view name, std::string_view expected, const OnnxAttribute &found) const;

    const OnnxNode &m_node;
    std::vector<TensorId> m_inputs;
    OnnxScope &m_scope;
};

/// The type with this code of ONNX's TensorProto.DataType; nothing if Planloom has not that type.
std::optional<DataType> onnxElementType(std::int64_t code);

/// Makes one node canonical: adds its operators (or constants) and binds its outputs.
Result<void> importNode(OnnxNodeContext &context);

using OnnxHandler = Result<void> (*)(OnnxNodeContext &);
/// Handlers by operator type of ai.onnx, by file.
using OnnxHandlers = std::map<std::string, OnnxHandler, std::less<>>;
const OnnxHandlers &onnxAttentionHandlers();
const OnnxHandlers &onnxControlHandlers();
const OnnxHandlers &onnxElementwiseHandlers();
const OnnxHandlers &onnxImageHandlers();
const OnnxHandlers &onnxMovementHandlers();
const OnnxHandlers &onnxNetworkHandlers();
const OnnxHandlers &onnxProductHandlers();
const OnnxHandlers &onnxQuantizeHandlers();
const OnnxHandlers &onnxReductionHandlers();
const OnnxHandlers &onnxSequenceHandlers();
const OnnxHandlers &onnxShapeHandlers();
/// The same of the domain com.microsoft.
const OnnxHandlers &onnxContributedHandlers();

/// The handler of an operator whose first `count` inputs must be there.
template<std::size_t count, OnnxHandler handler> Result<void> needs(OnnxNodeContext &context)
{
    TRY_VOID(context.require(count));
    return handler(context);
}

} // namespace planloom
