#include "engine/search/time/step_problems.h"

#include "engine/base/place.h"
#include "engine/gallery/gallery_rows.h"
#include "engine/graph/operators/catalogue.h"
#include "engine/plan/plan_draft.h"
#include "engine/search/memory/operator_memory.h"
#include "engine/search/partition/summand_joins.h"
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
    const auto *layout = std::get_if<LayoutRule>(&row.rule);
    return std::holds_alternative<OpAssignRule>(row.rule) || std::holds_alternative<SpreadRule>(row.rule)
        || (layout && !layout->axis.empty());
}

std::vector<Precision> precisionsOf(const Plan &plan)
{
    std::vector<Precision> precisions;
    for (const OperatorDecision &decision : plan.decisions)
        precisions.push_back(decision.precision);
    return precisions;
}

} // namespace

StepProblems::StepProblems(const StepSetting &setting)
    : m_setting(setting)
    , m_types(*setting.model.graph, precisionsOf(setting.plan))
    , m_alike(std::make_shared<const std::vector<std::int32_t>>(
          alikeOperators(setting.model, setting.plan, m_types)))
    , m_joins(std::make_shared<const std::vector<bool>>(summandJoins(setting.model)))
    , m_stageRows(stageRowsOf(bindTable(setting.model, setting.deviceCount, setting.rows)))
{
}

const MeshPlaces &StepProblems::placesOf(const Configuration &configuration) const
{
    const auto [own, fresh] = m_places.try_emplace(meshKeyOf(configuration));
    if (fresh)
        own->second = meshPlaces(configuration, m_setting.space, m_setting.cluster, m_setting.deviceCount);
    return own->second;
}

StepProblems::Key StepProblems::keyOf(const Configuration &configuration) const
{
    return keyOf(configuration, placesOf(configuration).allClasses());
}

StepProblems::Key StepProblems::keyOf(const Configuration &configuration, ClassSet classes) const
{
    // Rows are read with a mesh; without rows about operators all meshes are alike.
    const bool meshMatters =
        std::any_of(m_setting.rows.rows.begin(), m_setting.rows.rows.end(), [](const Row &row) {
            return row.enabled
                && (std::holds_alternative<OpTransRule>(row.rule)
                    || std::holds_alternative<PartsRule>(row.rule)
                    || std::holds_alternative<AlikeRule>(row.rule)
                    || std::holds_alternative<FollowRule>(row.rule)
                    || std::holds_alternative<DegreeRule>(row.rule) || placesOperators(row));
        });
    const std::int32_t ranks = configuration.ranksOutside ? -configuration.ranks : configuration.ranks;
    return {configuration.shards, configuration.replicas, configuration.microBatches, meshMatters ? ranks : 0,
        configuration.outerShards, classes};
}

/// Of several classes, each thing as the fastest does it.
const CostModel &StepProblems::costsOf(ClassSet classes)
{
    if (std::has_single_bit(classes))
        return m_setting.costs;
    const auto [own, fresh] = m_leastCosts.try_emplace(classes);
    if (fresh)
        own->second = fastestOf(m_setting.costs, classes);
    return own->second;
}

