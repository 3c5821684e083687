#include "engine/search/time/step_estimate.h"

#include "engine/gallery/gallery_pipeline.h"
#include "engine/plan/complete.h"
#include "engine/search/memory/recompute_choice.h"
#include "engine/search/stages/stages_by_end.h"
#include "engine/search/time/runs_again.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

/// As many micro-batches a rank make a step so long that when a stage ends is how long it takes.
constexpr std::int32_t kManyMicroBatches = 2;

/// Rows that say what operators compute in, whatever else is decided.
ConstraintTable aboutKernels(const ConstraintTable &rows)
{
    ConstraintTable kept;
    for (const Row &row : rows.rows)
        if (row.enabled
            && (std::holds_alternative<PrecisionRule>(row.rule)
                || std::holds_alternative<AttentionRule>(row.rule)
                || std::holds_alternative<MicroBatchesRule>(row.rule)))
            kept.rows.push_back(row);
    return kept;
}

} // namespace

Result<std::unique_ptr<StepEstimator>> StepEstimator::make(const Model &model, const Cluster &cluster,
    std::int32_t deviceCount, const ConstraintTable &rows, const SearchSpace &space, const CostModel &costs,
    PrecisionPreset precision, std::shared_ptr<UsualPartitions> usual)
{
    StepSetting setting{.model = model,
        .cluster = cluster,
        .deviceCount = deviceCount,
        .rows = rows,
        .space = space,
        .costs = costs};
    CompletionOptions options;
    options.precision = precision;
    TRY(Completion completion, completePlan(model, 1, aboutKernels(rows), options));
    if (auto error = firstError(completion))
        return *std::move(error);
    setting.plan = std::move(completion.plan);
    setting.trains = std::any_of(model.graph->operators.begin(), model.graph->operators.end(),
        [](const Operator &op) { return op.direction == Direction::Backward; });
    TRY(setting.recomputed, recomputedIn(setting));
    return std::unique_ptr<StepEstimator>(new StepEstimator(std::move(setting), std::move(usual)));
}

StepEstimator::StepEstimator(StepSetting setting, std::shared_ptr<UsualPartitions> usual)
    : m_setting(std::move(setting))
    , m_problems(m_setting)
    , m_beside(*m_setting.model.graph, m_setting.model.index->forwardCount())
    , m_usual(usual ? std::move(usual) : std::make_shared<UsualPartitions>())
{
}

Result<std::map<RecomputeWord, StagePlan>> StepEstimator::recomputedIn(const StepSetting &setting)
{
    const SelectorIndex &index = *setting.model.index;
    std::map<RecomputeWord, StagePlan> plans;
    for (const RecomputeWord word : {RecomputeWord::None, RecomputeWord::Selective, RecomputeWord::Full}) {
        StagePlan &plan = plans[word];
        plan.recomputed.assign(index.forwardCount(), false);
        plan.recomputedWith.assign(index.forwardCount(), -1);
        ConstraintTable table = setting.rows;
        if (!setting.space.ownRecompute) {
            TRY(const ConstraintTable chosen, recomputeChoice(setting.model, setting.rows, word));
            table.rows.insert(table.rows.end(), chosen.rows.begin(), chosen.rows.end());
        }
        for (const Row &row : table.rows) {
            const auto *rule = std::get_if<RecomputeRule>(&row.rule);
            if (!rule || !row.enabled || rule->when != Switched::Always || !setting.trains)
                continue;
            for (const OperatorId op : index.select(row.selector)) {
                if (at(op) >= plan.recomputed.size())
                    continue;
                plan.recomputed[at(op)] = true;
                plan.recomputedWith[at(op)] = rule->per == RecomputePer::Operator ? -1 : index.layerOf(op);
            }
        }
        plan.runsAgain = runsAgain(setting.model, plan);
    }
    return plans;
}

