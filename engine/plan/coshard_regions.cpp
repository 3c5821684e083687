#include "engine/plan/coshard_regions.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

namespace planloom {

namespace {

/// The views of parts turn by turn, worked out as they are asked for.
class TurnViews
{
public:
    TurnViews(const Graph &graph, const std::vector<OperatorDecision> &decisions, const BatchInfo &batch,
        std::int32_t cuts)
        : m_graph(graph)
        , m_decisions(decisions)
        , m_batch(batch)
        , m_cuts(cuts)
        , m_views(graph.operators.size())
    {
    }

    /// Whether every turn of `consumer` finds what it reads of `tensor` in what `producer` makes of it in the
    /// same turn, on whatever devices: all its summands.
    bool suffice(OperatorId consumer, TensorId tensor, OperatorId producer)
    {
        const std::int32_t turns = turnsOf(decisionOf(producer));
        if (turnsOf(decisionOf(consumer)) != turns)
            return false;
        for (std::int32_t turn = 0; turn < turns; ++turn) {
            std::set<IndexMask> needs;
            std::map<std::int32_t, std::set<IndexMask>> made; // by summand
            std::int32_t summands = 0;
            const auto &inputs = m_graph.at(consumer).inputs;
            eachPart(consumer, turn, [&](const PartViews &views) {
                for (std::size_t slot = 0; slot < inputs.size(); ++slot)
                    if (inputs[slot] == tensor)
                        needs.insert(views.inputs[slot].index);
            });
            const auto &outputs = m_graph.at(producer).outputs;
            eachPart(producer, turn, [&](const PartViews &views) {
                for (std::size_t slot = 0; slot < outputs.size(); ++slot)
                    if (outputs[slot] == tensor) {
                        made[views.outputs[slot].value.index].insert(views.outputs[slot].index);
                        summands = views.outputs[slot].value.count;
                    }
            });
            if (static_cast<std::int32_t>(made.size()) != summands)
                return false;
            for (const IndexMask &need : needs)
                for (const auto &[summand, boxes] : made)
                    if (!cover(boxes, need))
                        return false;
        }
        return true;
    }

private:
    const OperatorDecision &decisionOf(OperatorId op) const
    {
        return m_decisions[static_cast<std::size_t>(op.index)];
    }

    /// Parts of one operator cut a tensor into boxes that are equal or disjoint.
    static bool cover(const std::set<IndexMask> &boxes, const IndexMask &need)
    {
        std::int64_t covered = 0;
        for (const IndexMask &box : boxes)
            if (const auto both = intersection(box, need))
                covered += elementCount(shapeOf(*both));
        return covered >= elementCount(shapeOf(need));
    }

    template<typename Visit> void eachPart(OperatorId op, std::int32_t turn, Visit visit)
    {
        const OperatorDecision &decision = decisionOf(op);
        auto &views = m_views[static_cast<std::size_t>(op.index)];
        const std::int32_t shards = unitParts(decision.partition);
        if (views.empty()) {
            const auto outer = microBatchRanges(m_batch, m_graph, op, 0, m_cuts);
            for (std::int32_t p = 0; p < static_cast<std::int32_t>(decision.devices.size()); ++p)
                views.push_back(partViews(m_graph, m_graph.at(op), decision.partition, p * shards, outer));
        }
        for (std::size_t p = 0; p < views.size(); ++p)
            if (turnOf(decision, static_cast<std::int32_t>(p)) == turn)
                visit(views[p]);
    }