/// Of the groups with devices of these classes the slowest: others wait for them, and groups whose size does
/// not divide a node's lie within one or across two.
ShardGroups StepProblems::shardGroups(const Configuration &configuration, ClassSet classes) const
{
    const MeshPlaces &places = placesOf(configuration);
    const auto slower = [this](const GroupShape &a, const GroupShape &b) {
        const auto seconds = [this](const GroupShape &shape) {
            return m_setting.costs.collective(CollectiveKind::AllGather, Bytes{kLikelyBytes}, shape);
        };
        return a == b || seconds(a) >= seconds(b) ? a : b;
    };
    std::optional<ShardGroups> groups;
    const auto take = [&](std::int32_t replica, std::int32_t rank) {
        const auto over = [&](ShardAxes axes) {
            GroupShape slowest = groupShape(m_setting.cluster, places.shardsOver(replica, rank, axes));
            const std::int32_t step = contains(axes, ShardAxes::Inner) ? configuration.innerShards() : 1;
            for (std::int32_t of = step; axes != ShardAxes::Both && of < configuration.shards; of += step)
                slowest = slower(
                    slowest, groupShape(m_setting.cluster, places.shardsOver(replica, rank, axes, of)));
            return slowest;
        };
        const ShardGroups own{.inner = over(ShardAxes::Inner),
            .outer = configuration.outerShards > 1 ? over(ShardAxes::Outer) : GroupShape{},
            .both = over(ShardAxes::Both),
            .apart = groupShape(m_setting.cluster,
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
            if ((groupShape(m_setting.cluster, all).classes & classes) != 0)
                take(replica, rank);
        }
    if (!groups)
        take(0, 0);
    groups->innerParts = partsLike(places, configuration, groups->inner, slower);
    return *groups;
}

/// Of the first devices of the inner axis that lie like `whole`.
AxisParts StepProblems::partsLike(const MeshPlaces &places, const Configuration &configuration,
    const GroupShape &whole, const std::function<GroupShape(GroupShape, GroupShape)> &slower) const
{
    const std::int32_t replicas = places.hasUnits ? 1 : places.replicas;
    std::vector<DeviceId> devices;
    for (std::int32_t each = 0; each < places.ranks * replicas; ++each) {
        devices = places.shardsOver(each / places.ranks, each % places.ranks, ShardAxes::Inner);
        if (groupShape(m_setting.cluster, devices) == whole)
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
                const GroupShape shape = groupShape(m_setting.cluster, own);
                const auto [known, fresh] = parts.try_emplace({stride, many}, shape);
                if (!fresh)
                    known->second = slower(known->second, shape);
            }
        }
    return parts;
}

Result<StepProblem *> StepProblems::of(const Configuration &configuration)
{
    return of(configuration, placesOf(configuration).allClasses());
}

Result<StepProblem *> StepProblems::of(const Configuration &configuration, ClassSet classes)
{
    const auto [it, fresh] = m_problems.try_emplace(keyOf(configuration, classes));
    if (fresh)
        if (auto made = make(configuration, classes, it->second); !made)
            it->second.error = std::move(made).error();
    if (it->second.error)
        return *it->second.error;
    return &it->second;
}

Result<const PartitionProblem *> StepProblems::slowestOf(const Configuration &configuration, ClassSet classes)
{
    const PartitionProblem *slowest = nullptr;
    for (ClassSet left = classes; left != 0; left &= left - 1) {
        TRY(const StepProblem *own, of(configuration, left & (~left + 1)));
        if (!slowest || own->network->leastKernelSeconds() > slowest->leastKernelSeconds())
            slowest = own->network.get();
    }
    return slowest;
}

Result<OperatorTimes> StepProblems::slowestTimes(
    const Configuration &configuration, ClassSet classes, const std::vector<std::int32_t> &choice)
{
    OperatorTimes times;
    for (ClassSet left = classes; left != 0; left &= left - 1) {
        TRY(const StepProblem *own, of(configuration, left & (~left + 1)));
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

Result<RankReductions> StepProblems::reductionsOf(const Configuration &configuration)
{
    const MeshPlaces &places = placesOf(configuration);
    std::map<ClassSet, const PartitionProblem *> problems;
    for (std::int32_t rank = 0; rank < places.ranks; ++rank) {
        const ClassSet classes = places.classesOf(rank);
        if (!problems.contains(classes)) {
            TRY(problems[classes], slowestOf(configuration, classes));
        }
    }
    return RankReductions(configuration, places, m_setting.costs, m_setting.cluster,
        [&](ClassSet classes) -> const PartitionProblem & { return *problems.at(classes); });
}

Result<const BoundTable *> StepProblems::boundFor(const Configuration &configuration)
{
    if (std::get<3>(keyOf(configuration)) == 0)
        return nullptr;
    Bound &read = m_bounds[meshKeyOf(configuration)];
    if (!read.table) {
        ConstraintTable table = m_setting.rows;
        if (!m_setting.space.ownMesh) {
            MeshRule mesh = meshRule(configuration, m_setting.space);
            if (!mesh.axes.empty())
                table.rows.push_back(templateRow({}, std::move(mesh)));
        }
        read.table = std::make_unique<BoundTable>(bindTable(m_setting.model, m_setting.deviceCount, table));
        for (const RowReport &report : read.table->reports)
            if (report.error && !read.error)
                read.error = report.error;
    }
    if (read.error)
        return *read.error;
    return read.table.get();
}

AxisSetting StepProblems::axisSetting(ClassSet classes)
{
    return {.model = &m_setting.model,
        .plan = &m_setting.plan,
        .types = &m_types,
        .costs = &costsOf(classes),
        .deviceClass = std::countr_zero(classes),
        .alike = m_alike,
        .joins = m_joins};
}

Result<void> StepProblems::make(const Configuration &configuration, ClassSet classes, StepProblem &own)
{
    TRY(const BoundTable *bound, boundFor(configuration));
    if (bound) {
        TRY(own.placed, placedOperators(*bound, m_setting.space.rankAxis));
    }
    AxisSetting setting = axisSetting(classes);
    setting.microBatches = configuration.microBatches;
    setting.bound = bound;
    setting.axis = m_setting.space.shardAxis;
    setting.parts = configuration.innerShards();
    setting.outerAxis = configuration.outerShards > 1 ? m_setting.space.outerShardAxis : std::string{};
    setting.outerParts = configuration.outerShards;
    setting.batchCuts = configuration.batchCuts();
    setting.replicaAxis = m_setting.space.replicaAxis;
    setting.replicas = configuration.replicas;
    setting.work = &m_work;
    setting.aside = &own.placed.aside;
    own.aside = AsideTimes(setting, m_setting.cluster, own.placed);
    own.network = std::make_unique<PartitionProblem>(setting, shardGroups(configuration, classes));
    if (const OperatorId op = own.network->impossible())
        return Error{ErrorCode::InvalidInput,
            "rows leave operator '" + m_setting.model.graph->at(op).name + "' no way to be partitioned over "
                + std::to_string(configuration.shards) + " devices",
            "allow it to be replicated, or use another mesh",
            toString(OperatorPlace{m_setting.model.graph->at(op).name, {}})};
    own.leastWeights = own.network->leastWeightBytes();
    for (const auto &[word, plan] : m_setting.recomputed) {
        const std::vector<double> kept = leastKeptBytes(*own.network, plan);
        own.leastKept[word] = std::accumulate(kept.begin(), kept.end(), 0.0);
        own.leastAgain[word] = own.network->leastForwardSeconds(plan.runsAgain);
    }
    return {};
}

OperatorTimes StepProblems::replicaTimes(
    const Configuration &configuration, const std::vector<double> &shares)
{
    if (configuration.replicas < 2)
        return {};
    const auto own = m_problems.find(keyOf(configuration));
    const StepProblem *placing =
        own != m_problems.end() && !own->second.placed.aside.empty() ? &own->second : nullptr;
    const MeshPlaces &places = placesOf(configuration);
    const ClassSet classes = places.allClasses();
    auto &problem = m_replicas[{
        placing ? own->first : Key{0, configuration.replicas, configuration.microBatches, 0, 1, classes},
        places.replicaStride}];
    if (!problem) {
        AxisSetting setting = axisSetting(classes);
        setting.axis = m_setting.space.replicaAxis;
        setting.parts = configuration.replicas;
        setting.batchCuts = configuration.microBatches;
        setting.aside = placing ? &placing->placed.aside : nullptr;
        setting.batchAlone = true;
        problem = std::make_unique<PartitionProblem>(
            setting, ShardGroups{.inner = groupShape(m_setting.cluster, places.replicaGroup(0, 0))});
    }
    const std::vector<std::int32_t> first(problem->operatorCount(), 0);
    OperatorTimes times = timesOf(*problem, first, shares);
    for (std::size_t i = 0; i < first.size(); ++i) {
        times.forward[i] -= problem->choiceOf(i, 0).forward;
        times.backward[i] -= problem->choiceOf(i, 0).backward;
    }
    return times;
}

std::vector<std::int32_t> StepProblems::outerShardsFor(std::int32_t shards)
{
    if (!m_nested) {
        AxisSetting setting = axisSetting(1);
        setting.axis = m_setting.space.shardAxis;
        m_nested.emplace(setting);
    }
    return m_nested->outerShards(shards);
}

Result<StageRows> StepProblems::stageRowsFor(const Configuration &configuration) const
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
                "rows put operator '" + m_setting.model.graph->operators[i].name + "' into stage "
                    + std::to_string(rows.byRow[i]) + " and on rank " + std::to_string(rank),
                "use another mesh", "search"};
        if (rank >= 0)
            rows.byRow[i] = rank;
    }
    return rows;
}

} // namespace planloom
