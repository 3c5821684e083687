#include "engine/search/step_estimate.h"

#include "engine/gallery/gallery_pipeline.h"
#include "engine/gallery/gallery_rows.h"
#include "engine/graph/catalogue.h"
#include "engine/plan/complete.h"
#include "engine/plan/plan_draft.h"
#include "engine/search/recompute_choice.h"
#include "engine/search/reductions.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/selector_index.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace planloom {

namespace {

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

bool placesOperators(const Row &row)
{
    return std::holds_alternative<OpAssignRule>(row.rule) || std::holds_alternative<SpreadRule>(row.rule);
}

} // namespace

Result<std::unique_ptr<StepEstimator>> StepEstimator::make(const Model &model, const Cluster &cluster,
    std::int32_t deviceCount, const ConstraintTable &rows, const SearchSpace &space, const CostModel &costs,
    PrecisionPreset precision, std::shared_ptr<UsualPartitions> usual)
{
    std::unique_ptr<StepEstimator> made(new StepEstimator);
    made->m_usual = usual ? std::move(usual) : std::make_shared<UsualPartitions>();
    made->m_model = model;
    made->m_cluster = cluster;
    made->m_deviceCount = deviceCount;
    made->m_rows = rows;
    made->m_space = space;
    made->m_costs = costs;
    CompletionOptions options;
    options.precision = precision;
    TRY(Completion completion, completePlan(model, 1, aboutKernels(rows), options));
    if (auto error = firstError(completion))
        return *std::move(error);
    made->m_plan = std::move(completion.plan);
    std::vector<Precision> precisions;
    for (const OperatorDecision &decision : made->m_plan.decisions)
        precisions.push_back(decision.precision);
    made->m_types = std::make_unique<StorageTypes>(*model.graph, precisions);
    made->m_alike = std::make_shared<const std::vector<std::int32_t>>(
        alikeOperators(model, made->m_plan, *made->m_types));
    made->m_trains = std::any_of(model.graph->operators.begin(), model.graph->operators.end(),
        [](const Operator &op) { return op.direction == Direction::Backward; });
    made->m_stageRows = stageRowsOf(bindTable(model, deviceCount, rows));
    for (const RecomputeWord word : {RecomputeWord::None, RecomputeWord::Selective, RecomputeWord::Full}) {
        StagePlan &plan = made->m_recomputed[word];
        plan.recomputed.assign(model.index->forwardCount(), false);
        plan.recomputedWith.assign(model.index->forwardCount(), -1);
        ConstraintTable table = rows;
        if (!space.ownRecompute) {
            TRY(const ConstraintTable chosen, recomputeChoice(model, rows, word));
            table.rows.insert(table.rows.end(), chosen.rows.begin(), chosen.rows.end());
        }
        for (const Row &row : table.rows) {
            const auto *rule = std::get_if<RecomputeRule>(&row.rule);
            if (!rule || !row.enabled || rule->when != Switched::Always || !made->m_trains)
                continue;
            for (const OperatorId op : model.index->select(row.selector)) {
                const auto o = static_cast<std::size_t>(op.index);
                if (o >= plan.recomputed.size())
                    continue;
                plan.recomputed[o] = true;
                plan.recomputedWith[o] = rule->per == RecomputePer::Operator ? -1 : model.index->layerOf(op);
            }
        }
    }
    return made;
}

StepEstimator::ProblemKey StepEstimator::keyOf(const Configuration &configuration) const
{
    // Rows are read with a mesh; without rows about operators all meshes are alike.
    const bool meshMatters = std::any_of(m_rows.rows.begin(), m_rows.rows.end(), [](const Row &row) {
        return row.enabled
            && (std::holds_alternative<OpTransRule>(row.rule) || std::holds_alternative<PartsRule>(row.rule)
                || std::holds_alternative<AlikeRule>(row.rule) || std::holds_alternative<FollowRule>(row.rule)
                || std::holds_alternative<DegreeRule>(row.rule) || placesOperators(row));
    });
    return {configuration.shards, configuration.replicas, configuration.microBatches,
        meshMatters ? configuration.ranks : 0};
}

