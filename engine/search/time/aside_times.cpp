#include "engine/search/time/aside_times.h"

#include "engine/graph/operators/catalogue.h"
#include "engine/plan/plan_draft.h"
#include "engine/search/time/aside_links.h"
#include "engine/table/domain.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <set>
#include <tuple>

namespace planloom {

AsideTimes::AsideTimes(const AxisSetting &setting, const Cluster &cluster, const PlacedOperators &placed)
    : m_cluster(&cluster)
{
    if (placed.aside.empty())
        return;
    const Graph &graph = *setting.model->graph;
    AxisSetting alone = setting; // a micro-batch on one device
    alone.bound = nullptr;
    alone.parts = alone.outerParts = 1;
    alone.outerAxis.clear();
    alone.batchCuts = setting.microBatches;
    alone.replicas = 1;
    alone.aside = nullptr;
    ChoiceFinder whole(alone);
    std::map<std::vector<DeviceId>, std::int32_t> known;
    std::map<DeviceId, double> loads;
    m_operators.resize(placed.aside.size());
    for (std::size_t i = 0; i < placed.aside.size(); ++i) {
        if (!placed.aside[i])
            continue;
        const OperatorId id{static_cast<std::int32_t>(i)};
        const Operator &op = graph.at(id);
        std::vector<DeviceId> devices = distinct(setting.bound->of(id).allowed.place->preferred()->devices);
        std::sort(devices.begin(), devices.end());
        const auto [group, fresh] = known.try_emplace(devices, static_cast<std::int32_t>(m_groups.size()));
        if (fresh) {
            m_groups.push_back(devices);
            m_weights.emplace_back();
        }
        std::int64_t parts = 1;
        for (const ChosenSplit &each : chosenSplits(op, setting.bound->of(id)))
            parts *= each.split.kind == SplitKind::Replicate ? 1 : each.split.parts;
        parts = std::clamp<std::int64_t>(parts, 1, static_cast<std::int64_t>(devices.size()));
        const OperatorChoice &choice = whole.of(id).choices.front();
        Own &own = m_operators[i];
        own.group = group->second;
        own.parts = static_cast<double>(parts);
        own.forward = choice.forward / own.parts;
        own.backward = choice.backward / own.parts;
        auto &weights = m_weights[static_cast<std::size_t>(own.group)];
        for (const TensorId input : op.inputs)
            if (input && graph.at(input).role == TensorRole::Weight) {
                if (categoryOf(op) == OperatorCategory::Product)
                    own.weights = own.backward / 2;
                if (std::find(weights.begin(), weights.end(), input) == weights.end())
                    weights.push_back(input);
            }
        for (const DeviceId device : devices)
            m_ofDevice =
                std::max(m_ofDevice, loads[device] += (own.forward + own.backward) * setting.microBatches);
    }
}

/// Plays one micro-batch, first forward, then backward.
class AsideTimes::Player
{
public:
    Player(const AsideTimes &all, const PartitionProblem &problem, const MeshPlaces &places,
        const std::vector<std::int32_t> &choice, const StagePlan &plan)
        : m_all(all)
        , m_problem(problem)
        , m_graph(*problem.setting().model->graph)
        , m_uses(problem.setting().model->index->uses())
        , m_choice(choice)
        , m_plan(plan)
        , m_ranks(places.ranks)
        , m_links(all.m_groups, *all.m_cluster, problem, places)
        , m_made(m_graph.tensors.size(), 0)
    {
    }

