#include "engine/search/bounds/path_bound.h"

#include "engine/schedule/schedule_templates.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace planloom {

namespace {

constexpr int kMostCutMixtures = 3; ///< That are looked for: all cuts are tried for each.

} // namespace

PathBound::PathBound(const Configuration &configuration, const PartitionProblem &problem,
    const StagePlan &plan, const Reductions &reductions, const LinkTimes &links,
    const std::vector<LeastStage> &least, const OperatorTimes &waits, bool trains)
    : m_step{configuration, problem, plan, reductions, links, least, trains,
        splitsBackward(configuration.schedule)}
    , m_costs(m_step, waits)
{
}

Result<void> PathBound::add(const std::vector<std::int32_t> &choice, const std::vector<StageFigures> &figures,
    const std::vector<StageLink> &links)
{
    std::vector<StageTime> times;
    std::vector<Reductions::Longer> longer;
    std::vector<bool> isOwn; // by stage: its blocks take what its operators do
    for (const StageFigures &stage : figures) {
        times.push_back(stage.time);
        longer.push_back(m_step.reductions.addTo(stage, times.back()));
        isOwn.push_back(!longer.back().gathers && !longer.back().reduces);
    }
    std::vector<PlayedBlock> blocks;
    TRY(const PipelineTime played,
        playPipeline(m_step.configuration.schedule, times, m_step.links.sendsOf(links), SendOrder::Any,
            m_step.configuration.ranks, m_step.configuration.microBatches, m_step.trains, &blocks));
    StepWay way = longestStepWay(m_step, figures, played, blocks, m_costs.sends().count());
    m_costs.sends().addTo(links, isOwn, way);
    for (std::size_t s = 0; s < way.stages.size(); ++s) {
        StageCounts &own = way.stages[s];
        if (own.ahead > 0)
            way.ahead.emplace_back(m_step.reductions.aheadOf(figures[s]).reader, own.ahead);
        if (longer[s].gathers)
            own.gathering = std::exchange(own.forward, 0);
        if (longer[s].reduces && !m_step.splits)
            own.reducing = std::exchange(own.backward, 0);
        if (longer[s].reduces && m_step.splits) {
            // Both parts of a backward pass together take as long as its reductions.
            own.reducing = std::min(own.backward, own.weights);
            own.backward -= own.reducing;
            own.weights -= own.reducing;
        }
    }
    m_ways.push_back(std::move(way));
    const MetPartition partition = m_costs.met(choice);
    std::vector<double> byWay;
    for (const StepWay &each : m_ways)
        byWay.push_back(m_costs.seconds(partition, m_costs.alone(each)));
    const WayMean alone = m_costs.alone(m_ways.back());
    std::vector<double> byPartition;
    for (const MetPartition &before : m_partitions)
        byPartition.push_back(m_costs.seconds(before, alone));
    m_shares.add(choice, byWay, std::move(byPartition));
    m_partitions.push_back(partition);
    return {};
}

bool PathBound::isKnown(const std::vector<std::int32_t> &choice) const
{
    return std::any_of(m_partitions.begin(), m_partitions.end(),
        [&](const MetPartition &each) { return each.choice == choice; });
}

std::optional<std::vector<std::int32_t>> PathBound::mixtureByLayers(const WayShares::Shares &shares) const
{
    constexpr std::size_t kMostCuts = 6;
    std::vector<std::size_t> order(m_partitions.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
        [&](std::size_t a, std::size_t b) { return shares.partitions[a] > shares.partitions[b]; });
    if (order.size() < 2 || shares.partitions[order[1]] <= 0)
        return std::nullopt;
    const SelectorIndex &index = *m_step.problem.setting().model->index;
    std::vector<std::size_t> cuts; // between layers
    for (std::size_t i = 1; i < m_step.problem.operatorCount(); ++i)
        if (index.layerOf({static_cast<std::int32_t>(i)})
            != index.layerOf({static_cast<std::int32_t>(i - 1)}))
            cuts.push_back(i);
    const std::size_t step = std::max<std::size_t>(1, cuts.size() / kMostCuts);
    std::vector<WayMean> ways;
    for (const StepWay &way : m_ways)
        ways.push_back(m_costs.alone(way));
    std::optional<std::vector<std::int32_t>> best;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t c = step / 2; c < cuts.size(); c += step)
        for (const auto &[first, second] : {std::pair{order[0], order[1]}, {order[1], order[0]}}) {
            std::vector<std::int32_t> choice = m_partitions[first].choice;
            std::copy(m_partitions[second].choice.begin() + static_cast<std::ptrdiff_t>(cuts[c]),
                m_partitions[second].choice.end(), choice.begin() + static_cast<std::ptrdiff_t>(cuts[c]));
            if (isKnown(choice) || !std::isfinite(m_step.problem.costOf({}, choice)))
                continue;
            const MetPartition mixed = m_costs.met(choice);
            double longest = 0;
            for (const WayMean &way : ways)
                longest = std::max(longest, m_costs.seconds(mixed, way));
            if (longest < least) {
                least = longest;
                best = std::move(choice);
            }
        }
    return best;
}

Result<PathBound::Answer> PathBound::solve(const std::stop_token &stop)
{
    WayMean mean = m_costs.nothing();
    const WayShares::Shares shares = m_shares.best();
    for (std::size_t w = 0; w < m_ways.size(); ++w)
        if (shares.ways[w] > 0)
            m_costs.add(m_ways[w], shares.ways[w], mean);
    const HeldLimits *limits = m_shares.limits();
    const HeldLimits::Prices held = limits ? limits->at(shares.prices) : HeldLimits::Prices{};
    const CostNetwork network = m_costs.network(mean, [&](std::size_t op, const OperatorChoice &choice) {
        return limits ? limits->seconds(op, choice, held) : 0;
    });
    TRY(NetworkAnswer answer, cheapestChoice(network, m_step.problem.networkOptions(), stop));
    if (!std::isfinite(answer.cost))
        return Answer{std::numeric_limits<double>::infinity(), m_partitions.back().choice};
    Answer found{
        m_costs.constant(mean) - held.room + std::min(answer.bound, answer.cost), std::move(answer.choice)};
    if (m_mixtures < kMostCutMixtures && isKnown(found.choice)) {
        ++m_mixtures;
        if (auto mixture = mixtureByLayers(shares))
            found.choice = *std::move(mixture);
    }
    return found;
}

} // namespace planloom
