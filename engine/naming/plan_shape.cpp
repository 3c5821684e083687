#include "engine/naming/plan_shape.h"

#include "engine/graph/operators/attention.h"
#include "engine/table/domain.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace planloom {

namespace {

using Devices = std::set<DeviceId>;

Devices devicesOf(const OperatorDecision &decision)
{
    return {decision.devices.begin(), decision.devices.end()};
}

/// Reads a plan once, in the order of the functions of `take`.
class ShapeReader
{
public:
    ShapeReader(const Plan &plan, const SelectorIndex &index)
        : m_plan(plan)
        , m_graph(*plan.graph)
        , m_index(index)
        , m_batch(batchOf(plan))
        , m_cuts(plan.decisions.size())
    {
        for (std::size_t i = 0; i < m_cuts.size(); ++i)
            if (m_graph.operators[i].direction == Direction::Forward)
                m_cuts[i] = cutOf(plan, *m_batch, index, {static_cast<std::int32_t>(i)});
    }

    PlanShape take()
    {
        takeDevices();
        takeStages();
        takeMain();
        takeSequence();
        takeSharing();
        takeMemory();
        takeExceptions();
        takeOrders();
        return std::move(m_shape);
    }

private:
    bool isForward(std::size_t op) const { return m_graph.operators[op].direction == Direction::Forward; }

    /// What most of a model's work is in: products (and recurrences) by weights.
    bool isProduct(std::size_t op) const
    {
        const Operator &one = m_graph.operators[op];
        const OperatorCategory category = categoryOf(one);
        return isForward(op)
            && (category == OperatorCategory::Product || category == OperatorCategory::Recurrent)
            && std::any_of(one.inputs.begin(), one.inputs.end(),
                [&](TensorId id) { return id && m_graph.at(id).role == TensorRole::Weight; });
    }

    void takeDevices()
    {
        Devices used;
        for (std::size_t i = 0; i < m_plan.decisions.size(); ++i) {
            m_shape.trains = m_shape.trains || m_graph.operators[i].direction == Direction::Backward;
            used.insert(m_plan.decisions[i].devices.begin(), m_plan.decisions[i].devices.end());
        }
        m_shape.units = m_plan.units.count;
        m_shape.devices = m_plan.deviceCount * m_plan.units.count;
        m_shape.idle = (m_plan.deviceCount - static_cast<std::int32_t>(used.size())) * m_plan.units.count;
    }

    /// A stage is on the devices that most of its operators are on. One on devices of several others, which
    /// have theirs for themselves, is spread over them (nnScaler's interlaced pipeline) and no rank.
    void takeStages()
    {
        m_shape.stages = m_plan.stageCount;
        std::vector<std::map<Devices, std::int32_t>> votes(at(m_plan.stageCount));
        for (std::size_t i = 0; i < m_plan.decisions.size(); ++i)
            if (isForward(i) && at(m_plan.decisions[i].stage) < votes.size())
                ++votes[at(m_plan.decisions[i].stage)][devicesOf(m_plan.decisions[i])];
        std::set<Devices> groups;
        for (const auto &stage : votes) {
            const auto most = std::max_element(
                stage.begin(), stage.end(), [](const auto &a, const auto &b) { return a.second < b.second; });
            m_homes.push_back(most == stage.end() ? Devices{} : most->first);
            if (most != stage.end())
                groups.insert(most->first);
        }
        const auto spansSeveral = [&groups](const Devices &all) {
            return std::count_if(groups.begin(), groups.end(), [&all](const Devices &some) {
                return some.size() < all.size()
                    && std::includes(all.begin(), all.end(), some.begin(), some.end());
            }) > 1;
        };
        m_shape.ranks = static_cast<std::int32_t>(std::count_if(
            groups.begin(), groups.end(), [&](const Devices &each) { return !spansSeveral(each); }));
        for (std::size_t i = 0; i < m_plan.decisions.size(); ++i)
            if (isForward(i) && m_shape.stages > 1 && spansSeveral(devicesOf(m_plan.decisions[i])))
                m_shape.spread.push_back({static_cast<std::int32_t>(i)});
    }

    bool isSpread(std::size_t op) const
    {
        return std::binary_search(
            m_shape.spread.begin(), m_shape.spread.end(), OperatorId{static_cast<std::int32_t>(op)});
    }

