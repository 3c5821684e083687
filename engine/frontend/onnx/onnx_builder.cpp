#include "engine/frontend/onnx/onnx_builder.h"

#include "engine/frontend/passes/mixture/chosen_writer.h"

#include "engine/frontend/onnx/onnx_external.h"
#include "engine/frontend/onnx/onnx_fold.h"
#include "engine/frontend/onnx/onnx_operators.h"
#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <unordered_set>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kMostParameterBytes = std::int64_t{1}
    << 20; ///< External data read at import: shapes, axes.
constexpr std::int64_t kMostGrownBytes = std::int64_t{4}
    << 20; ///< Of a folded value larger than what it is made of.
constexpr std::size_t kTensorsPerOperator = 8;
constexpr std::size_t kPlacesCompared = 256; ///< Masks that a mask is compared with.
constexpr std::size_t kSharedFrom = 1024; ///< Constants of this many bytes share memory with equal ones.

} // namespace

OnnxBuilder::OnnxBuilder(const ImportOptions &options, std::int64_t opset)
    : m_options(options)
    , m_opset(opset)
{
}

TensorId OnnxBuilder::addTensor(Tensor tensor, bool known)
{
    m_graph.tensors.push_back(std::move(tensor));
    m_known.push_back(known);
    m_producers.emplace_back();
    return TensorId{static_cast<std::int32_t>(m_graph.tensors.size() - 1)};
}

TensorId OnnxBuilder::addInput(std::string name, TensorType type)
{
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.type = std::move(type);
    tensor.role = TensorRole::Input;
    const TensorId id = addTensor(std::move(tensor), false);
    m_graph.inputs.push_back(id);
    return id;
}

TensorId OnnxBuilder::addStored(OnnxTensor stored, TensorRole role)
{
    Tensor tensor;
    tensor.name = std::move(stored.name);
    tensor.type = std::move(stored.type);
    tensor.role = role;
    tensor.data = std::move(stored.data);
    tensor.external = std::move(stored.external);
    const bool known = role == TensorRole::Buffer && tensor.data != nullptr;
    return addTensor(std::move(tensor), known);
}

void OnnxBuilder::classify(TensorId id, const Classification &classification, const std::string &name)
{
    Tensor &tensor = m_graph.at(id);
    tensor.classification = std::make_shared<const Classification>(classification);
    if (name == tensor.name || tensor.type.shape.empty())
        return;
    tensor.filePart = FilePart{.name = tensor.name, .shape = tensor.type.shape};
    tensor.name = name;
}

TensorId OnnxBuilder::addConstant(std::shared_ptr<const TensorData> data, std::string name)
{
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.type = data->type;
    tensor.role = TensorRole::Buffer;
    tensor.data = interned(std::move(data));
    return addTensor(std::move(tensor), true);
}

std::shared_ptr<const TensorData> OnnxBuilder::interned(std::shared_ptr<const TensorData> data)
{
    if (data->bytes.size() < kSharedFrom)
        return data;
    const std::string_view bytes(
        reinterpret_cast<const char *>(data->bytes.data()), data->bytes.size()); // to hash
    const std::size_t hash = std::hash<std::string_view>{}(bytes);
    const auto [first, last] = m_interned.equal_range(hash);
    for (auto entry = first; entry != last; ++entry) {
        if (entry->second->type == data->type && entry->second->bytes == data->bytes)
            return entry->second;
    }
    m_interned.emplace(hash, data);
    return data;
}

std::shared_ptr<const TensorData> OnnxBuilder::valuesOf(TensorId id)
{
    Tensor &tensor = m_graph.at(id);
    if (tensor.data)
        return tensor.data;
    if (!tensor.external || !tensor.external->present || tensor.external->length > kMostParameterBytes)
        return nullptr;
    auto loaded = loadTensorData(tensor);
    if (!loaded)
        return nullptr;
    return std::make_shared<const TensorData>(*std::move(loaded));
}