GroupShape StepEstimator::shardGroup(const Configuration &configuration) const
{
    return groupShape(m_cluster, devicesApart(configuration.shards, 1));
}

Result<StepEstimator::Problem *> StepEstimator::problem(const Configuration &configuration)
{
    const auto [it, fresh] = m_problems.try_emplace(keyOf(configuration));
    if (fresh)
        if (auto made = makeProblem(configuration, it->second); !made)
            it->second.error = std::move(made).error();
    if (it->second.error)
        return *it->second.error;
    return &it->second;
}

Result<void> StepEstimator::makeProblem(const Configuration &configuration, Problem &own)
{
    own.plan = m_plan;
    own.plan.microBatches = configuration.microBatches;
    const BoundTable *bound = nullptr;
    if (std::get<3>(keyOf(configuration)) > 0) {
        Bound &read = m_bounds[{configuration.replicas, configuration.ranks, configuration.shards}];
        if (!read.table) {
            ConstraintTable table = m_rows;
            if (!m_space.ownMesh) {
                MeshRule mesh;
                for (const auto &[name, size] : {std::pair{m_space.replicaAxis, configuration.replicas},
                         {m_space.rankAxis, configuration.ranks}, {m_space.shardAxis, configuration.shards}})
                    if (size > 1)
                        mesh.axes.push_back({name, size});
                if (!mesh.axes.empty())
                    table.rows.push_back(templateRow({}, std::move(mesh)));
            }
            read.table = std::make_unique<BoundTable>(bindTable(m_model, m_deviceCount, table));
            for (const RowReport &report : read.table->reports)
                if (report.error && !read.error)
                    read.error = report.error;
        }
        if (read.error)
            return *read.error;
        bound = read.table.get();
    }
    if (bound) {
        TRY(own.placed, placedOperators(*bound, m_space.rankAxis));
    }
    const AxisSetting setting{.model = &m_model,
        .plan = &own.plan,
        .types = m_types.get(),
        .costs = &m_costs,
        .bound = bound,
        .axis = m_space.shardAxis,
        .parts = configuration.shards,
        .batchCuts = configuration.batchCuts(),
        .replicaAxis = m_space.replicaAxis,
        .replicas = configuration.replicas,
        .alike = m_alike,
        .aside = &own.placed.aside};
    own.aside = timesAside(own.placed, bound);
    own.network = std::make_unique<PartitionProblem>(setting, shardGroup(configuration));
    if (const OperatorId op = own.network->impossible())
        return Error{ErrorCode::InvalidInput,
            "rows leave operator '" + m_model.graph->at(op).name + "' no way to be partitioned over "
                + std::to_string(configuration.shards) + " devices",
            "allow it to be replicated, or use another mesh", "search"};
    own.leastWeights = own.network->leastWeightBytes();
    own.leastWaits = leastWaits(configuration).communication;
    for (const auto &[word, plan] : m_recomputed) {
        const std::vector<double> kept = own.network->leastKeptBytes(plan.recomputed);
        own.leastKept[word] = std::accumulate(kept.begin(), kept.end(), 0.0);
        own.leastAgain[word] = own.network->leastForwardSeconds(plan.recomputed);
    }
    return {};
}

Result<StageRows> StepEstimator::stageRowsFor(const Configuration &configuration) const
{
    const auto own = m_problems.find(keyOf(configuration));
    if (own == m_problems.end() || own->second.placed.placed.empty())
        return m_stageRows;
    const PlacedOperators &placed = own->second.placed;
    StageRows rows = m_stageRows;
    // Of what is placed apart no stage is known.
    std::erase_if(rows.sharings, [&](const BoundTable::Sharing &sharing) {
        const auto isAside = [&](OperatorId op) { return placed.isAside(at(op)); };
        return std::any_of(sharing.sides.first.begin(), sharing.sides.first.end(), isAside)
            || std::any_of(sharing.sides.second.begin(), sharing.sides.second.end(), isAside);
    });
    if (configuration.stagesPerRank > 1)
        return Error{ErrorCode::InvalidInput,
            "rows place operators, and which of several stages a rank has they are in is open",
            "use one stage a rank", "search"};
    if (placed.ranks.empty())
        return rows;
    if (rows.byRow.empty())
        rows.byRow.assign(placed.ranks.size(), -1);
    for (std::size_t i = 0; i < placed.ranks.size(); ++i) {
        const std::int32_t rank = placed.ranks[i];
        if (rank >= 0 && rows.byRow[i] >= 0 && rows.byRow[i] != rank)
            return Error{ErrorCode::InvalidInput,
                "rows put operator '" + m_model.graph->operators[i].name + "' into stage "
                    + std::to_string(rows.byRow[i]) + " and on rank " + std::to_string(rank),
                "use another mesh", "search"};
        if (rank >= 0)
            rows.byRow[i] = rank;
    }
    return rows;
}