PartitionPricing StepEstimator::pricingOf(
    const Configuration &configuration, double reductionsPrice, const PartitionProblem &problem) const
{
    PartitionPricing pricing;
    pricing.accumulates = configuration.zero < 2;
    const std::vector<ShardAxes> allSums = configuration.shardSums();
    for (const ShardAxes sums : allSums)
        pricing.updates[indexOf(sums)] =
            configuration.zero >= 1 ? 1.0 / configuration.replicas / problem.setting().devicesOver(sums) : 1;
    if (m_setting.space.sharding
            .isMixed()) { // stages differ from weight to weight: what is sure of all of them
        pricing.accumulates = false;
        pricing.updates = {};
        return pricing;
    }
    pricing.reductions = reductionsPrice;
    const Reductions reductions(
        configuration, placesOf(configuration), *problem.setting().costs, m_setting.cluster, problem);
    if (reductionsPrice > 0) {
        pricing.everyMicroBatch = configuration.zero >= 2;
        pricing.mayShare = configuration.ranks > 1;
        pricing.hiddenBehind = configuration.stagesPerRank > 1 ? configuration.ranks : 1;
        for (const ShardAxes sums : allSums)
            pricing.reduced[indexOf(sums)] = reductions.leastReduction(sums);
    }
    // Updates are hidden behind reductions that take longer, and behind gathering what was updated, or that
    // behind them.
    BySums<WeightTraffic> behind;
    double behindSeconds = 0;
    for (const ShardAxes sums : allSums) {
        behind[indexOf(sums)] = reductions.leastGathering(sums);
        behindSeconds = std::max(behindSeconds, problem.weights().trafficSeconds(behind[indexOf(sums)]));
    }
    if (behindSeconds > problem.weights().updateSeconds() * pricing.updates.front()) {
        pricing.updates = {};
        pricing.behind = behind;
    } else if (configuration.zero < 2) {
        for (double &updates : pricing.updates)
            updates *= 1 - reductionsPrice;
    }
    return pricing;
}

std::shared_ptr<PartitionAnswer> StepEstimator::answerOf(
    std::vector<std::int32_t> choice, const PartitionProblem &problem)
{
    auto found = std::make_shared<PartitionAnswer>();
    found->times = timesOf(problem, choice);
    found->choice = std::move(choice);
    for (std::size_t i = 0; i < found->times.forward.size(); ++i) {
        found->seconds += found->times.forward[i] + found->times.backward[i];
    }
    return found;
}

Result<std::shared_ptr<PartitionAnswer>> StepEstimator::cheapest(
    const StepProblem &own, const PartitionPricing &pricing, const std::stop_token &stop)
{
    const CostNetwork network = own.network->network(pricing);
    TRY(NetworkAnswer answer, cheapestChoice(network, own.network->networkOptions(), stop));
    if (!std::isfinite(answer.cost))
        return Error{ErrorCode::InvalidInput, "rows leave no partition", "", "search"};
    auto found = answerOf(std::move(answer.choice), *own.network);
    found->exact = answer.exact;
    found->squaredEntries = answer.squaredEntries;
    found->bound = std::min(answer.bound, answer.cost);
    return found;
}

Result<std::shared_ptr<const PartitionAnswer>> StepEstimator::partition(
    const Configuration &configuration, double reductions, const std::stop_token &stop)
{
    TRY(StepProblem * own, m_problems.of(configuration));
    const PartitionPricing pricing = pricingOf(configuration, reductions, *own->network);
    auto &known = own->answers[pricing];
    if (!known) {
        TRY(known, cheapest(*own, pricing, stop));
    }
    return known;
}