void OnnxBuilder::makeStored(TensorId id, const Classification &classification)
{
    Tensor &tensor = m_graph.at(id);
    tensor.classification = std::make_shared<const Classification>(classification);
    if (classification.as != StoredAs::Parameter)
        return;
    tensor.role = TensorRole::Weight;
    m_known[static_cast<std::size_t>(id.index)] = false;
}

bool OnnxBuilder::nameTensor(TensorId id, const std::string &name)
{
    Tensor &tensor = m_graph.at(id);
    if (tensor.name.empty())
        tensor.name = name;
    return tensor.name == name;
}

void OnnxBuilder::unname(TensorId id)
{
    if (m_graph.at(id).role == TensorRole::Buffer)
        m_graph.at(id).name.clear();
}

bool OnnxBuilder::takeFoldedBytes(const TensorType &type)
{
    const auto bytes = checkedByteCount(type);
    if (!bytes || static_cast<std::size_t>(*bytes) > m_options.mostFoldedBytes - m_foldedBytes)
        return false;
    m_foldedBytes += static_cast<std::size_t>(*bytes);
    return true;
}

std::shared_ptr<const TensorData> OnnxBuilder::filled(const TensorType &type, Number value)
{
    TensorData one = filledTensor({type.dataType, {}}, value);
    std::string key = nameOf(type.dataType) + toString(type.shape);
    for (const std::byte byte : one.bytes)
        key += static_cast<char>(byte);
    auto &data = m_filled[key];
    if (!data && takeFoldedBytes(type))
        data = std::make_shared<const TensorData>(filledTensor(type, value));
    return data;
}

const ChosenRows *OnnxBuilder::chosenRows(TensorId id) const
{
    const auto found = m_chosen.find(id.index);
    return found == m_chosen.end() ? nullptr : &found->second;
}

bool OnnxBuilder::isMadeAlike(TensorId a, TensorId b, int depth) const
{
    if (a == b)
        return true;
    if (!a || !b || depth == 0 || typeOf(a) != typeOf(b))
        return false;
    if (isKnown(a) && isKnown(b))
        return at(a).data && at(b).data && at(a).data->bytes == at(b).data->bytes;
    const OperatorId first = producerOf(a);
    const OperatorId second = producerOf(b);
    if (!first || !second)
        return false;
    const Operator &x = m_graph.at(first);
    const Operator &y = m_graph.at(second);
    if (x.kind != y.kind || x.kind == OperatorKind::Dropout || x.kind == OperatorKind::Unknown
        || x.attributes != y.attributes || x.inputs.size() != y.inputs.size()
        || x.outputs.size() != y.outputs.size())
        return false;
    for (std::size_t slot = 0; slot < x.outputs.size(); ++slot) {
        if ((x.outputs[slot] == a) != (y.outputs[slot] == b))
            return false;
    }
    for (std::size_t slot = 0; slot < x.inputs.size(); ++slot) {
        if (!isMadeAlike(x.inputs[slot], y.inputs[slot], depth - 1))
            return false;
    }
    return true;
}

TensorId OnnxBuilder::placesOf(TensorId mask) const
{
    constexpr int kDepth = 6; // a comparison, a cast, a sum, moves
    const std::size_t latest = m_places.size() > kPlacesCompared ? m_places.size() - kPlacesCompared : 0;
    for (std::size_t i = m_places.size(); i-- > latest;) {
        if (isMadeAlike(mask, m_places[i].first, kDepth))
            return m_places[i].second;
    }
    return {};
}

void OnnxBuilder::noteSizes(TensorId sizes, TensorId of, std::size_t begin, std::size_t end)
{
    const ChosenRows *rows = chosenRows(of);
    if (rows != nullptr && rows->dimension >= begin && rows->dimension < end)
        m_chosenSizes[sizes.index] = typeOf(of).shape[rows->dimension];
}

