#include "engine/search/time/step_estimate.h"

#include "engine/search/time/reductions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace planloom {

namespace {

/// How much of what operators placed apart make the fastest partition longer others hardly get below.
constexpr double kLikelyAside = 0.5;

} // namespace

Result<const std::vector<LeastStage> *> StepEstimator::least(
    const Configuration &configuration, const std::stop_token &stop)
{
    TRY(const auto plan, stages(configuration, stop));
    const bool splits = splitsBackward(configuration.schedule);
    auto &known = m_least[{plan, splits, configuration.zero < 2}];
    if (!known.empty())
        return &known;
    const MeshPlaces &places = placesOf(configuration);
    if (!places.isMixed()) {
        TRY(known, leastStages(problemOf(configuration), *plan, splits, configuration.zero < 2, stop));
        return &known;
    }
    std::map<ClassSet, std::vector<LeastStage>> ofClasses;
    std::vector<LeastStage> all;
    for (std::int32_t s = 0; s < plan->stages; ++s) {
        const ClassSet classes = places.classesOf(s % places.ranks);
        const auto [own, fresh] = ofClasses.try_emplace(classes);
        if (fresh) {
            TRY(const PartitionProblem *slowest, m_problems.slowestOf(configuration, classes));
            TRY(own->second, leastStages(*slowest, *plan, splits, configuration.zero < 2, stop));
        }
        all.push_back(own->second[static_cast<std::size_t>(s)]);
    }
    known = std::move(all);
    return &known;
}

OperatorTimes StepEstimator::leastWaits(const Configuration &configuration)
{
    return m_problems.replicaTimes(configuration,
        std::vector<double>(m_setting.model.graph->tensors.size(), 1.0 / configuration.shards));
}

double StepEstimator::secondsOfWaits(const Configuration &configuration)
{
    const auto [known, fresh] =
        m_problems.made(configuration).leastWaits.try_emplace(placesOf(configuration).replicaStride, 0);
    if (fresh)
        known->second = leastWaits(configuration).communication;
    return known->second;
}

Result<StepEstimator::Paths *> StepEstimator::pathsOf(
    const Configuration &configuration, std::int64_t limit, const std::stop_token &stop)
{
    TRY(const auto *least, this->least(configuration, stop));
    Paths &paths = m_paths[{configuration, limit}];
    if (paths.bound)
        return &paths;
    paths.configuration = configuration;
    TRY(paths.plan, stages(configuration, stop));
    TRY(paths.next, partition(configuration, 0, stop));
    paths.waits = leastWaits(configuration);
    paths.reductions = std::make_unique<Reductions>(paths.configuration, placesOf(configuration),
        m_setting.costs, m_setting.cluster, problemOf(configuration));
    paths.bound = std::make_unique<PathBound>(paths.configuration, problemOf(configuration), *paths.plan,
        *paths.reductions, m_problems.linksOf(paths.configuration), *least, paths.waits, m_setting.trains);
    return &paths;
}

Result<void> StepEstimator::keepToLimit(Paths &paths, const StepEstimate &estimate, std::int64_t limit)
{
    const Configuration &configuration = paths.configuration;
    if (paths.plan->units) // what passes is as turns have it
        return {};
    for (std::size_t rank = 0; rank < estimate.rankPeaks.size(); ++rank) {
        if (estimate.rankPeaks[rank] <= limit)
            continue;
        if (!paths.limits) {
            HeldLimits::Room room{.limit = static_cast<double>(limit)};
            for (const LeastStage &stage : leastHeldOf(problemOf(configuration), paths.plan))
                room.beside.push_back(passingBeside(configuration, stage));
            TRY(HeldRoom left, heldRoom(configuration, paths.plan, limit));
            room.mostPassing = std::move(left.passing);
            paths.limits =
                std::make_unique<HeldLimits>(problemOf(configuration), heldPricing(configuration, paths.plan),
                    keptOfGradients(configuration), configuration.ranks, std::move(room));
            paths.bound->keepTo(*paths.limits);
        }
        paths.limits->add(rank, estimate.partition->choice, estimate.heldBy);
    }
    return {};
}

