#include "engine/frontend/passes/mixture/mixture_writer.h"

#include "engine/frontend/writer/graph_writer.h"
#include "engine/frontend/writer/tensor_values.h"
#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

} // namespace

TensorId MixtureWriter::constant(std::shared_ptr<const TensorData> data)
{
    Tensor tensor;
    tensor.name = m_tensorNames.take("constant");
    tensor.type = data->type;
    tensor.role = TensorRole::Buffer;
    tensor.data = std::move(data);
    m_made.push_back(std::move(tensor));
    return {static_cast<std::int32_t>(m_graph.tensors.size() + m_made.size() - 1)};
}

TensorId MixtureWriter::add(const Operator &like, const std::string &suffix, OperatorKind kind,
    Attributes attributes, std::vector<TensorId> inputs, std::vector<TensorType> declared)
{
    std::vector<TensorType> types;
    for (const TensorId input : inputs)
        types.push_back(input ? typeOf(input) : TensorType{});
    auto inferred = inferTypes(kind, attributes, types, std::vector<bool>(inputs.size(), true), declared);
    m_fits = m_fits && inferred;
    if (!inferred)
        return inputs.front();
    Operator op;
    op.name = m_operatorNames.take(like.name + suffix);
    op.kind = kind;
    op.attributes = std::move(attributes);
    op.inputs = std::move(inputs);
    op.scope = like.scope;
    op.sources = like.sources;
    for (TensorType &type : *inferred) {
        m_fits = m_fits && checkedByteCount(type).has_value();
        Tensor tensor;
        tensor.name = m_tensorNames.take(op.name + "_output_" + std::to_string(op.outputs.size()));
        tensor.type = std::move(type);
        m_made.push_back(std::move(tensor));
        op.outputs.push_back({static_cast<std::int32_t>(m_graph.tensors.size() + m_made.size() - 1)});
    }
    m_operators.push_back(std::move(op));
    return m_operators.back().outputs.front();
}

TensorId MixtureWriter::reshaped(TensorId id, const Operator &like, Shape shape, const std::string &suffix)
{
    if (shapeOf(id) == shape)
        return id;
    const DataType type = typeOf(id).dataType;
    return add(like, suffix, OperatorKind::Reshape, {}, {id}, {TensorType{type, std::move(shape)}});
}

/// Which rows go to each expert: those whose choice it is, in order.
void MixtureWriter::findPlaces(const Capacity &capacity)
{
    const Operator &first = m_graph.operators[m_mixture.first];
    const std::int64_t most = m_mixture.rows / m_groups / m_finder.choicesPerToken(m_mixture.choice);
    const double expected =
        static_cast<double>(m_mixture.rows / m_groups) / static_cast<double>(m_mixture.experts);
    const std::int64_t room = roomOf(capacity, expected, most);
    m_capacity = std::max<std::int64_t>(room, m_groups == 1 ? 2 : 1) * m_groups;
    Integers numbers;
    for (std::int64_t e = 0; e < m_mixture.experts; ++e)
        numbers.push_back(e);
    const DataType type = typeOf(m_mixture.choice).dataType;
    TensorId experts = constant(integerTensor(std::move(numbers), {m_mixture.experts, 1}));
    if (type != DataType::Int64)
        experts = add(
            first, "_experts", OperatorKind::Cast, {}, {experts}, {TensorType{type, {m_mixture.experts, 1}}});
    const TensorId row = reshaped(m_mixture.choice, first, {1, m_mixture.rows}, "_choice");
    const TensorId mask = add(first, "_chosen", OperatorKind::Equal, {}, {row, experts});
    const TensorId places = add(first, "_places", OperatorKind::NonZero,
        attributesFrom({{"kept", std::int64_t{1}}, {"group_axis", std::int64_t{1}}, {"groups", m_groups},
            {"capacity", m_capacity}}),
        {mask});
    m_placesOver[1] = reshaped(places, first, {m_mixture.experts, m_capacity}, "_list");
    if (room < most)
        m_graph.notes.push_back("'" + placesName() + "' has room for " + std::to_string(room)
            + " rows of each expert" + (m_groups > 1 ? " and sample" : "")
            + "; a run tells how many found none and were left out (--capacity)");
}

