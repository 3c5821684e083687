#include "engine/graph/dimensions/batch_flow.h"

#include "engine/base/ids.h"

#include <numeric>
#include <optional>

namespace planloom {

namespace {

/// Where the batch is behind a Reshape; nowhere if no dimension begins its count.
BatchPlace placeBehind(const Shape &from, const BatchPlace &place, const Shape &to)
{
    std::int64_t outside = place.before;
    for (std::int32_t d = 0; d < place.dimension; ++d)
        outside *= from[static_cast<std::size_t>(d)];
    std::int64_t passed = 1;
    for (std::size_t d = 0; d < to.size() && outside > 0; ++d) {
        if (to[d] <= 0 || outside % passed != 0)
            return {};
        const std::int64_t before = outside / passed;
        if (to[d] > before) {
            const std::int64_t count = to[d] % before == 0 ? std::gcd(place.count, to[d] / before) : 1;
            return count > 1 ? BatchPlace{static_cast<std::int32_t>(d), before, count} : BatchPlace{};
        }
        passed *= to[d];
    }
    return {};
}

class Follower
{
public:
    Follower(const Graph &graph, BatchFlow &flow)
        : m_graph(graph)
        , m_flow(flow)
    {
    }

    void follow(OperatorId id)
    {
        const Operator &op = m_graph.at(id);
        if (op.kind == OperatorKind::Reshape)
            followReshape(id);
        else
            followOther(id);
    }

private:
    BatchPlace &place(TensorId id) { return m_flow.places[at(id)]; }

    void obstacle(OperatorId id, std::string reason, bool joins = false)
    {
        m_flow.obstacles.push_back({id, std::move(reason), joins});
    }

    std::string whole(TensorId id)
    {
        return "needs dimension " + std::to_string(place(id).dimension) + " of '" + m_graph.at(id).name
            + "', which holds the batch, whole";
    }

    /// The identifier by which the batch lies in a dimension with this term.
    static std::optional<std::int32_t> identifierOf(
        const Annotation &annotation, const Term &term, std::int64_t before)
    {
        const auto factor = splittableFactor(annotation, term);
        if (!factor || before == 1)
            return factor;
        // What lies outside the batch is counted by the same identifier only where it is the whole dimension.
        for (const std::int32_t other : term.factors)
            if (other != *factor && annotation.dimensions[static_cast<std::size_t>(other)].size != 1)
                return std::nullopt;
        return findWindow(annotation, *factor) ? std::nullopt : factor;
    }

    void followReshape(OperatorId id)
    {
        const Operator &op = m_graph.at(id);
        const TensorId input = op.inputs.front();
        const TensorId output = op.outputs.front();
        if (!input || !output || !place(input).valid())
            return;
        const BatchPlace from = place(input);
        const BatchPlace to = placeBehind(m_graph.at(input).type.shape, from, m_graph.at(output).type.shape);
        place(output) = to;
        if (!to.valid())
            return obstacle(id, whole(input));
        if (to.before > 1)
            return obstacle(id,
                "joins other dimensions of '" + m_graph.at(input).name + "' with the batch, outside of it",
                true);
        if (from.before > 1)
            return;
        const TensorTerms &terms = op.annotation.inputs.front();
        const auto cut = terms.opaque
            ? std::nullopt
            : splittableFactor(op.annotation, terms.terms[static_cast<std::size_t>(from.dimension)]);
        const TensorTerms &made = op.annotation.outputs.front();
        if (cut && !made.opaque
            && splittableFactor(op.annotation, made.terms[static_cast<std::size_t>(to.dimension)]) == cut)
            m_flow.operatorDimension[at(id)] = *cut;
        else
            obstacle(id, whole(input));
    }

    void followOther(OperatorId id)
    {
        const Operator &op = m_graph.at(id);
        std::int32_t identifier = -1;
        BatchPlace chosen;
        TensorId refused;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const TensorId input = op.inputs[slot];
            if (!input || !place(input).valid())
                continue;
            const BatchPlace &here = place(input);
            const TensorTerms &terms = op.annotation.inputs[slot];
            const auto cut = terms.opaque
                ? std::nullopt
                : identifierOf(
                    op.annotation, terms.terms[static_cast<std::size_t>(here.dimension)], here.before);
            if (!cut) {
                refused = refused ? refused : input;
                continue;
            }
            if (identifier >= 0)
                continue; // a second dimension of the batch is gathered
            identifier = *cut;
            chosen = here;
            if (here.before == 1)
                chosen.count =
                    std::gcd(here.count, op.annotation.dimensions[static_cast<std::size_t>(identifier)].size);
        }
        if (identifier >= 0 && chosen.count > 1) {
            m_flow.operatorDimension[at(id)] = chosen.before == 1 ? identifier : -1;
            for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
                setOutput(op, slot, identifier, chosen);
        } else if (refused) {
            obstacle(id, whole(refused));
            for (const TensorId output : op.outputs)
                goOn(refused, output);
        }
    }

    void setOutput(const Operator &op, std::size_t slot, std::int32_t identifier, const BatchPlace &chosen)
    {
        const TensorTerms &terms = op.annotation.outputs[slot];
        if (!op.outputs[slot] || terms.opaque)
            return;
        for (std::size_t d = 0; d < terms.terms.size(); ++d) {
            if (identifierOf(op.annotation, terms.terms[d], chosen.before) == identifier) {
                place(op.outputs[slot]) = {static_cast<std::int32_t>(d), chosen.before, chosen.count};
                return;
            }
        }
    }

    /// Behind an operator that needed `input` whole: what it makes along the same dimension is cut there
    /// again.
    void goOn(TensorId input, TensorId output)
    {
        if (!output)
            return;
        const BatchPlace &from = place(input);
        const Shape &shape = m_graph.at(output).type.shape;
        const auto d = static_cast<std::size_t>(from.dimension);
        if (d >= shape.size() || shape.size() != m_graph.at(input).type.shape.size())
            return;
        if (shape[d] == m_graph.at(input).type.shape[d])
            place(output) = from;
        else if (from.before == 1 && shape[d] > 1)
            place(output) = {from.dimension, 1, shape[d]};
    }

    const Graph &m_graph;
    BatchFlow &m_flow;
};

} // namespace

BatchFlow followBatch(const Graph &graph, const std::vector<std::int32_t> &inputDimensions)
{
    BatchFlow flow;
    flow.places.resize(graph.tensors.size());
    flow.operatorDimension.assign(graph.operators.size(), -1);
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
        const std::int32_t dimension = inputDimensions[i];
        if (dimension >= 0)
            flow.places[at(graph.inputs[i])] = {
                dimension, 1, graph.at(graph.inputs[i]).type.shape[static_cast<std::size_t>(dimension)]};
    }
    Follower follower(graph, flow);
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        const OperatorId id{static_cast<std::int32_t>(i)};
        if (op.direction == Direction::Forward) {
            follower.follow(id);
        } else if (op.direction == Direction::Backward && op.mirror) {
            std::int32_t &identifier = flow.operatorDimension[at(op.mirror)];
            if (identifier >= 0
                && op.annotation.dimensions[static_cast<std::size_t>(identifier)].mark
                    == DimensionMark::Frozen) {
                identifier = -1; // both are cut alike
                flow.obstacles.push_back({op.mirror, "has a gradient that needs the whole batch"});
            }
            flow.operatorDimension[i] = identifier;
        }
    }
    return flow;
}

} // namespace planloom
