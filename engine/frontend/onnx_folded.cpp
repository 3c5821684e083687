#include "engine/frontend/onnx_folded.h"

#include "engine/base/words.h"
#include "engine/frontend/import_onnx.h"
#include "engine/frontend/onnx_parameters.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostNamed = 3; ///< Tensors in one sentence.

bool isParameter(const OnnxGraph &graph, const std::string &name)
{
    if (const auto found = graph.signature.find(name); found != graph.signature.end())
        return found->second == OnnxSpecKind::Parameter;
    if (const auto found = graph.provenance.find(name); found != graph.provenance.end() && found->second.kind)
        return found->second.kind == OnnxSpecKind::Parameter;
    // Without a signature the names of parameters are those with dots.
    return graph.signature.empty() && isDotted(name) && !isBufferName(name);
}

/// "embedding" of "embedding_12": what exporters call the results of that operator of PyTorch.
std::string_view stemOf(std::string_view name)
{
    const std::size_t end = name.find_last_not_of("0123456789");
    return end != std::string_view::npos && end + 1 < name.size() && name[end] == '_' ? name.substr(0, end)
                                                                                      : name;
}

bool isOneOfThese(std::string_view word, const std::set<std::string_view> &words)
{
    return words.count(word) != 0;
}

/// Operators of PyTorch that give the elements of their input back, in other places.
bool moves(std::string_view stem)
{
    static const std::set<std::string_view> kMoving = {"view", "reshape", "_unsafe_view", "unsqueeze",
        "squeeze", "permute", "transpose", "t", "numpy_t", "mt", "expand", "expand_as", "repeat",
        "repeat_interleave", "tile", "slice", "select", "narrow", "split", "split_with_sizes", "chunk",
        "unbind", "getitem", "flatten", "unflatten", "contiguous", "clone", "alias", "detach", "detach_",
        "lift_fresh_copy", "to", "_to_copy", "type_as", "float", "flip", "roll", "cat", "stack",
        "broadcast_to", "movedim", "unfold", "embedding", "index", "index_select", "gather", "take"};
    return isOneOfThese(stem, kMoving);
}

/// Those of them that may write an element more than once.
bool repeats(std::string_view stem)
{
    static const std::set<std::string_view> kRepeating = {
        "expand", "expand_as", "repeat", "repeat_interleave", "tile", "broadcast_to", "unfold"};
    return isOneOfThese(stem, kRepeating);
}

bool selects(std::string_view stem)
{
    static const std::set<std::string_view> kSelecting = {
        "embedding", "index", "index_select", "gather", "take"};
    return isOneOfThese(stem, kSelecting);
}

/// Operators that make constants and the places at which tables are read.
bool counts(std::string_view stem)
{
    static const std::set<std::string_view> kCounting = {"arange", "zeros", "ones", "full", "zeros_like",
        "ones_like", "full_like", "new_zeros", "new_ones", "new_full", "empty", "scalar_tensor",
        "scalar_tensor_default", "sym_size", "cumsum", "eq", "ne", "lt", "le", "gt", "ge", "where",
        "logical_and", "logical_or", "logical_not", "val"};
    return isOneOfThese(stem, kCounting) || stem.starts_with("lifted_tensor")
        || stem.starts_with("_tensor_constant");
}

/// Arithmetic that finds places in tables (relative ones, in logarithmic steps), but that also computes.
bool calculates(std::string_view stem)
{
    static const std::set<std::string_view> kCalculating = {"add", "sub", "rsub", "mul", "div",
        "floor_divide", "remainder", "fmod", "abs", "neg", "sign", "log", "minimum", "maximum", "clamp",
        "clamp_min", "clamp_max", "floor", "ceil", "round", "trunc", "pow", "sum"};
    return isOneOfThese(stem, kCalculating);
}

/// What the names of its steps tell of a value that was computed when the file was written.
struct Steps {
    std::vector<std::string> parameters{};
    std::vector<std::string> stored{}; ///< Buffers and constants of the module.
    std::set<std::string_view> stems{}; ///< Of other values, and of its own name where that tells something.
    std::string_view last{}; ///< The stem of its own name.

    bool has(std::string_view stem) const { return stems.count(stem) != 0; }
};

