#include "engine/plan/default_rule.h"

#include "engine/base/words.h"
#include "engine/plan/table_text.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

/// The producer an operator follows.
struct Leader {
    OperatorId op {};
    std::size_t output = 0; ///< Slot of the producer.
    std::size_t input = 0; ///< Slot of the operator.
};

/// Where every tensor is made by a forward operator.
struct Made {
    OperatorId by {};
    std::size_t slot = 0;
};

std::vector<Made> makersOf(const Graph &graph)
{
    std::vector<Made> makers(graph.tensors.size());
    for (std::size_t i = 0; i < graph.operators.size(); ++i) {
        const Operator &op = graph.operators[i];
        if (op.direction != Direction::Forward)
            continue;
        for (std::size_t s = 0; s < op.outputs.size(); ++s) {
            if (op.outputs[s].valid())
                makers[static_cast<std::size_t>(op.outputs[s].index)] = {{static_cast<std::int32_t>(i)}, s};
        }
    }
    return makers;
}

Leader leaderOf(const Graph &graph, const std::vector<Made> &makers, const Operator &op)
{
    Leader leader;
    std::int64_t most = -1;
    for (std::size_t s = 0; s < op.inputs.size(); ++s) {
        if (!op.inputs[s].valid())
            continue;
        const Made &made = makers[static_cast<std::size_t>(op.inputs[s].index)];
        const std::int64_t elements = elementCount(graph.at(op.inputs[s]).type.shape);
        if (made.by.valid() && elements > most) {
            most = elements;
            leader = {made.by, made.slot, s};
        }
    }
    return leader;
}

bool contains(const Term &term, std::int32_t dimension)
{
    return std::find(term.factors.begin(), term.factors.end(), dimension) != term.factors.end();
}

/// How many parts an identifier is cut into so far; 0 if into uneven ones.
std::int64_t partsAlong(const std::vector<Split> &splits, std::int32_t dimension)
{
    std::int64_t parts = 1;
    for (const Split &split : splits) {
        if (split.kind != SplitKind::Dimension || split.dimension != dimension)
            continue;
        parts = split.sizes.empty() ? parts * split.parts : 0;
    }
    return parts;
}

/// The cut of `op` that fits `split` of its leader, or nothing where it would cost communication. `taken` are
/// the splits that rows already decided for `op`, and those decided for outer axes.
std::optional<Split> followed(const Graph &graph, const Leader &leader, const Operator &op,
    const Split &split, const std::vector<Split> &taken)
{
    Split mine = split;
    if (split.kind == SplitKind::Replicate)
        return mine;
    if (split.kind == SplitKind::Value)
        return std::nullopt;
    const Operator &producer = graph.at(leader.op);
    const TensorTerms &out = producer.annotation.outputs[leader.output];
    const TensorTerms &in = op.annotation.inputs[leader.input];
    if (out.opaque)
        return std::nullopt;
    std::size_t t = 0;
    while (t < out.terms.size() && splittableFactor(producer.annotation, out.terms[t]) != split.dimension)
        ++t;
    if (t == out.terms.size()) {
        const bool mentioned = std::any_of(out.terms.begin(), out.terms.end(),
            [&](const Term &term) { return contains(term, split.dimension); });
        const auto mark = producer.annotation.dimensions[static_cast<std::size_t>(split.dimension)].mark;
        if (mentioned || mark != DimensionMark::Spatial)
            return std::nullopt; // summands
        return Split {.kind = SplitKind::Replicate, .parts = split.parts, .axis = split.axis};
    }
    if (in.opaque || t >= in.terms.size())
        return std::nullopt;
    const auto factor = splittableFactor(op.annotation, in.terms[t]);
    if (!factor)
        return std::nullopt;
    const std::int64_t size = op.annotation.dimensions[static_cast<std::size_t>(*factor)].size;
    const std::int64_t before = partsAlong(taken, *factor);
    mine.dimension = *factor;
    if (before == 0 || (!split.sizes.empty() && before != 1))
        return std::nullopt;
    if (split.sizes.empty())
        return size % (before * split.parts) == 0 ? std::optional(mine) : std::nullopt;
    const std::int64_t extent = graph.at(op.inputs[leader.input]).type.shape[t];
    const std::int64_t theirs =
        extent / producer.annotation.dimensions[static_cast<std::size_t>(split.dimension)].size;
    const std::int64_t ours = extent / size;
    for (std::int64_t &part : mine.sizes) {
        if (part * theirs % ours != 0)
            return std::nullopt;
        part = part * theirs / ours;
    }
    return mine;
}