/// What they take of their devices, which surely do that; and as if all of it waited for one another.
StepEstimator::Aside StepEstimator::timesAside(const PlacedOperators &placed, const BoundTable *bound) const
{
    if (placed.aside.empty())
        return {};
    ChoiceFinder whole({.model = &m_model,
        .plan = &m_plan,
        .types = m_types.get(),
        .costs = &m_costs,
        .axis = m_space.shardAxis,
        .alike = m_alike});
    Aside times;
    std::map<DeviceId, double> loads;
    for (std::size_t i = 0; i < placed.aside.size(); ++i) {
        if (!placed.aside[i])
            continue;
        const OperatorId op{static_cast<std::int32_t>(i)};
        const auto devices = distinct(bound->of(op).allowed.place->preferred()->devices);
        std::int64_t parts = 1;
        for (const ChosenSplit &each : chosenSplits(m_model.graph->at(op), bound->of(op)))
            parts *= each.split.kind == SplitKind::Replicate ? 1 : each.split.parts;
        parts = std::clamp<std::int64_t>(parts, 1, static_cast<std::int64_t>(devices.size()));
        const OperatorChoice &choice = whole.of(op).choices.front();
        const double seconds = (choice.forward + choice.backward) / static_cast<double>(parts);
        times.inTurn += seconds;
        for (const DeviceId device : devices)
            times.ofDevice = std::max(times.ofDevice, loads[device] += seconds);
    }
    return times;
}

PartitionPricing StepEstimator::pricingOf(
    const Configuration &configuration, SearchPrices prices, const PartitionProblem &problem) const
{
    PartitionPricing pricing;
    pricing.keptMicroBatches = std::max(1, std::min(configuration.ranks, configuration.microBatches));
    if (prices.memory > 0 && m_space.memoryLimit > 0)
        pricing.secondsPerByte = prices.memory / static_cast<double>(m_space.memoryLimit);
    pricing.accumulates = configuration.zero < 2;
    pricing.updates = configuration.zero >= 1 ? 1.0 / configuration.replicas : 1;
    pricing.updatesOverAll =
        configuration.zero >= 1 ? 1.0 / configuration.replicas / configuration.shards : 1;
    if (m_space.sharding.isMixed()) { // stages differ from weight to weight: what is sure of all of them
        pricing.accumulates = false;
        pricing.updates = pricing.updatesOverAll = 0;
        return pricing;
    }
    pricing.reductions = prices.reductions;
    const Reductions reductions(configuration, m_costs, m_cluster, problemOf(configuration));
    if (prices.reductions > 0) {
        pricing.everyMicroBatch = configuration.zero >= 2;
        pricing.hiddenBehind = configuration.stagesPerRank > 1 ? configuration.ranks : 1;
        pricing.replicas = reductions.leastReduction(false);
        pricing.all = reductions.leastReduction(true);
    }
    // Updates are hidden behind reductions that take longer, and behind gathering what was updated, or that
    // behind them.
    const WeightTraffic behind = reductions.leastGathering(false);
    const WeightTraffic allBehind = reductions.leastGathering(true);
    if (std::max(problem.trafficSeconds(behind), problem.trafficSeconds(allBehind))
        > problem.updateSeconds() * pricing.updates) {
        pricing.updates = 0;
        pricing.updatesOverAll = 0;
        pricing.replicasBehind = behind;
        pricing.allBehind = allBehind;
    } else if (configuration.zero < 2) {
        pricing.updates *= 1 - prices.reductions;
        pricing.updatesOverAll *= 1 - prices.reductions;
    }
    if (configuration.zero >= 2) {
        pricing.replicasInLayer = reductions.leastShardSum(false);
        pricing.allInLayer = reductions.leastShardSum(true);
    }
    return pricing;
}