Result<std::shared_ptr<const StagePlan>> StepEstimator::stages(
    const Configuration &configuration, const std::stop_token &stop)
{
    TRY(const auto answer, partition(configuration, 0, stop));
    TRY(const StageRows rows, m_problems.stageRowsFor(configuration));
    const MeshPlaces &places = placesOf(configuration);
    auto &known = m_stages[{answer, configuration.stages(), rows.isEmpty() ? 0 : configuration.ranks,
        configuration.recompute, places.isMixed() ? places.classes : std::vector<ClassSet>{},
        configuration.inTurns}];
    if (known)
        return known;
    StagePlan plan = m_setting.recomputed.at(configuration.recompute);
    if (configuration.inTurns)
        plan.units = turnUnitsOf(configuration.recompute);
    plan.stages = configuration.stages();
    plan.isChain = !m_beside.mayBe(plan.stages);
    plan.stageOf.assign(m_setting.model.index->forwardCount(), 0);
    if (plan.stages > 1) {
        TRY(const StageMeasure measure, measureOf(configuration, *answer, plan));
        if (!rows.isEmpty()) {
            TRY(plan.stageOf, stagesWithin(*m_setting.model.index, configuration.ranks, measure, rows));
        } else {
            TRY(const auto found, pipelineStages(*m_setting.model.index, plan.stages, measure));
            for (std::size_t s = 0; s < found.size(); ++s)
                for (const OperatorId op : found[s])
                    plan.stageOf[static_cast<std::size_t>(op.index)] = static_cast<std::int32_t>(s);
        }
    }
    known = std::make_shared<const StagePlan>(std::move(plan));
    return known;
}

/// What each stage's operators take on its own devices.
Result<StageMeasure> StepEstimator::measureOf(
    const Configuration &configuration, const PartitionAnswer &answer, const StagePlan &plan)
{
    const MeshPlaces &places = placesOf(configuration);
    StageMeasure measure;
    std::map<ClassSet, std::size_t> kinds;
    for (std::int32_t s = 0; s < plan.stages; ++s) {
        const ClassSet classes = places.classesOf(s % places.ranks);
        const auto [kind, fresh] = kinds.try_emplace(classes, kinds.size());
        measure.kindOfStage.push_back(kind->second);
        if (!fresh)
            continue;
        OperatorTimes times = answer.times;
        if (places.isMixed()) {
            TRY(times, m_problems.slowestTimes(configuration, classes, answer.choice));
        }
        auto &own = measure.ofKind.emplace_back(m_setting.model.graph->operators.size(), 0);
        for (std::size_t i = 0; i < times.forward.size(); ++i)
            own[i] = std::llround(1e9 * (times.backward[i] + times.forward[i] * (1 + plan.runsAgain[i])));
    }
    return measure;
}

std::vector<std::vector<std::int32_t>> StepEstimator::stagesEndingEarly(const StepEstimate &estimate) const
{
    const Configuration &configuration = estimate.configuration;
    if (!m_setting.trains || configuration.stagesPerRank > 1 || placesOf(configuration).isMixed()
        || configuration.microBatches >= kManyMicroBatches * configuration.ranks)
        return {};
    const PartitionProblem &problem = problemOf(configuration);
    const PartitionAnswer &partition = *estimate.partition;
    const double updaters = configuration.zero >= 1 ? configuration.replicas : 1;
    std::vector<StagedSeconds> seconds;
    for (std::size_t i = 0; i < problem.operatorCount(); ++i) {
        StagedSeconds &own = seconds.emplace_back();
        own.forward = partition.times.forward[i];
        own.backward = partition.times.backward[i] + own.forward * estimate.stages->runsAgain[i];
        if (splitsBackward(configuration.schedule))
            own.apart = apartSeconds(problem, i, partition.choice[i], partition.times);
        own.backward -= own.apart;
        own.update = problem.updateSecondsOf(i, partition.choice) / updaters;
    }
    std::vector<std::vector<std::int32_t>> all;
    for (const bool betweenLayers : {true, false})
        if (auto stages = planloom::stagesEndingEarly(*m_setting.model.index, configuration.ranks, seconds,
                configuration.microBatches, betweenLayers);
            !stages.empty())
            all.push_back(std::move(stages));
    return all;
}

