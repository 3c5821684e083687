#include "engine/frontend/onnx/onnx_inputs.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <unordered_set>

namespace planloom {

namespace {

/// What an open dimension is called: as in the file, or by its place.
std::string symbolOf(const OnnxValue &input, std::size_t axis)
{
    const std::string &symbol = (*input.shape)[axis].symbol;
    return symbol.empty() ? input.name + "." + std::to_string(axis) : symbol;
}

} // namespace

OpenDimensions openDimensionsOf(const OnnxGraph &graph)
{
    std::unordered_set<std::string_view> stored;
    for (const StoredTensor &tensor : graph.initializers)
        stored.insert(tensor.name);
    OpenDimensions open;
    for (const OnnxValue &input : graph.inputs) {
        if (!input.shape || !input.dataType || stored.count(input.name) != 0)
            continue;
        std::vector<std::vector<std::string>> names(input.shape->size());
        for (std::size_t axis = 0; axis < names.size(); ++axis) {
            if (!(*input.shape)[axis].size)
                names[axis].push_back(symbolOf(input, axis));
        }
        open.addInput(input.name, *input.dataType, names, std::vector<bool>(names.size(), true));
    }
    return open;
}

Result<void> OnnxInputs::add()
{
    TRY_VOID(addInputs());
    return addInitializers();
}

std::vector<std::string> OnnxInputs::notes() const
{
    std::vector<std::string> notes;
    for (const auto &[file, count] : m_missing)
        notes.push_back(std::to_string(count) + " tensors lie in '" + file
            + "', which is missing or too short: the model can be planned, a run draws them from its seed "
              "(on the command line with --random-weights)");
    if (!m_nonFinite.empty())
        notes.push_back("'" + m_nonFinite.front() + "'"
            + (m_nonFinite.size() > 1
                    ? " and " + std::to_string(m_nonFinite.size() - 1) + " more tensors hold"
                    : " holds")
            + " values that are NaN or infinite");
    return notes;
}

Result<TensorType> OnnxInputs::typeOfInput(const OnnxValue &input)
{
    if (!input.dataType)
        return error(ErrorCode::NotSupported,
            "the input '" + input.name + "' is " + input.reason + ", which Planloom cannot take",
            "export the model with tensors of floats or integers as inputs");
    if (!input.shape)
        return error(ErrorCode::NotSupported, "the input '" + input.name + "' does not say its shape",
            "export the model with the shapes of its inputs");
    TensorType type{*input.dataType, {}};
    for (std::size_t axis = 0; axis < input.shape->size(); ++axis) {
        const OnnxDimension &dimension = (*input.shape)[axis];
        const std::int64_t size =
            dimension.size ? *dimension.size : m_sizes[symbolOf(input, axis)]; // `addInputs` has chosen it
        if (size < 1)
            return error(ErrorCode::InvalidInput,
                "dimension " + std::to_string(axis) + " of the input '" + input.name + "' has the size "
                    + std::to_string(size) + ", where at least 1 was expected",
                "export the model anew");
        type.shape.push_back(size);
    }
    if (!checkedByteCount(type))
        return error(ErrorCode::InvalidInput,
            "the input '" + input.name + "' has the shape " + toString(type.shape)
                + ", larger than 2^62 bytes",
            "export the model anew");
    return type;
}

void OnnxInputs::noteStored(const StoredTensor &tensor)
{
    if (tensor.hasNonFinite)
        m_nonFinite.push_back(tensor.name);
    if (tensor.external && !tensor.external->present)
        ++m_missing[std::filesystem::path(tensor.external->path).filename().string()];
}

Result<void> OnnxInputs::addInputs()
{
    std::unordered_map<std::string, std::size_t> stored;
    for (std::size_t i = 0; i < m_graph.initializers.size(); ++i)
        stored.emplace(m_graph.initializers[i].name, i);
    const auto parameters = parameterInputs(m_graph, m_nodes.uses(), m_rules, m_writer.options().asInputs);
    std::vector<std::string> taken;
    for (const OnnxValue &input : m_graph.inputs) {
        if (stored.count(input.name) != 0)
            continue; // an initializer listed as an input, as old files do
        if (input.name.empty())
            return error(ErrorCode::InvalidInput, "an input has no name", "export the model anew");
        TRY_VOID(addInput(input, parameters));
        if (const auto found = parameters.find(input.name);
            found != parameters.end() && !found->second.byHand)
            taken.push_back(input.name);
    }
    if (!taken.empty())
        m_writer.note(std::to_string(taken.size())
            + " inputs were taken as parameters and buffers, as if the file had been exported without them: '"
            + taken.front() + "'" + (taken.size() > 1 ? ", ..." : "")
            + "; what is an input all the same is said by --as-input NAME");
    return {};
}

Result<void> OnnxInputs::addInput(
    const OnnxValue &input, const std::unordered_map<std::string, Classification> &parameters)
{
    const auto known = typeOfInput(input);
    if (!known && m_writer.maySkip(known.error()))
        return m_nodes.bind(input.name, m_writer.addOpaqueInput(input.name, known.error()));
    TRY(const TensorType type, known);
    const auto parameter = parameters.find(input.name);
    if (parameter == parameters.end()) {
        const TensorId id = m_writer.addInput(input.name, type);
        if (m_writer.options().asInputs.count(input.name) != 0)
            m_writer.classify(
                id, {.as = StoredAs::Constant, .why = "chosen by hand", .byHand = true}, input.name);
        return m_nodes.bind(input.name, id);
    }
    const TensorId id =
        m_writer.addStored(StoredTensor{input.name, type, nullptr, {}, false}, roleOf(parameter->second.as));
    m_writer.classify(id, parameter->second, input.name);
    return m_nodes.bind(input.name, id);
}

Result<void> OnnxInputs::addInitializers()
{
    std::unordered_set<std::string> taken; // names of the file's values, and those given here
    for (const StoredTensor &tensor : m_graph.initializers)
        taken.insert(tensor.name);
    for (const OnnxNode &node : m_graph.nodes)
        taken.insert(node.outputs.begin(), node.outputs.end());
    std::vector<std::string> original;
    for (StoredTensor &tensor : m_graph.initializers) {
        if (tensor.name.empty())
            return error(ErrorCode::InvalidInput, "an initializer has no name", "export the model anew");
        const std::string name = tensor.name;
        if (m_nodes.uses().isUsed(name))
            noteStored(tensor);
        const std::string wanted = m_rules.nameOf(tensor);
        std::string own = wanted;
        for (int number = 2; own != name && !taken.insert(own).second; ++number)
            own = wanted + "#" + std::to_string(number);
        original.push_back(wanted);
        TRY_VOID(addInitializer(tensor, own));
    }
    return checkStoredAs(original);
}

/// @param own  the name it has in the module
Result<void> OnnxInputs::addInitializer(StoredTensor &tensor, const std::string &own)
{
    const std::string name = tensor.name;
    if (m_writer.options().asInputs.count(name) != 0 || m_writer.options().asInputs.count(own) != 0) {
        const TensorId id = m_writer.addInput(name, tensor.type);
        m_writer.classify(id, {.as = StoredAs::Constant, .why = "chosen by hand", .byHand = true}, name);
        return m_nodes.bind(name, id);
    }
    const Classification classification = m_rules.classify(tensor);
    // The file's structs are not needed any more: each tensor is held once.
    const TensorId id = m_writer.addStored(std::move(tensor), roleOf(classification.as));
    tensor.name = name;
    m_writer.classify(id, classification, own);
    return m_nodes.bind(name, id);
}

/// What a person decided must be about something.
Result<void> OnnxInputs::checkStoredAs(const std::vector<std::string> &original) const
{
    std::set<std::string> chosen = m_writer.options().asInputs;
    for (const auto &[name, as] : m_writer.options().storedAs)
        chosen.insert(name);
    for (const std::string &name : chosen) {
        const auto named = [&wanted = name](const auto &stored) { return stored.name == wanted; };
        const auto makes = [&wanted = name](const OnnxNode &node) {
            return (node.type == "Constant" || node.type == "ConstantOfShape") && !node.outputs.empty()
                && node.outputs.front() == wanted;
        };
        const bool isNode = std::any_of(m_graph.nodes.begin(), m_graph.nodes.end(), makes);
        if (isNode && m_writer.options().asInputs.count(name) != 0)
            return error(ErrorCode::NotSupported, "'" + name + "' is the value of a node, which is no input",
                "name a tensor that the file stores, or an input");
        if (isNode || std::any_of(m_graph.initializers.begin(), m_graph.initializers.end(), named)
            || std::any_of(m_graph.inputs.begin(), m_graph.inputs.end(), named)
            || std::find(original.begin(), original.end(), name) != original.end())
            continue;
        return error(ErrorCode::NotFound, "the model stores no tensor called '" + name + "'",
            "info --json lists what it stores under \"stored\"");
    }
    return {};
}

} // namespace planloom