const PartitionProblem &StepEstimator::problemOf(const Configuration &configuration) const
{
    return *m_problems.at(keyOf(configuration)).network;
}

std::shared_ptr<PartitionAnswer> StepEstimator::answerOf(
    const Configuration &configuration, std::vector<std::int32_t> choice, const PartitionProblem &problem)
{
    auto found = std::make_shared<PartitionAnswer>();
    found->times = problem.timesOf(choice);
    const OperatorTimes waits = replicaTimes(configuration, problem.sharesOf(choice));
    for (std::size_t i = 0; i < waits.forward.size(); ++i) {
        found->times.forward[i] += waits.forward[i];
        found->times.backward[i] += waits.backward[i];
    }
    found->choice = std::move(choice);
    for (std::size_t i = 0; i < found->times.forward.size(); ++i) {
        found->seconds += found->times.forward[i] + found->times.backward[i];
    }
    return found;
}

Result<std::shared_ptr<const PartitionAnswer>> StepEstimator::partition(
    const Configuration &configuration, SearchPrices prices, const std::stop_token &stop)
{
    TRY(Problem * own, problem(configuration));
    const PartitionPricing pricing = pricingOf(configuration, prices, *own->network);
    auto &known = own->answers[pricing];
    if (known)
        return known;
    const CostNetwork network = own->network->network(pricing);
    TRY(NetworkAnswer answer, cheapestChoice(network, {.orders = &own->network->orders()}, stop));
    if (!std::isfinite(answer.cost))
        return Error{ErrorCode::InvalidInput, "rows leave no partition", "", "search"};
    auto found = answerOf(configuration, std::move(answer.choice), *own->network);
    found->exact = answer.exact;
    found->bound = pricing.secondsPerByte > 0 ? 0 : std::min(answer.bound, answer.cost);
    known = std::move(found);
    return known;
}

OperatorTimes StepEstimator::replicaTimes(
    const Configuration &configuration, const std::vector<double> &shares)
{
    if (configuration.replicas < 2)
        return {};
    const Problem *placing = nullptr;
    if (const auto own = m_problems.find(keyOf(configuration));
        own != m_problems.end() && !own->second.placed.aside.empty())
        placing = &own->second;
    auto &problem =
        m_replicas[placing ? keyOf(configuration)
                           : ProblemKey{0, configuration.replicas, configuration.microBatches, 0}];
    if (!problem) {
        const AxisSetting setting{.model = &m_model,
            .plan = &m_plan,
            .types = m_types.get(),
            .costs = &m_costs,
            .axis = m_space.replicaAxis,
            .parts = configuration.replicas,
            .batchCuts = configuration.microBatches,
            .alike = m_alike,
            .aside = placing ? &placing->placed.aside : nullptr,
            .batchAlone = true};
        problem = std::make_unique<PartitionProblem>(setting,
            groupShape(
                m_cluster, devicesApart(configuration.replicas, configuration.ranks * configuration.shards)));
    }
    const std::vector<std::int32_t> first(problem->operatorCount(), 0);
    OperatorTimes times = problem->timesOf(first, shares);
    for (std::size_t i = 0; i < first.size(); ++i) {
        times.forward[i] -= problem->choiceOf(i, 0).forward;
        times.backward[i] -= problem->choiceOf(i, 0).backward;
    }
    return times;
}

