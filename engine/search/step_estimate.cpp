#include "engine/search/step_estimate.h"

#include "engine/gallery/gallery_pipeline.h"
#include "engine/gallery/gallery_rows.h"
#include "engine/graph/catalogue.h"
#include "engine/plan/complete.h"
#include "engine/search/recompute_choice.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/selector_index.h"
#include "engine/table/table_text.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

/// Half of the backward pass of a product by a weight: the other half is for the stage before.
double weightGradientSeconds(const PartitionProblem &problem, std::size_t op, std::int32_t choice)
{
    const Graph &graph = *problem.setting().model->graph;
    const Operator &own = graph.operators[op];
    const bool weights = std::any_of(own.inputs.begin(), own.inputs.end(),
        [&](TensorId input) { return input && graph.at(input).role == TensorRole::Weight; });
    return weights && categoryOf(own) == OperatorCategory::Product ? problem.choiceOf(op, choice).backward / 2
                                                                   : 0;
}

/// How a rank's step ends: reductions beside its last backward block, updates, gathering of what was updated.
struct Ending {
    double begin = std::numeric_limits<double>::infinity(); ///< Of reductions.
    double computed = 0; ///< The last block is over.
    double reduction = 0; ///< Seconds of all of them, one after the other.
    double update = 0;
    double gather = 0;
    double buckets = 1;

    double seconds() const
    {
        const double reduced =
            reduction > 0 ? std::max(begin + reduction, computed + reduction / buckets) : computed;
        const double updated = std::max(computed + update, reduced + update / buckets);
        return gather > 0 ? std::max(updated + gather / buckets, reduced + update / buckets + gather)
                          : updated;
    }
};

std::vector<DeviceId> devicesApart(std::int32_t count, std::int32_t stride)
{
    std::vector<DeviceId> devices;
    for (std::int32_t i = 0; i < count; ++i)
        devices.push_back({i * stride});
    return devices;
}

/// What replicas, and shards that sum gradients up, communicate for the weights.
class Reductions
{
public:
    Reductions(const Configuration &configuration, const CostModel &costs, const Cluster &cluster)
        : m_configuration(configuration)
        , m_costs(costs)
    {
        std::vector<DeviceId> replicas;
        std::vector<DeviceId> all;
        for (std::int32_t r = 0; r < configuration.replicas; ++r) {
            replicas.push_back({r * configuration.ranks * configuration.shards});
            for (std::int32_t s = 0; s < configuration.shards; ++s)
                all.push_back({r * configuration.ranks * configuration.shards + s});
        }
        m_replicas = groupShape(cluster, replicas);
        m_all = groupShape(cluster, all);
        // Replicas that are scale units share out what each of them has added up by itself.
        if (configuration.replicas > 1
            && configuration.replicas * configuration.ranks * configuration.shards > kMostExplicitDevices) {
            m_all = m_replicas;
            m_inUnit = groupShape(cluster, devicesApart(configuration.shards, 1));
        }
    }

    /// What it takes of every micro-batch.
    void addTo(const StageFigures &stage, StageTime &time) const
    {
        const double microBatches = m_configuration.microBatches;
        if (m_configuration.zero < 2) {
            time.weights +=
                (stage.firstAccumulation + stage.accumulation * (microBatches - 1)) / microBatches;
            return;
        }
        // One by one, as they are made, beside what is computed.
        double reduce = 0;
        double gather = 0;
        for (const WeightPiece &piece : stage.weights) {
            reduce +=
                piece.count * reduction(CollectiveKind::ReduceScatter, piece.reducedBytes, piece.overShards);
            if (m_configuration.zero == 3)
                gather += piece.count * seconds(CollectiveKind::AllGather, piece.modelBytes, m_replicas);
        }
        // Shards are added up at the end of each layer, where computation waits for the last of them.
        double shards = 0;
        for (const WeightPiece &piece : stage.weights)
            if (piece.reducedBytes > 0)
                shards += piece.count
                    * m_costs.copy(Bytes{piece.reducedBytes / std::max(1, shape(piece).ranks)}, 0);
        double last = 0;
        for (const WeightPiece &piece : stage.largest)
            last += reduction(CollectiveKind::ReduceScatter, piece.reducedBytes, piece.overShards);
        time.weights += stage.castGradients + shards + last;
        const double backward = time.backward + time.weights;
        time.backward = std::max(backward, reduce + gather) - time.weights;
        time.forward = std::max(time.forward, gather);
    }