Result<StepEstimate> StepEstimator::estimateAlongPaths(
    const Configuration &configuration, std::int64_t limit, const std::stop_token &stop)
{
    TRY(Paths * paths, pathsOf(configuration, limit, stop));
    TRY(StepEstimate result, assess(configuration, paths->next));
    if (placesOf(configuration).isMixed()) { // ways are those of one class of devices
        TRY(const StagedBound staged, stagedBoundOf(configuration, stop));
        result.bound = std::min(staged.seconds, result.seconds);
        return result;
    }
    if (m_setting.space.sharding.isMixed()) {
        TRY(result.bound, boundOf(configuration, stop));
        return result;
    }
    if (problemOf(configuration).isDecided()) {
        TRY(result.bound, boundOf(configuration, stop));
        if (!configuration.inTurns)
            result.bound = std::max(result.bound, result.seconds - result.aside);
        return result;
    }
    const Figures &figures = m_figures.at( // all at once: turns take no less
        {result.partition, withoutTurns(result.stages), placesOf(configuration).replicaStride});
    if (figures.aside > 0) {
        TRY(const Figures alone,
            figuresOf(configuration, *result.partition, *withoutTurns(result.stages), false));
        TRY_VOID(paths->bound->add(result.partition->choice, alone.stages, alone.links));
    } else {
        TRY_VOID(paths->bound->add(result.partition->choice, figures.stages, figures.links));
    }
    TRY_VOID(keepToLimit(*paths, result, limit));
    TRY(PathBound::Answer answer, paths->bound->solve(stop));
    result.bound = result.peakBytes <= limit ? std::min(answer.bound, result.seconds) : answer.bound;
    paths->next = answerOf(std::move(answer.choice), problemOf(configuration));
    return result;
}

