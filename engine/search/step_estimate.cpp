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
#include <bit>
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

const MeshPlaces &StepEstimator::placesOf(const Configuration &configuration) const
{
    const auto [own, fresh] = m_places.try_emplace(meshKeyOf(configuration));
    if (fresh)
        own->second = meshPlaces(configuration, m_space, m_cluster, m_deviceCount);
    return own->second;
}

StepEstimator::ProblemKey StepEstimator::keyOf(const Configuration &configuration) const
{
    return keyOf(configuration, placesOf(configuration).allClasses());
}

StepEstimator::ProblemKey StepEstimator::keyOf(const Configuration &configuration, ClassSet classes) const
{
    // Rows are read with a mesh; without rows about operators all meshes are alike.
    const bool meshMatters = std::any_of(m_rows.rows.begin(), m_rows.rows.end(), [](const Row &row) {
        return row.enabled
            && (std::holds_alternative<OpTransRule>(row.rule) || std::holds_alternative<PartsRule>(row.rule)
                || std::holds_alternative<AlikeRule>(row.rule) || std::holds_alternative<FollowRule>(row.rule)
                || std::holds_alternative<DegreeRule>(row.rule) || placesOperators(row));
    });
    const std::int32_t ranks = configuration.ranksOutside ? -configuration.ranks : configuration.ranks;
    return {configuration.shards, configuration.replicas, configuration.microBatches, meshMatters ? ranks : 0,
        configuration.outerShards, classes};
}

/// Of several classes, each thing as the fastest does it.
const CostModel &StepEstimator::costsOf(ClassSet classes)
{
    if (std::has_single_bit(classes))
        return m_costs;
    const auto [own, fresh] = m_leastCosts.try_emplace(classes);
    if (fresh)
        own->second = fastestOf(m_costs, classes);
    return own->second;
}

/// The first group with devices of these classes.
ShardGroups StepEstimator::shardGroups(const Configuration &configuration, ClassSet classes) const
{
    const MeshPlaces &places = placesOf(configuration);
    const auto groupsAt = [&](std::int32_t replica, std::int32_t rank) {
        const auto over = [&](ShardAxes axes) {
            return groupShape(m_cluster, places.shardsOver(replica, rank, axes));
        };
        return ShardGroups{.inner = over(ShardAxes::Inner),
            .outer = over(ShardAxes::Outer),
            .both = over(ShardAxes::Both),
            .apart = groupShape(m_cluster,
                {places.at(replica, rank, 0), places.at(replica, rank, configuration.shards - 1)})};
    };
    for (std::int32_t rank = 0; rank < places.ranks; ++rank)
        for (std::int32_t replica = 0; (places.classesOf(rank) & classes) != 0 && replica < places.replicas;
             ++replica)
            if (const ShardGroups groups = groupsAt(replica, rank); (groups.both.classes & classes) != 0)
                return groups;
    return groupsAt(0, 0);
}

Result<StepEstimator::Problem *> StepEstimator::problem(const Configuration &configuration)
{
    return problem(configuration, placesOf(configuration).allClasses());
}

Result<StepEstimator::Problem *> StepEstimator::problem(const Configuration &configuration, ClassSet classes)
{
    const auto [it, fresh] = m_problems.try_emplace(keyOf(configuration, classes));
    if (fresh)
        if (auto made = makeProblem(configuration, classes, it->second); !made)
            it->second.error = std::move(made).error();
    if (it->second.error)
        return *it->second.error;
    return &it->second;
}

Result<const PartitionProblem *> StepEstimator::slowestOf(
    const Configuration &configuration, ClassSet classes)
{
    const PartitionProblem *slowest = nullptr;
    for (ClassSet left = classes; left != 0; left &= left - 1) {
        TRY(const Problem *own, problem(configuration, left & (~left + 1)));
        if (!slowest || own->network->leastKernelSeconds() > slowest->leastKernelSeconds())
            slowest = own->network.get();
    }
    return slowest;
}

Result<OperatorTimes> StepEstimator::slowestTimes(
    const Configuration &configuration, ClassSet classes, const std::vector<std::int32_t> &choice)
{
    OperatorTimes times;
    for (ClassSet left = classes; left != 0; left &= left - 1) {
        TRY(const Problem *own, problem(configuration, left & (~left + 1)));
        OperatorTimes each = own->network->timesOf(choice);
        if (times.forward.empty()) {
            times = std::move(each);
            continue;
        }
        for (std::size_t i = 0; i < times.forward.size(); ++i) {
            times.forward[i] = std::max(times.forward[i], each.forward[i]);
            times.backward[i] = std::max(times.backward[i], each.backward[i]);
        }
    }
    return times;
}