Steps stepsOf(const OnnxGraph &graph, const std::string &name, const OnnxProvenance &provenance)
{
    Steps steps;
    for (const std::string &from : provenance.foldedFrom) {
        if (isParameter(graph, from))
            steps.parameters.push_back(from);
        else if (graph.signature.count(from) != 0)
            steps.stored.push_back(from);
        else
            steps.stems.insert(stemOf(from));
    }
    steps.last = stemOf(name);
    steps.stems.insert(steps.last);
    for (const char *inner : {"val", "tmp", "value", "value_cast"})
        steps.stems.erase(
            inner); // steps inside of an operator of PyTorch, such as a Transpose, or a factor of 1
    return steps;
}

/// True if each element of the value is an element of its parameters, but for constants that were added.
bool isMovedOnly(const Steps &steps)
{
    const bool chosen = std::any_of(steps.stems.begin(), steps.stems.end(), selects) && moves(steps.last);
    const bool plain = std::all_of(steps.stems.begin(), steps.stems.end(), [&](std::string_view stem) {
        return moves(stem) || counts(stem) || (calculates(stem) && chosen)
            || ((stem == "add" || stem == "sub") && steps.stored.empty());
    });
    if (!plain || (!steps.stored.empty() && !chosen && !steps.has("cat")))
        return false;
    // Several parameters are apart in what joins them, and in nothing else.
    return steps.parameters.size() == 1
        || ((steps.last == "cat" || steps.has("cat") || steps.has("stack"))
            && std::none_of(steps.stems.begin(), steps.stems.end(), calculates));
}

bool isAll(const OnnxTensor &tensor, bool (*predicate)(float))
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

bool isUniformTensor(const OnnxTensor &tensor)
{
    const std::vector<std::byte> &bytes = tensor.data->bytes;
    const auto size = static_cast<std::size_t>(sizeOf(tensor.type.dataType));
    return bytes.size() <= size || std::memcmp(bytes.data(), bytes.data() + size, bytes.size() - size) == 0;
}

/// Leaves one of several equal slices along a dimension. @return false if they are not equal, or there is
/// only one
bool keepEqualSlice(TensorData &data, std::size_t axis)
{
    Shape &shape = data.type.shape;
    auto run = static_cast<std::size_t>(sizeOf(data.type.dataType)); // bytes of one slice that lie together
    for (std::size_t d = axis + 1; d < shape.size(); ++d)
        run *= static_cast<std::size_t>(shape[d]);
    const std::size_t block = run * static_cast<std::size_t>(shape[axis]);
    if (block == run)
        return false;
    for (std::size_t begin = 0; begin < data.bytes.size(); begin += block) {
        const std::byte *first = data.bytes.data() + begin;
        if (std::memcmp(first, first + run, block - run) != 0)
            return false;
    }
    std::vector<std::byte> slice;
    for (std::size_t begin = 0; begin < data.bytes.size(); begin += block)
        slice.insert(slice.end(), data.bytes.begin() + static_cast<std::ptrdiff_t>(begin),
            data.bytes.begin() + static_cast<std::ptrdiff_t>(begin + run));
    data.bytes = std::move(slice);
    shape[axis] = 1;
    return true;
}

/// True if single elements may well be equal by accident: numbers of few digits, such as those of bfloat16.
bool isCoarse(const TensorData &data)
{
    if (data.type.dataType != DataType::Float32)
        return true;
    std::size_t fine = 0;
    for (std::size_t at = 0; at < data.bytes.size(); at += sizeof(std::uint32_t)) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, data.bytes.data() + at, sizeof bits);
        fine += (bits & 0xffffU) != 0 ? 1 : 0;
    }
    return fine * 2 * sizeof(std::uint32_t) < data.bytes.size();
}

/// The distinct ones of the rows that a tensor consists of, and which of them is at each place.
struct Rows {
    std::size_t axis =
        0; ///< Along which the elements of one row lie; as many as dimensions: rows of one element.
    std::vector<std::byte> table{}; ///< One row behind the other, by their first places.
    std::vector<std::int64_t> places{}; ///< In the order of the other dimensions.
    std::int64_t count = 0;
};