Result<StepEstimator::StagedBound> StepEstimator::stagedBoundOf(
    const Configuration &configuration, const std::stop_token &stop)
{
    StagedBound result;
    TRY(result.seconds, boundOf(configuration, stop));
    TRY(result.peakBytes, stagedPeakOf(configuration, stop));
    if (m_setting.space.sharding.isMixed())
        return result;
    TRY(const auto plan, stages(configuration, stop));
    TRY(const auto *least, this->least(configuration, stop));
    const PartitionProblem &problem = problemOf(configuration);
    const bool splits = splitsBackward(configuration.schedule);
    TRY(const RankReductions reductions, m_problems.reductionsOf(configuration));
    const OperatorTimes waits = leastWaits(configuration);
    // With ZeRO-2 and 3 blocks take more than what their operators do.
    const std::vector<StageSend> sends =
        m_problems.linksOf(configuration)
            .sendsOf(configuration.zero < 2 ? leastLinks(problem, *plan, *least, splits, true)
                                            : leastLinks(problem, *plan));
    std::vector<double> later(least->size(), 0); // a block may begin so much sooner that gives gradients on
    for (const StageSend &send : sends)
        if (configuration.zero < 2)
            later[static_cast<std::size_t>(send.from)] =
                std::max(later[static_cast<std::size_t>(send.from)], send.backwardAhead);
    std::vector<StageTime> times;
    std::vector<LeastReductions> weights;
    for (const LeastStage &stage : *least) {
        times.push_back(stage.time);
        weights.push_back(
            leastReductions(reductions.of(weights.size() % at(configuration.ranks)), *least, weights.size()));
        if (weights.back().ahead > 0)
            times.back().ahead =
                std::max(weights.back().ahead, weights.back().aheadOfAll + stage.time.forward);
    }
    for (std::size_t i = 0; i < waits.forward.size(); ++i) {
        StageTime &time = times[at(plan->stageOf[i])];
        time.forward += waits.forward[i];
        time.backward += plan->runsAgain[i] * waits.forward[i];
        (splits && problem.makesWeightsAlone(i) ? time.weights : time.backward) += waits.backward[i];
    }
    std::vector<double> both(times.size(), 0); // parts of a backward pass that is split
    for (std::size_t s = 0; s < times.size() && configuration.zero >= 2; ++s) {
        // Of every micro-batch, beside what is computed; `Reductions::leastReduction` has the gathering.
        if (splits)
            both[s] = std::max(times[s].backward + times[s].weights, weights[s].reduction);
        else
            times[s].backward = std::max(times[s].backward, weights[s].reduction);
        weights[s].reduction = 0;
        weights[s].gather = configuration.zero == 2 ? weights[s].gather : 0;
    }
    TRY(const PipelineTime played,
        playPipeline(configuration.schedule, times, sends, SendOrder::Any, configuration.ranks,
            configuration.microBatches, m_setting.trains));
    double &seconds = result.seconds;
    seconds = std::max(seconds, played.makespan);
    for (std::size_t s = 0; s < times.size(); ++s)
        if (both[s] > 0)
            seconds = std::max({seconds, played.lastInput[s] + both[s],
                played.begin[s] + configuration.microBatches * (times[s].forward + both[s])});
    const auto ranks = static_cast<std::size_t>(configuration.ranks);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        double begin = std::numeric_limits<double>::infinity();
        double computed = 0;
        double reduced = 0;
        double shared = 0;
        LeastReductions all;
        const Reductions &own = reductions.of(rank);
        for (std::size_t s = rank; s < times.size(); s += ranks) {
            begin = std::min(begin, played.lastBackward[s] - (splits ? 0 : later[s]));
            computed = std::max(computed, played.end[s]);
            all.reduction += weights[s].reduction;
            for (std::size_t as = 0; as < kReducedAs; ++as)
                all.reduced[as] += weights[s].reduced[as];
            all.update += weights[s].update;
            all.gather += weights[s].gather;
            shared += weights[s].shared;
            if (weights[s].last > 0)
                reduced = std::max(reduced, played.end[s] + weights[s].last);
        }
        if (!m_setting.trains)
            continue;
        all.reduction = std::max(all.reduction, own.longestOf(all.reduced).first);
        if (all.gather > 0)
            all.gather += own.leastGatheringLaunch();
        reduced = std::max({reduced, begin + all.reduction, computed + leastBehind(own, *least, rank)});
        if (shared > 0)
            reduced = std::max(reduced, played.makespan + shared);
        seconds = std::max({seconds, computed + all.update, reduced + all.gather});
    }
    return result;
}

Result<void> StepEstimator::findLeastWay(const Configuration &configuration, const std::stop_token &stop)
{
    TRY(StepProblem * own, m_problems.of(configuration));
    if (own->leastWay > 0 || !splitsBackward(configuration.schedule))
        return {};
    PartitionPricing pricing;
    pricing.withoutWeights = true;
    TRY(const NetworkAnswer answer,
        cheapestChoice(own->network->network(pricing), own->network->networkOptions(), stop));
    own->leastWay = std::min(answer.bound, answer.cost);
    return {};
}

Result<double> StepEstimator::nestedEntriesOf(const Configuration &configuration, const std::stop_token &stop)
{
    Configuration like = configuration;
    like.outerShards = 1;
    TRY(const auto fastest, partition(like, 0, stop));
    return fastest->squaredEntries;
}

Result<double> StepEstimator::kernelBoundOf(const Configuration &configuration)
{
    TRY(const StepProblem *own, m_problems.of(configuration));
    return own->network->leastKernelSeconds() * configuration.microBatches / configuration.ranks;
}

Result<double> StepEstimator::boundOf(const Configuration &configuration, const std::stop_token &stop)
{
    TRY_VOID(findLeastWay(configuration, stop));
    TRY(const auto answer, partition(configuration, 0, stop));
    return boundOf(configuration, {.seconds = answer->bound}, *answer);
}