    Played play(OperatorTimes times) &&
    {
        const auto none = [&] { return std::vector<double>(static_cast<std::size_t>(m_plan.stages), 0); };
        Played played{.weights = none(), .hostedForward = none(), .hostedBackward = none()};
        start();
        for (std::size_t i = 0; i < times.forward.size(); ++i) {
            m_all.m_operators[i].group < 0 ? meshForward(i, times.forward[i]) : groupForward(i);
            host(i, m_all.m_operators[i].forward, played.hostedForward);
            take(times.forward[i], i < m_plan.runsAgain.size() ? 1 + m_plan.runsAgain[i] : 1, played.longer);
        }
        start();
        for (std::size_t i = times.backward.size(); i-- > 0;) {
            m_all.m_operators[i].group < 0 ? meshBackward(i, times.backward[i]) : groupBackward(i);
            host(i, m_all.m_operators[i].backward, played.hostedBackward);
            take(times.backward[i], 1, played.longer);
            played.weights[at(m_plan.stageOf[i])] += m_all.m_operators[i].weights;
        }
        played.times = std::move(times);
        return played;
    }

private:
    struct Clock { ///< Of a group.
        double computed = 0;
        double linked = 0;
    };
    /// A tensor, or its gradient, where it was brought: a group, or the ranks from -1 downwards.
    using Place = std::tuple<TensorId, std::int32_t, ShardLayout>;

    std::int32_t groupOf(OperatorId op) const
    {
        const auto i = at(op);
        return i < m_all.m_operators.size() ? m_all.m_operators[i].group : -1;
    }
    bool isForward(OperatorId op) const { return at(op) < m_all.m_operators.size(); }
    std::int32_t rankOf(std::size_t op) const { return m_plan.stageOf[op] % m_ranks; }
    const OperatorChoice &choiceOf(std::size_t op) const { return m_problem.choiceOf(op, m_choice[op]); }
    double partsOf(OperatorId op) const { return m_all.m_operators[at(op)].parts; }
    Clock &clockOf(std::int32_t group) { return m_clocks[static_cast<std::size_t>(group)]; }
    OperatorId producerOf(TensorId tensor) const
    {
        const auto &producers = m_uses.producers[at(tensor)];
        return producers.empty() || !isForward(producers.front()) ? OperatorId{} : producers.front();
    }
    bool isSent(TensorId tensor) const { return tensor && m_graph.at(tensor).role == TensorRole::Activation; }

    void start()
    {
        m_mesh = m_over = 0;
        std::fill(m_made.begin(), m_made.end(), 0);
        m_clocks.assign(m_all.m_groups.size(), {});
        m_arrived.clear();
    }

    /// How much later all is over, in place of what an operator takes.
    void take(double &seconds, double runs, double &longer)
    {
        double over = m_mesh;
        for (const Clock &clock : m_clocks)
            over = std::max(over, clock.computed);
        longer += runs * std::max(0.0, over - m_over - seconds);
        seconds = over - m_over;
        m_over = over;
    }

    /// Devices of another rank have less time for what their own stages compute.
    void host(std::size_t op, double seconds, std::vector<double> &hosted)
    {
        const std::int32_t group = m_all.m_operators[op].group;
        for (std::int32_t s = 0; group >= 0 && s < std::min(m_plan.stages, m_ranks); ++s)
            if (s != rankOf(op) && m_links.isIn(group, s))
                hosted[static_cast<std::size_t>(s)] += seconds;
    }

    /// What the mesh computes; groups on its devices do their part.
    void compute(std::size_t op, double arrived, double seconds)
    {
        m_mesh = std::max(m_mesh, arrived) + seconds;
        for (std::size_t group = 0; group < m_clocks.size(); ++group)
            if (m_links.isIn(static_cast<std::int32_t>(group), rankOf(op)))
                m_clocks[group].computed += seconds;
    }

    /// When a group has received, and put together, what was there at `made`.
    void receive(std::int32_t group, AsideLinks::Sent sent, double made)
    {
        Clock &clock = clockOf(group);
        double there = made;
        if (sent.link > 0)
            there = clock.linked = std::max(clock.linked, made) + sent.link;
        clock.computed = std::max(clock.computed, there) + sent.copies;
    }

    /// When the others have what a group made at `made`.
    double send(std::int32_t group, AsideLinks::Sent sent, double made)
    {
        Clock &clock = clockOf(group);
        const double begin = std::max(clock.computed, made);
        clock.computed = begin + sent.copies;
        if (sent.link == 0)
            return clock.computed;
        clock.linked = std::max(clock.linked, begin + sent.firstCopy) + sent.link;
        return clock.linked;
    }