std::string partsText(std::int64_t parts, std::size_t devices)
{
    return counted(parts, "part") + " on " + counted(static_cast<std::int64_t>(devices), "device");
}

/// Decides operators one after the other, producers first.
class Decider
{
public:
    explicit Decider(CompletionState &state, bool follow)
        : m_state(state)
        , m_graph(state.graph())
        , m_follow(follow)
    {
        if (follow) {
            m_makers = makersOf(m_graph);
            m_domainOf.assign(m_graph.operators.size(), -1);
        }
    }

    void decideAll();
    void decide(OperatorId op, std::int32_t domain);

private:
    void chooseDomains();
    void onMesh(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices);
    void onList(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices);
    bool followList(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices);
    void dealOut(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices);
    Split byDefault(OperatorId op, const MeshAxis &axis, const std::vector<Split> &taken, std::string &why);
    void addCoshard(OperatorId op, std::vector<DeviceId> &devices);
    void checkResult(OperatorId op);
    void explain(std::string &why, const std::string &part);

    CompletionState &m_state;
    const Graph &m_graph;
    bool m_follow = true;
    std::vector<Made> m_makers {};
    std::vector<std::int32_t> m_domainOf {};
    std::vector<bool> m_placedByDefault {};
    Leader m_leader {}; ///< Of the operator at hand.
    std::vector<Split> m_splits {}; ///< Of the operator at hand.
};

void Decider::chooseDomains()
{
    const auto count = m_graph.operators.size();
    for (std::size_t i = 0; i < count; ++i) {
        const Operator &op = m_graph.operators[i];
        if (op.direction != Direction::Forward)
            continue;
        m_domainOf[i] = m_state.bindings[i].domain;
        if (m_domainOf[i] >= 0)
            continue;
        if (const Leader leader = leaderOf(m_graph, m_makers, op); leader.op.valid())
            m_domainOf[i] = m_domainOf[static_cast<std::size_t>(leader.op.index)];
    }
    for (std::size_t i = count; i-- > 0;) {
        const Operator &op = m_graph.operators[i];
        if (op.direction != Direction::Forward || m_domainOf[i] >= 0)
            continue;
        std::int32_t first = static_cast<std::int32_t>(count);
        for (const TensorId output : op.outputs) {
            if (!output.valid())
                continue;
            for (const OperatorId user :
                m_state.index.uses().consumers[static_cast<std::size_t>(output.index)]) {
                if (m_graph.at(user).direction == Direction::Forward
                    && m_domainOf[static_cast<std::size_t>(user.index)] >= 0)
                    first = std::min(first, user.index);
            }
        }
        if (first < static_cast<std::int32_t>(count))
            m_domainOf[i] = m_domainOf[static_cast<std::size_t>(first)];
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (m_domainOf[i] < 0)
            m_domainOf[i] = 0;
    }
}

void Decider::explain(std::string &why, const std::string &part)
{
    why += (why.empty() ? "" : "; ") + part;
}

Split Decider::byDefault(
    OperatorId op, const MeshAxis &axis, const std::vector<Split> &taken, std::string &why)
{
    const Split whole {.kind = SplitKind::Replicate, .parts = axis.size, .axis = axis.name};
    if (!m_follow)
        return whole;
    if (m_leader.op.valid()) {
        const auto &theirs = m_state.decisionOf(m_leader.op).partition.splits;
        const auto split =
            std::find_if(theirs.begin(), theirs.end(), [&](const Split &s) { return s.axis == axis.name; });
        if (split != theirs.end()) {
            if (const auto mine = followed(m_graph, m_leader, m_graph.at(op), *split, taken)) {
                explain(why, "follows '" + m_graph.at(m_leader.op).name + "' over " + axis.name);
                return *mine;
            }
        }
    }
    const auto &axes = m_state.batchAxes;
    const std::int32_t batch = m_state.batch.operatorDimension[static_cast<std::size_t>(op.index)];
    if (batch >= 0 && std::find(axes.begin(), axes.end(), axis.name) != axes.end()) {
        const Dimension &dimension = m_graph.at(op).annotation.dimensions[static_cast<std::size_t>(batch)];
        const std::int64_t before = partsAlong(taken, batch);
        if (dimension.mark != DimensionMark::Frozen && before > 0 && dimension.size > 1
            && dimension.size % (before * axis.size) == 0) {
            explain(why, "cuts the batch over " + axis.name + ", as others do");
            return {.kind = SplitKind::Dimension, .dimension = batch, .parts = axis.size, .axis = axis.name};
        }
    }
    explain(why, "replicated over " + axis.name);
    return whole;
}