Result<std::shared_ptr<const StagePlan>> StepEstimator::stages(
    const Configuration &configuration, const std::stop_token &stop)
{
    TRY(const auto answer, partition(configuration, {}, stop));
    TRY(const StageRows rows, stageRowsFor(configuration));
    auto &known = m_stages[{
        answer, configuration.stages(), rows.isEmpty() ? 0 : configuration.ranks, configuration.recompute}];
    if (known)
        return known;
    StagePlan plan = m_recomputed.at(configuration.recompute);
    plan.stages = configuration.stages();
    plan.stageOf.assign(m_model.index->forwardCount(), 0);
    if (plan.stages > 1) {
        std::vector<std::int64_t> nanoseconds(m_model.graph->operators.size(), 0);
        for (std::size_t i = 0; i < answer->times.forward.size(); ++i)
            nanoseconds[i] = std::llround(
                1e9 * (answer->times.backward[i] + answer->times.forward[i] * (plan.recomputed[i] ? 2 : 1)));
        if (!rows.isEmpty()) {
            TRY(plan.stageOf,
                stagesWithin(*m_model.index, plan.stages, configuration.ranks, nanoseconds, rows));
        } else {
            TRY(const auto found, pipelineStages(*m_model.index, plan.stages, nanoseconds));
            for (std::size_t s = 0; s < found.size(); ++s)
                for (const OperatorId op : found[s])
                    plan.stageOf[static_cast<std::size_t>(op.index)] = static_cast<std::int32_t>(s);
        }
    }
    known = std::make_shared<const StagePlan>(std::move(plan));
    return known;
}

Result<const std::vector<LeastStage> *> StepEstimator::least(
    const Configuration &configuration, const std::stop_token &stop)
{
    TRY(const auto plan, stages(configuration, stop));
    const bool splits = splitsBackward(configuration.schedule);
    auto &known = m_least[{plan, splits, configuration.zero < 2}];
    if (known.empty()) {
        TRY(known, leastStages(problemOf(configuration), *plan, splits, configuration.zero < 2, stop));
    }
    return &known;
}

OperatorTimes StepEstimator::leastWaits(const Configuration &configuration)
{
    return replicaTimes(
        configuration, std::vector<double>(m_model.graph->tensors.size(), 1.0 / configuration.shards));
}

Result<StepEstimator::Paths *> StepEstimator::pathsOf(
    const Configuration &configuration, const std::stop_token &stop)
{
    TRY(const auto *least, this->least(configuration, stop));
    Paths &paths = m_paths[configuration];
    if (paths.bound)
        return &paths;
    paths.configuration = configuration;
    TRY(paths.plan, stages(configuration, stop));
    TRY(paths.next, partition(configuration, {}, stop));
    paths.waits = leastWaits(configuration);
    paths.reductions =
        std::make_unique<Reductions>(paths.configuration, m_costs, m_cluster, problemOf(configuration));
    paths.bound = std::make_unique<PathBound>(paths.configuration, problemOf(configuration), *paths.plan,
        *paths.reductions, *least, paths.waits, m_trains);
    return &paths;
}

Result<StepEstimate> StepEstimator::estimateAlongPaths(
    const Configuration &configuration, const std::stop_token &stop)
{
    TRY(Paths * paths, pathsOf(configuration, stop));
    TRY(StepEstimate result, assess(configuration, paths->next));
    if (m_space.sharding.isMixed()) {
        TRY(result.bound, boundOf(configuration, stop));
        return result;
    }
    if (problemOf(configuration).isDecided()) {
        TRY(result.bound, boundOf(configuration, stop));
        result.bound = std::max(result.bound, result.seconds - secondsAside(configuration));
        return result;
    }
    const Figures &figures = m_figures.at({result.partition, result.stages});
    TRY_VOID(paths->bound->add(figures.stages, figures.links));
    TRY(PathBound::Answer answer, paths->bound->solve(stop));
    result.bound = std::min(answer.bound, result.seconds);
    paths->next = answerOf(configuration, std::move(answer.choice), problemOf(configuration));
    return result;
}