    const Graph &m_graph;
    const std::vector<OperatorDecision> &m_decisions;
    const BatchInfo &m_batch;
    std::int32_t m_cuts;
    std::vector<std::vector<PartViews>> m_views; ///< By operator and part.
};

/// Backward operators by their forward one.
std::vector<std::vector<OperatorId>> backwardsOf(const Graph &graph)
{
    std::vector<std::vector<OperatorId>> backwards(graph.operators.size());
    for (std::size_t i = 0; i < graph.operators.size(); ++i)
        if (graph.operators[i].direction == Direction::Backward && graph.operators[i].mirror.valid())
            backwards[static_cast<std::size_t>(graph.operators[i].mirror.index)].push_back(
                {static_cast<std::int32_t>(i)});
    return backwards;
}

/// A pair of operators of which the second cannot take turns with the first.
using Obstacle = std::pair<OperatorId, OperatorId>;

/// What keeps `op` from taking turns with the operators that `isMember` names, itself among them.
template<typename IsMember>
std::optional<Obstacle> obstacleOf(
    const Graph &graph, const Uses &uses, TurnViews &views, OperatorId op, IsMember isMember)
{
    for (const TensorId tensor : graph.at(op).inputs) {
        if (!tensor)
            continue;
        for (const OperatorId producer : uses.producers[static_cast<std::size_t>(tensor.index)])
            if (isMember(producer) && !views.suffice(op, tensor, producer))
                return Obstacle{producer, op};
    }
    for (const TensorId tensor : graph.at(op).outputs) {
        if (!tensor)
            continue;
        for (const OperatorId consumer : uses.consumers[static_cast<std::size_t>(tensor.index)])
            if (isMember(consumer) && !views.suffice(consumer, tensor, op))
                return Obstacle{op, consumer};
    }
    return std::nullopt;
}

bool dividesValue(const Partition &partition)
{
    return std::any_of(partition.splits.begin(), partition.splits.end(),
        [](const Split &split) { return split.kind == SplitKind::Value && split.parts > 1; });
}

/// Whether turns of `op` would make parts of a value that is no sum of them.
bool combinesOtherwise(const Graph &graph, const Operator &op, const Partition &partition)
{
    for (std::size_t slot = 0; slot < op.outputs.size(); ++slot)
        if (op.outputs[slot] && combinationOf(op.annotation, slot) != Combination::Sum
            && outputView(graph, op, partition, 0, slot).value.count > 1)
            return true;
    return false;
}

/// Grows one region at a time along the order of operators, which is that of the data flow: what is outside
/// and reads the open region runs behind it, all else before it.
class RegionFinder
{
public:
    explicit RegionFinder(PlanDraft &draft)
        : m_draft(draft)
        , m_graph(draft.graph())
        , m_uses(draft.index().uses())
        , m_backwards(backwardsOf(m_graph))
        , m_whole(draft.plan.wholeBatches ? wholeBatchInfo(m_graph) : BatchInfo{})
        , m_views(
              m_graph, m_decisions, draft.plan.wholeBatches ? m_whole : draft.batch(), batchCuts(draft.plan))
        , m_isMember(m_graph.operators.size(), false)
        , m_isBehind(m_graph.operators.size(), false)
    {
    }

    void run();

private:
    using Key = std::tuple<std::int32_t, std::int32_t, std::int32_t, bool>; // layer, stage, turns, keeps

    bool join(OperatorId op);
    void open(const Key &key);
    bool readsBehind(OperatorId op) const;
    void tell(std::int32_t row, const Obstacle &obstacle);

    PlanDraft &m_draft;
    const Graph &m_graph;
    const Uses &m_uses;
    std::vector<std::vector<OperatorId>> m_backwards;
    BatchInfo m_whole;
    std::vector<OperatorDecision> m_decisions{}; ///< With the backward operators'; regions as they grow.
    TurnViews m_views;
    std::optional<Key> m_open{};
    std::int32_t m_region = -1;
    std::vector<OperatorId> m_members{}; ///< Of the open region.
    std::vector<bool> m_isMember; ///< Of the open region, backward operators among them.
    std::vector<bool> m_isBehind; ///< Outside the open region, and needs what it makes.
};

void RegionFinder::open(const Key &key)
{
    m_isMember.assign(m_isMember.size(), false);
    m_isBehind.assign(m_isBehind.size(), false);
    m_members.clear();
    m_open = key;
    ++m_region;
}

bool RegionFinder::readsBehind(OperatorId op) const
{
    for (const TensorId tensor : m_graph.at(op).inputs)
        if (tensor)
            for (const OperatorId producer : m_uses.producers[static_cast<std::size_t>(tensor.index)])
                if (m_isBehind[static_cast<std::size_t>(producer.index)])
                    return true;
    return false;
}

void RegionFinder::tell(std::int32_t row, const Obstacle &obstacle)
{
    std::string &warning = m_draft.bound.reports[static_cast<std::size_t>(row)].warning;
    if (warning.empty())
        warning = obstacle.first == obstacle.second
            ? "'" + m_graph.at(obstacle.first).name + "' needs all parts of itself: it takes no turns"
            : "'" + m_graph.at(obstacle.second).name + "' needs all parts of '"
                + m_graph.at(obstacle.first).name + "': turns begin anew between them";
}

/// Adds `op` to the open region, if it can take turns with what is there.
bool RegionFinder::join(OperatorId op)
{
    std::vector<OperatorId> together = m_backwards[static_cast<std::size_t>(op.index)];
    together.push_back(op);
    for (const OperatorId each : together)
        m_isMember[static_cast<std::size_t>(each.index)] = true;
    const auto isMember = [this](OperatorId id) { return m_isMember[static_cast<std::size_t>(id.index)]; };
    for (const OperatorId each : together) {
        const auto obstacle = obstacleOf(m_graph, m_uses, m_views, each, isMember);
        if (!obstacle)
            continue;
        for (const OperatorId other : together)
            m_isMember[static_cast<std::size_t>(other.index)] = false;
        const auto forward = [&](OperatorId id) {
            return m_graph.at(id).direction == Direction::Backward ? m_graph.at(id).mirror : id;
        };
        tell(m_draft.bindingOf(op).rowOf(Aspect::Coshard),
            {forward(obstacle->first), forward(obstacle->second)});
        return false;
    }
    for (const OperatorId each : together)
        m_draft.decisionOf(each).coshardRegion = m_region;
    m_members.push_back(op);
    return true;
}

void RegionFinder::run()
{
    m_decisions = m_draft.plan.decisions;
    for (std::size_t i = 0; i < m_decisions.size(); ++i) {
        if (m_graph.operators[i].direction != Direction::Forward)
            continue;
        const Split *coshard = m_draft.bound.bindings[i].allowed.coshard.preferred();
        m_decisions[i].coshardRegion = coshard && coshard->parts > 1 ? 0 : -1;
        for (const OperatorId backward : m_backwards[i]) {
            OperatorDecision &decision = m_decisions[static_cast<std::size_t>(backward.index)];
            decision = m_decisions[i];
            decision.partition = mirrored(m_graph.at(backward), decision.partition);
        }
    }
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (m_graph.operators[i].direction != Direction::Forward)
            continue;
        const bool behind = readsBehind(op);
        const std::int32_t row = m_draft.bound.bindings[i].rowOf(Aspect::Coshard);
        const std::int32_t turns = turnsOf(m_decisions[i]);
        if (row >= 0 && turns > 1 && m_decisions[i].ringSplit < 0 && !dividesValue(m_decisions[i].partition)
            && !combinesOtherwise(m_graph, m_graph.operators[i], m_decisions[i].partition)
            && !m_draft.batch().oncePerStep[i]) {
            const Key key{m_draft.index().layerOf(op), m_decisions[i].stage.index, turns,
                m_draft.bound.bindings[i].allowed.coshardKeeps == true};
            if (m_open == key && !behind && join(op))
                continue;
            if (m_open != key || !m_members.empty()) // else it was tried alone already
                open(key);
            if (m_members.empty() && join(op))
                continue;
        }
        const auto readsRegion = [&] {
            return std::any_of(
                m_graph.operators[i].inputs.begin(), m_graph.operators[i].inputs.end(), [&](TensorId tensor) {
                    if (!tensor)
                        return false;
                    const auto &makers = m_uses.producers[static_cast<std::size_t>(tensor.index)];
                    return std::any_of(makers.begin(), makers.end(),
                        [&](OperatorId maker) { return m_isMember[static_cast<std::size_t>(maker.index)]; });
                });
        };
        m_isBehind[i] = behind || readsRegion();
    }
}

} // namespace

