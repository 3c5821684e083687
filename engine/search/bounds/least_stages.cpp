#include "engine/search/bounds/least_stages.h"

#include "engine/search/memory/operator_memory.h"
#include "engine/search/memory/turn_units.h"
#include "engine/search/partition/meeting_tables.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

namespace planloom {

namespace {

/// Costs of some operators by themselves, and of what they communicate.
class StageNetworks
{
public:
    StageNetworks(const PartitionProblem &problem, const StagePlan &plan)
        : m_problem(problem)
        , m_plan(plan)
        , m_tables(problem.tables())
        , m_operators(static_cast<std::size_t>(plan.stages))
        , m_inside(problem.operatorCount(), false)
    {
        for (std::size_t i = 0; i < problem.operatorCount(); ++i)
            m_operators[stageOf(i)].push_back(static_cast<std::int32_t>(i));
        for (const Meeting &meeting : problem.meetings())
            m_charged.push_back(at(meeting.firstReader()));
    }

    /// @param own  seconds of an operator's choice
    /// @param repeated  with the forward communication of what is computed again
    /// @param splitsBackward  a pass of its own waits for what gradients of weights alone are made of
    template<typename Own>
    Result<std::vector<double>> least(
        CountedPasses passes, bool repeated, bool splitsBackward, const Own &own, const std::stop_token &stop)
    {
        std::vector<std::vector<CostFactor>> factors(m_operators.size());
        const std::vector<Meeting> &meetings = m_problem.meetings();
        for (std::size_t m = 0; m < meetings.size(); ++m) {
            const Meeting &meeting = meetings[m];
            if (meeting.producer < 0) {
                std::vector<std::size_t> stages;
                for (const auto &[reader, slot] : meeting.readers)
                    if (const std::size_t s = stageOf(static_cast<std::size_t>(reader));
                        std::find(stages.begin(), stages.end(), s) == stages.end())
                        stages.push_back(s);
                for (const std::size_t s : stages)
                    add(m, CountedPasses::Both, factors[s]);
                continue;
            }
            if (passes != CountedPasses::Backward)
                add(m, CountedPasses::Forward, factors[stageOf(m_charged[m])]);
            for (std::int32_t run = 0; repeated && run < m_plan.runsAgain[m_charged[m]]; ++run)
                add(m, CountedPasses::Forward, factors[stageOf(m_charged[m])]);
            const bool isApart = splitsBackward && m_problem.makesWeightsAlone(at(meeting.producer));
            if (passes != CountedPasses::Forward && !isApart)
                add(m, CountedPasses::Backward, factors[stageOf(at(meeting.producer))]);
        }
        std::vector<double> seconds;
        for (std::size_t s = 0; s < m_operators.size(); ++s) {
            TRY(seconds.emplace_back(), leastOf(s, factors[s], own, stop));
        }
        return seconds;
    }

    const std::vector<std::int32_t> &operatorsOf(std::size_t stage) const { return m_operators[stage]; }

private:
    std::size_t stageOf(std::size_t op) const { return at(m_plan.stageOf[op]); }

    void add(std::size_t meeting, CountedPasses passes, std::vector<CostFactor> &factors)
    {
        const std::vector<CostFactor> &own = m_tables.of(meeting, passes);
        factors.insert(factors.end(), own.begin(), own.end());
    }

    template<typename Own>
    Result<double> leastOf(std::size_t stage, const std::vector<CostFactor> &factors, const Own &own,
        const std::stop_token &stop)
    {
        CostNetwork network;
        std::vector<std::int64_t> key;
        std::vector<std::int32_t> place(m_problem.operatorCount(), -1);
        for (const std::int32_t op : m_operators[stage]) {
            const auto i = static_cast<std::size_t>(op);
            m_inside[i] = true;
            place[i] = static_cast<std::int32_t>(network.domains.size());
            network.domains.push_back(static_cast<std::int32_t>(m_problem.choiceCount(i)));
            std::vector<double> costs;
            for (const OperatorChoice &choice : m_problem.choicesOf(i))
                costs.push_back(own(i, choice));
            CostTable &table = m_own[{m_problem.kindOf(i), costs}];
            if (!table)
                table = std::make_shared<const std::vector<double>>(std::move(costs));
            network.factors.push_back({{place[i]}, table});
            key.push_back(reinterpret_cast<std::intptr_t>(table.get()));
        }
        double constant = 0;
        for (const CostFactor &factor : factors) {
            CostFactor least = m_tables.leastOver(factor, m_inside);
            if (least.variables.empty()) {
                constant += least.costs->front();
                continue;
            }
            if (std::none_of(least.costs->begin(), least.costs->end(), [](double cost) { return cost > 0; }))
                continue;
            key.push_back(-1);
            for (std::int32_t &variable : least.variables) {
                variable = place[static_cast<std::size_t>(variable)];
                key.push_back(variable);
            }
            key.push_back(reinterpret_cast<std::intptr_t>(least.costs.get()));
            network.factors.push_back(std::move(least));
        }
        for (const std::int32_t op : m_operators[stage])
            m_inside[static_cast<std::size_t>(op)] = false;
        const auto [known, fresh] = m_known.try_emplace(std::move(key), 0.0);
        if (fresh) {
            TRY(const NetworkAnswer answer, cheapestChoice(network, m_problem.networkOptions(), stop));
            known->second = std::min(answer.bound, answer.cost);
        }
        return constant + known->second;
    }