Result<void> OnnxBuilder::checkChosenOutputs(const std::vector<TensorId> &outputs)
{
    const bool hasLoss = std::any_of(outputs.begin(), outputs.end(),
        [this](TensorId id) { return typeOf(id).shape.empty() && isFloating(typeOf(id).dataType); });
    for (const TensorId id : outputs) {
        if (chosenRows(id) == nullptr)
            continue;
        const std::string what = "the output '" + at(id).name
            + "' has as many rows as there is room for: those that data choose, and behind them some of no "
              "meaning";
        if (!hasLoss)
            return Error{ErrorCode::NotSupported, what,
                "return a loss, or values of a shape that does not depend on data", {}};
        note(what);
    }
    return {};
}

Capacity OnnxBuilder::capacityOf(const std::string &name) const
{
    return planloom::capacityOf(m_options.capacities, name);
}

std::int32_t OnnxBuilder::batchDimensionOf(TensorId id)
{
    m_batch.update(m_graph);
    return m_batch.of(id);
}

std::int64_t OnnxBuilder::batchSize()
{
    m_batch.update(m_graph);
    return m_batch.size();
}

Result<void> OnnxBuilder::followSizes(const std::string &name, const SourceNode &source,
    const std::vector<TensorId> &inputs, const std::vector<TensorId> &outputs)
{
    for (const TensorId input : inputs) {
        const auto found = input ? m_chosenSizes.find(input.index) : m_chosenSizes.end();
        if (found == m_chosenSizes.end())
            continue;
        const std::int64_t size = found->second;
        for (const TensorId output : outputs) {
            if (!isKnown(output))
                return Error{ErrorCode::NotSupported,
                    "node '" + name + "' (" + source.type
                        + "): it computes with how many rows data choose, which is not known before a run",
                    "sum over a mask to count them", "node:" + (source.name.empty() ? name : source.name)};
            // Other sizes of the same shape may be computed with.
            const auto values = integersOf(*m_graph.at(output).data);
            if (std::find(values.begin(), values.end(), size) != values.end()
                || isFloating(typeOf(output).dataType))
                m_chosenSizes[output.index] = size;
        }
    }
    return {};
}

Result<std::vector<TensorId>> OnnxBuilder::emit(const std::string &name, const SourceNode &source,
    OperatorKind kind, Attributes attributes, std::vector<TensorId> inputs, std::vector<TensorType> declared,
    bool mayFold)
{
    const bool chosen = !m_chosen.empty() && std::any_of(inputs.begin(), inputs.end(), [this](TensorId id) {
        return id && chosenRows(id) != nullptr;
    });
    const std::vector<TensorId> read = m_chosenSizes.empty() ? std::vector<TensorId>{} : inputs;
    TRY(auto outputs,
        chosen ? ChosenWriter(*this, name, source)
                     .write(kind, std::move(attributes), std::move(inputs), std::move(declared))
               : append(name, source, kind, std::move(attributes), std::move(inputs), std::move(declared),
                   mayFold));
    TRY_VOID(followSizes(name, source, read, outputs));
    return outputs;
}