/// The places to pick `x` [n ..] by; `of` becomes what is to be picked from: where x repeats rows, these.
TensorId MixtureWriter::placesIn(TensorId x, TensorId &of)
{
    of = x;
    // [t h] -> [t 1 h] -> [t k h] -> [n h], or [n h 1] and the like
    const Operator *joined = m_finder.makerOf(x);
    const Operator *expanded = joined;
    while (expanded != nullptr && expanded->kind == OperatorKind::Reshape)
        expanded = m_finder.makerOf(expanded->inputs[0]);
    if (expanded == joined || expanded == nullptr || expanded->kind != OperatorKind::Expand)
        return m_placesOver[1];
    const Shape &narrow = shapeOf(expanded->inputs[0]);
    const Shape &wide = shapeOf(expanded->outputs[0]);
    Shape all = shapeOf(x);
    const bool repeats = wide.size() > 1 && narrow.size() == wide.size() && narrow[1] == 1 && wide[1] > 1
        && narrow[0] == wide[0] && wide[0] * wide[1] == all[0]
        && std::equal(narrow.begin() + 2, narrow.end(), wide.begin() + 2);
    if (!repeats)
        return m_placesOver[1];
    all[0] = wide[0];
    const Operator &first = m_graph.operators[m_mixture.first];
    of = reshaped(expanded->inputs[0], *joined, std::move(all), "_once");
    TensorId &places = m_placesOver[wide[1]];
    if (!places)
        places = add(first, "_tokens", OperatorKind::Div, {},
            {m_placesOver[1], constant(integerTensor({wide[1]}, {}))});
    return places;
}

/// What `id` [n ..] is for each expert, [e c ..]; itself where it has no rows.
TensorId MixtureWriter::byExpert(TensorId id, const Operator &reader)
{
    if (m_finder.partOf(id) == MixturePart::Picked) {
        const TensorId weights = picked(id);
        Shape shape = shapeOf(weights);
        shape.insert(shape.begin() + 1, 1);
        return reshaped(weights, reader, std::move(shape), "_by_expert");
    }
    if (const auto found = m_byExpert.find(id); found != m_byExpert.end())
        return found->second;
    const Shape &shape = shapeOf(id);
    const std::size_t rank = shapeOf(reader.outputs[0]).size();
    if (shape.size() != rank || shape[0] != m_mixture.rows)
        return id; // broadcast
    TensorId of;
    const TensorId places = placesIn(id, of);
    return m_byExpert[id] = add(reader, "_rows", OperatorKind::Gather,
               attributesFrom(
                   {{"axis", std::int64_t{0}}, {"groups", m_groups}, {"grouped", std::int64_t{1}}}),
               {of, places});
}

/// The weights [e ..] that every row's `id` [n ..] was picked from.
TensorId MixtureWriter::picked(TensorId id) const
{
    return m_weights.at(id);
}

TensorType MixtureWriter::slotType(TensorId id) const
{
    TensorType type = typeOf(id);
    type.shape.front() = m_capacity;
    type.shape.insert(type.shape.begin(), m_mixture.experts);
    return type;
}

bool MixtureWriter::copyPicked(const Operator &op)
{
    if (m_finder.choiceOf(op) == m_mixture.choice) {
        m_weights[op.outputs[0]] = op.inputs[0];
        return true;
    }
    const bool moves = op.inputs.size() == 1 && op.outputs.size() == 1
        && (op.kind == OperatorKind::Transpose || op.kind == OperatorKind::Reshape
            || op.kind == OperatorKind::Cast || op.kind == OperatorKind::Identity);
    if (!moves || m_weights.count(op.inputs[0]) == 0)
        return false;
    TensorType type = typeOf(op.outputs[0]);
    type.shape.front() = m_mixture.experts;
    m_weights[op.outputs[0]] =
        add(op, "_by_expert", op.kind, op.attributes, {m_weights.at(op.inputs[0])}, {std::move(type)});
    return true;
}

/// Attributes of an operator whose tensors have another dimension in front.
bool MixtureWriter::shiftAttributes(const Operator &op, Attributes &attributes) const
{
    using enum OperatorKind;
    attributes = op.attributes;
    if (isElementwise(op.kind) || op.kind == Reshape || op.kind == MatMul)
        return op.kind != Dropout;
    switch (op.kind) {
    case Transpose: {
        Integers permutation{0};
        for (const std::int64_t axis : op.attributes.integers("permutation"))
            permutation.push_back(axis + 1);
        attributes.set("permutation", permutation);
        return true;
    }
    case Slice:
        for (const auto &[name, value] : {std::pair("starts", 0), std::pair("steps", 1)}) {
            Integers list = op.attributes.integers(name);
            list.insert(list.begin(), value);
            attributes.set(name, list);
        }
        return true;
    case Split:
    case Concat:
    case Softmax:
    case LogSoftmax:
    case LayerNorm:
    case RmsNorm:
        attributes.set("axis", op.attributes.integer("axis") + 1);
        return op.attributes.integer("axis") > 0;
    case ReduceSum:
    case ReduceMean:
    case ReduceMax:
    case ReduceSumSquare: {
        Integers axes = op.attributes.integers("axes");
        for (std::int64_t &axis : axes)
            ++axis;
        attributes.set("axes", axes);
        return !axes.empty();
    }
    default:
        return false;
    }
}

