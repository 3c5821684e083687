#include "engine/frontend/onnx/parameters/onnx_folded.h"

#include "engine/frontend/onnx/import_onnx.h"
#include "engine/frontend/onnx/parameters/folded_steps.h"
#include "engine/frontend/onnx/parameters/onnx_parameters.h"
#include "engine/frontend/passes/mixture/repeated_rows.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace planloom {

namespace {

bool isAll(const StoredTensor &tensor, bool (*predicate)(float))
{
    const std::size_t count = tensor.data->bytes.size() / sizeof(float);
    for (std::size_t i = 0; i < count; ++i) {
        float value = 0;
        std::memcpy(&value, tensor.data->bytes.data() + i * sizeof(float), sizeof value);
        if (!predicate(value))
            return false;
    }
    return count > 0;
}

bool isUniformTensor(const StoredTensor &tensor)
{
    const std::vector<std::byte> &bytes = tensor.data->bytes;
    const auto size = static_cast<std::size_t>(sizeOf(tensor.type.dataType));
    return bytes.size() <= size || std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0;
}

/// Rewrites initializers of a graph as nodes that make them from others.
class Restorer
{
public:
    Restorer(OnnxGraph &graph, const std::map<std::string, StoredAs> &byHand)
        : m_graph(graph)
        , m_uses(graph)
        , m_rules(graph, m_uses, byHand)
        , m_byHand(byHand)
    {
        for (const StoredTensor &tensor : graph.initializers)
            m_taken.insert(tensor.name);
        for (const OnnxValue &input : graph.inputs)
            m_taken.insert(input.name);
        for (const OnnxNode &node : graph.nodes)
            m_taken.insert(node.outputs.begin(), node.outputs.end());
    }

    void run();

    std::vector<std::string> joined{};
    std::vector<std::string> computed{};
    std::vector<std::string> repeated{};

private:
    bool splitJoined(const StoredTensor &tensor, const FoldedSteps &steps);
    bool invert(const StoredTensor &tensor, const FoldedSteps &steps);
    bool restore(const StoredTensor &stored);
    bool takeRows(const StoredTensor &tensor, const std::string &parameter);
    void readRows(
        RepeatedRows rows, const TensorType &type, const std::string &parameter, const std::string &output);
    std::string addPart(const std::string &wanted, TensorType type, std::vector<std::byte> bytes,
        const std::vector<std::string> &parameters);
    std::string addNumbers(const std::string &wanted, const std::vector<std::int64_t> &numbers, Shape shape);
    std::string uniqueName(const std::string &wanted);
    OnnxNode &addNode(std::string type, std::vector<std::string> inputs, const std::string &output);

    OnnxGraph &m_graph;
    OnnxUses m_uses;
    ParameterRules m_rules;
    const std::map<std::string, StoredAs> &m_byHand;
    std::set<std::string> m_taken{};
    std::vector<StoredTensor> m_tensors{};
    std::vector<OnnxNode> m_nodes{};
};

std::string Restorer::uniqueName(const std::string &wanted)
{
    std::string name = wanted;
    for (int number = 2; !m_taken.insert(name).second; ++number)
        name = wanted + "#" + std::to_string(number);
    return name;
}

std::string Restorer::addPart(const std::string &wanted, TensorType type, std::vector<std::byte> bytes,
    const std::vector<std::string> &parameters)
{
    StoredTensor part;
    part.name = uniqueName(wanted);
    part.type = type;
    part.data = std::make_shared<const TensorData>(TensorData{std::move(type), std::move(bytes)});
    OnnxProvenance &provenance = m_graph.provenance[part.name];
    provenance.kind = parameters.empty() ? OnnxSpecKind::ConstantTensor : OnnxSpecKind::Parameter;
    provenance.foldedFrom = parameters;
    m_tensors.push_back(std::move(part));
    return m_tensors.back().name;
}

std::string Restorer::addNumbers(
    const std::string &wanted, const std::vector<std::int64_t> &numbers, Shape shape)
{
    TensorType type{DataType::Int64, std::move(shape)};
    std::vector<std::byte> bytes(numbers.size() * sizeof(std::int64_t));
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
    StoredTensor tensor;
    tensor.name = uniqueName(wanted);
    tensor.type = type;
    tensor.data = std::make_shared<const TensorData>(TensorData{std::move(type), std::move(bytes)});
    m_tensors.push_back(std::move(tensor));
    return m_tensors.back().name;
}

OnnxNode &Restorer::addNode(std::string type, std::vector<std::string> inputs, const std::string &output)
{
    OnnxNode node;
    node.name = output;
    node.type = std::move(type);
    node.inputs = std::move(inputs);
    node.outputs = {output};
    m_nodes.push_back(std::move(node));
    return m_nodes.back();
}

/// Parts of equal length, of which those of buffers are zero and no others are.
bool Restorer::splitJoined(const StoredTensor &tensor, const FoldedSteps &steps)
{
    const std::size_t count = steps.parameters.size() + steps.stored.size();
    const std::vector<std::byte> &bytes = tensor.data->bytes;
    if (steps.last != "cat" || steps.stems.size() != 1 || steps.stored.empty() || steps.parameters.empty()
        || tensor.type.shape.size() != 1 || tensor.type.shape[0] % static_cast<std::int64_t>(count) != 0)
        return false;
    const std::size_t length = bytes.size() / count;
    std::vector<bool> isZero;
    for (std::size_t i = 0; i < count; ++i)
        isZero.push_back(std::all_of(bytes.begin() + static_cast<std::ptrdiff_t>(i * length),
            bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * length),
            [](std::byte byte) { return byte == std::byte{}; }));
    if (std::count(isZero.begin(), isZero.end(), true) != static_cast<std::ptrdiff_t>(steps.stored.size()))
        return false;
    std::string name;
    for (const std::string &parameter : steps.parameters)
        name += (name.empty() ? "" : "+") + parameter;
    const TensorType type{tensor.type.dataType, {tensor.type.shape[0] / static_cast<std::int64_t>(count)}};
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < count; ++i) {
        std::vector<std::byte> part(bytes.begin() + static_cast<std::ptrdiff_t>(i * length),
            bytes.begin() + static_cast<std::ptrdiff_t>((i + 1) * length));
        const bool isStored = isZero[i];
        parts.push_back(addPart(isStored ? steps.stored.front() : name, type, std::move(part),
            isStored ? std::vector<std::string>{} : steps.parameters));
    }
    addNode("Concat", std::move(parts), tensor.name).attributes.emplace("axis", std::int64_t{0});
    joined.push_back(tensor.name);
    return true;
}