Result<RankReductions> StepEstimator::reductionsOf(const Configuration &configuration)
{
    const MeshPlaces &places = placesOf(configuration);
    std::map<ClassSet, const PartitionProblem *> problems;
    for (std::int32_t rank = 0; rank < places.ranks; ++rank) {
        const ClassSet classes = places.classesOf(rank);
        if (!problems.contains(classes)) {
            TRY(problems[classes], slowestOf(configuration, classes));
        }
    }
    return RankReductions(configuration, places, m_costs, m_cluster,
        [&](ClassSet classes) -> const PartitionProblem & { return *problems.at(classes); });
}

Result<void> StepEstimator::makeProblem(const Configuration &configuration, ClassSet classes, Problem &own)
{
    own.plan = m_plan;
    own.plan.microBatches = configuration.microBatches;
    const BoundTable *bound = nullptr;
    if (std::get<3>(keyOf(configuration)) != 0) {
        Bound &read = m_bounds[meshKeyOf(configuration)];
        if (!read.table) {
            ConstraintTable table = m_rows;
            if (!m_space.ownMesh) {
                MeshRule mesh = meshRule(configuration, m_space);
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
        .costs = &costsOf(classes),
        .bound = bound,
        .axis = m_space.shardAxis,
        .parts = configuration.innerShards(),
        .outerAxis = configuration.outerShards > 1 ? m_space.outerShardAxis : std::string{},
        .outerParts = configuration.outerShards,
        .batchCuts = configuration.batchCuts(),
        .replicaAxis = m_space.replicaAxis,
        .replicas = configuration.replicas,
        .deviceClass = std::countr_zero(classes),
        .alike = m_alike,
        .aside = &own.placed.aside};
    own.aside = timesAside(own.placed, bound);
    own.network = std::make_unique<PartitionProblem>(setting, shardGroups(configuration, classes));
    if (const OperatorId op = own.network->impossible())
        return Error{ErrorCode::InvalidInput,
            "rows leave operator '" + m_model.graph->at(op).name + "' no way to be partitioned over "
                + std::to_string(configuration.shards) + " devices",
            "allow it to be replicated, or use another mesh", "search"};
    own.leastWeights = own.network->leastWeightBytes();
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
    const std::vector<ShardAxes> allSums = configuration.shardSums();
    for (const ShardAxes sums : allSums)
        pricing.updates[indexOf(sums)] =
            configuration.zero >= 1 ? 1.0 / configuration.replicas / problem.setting().devicesOver(sums) : 1;
    if (m_space.sharding.isMixed()) { // stages differ from weight to weight: what is sure of all of them
        pricing.accumulates = false;
        pricing.updates = {};
        return pricing;
    }
    pricing.reductions = prices.reductions;
    const Reductions reductions(
        configuration, placesOf(configuration), *problem.setting().costs, m_cluster, problem);
    if (prices.reductions > 0) {
        pricing.everyMicroBatch = configuration.zero >= 2;
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
        behindSeconds = std::max(behindSeconds, problem.trafficSeconds(behind[indexOf(sums)]));
    }
    if (behindSeconds > problem.updateSeconds() * pricing.updates.front()) {
        pricing.updates = {};
        pricing.behind = behind;
    } else if (configuration.zero < 2) {
        for (double &updates : pricing.updates)
            updates *= 1 - prices.reductions;
    }
    for (const ShardAxes sums : allSums)
        if (configuration.zero >= 2)
            pricing.inLayer[indexOf(sums)] = reductions.leastShardSum(sums);
    return pricing;
}

const PartitionProblem &StepEstimator::problemOf(const Configuration &configuration) const
{
    return *m_problems.at(keyOf(configuration)).network;
}

std::shared_ptr<PartitionAnswer> StepEstimator::answerOf(
    std::vector<std::int32_t> choice, const PartitionProblem &problem)
{
    auto found = std::make_shared<PartitionAnswer>();
    found->times = problem.timesOf(choice);
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
    auto found = answerOf(std::move(answer.choice), *own->network);
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
    const MeshPlaces &places = placesOf(configuration);
    const ClassSet classes = places.allClasses();
    auto &problem = m_replicas[{placing
            ? keyOf(configuration)
            : ProblemKey{0, configuration.replicas, configuration.microBatches, 0, 1, classes},
        places.replicaStride}];
    if (!problem) {
        const AxisSetting setting{.model = &m_model,
            .plan = &m_plan,
            .types = m_types.get(),
            .costs = &costsOf(classes),
            .axis = m_space.replicaAxis,
            .parts = configuration.replicas,
            .batchCuts = configuration.microBatches,
            .deviceClass = std::countr_zero(classes),
            .alike = m_alike,
            .aside = placing ? &placing->placed.aside : nullptr,
            .batchAlone = true};
        problem = std::make_unique<PartitionProblem>(
            setting, ShardGroups{.inner = groupShape(m_cluster, places.replicaGroup(0, 0))});
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
    const MeshPlaces &places = placesOf(configuration);
    auto &known = m_stages[{answer, configuration.stages(), rows.isEmpty() ? 0 : configuration.ranks,
        configuration.recompute, places.isMixed() ? places.classes : std::vector<ClassSet>{}}];
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
        } else if (places.isMixed()) {
            TRY(plan.stageOf, mixedStages(configuration, *answer, plan));
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

/// Balanced by what each stage's operators take on its own devices.
Result<std::vector<std::int32_t>> StepEstimator::mixedStages(
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
        TRY(const OperatorTimes times, slowestTimes(configuration, classes, answer.choice));
        auto &own = measure.ofKind.emplace_back(m_model.graph->operators.size(), 0);
        for (std::size_t i = 0; i < times.forward.size(); ++i)
            own[i] =
                std::llround(1e9 * (times.backward[i] + times.forward[i] * (plan.recomputed[i] ? 2 : 1)));
    }
    TRY(const auto found, pipelineStages(*m_model.index, plan.stages, measure));
    std::vector<std::int32_t> stageOf(m_model.index->forwardCount(), 0);
    for (std::size_t s = 0; s < found.size(); ++s)
        for (const OperatorId op : found[s])
            stageOf[static_cast<std::size_t>(op.index)] = static_cast<std::int32_t>(s);
    return stageOf;
}

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
            TRY(const PartitionProblem *slowest, slowestOf(configuration, classes));
            TRY(own->second, leastStages(*slowest, *plan, splits, configuration.zero < 2, stop));
        }
        all.push_back(own->second[static_cast<std::size_t>(s)]);
    }
    known = std::move(all);
    return &known;
}