/// A product of rows with weights that they picked.
bool MixtureWriter::writeProduct(const Operator &op)
{
    const bool weightFirst = m_finder.partOf(op.inputs[0]) == MixturePart::Picked;
    const TensorId row = op.inputs[weightFirst ? 1 : 0];
    const TensorId weights = op.inputs[weightFirst ? 0 : 1];
    if (op.kind != OperatorKind::MatMul || shapeOf(row).size() != 3 || shapeOf(weights).size() != 3
        || m_finder.partOf(weights) != MixturePart::Picked || m_finder.partOf(row) == MixturePart::Picked)
        return false;
    // [e c m h] x [e f h], or [e c h m]; m is 1 where a row is a vector.
    TensorId x = byExpert(row, op);
    const std::int64_t m = shapeOf(row)[weightFirst ? 2 : 1];
    Shape shape = shapeOf(x);
    if (m == 1) {
        shape.erase(shape.begin() + (weightFirst ? 3 : 2));
        x = reshaped(x, op, shape, "_vectors");
    }
    const char *equation = m == 1 ? (weightFirst ? "ech,efh->ecf" : "ech,ehf->ecf")
                                  : (weightFirst ? "echm,efh->ecfm" : "ecmh,ehf->ecmf");
    const TensorId y = add(op, "", OperatorKind::Einsum,
        attributesFrom({{"equation", std::string(equation)}}), {x, picked(weights)});
    m_byExpert[op.outputs[0]] = reshaped(y, op, slotType(op.outputs[0]).shape, "_rows");
    return true;
}

bool MixtureWriter::copyPerRow(const Operator &op)
{
    const bool weighs = std::any_of(op.inputs.begin(), op.inputs.end(),
        [&](TensorId id) { return id && m_finder.partOf(id) == MixturePart::Picked; });
    if (weighs && !isElementwise(op.kind))
        return writeProduct(op);
    Attributes attributes;
    if (!shiftAttributes(op, attributes))
        return false;
    std::vector<TensorId> inputs;
    for (const TensorId id : op.inputs)
        inputs.push_back(id ? byExpert(id, op) : TensorId{});
    std::vector<TensorType> declared;
    for (const TensorId id : op.outputs)
        declared.push_back(slotType(id));
    add(op, "", op.kind, std::move(attributes), std::move(inputs), declared);
    if (!m_fits)
        return false;
    const Operator &made = m_operators.back();
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
        m_fits = m_fits && typeOf(made.outputs[slot]) == declared[slot];
        m_byExpert[op.outputs[slot]] = made.outputs[slot];
    }
    return m_fits;
}

bool MixtureWriter::write(const Capacity &capacity)
{
    findPlaces(capacity);
    for (const std::size_t position : m_mixture.members) {
        const Operator &op = m_graph.operators[position];
        const bool written =
            m_finder.partOf(op.outputs[0]) == MixturePart::Picked ? copyPicked(op) : copyPerRow(op);
        if (!written || !m_fits)
            return false;
    }
    return m_fits;
}

void MixtureWriter::commit()
{
    const std::set<std::size_t> members(m_mixture.members.begin(), m_mixture.members.end());
    std::map<TensorId, TensorId> instead;
    const Operator &first = m_graph.operators[m_mixture.first];
    for (const std::size_t position : m_mixture.members) {
        const Operator op = m_graph.operators[position];
        for (const TensorId output : op.outputs) {
            const auto &users = m_finder.usersOf(output);
            const bool leaves = m_finder.isOutput(output)
                || std::any_of(
                    users.begin(), users.end(), [&](std::size_t user) { return members.count(user) == 0; });
            if (!leaves || m_finder.partOf(output) != MixturePart::PerRow)
                continue;
            const TensorId zeros =
                add(op, "_zeros", OperatorKind::Fill, attributesFrom({{"value", 0.0}}), {}, {typeOf(output)});
            const TensorId places =
                reshaped(m_placesOver[1], first, {m_mixture.experts, m_capacity, 1}, "_tuples");
            add(op, "_back", OperatorKind::ScatterND,
                attributesFrom(
                    {{"reduction", std::string("add")}, {"groups", m_groups}, {"grouped", std::int64_t{1}}}),
                {zeros, places, m_byExpert.at(output)});
            m_operators.back().outputs = {output}; // it takes the place of what made it
        }
    }
    for (Tensor &tensor : m_made)
        m_graph.tensors.push_back(std::move(tensor));
    // What is made by expert stands where the last of the mixture stood; what others read of it, behind.
    std::vector<Operator> operators;
    const std::size_t last = m_mixture.members.back();
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        const bool replaced =
            members.count(i) != 0 && m_finder.partOf(m_graph.operators[i].outputs[0]) == MixturePart::PerRow;
        if (!replaced)
            operators.push_back(std::move(m_graph.operators[i]));
        if (i == last)
            std::move(m_operators.begin(), m_operators.end(), std::back_inserter(operators));
    }
    m_graph.operators = std::move(operators);
}

} // namespace planloom