Result<StepEstimator::StagedBound> StepEstimator::stagedBoundOf(
    const Configuration &configuration, const std::stop_token &stop)
{
    StagedBound result;
    TRY(result.seconds, boundOf(configuration, stop));
    TRY(result.peakBytes, leastPeakOf(configuration));
    if (m_space.sharding.isMixed())
        return result;
    TRY(const auto plan, stages(configuration, stop));
    TRY(const auto *least, this->least(configuration, stop));
    const PartitionProblem &problem = problemOf(configuration);
    const bool splits = splitsBackward(configuration.schedule);
    const Reductions reductions(configuration, m_costs, m_cluster, problemOf(configuration));
    const OperatorTimes waits = leastWaits(configuration);
    std::vector<StageTime> times;
    std::vector<Reductions::Least> weights;
    for (const LeastStage &stage : *least) {
        times.push_back(stage.time);
        weights.push_back(reductions.leastOf(*least, weights.size()));
        if (weights.back().ahead > 0)
            times.back().ahead =
                std::max(weights.back().ahead, weights.back().aheadOfAll + stage.time.forward);
    }
    for (std::size_t i = 0; i < waits.forward.size(); ++i) {
        StageTime &time = times[static_cast<std::size_t>(plan->stageOf[i])];
        time.forward += waits.forward[i];
        time.backward += waits.backward[i] + (plan->recomputed[i] ? waits.forward[i] : 0);
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
        playPipeline(configuration.schedule, times, reductions.sendsOf(leastLinks(problem, *plan)),
            configuration.ranks, configuration.microBatches, m_trains));
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
        double bytes = 0;
        double reduced = 0;
        double shared = 0;
        Reductions::Least all;
        for (std::size_t s = rank; s < times.size(); s += ranks) {
            begin = std::min(begin, played.lastBackward[s]);
            computed = std::max(computed, played.end[s]);
            all.reduction += weights[s].reduction;
            all.reducedAsOne += weights[s].reducedAsOne;
            all.update += weights[s].update;
            all.gather += weights[s].gather;
            shared += weights[s].shared;
            if (weights[s].last > 0)
                reduced = std::max(reduced, played.end[s] + weights[s].last);
            const LeastStage &stage = (*least)[s];
            bytes += heldBytes(configuration, stage.modelBytes, stage.stateBytes, stage.gradientBytes,
                stage.keptBytes * std::max(1, played.inFlight[s]));
        }
        result.peakBytes = std::max(result.peakBytes, static_cast<std::int64_t>(bytes));
        if (!m_trains)
            continue;
        if (all.reducedAsOne > 0)
            all.reduction = std::max(all.reduction, all.reducedAsOne + reductions.leastLaunch());
        if (all.gather > 0)
            all.gather += reductions.leastGatheringLaunch();
        reduced = std::max({reduced, begin + all.reduction, computed + reductions.leastBehind(*least, rank)});
        if (shared > 0)
            reduced = std::max(reduced, played.makespan + shared);
        seconds = std::max({seconds, computed + all.update, reduced + all.gather});
    }
    return result;
}

Result<void> StepEstimator::findLeastWay(const Configuration &configuration, const std::stop_token &stop)
{
    TRY(Problem * own, problem(configuration));
    if (own->leastWay > 0 || !splitsBackward(configuration.schedule))
        return {};
    PartitionPricing pricing;
    pricing.withoutWeights = true;
    TRY(const NetworkAnswer answer,
        cheapestChoice(own->network->network(pricing), {.orders = &own->network->orders()}, stop));
    own->leastWay = std::min(answer.bound, answer.cost);
    return {};
}

Result<double> StepEstimator::boundOf(const Configuration &configuration, const std::stop_token &stop)
{
    TRY_VOID(findLeastWay(configuration, stop));
    TRY(const auto answer, partition(configuration, {}, stop));
    return boundOf(configuration, *answer, *answer);
}

Result<double> StepEstimator::likelyBoundOf(const Configuration &configuration, const std::stop_token &stop)
{
    TRY(const double bound, boundOf(configuration, stop));
    TRY(const auto answer, partition(configuration, {}, stop));
    const Problem &own = m_problems.at(keyOf(configuration));
    const double again = own.leastWaits + own.leastAgain.at(configuration.recompute);
    const double chain =
        (splitsBackward(configuration.schedule) ? own.leastWay : std::min(answer->seconds, answer->bound))
        + again;
    const double ramp = (configuration.ranks - 1.0) / configuration.stagesPerRank;
    return std::max(
        bound, ((answer->bound + again) * configuration.microBatches + chain * ramp) / configuration.ranks);
}