OperatorTimes StepEstimator::leastWaits(const Configuration &configuration)
{
    return replicaTimes(
        configuration, std::vector<double>(m_model.graph->tensors.size(), 1.0 / configuration.shards));
}

double StepEstimator::secondsOfWaits(const Configuration &configuration)
{
    const auto [known, fresh] =
        m_problems.at(keyOf(configuration)).leastWaits.try_emplace(placesOf(configuration).replicaStride, 0);
    if (fresh)
        known->second = leastWaits(configuration).communication;
    return known->second;
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
    paths.reductions = std::make_unique<Reductions>(
        paths.configuration, placesOf(configuration), m_costs, m_cluster, problemOf(configuration));
    paths.bound = std::make_unique<PathBound>(paths.configuration, problemOf(configuration), *paths.plan,
        *paths.reductions, *least, paths.waits, m_trains);
    return &paths;
}

Result<StepEstimate> StepEstimator::estimateAlongPaths(
    const Configuration &configuration, const std::stop_token &stop)
{
    TRY(Paths * paths, pathsOf(configuration, stop));
    TRY(StepEstimate result, assess(configuration, paths->next));
    if (placesOf(configuration).isMixed()) { // ways are those of one class of devices
        TRY(const StagedBound staged, stagedBoundOf(configuration, stop));
        result.bound = std::min(staged.seconds, result.seconds);
        return result;
    }
    if (m_space.sharding.isMixed()) {
        TRY(result.bound, boundOf(configuration, stop));
        return result;
    }
    if (problemOf(configuration).isDecided()) {
        TRY(result.bound, boundOf(configuration, stop));
        result.bound = std::max(result.bound, result.seconds - secondsAside(configuration));
        return result;
    }
    const Figures &figures =
        m_figures.at({result.partition, result.stages, placesOf(configuration).replicaStride});
    TRY_VOID(paths->bound->add(result.partition->choice, figures.stages, figures.links));
    TRY(PathBound::Answer answer, paths->bound->solve(stop));
    result.bound = std::min(answer.bound, result.seconds);
    paths->next = answerOf(std::move(answer.choice), problemOf(configuration));
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
    TRY(const RankReductions reductions, reductionsOf(configuration));
    const OperatorTimes waits = leastWaits(configuration);
    std::vector<StageTime> times;
    std::vector<Reductions::Least> weights;
    for (const LeastStage &stage : *least) {
        times.push_back(stage.time);
        weights.push_back(reductions.of(weights.size() % static_cast<std::size_t>(configuration.ranks))
                              .leastOf(*least, weights.size()));
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
        playPipeline(configuration.schedule, times, reductions.of(0).sendsOf(leastLinks(problem, *plan)),
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
        const Reductions &own = reductions.of(rank);
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
            all.reduction = std::max(all.reduction, all.reducedAsOne + own.leastLaunch());
        if (all.gather > 0)
            all.gather += own.leastGatheringLaunch();
        reduced = std::max({reduced, begin + all.reduction, computed + own.leastBehind(*least, rank)});
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

std::vector<std::int32_t> StepEstimator::outerShardsFor(std::int32_t shards)
{
    if (!m_nested)
        m_nested.emplace(AxisSetting{.model = &m_model,
            .plan = &m_plan,
            .types = m_types.get(),
            .costs = &m_costs,
            .axis = m_space.shardAxis,
            .alike = m_alike});
    return m_nested->outerShards(shards);
}

Result<double> StepEstimator::kernelBoundOf(const Configuration &configuration)
{
    TRY(const Problem *own, problem(configuration));
    return own->network->leastKernelSeconds() * configuration.microBatches / configuration.ranks;
}

Result<double> StepEstimator::boundOf(const Configuration &configuration, const std::stop_token &stop)
{
    TRY_VOID(findLeastWay(configuration, stop));
    TRY(const auto answer, partition(configuration, {}, stop));
    return boundOf(configuration, *answer, *answer);
}

Result<double> StepEstimator::capacityOf(const Configuration &configuration)
{
    const MeshPlaces &places = placesOf(configuration);
    if (!places.isMixed())
        return configuration.ranks;
    TRY(const Problem *fastest, problem(configuration));
    double capacity = 0;
    for (std::int32_t rank = 0; rank < places.ranks; ++rank) {
        TRY(const PartitionProblem *own, slowestOf(configuration, places.classesOf(rank)));
        capacity += fastest->network->leastKernelSeconds() / own->leastKernelSeconds();
    }
    return capacity;
}

Result<double> StepEstimator::likelyBoundOf(const Configuration &configuration, const std::stop_token &stop)
{
    TRY(const double bound, boundOf(configuration, stop));
    TRY(const auto answer, partition(configuration, {}, stop));
    const Problem &own = m_problems.at(keyOf(configuration));
    const double again = secondsOfWaits(configuration) + own.leastAgain.at(configuration.recompute);
    const double chain =
        (splitsBackward(configuration.schedule) ? own.leastWay : std::min(answer->seconds, answer->bound))
        + again;
    const double ramp = (configuration.ranks - 1.0) / configuration.stagesPerRank;
    TRY(const double capacity, capacityOf(configuration));
    return std::max(bound, ((answer->bound + again) * configuration.microBatches + chain * ramp) / capacity);
}

double StepEstimator::boundOf(
    const Configuration &configuration, const PartitionAnswer &answer, const PartitionAnswer &fastest)
{
    const Problem &own = m_problems.at(keyOf(configuration));
    const double again = secondsOfWaits(configuration) + own.leastAgain.at(configuration.recompute);
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

bool StepEstimator::mayNeedRecompute(const Configuration &configuration, const std::stop_token &stop)
{
    if (!m_whole) {
        m_whole.emplace();
        m_whole->rest = std::numeric_limits<double>::infinity();
        const auto one = estimate({}, {}, stop);
        const auto known = one ? m_figures.find({one->partition, one->stages, 1}) : m_figures.end();
        if (known != m_figures.end()) {
            const StageFigures &figures = known->second.stages.front();
            m_whole->kept = static_cast<double>(figures.keptBytes);
            m_whole->rest =
                static_cast<double>(figures.modelBytes + figures.gradientBytes + figures.passingBytes);
            for (const WeightPiece &piece : figures.weights)
                m_whole->rest += static_cast<double>(piece.count) * static_cast<double>(piece.stateBytes);
        }
    }
    return m_whole->rest + m_whole->kept / configuration.replicas > static_cast<double>(m_space.memoryLimit);
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
        const std::pair key{m_space.shardAxis, configuration.innerShards()};
        auto inner = m_usual->inner.find(key);
        if (inner == m_usual->inner.end()) {
            TRY(auto found, usualPartitions(m_model, key.first, key.second, stop));
            inner = m_usual->inner.emplace(key, std::move(found)).first;
        }
        std::vector<UsualPartition> around(1); // nothing without an outer axis
        if (configuration.outerShards > 1) {
            const auto [known, fresh] =
                m_usual->around.try_emplace({m_space.outerShardAxis, configuration.outerShards});
            if (fresh)
                known->second = usualAround(m_model, m_space.outerShardAxis, configuration.outerShards);
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
    TRY(const Problem *own, problem(configuration));
    return assess(configuration, answerOf(std::move(choice), *own->network));
}

Result<std::vector<StageFigures>> StepEstimator::figuresOf(
    const Configuration &configuration, const PartitionAnswer &partition, const StagePlan &stages)
{
    const MeshPlaces &places = placesOf(configuration);
    const PartitionProblem &problem = problemOf(configuration);
    const OperatorTimes waits = replicaTimes(configuration, problem.sharesOf(partition.choice));
    const auto withWaits = [&](OperatorTimes times) {
        for (std::size_t i = 0; i < waits.forward.size(); ++i) {
            times.forward[i] += waits.forward[i];
            times.backward[i] += waits.backward[i];
        }
        return times;
    };
    if (!places.isMixed())
        return stageFigures(problem, partition.choice, withWaits(partition.times), stages);
    std::map<ClassSet, std::vector<StageFigures>> ofClasses;
    std::vector<StageFigures> figures;
    for (std::int32_t s = 0; s < stages.stages; ++s) {
        const ClassSet classes = places.classesOf(s % places.ranks);
        const auto [own, fresh] = ofClasses.try_emplace(classes);
        if (fresh) {
            TRY(const PartitionProblem *slowest, slowestOf(configuration, classes));
            TRY(OperatorTimes times, slowestTimes(configuration, classes, partition.choice));
            own->second = stageFigures(*slowest, partition.choice, withWaits(std::move(times)), stages);
        }
        figures.push_back(own->second[static_cast<std::size_t>(s)]);
    }
    return figures;
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
    auto &[figures, links] =
        m_figures[{result.partition, result.stages, placesOf(configuration).replicaStride}];
    if (figures.empty()) {
        TRY(figures, figuresOf(configuration, *result.partition, *result.stages));
        links = stageLinks(problemOf(configuration), *result.stages, result.partition->choice);
    }

    TRY(const RankReductions reductions, reductionsOf(configuration));
    const auto ranks = static_cast<std::size_t>(configuration.ranks);
    std::vector<StageTime> times;
    for (const StageFigures &stage : figures) {
        const Reductions &own = reductions.of(times.size() % ranks);
        times.push_back(stage.time);
        own.addTo(stage, times.back());
    }
    TRY(const PipelineTime played,
        playPipeline(configuration.schedule, times, reductions.of(0).sendsOf(links), configuration.ranks,
            configuration.microBatches, m_trains));
    result.seconds = played.makespan;
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
                    : piece.count * piece.stateBytes / reductions.of(rank).updaters(piece.sums);
            const std::int64_t kept = stage.keptBytes * std::max(1, played.inFlight[s]);
            // In a single micro-batch gradients grow as what is kept shrinks, and are cut as they are
            // reduced.
            bytes[rank] += configuration.microBatches == 1 ? std::max(kept, share(stage.gradientBytes, 1))
                                                           : kept + share(stage.gradientBytes, 2);
            passing[rank] = std::max(passing[rank], stage.passingBytes);
        }
        if (m_trains)
            result.seconds =
                std::max(result.seconds, reductions.of(rank).endingOf(rank, figures, played).seconds());
        result.peakBytes = std::max(result.peakBytes, bytes[rank] + passing[rank]);
    }
    result.seconds += secondsAside(configuration);
    return result;
}

} // namespace planloom
