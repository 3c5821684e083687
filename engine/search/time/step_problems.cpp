#include "engine/search/time/step_estimate.h"

#include "engine/base/place.h"
#include "engine/gallery/gallery_rows.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/plan/plan_draft.h"
#include "engine/search/memory/operator_memory.h"
#include "engine/search/time/reductions.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

namespace planloom {

namespace {

/// Of a tensor, by which groups of devices are compared.
constexpr std::int64_t kLikelyBytes = 16 << 20;

bool placesOperators(const Row &row)
{
    return std::holds_alternative<OpAssignRule>(row.rule) || std::holds_alternative<SpreadRule>(row.rule);
}

} // namespace

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

/// Of the groups with devices of these classes the slowest: others wait for them, and groups whose size does
/// not divide a node's lie within one or across two.
ShardGroups StepEstimator::shardGroups(const Configuration &configuration, ClassSet classes) const
{
    const MeshPlaces &places = placesOf(configuration);
    const auto slower = [this](const GroupShape &a, const GroupShape &b) {
        const auto seconds = [this](const GroupShape &shape) {
            return m_costs.collective(CollectiveKind::AllGather, Bytes{kLikelyBytes}, shape);
        };
        return a == b || seconds(a) >= seconds(b) ? a : b;
    };
    std::optional<ShardGroups> groups;
    const auto take = [&](std::int32_t replica, std::int32_t rank) {
        const auto over = [&](ShardAxes axes) {
            GroupShape slowest = groupShape(m_cluster, places.shardsOver(replica, rank, axes));
            const std::int32_t step = contains(axes, ShardAxes::Inner) ? configuration.innerShards() : 1;
            for (std::int32_t of = step; axes != ShardAxes::Both && of < configuration.shards; of += step)
                slowest = slower(slowest, groupShape(m_cluster, places.shardsOver(replica, rank, axes, of)));
            return slowest;
        };
        const ShardGroups own{.inner = over(ShardAxes::Inner),
            .outer = configuration.outerShards > 1 ? over(ShardAxes::Outer) : GroupShape{},
            .both = over(ShardAxes::Both),
            .apart = groupShape(m_cluster,
                {places.at(replica, rank, 0), places.at(replica, rank, configuration.shards - 1)})};
        groups = !groups ? own
                         : ShardGroups{.inner = slower(groups->inner, own.inner),
                             .outer = slower(groups->outer, own.outer),
                             .both = slower(groups->both, own.both),
                             .apart = slower(groups->apart, own.apart)};
    };
    const std::int32_t replicas = places.hasUnits ? 1 : places.replicas; // units are alike
    for (std::int32_t rank = 0; rank < places.ranks; ++rank)
        for (std::int32_t replica = 0; (places.classesOf(rank) & classes) != 0 && replica < replicas;
             ++replica) {
            const auto all = places.shardsOver(replica, rank, ShardAxes::Both);
            if ((groupShape(m_cluster, all).classes & classes) != 0)
                take(replica, rank);
        }
    if (!groups)
        take(0, 0);
    groups->innerParts = partsLike(places, configuration, groups->inner, slower);
    return *groups;
}

/// Of the first devices of the inner axis that lie like `whole`.
AxisParts StepEstimator::partsLike(const MeshPlaces &places, const Configuration &configuration,
    const GroupShape &whole, const std::function<GroupShape(GroupShape, GroupShape)> &slower) const
{
    const std::int32_t replicas = places.hasUnits ? 1 : places.replicas;
    std::vector<DeviceId> devices;
    for (std::int32_t each = 0; each < places.ranks * replicas; ++each) {
        devices = places.shardsOver(each / places.ranks, each % places.ranks, ShardAxes::Inner);
        if (groupShape(m_cluster, devices) == whole)
            break;
    }
    AxisParts parts;
    const std::int32_t count = configuration.innerShards();
    for (std::int32_t stride = 1; stride < count; ++stride)
        for (std::int32_t many = 2; count % stride == 0 && many * stride <= count; ++many) {
            if (count / stride % many != 0 || many == count)
                continue;
            for (std::int32_t first = 0; first < count; ++first) {
                if (first / stride % many != 0) // in a group that another begins
                    continue;
                std::vector<DeviceId> own;
                for (std::int32_t i = 0; i < many; ++i)
                    own.push_back(devices[static_cast<std::size_t>(first + i * stride)]);
                const GroupShape shape = groupShape(m_cluster, own);
                const auto [known, fresh] = parts.try_emplace({stride, many}, shape);
                if (!fresh)
                    known->second = slower(known->second, shape);
            }
        }
    return parts;
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
        OperatorTimes each = timesOf(*own->network, choice);
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
        .plan = &m_plan,
        .microBatches = configuration.microBatches,
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
        .joins = m_joins,
        .work = &m_work,
        .aside = &own.placed.aside};
    own.aside = AsideTimes(setting, m_cluster, own.placed);
    own.network = std::make_unique<PartitionProblem>(setting, shardGroups(configuration, classes));
    if (const OperatorId op = own.network->impossible())
        return Error{ErrorCode::InvalidInput,
            "rows leave operator '" + m_model.graph->at(op).name + "' no way to be partitioned over "
                + std::to_string(configuration.shards) + " devices",
            "allow it to be replicated, or use another mesh",
            toString(OperatorPlace{m_model.graph->at(op).name, {}})};
    own.leastWeights = own.network->leastWeightBytes();
    for (const auto &[word, plan] : m_recomputed) {
        const std::vector<double> kept = leastKeptBytes(*own.network, plan);
        own.leastKept[word] = std::accumulate(kept.begin(), kept.end(), 0.0);
        own.leastAgain[word] = own.network->leastForwardSeconds(plan.runsAgain);
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

} // namespace planloom
