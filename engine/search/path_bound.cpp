#include "engine/search/path_bound.h"

#include "engine/lowering/schedule_templates.h"
#include "engine/search/meeting_tables.h"

#include <algorithm>
#include <map>
#include <utility>

namespace planloom {

const std::array<double PathBound::Weights::*, 10> PathBound::kParts{&Weights::forward, &Weights::backward,
    &Weights::weights, &Weights::sendForward, &Weights::sendBackward, &Weights::gathering, &Weights::reducing,
    &Weights::reduction, &Weights::update, &Weights::gather};

PathBound::PathBound(const Configuration &configuration, const PartitionProblem &problem,
    const StagePlan &plan, const Reductions &reductions, const std::vector<LeastStage> &least,
    const OperatorTimes &waits, bool trains)
    : m_configuration(configuration)
    , m_problem(problem)
    , m_plan(plan)
    , m_reductions(reductions)
    , m_least(least)
    , m_waits(waits)
    , m_trains(trains)
    , m_splits(splitsBackward(configuration.schedule))
    , m_sum(least.size())
    , m_readers(problem.setting().model->graph->tensors.size(), 0)
{
    for (const PartitionProblem::Meeting &meeting : problem.meetings()) {
        std::int32_t first = meeting.readers.front().first;
        for (const auto &[reader, slot] : meeting.readers)
            first = std::min(first, reader);
        m_charged.push_back(static_cast<std::size_t>(first));
        m_readers[static_cast<std::size_t>(meeting.tensor.index)] =
            static_cast<std::int32_t>(meeting.readers.size());
    }
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(configuration.ranks); ++rank) {
        double bytes = 0;
        bool maySum = false;
        for (std::size_t s = rank; s < least.size(); s += static_cast<std::size_t>(configuration.ranks)) {
            const Reductions::Least weights = reductions.leastOf(problem, least[s]);
            bytes += weights.reducedBytes;
            maySum = maySum || weights.maySum;
        }
        m_lastBucket.push_back(reductions.leastLastBucket(bytes, maySum));
    }
}

Result<void> PathBound::add(const std::vector<StageFigures> &figures)
{
    std::vector<StageTime> times;
    std::vector<bool> gathers;
    std::vector<bool> reduces;
    for (const StageFigures &stage : figures) {
        times.push_back(stage.time);
        m_reductions.addTo(stage, times.back());
        // Where communication for the weights is longer than the pass beside it.
        gathers.push_back(times.back().forward > stage.time.forward);
        reduces.push_back(m_configuration.zero >= 2 && times.back().backward > stage.time.backward);
    }
    std::vector<PlayedBlock> blocks;
    TRY(const PipelineTime played,
        playPipeline(m_configuration.schedule, times, m_configuration.ranks, m_configuration.microBatches,
            m_trains, &blocks));
    Way way = longestWayOf(figures, played, blocks);
    // Later ways count for more: the first ones are those of partitions that are far from the cheapest.
    const double counts = ++m_count;
    m_total += counts;
    m_constant += counts * way.constant;
    for (std::size_t s = 0; s < way.stages.size(); ++s) {
        Weights &own = way.stages[s];
        if (gathers[s])
            own.gathering = std::exchange(own.forward, 0);
        if (reduces[s] && !m_splits)
            own.reducing = std::exchange(own.backward, 0);
        if (reduces[s] && m_splits) { // both parts of a backward pass together take as long as its reductions
            own.reducing = std::min(own.backward, own.weights);
            own.backward -= own.reducing;
            own.weights -= own.reducing;
        }
        for (double Weights::*part : kParts)
            m_sum[s].*part += counts * own.*part;
    }
    return {};
}

/// The longest way to the end of the step.
PathBound::Way PathBound::longestWayOf(const std::vector<StageFigures> &figures, const PipelineTime &played,
    const std::vector<PlayedBlock> &blocks) const
{
    // Of the rank that ends last, through what it does last.
    const auto ranks = static_cast<std::size_t>(m_configuration.ranks);
    double most = -1;
    std::size_t last = 0;
    Ending its;
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        Ending ending;
        for (std::size_t s = rank; s < figures.size(); s += ranks)
            m_reductions.addTo(figures[s], played.lastBackward[s], played.end[s], ending);
        if (ending.seconds() > most) {
            most = ending.seconds();
            last = rank;
            its = ending;
        }
    }
    if (!m_trains)
        its = {.begin = 0, .computed = its.computed};
    const double lastBucket = m_trains && its.reduction > 0 ? m_lastBucket[last] : 0;
    const double updating = its.computed + its.update;
    const double gathering = its.computed + lastBucket + its.gather;
    const double reducing = its.reduction > 0 ? its.begin + its.reduction + its.gather : 0;
    const bool reduces = reducing > std::max(updating, gathering);
    const bool gathers = !reduces && gathering > updating;
    std::int32_t to = -1;
    std::size_t first = figures.size(); // the stage whose last backward block begins first
    for (std::size_t s = last; s < figures.size(); s += ranks)
        if (first == figures.size() || played.lastBackward[s] < played.lastBackward[first])
            first = s;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
        const auto stage = static_cast<std::size_t>(blocks[b].block.block.stage.index);
        if (reduces ? stage == first && blocks[b].block.block.pass != Pass::Forward : stage % ranks == last)
            to = static_cast<std::int32_t>(b);
    }
    Way way;
    for (const StageVisits &visits : longestWay(blocks, to, !reduces, figures.size()))
        way.stages.push_back({visits});
    way.constant = gathers ? lastBucket : 0;
    for (std::size_t s = last; s < way.stages.size() && m_trains; s += ranks) {
        way.stages[s].reduction = reduces ? 1 : 0;
        way.stages[s].gather = reduces || gathers ? 1 : 0;
        way.stages[s].update = !reduces && !gathers ? 1 : 0;
    }
    return way;
}

