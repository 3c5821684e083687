#include "engine/search/bounds/way_costs.h"

#include "engine/search/partition/meeting_tables.h"

#include <algorithm>

namespace planloom {

WayCosts::WayCosts(const BoundedStep &step, const OperatorTimes &waits)
    : m_step(step)
    , m_waits(waits)
    , m_sends(step)
    , m_weights(step)
{
}

WayMean WayCosts::nothing() const
{
    const std::vector<double> zeros(m_step.problem.operatorCount(), 0);
    return {std::vector<StageCounts>(m_step.least.size()), zeros, zeros, zeros,
        WeightCounts(m_step.problem.graph().tensors.size())};
}

WayMean WayCosts::alone(const StepWay &way) const
{
    WayMean mean = nothing();
    add(way, 1, mean);
    return mean;
}

void WayCosts::add(const StepWay &way, double counts, WayMean &mean) const
{
    // Operators of the stage of `one`, from number to number.
    const auto addOver = [&](std::int32_t one, std::size_t begin, std::size_t end, double times,
                             std::vector<double> &passes) {
        for (std::size_t i = begin; i < end; ++i)
            if (m_step.stageOf(i) == m_step.stageOf(at(one)))
                passes[i] += times;
    };
    const std::size_t operators = m_step.problem.operatorCount();
    for (const SkippedPart &part : way.skipped)
        if (part.backward)
            addOver(part.reader, at(part.reader) + 1, operators, -counts * part.counts, mean.skipped);
        else
            addOver(part.reader, 0, at(part.reader), -counts * part.counts, mean.firstPass);
    for (SentOn sent : way.sent) {
        sent.counts *= counts;
        mean.sent[m_sends.makerOf(sent)].push_back(sent);
    }
    mean.constant += counts * way.constant;
    // Reductions are behind what a stage's last backward block does until then, unless that is all of it.
    if (way.behind >= 0 && !way.behindAll)
        addOver(way.behind, at(way.behind), operators, counts, mean.lastPass);
    m_weights.addReductions(way, counts, mean.weights);
    // What is gathered is before what its reader and those behind it do.
    for (const auto &[reader, times] : way.ahead) {
        addOver(reader, at(reader), operators, counts * times, mean.firstPass);
        m_weights.addGathering(reader, counts * times, mean.weights);
    }
    for (std::size_t s = 0; s < way.stages.size(); ++s)
        mean.stages[s].add(way.stages[s], counts);
}

MetPartition WayCosts::met(const std::vector<std::int32_t> &choice) const
{
    const PartitionProblem &problem = m_step.problem;
    MetPartition partition{choice, {}};
    for (const Meeting &meeting : problem.meetings()) {
        const MeetingMoves::Readers readers = problem.readersOf(meeting, choice);
        const OperatorChoice *producer = problem.producerOf(meeting, choice);
        const auto seconds = [&](CountedPasses passes) {
            return problem.moves().seconds(meeting, readers, producer, passes);
        };
        partition.meetings.emplace_back(seconds(producer ? CountedPasses::Forward : CountedPasses::Both),
            producer ? seconds(CountedPasses::Backward) : 0);
    }
    return partition;
}

double WayCosts::seconds(const MetPartition &partition, const WayMean &mean) const
{
    const PartitionProblem &problem = m_step.problem;
    double seconds = constant(mean);
    for (std::size_t i = 0; i < problem.operatorCount(); ++i)
        seconds += ownSeconds(i, problem.choiceOf(i, partition.choice[i]), mean);
    for (std::size_t m = 0; m < problem.meetings().size(); ++m) {
        const auto [forward, backward] = countsOf(problem.meetings()[m], mean);
        seconds += forward * partition.meetings[m].first + backward * partition.meetings[m].second;
    }
    return seconds;
}

CostNetwork WayCosts::network(
    const WayMean &mean, const std::function<double(std::size_t, const OperatorChoice &)> &more) const
{
    const PartitionProblem &problem = m_step.problem;
    CostNetwork network = problem.networkOf([&](std::size_t op, const OperatorChoice &choice) {
        return ownSeconds(op, choice, mean) + more(op, choice);
    });
    MeetingTables &tables = problem.tables();
    const auto add = [&](std::size_t meeting, CountedPasses passes, double times) {
        for (const CostFactor &factor : tables.of(meeting, passes))
            network.factors.push_back(tables.scaled(factor, times));
    };
    for (std::size_t m = 0; m < problem.meetings().size(); ++m) {
        const auto [forward, backward] = countsOf(problem.meetings()[m], mean);
        if (problem.meetings()[m].producer < 0) {
            add(m, CountedPasses::Both, 1);
            continue;
        }
        add(m, CountedPasses::Forward, forward);
        add(m, CountedPasses::Backward, backward);
    }
    network.factors.insert(network.factors.end(), problem.ties().begin(), problem.ties().end());
    return network;
}

double WayCosts::constant(const WayMean &mean) const
{
    double seconds = 0;
    for (std::size_t i = 0; i < m_waits.forward.size(); ++i) {
        const StageCounts &of = stageOf(i, mean);
        seconds += (of.forward + mean.firstPass[i]) * m_waits.forward[i]
            + countsBack(i, mean) * m_waits.backward[i]
            + (of.backward + mean.skipped[i] + (m_step.splits ? 0 : mean.lastPass[i]))
                * m_step.plan.runsAgain[i] * m_waits.forward[i];
    }
    return mean.constant + seconds;
}

double WayCosts::ownSeconds(std::size_t op, const OperatorChoice &choice, const WayMean &mean) const
{
    const StageCounts &stage = stageOf(op, mean);
    const double half = m_step.splits ? choice.weightGradients : 0;
    const double adding = accumulationSeconds(m_step.problem, op, choice, m_step.configuration.zero < 2);
    const double apart = half > 0 ? half + adding : 0; // in a pass of its own
    const double again = m_step.plan.runsAgain[op] * choice.forward;
    const double behind = choice.backward + (m_step.splits ? choice.splitMore : 0) + again + adding - apart;
    double seconds = stage.forward * choice.forward + stage.backward * behind + stage.weights * apart;
    seconds += mean.firstPass[op] * choice.forward + mean.skipped[op] * behind
        + mean.lastPass[op] * (m_step.splits ? apart : behind);
    if (const auto sent = mean.sent.find(op); sent != mean.sent.end())
        seconds += m_sends.seconds(choice, sent->second);
    m_weights.addSeconds(op, choice, stage, mean.weights, seconds);
    return seconds;
}

double WayCosts::countsBack(std::size_t op, const WayMean &mean) const
{
    const StageCounts &stage = stageOf(op, mean);
    return m_step.splits && m_step.problem.makesWeightsAlone(op)
        ? stage.weights + mean.lastPass[op]
        : stage.backward + mean.skipped[op] + (m_step.splits ? 0 : mean.lastPass[op]);
}

/// The first reader waits for what comes forward.
std::pair<double, double> WayCosts::countsOf(const Meeting &meeting, const WayMean &mean) const
{
    if (meeting.producer < 0)
        return {1, 0};
    const std::size_t reader = at(meeting.firstReader());
    const double forward = stageOf(reader, mean).forward + mean.firstPass[reader];
    return {std::max(0.0, forward + m_step.plan.runsAgain[reader] * countsBack(reader, mean)),
        std::max(0.0, countsBack(at(meeting.producer), mean))};
}

} // namespace planloom
