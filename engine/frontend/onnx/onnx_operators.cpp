#include "engine/frontend/onnx/onnx_operators.h"

#include "engine/frontend/onnx/onnx_attributes.h"
#include "engine/frontend/writer/tensor_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

namespace planloom {

namespace {

std::string kindOf(const OnnxAttribute &attribute)
{
    static constexpr const char *kKinds[] = {"nothing readable", "an integer", "a number", "a text",
        "integers", "numbers", "texts", "a tensor", "a graph", "a reference outside of a function"};
    return kKinds[attribute.index()];
}

} // namespace

OnnxNodeContext::OnnxNodeContext(
    const OnnxNode &node, std::vector<TensorId> inputs, GraphWriter &graph, OnnxScope &scope)
    : NodeWriter(graph, scope, SourceNode{node.name, node.type}, node.outputs)
    , m_node(node)
    , m_inputs(std::move(inputs))
    , m_scope(scope)
{
}

Error OnnxNodeContext::attributeError(
    std::string_view name, std::string_view expected, const OnnxAttribute &found) const
{
    if (const auto *unreadable = std::get_if<OnnxUnreadable>(&found))
        return unsupported("attribute '" + std::string(name) + "' cannot be read: " + unreadable->reason);
    return invalid("attribute '" + std::string(name) + "' should be " + std::string(expected) + ", but is "
        + kindOf(found));
}

Result<void> OnnxNodeContext::require(std::size_t count) const
{
    for (std::size_t slot = 0; slot < count; ++slot) {
        if (!has(slot))
            return invalid("input " + std::to_string(slot) + " is missing");
    }
    return {};
}

Result<std::int64_t> OnnxNodeContext::integer(std::string_view name, std::int64_t fallback) const
{
    const auto found = m_node.attributes.find(name);
    if (found == m_node.attributes.end())
        return fallback;
    if (const auto *value = std::get_if<std::int64_t>(&found->second))
        return *value;
    return attributeError(name, "an integer", found->second);
}

Result<double> OnnxNodeContext::real(std::string_view name, double fallback) const
{
    const auto found = m_node.attributes.find(name);
    if (found == m_node.attributes.end())
        return fallback;
    if (const auto *value = std::get_if<float>(&found->second))
        return static_cast<double>(*value);
    return attributeError(name, "a number", found->second);
}

Result<std::string> OnnxNodeContext::text(std::string_view name, std::string_view fallback) const
{
    const auto found = m_node.attributes.find(name);
    if (found == m_node.attributes.end())
        return std::string(fallback);
    if (const auto *value = std::get_if<std::string>(&found->second))
        return *value;
    return attributeError(name, "a text", found->second);
}

Result<std::optional<std::vector<std::int64_t>>> OnnxNodeContext::integers(std::string_view name) const
{
    const auto found = m_node.attributes.find(name);
    if (found == m_node.attributes.end())
        return std::optional<std::vector<std::int64_t>>{};
    if (const auto *value = std::get_if<std::vector<std::int64_t>>(&found->second))
        return std::optional(*value);
    return attributeError(name, "integers", found->second);
}

Result<std::shared_ptr<const OnnxGraph>> OnnxNodeContext::subgraph(std::string_view name) const
{
    const auto found = m_node.attributes.find(name);
    if (found == m_node.attributes.end())
        return invalid("attribute '" + std::string(name) + "' is missing");
    if (const auto *value = std::get_if<std::shared_ptr<const OnnxGraph>>(&found->second))
        return *value;
    return attributeError(name, "a graph", found->second);
}

Result<std::shared_ptr<const TensorData>> OnnxNodeContext::values(std::size_t slot, std::string_view what)
{
    if (!has(slot))
        return invalid("input " + std::to_string(slot) + " (" + std::string(what) + ") is missing");
    auto data = graph().valuesOf(m_inputs[slot]);
    if (!data)
        return unsupported("input " + std::to_string(slot) + " (" + std::string(what)
                + ") depends on the values of '" + m_node.inputs[slot]
                + "', which are not known before a run",
            "export the model with static shapes");
    return data;
}

Result<std::vector<std::int64_t>> OnnxNodeContext::constantIntegers(std::size_t slot, std::string_view what)
{
    TRY(const auto data, values(slot, what));
    if (data->type.shape.size() > 1 || isFloating(data->type.dataType))
        return invalid("input " + std::to_string(slot) + " (" + std::string(what) + ") is "
            + nameOf(data->type.dataType) + toString(data->type.shape)
            + ", where a list of integers was expected");
    return integersOf(*data);
}

Result<std::vector<double>> OnnxNodeContext::constantReals(std::size_t slot, std::string_view what)
{
    TRY(const auto data, values(slot, what));
    if (data->type.shape.size() > 1)
        return invalid("input " + std::to_string(slot) + " (" + std::string(what) + ") has the shape "
            + toString(data->type.shape) + ", where a list was expected");
    return realsOf(*data);
}

Result<Number> OnnxNodeContext::constantNumber(std::size_t slot, std::string_view what)
{
    TRY(const auto data, values(slot, what));
    if (elementCount(data->type.shape) != 1)
        return invalid("its " + std::string(what) + " has " + std::to_string(elementCount(data->type.shape))
            + " elements, where one was expected");
    return readNumber(data->type.dataType, data->bytes.data(), 0);
}

Result<std::optional<std::vector<std::int64_t>>> OnnxNodeContext::attributeOrInput(
    std::string_view name, std::size_t slot, std::int64_t since)
{
    if (opset() < since || (hasAttribute(name) && !has(slot)))
        return integers(name);
    if (!has(slot))
        return std::optional<std::vector<std::int64_t>>{};
    TRY(auto list, constantIntegers(slot, name));
    return std::optional(std::move(list));
}

Result<std::int64_t> OnnxNodeContext::axisAttribute(std::int64_t fallback) const
{
    TRY_VOID(require(1));
    TRY(const std::int64_t value, integer("axis", fallback));
    return axis(value, rank(0));
}

Result<void> OnnxNodeContext::finish(Result<TensorId> made)
{
    TRY(const TensorId output, made);
    return bind(0, output);
}

Result<void> OnnxNodeContext::finish(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes,
    std::optional<TensorType> declared)
{
    return finish(make(kind, std::move(inputs), std::move(attributes), std::move(declared)));
}

Result<void> OnnxNodeContext::finishMany(Result<std::vector<TensorId>> made)
{
    TRY(const auto outputs, made);
    return bindAll(outputs);
}

Result<void> OnnxNodeContext::finishMany(
    OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes)
{
    return finishMany(makeMany(kind, std::move(inputs), std::move(attributes)));
}

Attributes OnnxNodeContext::writtenAttributes() const
{
    Attributes attributes;
    for (const auto &[name, attribute] : m_node.attributes) {
        std::visit(
            [&, &key = name](const auto &value) {
                using Value = std::decay_t<decltype(value)>;
                if constexpr (std::is_same_v<Value, float>)
                    attributes.set(key, static_cast<double>(value));
                else if constexpr (std::is_same_v<Value, std::vector<float>>)
                    attributes.set(key, std::vector<double>(value.begin(), value.end()));
                else if constexpr (std::is_constructible_v<Attribute, Value>)
                    attributes.set(key, value);
            },
            attribute);
    }
    return attributes;
}

Result<void> OnnxNodeContext::keepUnknown(std::string_view reason)
{
    const std::string type = m_node.domain.empty() ? m_node.type : m_node.domain + "." + m_node.type;
    return NodeWriter::keepUnknown(type, m_inputs, writtenAttributes(), reason);
}

std::optional<DataType> onnxElementType(std::int64_t code)
{
    static const std::map<std::int64_t, DataType> kTypes = {{1, DataType::Float32}, {2, DataType::UInt8},
        {3, DataType::Int8}, {5, DataType::Int16}, {6, DataType::Int32}, {7, DataType::Int64},
        {9, DataType::Bool}, {10, DataType::Float16}, {11, DataType::Float64}, {16, DataType::BFloat16}};
    const auto found = kTypes.find(code);
    return found == kTypes.end() ? std::nullopt : std::optional(found->second);
}

namespace {

/// Calls a handler, unless it would not carry out what the node's attributes say.
Result<void> importByHandler(OnnxNodeContext &context, OnnxHandler handler)
{
    if (std::string problem = attributeProblem(context.node(), context.opset()); !problem.empty())
        return context.unsupported(std::move(problem), kDescribeIt);
    return handler(context);
}

} // namespace

Result<void> importNode(OnnxNodeContext &context)
{
    const OnnxNode &node = context.node();
    if (const auto &files = context.graph().options().operators) {
        if (const auto definition = files->find(node.domain, node.type))
            return context.makeDefined(definition, context.inputs(), context.writtenAttributes());
    }
    if (!node.domain.empty()) {
        if (node.domain == "com.microsoft" && onnxContributedHandlers().contains(node.type))
            return importByHandler(context, onnxContributedHandlers().find(node.type)->second);
        return context.keepUnknown("Planloom does not know operators of the domain '" + node.domain + "'");
    }
    static const std::set<std::string, std::less<>> kNotTensors = {
        "SequenceMap", "Optional", "OptionalGetElement", "OptionalHasElement"};
    if (kNotTensors.count(node.type) != 0)
        return context.unsupported("it works on optional values, or repeats a graph; Planloom plans graphs "
                                   "of tensors",
            "export the model without such control flow");
    for (const auto handlers : {onnxElementwiseHandlers, onnxProductHandlers, onnxNetworkHandlers,
             onnxReductionHandlers, onnxMovementHandlers, onnxShapeHandlers, onnxAttentionHandlers,
             onnxImageHandlers, onnxQuantizeHandlers, onnxSequenceHandlers, onnxControlHandlers}) {
        if (const auto found = handlers().find(node.type); found != handlers().end())
            return importByHandler(context, found->second);
    }
    return context.keepUnknown("Planloom does not know the operator " + node.type);
}

} // namespace planloom