    void addTo(const StageFigures &stage, double lastBackward, double end, Ending &ending) const
    {
        ending.begin = std::min(ending.begin, lastBackward);
        ending.computed = std::max(ending.computed, end);
        for (const WeightPiece &piece : stage.weights)
            ending.update += piece.count * piece.update / updaters(piece);
        if (m_configuration.zero >= 2) {
            if (m_configuration.zero == 2)
                ending.gather += inBuckets(stage, CollectiveKind::AllGather, false, ending);
            return;
        }
        const CollectiveKind kind =
            m_configuration.zero == 1 ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
        ending.reduction += inBuckets(stage, kind, false, ending) + inBuckets(stage, kind, true, ending);
        if (m_configuration.zero == 1)
            ending.gather += inBuckets(stage, CollectiveKind::AllGather, false, ending)
                + inBuckets(stage, CollectiveKind::AllGather, true, ending);
    }

    /// Devices that share what is kept and done for the optimizer alone.
    std::int32_t updaters(const WeightPiece &piece) const
    {
        return m_configuration.zero >= 1 ? shape(piece).ranks : 1;
    }

    /// What no weight's reduction takes less than, with gathering it again for every micro-batch.
    WeightTraffic leastReduction(bool overShards) const
    {
        WeightTraffic traffic;
        add(m_configuration.zero >= 1 ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce,
            overShards ? m_all : m_replicas, traffic);
        if (overShards)
            add(CollectiveKind::AllReduce, m_inUnit, traffic);
        if (m_configuration.zero == 3)
            add(CollectiveKind::AllGather, m_replicas, traffic);
        return traffic;
    }

    /// Likewise of the reduction that computation waits for at the end of a layer (ZeRO-2 and 3).
    WeightTraffic leastShardSum(bool overShards) const
    {
        WeightTraffic traffic;
        add(CollectiveKind::ReduceScatter, overShards ? m_all : m_replicas, traffic);
        if (overShards)
            add(CollectiveKind::AllReduce, m_inUnit, traffic);
        return traffic;
    }

    /// Likewise of gathering it when it was updated.
    WeightTraffic leastGathering(bool overShards) const
    {
        WeightTraffic traffic;
        if (m_configuration.zero == 1 || (m_configuration.zero == 2 && !overShards)) {
            add(CollectiveKind::AllGather, overShards ? m_all : m_replicas, traffic);
            traffic.fixed = 0;
        }
        return traffic;
    }

private:
    /// Time is at least that of large messages, and begins with that of the smallest; in buckets those of a
    /// bucket do so together.
    void add(CollectiveKind kind, GroupShape over, WeightTraffic &traffic) const
    {
        constexpr std::int64_t kLarge = std::int64_t{1} << 30;
        const double first = seconds(kind, 1, over);
        if (m_configuration.zero >= 2)
            traffic.fixed += first;
        else if (over.ranks > 1)
            traffic.perReducedByte += first / static_cast<double>(bucketBytes(over, kLarge));
        (kind == CollectiveKind::AllGather ? traffic.perModelByte : traffic.perReducedByte) +=
            std::max(0.0, seconds(kind, kLarge, over) - first) / static_cast<double>(kLarge);
    }

    GroupShape shape(const WeightPiece &piece) const { return piece.overShards ? m_all : m_replicas; }
    double reduction(CollectiveKind kind, std::int64_t bytes, bool overShards) const
    {
        return seconds(kind, bytes, overShards ? m_all : m_replicas)
            + (overShards ? seconds(CollectiveKind::AllReduce, bytes, m_inUnit) : 0);
    }
    double seconds(CollectiveKind kind, std::int64_t bytes, GroupShape shape) const
    {
        return shape.ranks < 2 || bytes == 0 ? 0 : m_costs.collective(kind, Bytes{bytes}, shape);
    }

    /// Gradients are reduced in buckets whose latency is a tenth of their time
    /// (lowering/lower_gradients.cpp).
    std::int64_t bucketBytes(GroupShape group, std::int64_t all) const
    {
        constexpr double kLatencyShare = 0.1;
        const double latency = m_costs.collective(CollectiveKind::AllReduce, Bytes{1}, group);
        std::int64_t bucket = 1 << 16;
        while (bucket < all
            && m_costs.collective(CollectiveKind::AllReduce, Bytes{bucket}, group) * kLatencyShare < latency)
            bucket *= 2;
        return bucket;
    }
    double inBuckets(const StageFigures &stage, CollectiveKind kind, bool overShards, Ending &ending) const
    {
        std::int64_t bytes = 0;
        std::int64_t reduced = 0;
        for (const WeightPiece &piece : stage.weights)
            if (piece.overShards == overShards && piece.reducedBytes > 0) {
                bytes +=
                    piece.count * (kind == CollectiveKind::AllGather ? piece.modelBytes : piece.reducedBytes);
                reduced += piece.count * piece.reducedBytes;
            }
        const GroupShape group = overShards ? m_all : m_replicas;
        if (bytes == 0 || (group.ranks < 2 && !(overShards && m_inUnit.ranks > 1)))
            return 0;
        const double buckets = std::max(
            1.0, std::ceil(static_cast<double>(reduced) / static_cast<double>(bucketBytes(group, reduced))));
        ending.buckets = std::max(ending.buckets, buckets);
        const auto each = static_cast<std::int64_t>(static_cast<double>(bytes) / buckets);
        return buckets
            * (kind == CollectiveKind::AllGather ? seconds(kind, each, group)
                                                 : reduction(kind, each, overShards));
    }