    void meshForward(std::size_t i, double seconds)
    {
        const Operator &op = m_graph.operators[i];
        const OperatorChoice &choice = choiceOf(i);
        double arrived = 0;
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            const TensorId tensor = op.inputs[slot];
            if (!isSent(tensor) || !producerOf(tensor) || groupOf(producerOf(tensor)) < 0)
                continue;
            const OperatorId producer = producerOf(tensor);
            const auto [known, fresh] =
                m_arrived.try_emplace(Place{tensor, -1 - rankOf(i), choice.inputs[slot]}, 0);
            if (fresh)
                known->second = send(groupOf(producer),
                    m_links.fromGroup(
                        tensor, false, choice.inputs[slot], rankOf(i), groupOf(producer), partsOf(producer)),
                    madeAt(tensor));
            arrived = std::max(arrived, known->second);
        }
        compute(i, arrived, seconds);
        for (const TensorId output : op.outputs)
            if (output)
                madeAt(output) = m_mesh;
    }

    void groupForward(std::size_t i)
    {
        const OperatorId id{static_cast<std::int32_t>(i)};
        const Operator &op = m_graph.at(id);
        const std::int32_t group = groupOf(id);
        for (const TensorId tensor : op.inputs) {
            if (!isSent(tensor) || !producerOf(tensor) || groupOf(producerOf(tensor)) == group)
                continue;
            if (!m_arrived.try_emplace(Place{tensor, group, ShardLayout{}}, 0).second)
                continue;
            const OperatorId producer = producerOf(tensor);
            const auto p = at(producer);
            receive(group,
                groupOf(producer) >= 0 ? m_links.between(tensor, false, groupOf(producer), group)
                                       : m_links.toGroup(tensor, false,
                                           choiceOf(p).outputs[slotOf(m_graph.at(producer), tensor)],
                                           rankOf(p), group, partsOf(id)),
                madeAt(tensor));
        }
        Clock &clock = clockOf(group);
        clock.computed += m_all.m_operators[i].forward;
        for (const TensorId output : op.outputs)
            if (output)
                madeAt(output) = clock.computed;
    }

    void meshBackward(std::size_t i, double seconds)
    {
        const Operator &op = m_graph.operators[i];
        const OperatorChoice &choice = choiceOf(i);
        double arrived = 0;
        for (std::size_t slot = 0; slot < op.outputs.size(); ++slot) {
            const TensorId tensor = op.outputs[slot];
            if (!isSent(tensor) || !m_problem.gradientOf(tensor) || choice.outputGradients[slot].isAbsent())
                continue;
            std::set<std::int32_t> groups;
            for (const OperatorId reader : m_uses.consumers[at(tensor)])
                if (isForward(reader) && groupOf(reader) >= 0 && groups.insert(groupOf(reader)).second)
                    arrived = std::max(arrived,
                        send(groupOf(reader),
                            m_links.fromGroup(tensor, true, choice.outputGradients[slot], rankOf(i),
                                groupOf(reader), partsOf(reader)),
                            0));
        }
        compute(i, arrived, seconds);
        for (const TensorId input : op.inputs)
            if (isSent(input))
                madeAt(input) = m_mesh; // its gradient, once the first reader's is there
    }

