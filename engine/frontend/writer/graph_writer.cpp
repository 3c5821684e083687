#include "engine/frontend/writer/graph_writer.h"

#include "engine/frontend/passes/mixture/chosen_writer.h"
#include "engine/frontend/writer/fold_operator.h"
#include "engine/frontend/writer/tensor_values.h"
#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

namespace planloom {

namespace {

constexpr std::int64_t kMostGrownBytes = std::int64_t{4}
    << 20; ///< Of a folded value larger than what it is made of.
constexpr std::size_t kTensorsPerOperator = 8;
constexpr std::size_t kPlacesCompared = 256; ///< Masks that a mask is compared with.

/// Where errors of an operator point to: the file's node, or the operator itself where that has no name.
std::string placeOf(const SourceNode &source, const std::string &name)
{
    return "node:" + (source.name.empty() ? name : source.name);
}

} // namespace

TensorId GraphWriter::addTensor(Tensor tensor, bool known)
{
    m_graph.tensors.push_back(std::move(tensor));
    m_known.push_back(known);
    m_producers.emplace_back();
    return TensorId{static_cast<std::int32_t>(m_graph.tensors.size() - 1)};
}

TensorId GraphWriter::addEmpty(const TensorType &type)
{
    return addConstant(std::make_shared<const TensorData>(TensorData{type, {}}));
}

TensorId GraphWriter::addInput(std::string name, TensorType type)
{
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.type = std::move(type);
    tensor.role = TensorRole::Input;
    const TensorId id = addTensor(std::move(tensor), false);
    m_graph.inputs.push_back(id);
    return id;
}

TensorId GraphWriter::addStored(StoredTensor stored, TensorRole role)
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

void GraphWriter::classify(TensorId id, const Classification &classification, const std::string &name)
{
    Tensor &tensor = m_graph.at(id);
    tensor.classification = std::make_shared<const Classification>(classification);
    if (name == tensor.name || tensor.type.shape.empty())
        return;
    tensor.filePart = FilePart{.name = tensor.name, .shape = tensor.type.shape};
    tensor.name = name;
}

TensorId GraphWriter::addConstant(std::shared_ptr<const TensorData> data, std::string name)
{
    Tensor tensor;
    tensor.name = std::move(name);
    tensor.type = data->type;
    tensor.role = TensorRole::Buffer;
    tensor.data = m_constants.shared(std::move(data));
    return addTensor(std::move(tensor), true);
}

void GraphWriter::makeStored(TensorId id, const Classification &classification)
{
    Tensor &tensor = m_graph.at(id);
    tensor.classification = std::make_shared<const Classification>(classification);
    if (classification.as != StoredAs::Parameter)
        return;
    tensor.role = TensorRole::Weight;
    m_known[static_cast<std::size_t>(id.index)] = false;
}

bool GraphWriter::nameTensor(TensorId id, const std::string &name)
{
    Tensor &tensor = m_graph.at(id);
    if (tensor.name.empty())
        tensor.name = name;
    return tensor.name == name;
}

void GraphWriter::unname(TensorId id)
{
    const TensorRole role = at(id).role;
    if (role == TensorRole::Buffer || role == TensorRole::Activation)
        m_graph.at(id).name.clear();
}

bool GraphWriter::isMadeAlike(TensorId a, TensorId b, int depth) const
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

TensorId GraphWriter::placesOf(TensorId mask) const
{
    constexpr int kDepth = 6; // a comparison, a cast, a sum, moves
    const auto &places = m_chosen.places();
    const std::size_t latest = places.size() > kPlacesCompared ? places.size() - kPlacesCompared : 0;
    for (std::size_t i = places.size(); i-- > latest;) {
        if (isMadeAlike(mask, places[i].first, kDepth))
            return places[i].second;
    }
    return {};
}

void GraphWriter::noteSizes(TensorId sizes, TensorId of, std::size_t begin, std::size_t end)
{
    const ChosenRows *rows = m_chosen.rows(of);
    if (rows != nullptr && rows->dimension >= begin && rows->dimension < end)
        m_chosen.setSize(sizes, typeOf(of).shape[rows->dimension]);
}

std::int32_t GraphWriter::batchDimensionOf(TensorId id)
{
    m_batch.update(m_graph);
    return m_batch.of(id);
}

std::int64_t GraphWriter::batchSize()
{
    m_batch.update(m_graph);
    return m_batch.size();
}

Result<void> GraphWriter::followSizes(const std::string &name, const SourceNode &source,
    const std::vector<TensorId> &inputs, const std::vector<TensorId> &outputs)
{
    for (const TensorId input : inputs) {
        const std::int64_t *found = input ? m_chosen.sizeIn(input) : nullptr;
        if (found == nullptr)
            continue;
        const std::int64_t size = *found;
        for (const TensorId output : outputs) {
            if (!isKnown(output))
                return Error{ErrorCode::NotSupported,
                    "node '" + name + "' (" + source.type
                        + "): it computes with how many rows data choose, which is not known before a run",
                    "sum over a mask to count them", placeOf(source, name)};
            // Other sizes of the same shape may be computed with.
            const auto values = integersOf(*m_graph.at(output).data);
            if (std::find(values.begin(), values.end(), size) != values.end()
                || isFloating(typeOf(output).dataType))
                m_chosen.setSize(output, size);
        }
    }
    return {};
}

Result<std::vector<TensorId>> GraphWriter::emit(const std::string &name, const SourceNode &source,
    OperatorKind kind, Attributes attributes, std::vector<TensorId> inputs, std::vector<TensorType> declared,
    bool mayFold)
{
    const bool chosen = std::any_of(
        inputs.begin(), inputs.end(), [this](TensorId id) { return id && m_chosen.rows(id) != nullptr; });
    const std::vector<TensorId> read = inputs;
    TRY(auto outputs,
        chosen ? ChosenWriter(*this, name, source)
                     .write(kind, std::move(attributes), std::move(inputs), std::move(declared))
               : append(name, source, kind, std::move(attributes), std::move(inputs), std::move(declared),
                   mayFold));
    TRY_VOID(followSizes(name, source, read, outputs));
    return outputs;
}

Error GraphWriter::Draft::error(ErrorCode code, const std::string &what, std::string advice) const
{
    return {
        code, "node '" + name + "' (" + source.type + ")" + what, std::move(advice), placeOf(source, name)};
}

Error GraphWriter::Draft::tooMany(std::size_t most, const char *what) const
{
    return {ErrorCode::ResourceLimit, "the model has more than " + std::to_string(most) + what, "",
        placeOf(source, name)};
}

Result<OperatorTypes> GraphWriter::typesOf(const Draft &draft, const std::vector<TensorType> &declared) const
{
    const auto tooLarge = [&](const TensorType &type, const char *how) {
        return draft.error(ErrorCode::InvalidInput,
            " would make a value of shape " + toString(type.shape) + ", " + how + "larger than 2^62 bytes",
            "check the sizes given with --dim");
    };
    OperatorTypes types;
    for (const TensorId input : draft.inputs)
        types.inputs.push_back(input ? typeOf(input) : TensorType{});
    for (const TensorType &type : declared) {
        if (!checkedByteCount(type))
            return tooLarge(type, "which is negative or ");
    }
    auto inferred =
        inferTypes(draft.kind, draft.attributes, types.inputs, presentAmong(draft.inputs), declared);
    if (!inferred) {
        const Error &error = inferred.error();
        return draft.error(error.code, ": " + error.message,
            error.advice.empty() ? "the model contradicts itself, or a size given with --dim does not fit it"
                                 : error.advice);
    }
    types.outputs = *std::move(inferred);
    for (const TensorType &type : types.outputs) {
        if (!checkedByteCount(type))
            return tooLarge(type, "");
    }
    return types;
}

/// The values of the outputs, where those of the inputs are known and they are not too large.
GraphWriter::Made GraphWriter::fold(const Draft &draft, const OperatorTypes &types)
{
    if (!draft.mayFold)
        return std::nullopt;
    std::vector<std::shared_ptr<const TensorData>> values;
    std::int64_t held = kMostGrownBytes;
    for (const TensorId input : draft.inputs) {
        if (input && !isKnown(input))
            return std::nullopt;
        values.push_back(input ? at(input).data : nullptr);
    }
    for (const TensorType &type : types.inputs)
        held = std::max(held, checkedByteCount(type).value_or(0));
    const std::size_t taken = m_constants.taken();
    const bool fits = std::all_of(types.outputs.begin(), types.outputs.end(),
        [&](const TensorType &type) { return *checkedByteCount(type) <= held && m_constants.take(type); });
    auto results = fits ? foldOperator(draft.kind, draft.attributes, values, types.outputs) : std::nullopt;
    if (!results) {
        m_constants.giveBack(taken);
        return std::nullopt;
    }
    std::vector<TensorId> ids;
    for (TensorData &result : *results)
        ids.push_back(addConstant(std::make_shared<const TensorData>(std::move(result))));
    return ids;
}

Result<std::vector<TensorId>> GraphWriter::append(const std::string &name, const SourceNode &source,
    OperatorKind kind, Attributes attributes, std::vector<TensorId> inputs, std::vector<TensorType> declared,
    bool mayFold)
{
    Draft draft{name, source, kind, std::move(attributes), std::move(inputs), mayFold};
    TRY(const OperatorTypes types, typesOf(draft, declared));
    const std::size_t mostTensors = m_options.mostOperators * kTensorsPerOperator;
    if (m_graph.tensors.size() >= mostTensors)
        return draft.tooMany(mostTensors, " values");
    if (auto folded = fold(draft, types))
        return *std::move(folded);
    TRY(auto made, appendWithoutElements(draft, types.outputs));
    if (made)
        return *std::move(made);
    if (m_graph.operators.size() >= m_options.mostOperators)
        return draft.tooMany(m_options.mostOperators, " operators");
    const OperatorId id{static_cast<std::int32_t>(m_graph.operators.size())};
    Operator op;
    op.name = m_names.unique(name);
    op.kind = kind;
    op.attributes = std::move(draft.attributes);
    op.inputs = std::move(draft.inputs);
    op.scope = ScopeId{0};
    op.sources = {source};
    for (const TensorType &type : types.outputs) {
        Tensor tensor;
        tensor.type = type;
        op.outputs.push_back(addTensor(std::move(tensor), false));
        m_producers.back() = id;
    }
    m_graph.operators.push_back(std::move(op));
    return m_graph.operators.back().outputs;
}

Result<GraphWriter::Made> GraphWriter::appendWithoutElements(
    const Draft &draft, const std::vector<TensorType> &outputs)
{
    const auto isEmpty = [](const TensorType &type) { return elementCount(type.shape) == 0; };
    const bool empty = std::any_of(outputs.begin(), outputs.end(), isEmpty);
    if (empty && std::all_of(outputs.begin(), outputs.end(), isEmpty)) {
        std::vector<TensorId> ids; // values without elements are known, whatever makes them
        for (const TensorType &type : outputs)
            ids.push_back(addEmpty(type));
        return Made(std::move(ids));
    }
    if (empty && draft.kind == OperatorKind::Split) {
        TRY(auto parts, emitParts(draft, outputs));
        return Made(std::move(parts));
    }
    if (empty)
        return draft.error(ErrorCode::NotSupported, " makes a value without elements", "");
    const bool ofNothing = std::any_of(
        draft.inputs.begin(), draft.inputs.end(), [&](TensorId id) { return id && isEmpty(typeOf(id)); });
    return ofNothing ? appendOfNothing(draft, outputs) : Result<Made>(Made{});
}

Result<GraphWriter::Made> GraphWriter::appendOfNothing(
    const Draft &draft, const std::vector<TensorType> &outputs)
{
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    // What reductions of no elements give.
    static const std::map<OperatorKind, double> kNeutral = {{OperatorKind::MatMul, 0},
        {OperatorKind::Einsum, 0}, {OperatorKind::Linear, 0}, {OperatorKind::ReduceSum, 0},
        {OperatorKind::ReduceL1, 0}, {OperatorKind::ReduceL2, 0}, {OperatorKind::ReduceSumSquare, 0},
        {OperatorKind::ReduceProd, 1}, {OperatorKind::ReduceMean, std::numeric_limits<double>::quiet_NaN()},
        {OperatorKind::ReduceLogSum, -kInfinity}, {OperatorKind::ReduceLogSumExp, -kInfinity},
        {OperatorKind::ReduceMax, -kInfinity}, {OperatorKind::ReduceMin, kInfinity}};
    const auto instead = [&](OperatorKind kind, Attributes attributes, std::vector<TensorId> inputs,
                             const std::vector<TensorType> &types) -> Result<Made> {
        TRY(auto made,
            append(draft.name, draft.source, kind, std::move(attributes), std::move(inputs), types,
                draft.mayFold));
        return Made(std::move(made));
    };
    const auto fill = [&](double value) {
        return instead(OperatorKind::Fill, attributesFrom({{"value", value}}), {}, outputs);
    };
    const OperatorKind kind = draft.kind;
    const std::vector<TensorId> &inputs = draft.inputs;
    if (kind == OperatorKind::ScatterND || kind == OperatorKind::ScatterElements)
        return Made(std::vector<TensorId>{inputs.front()});
    if (kind == OperatorKind::Linear && inputs.size() > 2 && inputs[2])
        return instead(OperatorKind::Expand, {}, {inputs[2]}, outputs);
    if (kind == OperatorKind::Pad && draft.attributes.text("mode", "constant") == "constant")
        return fill(draft.attributes.real("value"));
    if (kind == OperatorKind::Concat) {
        std::vector<TensorId> parts;
        std::copy_if(inputs.begin(), inputs.end(), std::back_inserter(parts),
            [this](TensorId id) { return elementCount(typeOf(id).shape) > 0; });
        if (parts.size() == 1)
            return Made(std::move(parts));
        return instead(kind, draft.attributes, std::move(parts), {});
    }
    const auto neutral = kNeutral.find(kind);
    const bool isWhole = !isFloating(outputs.front().dataType);
    if (neutral == kNeutral.end() || (isWhole && !std::isfinite(neutral->second)))
        return Made{};
    return fill(neutral->second);
}

std::vector<TensorId> GraphWriter::emitOpaque(const std::string &name, const SourceNode &source,
    std::vector<TensorId> inputs, std::size_t outputs, const Error *why)
{
    Operator op;
    op.name = m_names.unique(name);
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

TensorId GraphWriter::addOpaqueInput(const std::string &name, const Error &why)
{
    const TensorId id = addInput(name, {});
    m_graph.at(id).typeKnown = false;
    m_graph.obstacles.push_back({{}, why.message, why.advice});
    return id;
}

bool GraphWriter::areOpaque(const std::vector<TensorId> &tensors) const
{
    return std::any_of(
        tensors.begin(), tensors.end(), [this](TensorId id) { return id && !at(id).typeKnown; });
}

Result<std::vector<TensorId>> GraphWriter::emitParts(
    const Draft &draft, const std::vector<TensorType> &outputs)
{
    Attributes attributes = draft.attributes;
    const auto axis = static_cast<std::size_t>(attributes.integer("axis"));
    std::vector<std::int64_t> sizes;
    for (const TensorType &type : outputs) {
        if (elementCount(type.shape) > 0)
            sizes.push_back(type.shape[axis]);
    }
    std::vector<TensorId> parts{draft.inputs.front()};
    if (sizes.size() > 1) {
        attributes.set("sizes", sizes);
        TRY(parts,
            emit(draft.name, draft.source, OperatorKind::Split, std::move(attributes), draft.inputs, {}));
    }
    auto next = parts.begin();
    std::vector<TensorId> ids;
    for (const TensorType &type : outputs)
        ids.push_back(elementCount(type.shape) > 0 ? *next++ : addEmpty(type));
    return ids;
}

void GraphWriter::note(const std::string &text)
{
    if (std::find(m_graph.notes.begin(), m_graph.notes.end(), text) == m_graph.notes.end())
        m_graph.notes.push_back(text);
}

Attributes attributesFrom(std::initializer_list<std::pair<std::string_view, Attribute>> values)
{
    Attributes attributes;
    for (const auto &[name, value] : values)
        attributes.set(name, value);
    return attributes;
}

Graph GraphWriter::take(std::vector<TensorId> outputs)
{
    m_graph.outputs = std::move(outputs);
    nameTensors(m_graph);
    return std::move(m_graph);
}

} // namespace planloom