void Decider::onMesh(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices)
{
    const OperatorBinding &binding = m_state.bindingOf(op);
    OperatorDecision &decision = m_state.decisionOf(op);
    for (const auto &step : binding.steps) {
        const auto has = [&](const auto &axis) { return axis.name == step.split.axis; };
        if (!step.split.axis.empty() && std::none_of(domain.axes.begin(), domain.axes.end(), has)) {
            const std::string by = binding.placeRow >= 0 ? " by " + rowWords(binding.placeRow) : "";
            m_state.fail(step.row,
                "operator '" + m_graph.at(op).name + "' cannot be split over mesh axis '" + step.split.axis
                    + "': it is placed at one point of that axis" + by,
                "place it on the whole axis, or split it over another one");
            return;
        }
    }
    // What rows decided counts against every default, whichever axis lies outside.
    std::vector<Split> taken;
    for (const auto &step : binding.steps)
        taken.push_back(step.split);
    std::int32_t inner = 1;
    for (const MeshAxis &axis : domain.axes) {
        const auto step = std::find_if(binding.steps.begin(), binding.steps.end(),
            [&](const auto &s) { return s.split.axis == axis.name; });
        if (step != binding.steps.end()) {
            m_splits.push_back(step->split);
        } else {
            m_splits.push_back(byDefault(op, axis, taken, decision.why));
            taken.push_back(m_splits.back());
        }
    }
    for (const auto &step : binding.steps) {
        if (step.split.axis.empty()) {
            m_splits.push_back(step.split);
            inner *= step.split.parts;
        }
    }
    devices = repeated(domain.devices, inner);
}

/// Steps dealt out to a list of devices: as many, several parts per device, or replicas.
void Decider::dealOut(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices)
{
    const OperatorBinding &binding = m_state.bindingOf(op);
    std::int64_t parts = 1;
    for (const auto &step : binding.steps) {
        m_splits.push_back(step.split);
        parts *= step.split.parts;
    }
    const auto count = static_cast<std::int64_t>(domain.devices.size());
    if (parts % count == 0) {
        devices = repeated(domain.devices, static_cast<std::int32_t>(parts / count));
    } else if (count % parts == 0) {
        m_splits.push_back({.kind = SplitKind::Replicate, .parts = static_cast<std::int32_t>(count / parts)});
        devices = domain.devices;
    } else {
        m_state.fail(binding.placeRow >= 0 ? binding.placeRow : binding.steps.back().row,
            "operator '" + m_graph.at(op).name + "' has " + partsText(parts, domain.devices.size())
                + ": neither divides the other",
            "give one device per part, or a place row with fewer or more devices");
    }
}

/// The leader's splits one by one, on its devices; false if that would cost communication or leave devices
/// with the same work.
bool Decider::followList(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices)
{
    if (!m_follow || !m_leader.op.valid())
        return false;
    const auto leader = static_cast<std::size_t>(m_leader.op.index);
    if (m_state.domains[static_cast<std::size_t>(m_domainOf[leader])] != domain)
        return false;
    const OperatorDecision &theirs = m_state.decisionOf(m_leader.op);
    const std::int32_t inner = m_state.bindings[leader].coshardParts;
    const bool repeats = distinct(domain.devices).size() != domain.devices.size();
    std::vector<Split> splits;
    const std::size_t outer = theirs.partition.splits.size() - (inner > 1 ? 1 : 0);
    for (std::size_t i = 0; i < outer; ++i) {
        const Split &split = theirs.partition.splits[i];
        const auto mine = followed(m_graph, m_leader, m_graph.at(op), split, splits);
        if (!mine && repeats)
            return false;
        splits.push_back(
            mine.value_or(Split {.kind = SplitKind::Replicate, .parts = split.parts, .axis = split.axis}));
    }
    m_splits = std::move(splits);
    for (std::size_t i = 0; i < theirs.devices.size(); i += static_cast<std::size_t>(inner))
        devices.push_back(theirs.devices[i]);
    explain(m_state.decisionOf(op).why, "follows '" + m_graph.at(m_leader.op).name + "'");
    return true;
}