    /// The degrees of the most products; where a model has none, of the most operators.
    void takeMain()
    {
        const auto vote = [this](auto &&counts) {
            std::map<decltype(OperatorCut{}.degrees()), std::pair<std::int32_t, std::size_t>> votes;
            for (std::size_t i = 0; i < m_cuts.size(); ++i) {
                m_shape.lanes = std::max(m_shape.lanes, m_cuts[i].lanes);
                m_shape.slices = std::max(m_shape.slices, m_cuts[i].slices);
                m_shape.main.experts = std::max(m_shape.main.experts, m_cuts[i].experts);
                if (counts(i))
                    ++votes.emplace(m_cuts[i].degrees(), std::pair(0, i)).first->second.first;
            }
            const auto most = std::max_element(votes.begin(), votes.end(), [](const auto &a, const auto &b) {
                return std::pair(a.second.first, b.second.second)
                    < std::pair(b.second.first, a.second.second);
            });
            if (most == votes.end())
                return false;
            const std::int32_t experts = m_shape.main.experts;
            m_shape.main = m_cuts[most->second.second];
            m_shape.main.experts = experts;
            return true;
        };
        const auto isPlain = [this](std::size_t i) {
            return isProduct(i) && m_cuts[i].experts == 1 && !isSpread(i);
        };
        if (!vote(isPlain) && !vote([this](std::size_t i) { return isProduct(i); }))
            vote([this](std::size_t i) { return isForward(i); });
        m_shape.data = m_shape.main.data * m_plan.units.count;
        for (std::size_t i = 0; i < m_cuts.size(); ++i)
            if (isProduct(i)) {
                m_shape.columns = m_shape.columns || m_cuts[i].columns;
                m_shape.rows = m_shape.rows || m_cuts[i].rows;
            }
    }

    void takeSequence()
    {
        const OperatorCut &main = m_shape.main;
        for (std::size_t i = 0; i < m_cuts.size(); ++i) {
            const OperatorCut &cut = m_cuts[i];
            if (!isForward(i))
                continue;
            if (main.tensor > 1 && cut.sequence == main.sequence * main.tensor && !isProduct(i))
                m_shape.sequenceParallel = true;
            const OperatorDecision &decision = m_plan.decisions[i];
            const auto axes = attentionAxes(m_graph.operators[i]);
            if (main.sequence > 1)
                m_shape.zigzag = m_shape.zigzag || cut.zigzag;
            if (main.sequence <= 1 || !axes)
                continue;
            if (decision.ringSplit >= 0)
                m_shape.ring = std::max(m_shape.ring,
                    static_cast<std::int32_t>(decision.partition.splits[at(decision.ringSplit)].parts));
            if (cut.tensor > main.tensor)
                m_shape.byHeads = std::max(m_shape.byHeads, cut.tensor / main.tensor);
            m_shape.axial = m_shape.axial
                || std::any_of(decision.partition.splits.begin(), decision.partition.splits.end(),
                    [&](const Split &split) {
                        return cut.sequence > 1 && split.kind == SplitKind::Dimension && split.parts > 1
                            && isOtherSequence(i, split.dimension, *axes);
                    });
        }
    }

    /// A sequence that an attention does not compare: the other axis of axial attention.
    bool isOtherSequence(std::size_t op, std::int32_t identifier, const AttentionAxes &axes) const
    {
        const DimensionClassId id = m_index.dimensions().ofOperator[op][at(identifier)];
        return identifier != axes.query && identifier != axes.key
            && identifier != m_batch->operatorDimension[op] && id.valid()
            && leadingWith(m_index.dimensions(), id, DimensionMeaning::Sequence).valid();
    }

    /// Into how many boxes devices cut the weight for the forward pass: the most of its readers.
    std::int64_t boxesOf(TensorId weight) const
    {
        std::int64_t most = 1;
        for (const OperatorId user : m_index.uses().consumers[at(weight)]) {
            const Operator &op = m_graph.at(user);
            const OperatorDecision &decision = m_plan.decisions[at(user)];
            if (op.direction != Direction::Forward)
                continue;
            for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
                if (op.inputs[slot] != weight)
                    continue;
                std::map<DeviceId, std::set<IndexMask>> seen;
                for (std::size_t part = 0; part < decision.devices.size(); ++part)
                    seen[decision.devices[part]].insert(
                        inputView(m_graph, op, decision.partition, static_cast<std::int32_t>(part), slot)
                            .index);
                std::set<std::set<IndexMask>> boxes;
                for (auto &[device, own] : seen)
                    boxes.insert(std::move(own));
                most = std::max(most, static_cast<std::int64_t>(boxes.size()));
            }
        }
        return most;
    }

    void takeSharing()
    {
        std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> weights;
        for (std::size_t i = 0; i < m_plan.decisions.size(); ++i) {
            const Operator &op = m_graph.operators[i];
            const OperatorDecision &decision = m_plan.decisions[i];
            if (op.direction != Direction::Optimizer || op.inputs.empty() || !op.inputs.front()
                || m_graph.at(op.inputs.front()).role != TensorRole::Weight)
                continue;
            m_shape.offloadsStates = m_shape.offloadsStates || decision.offloaded;
            std::int64_t shards = 1;
            for (const Split &split : decision.partition.splits)
                if (split.kind == SplitKind::Dimension)
                    shards *= split.parts;
            const std::int64_t parts = decision.sharding.stage > 0
                ? std::max<std::int64_t>(1, shards / boxesOf(op.inputs.front()))
                : 1;
            ++weights[{parts > 1 ? decision.sharding.stage : 0, static_cast<std::int32_t>(parts)}];
        }
        for (const auto &[how, count] : weights)
            m_shape.sharing.push_back({how.first, how.second, count});
        // Those that are shared out first: the others are what is too small for it.
        std::stable_sort(m_shape.sharing.begin(), m_shape.sharing.end(),
            [](const UpdateSharing &a, const UpdateSharing &b) {
                return std::pair(a.stage > 0, a.weights) > std::pair(b.stage > 0, b.weights);
            });
    }