Result<StepEstimate> StepEstimator::estimate(
    const Configuration &configuration, double reductions, const std::stop_token &stop)
{
    TRY(const auto answer, partition(configuration, reductions, stop));
    TRY(StepEstimate result, assess(configuration, answer));
    TRY(const auto fastest, partition(configuration, 0, stop));
    TRY(result.bound, boundOf(configuration, stop));
    if (problemOf(configuration).isDecided() && !m_setting.space.sharding.isMixed() && !configuration.inTurns)
        result.bound = std::max(result.bound, result.seconds - result.aside);
    else
        result.bound = std::max(result.bound,
            boundOf(
                configuration, {.seconds = result.partition->bound, .hidesRest = reductions > 0}, *fastest));
    result.bound = std::min(result.bound, result.seconds);
    return result;
}

Result<std::vector<StepEstimate>> StepEstimator::estimateUsual(
    const Configuration &configuration, const std::stop_token &stop)
{
    TRY(StepProblem * own, m_problems.of(configuration));
    if (!own->usual) {
        const std::pair key{m_setting.space.shardAxis, configuration.innerShards()};
        auto inner = m_usual->inner.find(key);
        if (inner == m_usual->inner.end()) {
            TRY(auto found, usualPartitions(m_setting.model, key.first, key.second, stop));
            inner = m_usual->inner.emplace(key, std::move(found)).first;
        }
        std::vector<UsualPartition> around(1); // nothing without an outer axis
        if (configuration.outerShards > 1) {
            const auto [known, fresh] =
                m_usual->around.try_emplace({m_setting.space.outerShardAxis, configuration.outerShards});
            if (fresh)
                known->second =
                    usualAround(m_setting.model, m_setting.space.outerShardAxis, configuration.outerShards);
            around = known->second;
        }
        own->usual.emplace();
        for (const UsualPartition &outer : around)
            for (const UsualPartition &partition : inner->second)
                if (auto choice = own->network->choiceFor(partition, outer);
                    choice && std::isfinite(own->network->costOf({}, *choice)))
                    own->usual->push_back(answerOf(*std::move(choice), *own->network));
    }
    std::vector<StepEstimate> estimates;
    for (const auto &answer : *own->usual) {
        if (stop.stop_requested())
            return cancelled();
        TRY(estimates.emplace_back(), assess(configuration, answer));
    }
    return estimates;
}

Result<StepEstimate> StepEstimator::estimateWith(
    const Configuration &configuration, std::vector<std::int32_t> choice)
{
    TRY(const StepProblem *own, m_problems.of(configuration));
    return assess(configuration, answerOf(std::move(choice), *own->network));
}

Result<StepEstimator::Figures> StepEstimator::figuresOf(
    const Configuration &configuration, const PartitionAnswer &partition, const StagePlan &stages, bool aside)
{
    const MeshPlaces &places = placesOf(configuration);
    const PartitionProblem &problem = problemOf(configuration);
    const AsideTimes &apart = m_problems.made(configuration).aside;
    const OperatorTimes waits = m_problems.replicaTimes(configuration, problem.sharesOf(partition.choice));
    Figures result;
    result.links = stageLinks(problem, stages, partition.choice, partition.times);
    const auto figuresWith = [&](const PartitionProblem &own, OperatorTimes times) {
        if (stages.units && !stages.turns.empty())
            times =
                plannerOf(configuration, *stages.units).timesOf(partition.choice, stages, std::move(times));
        times.addWaits(waits);
        if (!aside || apart.isEmpty())
            return stageFigures(own, partition.choice, times, stages);
        const AsideTimes::Played played = apart.play(own, places, partition.choice, stages, std::move(times));
        // In the first micro-batch devices have nothing else to do while operators of other stages are there.
        const double others = 1 - 1.0 / configuration.microBatches;
        double longer = played.longer;
        auto figures = stageFigures(own, partition.choice, played.times, stages);
        for (std::size_t s = 0; s < figures.size(); ++s) {
            figures[s].time.backward -= played.weights[s];
            figures[s].time.weights += played.weights[s];
            figures[s].time.forward += others * played.hostedForward[s];
            figures[s].time.backward += others * played.hostedBackward[s];
            longer += others * (played.hostedForward[s] + played.hostedBackward[s]);
        }
        result.aside = std::max(result.aside, longer);
        return figures;
    };
    if (!places.isMixed()) {
        result.stages = figuresWith(problem, partition.times);
        if (stages.units && !stages.turns.empty()) {
            const auto passing = plannerOf(configuration, *stages.units).passing(partition.choice, stages);
            for (std::size_t s = 0; s < result.stages.size(); ++s)
                result.stages[s].passingBytes = passing[s];
        }
        return result;
    }
    std::map<ClassSet, std::vector<StageFigures>> ofClasses;
    for (std::int32_t s = 0; s < stages.stages; ++s) {
        const ClassSet classes = places.classesOf(s % places.ranks);
        const auto [own, fresh] = ofClasses.try_emplace(classes);
        if (fresh) {
            TRY(const PartitionProblem *slowest, m_problems.slowestOf(configuration, classes));
            TRY(OperatorTimes times, m_problems.slowestTimes(configuration, classes, partition.choice));
            own->second = figuresWith(*slowest, std::move(times));
        }
        result.stages.push_back(own->second[static_cast<std::size_t>(s)]);
    }
    return result;
}