double StepEstimator::boundOf(
    const Configuration &configuration, const PartitionAnswer &answer, const PartitionAnswer &fastest) const
{
    const Problem &own = m_problems.at(keyOf(configuration));
    const double again = own.leastWaits + own.leastAgain.at(configuration.recompute);
    const double microBatches = configuration.microBatches;
    // At a price of reductions, what they may be hidden behind is taken off: recomputation and waits, too.
    const double hidden = configuration.zero >= 2
        ? 1
        : std::min(1.0, (configuration.stagesPerRank > 1 ? configuration.ranks : 1) / microBatches);
    const double all = (answer.bound + again * (&answer == &fastest ? 1 : 1 - hidden)) * microBatches;
    // A micro-batch goes through all stages one after the other.
    const double chain =
        (splitsBackward(configuration.schedule) ? own.leastWay : std::min(fastest.seconds, fastest.bound))
        + again;
    // A device does its part of all that is not placed apart, and what is there.
    if (configuration.ranks == 1)
        return std::max({chain, all,
            own.aside.ofDevice > 0 ? own.aside.ofDevice + own.network->leastKernelSeconds() * microBatches
                                   : 0});
    // The ranks have all work between them. Rank r begins when the first micro-batch has come through the
    // ranks before, and its last one goes back through them: what a rank computes of one micro-batch is in
    // the way of those behind. Of T seconds rank r has T - p, where p are those of the ranks before, for m
    // micro-batches: p of rank r + 1 is p + (T - p) / m at most, and of all ranks T (1 - (1 - 1/m)^R). That
    // is no less than what one micro-batch takes. (Interleaved stages may go in front of one another.)
    const double share = configuration.stagesPerRank > 1
        ? 1
        : 1 - std::pow(1 - 1 / microBatches, static_cast<double>(configuration.ranks));
    return std::max({all / configuration.ranks, chain / share, own.aside.ofDevice});
}

Result<std::int64_t> StepEstimator::leastPeakOf(const Configuration &configuration)
{
    TRY(const Problem *own, problem(configuration));
    // Of as many micro-batches as are surely held at once.
    const bool holdsAll = configuration.ranks > 1 && configuration.schedule == ScheduleKind::GPipe;
    const double kept =
        own->leastKept.at(configuration.recompute) * (holdsAll ? configuration.microBatches : 1);
    const WeightBytes &weights = own->leastWeights;
    return static_cast<std::int64_t>(
        heldBytes(configuration, static_cast<double>(weights.model), static_cast<double>(weights.state),
            static_cast<double>(weights.gradient), kept)
        / configuration.ranks);
}

double StepEstimator::heldBytes(
    const Configuration &configuration, double model, double state, double gradient, double kept) const
{
    // Where stages differ from weight to weight, as if all had the furthest.
    const std::int32_t zero = std::max(configuration.zero, m_space.sharding.own);
    const auto share = [&](double bytes, int from) {
        return bytes / (zero >= from ? configuration.replicas : 1);
    };
    const double weights = share(model, 3) + share(state, 1);
    if (!m_trains)
        return weights;
    // As `assess` counts: gradients grow as what one micro-batch keeps shrinks.
    return weights
        + (configuration.microBatches == 1 ? std::max(kept, share(gradient, 1)) : kept + share(gradient, 2));
}

Result<StepEstimate> StepEstimator::estimate(
    const Configuration &configuration, SearchPrices prices, const std::stop_token &stop)
{
    TRY(const auto answer, partition(configuration, prices, stop));
    TRY(StepEstimate result, assess(configuration, answer));
    TRY(const auto fastest, partition(configuration, {}, stop));
    TRY(result.bound, boundOf(configuration, stop));
    if (problemOf(configuration).isDecided() && !m_space.sharding.isMixed())
        result.bound = std::max(result.bound, result.seconds - secondsAside(configuration));
    else if (prices.memory == 0)
        result.bound = std::max(result.bound, boundOf(configuration, *result.partition, *fastest));
    result.bound = std::min(result.bound, result.seconds);
    return result;
}