void Decider::onList(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices)
{
    if (!m_state.bindingOf(op).steps.empty())
        return dealOut(op, domain, devices);
    if (followList(op, domain, devices))
        return;
    devices = distinct(domain.devices);
    if (devices.size() > 1) {
        m_splits.push_back(
            {.kind = SplitKind::Replicate, .parts = static_cast<std::int32_t>(devices.size())});
        explain(m_state.decisionOf(op).why, "replicated");
    }
}

void Decider::addCoshard(OperatorId op, std::vector<DeviceId> &devices)
{
    const OperatorBinding &binding = m_state.bindingOf(op);
    if (binding.coshardParts <= 1)
        return;
    m_splits.push_back(
        {.kind = SplitKind::Dimension, .dimension = binding.coshardDimension, .parts = binding.coshardParts});
    devices = repeated(devices, binding.coshardParts);
}

/// Blames the last row of an operator whose splits are only together illegal.
void Decider::checkResult(OperatorId op)
{
    const OperatorBinding &binding = m_state.bindingOf(op);
    const Operator &itself = m_graph.at(op);
    const std::int32_t row = binding.coshardRow >= 0 ? binding.coshardRow
        : binding.steps.empty()                      ? binding.placeRow
                                                     : binding.steps.back().row;
    if (row < 0)
        return;
    if (const auto legal = checkPartition(itself, {m_splits}); !legal)
        m_state.fail(row, "with the other rows: " + legal.error().message, legal.error().advice);
    if (m_state.plan.microBatches <= 1 || m_state.plan.wholeBatches
        || m_state.batch.oncePerStep[static_cast<std::size_t>(op.index)])
        return;
    const std::int32_t batch = m_state.batch.operatorDimension[static_cast<std::size_t>(op.index)];
    if (batch < 0)
        return;
    const std::int64_t parts = partsAlong(m_splits, batch);
    const std::int64_t size = itself.annotation.dimensions[static_cast<std::size_t>(batch)].size;
    if (parts == 1 || (parts > 0 && size % (m_state.plan.microBatches * parts) == 0))
        return;
    m_state.fail(m_state.microBatchRow,
        "operator '" + itself.name + "' has a batch of " + std::to_string(size) + ", which "
            + (parts == 0 ? "is cut unevenly by " + rowWords(row) + ": "
                          : rowWords(row) + " cuts into " + counted(parts, "part") + ": ")
            + std::to_string(m_state.plan.microBatches) + " micro-batches of equal parts are not possible",
        "use fewer micro-batches, or fewer parts");
}

void Decider::decide(OperatorId op, std::int32_t domainNumber)
{
    const OperatorBinding &binding = m_state.bindingOf(op);
    const Domain &domain = m_state.domains[static_cast<std::size_t>(domainNumber)];
    OperatorDecision &decision = m_state.decisionOf(op);
    m_splits.clear();
    m_leader = m_follow ? leaderOf(m_graph, m_makers, m_graph.at(op)) : Leader {};
    std::vector<DeviceId> devices;
    const auto isOverAxis = [](const auto &step) { return !step.split.axis.empty(); };
    const bool overAxes = std::any_of(binding.steps.begin(), binding.steps.end(), isOverAxis);
    if (domain.onMesh && (overAxes || binding.steps.empty()))
        onMesh(op, domain, devices);
    else
        onList(op, domain, devices);
    addCoshard(op, devices);
    for (const std::int32_t row :
        {binding.placeRow, binding.coshardRow, binding.stageRow, binding.recomputeRow}) {
        if (row >= 0)
            decision.rows.push_back({row});
    }
    for (const auto &step : binding.steps)
        decision.rows.push_back({step.row});
    std::sort(decision.rows.begin(), decision.rows.end());
    decision.rows.erase(std::unique(decision.rows.begin(), decision.rows.end()), decision.rows.end());
    checkResult(op);
    decision.partition.splits = m_splits;
    decision.devices = std::move(devices);
}

void Decider::decideAll()
{
    chooseDomains();
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        if (m_graph.operators[i].direction == Direction::Forward)
            decide({static_cast<std::int32_t>(i)}, m_domainOf[i]);
    }
}

} // namespace

void applyDefaultRule(CompletionState &state)
{
    Decider(state, true).decideAll();
}

void decideByRowsAlone(CompletionState &state, OperatorId op, std::int32_t domain)
{
    Decider(state, false).decide(op, domain);
}

} // namespace planloom