Result<double> StepEstimator::capacityOf(const Configuration &configuration)
{
    const MeshPlaces &places = placesOf(configuration);
    if (!places.isMixed())
        return configuration.ranks;
    TRY(const StepProblem *fastest, m_problems.of(configuration));
    double capacity = 0;
    for (std::int32_t rank = 0; rank < places.ranks; ++rank) {
        TRY(const PartitionProblem *own, m_problems.slowestOf(configuration, places.classesOf(rank)));
        capacity += fastest->network->leastKernelSeconds() / own->leastKernelSeconds();
    }
    return capacity;
}

Result<double> StepEstimator::asideOf(const Configuration &configuration, const PartitionAnswer &fastest)
{
    TRY(StepProblem * own, m_problems.of(configuration));
    if (own->aside.isEmpty())
        return 0;
    const MeshPlaces &places = placesOf(configuration);
    const auto [known, fresh] =
        own->likelyAside.try_emplace({places.replicaStride, configuration.recompute}, 0);
    if (fresh) {
        StagePlan plan = m_setting.recomputed.at(configuration.recompute);
        plan.stageOf.assign(m_setting.model.index->forwardCount(), 0);
        known->second = own->aside.play(*own->network, places, fastest.choice, plan, fastest.times).longer;
    }
    return known->second;
}

Result<double> StepEstimator::likelyBoundOf(const Configuration &configuration, const std::stop_token &stop)
{
    TRY(const double bound, boundOf(configuration, stop));
    TRY(const auto answer, partition(configuration, 0, stop));
    const StepProblem &own = m_problems.made(configuration);
    const double again = secondsOfWaits(configuration) + own.leastAgain.at(configuration.recompute);
    const double chain =
        (splitsBackward(configuration.schedule) ? own.leastWay : std::min(answer->seconds, answer->bound))
        + again;
    const double ramp = (configuration.ranks - 1.0) / configuration.stagesPerRank;
    TRY(const double capacity, capacityOf(configuration));
    TRY(const double aside, asideOf(configuration, *answer));
    return std::max(bound, ((answer->bound + again) * configuration.microBatches + chain * ramp) / capacity)
        + kLikelyAside * aside * (configuration.ranks == 1 ? configuration.microBatches : 1);
}

double StepEstimator::boundOf(
    const Configuration &configuration, const LeastWork &work, const PartitionAnswer &fastest)
{
    const StepProblem &own = m_problems.made(configuration);
    const double again = secondsOfWaits(configuration) + own.leastAgain.at(configuration.recompute);
    const double microBatches = configuration.microBatches;
    // At a price of reductions, what they may be hidden behind is taken off: recomputation and waits, too.
    const double hidden = configuration.zero >= 2
        ? 1
        : std::min(1.0, (configuration.stagesPerRank > 1 ? configuration.ranks : 1) / microBatches);
    const double all = (work.seconds + again * (work.hidesRest ? 1 - hidden : 1)) * microBatches;
    // A micro-batch goes through all stages one after the other, if none may run beside another.
    const double chain = m_beside.mayBe(configuration.stages())
        ? 0
        : (splitsBackward(configuration.schedule) ? own.leastWay : std::min(fastest.seconds, fastest.bound))
            + again;
    // A device does its part of all that is not placed apart, and what is there.
    if (configuration.ranks == 1)
        return std::max({chain, all,
            own.aside.ofDevice() > 0 ? own.aside.ofDevice() + own.network->leastKernelSeconds() * microBatches
                                     : 0});
    // The ranks have all work between them. Rank r begins when the first micro-batch has come through the
    // ranks before, and its last one goes back through them: what a rank computes of one micro-batch is in
    // the way of those behind. Of T seconds rank r has T - p, where p are those of the ranks before, for m
    // micro-batches: p of rank r + 1 is p + (T - p) / m at most, and of all ranks T (1 - (1 - 1/m)^R). That
    // is no less than what one micro-batch takes. (Interleaved stages may go in front of one another.)
    const double share = configuration.stagesPerRank > 1
        ? 1
        : 1 - std::pow(1 - 1 / microBatches, static_cast<double>(configuration.ranks));
    return std::max({all / configuration.ranks, chain / share, own.aside.ofDevice()});
}

} // namespace planloom