Result<std::vector<TensorId>> OnnxBuilder::append(const std::string &name, const SourceNode &source,
    OperatorKind kind, Attributes attributes, std::vector<TensorId> inputs, std::vector<TensorType> declared,
    bool mayFold)
{
    const std::string place = "node:" + (source.name.empty() ? name : source.name);
    std::vector<TensorType> types;
    std::vector<bool> present;
    std::vector<std::shared_ptr<const TensorData>> values;
    bool known = mayFold;
    for (const TensorId input : inputs) {
        types.push_back(input ? typeOf(input) : TensorType{});
        present.push_back(input.valid());
        known = known && (!input || isKnown(input));
        values.push_back(input && isKnown(input) ? m_graph.at(input).data : nullptr);
    }
    for (const TensorType &type : declared) {
        if (!checkedByteCount(type))
            return Error{ErrorCode::InvalidInput,
                "node '" + name + "' (" + source.type + ") would make a value of shape "
                    + toString(type.shape) + ", which is negative or larger than 2^62 bytes",
                "check the sizes given with --dim", place};
    }
    auto inferred = inferTypes(kind, attributes, types, present, declared);
    if (!inferred) {
        Error error = std::move(inferred).error();
        error.message = "node '" + name + "' (" + source.type + "): " + error.message;
        if (error.advice.empty())
            error.advice = "the model contradicts itself, or a size given with --dim does not fit it";
        error.where = place;
        return error;
    }
    const std::vector<TensorType> outputs = *std::move(inferred);
    bool empty = false;
    bool allEmpty = true;
    bool foldable = known;
    for (const TensorType &type : outputs) {
        if (!checkedByteCount(type))
            return Error{ErrorCode::InvalidInput,
                "node '" + name + "' (" + source.type + ") would make a value of shape "
                    + toString(type.shape) + ", larger than 2^62 bytes",
                "check the sizes given with --dim", place};
        const bool none = elementCount(type.shape) == 0;
        empty = empty || none;
        allEmpty = allEmpty && none;
    }
    if (m_graph.tensors.size() >= m_options.mostOperators * kTensorsPerOperator)
        return Error{ErrorCode::ResourceLimit,
            "the model has more than " + std::to_string(m_options.mostOperators * kTensorsPerOperator)
                + " values",
            "", place};
    std::int64_t held = kMostGrownBytes;
    for (std::size_t i = 0; foldable && i < types.size(); ++i)
        held = std::max(held, checkedByteCount(types[i]).value_or(0));
    const std::size_t taken = m_foldedBytes;
    for (const TensorType &type : outputs)
        foldable = foldable && *checkedByteCount(type) <= held && takeFoldedBytes(type);
    if (foldable) {
        if (auto results = foldOperator(kind, attributes, values, outputs)) {
            std::vector<TensorId> ids;
            for (TensorData &result : *results)
                ids.push_back(addConstant(std::make_shared<const TensorData>(std::move(result))));
            return ids;
        }
    }
    m_foldedBytes = taken;
    if (allEmpty && !outputs.empty()) { // values without elements are known, whatever makes them
        std::vector<TensorId> ids;
        for (const TensorType &type : outputs)
            ids.push_back(addConstant(std::make_shared<const TensorData>(TensorData{type, {}})));
        return ids;
    }
    const bool ofNothing = std::any_of(inputs.begin(), inputs.end(),
        [this](TensorId id) { return id && elementCount(typeOf(id).shape) == 0; });
    if (ofNothing && !empty) {
        TRY(auto made, appendOfNothing(name, source, kind, attributes, inputs, outputs, mayFold));
        if (made)
            return *std::move(made);
    }
    if (empty && kind == OperatorKind::Split)
        return emitParts(name, source, std::move(attributes), inputs.front(), outputs);
    if (empty)
        return Error{ErrorCode::NotSupported,
            "node '" + name + "' (" + source.type + ") makes a value without elements", "", place};
    if (m_graph.operators.size() >= m_options.mostOperators)
        return Error{ErrorCode::ResourceLimit,
            "the model has more than " + std::to_string(m_options.mostOperators) + " operators", "", place};
    Operator op;
    op.name = uniqueOperatorName(name);
    op.kind = kind;
    op.attributes = std::move(attributes);
    op.inputs = std::move(inputs);
    op.scope = ScopeId{0};
    op.sources = {source};
    for (const TensorType &type : outputs) {
        Tensor tensor;
        tensor.type = type;
        op.outputs.push_back(addTensor(std::move(tensor), false));
    }
    for (const TensorId output : op.outputs)
        m_producers[static_cast<std::size_t>(output.index)] =
            OperatorId{static_cast<std::int32_t>(m_graph.operators.size())};
    m_graph.operators.push_back(std::move(op));
    return m_graph.operators.back().outputs;
}

