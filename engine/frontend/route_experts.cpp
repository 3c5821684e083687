#include "engine/frontend/route_experts.h"

#include "engine/frontend/chosen_rows.h"
#include "engine/frontend/dead_code.h"
#include "engine/frontend/onnx_external.h"
#include "engine/frontend/onnx_operators.h"
#include "engine/frontend/onnx_values.h"
#include "engine/frontend/unique_names.h"
#include "engine/graph/catalogue.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace planloom {

namespace {

using Integers = std::vector<std::int64_t>;

/// What a value of a region is.
enum class Part : std::uint8_t {
    Outside,
    PerRow, ///< [n ..]
    Picked, ///< [n ..], made of weights that each row picked.
};

/// One mixture: the operators from the first pick to the last product with what was picked.
struct Mixture {
    TensorId choice{}; ///< The expert of each row.
    std::int64_t rows = 0;
    std::int64_t experts = 0;
    std::size_t first = 0; ///< Position of the first pick.
    std::vector<std::size_t> members{}; ///< Positions, in order.
};

/// Finds mixtures. What it knows of the graph is read by `ExpertWriter`, too.
struct ExpertRouter {
    ExpertRouter(Graph &graphGiven, const ImportOptions &optionsGiven)
        : graph(graphGiven)
        , options(optionsGiven)
    {
        index();
    }

    void run();

    static std::size_t at(TensorId id) { return static_cast<std::size_t>(id.index); }
    const Shape &shapeOf(TensorId id) const { return graph.at(id).type.shape; }
    void index();
    TensorId choiceOf(const Operator &op) const;
    std::optional<Mixture> mixtureAt(std::size_t position);
    bool worksByRow(const Operator &op, const Mixture &mixture) const;
    std::int64_t choicesPerToken(TensorId choice) const;

    Graph &graph;
    const ImportOptions &options;
    std::vector<OperatorId> producers{};
    std::vector<std::vector<std::size_t>> users{};
    std::vector<bool> fed{};
    std::vector<bool> isOutput{};
    std::vector<Part> parts{}; ///< By tensor, of the mixture at hand.
};

void ExpertRouter::index()
{
    const std::size_t count = graph.tensors.size();
    producers.assign(count, OperatorId{});
    users.assign(count, {});
    fed.assign(count, false);
    isOutput.assign(count, false);
    parts.assign(count, Part::Outside);
    for (const TensorId id : graph.inputs)
        fed[at(id)] = true;
    for (const TensorId id : graph.outputs)
        isOutput[at(id)] = true;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        bool depends = false;
        for (const TensorId id : graph.operators[i].inputs) {
            if (!id)
                continue;
            depends = depends || fed[at(id)];
            users[at(id)].push_back(i);
        }
        for (const TensorId id : graph.operators[i].outputs) {
            producers[at(id)] = OperatorId{static_cast<std::int32_t>(i)};
            fed[at(id)] = depends;
        }
    }
}

/// What an operator picks weights by, [n], each row a set of them; invalid if it does not.
TensorId ExpertRouter::choiceOf(const Operator &op) const
{
    const bool gathers = op.kind == OperatorKind::Gather && op.attributes.integer("axis") == 0;
    const bool gathersND = op.kind == OperatorKind::GatherND && op.attributes.integer("batch_dims") == 0;
    if ((!gathers && !gathersND) || op.attributes.has("groups") || fed[at(op.inputs[0])]
        || !fed[at(op.inputs[1])] || shapeOf(op.inputs[0]).size() < 2 || shapeOf(op.inputs[0])[0] < 2)
        return {};
    const Shape &indices = shapeOf(op.inputs[1]);
    if (indices.size() != (gathers ? 1 : 2) || (gathersND && indices[1] != 1) || indices[0] < 2)
        return {};
    TensorId choice = op.inputs[1];
    while (producers[at(choice)]) {
        const Operator &maker = graph.at(producers[at(choice)]);
        if (maker.kind != OperatorKind::Reshape && maker.kind != OperatorKind::Identity)
            break;
        choice = maker.inputs[0];
    }
    return choice;
}

/// True if the operator makes row i of its outputs of row i of what it has of the mixture.
bool ExpertRouter::worksByRow(const Operator &op, const Mixture &mixture) const
{
    std::vector<ChosenRows> own(op.inputs.size());
    std::vector<const ChosenRows *> rows;
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const bool part = op.inputs[slot] && parts[at(op.inputs[slot])] != Part::Outside;
        own[slot].places = mixture.choice;
        rows.push_back(part ? &own[slot] : nullptr);
    }
    const RowFlow flow = followRows(graph, op, rows);
    return flow.problem.empty()
        && std::all_of(flow.dimensions.begin(), flow.dimensions.end(), [](std::int32_t d) { return d == 0; });
}