void assignCoshardRegions(PlanDraft &draft)
{
    if (std::any_of(draft.bound.bindings.begin(), draft.bound.bindings.end(),
            [](const OperatorBinding &binding) { return binding.rowOf(Aspect::Coshard) >= 0; }))
        RegionFinder(draft).run();
}

Result<void> checkCoshardRegions(const Plan &plan)
{
    const Graph &graph = *plan.graph;
    if (std::all_of(plan.decisions.begin(), plan.decisions.end(),
            [](const OperatorDecision &decision) { return decision.coshardRegion < 0; }))
        return {};
    const auto broken = [&](OperatorId op, std::string message) {
        return Error{ErrorCode::InvalidInput, "operator '" + graph.at(op).name + "': " + std::move(message),
            "", "operator:" + graph.at(op).name};
    };
    const std::shared_ptr<const BatchInfo> batch =
        plan.wholeBatches ? std::make_shared<const BatchInfo>(wholeBatchInfo(graph)) : batchOf(plan);
    const Uses uses = usesOf(graph);
    TurnViews views(graph, plan.decisions, *batch, batchCuts(plan));
    std::map<std::int32_t, OperatorId> first; // by region
    for (std::size_t i = 0; i < plan.decisions.size(); ++i) {
        const OperatorDecision &decision = plan.decisions[i];
        const OperatorId op{static_cast<std::int32_t>(i)};
        if (decision.coshardRegion < 0)
            continue;
        const auto &splits = decision.partition.splits;
        if (graph.at(op).direction == Direction::Optimizer || splits.empty() || decision.ringSplit >= 0
            || splits.back().kind != SplitKind::Dimension || splits.back().over != SplitOver::Devices
            || dividesValue(decision.partition))
            return broken(op, "cannot be in a coshard region");
        const OperatorDecision &other = plan.decisions[static_cast<std::size_t>(
            first.emplace(decision.coshardRegion, op).first->second.index)];
        if (turnsOf(other) != turnsOf(decision) || other.stage != decision.stage)
            return broken(op, "its coshard region takes other turns, or is in another stage");
        const auto obstacle = obstacleOf(graph, uses, views, op, [&](OperatorId id) {
            return plan.decisions[static_cast<std::size_t>(id.index)].coshardRegion == decision.coshardRegion;
        });
        if (obstacle)
            return broken(obstacle->second,
                "needs all parts of '" + graph.at(obstacle->first).name
                    + "', which is in its coshard region");
    }
    return {};
}

} // namespace planloom
