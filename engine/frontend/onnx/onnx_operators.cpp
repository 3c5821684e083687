#include "engine/frontend/onnx/onnx_operators.h"

#include "engine/frontend/onnx/onnx_attributes.h"
#include "engine/frontend/onnx/onnx_external.h"
#include "engine/frontend/passes/mixture/chosen_writer.h"
#include "engine/graph/operator_files/custom_operator.h"

#include <algorithm>
#include <map>
#include <set>
#include <type_traits>
#include <utility>

namespace planloom {

namespace {

constexpr const char *kDescribeIt =
    "an operator file can describe it: MODEL.ops beside the model, see File > "
    "Operator Files or resources/operators.md";

/// "/transformer/h.3/attn/Gemm" -> "transformer.h.3.attn.Gemm".
std::string operatorNameOf(std::string name)
{
    name.erase(0, std::min(name.find_first_not_of('/'), name.size()));
    std::replace(name.begin(), name.end(), '/', '.');
    return name;
}

std::string kindOf(const OnnxAttribute &attribute)
{
    static constexpr const char *kKinds[] = {"nothing readable", "an integer", "a number", "a text",
        "integers", "numbers", "texts", "a tensor", "a graph", "a reference outside of a function"};
    return kKinds[attribute.index()];
}

} // namespace

Attributes attributesFrom(std::initializer_list<std::pair<std::string_view, Attribute>> values)
{
    Attributes attributes;
    for (const auto &[name, value] : values)
        attributes.set(name, value);
    return attributes;
}

OnnxNodeContext::OnnxNodeContext(
    const OnnxNode &node, std::vector<TensorId> inputs, OnnxBuilder &builder, OnnxScope &scope)
    : OnnxNodeContext(node, std::move(inputs), builder, scope, SourceNode{node.name, node.type})
{
}

OnnxNodeContext::OnnxNodeContext(const OnnxNode &node, std::vector<TensorId> inputs, OnnxBuilder &builder,
    OnnxScope &scope, SourceNode source)
    : m_node(node)
    , m_inputs(std::move(inputs))
    , m_builder(builder)
    , m_scope(scope)
    , m_name(operatorNameOf(node.name))
    , m_source(std::move(source))
{
    if (m_name.empty())
        m_name = builder.nameless(node.type);
}

Error OnnxNodeContext::invalid(std::string message, std::string advice) const
{
    return Error{ErrorCode::InvalidInput,
        "node '" + m_name + "' (" + m_source.type + "): " + std::move(message),
        advice.empty() ? "export the model anew" : std::move(advice), "node:" + m_name};
}

Error OnnxNodeContext::unsupported(std::string message, std::string advice) const
{
    Error error = invalid(std::move(message), std::move(advice));
    error.code = ErrorCode::NotSupported;
    return error;
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

Result<std::shared_ptr<const OnnxGraph>> OnnxNodeContext::graph(std::string_view name) const
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
    auto data = m_builder.valuesOf(m_inputs[slot]);
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

Result<std::int64_t> OnnxNodeContext::axis(std::int64_t value, std::int64_t rank) const
{
    if (value < -rank || value >= rank)
        return invalid("axis " + std::to_string(value) + " was given for a value of " + std::to_string(rank)
            + " dimensions");
    return value < 0 ? value + rank : value;
}

Result<std::int64_t> OnnxNodeContext::axisAttribute(std::int64_t fallback) const
{
    TRY_VOID(require(1));
    TRY(const std::int64_t value, integer("axis", fallback));
    return axis(value, rank(0));
}

bool OnnxNodeContext::wants(std::size_t slot) const
{
    return slot < m_node.outputs.size() && !m_node.outputs[slot].empty()
        && m_scope.isUsed(m_node.outputs[slot]);
}

Result<std::vector<TensorId>> OnnxNodeContext::makeMany(OperatorKind kind, std::vector<TensorId> inputs,
    Attributes attributes, std::vector<TensorType> declared, std::string_view suffix)
{
    const std::string name = suffix.empty() ? m_name : m_name + "_" + std::string(suffix);
    return m_builder.emit(
        name, m_source, kind, std::move(attributes), std::move(inputs), std::move(declared));
}

Result<TensorId> OnnxNodeContext::make(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes,
    std::optional<TensorType> declared, std::string_view suffix)
{
    std::vector<TensorType> types;
    if (declared)
        types.push_back(*std::move(declared));
    TRY(const auto outputs,
        makeMany(kind, std::move(inputs), std::move(attributes), std::move(types), suffix));
    return outputs.front();
}

Result<void> OnnxNodeContext::finish(OperatorKind kind, std::vector<TensorId> inputs, Attributes attributes,
    std::optional<TensorType> declared)
{
    TRY(const TensorId output, make(kind, std::move(inputs), std::move(attributes), std::move(declared)));
    return bind(0, output);
}

Result<void> OnnxNodeContext::bind(std::size_t slot, TensorId tensor)
{
    if (slot >= m_node.outputs.size() || m_node.outputs[slot].empty())
        return {};
    const std::string &value = m_node.outputs[slot];
    if (!m_builder.nameTensor(tensor, value) && m_scope.isOutput(value)) {
        TRY(const auto copy,
            m_builder.emit(m_name, m_source, OperatorKind::Identity, {}, {tensor}, {}, false));
        tensor = copy.front();
        m_builder.nameTensor(tensor, value);
    }
    return m_scope.bind(value, tensor);
}

TensorId OnnxNodeContext::scalar(DataType type, double value)
{
    return m_builder.addConstant(scalarTensor(type, value));
}

Result<TensorId> OnnxNodeContext::reshape(TensorId x, Shape shape, std::string_view suffix)
{
    const TensorType type = m_builder.typeOf(x);
    if (type.shape == shape)
        return x;
    return make(OperatorKind::Reshape, {x}, {}, TensorType{type.dataType, std::move(shape)}, suffix);
}

Result<TensorId> OnnxNodeContext::choosePlaces(TensorId mask)
{
    return planloom::choosePlaces(m_builder, m_name, m_source, mask);
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

Result<void> OnnxNodeContext::makeDefined(const std::shared_ptr<const OperatorDefinition> &definition,
    std::vector<TensorId> inputs, const Attributes &attributes)
{
    const std::string place = definition->file + ", line " + std::to_string(definition->line);
    if (inputs.size() > definition->inputs.size() || m_node.outputs.size() > definition->outputs.size())
        return invalid("it has " + std::to_string(inputs.size()) + " inputs and "
                + std::to_string(m_node.outputs.size()) + " outputs, where " + place + ", says "
                + std::to_string(definition->inputs.size()) + " and "
                + std::to_string(definition->outputs.size()),
            "change the lines 'inputs' and 'outputs' of the operator file");
    inputs.resize(definition->inputs.size());
    auto completed = completedAttributes(definition, attributes);
    if (!completed)
        return invalid(completed.error().message, completed.error().advice);
    m_builder.note("operators of type " + toString(definition->name) + " are as " + place + ", says");
    TRY(const auto outputs, makeMany(OperatorKind::Custom, std::move(inputs), *std::move(completed)));
    for (std::size_t slot = 0; slot < m_node.outputs.size(); ++slot)
        TRY_VOID(bind(slot, outputs[slot]));
    return {};
}

Result<void> OnnxNodeContext::keepUnknown(std::string_view reason)
{
    std::vector<TensorType> types;
    std::size_t count = m_node.outputs.size();
    while (count > 0 && !wants(count - 1))
        --count;
    if (count == 0)
        return {}; // nothing uses it
    for (std::size_t slot = 0; slot < count; ++slot) {
        const OnnxValue *declared = m_scope.declared(m_node.outputs[slot]);
        TensorType type;
        bool complete = declared != nullptr && declared->dataType && declared->shape;
        if (complete) {
            type.dataType = *declared->dataType;
            for (const OnnxDimension &dimension : *declared->shape) {
                const auto given = m_builder.options().dimensions.find(dimension.symbol);
                if (dimension.size && *dimension.size > 0)
                    type.shape.push_back(*dimension.size);
                else if (!dimension.size && given != m_builder.options().dimensions.end())
                    type.shape.push_back(given->second);
                else
                    complete = false;
            }
        }
        if (!complete)
            return unsupported(std::string(reason) + ", and the file does not say what type '"
                    + m_node.outputs[slot] + "' has",
                std::string(kDescribeIt)
                    + ", or add value_info with static shapes to the model "
                      "(onnx.shape_inference.infer_shapes)");
        types.push_back(std::move(type));
    }
    Attributes attributes = writtenAttributes();
    attributes.set("onnx_type", m_node.domain.empty() ? m_node.type : m_node.domain + "." + m_node.type);
    m_builder.note("operators of type " + m_node.type
        + " can be planned and simulated, not run: " + std::string(reason) + "; " + kDescribeIt);
    TRY(const auto outputs,
        makeMany(OperatorKind::Unknown, m_inputs, std::move(attributes), std::move(types)));
    for (std::size_t slot = 0; slot < count; ++slot)
        TRY_VOID(bind(slot, outputs[slot]));
    return {};
}

void OnnxNodeContext::keepOpaque(const Error *why)
{
    const auto outputs = m_builder.emitOpaque(m_name, m_source, m_inputs, m_node.outputs.size(), why);
    for (std::size_t slot = 0; slot < outputs.size(); ++slot) {
        if (m_node.outputs[slot].empty())
            continue;
        m_builder.nameTensor(outputs[slot], m_node.outputs[slot]);
        static_cast<void>(m_scope.bind(m_node.outputs[slot], outputs[slot]));
    }
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
    if (const auto &files = context.builder().options().operators) {
        if (const auto definition = files->find(node.domain, node.type))
            return context.makeDefined(definition, context.inputs(), context.writtenAttributes());
    }
    if (!node.domain.empty()) {
        const OnnxHandler handler =
            node.domain == "com.microsoft" ? findContributedHandler(node.type) : nullptr;
        if (handler != nullptr)
            return importByHandler(context, handler);
        return context.keepUnknown("Planloom does not know operators of the domain '" + node.domain + "'");
    }
    static const std::set<std::string, std::less<>> kNotTensors = {
        "SequenceMap", "Optional", "OptionalGetElement", "OptionalHasElement"};
    if (kNotTensors.count(node.type) != 0)
        return context.unsupported("it works on optional values, or repeats a graph; Planloom plans graphs "
                                   "of tensors",
            "export the model without such control flow");
    for (const auto find : {findElementwiseHandler, findProductHandler, findNetworkHandler,
             findReductionHandler, findMovementHandler, findShapeHandler, findAttentionHandler,
             findImageHandler, findQuantizeHandler, findSequenceHandler, findControlHandler}) {
        if (const OnnxHandler handler = find(node.type))
            return importByHandler(context, handler);
    }
    return context.keepUnknown("Planloom does not know the operator " + node.type);
}

} // namespace planloom