/// Of how many experts each token chooses, if the choice is a TopK's; 1 else.
std::int64_t ExpertRouter::choicesPerToken(TensorId choice) const
{
    const OperatorId producer = producers[at(choice)];
    if (!producer || graph.at(producer).kind != OperatorKind::TopK)
        return 1;
    const Operator &op = graph.at(producer);
    const Shape &shape = shapeOf(choice);
    return op.attributes.integer("axis") + 1 == static_cast<std::int64_t>(shape.size()) ? shape.back() : 1;
}

/// The mixture whose first pick stands at `position`, if there is one.
std::optional<Mixture> ExpertRouter::mixtureAt(std::size_t position)
{
    const Operator &pick = graph.operators[position];
    Mixture mixture{choiceOf(pick), 0, shapeOf(pick.inputs[0])[0], position, {}};
    mixture.rows = shapeOf(pick.inputs[1])[0];
    std::set<std::size_t> reached{position}; // operators that read what is known of the mixture, in order
    std::vector<std::size_t> followed;
    const auto take = [&](const Operator &op, std::size_t where, Part part) {
        followed.push_back(where);
        for (const TensorId output : op.outputs) {
            parts[at(output)] = part;
            reached.insert(users[at(output)].begin(), users[at(output)].end());
        }
    };
    for (std::size_t i = position; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        const bool picks = (op.kind == OperatorKind::Gather || op.kind == OperatorKind::GatherND)
            && op.inputs[0] && choiceOf(op) == mixture.choice && shapeOf(op.inputs[0])[0] == mixture.experts
            && shapeOf(op.inputs[1])[0] == mixture.rows;
        if (picks) {
            take(op, i, Part::Picked);
            continue;
        }
        if (reached.count(i) == 0 || !worksByRow(op, mixture))
            continue;
        const bool picked = std::all_of(op.inputs.begin(), op.inputs.end(),
            [&](TensorId id) { return !id || parts[at(id)] == Part::Picked; });
        take(op, i, picked ? Part::Picked : Part::PerRow);
    }
    // What leads to a product with picked weights belongs to the mixture, what comes after the last does not.
    std::set<std::size_t> members;
    bool product = false;
    for (auto i = followed.rbegin(); i != followed.rend(); ++i) {
        const Operator &op = graph.operators[*i];
        const bool mixes = parts[at(op.outputs[0])] == Part::PerRow
            && std::any_of(op.inputs.begin(), op.inputs.end(),
                [&](TensorId id) { return id && parts[at(id)] == Part::Picked; });
        const bool leads = std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorId id) {
            return std::any_of(users[at(id)].begin(), users[at(id)].end(),
                [&](std::size_t user) { return members.count(user) != 0; });
        });
        if (mixes || leads)
            members.insert(*i);
        product = product || (mixes && categoryOf(op.kind) == OperatorCategory::Product);
    }
    mixture.members.assign(members.begin(), members.end());
    if (product)
        return mixture;
    for (const std::size_t i : followed) {
        for (const TensorId output : graph.operators[i].outputs)
            parts[at(output)] = Part::Outside;
    }
    return std::nullopt;
}

/// Writes a mixture anew, by expert. Nothing of the graph changes unless all of it can be written.
class ExpertWriter
{
public:
    ExpertWriter(const ExpertRouter &router, const Mixture &mixture, std::int32_t batch, std::int64_t samples)
        : m_router(router)
        , m_graph(router.graph)
        , m_mixture(mixture)
        , m_groups(batch == 0 ? samples : 1)
        , m_tensorNames(UniqueNames::ofTensors(m_graph))
        , m_operatorNames(UniqueNames::ofOperators(m_graph))
    {
    }

    /// @return false if something in the mixture cannot be written by expert
    bool write();
    /// Puts what was written in the place of what was there.
    void commit();

private:
    const Shape &shapeOf(TensorId id) const { return typeOf(id).shape; }
    const TensorType &typeOf(TensorId id) const
    {
        const auto at = static_cast<std::size_t>(id.index);
        return at < m_graph.tensors.size() ? m_graph.tensors[at].type
                                           : m_made[at - m_graph.tensors.size()].type;
    }
    Part partOf(TensorId id) const { return m_router.parts[static_cast<std::size_t>(id.index)]; }
    TensorId add(const Operator &like, const std::string &suffix, OperatorKind kind, Attributes attributes,
        std::vector<TensorId> inputs, std::vector<TensorType> declared = {});
    TensorId constant(std::shared_ptr<const TensorData> data);
    void findPlaces();
    TensorId byExpert(TensorId id, const Operator &reader);
    TensorId picked(TensorId id) const;
    TensorId placesIn(TensorId x, TensorId &of);
    bool copyPicked(const Operator &op);
    bool copyPerRow(const Operator &op);
    bool writeProduct(const Operator &op);
    bool shiftAttributes(const Operator &op, Attributes &attributes) const;
    TensorType slotType(TensorId id) const;
    TensorId reshaped(TensorId id, const Operator &like, Shape shape, const std::string &suffix);