double PathBound::ownSeconds(std::size_t op, const OperatorChoice &choice, const Weights &weights) const
{
    const Operator &own = m_problem.setting().model->graph->operators[op];
    const bool accumulates = m_configuration.zero < 2;
    const double half = m_splits ? m_problem.weightGradientSeconds(op, choice) : 0;
    const double apart = half + accumulationSeconds(m_problem, op, choice, accumulates);
    double seconds = weights.forward * choice.forward
        + weights.backward * (choice.backward - half + (m_plan.recomputed[op] ? choice.forward : 0))
        + (m_splits ? weights.weights : weights.backward) * apart;
    if (weights.gathering + weights.reducing + weights.reduction + weights.update + weights.gather == 0)
        return seconds;
    for (std::size_t slot = 0; slot < own.inputs.size(); ++slot) {
        const TensorId weight = own.inputs[slot];
        const auto adds = m_problem.accumulationOf(op, slot, choice);
        if (!adds)
            continue;
        const double readers = std::max(1, m_readers[static_cast<std::size_t>(weight.index)]);
        const double share =
            (choice.inputs[slot] >= cutAlong(0) ? 1.0 / m_problem.setting().parts : 1.0) / readers;
        const auto traffic = [&](double times, const WeightTraffic &each) {
            return times > 0 ? times * m_problem.secondsOf(weight, each, share, readers) : 0;
        };
        seconds += traffic(weights.gathering, m_reductions.leastGatheringAgain())
            + traffic(weights.reducing + weights.reduction, m_reductions.leastReduction(adds->overShards))
            + traffic(weights.gather, m_reductions.leastGathering(adds->overShards))
            + weights.update * m_problem.updateSeconds(weight) * share
                / m_reductions.updaters(adds->overShards);
    }
    return seconds;
}

Result<PathBound::Answer> PathBound::solve(const std::stop_token &stop) const
{
    std::vector<Weights> mean = m_sum;
    double constant = m_constant / m_total;
    for (std::size_t s = 0; s < mean.size(); ++s) {
        for (double Weights::*part : kParts)
            mean[s].*part /= m_total;
        constant += mean[s].sendForward * m_least[s].time.sendForward
            + mean[s].sendBackward * m_least[s].time.sendBackward;
    }
    const auto of = [&](std::size_t op) -> const Weights & {
        return mean[static_cast<std::size_t>(m_plan.stageOf[op])];
    };
    CostNetwork network;
    std::map<std::pair<std::int32_t, std::vector<double>>, CostTable> ownTables; // by kind
    for (std::size_t i = 0; i < m_problem.operatorCount(); ++i) {
        network.domains.push_back(static_cast<std::int32_t>(m_problem.choiceCount(i)));
        std::vector<double> costs;
        for (std::int32_t c = 0; c < network.domains.back(); ++c)
            costs.push_back(ownSeconds(i, m_problem.choiceOf(i, c), of(i)));
        CostTable &table = ownTables[{m_problem.kindOf(i), costs}];
        if (!table)
            table = std::make_shared<const std::vector<double>>(std::move(costs));
        network.factors.push_back({{static_cast<std::int32_t>(i)}, table});
        if (i < m_waits.forward.size())
            constant += of(i).forward * m_waits.forward[i]
                + of(i).backward * (m_waits.backward[i] + (m_plan.recomputed[i] ? m_waits.forward[i] : 0));
    }
    MeetingTables &tables = m_problem.tables();
    const std::vector<PartitionProblem::Meeting> &meetings = m_problem.meetings();
    const auto add = [&](std::size_t meeting, PartitionProblem::Passes passes, double times) {
        for (const CostFactor &factor : tables.of(meeting, passes))
            network.factors.push_back(tables.scaled(factor, times));
    };
    for (std::size_t m = 0; m < meetings.size(); ++m) {
        if (meetings[m].producer < 0) {
            add(m, PartitionProblem::Passes::Both, 1);
            continue;
        }
        const std::size_t reader = m_charged[m];
        add(m, PartitionProblem::Passes::Forward,
            of(reader).forward + (m_plan.recomputed[reader] ? of(reader).backward : 0));
        add(m, PartitionProblem::Passes::Backward,
            of(static_cast<std::size_t>(meetings[m].producer)).backward);
    }
    network.factors.insert(network.factors.end(), m_problem.ties().begin(), m_problem.ties().end());
    TRY(NetworkAnswer answer, cheapestChoice(network, {}, stop));
    return Answer{constant + std::min(answer.bound, answer.cost), std::move(answer.choice)};
}

} // namespace planloom