Result<std::vector<StepEstimate>> StepEstimator::estimateUsual(
    const Configuration &configuration, const std::stop_token &stop)
{
    TRY(Problem * own, problem(configuration));
    if (!own->usual) {
        const std::pair key{m_space.shardAxis, configuration.shards};
        auto partitions = m_usual->find(key);
        if (partitions == m_usual->end()) {
            TRY(auto found, usualPartitions(m_model, key.first, key.second, stop));
            partitions = m_usual->emplace(key, std::move(found)).first;
        }
        own->usual.emplace();
        for (const UsualPartition &partition : partitions->second)
            if (auto choice = own->network->choiceFor(partition);
                choice && std::isfinite(own->network->costOf({}, *choice)))
                own->usual->push_back(answerOf(configuration, *std::move(choice), *own->network));
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
    TRY(const Problem *own, problem(configuration));
    return assess(configuration, answerOf(configuration, std::move(choice), *own->network));
}

Result<StepEstimate> StepEstimator::assess(
    const Configuration &configuration, std::shared_ptr<const PartitionAnswer> partition)
{
    StepEstimate result{.configuration = configuration};
    result.partition = std::move(partition);
    TRY(result.stages, stages(configuration, {}));
    TRY(const StageRows rows, stageRowsFor(configuration));
    if (auto broken =
            brokenSharing(*m_model.graph, rows.sharings, result.stages->stageOf, configuration.ranks))
        return *std::move(broken);
    auto &[figures, links] = m_figures[{result.partition, result.stages}];
    if (figures.empty()) {
        const PartitionProblem &problem = problemOf(configuration);
        figures = stageFigures(problem, result.partition->choice, result.partition->times, *result.stages);
        links = stageLinks(problem, *result.stages, result.partition->choice);
    }

    const Reductions reductions(configuration, m_costs, m_cluster, problemOf(configuration));
    std::vector<StageTime> times;
    for (const StageFigures &stage : figures) {
        times.push_back(stage.time);
        reductions.addTo(stage, times.back());
    }
    TRY(const PipelineTime played,
        playPipeline(configuration.schedule, times, reductions.sendsOf(links), configuration.ranks,
            configuration.microBatches, m_trains));
    result.seconds = played.makespan;
    const auto ranks = static_cast<std::size_t>(configuration.ranks);
    std::vector<std::int64_t> bytes(ranks, 0);
    std::vector<std::int64_t> passing(ranks, 0);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        for (std::size_t s = rank; s < figures.size(); s += ranks) {
            const StageFigures &stage = figures[s];
            const auto share = [&](std::int64_t whole, int from) {
                return static_cast<std::int64_t>(static_cast<double>(whole)
                    * m_space.sharding.keptShare(configuration.zero, from, configuration.replicas));
            };
            bytes[rank] += share(stage.modelBytes, 3);
            for (const WeightPiece &piece : stage.weights)
                bytes[rank] += m_space.sharding.isMixed()
                    ? share(piece.count * piece.stateBytes, 1)
                    : piece.count * piece.stateBytes / reductions.updaters(piece.overShards);
            const std::int64_t kept = stage.keptBytes * std::max(1, played.inFlight[s]);
            // In a single micro-batch gradients grow as what is kept shrinks, and are cut as they are
            // reduced.
            bytes[rank] += configuration.microBatches == 1 ? std::max(kept, share(stage.gradientBytes, 1))
                                                           : kept + share(stage.gradientBytes, 2);
            passing[rank] = std::max(passing[rank], stage.passingBytes);
        }
        if (m_trains)
            result.seconds = std::max(result.seconds, reductions.endingOf(rank, figures, played).seconds());
        result.peakBytes = std::max(result.peakBytes, bytes[rank] + passing[rank]);
    }
    result.seconds += secondsAside(configuration);
    return result;
}

} // namespace planloom