    void takeMemory()
    {
        std::set<std::int32_t> turns;
        for (std::size_t i = 0; i < m_plan.decisions.size(); ++i) {
            const OperatorDecision &decision = m_plan.decisions[i];
            m_shape.versions = std::max(m_shape.versions, decision.weightVersions);
            if (!isForward(i))
                continue;
            const OperatorId id{static_cast<std::int32_t>(i)};
            if (decision.recomputeGroup >= 0)
                m_shape.recomputed.push_back(id);
            if (decision.offloaded)
                m_shape.offloaded.push_back(id);
            if (m_cuts[i].turns > 1) {
                m_shape.inTurns.push_back(id);
                turns.insert(m_cuts[i].turns);
            }
        }
        m_shape.turns.assign(turns.begin(), turns.end());
    }

    /// An operator is cut as the products around it let it: along what it has of their dimensions. What has
    /// no weights of its own may be whole, or along the sequence where products are not.
    bool isUsual(std::size_t op) const
    {
        const OperatorCut &main = m_shape.main;
        const OperatorCut &cut = m_cuts[op];
        if (isSpread(op))
            return true; // said by itself
        if (cut.experts > 1)
            return cut.experts == main.experts && (cut.tensor == 1 || cut.tensor == main.tensor);
        if (isProduct(op))
            return cut.data == main.data && cut.tensor == main.tensor && cut.sequence == main.sequence
                && cut.space == main.space;
        const std::int32_t both = main.sequence * main.tensor;
        const auto isOneOf = [](std::int32_t degree, std::initializer_list<std::int32_t> usual) {
            return std::find(usual.begin(), usual.end(), degree) != usual.end();
        };
        const bool hasBatch = m_batch->operatorDimension[op] >= 0 && !m_batch->oncePerStep[op];
        return isOneOf(cut.data, {main.data, hasBatch ? main.data : 1})
            && isOneOf(cut.tensor, {1, main.tensor, main.tensor * m_shape.byHeads})
            && isOneOf(cut.sequence, {1, main.sequence, both, main.sequence / m_shape.byHeads})
            && isOneOf(cut.space, {1, main.space});
    }

    /// One lane may run what there is once for all of them.
    bool isElsewhere(const Devices &devices, const Devices &home) const
    {
        const bool isPart = std::includes(home.begin(), home.end(), devices.begin(), devices.end());
        return !devices.empty() && (m_shape.lanes > 1 ? !isPart : devices != home);
    }

    void takeExceptions()
    {
        std::map<std::tuple<decltype(OperatorCut{}.degrees()), std::vector<DeviceId>>, PlanException> unusual;
        for (std::size_t i = 0; i < m_cuts.size(); ++i) {
            if (!isForward(i))
                continue;
            const OperatorDecision &decision = m_plan.decisions[i];
            const std::size_t stage = at(decision.stage);
            const bool isAway =
                !isSpread(i) && stage < m_homes.size() && isElsewhere(devicesOf(decision), m_homes[stage]);
            if (!isAway && isUsual(i))
                continue;
            std::vector<DeviceId> away = isAway ? distinct(decision.devices) : std::vector<DeviceId>{};
            PlanException &one = unusual[{m_cuts[i].degrees(), away}];
            one.operators.push_back({static_cast<std::int32_t>(i)});
            one.cut = m_cuts[i];
            one.hasProducts = one.hasProducts || isProduct(i);
            one.devices = std::move(away);
        }
        for (auto &[key, exception] : unusual)
            m_shape.exceptions.push_back(std::move(exception));
        std::stable_sort(m_shape.exceptions.begin(), m_shape.exceptions.end(),
            [](const PlanException &a, const PlanException &b) {
                return a.operators.size() > b.operators.size();
            });
    }

    void takeOrders()
    {
        std::set<RowId> rows;
        for (const OrderConstraint &each : m_plan.orders)
            rows.insert(each.row);
        for (const CommunicationOrder &each : m_plan.communicationOrders)
            rows.insert(each.row);
        for (const InterleavedBlocks &each : m_plan.interleaved)
            rows.insert(each.row);
        rows.insert(m_plan.inFlightRows.begin(), m_plan.inFlightRows.end());
        rows.erase(RowId{});
        m_shape.rowsOfOrder = static_cast<std::int32_t>(rows.size());
    }

    const Plan &m_plan;
    const Graph &m_graph;
    const SelectorIndex &m_index;
    std::shared_ptr<const BatchInfo> m_batch;
    std::vector<OperatorCut> m_cuts; ///< By operator; those of others than forward ones are not read.
    std::vector<Devices> m_homes{}; ///< By stage.
    PlanShape m_shape{};
};

} // namespace

PlanShape shapeOf(const Plan &plan, const SelectorIndex &index)
{
    return ShapeReader(plan, index).take();
}

} // namespace planloom