    const ExpertRouter &m_router;
    Graph &m_graph;
    const Mixture &m_mixture;
    std::int64_t m_groups;
    UniqueNames m_tensorNames;
    UniqueNames m_operatorNames;
    std::vector<Tensor> m_made{};
    std::vector<Operator> m_operators{};
    std::map<TensorId, TensorId> m_byExpert{}; ///< [n ..] as [e c ..].
    std::map<TensorId, TensorId> m_weights{}; ///< Picked [n ..] as [e ..].
    std::map<std::int64_t, TensorId> m_placesOver{}; ///< Places of tokens that have so many rows, [e c].
    std::int64_t m_capacity = 0; ///< Of one expert, all samples together.
    bool m_fits = true;
};

TensorId ExpertWriter::constant(std::shared_ptr<const TensorData> data)
{
    Tensor tensor;
    tensor.name = m_tensorNames.take("constant");
    tensor.type = data->type;
    tensor.role = TensorRole::Buffer;
    tensor.data = std::move(data);
    m_made.push_back(std::move(tensor));
    return {static_cast<std::int32_t>(m_graph.tensors.size() + m_made.size() - 1)};
}

TensorId ExpertWriter::add(const Operator &like, const std::string &suffix, OperatorKind kind,
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

TensorId ExpertWriter::reshaped(TensorId id, const Operator &like, Shape shape, const std::string &suffix)
{
    if (shapeOf(id) == shape)
        return id;
    const DataType type = typeOf(id).dataType;
    return add(like, suffix, OperatorKind::Reshape, {}, {id}, {TensorType{type, std::move(shape)}});
}

/// Which rows go to each expert: those whose choice it is, in order.
void ExpertWriter::findPlaces()
{
    const Operator &first = m_graph.operators[m_mixture.first];
    const std::string name = first.name + "_places";
    const std::int64_t most = m_mixture.rows / m_groups / m_router.choicesPerToken(m_mixture.choice);
    const double expected =
        static_cast<double>(m_mixture.rows / m_groups) / static_cast<double>(m_mixture.experts);
    const auto &given = m_router.options.capacities;
    auto found = given.find(name);
    if (found == given.end())
        found = given.find("*");
    const std::int64_t room = roomOf(found == given.end() ? Capacity{} : found->second, expected, most);
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
        m_graph.notes.push_back("'" + name + "' has room for " + std::to_string(room) + " rows of each expert"
            + (m_groups > 1 ? " and sample" : "")
            + "; a run tells how many found none and were left out (--capacity)");
}

/// The places to pick `x` [n ..] by; `of` becomes what is to be picked from: where x repeats rows, these.
TensorId ExpertWriter::placesIn(TensorId x, TensorId &of)
{
    of = x;
    const auto producer = [&](TensorId id) {
        const OperatorId made = m_router.producers[static_cast<std::size_t>(id.index)];
        return made ? &m_graph.at(made) : nullptr;
    };
    // [t h] -> [t 1 h] -> [t k h] -> [n h]
    const Operator *joined = producer(x);
    const Operator *expanded =
        joined != nullptr && joined->kind == OperatorKind::Reshape ? producer(joined->inputs[0]) : nullptr;
    if (expanded == nullptr || expanded->kind != OperatorKind::Expand)
        return m_placesOver[1];
    const Shape &narrow = shapeOf(expanded->inputs[0]);
    const Shape &wide = shapeOf(expanded->outputs[0]);
    Shape all = shapeOf(x);
    const bool repeats = wide.size() == all.size() + 1 && narrow.size() == wide.size() && narrow[1] == 1
        && wide[1] > 1 && narrow[0] == wide[0] && wide[0] * wide[1] == all[0]
        && std::equal(wide.begin() + 2, wide.end(), all.begin() + 1)
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
TensorId ExpertWriter::byExpert(TensorId id, const Operator &reader)
{
    if (partOf(id) == Part::Picked) {
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
TensorId ExpertWriter::picked(TensorId id) const
{
    return m_weights.at(id);
}

TensorType ExpertWriter::slotType(TensorId id) const
{
    TensorType type = typeOf(id);
    type.shape.front() = m_capacity;
    type.shape.insert(type.shape.begin(), m_mixture.experts);
    return type;
}

bool ExpertWriter::copyPicked(const Operator &op)
{
    if (m_router.choiceOf(op) == m_mixture.choice) {
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
bool ExpertWriter::shiftAttributes(const Operator &op, Attributes &attributes) const
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
bool ExpertWriter::writeProduct(const Operator &op)
{
    const bool weightFirst = partOf(op.inputs[0]) == Part::Picked;
    const TensorId row = op.inputs[weightFirst ? 1 : 0];
    const TensorId weights = op.inputs[weightFirst ? 0 : 1];
    if (op.kind != OperatorKind::MatMul || shapeOf(row).size() != 3 || shapeOf(weights).size() != 3
        || partOf(weights) != Part::Picked || partOf(row) == Part::Picked)
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

bool ExpertWriter::copyPerRow(const Operator &op)
{
    const bool weighs = std::any_of(
        op.inputs.begin(), op.inputs.end(), [&](TensorId id) { return id && partOf(id) == Part::Picked; });
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

bool ExpertWriter::write()
{
    findPlaces();
    for (const std::size_t position : m_mixture.members) {
        const Operator &op = m_graph.operators[position];
        const bool written = partOf(op.outputs[0]) == Part::Picked ? copyPicked(op) : copyPerRow(op);
        if (!written || !m_fits)
            return false;
    }
    return m_fits;
}

void ExpertWriter::commit()
{
    const std::set<std::size_t> members(m_mixture.members.begin(), m_mixture.members.end());
    std::map<TensorId, TensorId> instead;
    const Operator &first = m_graph.operators[m_mixture.first];
    for (const std::size_t position : m_mixture.members) {
        const Operator op = m_graph.operators[position];
        for (const TensorId output : op.outputs) {
            const auto &users = m_router.users[static_cast<std::size_t>(output.index)];
            const bool leaves = m_router.isOutput[static_cast<std::size_t>(output.index)]
                || std::any_of(
                    users.begin(), users.end(), [&](std::size_t user) { return members.count(user) == 0; });
            if (!leaves || partOf(output) != Part::PerRow)
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
            members.count(i) != 0 && partOf(m_graph.operators[i].outputs[0]) == Part::PerRow;
        if (!replaced)
            operators.push_back(std::move(m_graph.operators[i]));
        if (i == last)
            std::move(m_operators.begin(), m_operators.end(), std::back_inserter(operators));
    }
    m_graph.operators = std::move(operators);
}

/// Puts operators behind those that make what they read, and else leaves them in order.
void sortOperators(Graph &graph)
{
    std::vector<std::size_t> producer(graph.tensors.size(), graph.operators.size());
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        for (const TensorId id : graph.operators[i].outputs)
            producer[static_cast<std::size_t>(id.index)] = i;
    }
    std::vector<std::size_t> waits(graph.operators.size(), 0);
    std::vector<std::vector<std::size_t>> readers(graph.operators.size());
    std::set<std::size_t> ready;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        for (const TensorId id : graph.operators[i].inputs) {
            const std::size_t made =
                id ? producer[static_cast<std::size_t>(id.index)] : graph.operators.size();
            if (made == graph.operators.size())
                continue;
            readers[made].push_back(i);
            ++waits[i];
        }
        if (waits[i] == 0)
            ready.insert(i);
    }
    std::vector<Operator> sorted;
    while (!ready.empty()) {
        const std::size_t next = *ready.begin();
        ready.erase(ready.begin());
        for (const std::size_t reader : readers[next]) {
            if (--waits[reader] == 0)
                ready.insert(reader);
        }
        sorted.push_back(std::move(graph.operators[next]));
    }
    graph.operators = std::move(sorted);
}

void ExpertRouter::run()
{
    std::set<TensorId> seen;
    BatchDimensions batch;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        const TensorId choice = op.inputs.empty() || !op.inputs[0] ? TensorId{} : choiceOf(op);
        if (!choice || !seen.insert(choice).second)
            continue;
        const auto mixture = mixtureAt(i);
        if (!mixture)
            continue;
        batch.update(graph);
        ExpertWriter writer(*this, *mixture, batch.of(op.inputs[1]), batch.size());
        if (writer.write()) {
            writer.commit();
            sortOperators(graph);
            batch = BatchDimensions();
            i = std::min(i, mixture->first);
        }
        index();
    }
}

} // namespace

void routeExperts(Graph &graph, const ImportOptions &options)
{
    const std::size_t before = graph.tensors.size();
    ExpertRouter(graph, options).run();
    if (graph.tensors.size() == before)
        return;
    removeDeadCode(graph);
}

} // namespace planloom