Result<StepEstimate> StepEstimator::assess(const Configuration &configuration,
    std::shared_ptr<const PartitionAnswer> partition, std::shared_ptr<const StagePlan> stages)
{
    if (!stages) {
        TRY(stages, this->stages(configuration, {}));
    }
    if (!stages->units)
        return assessAsPlanned(configuration, std::move(partition), std::move(stages));
    stages = withoutTurns(stages);
    TRY(StepEstimate atOnce, assessAsPlanned(configuration, partition, stages));
    if (atOnce.peakBytes <= m_setting.space.memoryLimit)
        return atOnce;
    const Figures &figures = m_figures.at({partition, stages, placesOf(configuration).replicaStride});
    std::vector<double> room;
    for (const StageFigures &stage : figures.stages)
        room.push_back(static_cast<double>(m_setting.space.memoryLimit
            - atOnce.rankHeld[room.size() % atOnce.rankHeld.size()] - passingBeside(configuration, stage)));
    StagePlan plan = plannerOf(configuration, *stages->units).within(partition->choice, *stages, room);
    auto &known = m_inTurns[{partition, stages, plan.turns}];
    if (!known) {
        known = std::make_shared<const StagePlan>(std::move(plan));
        m_atOnce[known] = stages;
    }
    return assessAsPlanned(configuration, std::move(partition), known);
}

bool StepEstimator::mayTakeTurns(const Configuration &configuration)
{
    return m_setting.trains && !m_setting.space.ownRecompute && !splitsBackward(configuration.schedule)
        && !placesOf(configuration).isMixed() && turnUnitsOf(configuration.recompute);
}

const std::shared_ptr<const TurnUnits> &StepEstimator::turnUnitsOf(RecomputeWord word)
{
    const auto [known, fresh] = m_units.try_emplace(word);
    const bool boundsParts = std::any_of(m_setting.rows.rows.begin(), m_setting.rows.rows.end(),
        [](const Row &row) { return row.enabled && std::holds_alternative<PartsRule>(row.rule); });
    if (fresh && !boundsParts)
        if (TurnUnits units =
                turnUnits(m_setting.model, m_setting.recomputed.at(word), aboutKernels(m_setting.rows));
            !units.empty())
            known->second = std::make_shared<const TurnUnits>(std::move(units));
    return known->second;
}

TurnPlanner &StepEstimator::plannerOf(const Configuration &configuration, const TurnUnits &units)
{
    StepProblem &own = m_problems.made(configuration);
    auto &planner = own.planners[&units];
    if (!planner)
        planner = std::make_unique<TurnPlanner>(*own.network, units);
    return *planner;
}

std::shared_ptr<const StagePlan> StepEstimator::withoutTurns(const std::shared_ptr<const StagePlan> &stages)
{
    if (stages->turns.empty())
        return stages;
    auto &known = m_atOnce[stages];
    if (!known) {
        StagePlan plan = *stages;
        plan.turns.clear();
        plan.regionOf.clear();
        plan.runsAgain = runsAgain(m_setting.model, plan);
        known = std::make_shared<const StagePlan>(std::move(plan));
    }
    return known;
}