Rows rowsAlong(const TensorData &data, std::size_t axis)
{
    const Shape &shape = data.type.shape;
    const auto size = static_cast<std::size_t>(sizeOf(data.type.dataType));
    const auto extent = static_cast<std::size_t>(axis < shape.size() ? shape[axis] : 1);
    std::size_t inner = 1;
    for (std::size_t d = axis + 1; d < shape.size(); ++d)
        inner *= static_cast<std::size_t>(shape[d]);
    const std::vector<std::byte> &bytes = data.bytes;
    const std::size_t outer = bytes.size() / (size * extent * inner);
    Rows rows{axis, {}, {}, 0};
    std::unordered_map<std::string, std::int64_t> known;
    std::string row(extent * size, '\0');
    for (std::size_t o = 0; o < outer; ++o) {
        for (std::size_t i = 0; i < inner; ++i) {
            for (std::size_t e = 0; e < extent; ++e)
                std::memcpy(
                    row.data() + e * size, bytes.data() + ((o * extent + e) * inner + i) * size, size);
            const auto [found, isNew] = known.emplace(row, rows.count);
            if (isNew) {
                ++rows.count;
                const auto *begin =
                    reinterpret_cast<const std::byte *>(row.data()); // as the tensor holds them
                rows.table.insert(rows.table.end(), begin, begin + row.size());
            }
            rows.places.push_back(found->second);
        }
    }
    return rows;
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
        for (const OnnxTensor &tensor : graph.initializers)
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
    bool splitJoined(const OnnxTensor &tensor, const Steps &steps);
    bool invert(const OnnxTensor &tensor, const Steps &steps);
    bool restore(const OnnxTensor &stored);
    bool takeRows(const OnnxTensor &tensor, const std::string &parameter);
    void readRows(Rows rows, const TensorType &type, const std::string &parameter, const std::string &output);
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
    std::vector<OnnxTensor> m_tensors{};
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
    OnnxTensor part;
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
    OnnxTensor tensor;
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
bool Restorer::splitJoined(const OnnxTensor &tensor, const Steps &steps)
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
bool Restorer::invert(const OnnxTensor &tensor, const Steps &steps)
{
    const bool hasExp = steps.has("exp");
    const bool hasNeg = steps.has("neg");
    const bool others = std::any_of(steps.stems.begin(), steps.stems.end(), [](std::string_view stem) {
        return stem != "exp" && stem != "neg"
            && (!moves(stem) || selects(stem) || stem == "cat" || stem == "stack");
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
bool Restorer::takeRows(const OnnxTensor &tensor, const std::string &parameter)
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
    std::optional<Rows> table;
    for (std::size_t i = 0; i <= shape.size(); ++i) {
        const std::size_t axis = i == 0 ? shape.size() : i - 1;
        if (axis < shape.size() ? once.type.shape[axis] == 1 : isCoarse(once))
            continue;
        Rows rows = rowsAlong(once, axis);
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
    Rows rows, const TensorType &type, const std::string &parameter, const std::string &output)
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

bool Restorer::restore(const OnnxTensor &stored)
{
    if (!isFloating(stored.type.dataType) || m_byHand.count(stored.name) != 0)
        return false;
    OnnxTensor tensor = stored;
    const auto read = [&] {
        tensor.data = valuesOfFolded(stored);
        return tensor.data && !tensor.data->bytes.empty();
    };
    const auto found = m_graph.provenance.find(tensor.name);
    const bool said =
        found != m_graph.provenance.end() && !found->second.kind && !found->second.foldedFrom.empty();
    if (said) {
        const OnnxProvenance provenance = found->second; // what parts are made from is added to the map
        const Steps steps = stepsOf(m_graph, tensor.name, provenance);
        const bool mayRepeat = steps.parameters.size() == 1 && isMovedOnly(steps)
            && std::any_of(steps.stems.begin(), steps.stems.end(),
                [](std::string_view stem) { return selects(stem) || repeats(stem); });
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
    for (const OnnxTensor &tensor : m_graph.initializers) {
        if (restore(tensor))
            gone.insert(tensor.name);
    }
    if (gone.empty())
        return;
    std::erase_if(
        m_graph.initializers, [&](const OnnxTensor &tensor) { return gone.count(tensor.name) != 0; });
    for (const std::string &name : gone)
        m_graph.provenance.erase(name);
    std::move(m_tensors.begin(), m_tensors.end(), std::back_inserter(m_graph.initializers));
    std::move(m_nodes.begin(), m_nodes.end(), std::back_inserter(m_graph.nodes));
}

/// "'a', 'b', 'c' and 4 more".
std::string listed(const std::vector<std::string> &names)
{
    std::string text;
    for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i)
        text += (i > 0 ? ", '" : "'") + names[i] + "'";
    if (names.size() > kMostNamed)
        text += " and " + std::to_string(names.size() - kMostNamed) + " more";
    return text;
}

/// What became of the parameters and buffers of modules.
class ReplacedFinder
{
public:
    explicit ReplacedFinder(OnnxGraph &graph)
        : m_graph(graph)
    {
        for (const OnnxTensor &tensor : graph.initializers) {
            m_stored.insert(tensor.name);
            const auto found = graph.provenance.find(tensor.name);
            m_saysKinds = m_saysKinds
                || (found != graph.provenance.end() && found->second.kind == OnnxSpecKind::Parameter);
        }
    }

    std::vector<std::string> run();

private:
    void findComputed();
    void findRewritten();
    bool isRewritten(const std::string &name) const;
    std::vector<std::string> missingOf(const std::string &module) const;

    OnnxGraph &m_graph;
    std::set<std::string_view> m_stored{};
    bool m_saysKinds = false; ///< Of some parameter the file says that it is one.
    std::vector<std::string> m_computed{};
    std::vector<std::string> m_norms{}; ///< Modules with statistics that went into weights.
    std::vector<std::string> m_rewritten{}; ///< Weights that were written anew for other reasons.
};

void ReplacedFinder::findComputed()
{
    for (const OnnxTensor &tensor : m_graph.initializers) {
        const auto found = m_graph.provenance.find(tensor.name);
        if (found == m_graph.provenance.end() || found->second.kind || found->second.foldedFrom.empty()
            || !isFloating(tensor.type.dataType))
            continue;
        Steps steps = stepsOf(m_graph, tensor.name, found->second);
        if (steps.parameters.empty() || isMovedOnly(steps))
            continue;
        found->second.insteadOf = std::move(steps.parameters);
        m_computed.push_back(tensor.name);
    }
}

/// True if the optimizer of a graph gave a parameter's name, or that with an ending, to something else.
bool ReplacedFinder::isRewritten(const std::string &name) const
{
    static const std::set<std::string_view> kEndings = {"_bias", "_scaled", "_offset", "_fused"};
    const auto said = m_graph.provenance.find(name);
    if (m_stored.count(name) == 0 || (said != m_graph.provenance.end() && said->second.kind))
        return false;
    if (m_saysKinds && isParameter(m_graph, name) && m_graph.signature.count(name) != 0)
        return true;
    const std::size_t end = name.rfind('_');
    return end != std::string::npos && isOneOfThese(std::string_view(name).substr(end), kEndings)
        && name.substr(0, end).ends_with("weight") && m_graph.signature.count(name) == 0;
}

/// Parameters of a module that are nowhere in the file.
std::vector<std::string> ReplacedFinder::missingOf(const std::string &module) const
{
    std::vector<std::string> names;
    for (auto found = m_graph.signature.lower_bound(module + "."); found != m_graph.signature.end();
         ++found) {
        if (!found->first.starts_with(module + "."))
            break;
        const bool own = found->first.find('.', module.size() + 1) == std::string::npos;
        if (own && found->second == OnnxSpecKind::Parameter && m_stored.count(found->first) == 0)
            names.push_back(found->first);
    }
    return names;
}

void ReplacedFinder::findRewritten()
{
    for (const OnnxNode &node : m_graph.nodes) {
        static const std::set<std::string_view> kTypes = {"Conv", "ConvTranspose", "Gemm"};
        if (!node.domain.empty() || !isOneOfThese(node.type, kTypes) || node.inputs.size() < 2)
            continue;
        const std::string &weight = node.inputs[1];
        const std::string bias = node.inputs.size() > 2 ? node.inputs[2] : std::string();
        const bool hasModule = node.modules && !node.modules->empty();
        const std::string module = hasModule ? node.modules->back() : std::string();
        const bool isNorm = hasModule && m_graph.signature.count(module + ".running_var") != 0
            && m_stored.count(module + ".running_var") == 0;
        if (!isNorm && !isRewritten(weight) && !isRewritten(bias))
            continue;
        std::set<std::string> lost;
        for (const std::string &name : {weight, bias}) {
            if (m_stored.count(name) == 0)
                continue;
            const OnnxProvenance &said = m_graph.provenance[name];
            const auto from = parametersAmong(m_graph, said.foldedFrom);
            lost.insert(from.begin(), from.end());
            if (m_graph.signature.empty() ? !isRewritten(name) : isParameter(m_graph, name))
                lost.insert(name);
            for (const char *ending : {"_scaled", "_offset", "_fused"}) {
                if (name.ends_with(ending))
                    lost.insert(name.substr(0, name.rfind('_')));
            }
        }
        if (hasModule) {
            const auto missing = missingOf(module);
            lost.insert(missing.begin(), missing.end());
        }
        for (const std::string &name : {weight, bias}) {
            if (m_stored.count(name) == 0)
                continue;
            OnnxProvenance &said = m_graph.provenance[name];
            said.kind = OnnxSpecKind::Parameter;
            said.insteadOf.assign(lost.begin(), lost.end());
        }
        (isNorm ? m_norms : m_rewritten).push_back(isNorm ? module : weight);
    }
}

std::vector<std::string> ReplacedFinder::run()
{
    findComputed();
    findRewritten();
    std::vector<std::string> notes;
    const std::string advice = " (export with optimize=False to train them)";
    if (!m_norms.empty())
        notes.push_back("the exporter folded "
            + counted(static_cast<std::int64_t>(m_norms.size()), "batch normalisation")
            + " into the weights before " + (m_norms.size() == 1 ? "it" : "them") + " (" + listed(m_norms)
            + "): parameters of both are lost, and what is trained in their place trains otherwise than in "
              "PyTorch"
            + advice);
    if (!m_rewritten.empty())
        notes.push_back("the exporter's optimizer rewrote weights with what follows or precedes them ("
            + listed(m_rewritten) + "): they train otherwise than in PyTorch" + advice);
    if (!m_computed.empty()) {
        std::set<std::string> from;
        for (const std::string &name : m_computed) {
            const auto &lost = m_graph.provenance[name].insteadOf;
            from.insert(lost.begin(), lost.end());
        }
        notes.push_back("the exporter computed "
            + counted(static_cast<std::int64_t>(m_computed.size()), "tensor") + " (" + listed(m_computed)
            + ") from parameters (" + listed({from.begin(), from.end()})
            + "): these are lost, and what is trained in their place trains otherwise than in PyTorch"
            + advice);
    }
    return notes;
}

} // namespace

bool isBufferName(std::string_view name)
{
    static const std::set<std::string_view> kNames = {"attn_mask", "mask", "masked_bias", "cos_cached",
        "sin_cached", "running_mean", "running_var", "anchors"};
    const std::size_t separator = name.find_last_of("./");
    const std::string_view last = separator == std::string_view::npos ? name : name.substr(separator + 1);
    return isOneOfThese(last, kNames) || last.ends_with("inv_freq");
}

std::shared_ptr<const TensorData> valuesOfFolded(const OnnxTensor &tensor)
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

std::vector<std::string> parametersAmong(const OnnxGraph &graph, const std::vector<std::string> &names)
{
    std::vector<std::string> parameters;
    std::copy_if(names.begin(), names.end(), std::back_inserter(parameters),
        [&](const std::string &name) { return isParameter(graph, name); });
    return parameters;
}

std::vector<std::string> restoreFolded(OnnxGraph &graph, const std::map<std::string, StoredAs> &byHand)
{
    Restorer restorer(graph, byHand);
    restorer.run();
    std::vector<std::string> notes;
    if (!restorer.joined.empty())
        notes.push_back("the exporter joined parameters with buffers (" + listed(restorer.joined)
            + "); they were taken apart again, and the buffers are not trained");
    if (!restorer.computed.empty())
        notes.push_back("the exporter computed exponentials of parameters (" + listed(restorer.computed)
            + "); their logarithms are trained again");
    if (!restorer.repeated.empty())
        notes.push_back("the exporter wrote rows of tables once for each place that reads them ("
            + listed(restorer.repeated) + "); each is trained as one row again");
    return notes;
}

std::vector<std::string> findReplaced(OnnxGraph &graph)
{
    return ReplacedFinder(graph).run();
}

} // namespace planloom