Result<TensorId> OnnxBuilder::scalarOf(TensorId id, const std::string &name)
{
    const TensorType type = typeOf(id);
    if (!at(id).typeKnown || !isFloating(type.dataType) || type.shape.empty()
        || elementCount(type.shape) != 1)
        return id;
    if (at(id).name == name && at(id).role == TensorRole::Activation)
        m_graph.at(id).name.clear();
    TRY(const auto scalar,
        emit(name + "_scalar", {"", "Reshape"}, OperatorKind::Reshape, {}, {id}, {{type.dataType, {}}},
            false));
    nameTensor(scalar.front(), name);
    return scalar.front();
}

Result<std::optional<std::vector<TensorId>>> OnnxBuilder::appendOfNothing(const std::string &name,
    const SourceNode &source, OperatorKind kind, const Attributes &attributes,
    const std::vector<TensorId> &inputs, const std::vector<TensorType> &outputs, bool mayFold)
{
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    // What reductions of no elements give.
    static const std::map<OperatorKind, double> kNeutral = {{OperatorKind::MatMul, 0},
        {OperatorKind::Einsum, 0}, {OperatorKind::Linear, 0}, {OperatorKind::ReduceSum, 0},
        {OperatorKind::ReduceL1, 0}, {OperatorKind::ReduceL2, 0}, {OperatorKind::ReduceSumSquare, 0},
        {OperatorKind::ReduceProd, 1}, {OperatorKind::ReduceMean, std::numeric_limits<double>::quiet_NaN()},
        {OperatorKind::ReduceLogSum, -kInfinity}, {OperatorKind::ReduceLogSumExp, -kInfinity},
        {OperatorKind::ReduceMax, -kInfinity}, {OperatorKind::ReduceMin, kInfinity}};
    using Made = std::optional<std::vector<TensorId>>;
    const auto toMade = [](Result<std::vector<TensorId>> made) -> Result<Made> {
        if (!made)
            return std::move(made).error();
        return Made(*std::move(made));
    };
    const auto fill = [&](double value) {
        return append(
            name, source, OperatorKind::Fill, attributesFrom({{"value", value}}), {}, outputs, mayFold);
    };
    if (kind == OperatorKind::ScatterND || kind == OperatorKind::ScatterElements)
        return Made(std::vector<TensorId>{inputs.front()});
    if (kind == OperatorKind::Linear && inputs.size() > 2 && inputs[2])
        return toMade(append(name, source, OperatorKind::Expand, {}, {inputs[2]}, outputs, mayFold));
    if (kind == OperatorKind::Pad && attributes.text("mode", "constant") == "constant")
        return toMade(fill(attributes.real("value")));
    if (kind == OperatorKind::Concat) {
        std::vector<TensorId> parts;
        std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(parts),
            [this](TensorId id) { return elementCount(typeOf(id).shape) > 0; });
        if (parts.size() == 1)
            return Made(std::move(parts));
        return toMade(append(name, source, kind, attributes, std::move(parts), {}, mayFold));
    }
    const auto neutral = kNeutral.find(kind);
    const bool isWhole = !isFloating(outputs.front().dataType);
    if (neutral == kNeutral.end() || (isWhole && !std::isfinite(neutral->second)))
        return Made{};
    return toMade(fill(neutral->second));
}

std::vector<TensorId> OnnxBuilder::emitOpaque(const std::string &name, const SourceNode &source,
    std::vector<TensorId> inputs, std::size_t outputs, const Error *why)
{
    Operator op;
    op.name = uniqueOperatorName(name);
    op.kind = OperatorKind::Unknown;
    op.attributes.set("onnx_type", source.type);
    op.inputs = std::move(inputs);
    op.scope = ScopeId{0};
    op.sources = {source};
    for (std::size_t i = 0; i < outputs; ++i) {
        Tensor tensor;
        tensor.typeKnown = false;
        op.outputs.push_back(addTensor(std::move(tensor), false));
    }
    if (why != nullptr) {
        op.attributes.set("obstacle", static_cast<std::int64_t>(m_graph.obstacles.size()));
        m_graph.obstacles.push_back({op.name, why->message, why->advice});
    }
    m_graph.operators.push_back(std::move(op));
    return m_graph.operators.back().outputs;
}

