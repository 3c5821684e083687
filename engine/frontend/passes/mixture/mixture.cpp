#include "engine/frontend/passes/mixture/mixture.h"

#include "engine/graph/operators/catalogue.h"

#include <algorithm>
#include <set>

namespace planloom {

MixtureFinder::MixtureFinder(const Graph &graph)
    : m_graph(graph)
    , m_producers(graph.tensors.size())
    , m_users(graph.tensors.size())
    , m_fed(graph.tensors.size())
    , m_isOutput(graph.tensors.size())
    , m_parts(graph.tensors.size(), MixturePart::Outside)
{
    for (const TensorId id : graph.inputs)
        m_fed[at(id)] = true;
    for (const TensorId id : graph.outputs)
        m_isOutput[at(id)] = true;
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        bool depends = false;
        for (const TensorId id : graph.operators[i].inputs) {
            if (!id)
                continue;
            depends = depends || m_fed[at(id)];
            m_users[at(id)].push_back(i);
        }
        for (const TensorId id : graph.operators[i].outputs) {
            m_producers[at(id)] = OperatorId{static_cast<std::int32_t>(i)};
            m_fed[at(id)] = depends;
        }
    }
}

TensorId MixtureFinder::choiceOf(const Operator &op) const
{
    const bool gathers = op.kind == OperatorKind::Gather && op.attributes.integer("axis") == 0;
    const bool gathersND = op.kind == OperatorKind::GatherND && op.attributes.integer("batch_dims") == 0;
    if ((!gathers && !gathersND) || op.attributes.has("groups") || m_fed[at(op.inputs[0])]
        || !m_fed[at(op.inputs[1])] || shapeOf(op.inputs[0]).size() < 2 || shapeOf(op.inputs[0])[0] < 2)
        return {};
    const Shape &indices = shapeOf(op.inputs[1]);
    if (indices.size() != (gathers ? 1 : 2) || (gathersND && indices[1] != 1) || indices[0] < 2)
        return {};
    TensorId choice = op.inputs[1];
    while (m_producers[at(choice)]) {
        const Operator &maker = m_graph.at(m_producers[at(choice)]);
        if (maker.kind != OperatorKind::Reshape && maker.kind != OperatorKind::Identity)
            break;
        choice = maker.inputs[0];
    }
    return choice;
}

/// True if the operator makes row i of its outputs of row i of what it has of the mixture.
bool MixtureFinder::worksByRow(const Operator &op, const Mixture &mixture) const
{
    std::vector<ChosenRows> own(op.inputs.size());
    std::vector<const ChosenRows *> rows;
    for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
        const bool part = op.inputs[slot] && m_parts[at(op.inputs[slot])] != MixturePart::Outside;
        own[slot].places = mixture.choice;
        rows.push_back(part ? &own[slot] : nullptr);
    }
    const RowFlow flow = followRows(m_graph, op, rows);
    return flow.problem.empty()
        && std::all_of(flow.dimensions.begin(), flow.dimensions.end(), [](std::int32_t d) { return d == 0; });
}

std::int64_t MixtureFinder::choicesPerToken(TensorId choice) const
{
    const OperatorId producer = m_producers[at(choice)];
    if (!producer || m_graph.at(producer).kind != OperatorKind::TopK)
        return 1;
    const Operator &op = m_graph.at(producer);
    const Shape &shape = shapeOf(choice);
    return op.attributes.integer("axis") + 1 == static_cast<std::int64_t>(shape.size()) ? shape.back() : 1;
}

std::optional<Mixture> MixtureFinder::mixtureAt(std::size_t position)
{
    const Operator &pick = m_graph.operators[position];
    Mixture mixture{choiceOf(pick), 0, shapeOf(pick.inputs[0])[0], position, {}};
    mixture.rows = shapeOf(pick.inputs[1])[0];
    std::set<std::size_t> reached{position}; // operators that read what is known of the mixture, in order
    std::vector<std::size_t> followed;
    const auto take = [&](const Operator &op, std::size_t where, MixturePart part) {
        followed.push_back(where);
        for (const TensorId output : op.outputs) {
            m_parts[at(output)] = part;
            reached.insert(m_users[at(output)].begin(), m_users[at(output)].end());
        }
    };
    for (std::size_t i = position; i < m_graph.operators.size(); ++i) {
        const Operator &op = m_graph.operators[i];
        const bool picks = (op.kind == OperatorKind::Gather || op.kind == OperatorKind::GatherND)
            && op.inputs[0] && choiceOf(op) == mixture.choice && shapeOf(op.inputs[0])[0] == mixture.experts
            && shapeOf(op.inputs[1])[0] == mixture.rows;
        if (picks) {
            take(op, i, MixturePart::Picked);
            continue;
        }
        if (reached.count(i) == 0 || !worksByRow(op, mixture))
            continue;
        const bool picked = std::all_of(op.inputs.begin(), op.inputs.end(),
            [&](TensorId id) { return !id || m_parts[at(id)] == MixturePart::Picked; });
        take(op, i, picked ? MixturePart::Picked : MixturePart::PerRow);
    }
    // What leads to a product with picked weights belongs to the mixture, what comes after the last does not.
    std::set<std::size_t> members;
    bool product = false;
    for (auto i = followed.rbegin(); i != followed.rend(); ++i) {
        const Operator &op = m_graph.operators[*i];
        const bool mixes = m_parts[at(op.outputs[0])] == MixturePart::PerRow
            && std::any_of(op.inputs.begin(), op.inputs.end(),
                [&](TensorId id) { return id && m_parts[at(id)] == MixturePart::Picked; });
        const bool leads = std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorId id) {
            return std::any_of(m_users[at(id)].begin(), m_users[at(id)].end(),
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
        for (const TensorId output : m_graph.operators[i].outputs)
            m_parts[at(output)] = MixturePart::Outside;
    }
    return std::nullopt;
}

const Operator *MixtureFinder::makerOf(TensorId id) const
{
    const OperatorId maker = m_producers[at(id)];
    return maker ? &m_graph.at(maker) : nullptr;
}

} // namespace planloom