/// exp(w), -w, -exp(w), exp(-w): which of the last two it is, the signs say.
bool Restorer::invert(const StoredTensor &tensor, const FoldedSteps &steps)
{
    const bool hasExp = steps.has("exp");
    const bool hasNeg = steps.has("neg");
    const bool others = std::any_of(steps.stems.begin(), steps.stems.end(), [](std::string_view stem) {
        return stem != "exp" && stem != "neg"
            && (!movesElements(stem) || selectsElements(stem) || stem == "cat" || stem == "stack");
    });
    if (!hasExp || others || steps.parameters.size() != 1 || !steps.stored.empty()
        || tensor.type.dataType != DataType::Float32)
        return false;
    const bool below = isAll(tensor, [](float value) { return std::isfinite(value) && value < 0; });
    const bool above = isAll(tensor, [](float value) { return std::isfinite(value) && value > 0; });
    if (!below && !above)
        return false;
    if (below && !hasNeg)
        return false;
    const bool negFirst = hasNeg && above;
    std::vector<std::byte> bytes(tensor.data->bytes.size());
    for (std::size_t at = 0; at < bytes.size(); at += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, tensor.data->bytes.data() + at, sizeof value);
        value = static_cast<float>(std::log(std::abs(static_cast<double>(value))) * (negFirst ? -1 : 1));
        std::memcpy(bytes.data() + at, &value, sizeof value);
    }
    std::string made = addPart(steps.parameters.front(), tensor.type, std::move(bytes), steps.parameters);
    if (hasNeg) {
        const std::string between = uniqueName(tensor.name + ".inner");
        addNode(negFirst ? "Neg" : "Exp", {made}, between);
        made = between;
    }
    addNode(hasNeg && !negFirst ? "Neg" : "Exp", {made}, tensor.name);
    computed.push_back(tensor.name);
    return true;
}

/// Rows of a table that stand at several places.
bool Restorer::takeRows(const StoredTensor &tensor, const std::string &parameter)
{
    const Shape &shape = tensor.type.shape;
    if (shape.size() < 2 || elementCount(shape) > kMostFolded || isUniformTensor(tensor))
        return false;
    TensorData once{tensor.type, tensor.data->bytes};
    std::vector<std::size_t> alike; // dimensions along which all slices are equal
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (keepEqualSlice(once, axis))
            alike.push_back(axis);
    }
    std::optional<RepeatedRows> table;
    for (std::size_t i = 0; i <= shape.size(); ++i) {
        const std::size_t axis = i == 0 ? shape.size() : i - 1;
        if (axis < shape.size() ? once.type.shape[axis] == 1 : isCoarse(once))
            continue;
        RepeatedRows rows = rowsAlong(once, axis);
        const bool again = rows.count > 1 && rows.count * 2 <= static_cast<std::int64_t>(rows.places.size());
        if (again && (!table || rows.table.size() <= table->table.size()))
            table = std::move(rows);
    }
    // The batch alone is taken out where types are known (collapse_batch.h).
    if (!table && (alike.empty() || alike == std::vector<std::size_t>{0}))
        return false;
    const std::string inner = alike.empty() ? tensor.name : uniqueName(tensor.name + ".once");
    if (!alike.empty()) {
        const std::vector<std::int64_t> extents(shape.begin(), shape.end());
        const auto rank = static_cast<std::int64_t>(shape.size());
        const std::string stored =
            table ? inner : addPart(parameter, once.type, std::move(once.bytes), {parameter});
        addNode("Expand", {stored, addNumbers(tensor.name + ".shape", extents, {rank})}, tensor.name);
    }
    if (table)
        readRows(*std::move(table), once.type, parameter, inner);
    repeated.push_back(tensor.name);
    return true;
}