TensorId OnnxBuilder::addOpaqueInput(const std::string &name, const Error &why)
{
    const TensorId id = addInput(name, {});
    m_graph.at(id).typeKnown = false;
    m_graph.obstacles.push_back({{}, why.message, why.advice});
    return id;
}

bool OnnxBuilder::areOpaque(const std::vector<TensorId> &tensors) const
{
    return std::any_of(
        tensors.begin(), tensors.end(), [this](TensorId id) { return id && !at(id).typeKnown; });
}

Result<std::vector<TensorId>> OnnxBuilder::emitParts(const std::string &name, const SourceNode &source,
    Attributes attributes, TensorId x, const std::vector<TensorType> &outputs)
{
    const auto axis = static_cast<std::size_t>(attributes.integer("axis"));
    std::vector<std::int64_t> sizes;
    for (const TensorType &type : outputs) {
        if (elementCount(type.shape) > 0)
            sizes.push_back(type.shape[axis]);
    }
    std::vector<TensorId> parts{x};
    if (sizes.size() > 1) {
        attributes.set("sizes", sizes);
        TRY(parts, emit(name, source, OperatorKind::Split, std::move(attributes), {x}, {}));
    }
    auto next = parts.begin();
    std::vector<TensorId> ids;
    for (const TensorType &type : outputs)
        ids.push_back(elementCount(type.shape) > 0
                ? *next++
                : addConstant(std::make_shared<const TensorData>(TensorData{type, {}})));
    return ids;
}

std::string OnnxBuilder::uniqueOperatorName(const std::string &name)
{
    const std::int32_t count = m_operatorNames[name]++;
    if (count == 0)
        return name;
    std::string candidate;
    for (std::int32_t number = count + 1;; ++number) {
        candidate = name + "_" + std::to_string(number);
        if (m_operatorNames.emplace(candidate, 1).second)
            return candidate;
    }
}

std::string OnnxBuilder::nameless(const std::string &type)
{
    return type + "_" + std::to_string(m_nameless[type]++);
}

void OnnxBuilder::note(const std::string &text)
{
    if (std::find(m_graph.notes.begin(), m_graph.notes.end(), text) == m_graph.notes.end())
        m_graph.notes.push_back(text);
}

void OnnxBuilder::nameTensors()
{
    std::unordered_set<std::string> names;
    std::unordered_map<std::string, std::int64_t> last; // number given to the last tensor that wanted a name
    const auto claim = [&](Tensor &tensor, const std::string &wanted) {
        std::string name = wanted;
        while (!names.insert(name).second)
            name = wanted + "#" + std::to_string(++last.emplace(wanted, 1).first->second);
        tensor.name = std::move(name);
    };
    // What the file names keeps its name; values of unrolled and inlined subgraphs and inner values come
    // after.
    for (Tensor &tensor : m_graph.tensors) {
        if (!tensor.name.empty())
            claim(tensor, tensor.name);
    }
    for (const Operator &op : m_graph.operators) {
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            Tensor &tensor = m_graph.at(op.outputs[slot]);
            if (tensor.name.empty())
                claim(tensor, op.name + "_output_" + std::to_string(slot));
        }
    }
    for (Tensor &tensor : m_graph.tensors) {
        if (tensor.name.empty())
            claim(tensor, "constant");
    }
}

Graph OnnxBuilder::take(std::vector<TensorId> outputs)
{
    m_graph.outputs = std::move(outputs);
    nameTensors();
    return std::move(m_graph);
}

} // namespace planloom