    const Configuration &m_configuration;
    const CostModel &m_costs;
    GroupShape m_replicas{};
    GroupShape m_all{};
    GroupShape m_inUnit{}; ///< Of one rank where there are no units.
};

} // namespace

Result<std::unique_ptr<StepEstimator>> StepEstimator::make(const Model &model, const Cluster &cluster,
    std::int32_t deviceCount, const ConstraintTable &rows, const SearchSpace &space, const CostModel &costs,
    PrecisionPreset precision)
{
    std::unique_ptr<StepEstimator> made(new StepEstimator);
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
                || std::holds_alternative<DegreeRule>(row.rule));
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
        .alike = m_alike};
    own.network = std::make_unique<PartitionProblem>(setting, shardGroup(configuration));
    if (const OperatorId op = own.network->impossible())
        return Error{ErrorCode::InvalidInput,
            "rows leave operator '" + m_model.graph->at(op).name + "' no way to be partitioned over "
                + std::to_string(configuration.shards) + " devices",
            "allow it to be replicated, or use another mesh", "search"};
    own.leastWeights = own.network->leastWeightBytes();
    own.leastWaits = replicaTimes(
        configuration, std::vector<double>(m_model.graph->tensors.size(), 1.0 / configuration.shards))
                         .communication;
    for (const auto &[word, plan] : m_recomputed) {
        own.leastKept[word] = own.network->leastKeptBytes(plan.recomputed);
        own.leastAgain[word] = own.network->leastForwardSeconds(plan.recomputed);
    }
    return {};
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
    pricing.reductions = prices.reductions;
    const Reductions reductions(configuration, m_costs, m_cluster);
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
        found->weightGradients += weightGradientSeconds(problem, i, found->choice[i]);
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
    TRY(NetworkAnswer answer, cheapestChoice(network, {}, stop));
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
    auto &problem = m_replicas[{configuration.replicas, configuration.microBatches}];
    if (!problem) {
        const AxisSetting setting{.model = &m_model,
            .plan = &m_plan,
            .types = m_types.get(),
            .costs = &m_costs,
            .axis = m_space.replicaAxis,
            .parts = configuration.replicas,
            .batchCuts = configuration.microBatches,
            .alike = m_alike,
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
    const Configuration &configuration, const std::shared_ptr<const PartitionAnswer> &answer)
{
    auto &known = m_stages[{answer, configuration.stages(), m_stageRows.isEmpty() ? 0 : configuration.ranks,
        configuration.recompute}];
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
        if (!m_stageRows.isEmpty()) {
            TRY(plan.stageOf,
                stagesWithin(*m_model.index, plan.stages, configuration.ranks, nanoseconds, m_stageRows));
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

Result<double> StepEstimator::boundOf(const Configuration &configuration, const std::stop_token &stop)
{
    TRY(const auto answer, partition(configuration, {}, stop));
    return boundOf(configuration, *answer, *answer);
}

Result<double> StepEstimator::likelyBoundOf(const Configuration &configuration, const std::stop_token &stop)
{
    TRY(const double bound, boundOf(configuration, stop));
    TRY(const auto answer, partition(configuration, {}, stop));
    const Problem &own = m_problems.at(keyOf(configuration));
    const double again = own.leastWaits + own.leastAgain.at(configuration.recompute);
    const double chain = std::min(answer->seconds, answer->bound) + again
        - (splitsBackward(configuration.schedule) ? answer->weightGradients : 0);
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
    const double all = (answer.bound + again) * microBatches;
    // A micro-batch goes through all stages one after the other.
    const double chain = std::min(fastest.seconds, fastest.bound) + again
        - (splitsBackward(configuration.schedule) ? fastest.weightGradients : 0);
    if (configuration.ranks == 1)
        return std::max(chain, all);
    // The ranks have all work between them. Rank r begins when the first micro-batch has come through the
    // ranks before, and its last one goes back through them: what a rank computes of one micro-batch is in
    // the way of those behind. Of T seconds rank r has T - p, where p are those of the ranks before, for m
    // micro-batches: p of rank r + 1 is p + (T - p) / m at most, and of all ranks T (1 - (1 - 1/m)^R). That
    // is no less than what one micro-batch takes. (Interleaved stages may go in front of one another.)
    const double share = configuration.stagesPerRank > 1
        ? 1
        : 1 - std::pow(1 - 1 / microBatches, static_cast<double>(configuration.ranks));
    return std::max(all / configuration.ranks, chain / share);
}

Result<std::int64_t> StepEstimator::leastPeakOf(const Configuration &configuration)
{
    TRY(const Problem *own, problem(configuration));
    const auto share = [&](std::int64_t bytes, int from) {
        return static_cast<double>(bytes) / (configuration.zero >= from ? configuration.replicas : 1);
    };
    const double weights = share(own->leastWeights.model, 3) + share(own->leastWeights.state, 1);
    // Of as many micro-batches as are surely held at once.
    const bool holdsAll = configuration.ranks > 1 && configuration.schedule == ScheduleKind::GPipe;
    const double kept = !m_trains
        ? 0
        : own->leastKept.at(configuration.recompute) * (holdsAll ? configuration.microBatches : 1);
    // As `estimate` counts: gradients grow as what one micro-batch keeps shrinks.
    const double passing = configuration.microBatches == 1
        ? std::max(kept, share(own->leastWeights.gradient, 1))
        : kept + share(own->leastWeights.gradient, 2);
    return static_cast<std::int64_t>((weights + passing) / configuration.ranks);
}

Result<StepEstimate> StepEstimator::estimate(
    const Configuration &configuration, SearchPrices prices, const std::stop_token &stop)
{
    TRY(const auto answer, partition(configuration, prices, stop));
    TRY(StepEstimate result, assess(configuration, answer));
    TRY(const auto fastest, partition(configuration, {}, stop));
    result.bound = boundOf(configuration, *fastest, *fastest);
    if (problemOf(configuration).isDecided())
        result.bound = result.seconds;
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
        own->usual.emplace();
        const auto [partitions, fresh] = m_usual.try_emplace(configuration.shards);
        if (fresh)
            partitions->second = usualPartitions(m_model, m_space.shardAxis, configuration.shards);
        for (const UsualPartition &partition : partitions->second)
            if (auto choice = own->network->choiceFor(partition);
                choice && std::isfinite(costOf(own->network->network({}), *choice)))
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
    TRY(result.stages, stages(configuration, result.partition));
    if (auto broken =
            brokenSharing(*m_model.graph, m_stageRows.sharings, result.stages->stageOf, configuration.ranks))
        return *std::move(broken);
    auto &figures = m_figures[{result.partition, result.stages}];
    if (figures.empty())
        figures = stageFigures(problemOf(configuration), result.partition->choice, result.partition->times,
            *result.stages, groupShape(m_cluster, devicesApart(2, configuration.shards)));

    const Reductions reductions(configuration, m_costs, m_cluster);
    std::vector<StageTime> times;
    for (const StageFigures &stage : figures) {
        times.push_back(stage.time);
        reductions.addTo(stage, times.back());
    }
    TRY(const PipelineTime played,
        playPipeline(
            configuration.schedule, times, configuration.ranks, configuration.microBatches, m_trains));
    result.seconds = played.makespan;
    const auto ranks = static_cast<std::size_t>(configuration.ranks);
    std::vector<std::int64_t> bytes(ranks, 0);
    std::vector<std::int64_t> passing(ranks, 0);
    for (std::size_t rank = 0; rank < ranks; ++rank) {
        Ending ending;
        for (std::size_t s = rank; s < figures.size(); s += ranks) {
            const StageFigures &stage = figures[s];
            reductions.addTo(stage, played.lastBackward[s], played.end[s], ending);
            const auto share = [&](std::int64_t whole, int from) {
                return configuration.zero >= from ? whole / configuration.replicas : whole;
            };
            bytes[rank] += share(stage.modelBytes, 3);
            for (const WeightPiece &piece : stage.weights)
                bytes[rank] += piece.count * piece.stateBytes / reductions.updaters(piece);
            const std::int64_t kept = stage.keptBytes * std::max(1, played.inFlight[s]);
            // In a single micro-batch gradients grow as what is kept shrinks, and are cut as they are
            // reduced.
            bytes[rank] += configuration.microBatches == 1 ? std::max(kept, share(stage.gradientBytes, 1))
                                                           : kept + share(stage.gradientBytes, 2);
            passing[rank] = std::max(passing[rank], stage.passingBytes);
        }
        result.seconds = std::max(result.seconds, ending.seconds());
        result.peakBytes = std::max(result.peakBytes, bytes[rank] + passing[rank]);
    }
    return result;
}

} // namespace planloom