    void groupBackward(std::size_t i)
    {
        const OperatorId id{static_cast<std::int32_t>(i)};
        const Operator &op = m_graph.at(id);
        const std::int32_t group = groupOf(id);
        for (const TensorId tensor : op.outputs) {
            if (!isSent(tensor) || !m_problem.gradientOf(tensor))
                continue;
            std::set<std::pair<std::int32_t, ShardLayout>> seen;
            for (const OperatorId reader : m_uses.consumers[at(tensor)]) {
                if (!isForward(reader) || groupOf(reader) == group)
                    continue;
                const auto r = at(reader);
                if (groupOf(reader) >= 0) {
                    if (seen.emplace(groupOf(reader), ShardLayout{}).second)
                        receive(group, m_links.between(tensor, true, groupOf(reader), group), madeAt(tensor));
                    continue;
                }
                const ShardLayout layout = choiceOf(r).inputGradients[slotOf(m_graph.at(reader), tensor)];
                if (!layout.isAbsent() && seen.emplace(-1 - rankOf(r), layout).second)
                    receive(group, m_links.toGroup(tensor, true, layout, rankOf(r), group, partsOf(id)),
                        madeAt(tensor));
            }
        }
        Clock &clock = clockOf(group);
        clock.computed += m_all.m_operators[i].backward;
        for (const TensorId input : op.inputs)
            if (isSent(input))
                madeAt(input) = std::max(madeAt(input), clock.computed);
    }

    static std::size_t slotOf(const Operator &op, TensorId tensor)
    {
        const auto &list = std::find(op.outputs.begin(), op.outputs.end(), tensor) != op.outputs.end()
            ? op.outputs
            : op.inputs;
        return static_cast<std::size_t>(std::find(list.begin(), list.end(), tensor) - list.begin());
    }
    double &madeAt(TensorId tensor) { return m_made[at(tensor)]; }

    const AsideTimes &m_all;
    const PartitionProblem &m_problem;
    const Graph &m_graph;
    const Uses &m_uses;
    const std::vector<std::int32_t> &m_choice;
    const StagePlan &m_plan;
    const std::int32_t m_ranks;
    AsideLinks m_links;
    double m_mesh = 0; ///< The clock of all that are not in groups.
    double m_over = 0; ///< When all is that was played.
    std::vector<Clock> m_clocks{}; ///< By group.
    std::vector<double> m_made{}; ///< By tensor: when it is there, or its gradient.
    std::map<Place, double> m_arrived{};
};

AsideTimes::Played AsideTimes::play(const PartitionProblem &problem, const MeshPlaces &places,
    const std::vector<std::int32_t> &choice, const StagePlan &plan, OperatorTimes times) const
{
    return Player(*this, problem, places, choice, plan).play(std::move(times));
}

double AsideTimes::sharedSeconds(
    const PartitionProblem &problem, const MeshPlaces &places, const std::vector<std::int32_t> &choice) const
{
    const AxisSetting &setting = problem.setting();
    double all = 0;
    for (std::size_t group = 0; group < m_groups.size(); ++group)
        for (const TensorId weight : m_weights[group]) {
            const TensorId gradient = problem.gradientOf(weight);
            if (!gradient || problem.shareOf(weight, choice) >= 1)
                continue;
            const DeviceId first = m_groups[group].front();
            const std::int64_t elements = elementCount(setting.model->graph->at(weight).type.shape);
            const std::int64_t devices = std::int64_t{places.replicas} * places.shards;
            const GroupShape pair = groupShape(
                *m_cluster, {first, places.at(places.replicas - 1, std::max(0, rankOf(places, first)), 0)});
            for (const std::int64_t bytes : {elements * sizeOf(setting.types->reduced(gradient)),
                     problem.weights().bytesOf(weight).model})
                all += static_cast<double>(devices - 1)
                    * setting.costs->collective(CollectiveKind::SendRecv, Bytes{bytes / devices}, pair);
        }
    return all;
}

double AsideTimes::updateSeconds(
    const PartitionProblem &problem, const MeshPlaces &places, std::int32_t rank) const
{
    std::map<DeviceId, double> seconds;
    for (std::size_t group = 0; group < m_groups.size(); ++group)
        for (const DeviceId device : m_groups[group])
            for (const TensorId weight : m_weights[group])
                seconds[device] += problem.weights().updateSecondsAside(weight);
    double most = 0;
    for (const auto &[device, own] : seconds)
        if (rankOf(places, device) == rank)
            most = std::max(most, own);
    return most;
}

} // namespace planloom