Result<StepEstimate> StepEstimator::assessAsPlanned(const Configuration &configuration,
    std::shared_ptr<const PartitionAnswer> partition, std::shared_ptr<const StagePlan> stages)
{
    StepEstimate result{.configuration = configuration};
    result.partition = std::move(partition);
    result.stages = std::move(stages);
    TRY(const StageRows rows, m_problems.stageRowsFor(configuration));
    if (auto broken =
            brokenSharing(*m_setting.model.graph, rows.sharings, result.stages->stageOf, configuration.ranks))
        return *std::move(broken);
    Figures &known = m_figures[{result.partition, result.stages, placesOf(configuration).replicaStride}];
    if (known.stages.empty()) {
        TRY(known, figuresOf(configuration, *result.partition, *result.stages, true));
    }
    const auto &[figures, links, longer] = known;
    const MeshPlaces &places = placesOf(configuration);
    const AsideTimes &apart = m_problems.made(configuration).aside;
    const auto updateAside = [&](std::int32_t rank) {
        return !m_setting.trains || apart.isEmpty()
            ? 0
            : apart.updateSeconds(problemOf(configuration), places, rank);
    };

    TRY(const RankReductions reductions, m_problems.reductionsOf(configuration));
    const auto ranks = static_cast<std::size_t>(configuration.ranks);
    const auto share = [&](std::int64_t whole, int from) {
        return static_cast<std::int64_t>(
            static_cast<double>(whole) * m_setting.keptShare(configuration, from));
    };
    std::vector<StageTime> times;
    for (const StageFigures &stage : figures) {
        const Reductions &own = reductions.of(times.size() % ranks);
        times.push_back(stage.time);
        own.addTo(stage, times.back());
        times.back().kept = stage.keptBytes;
        times.back().deferred = stage.deferredBytes;
        times.back().gradients = share(stage.gradientBytes, configuration.gradientsCutFrom());
    }
    TRY(const PipelineTime played,
        playPipeline(configuration.schedule, times, m_problems.linksOf(configuration).sendsOf(links),
            SendOrder::Queued, configuration.ranks, configuration.microBatches, m_setting.trains));
    result.seconds = played.makespan;
    result.heldBy = played.heldBy;
    std::vector<std::int64_t> bytes = played.held;
    std::vector<std::int64_t> passing(ranks, 0);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        for (std::size_t s = rank; s < figures.size(); s += ranks) {
            const StageFigures &stage = figures[s];
            bytes[rank] += share(stage.modelBytes, 3);
            for (const WeightPiece &piece : stage.weights)
                bytes[rank] += m_setting.space.sharding.isMixed()
                    ? share(piece.count * piece.stateBytes, 1)
                    : piece.count * piece.stateBytes / reductions.of(rank).updaters(piece.sums);
            passing[rank] = std::max(passing[rank], stage.passingBytes + passingBeside(configuration, stage));
        }
        if (m_setting.trains) {
            Ending ending = reductions.of(rank).endingOf(rank, figures, played);
            const double update = updateAside(static_cast<std::int32_t>(rank));
            ending.computed += update; // before all else: nothing reduces their gradients
            result.aside = std::max(result.aside, update);
            result.seconds = std::max(result.seconds, ending.seconds());
        }
        result.rankHeld.push_back(bytes[rank]);
        result.rankPeaks.push_back(bytes[rank] + passing[rank]);
        result.peakBytes = std::max(result.peakBytes, result.rankPeaks.back());
    }
    const double elsewhere = updateAside(-1);
    const double shared = !m_setting.trains || apart.isEmpty()
        ? 0
        : apart.sharedSeconds(problemOf(configuration), places, result.partition->choice);
    result.seconds = std::max(result.seconds, played.makespan + elsewhere) + shared;
    result.aside = std::max(result.aside, elsewhere) + shared + longer * configuration.microBatches;
    return result;
}

} // namespace planloom