    const PartitionProblem &m_problem;
    const StagePlan &m_plan;
    MeetingTables &m_tables;
    std::vector<std::vector<std::int32_t>> m_operators;
    std::vector<bool> m_inside;
    std::vector<std::size_t> m_charged{}; ///< By meeting: the reader that waits for it.
    std::map<std::pair<std::int32_t, std::vector<double>>, CostTable> m_own{};
    std::map<std::vector<std::int64_t>, double> m_known{}; ///< Least costs of equal networks.
};

} // namespace

double accumulationSeconds(
    const PartitionProblem &problem, std::size_t op, const OperatorChoice &choice, bool accumulates)
{
    if (accumulates)
        return problem.accumulationSeconds(op, choice);
    double seconds = 0;
    for (std::size_t slot = 0; slot < choice.inputGradients.size(); ++slot)
        if (const auto adds = problem.accumulationOf(op, slot, choice))
            seconds += adds->cast;
    return seconds;
}

namespace {

void addWeights(const PartitionProblem &problem, const StagePlan &plan, std::vector<LeastStage> &stages)
{
    const Graph &graph = *problem.setting().model->graph;
    const Uses &uses = problem.setting().model->index->uses();
    const AxisSetting &setting = problem.setting();
    std::vector<GatheredWeights> gathered(stages.size());
    std::vector<std::int32_t> firstOf(stages.size(), -1); // operators that take time, or have a backward one
    for (std::size_t i = problem.operatorCount(); i-- > 0;) {
        bool takesTime = graph.operators[i].mirror.valid();
        for (const OperatorChoice &choice : problem.choicesOf(i))
            takesTime = takesTime || choice.forward > 0;
        if (takesTime)
            firstOf[at(plan.stageOf[i])] = static_cast<std::int32_t>(i);
    }
    for (std::size_t t = 0; t < graph.tensors.size(); ++t) {
        LeastWeight least{.weight = {static_cast<std::int32_t>(t)}, .share = 0};
        const WeightBytes &bytes = problem.weights().bytesOf(least.weight);
        if (bytes.all() == 0)
            continue;
        bool alwaysSums = false; // some reader does, in every choice
        std::map<std::size_t, OperatorId> readBy; // stages, and their first that reads it
        for (const OperatorId reader : uses.consumers[t]) {
            const auto r = at(reader);
            if (r >= problem.operatorCount() || problem.isAside(r))
                continue;
            OperatorId &first = readBy.try_emplace(at(plan.stageOf[r]), reader).first->second;
            first = std::min(first, reader);
            for (std::size_t slot = 0; slot < graph.operators[r].inputs.size(); ++slot) {
                if (graph.operators[r].inputs[slot] != least.weight)
                    continue;
                double share = 1;
                BySums<std::optional<double>> own;
                for (const OperatorChoice &choice : problem.choicesOf(r)) {
                    const double part = 1.0 / setting.partsOf(choice.inputs[slot]);
                    share = std::min(share, part);
                    const auto adds = problem.accumulationOf(r, slot, choice);
                    std::optional<double> &of = own[indexOf(adds ? adds->sums : ShardAxes::None)];
                    of = std::min(of.value_or(1), part);
                }
                alwaysSums = alwaysSums || !own[indexOf(ShardAxes::None)];
                // All readers have it alike: as large as the one that can cut it least.
                least.share = std::max(least.share, share);
                for (std::size_t sums = 1; sums < own.size(); ++sums)
                    if (own[sums])
                        least.shares[sums] = std::max(least.shares[sums].value_or(0), *own[sums]);
            }
        }
        if (!alwaysSums)
            least.shares[indexOf(ShardAxes::None)] = least.share;
        double state = least.share; // which devices that make summands share
        for (std::size_t sums = 1; sums < least.shares.size(); ++sums)
            if (least.shares[sums])
                state =
                    std::min(state, *least.shares[sums] / setting.devicesOver(static_cast<ShardAxes>(sums)));
        OperatorId firstOfAll;
        for (const auto &[s, first] : readBy) {
            least.stages.push_back(static_cast<std::int32_t>(s));
            firstOfAll = firstOfAll ? std::min(firstOfAll, first) : first;
        }
        const TensorId gradient = problem.gradientOf(least.weight);
        const StorageTypes &types = *setting.types;
        const double elements =
            std::floor(static_cast<double>(elementCount(graph.tensors[t].type.shape)) * least.share);
        for (const auto &[s, first] : readBy) {
            least.isFirst = firstOfAll.index == firstOf[s];
            gathered[s].add(first, setting.model->index->layerOf(first),
                std::floor(static_cast<double>(bytes.model) * least.share));
            if (gradient) {
                stages[s].madeBytes =
                    std::max(stages[s].madeBytes, elements * sizeOf(types.carried(gradient)));
                if (types.reduced(gradient) != types.carried(gradient))
                    stages[s].castBytes =
                        std::max(stages[s].castBytes, elements * sizeOf(types.reduced(gradient)));
            }
            stages[s].modelBytes += static_cast<double>(bytes.model) * least.share;
            stages[s].stateBytes += static_cast<double>(bytes.state) * state;
            stages[s].gradientBytes += static_cast<double>(bytes.gradient) * least.share;
            if (graph.tensors[t].role == TensorRole::Weight && gradient)
                stages[s].weights.push_back(least);
        }
    }
    for (std::size_t s = 0; s < stages.size(); ++s)
        stages[s].gatheredBytes = gathered[s].most();
}

void addPassing(const PartitionProblem &problem, const StagePlan &plan, std::vector<LeastStage> &stages)
{
    for (std::size_t i = 0; i < problem.operatorCount(); ++i) {
        if (plan.units && plan.units->unitOf[i] >= 0) // in turns it passes less
            continue;
        const double least = problem.leastOf(i, [&](const OperatorChoice &choice) {
            return static_cast<double>(passingBytes(problem, i, choice));
        });
        double &most = stages[at(plan.stageOf[i])].passingBytes;
        most = std::max(most, least);
    }
}

} // namespace

namespace {

std::vector<StageLink> leastLinks(
    const PartitionProblem &problem, const StagePlan &plan, const PassedBefore &before)
{
    return stageLinks(
        problem, plan,
        [&](const Meeting &meeting) {
            const auto p = at(meeting.producer);
            std::int64_t most = 1;
            for (std::int32_t c = 0; c < static_cast<std::int32_t>(problem.choiceCount(p)); ++c)
                most = std::max(most, partsSent(problem, problem.choiceOf(p, c).outputs[meeting.output]));
            return most;
        },
        before);
}

} // namespace

std::vector<StageLink> leastLinks(const PartitionProblem &problem, const StagePlan &plan)
{
    const std::size_t count = problem.operatorCount();
    constexpr double kUnknown = std::numeric_limits<double>::infinity();
    PassedBefore before{std::vector<double>(count), std::vector<double>(count)};
    const auto takesTime = [&](std::size_t op, const auto &secondsOf) {
        return std::any_of(problem.choicesOf(op).begin(), problem.choicesOf(op).end(),
            [&](const OperatorChoice &choice) { return secondsOf(choice) > 0; });
    };
    std::vector<double> passed(static_cast<std::size_t>(plan.stages), 0);
    for (std::size_t i = 0; i < count; ++i) {
        double &own = passed[at(plan.stageOf[i])];
        before.forward[i] = own;
        if (own == 0 && takesTime(i, [](const OperatorChoice &choice) { return choice.forward; }))
            own = kUnknown;
    }
    passed.assign(passed.size(), 0);
    for (std::size_t i = count; i-- > 0;) {
        double &own = passed[at(plan.stageOf[i])];
        if (plan.runsAgain[i] > 0)
            own = kUnknown;
        before.backward[i] = own;
        if (own == 0 && takesTime(i, [](const OperatorChoice &choice) { return choice.backward; }))
            own = kUnknown;
    }
    return leastLinks(problem, plan, before);
}

std::vector<StageLink> leastLinks(const PartitionProblem &problem, const StagePlan &plan,
    const std::vector<LeastStage> &stages, bool splitsBackward, bool accumulates)
{
    const std::size_t count = problem.operatorCount();
    PassedBefore before{std::vector<double>(count), std::vector<double>(count)};
    // All that a pass takes less what is sure to follow.
    std::vector<double> following(stages.size(), 0);
    for (std::size_t i = count; i-- > 0;) {
        const auto s = at(plan.stageOf[i]);
        following[s] += problem.leastOf(i, [](const OperatorChoice &choice) { return choice.forward; });
        before.forward[i] = std::max(0.0, stages[s].time.forward - following[s]);
    }
    following.assign(stages.size(), 0);
    // `PassedBefore` counts no gradients of weights, nor adding them up.
    for (std::size_t i = 0; i < count; ++i)
        following[at(plan.stageOf[i])] += problem.leastOf(i, [&](const OperatorChoice &choice) {
            return splitsBackward && choice.weightGradients > 0
                ? 0
                : accumulationSeconds(problem, i, choice, accumulates) + choice.weightGradients;
        });
    for (std::size_t i = 0; i < count; ++i) {
        const auto s = at(plan.stageOf[i]);
        following[s] += problem.leastOf(
            i, [](const OperatorChoice &choice) { return choice.backward - choice.weightGradients; });
        before.backward[i] = std::max(0.0, stages[s].time.backward - following[s]);
    }
    return leastLinks(problem, plan, before);
}

std::vector<LeastStage> leastHeld(const PartitionProblem &problem, const StagePlan &plan)
{
    std::vector<LeastStage> stages(static_cast<std::size_t>(plan.stages));
    const std::vector<double> kept = leastKeptBytes(problem, plan);
    for (std::size_t i = 0; i < kept.size(); ++i)
        stages[at(plan.stageOf[i])].keptBytes += kept[i];
    addWeights(problem, plan, stages);
    addPassing(problem, plan, stages);
    return stages;
}

Result<std::vector<LeastStage>> leastStages(const PartitionProblem &problem, const StagePlan &plan,
    bool splitsBackward, bool accumulates, const std::stop_token &stop)
{
    std::vector<LeastStage> stages = leastHeld(problem, plan);
    StageNetworks networks(problem, plan);
    TRY(const auto forward,
        networks.least(
            CountedPasses::Forward, false, false,
            [](std::size_t, const OperatorChoice &choice) { return choice.forward; }, stop));
    // Gradients of weights that no product makes are made, and added up, with those of inputs.
    const auto weights = [&](std::size_t op, const OperatorChoice &choice) {
        const double made = choice.weightGradients;
        return made > 0 ? made + accumulationSeconds(problem, op, choice, accumulates) : 0;
    };
    TRY(const auto backward,
        networks.least(
            CountedPasses::Backward, true, splitsBackward,
            [&](std::size_t op, const OperatorChoice &choice) {
                return choice.backward + (splitsBackward ? choice.splitMore : 0)
                    + plan.runsAgain[op] * choice.forward
                    + accumulationSeconds(problem, op, choice, accumulates)
                    - (splitsBackward ? weights(op, choice) : 0);
            },
            stop));
    for (std::size_t s = 0; s < stages.size(); ++s) {
        stages[s].time.forward = forward[s];
        stages[s].time.backward = backward[s];
        for (const std::int32_t op : splitsBackward ? networks.operatorsOf(s) : std::vector<std::int32_t>{}) {
            const auto i = static_cast<std::size_t>(op);
            double least = std::numeric_limits<double>::infinity();
            for (std::int32_t c = 0; c < static_cast<std::int32_t>(problem.choiceCount(i)); ++c)
                least = std::min(least, weights(i, problem.choiceOf(i, c)));
            stages[s].time.weights += least;
        }
    }
    return stages;
}

Result<std::vector<double>> leastSecondsHolding(const PartitionProblem &problem, const StagePlan &plan,
    const HeldPricing &held, bool accumulates, const std::stop_token &stop)
{
    return StageNetworks(problem, plan)
        .least(
            CountedPasses::Both, true, false,
            [&](std::size_t op, const OperatorChoice &choice) {
                return choice.backward + choice.forward * (1 + plan.runsAgain[op])
                    + accumulationSeconds(problem, op, choice, accumulates)
                    + heldSeconds(problem, op, choice, held);
            },
            stop);
}

} // namespace planloom