/// Makes `output` of that type from a table of its rows.
void Restorer::readRows(
    RepeatedRows rows, const TensorType &type, const std::string &parameter, const std::string &output)
{
    Shape table{rows.count};
    Shape places;
    std::vector<std::int64_t> back; // the permutation of [places, row] that gives the output's dimensions
    for (std::size_t d = 0; d < type.shape.size(); ++d) {
        if (d == rows.axis)
            table.push_back(type.shape[d]);
        else
            places.push_back(type.shape[d]);
    }
    for (std::size_t d = 0; d < type.shape.size(); ++d)
        back.push_back(static_cast<std::int64_t>(d == rows.axis ? places.size() : d > rows.axis ? d - 1 : d));
    const std::string stored =
        addPart(parameter, {type.dataType, std::move(table)}, std::move(rows.table), {parameter});
    const std::string numbers = addNumbers(output + ".places", rows.places, std::move(places));
    const bool inOrder = std::is_sorted(back.begin(), back.end());
    const std::string read = inOrder ? output : uniqueName(output + ".read");
    addNode("Gather", {stored, numbers}, read).attributes.emplace("axis", std::int64_t{0});
    if (!inOrder)
        addNode("Transpose", {read}, output).attributes.emplace("perm", std::move(back));
}

bool Restorer::restore(const StoredTensor &stored)
{
    if (!isFloating(stored.type.dataType) || m_byHand.count(stored.name) != 0)
        return false;
    StoredTensor tensor = stored;
    const auto read = [&] {
        tensor.data = valuesOfFolded(stored);
        return tensor.data && !tensor.data->bytes.empty();
    };
    const auto found = m_graph.provenance.find(tensor.name);
    const bool said =
        found != m_graph.provenance.end() && !found->second.kind && !found->second.foldedFrom.empty();
    if (said) {
        const OnnxProvenance provenance = found->second; // what parts are made from is added to the map
        const FoldedSteps steps = stepsOf(m_graph, tensor.name, provenance);
        const bool mayRepeat = steps.parameters.size() == 1 && isMovedOnly(steps) && steps.mayRepeat();
        const bool mayBeRestored = mayRepeat || steps.has("cat") || steps.has("exp");
        if (mayBeRestored && read()
            && (splitJoined(tensor, steps) || invert(tensor, steps)
                || (mayRepeat && takeRows(tensor, steps.parameters.front()))))
            return true;
    }
    if (!m_graph.signature.empty())
        return false;
    // What stands where parameters do under no name of a module was worked out from one (rule 6 of
    // import_onnx.h).
    const Classification taken = m_rules.classify(tensor);
    return taken.as == StoredAs::Parameter && taken.folded && read()
        && takeRows(tensor, m_rules.nameOf(tensor));
}

void Restorer::run()
{
    std::set<std::string> gone;
    for (const StoredTensor &tensor : m_graph.initializers) {
        if (restore(tensor))
            gone.insert(tensor.name);
    }
    if (gone.empty())
        return;
    std::erase_if(
        m_graph.initializers, [&](const StoredTensor &tensor) { return gone.count(tensor.name) != 0; });
    for (const std::string &name : gone)
        m_graph.provenance.erase(name);
    std::move(m_tensors.begin(), m_tensors.end(), std::back_inserter(m_graph.initializers));
    std::move(m_nodes.begin(), m_nodes.end(), std::back_inserter(m_graph.nodes));
}

} // namespace

std::shared_ptr<const TensorData> valuesOfFolded(const StoredTensor &tensor)
{
    if (tensor.data || !tensor.external || !tensor.external->present
        || elementCount(tensor.type.shape) > kMostFolded)
        return tensor.data;
    Tensor beside;
    beside.name = tensor.name;
    beside.type = tensor.type;
    beside.external = tensor.external;
    auto loaded = loadTensorData(beside);
    return loaded ? std::make_shared<const TensorData>(*std::move(loaded)) : nullptr;
}

std::vector<std::string> restoreFolded(OnnxGraph &graph, const std::map<std::string, StoredAs> &byHand)
{
    Restorer restorer(graph, byHand);
    restorer.run();
    std::vector<std::string> notes;
    if (!restorer.joined.empty())
        notes.push_back("the exporter joined parameters with buffers (" + namesInWords(restorer.joined)
            + "); they were taken apart again, and the buffers are not trained");
    if (!restorer.computed.empty())
        notes.push_back("the exporter computed exponentials of parameters (" + namesInWords(restorer.computed)
            + "); their logarithms are trained again");
    if (!restorer.repeated.empty())
        notes.push_back("the exporter wrote rows of tables once for each place that reads them ("
            + namesInWords(restorer.repeated) + "); each is trained as one row again");
    return notes;
}

} // namespace planloom
