#pragma once

#include "engine/frontend/writer/graph_writer.h"
#include "engine/frontend/writer/tensor_values.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// The values of a model file among which a node stands; implemented by the importers of each format.
class ValueScope
{
public:
    virtual ~ValueScope() = default;
    /// True if something reads the value.
    virtual bool isUsed(const std::string &value) const = 0;
    /// True if the model returns the value.
    virtual bool isOutput(const std::string &value) const = 0;
    /// The type that the file declares of a value; nothing if it does not say all of it.
    virtual std::optional<TensorType> declaredType(const std::string &value) const = 0;
    /// Gives a value of the file a tensor.
    virtual Result<void> bind(const std::string &value, TensorId tensor) = 0;
};

/// What to do about an operator that nothing is known of.
inline constexpr const char *kDescribeIt =
    "an operator file can describe it: MODEL.ops beside the model, see File > "
    "Operator Files or resources/operators.md";

/// Writes the operators that one node of a model file becomes, whatever the format: it names them, says where
/// they come from, gives their outputs to the node's results, and reports what is wrong in the node's name.
class NodeWriter
{
public:
    /// @param source   how the file calls the node, and its type
    /// @param results  the names of the values that it makes; empty for those that nothing can read
    NodeWriter(
        GraphWriter &graph, ValueScope &scope, SourceNode source, std::vector<std::string> results = {});

    /// Writes a part of the same node: its operators have `suffix` behind their name, and its results are
    /// the part's alone (`bound`). The node's own names for an empty suffix.
    NodeWriter part(std::string_view suffix, std::size_t results = 0) const;
    /// What result `slot` of such a part is called.
    std::string partName(std::string_view suffix, std::size_t slot) const;

    GraphWriter &graph() const { return m_graph; }
    const SourceNode &source() const { return m_source; }
    const std::string &name() const { return m_name; }
    const std::vector<std::string> &results() const { return m_results; }
    const TensorType &typeOf(TensorId id) const { return m_graph.typeOf(id); }
    const Shape &shapeOf(TensorId id) const { return typeOf(id).shape; }
    std::int64_t rankOf(TensorId id) const { return static_cast<std::int64_t>(shapeOf(id).size()); }

    /// True if result `slot` is written down and something uses it.
    bool wants(std::size_t slot) const;

    /// The type that the file declares of result `slot`, if it does.
    std::optional<TensorType> declaredType(std::size_t slot) const;

    /// Makes an operator with one output. `suffix` is added to the node's name; empty for its main operator.
    Result<TensorId> make(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes = {},
        std::optional<TensorType> declared = {}, std::string_view suffix = {});
    /// The same with any number of outputs.
    Result<std::vector<TensorId>> makeMany(OperatorKind kind, std::vector<TensorId> inputs,
        Attributes attributes = {}, std::vector<TensorType> declared = {}, std::string_view suffix = {});
    /// Gives a tensor to result `slot`, through an Identity where the model returns it under another name.
    Result<void> bind(std::size_t slot, TensorId tensor);
    /// The same, from result 0 on.
    Result<void> bindAll(const std::vector<TensorId> &tensors);
    /// The results of a part, by slot.
    const std::map<std::size_t, TensorId> &bound() const { return m_bound; }

    /// A known scalar of the given type.
    TensorId scalar(DataType type, double value) { return m_graph.addConstant(scalarTensor(type, value)); }
    /// Reshapes unless the shape is that already.
    Result<TensorId> reshape(TensorId x, Shape shape, std::string_view suffix);

    /// Makes the operator that an operator file defines. Inputs at the end that the definition has and the
    /// node has not are absent.
    /// @param attributes  as the model has them
    Result<void> makeDefined(const std::shared_ptr<const OperatorDefinition> &definition,
        std::vector<TensorId> inputs, const Attributes &attributes);
    /// Keeps the node as an operator Planloom cannot look into.
    /// @param type  how people know it: "my.ops.Swish"
    /// @return NotSupported with `reason` if the file does not declare its results' types
    Result<void> keepUnknown(const std::string &type, std::vector<TensorId> inputs, Attributes attributes,
        std::string_view reason);
    /// Keeps the node to be looked at: nothing is known of what it makes. Results that are bound stay.
    /// @param why  see `GraphWriter::emitOpaque`
    void keepOpaque(std::vector<TensorId> inputs, const Error *why);

    /// Counts a negative axis from the end. @return InvalidInput if it is outside -rank .. rank - 1
    Result<std::int64_t> axis(std::int64_t value, std::int64_t rank) const;
    /// @return InvalidInput unless all of them are there
    Result<void> require(const std::vector<TensorId> &inputs) const;

    Error invalid(std::string message, std::string advice = {}) const;
    Error unsupported(std::string message, std::string advice = {}) const;

private:
    GraphWriter &m_graph;
    ValueScope *m_scope = nullptr; ///< Null for a part.
    std::string m_name; ///< Of its main operator.
    SourceNode m_source;
    std::vector<std::string> m_results;
    std::map<std::size_t, TensorId> m_bound{};
};

} // namespace planloom
