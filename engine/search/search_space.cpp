#include "engine/search/search_space.h"

#include "engine/base/divisors.h"
#include "engine/base/words.h"
#include "engine/search/memory/recompute_choice.h"
#include "engine/table/kinds/meaning.h"
#include "engine/table/layer_layout.h"
#include "engine/table/mesh_axes.h"
#include "engine/table/selector_index.h"
#include "engine/table/table_mesh.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string_view>

namespace planloom {

namespace {

constexpr std::int32_t kMostStagesPerRank = 4;
constexpr std::int32_t kMostMicroBatches = 256;
/// See `thinOut`; each takes some 4 KB.
constexpr std::size_t kMostProblemOperators = 1'500'000;
constexpr double kApart = 1.9;
/// Of so many devices any number may be left idle; of more, those that no divisor and no power of two leaves
/// over are one in so many at most.
constexpr std::int32_t kFewDevices = 16;
constexpr std::int32_t kMostIdle = 4;

template<typename R> bool hasRow(const ConstraintTable &rows)
{
    return std::any_of(rows.rows.begin(), rows.rows.end(),
        [](const Row &row) { return row.enabled && std::holds_alternative<R>(row.rule); });
}

bool keepsTo(const std::vector<std::pair<RowId, DegreeRule>> &degrees, const Configuration &configuration)
{
    return std::all_of(degrees.begin(), degrees.end(), [&](const auto &row) {
        const auto value = degreeOf(configuration, row.second.degree);
        return !value || row.second.bound.allows(*value);
    });
}

struct MeshSizes {
    std::int32_t replicas = 1;
    std::int32_t ranks = 1;
    std::int32_t shards = 1;
    bool ranksOutside = false;
    std::int32_t outerShards = 1;
};

/// Whether so many of the devices, the first ones, are worth a mesh of their own.
bool isWorthAMesh(const Cluster &cluster, std::int32_t deviceCount, std::int32_t used)
{
    const auto isOfOneClass = [&] { // and the next one is of another
        return cluster.classAt(used - 1) != cluster.classAt(used);
    };
    return deviceCount <= kFewDevices || deviceCount % used == 0 || (used & (used - 1)) == 0
        || used * kMostIdle >= deviceCount * (kMostIdle - 1)
        || (!cluster.otherClasses.empty() && isOfOneClass());
}

/// Meshes of all devices; and of some of them where that may be better: where numbers do not divide, where
/// there is too little work for all, or where the others are slower.
std::vector<MeshSizes> meshesOf(const Model &model, const Cluster &cluster, std::int32_t deviceCount)
{
    std::vector<MeshSizes> meshes;
    for (const std::int32_t shards : divisorsOf(deviceCount))
        for (const std::int32_t ranks : divisorsOf(deviceCount / shards))
            meshes.push_back({deviceCount / shards / ranks, ranks, shards});
    const std::int32_t node = cluster.links.devicesPerNode;
    for (const std::int32_t shards : usefulShards(model, deviceCount))
        for (std::int32_t ranks = 1; ranks * shards <= deviceCount; ++ranks)
            for (std::int32_t replicas = 1; replicas * ranks * shards < deviceCount; ++replicas) {
                const std::int32_t used = replicas * ranks * shards;
                // All groups of shards lie over nodes in the same way.
                const bool isAligned = used <= node || node % shards == 0 || shards % node == 0;
                if (isAligned && isWorthAMesh(cluster, deviceCount, used))
                    meshes.push_back({replicas, ranks, shards});
            }
    // Where devices differ, those of one class can have stages of their own.
    if (!cluster.otherClasses.empty())
        for (std::size_t i = 0, count = meshes.size(); i < count; ++i)
            if (MeshSizes outside = meshes[i]; outside.replicas > 1 && outside.ranks > 1) {
                outside.ranksOutside = true;
                meshes.push_back(outside);
            }
    return meshes;
}

/// A mesh that a row gives, and its axes.
MeshSizes readMesh(const std::vector<MeshAxis> &mesh, SearchSpace &space)
{
    space.ownMesh = true;
    std::array<std::int32_t, 4> sizes{1, 1, 1, 1}; // by role, and the outer one of two shard axes
    const std::vector<AxisRole> usual = space.ownOrder;
    space.ownOrder.clear();
    for (const MeshAxis &axis : mesh) {
        const AxisRole role = roleOf(axis);
        std::int32_t &size = sizes[static_cast<std::size_t>(role)];
        const bool isKnown =
            std::find(space.ownOrder.begin(), space.ownOrder.end(), role) != space.ownOrder.end();
        if (role == AxisRole::Shards && isKnown) {
            if (axis.size == 1)
                continue;
            if (size > 1) {
                sizes.back() = size;
                space.outerShardAxis = space.shardAxis;
            } else {
                std::erase(space.ownOrder, role); // that of one device
            }
        }
        space.ownOrder.push_back(role);
        size = role == AxisRole::Shards ? size * axis.size : axis.size;
        (role == AxisRole::Replicas       ? space.replicaAxis
                : role == AxisRole::Ranks ? space.rankAxis
                                          : space.shardAxis) = axis.name;
    }
    for (const AxisRole role : usual)
        if (std::find(space.ownOrder.begin(), space.ownOrder.end(), role) == space.ownOrder.end())
            space.ownOrder.push_back(role);
    return {sizes[0], sizes[1], sizes[2], false, sizes[3]};
}

/// Schedules of so many ranks and micro-batches that rows allow, with their stages a rank.
std::vector<std::pair<ScheduleKind, std::int32_t>> ordersOf(const ConstraintTable &rows,
    const PlanMeaning &said, std::int32_t ranks, std::int32_t microBatches, bool trains)
{
    if (ranks == 1)
        return {{ScheduleKind::Sequential, 1}};
    std::vector<std::pair<ScheduleKind, std::int32_t>> orders;
    for (const ScheduleKind kind : kSearchedSchedules) {
        if (kind == ScheduleKind::ZeroBubbleH1 && !trains)
            continue;
        const std::int32_t first = kind == ScheduleKind::Interleaved ? 2 : 1;
        const std::int32_t last = first == 1 ? 1 : microBatches % ranks == 0 ? kMostStagesPerRank : 0;
        for (std::int32_t chunks = first; chunks <= last; ++chunks)
            orders.emplace_back(kind, chunks);
    }
    const auto row = scheduleRowAt(rows, microBatches);
    const auto *own =
        row ? &std::get<ScheduleRule>(rows.rows[static_cast<std::size_t>(row->index)].rule) : nullptr;
    std::erase_if(orders, [&](const auto &order) {
        return own ? order.first != own->kind : !allows(said.scheduleLeft, order.first);
    });
    return orders;
}

/// Operators of all partition problems that a space leads to: one for each number of shards, replicas and
/// micro-batches.
std::size_t problemOperators(const Model &model, const std::vector<Configuration> &configurations)
{
    std::set<std::array<std::int32_t, 3>> problems;
    for (const Configuration &each : configurations)
        problems.insert({each.shards, each.replicas, each.microBatches});
    return problems.size() * model.index->forwardCount();
}

/// Of hundreds of devices and samples that many numbers divide there are more combinations than memory has
/// room for. What is least likely to be best is left out, one kind after the other, until there is: shards
/// over more than two nodes, numbers of micro-batches near others, meshes that leave devices idle.
void thinOut(const Model &model, const Cluster &cluster, std::int32_t deviceCount,
    std::vector<Configuration> &configurations)
{
    std::set<std::int32_t> counts;
    for (const Configuration &each : configurations)
        counts.insert(each.microBatches);
    std::set<std::int32_t> apart; // from one another
    for (const std::int32_t count : counts)
        if (apart.empty() || count >= kApart * *apart.rbegin())
            apart.insert(count);
    const std::array<std::function<bool(const Configuration &)>, 3> leaveOut{
        [&](const Configuration &each) { return each.shards > 2 * cluster.links.devicesPerNode; },
        [&](const Configuration &each) { return !apart.contains(each.microBatches); },
        [&](const Configuration &each) { return each.devices() < deviceCount; }};
    for (const auto &isLeftOut : leaveOut) {
        if (problemOperators(model, configurations) <= kMostProblemOperators)
            return;
        if (!std::all_of(configurations.begin(), configurations.end(), isLeftOut))
            std::erase_if(configurations, isLeftOut);
    }
}

template<typename... Rules> bool isAnyOf(const Rule &rule)
{
    return (std::holds_alternative<Rules>(rule) || ...);
}

/// Whether rows say nothing of devices, stages and how operators are cut: they are about the model, its
/// number formats, and what a step does besides.
bool sayNothingOfGroups(const ConstraintTable &rows)
{
    return std::all_of(rows.rows.begin(), rows.rows.end(), [](const Row &row) {
        const auto *sharding = std::get_if<OptimizerShardingRule>(&row.rule);
        const auto *microBatches = std::get_if<MicroBatchesRule>(&row.rule);
        return !row.enabled || (sharding && sharding->axis.empty() && sharding->parts == 0)
            || (microBatches && !microBatches->whole && microBatches->updateEvery == 0)
            || isAnyOf<ScheduleRule, RecomputeRule, LimitRule, PrecisionRule, AttentionRule,
                DimensionSizeRule, CapacityRule, UnrollRule>(row.rule);
    });
}

/// Rows that name stages, or their number.
bool keepsToStages(const ConstraintTable &rows, const Configuration &configuration)
{
    return std::all_of(rows.rows.begin(), rows.rows.end(), [&](const Row &row) {
        if (const auto *layout = std::get_if<LayoutRule>(&row.rule); layout && row.enabled) {
            const auto stages = parseLayout(layout->layout);
            return row.preference > 0 || !stages
                || static_cast<std::int64_t>(stages->size()) == configuration.stages();
        }
        const auto *rule = std::get_if<StageRule>(&row.rule);
        return !rule || !row.enabled || row.preference > 0
            || (rule->index < configuration.stages()
                && (rule->count == 0 || rule->count == configuration.stages()));
    });
}

} // namespace

const char *nameOf(RecomputeWord word)
{
    constexpr std::array kNames{"none", "selective", "full"};
    return kNames[static_cast<std::size_t>(word)];
}

bool batchDivides(const Model &model, std::int64_t cuts)
{
    const BatchInfo &batch = *model.batch;
    if (cuts == 1)
        return true;
    if (batch.size == 0 || batch.size % cuts != 0)
        return false;
    for (std::size_t i = 0; i < model.graph->operators.size(); ++i) {
        const Operator &op = model.graph->operators[i];
        const std::int32_t dimension = batch.operatorDimension[i];
        if (dimension < 0 || op.direction == Direction::Optimizer)
            continue;
        const Dimension &own = op.annotation.dimensions[static_cast<std::size_t>(dimension)];
        if (own.size > 1 && own.size % cuts != 0)
            return false;
    }
    return true;
}

std::vector<std::int32_t> usefulShards(const Model &model, std::int32_t most)
{
    std::map<std::vector<std::int64_t>, double> work; // by the sizes of the dimensions that may be split
    for (const Operator &op : model.graph->operators) {
        if (op.direction != Direction::Forward)
            continue;
        double points = 1;
        for (const Dimension &dimension : op.annotation.dimensions)
            points *= static_cast<double>(std::max<std::int64_t>(dimension.size, 1));
        std::vector<std::int64_t> sizes;
        for (const std::int32_t dimension : splittableDimensions(op.annotation))
            sizes.push_back(op.annotation.dimensions[static_cast<std::size_t>(dimension)].size);
        work[sizes] += points;
    }
    std::vector<std::int32_t> useful;
    double least = std::numeric_limits<double>::infinity();
    for (std::int32_t shards = 1; shards <= most; ++shards) {
        double left = 0; // of the work, on each device
        for (const auto &[sizes, points] : work) {
            const bool isCut = std::any_of(
                sizes.begin(), sizes.end(), [&](std::int64_t size) { return size % shards == 0; });
            left += isCut ? points / shards : points;
        }
        if (left >= least)
            continue;
        least = left;
        useful.push_back(shards);
    }
    return useful;
}

std::int32_t Configuration::devices() const
{
    std::int32_t all = isUnequal() ? 0 : replicas * ranks * shards;
    for (const StageGroup &group : groups)
        all += group.devices();
    return all;
}

Configuration Configuration::ofStage(std::size_t s) const
{
    Configuration own = *this;
    own.groups.clear();
    own.ranks = 1;
    own.replicas = groups[s].replicas;
    own.shards = groups[s].shards;
    own.firstDevice = groups[s].first;
    return own;
}

std::string toString(const Configuration &configuration)
{
    std::string text;
    const auto add = [&](const std::string &part) { text += (text.empty() ? "" : ", ") + part; };
    std::string shards = std::to_string(configuration.innerShards());
    if (configuration.outerShards > 1)
        shards = std::to_string(configuration.outerShards) + "x" + shards;
    for (const auto &[name, size] :
        {std::pair{"dp", configuration.replicas}, {"pp", configuration.ranks}, {"tp", configuration.shards}})
        if (size > 1)
            add(std::string(name) + " " + (name == std::string_view("tp") ? shards : std::to_string(size)));
    if (configuration.isUnequal()) {
        std::string groups;
        for (const StageGroup &group : configuration.groups)
            groups += (groups.empty() ? "" : ", ") + std::to_string(group.devices())
                + (group.shards > 1 ? " (tp " + std::to_string(group.shards) + ")" : "");
        text = "stages on " + groups + " devices";
    }
    if (configuration.stagesPerRank > 1)
        add(counted(configuration.stagesPerRank, "stage") + " a rank");
    if (configuration.microBatches > 1)
        add(counted(configuration.microBatches, "micro-batch"));
    if (configuration.ranks > 1)
        add(nameOf(configuration.schedule));
    if (configuration.ranksOutside)
        add("pp outermost");
    if (configuration.zero > 0)
        add("zero" + std::to_string(configuration.zero));
    if (configuration.recompute != RecomputeWord::None)
        add(std::string("recompute ") + nameOf(configuration.recompute));
    if (configuration.inTurns)
        add("in turns");
    return text.empty() ? "one device" : text;
}

std::optional<std::int32_t> degreeOf(const Configuration &configuration, Degree degree)
{
    switch (degree) {
    case Degree::Data:
        return configuration.replicas;
    case Degree::Tensor:
        return configuration.shards;
    case Degree::Pipeline:
        return configuration.ranks;
    case Degree::Stages:
        return configuration.stages();
    case Degree::MicroBatches:
        return configuration.microBatches;
    case Degree::Sequence:
    case Degree::Expert:
        break;
    }
    return std::nullopt;
}

std::vector<AxisRole> axisOrder(const Configuration &configuration, const SearchSpace &space)
{
    std::vector<AxisRole> order = space.ownOrder;
    const auto shards = std::find(order.begin(), order.end(), AxisRole::Shards);
    if (configuration.outerShards > 1 && std::count(order.begin(), order.end(), AxisRole::Shards) < 2)
        order.insert(shards, AxisRole::Shards);
    if (configuration.ranksOutside)
        std::stable_partition(
            order.begin(), order.end(), [](AxisRole role) { return role == AxisRole::Ranks; });
    return order;
}

std::vector<ShardAxes> Configuration::shardSums() const
{
    std::vector<ShardAxes> sums{ShardAxes::None};
    if (shards > 1)
        sums.push_back(ShardAxes::Inner);
    if (outerShards > 1)
        sums.insert(sums.end(), {ShardAxes::Outer, ShardAxes::Both});
    return sums;
}

MeshRule meshRule(const Configuration &configuration, const SearchSpace &space)
{
    MeshRule mesh;
    bool isOuter = configuration.outerShards > 1; // of the shards' axes that comes next
    for (const AxisRole role : axisOrder(configuration, space)) {
        const auto &[name, size] = role == AxisRole::Replicas
            ? std::pair{space.replicaAxis, configuration.replicas}
            : role == AxisRole::Ranks ? std::pair{space.rankAxis, configuration.ranks}
            : isOuter                 ? std::pair{space.outerShardAxis, configuration.outerShards}
                                      : std::pair{space.shardAxis, configuration.innerShards()};
        isOuter = isOuter && role != AxisRole::Shards;
        if (size > 1)
            mesh.axes.push_back({name, size});
    }
    return mesh;
}

std::optional<std::string> nothingToSearch(const Model &model, const ConstraintTable &rows)
{
    if (!model)
        return "there is no model";
    if (hasRow<LanesRule>(rows) || hasRow<SliceRule>(rows) || hasRow<WeightVersionsRule>(rows))
        return "rows ask for lanes, slices or older weights, which the search does not price";
    for (const Row &row : rows.rows)
        if (const auto *split = std::get_if<OpTransRule>(&row.rule); split && row.enabled
            && std::any_of(
                split->steps.begin(), split->steps.end(), [](const SplitStep &step) { return step.zigzag; }))
            return "rows cut in zigzags, which the search does not price";
    if (const std::vector<MeshAxis> mesh = meshOf(rows); !mesh.empty()) {
        std::array<std::vector<std::int32_t>, 3> roles; // sizes
        for (const MeshAxis &axis : mesh)
            roles[static_cast<std::size_t>(roleOf(axis))].push_back(axis.size);
        std::vector<std::int32_t> &shards = roles[static_cast<std::size_t>(AxisRole::Shards)];
        std::erase(shards, 1); // nothing is cut over them
        if (roles[static_cast<std::size_t>(AxisRole::Replicas)].size() > 1
            || roles[static_cast<std::size_t>(AxisRole::Ranks)].size() > 1 || shards.size() > 2)
            return "the mesh has more axes than the search can tell the use of (dp, pp and two others)";
    }
    return std::nullopt;
}

Result<SearchSpace> searchSpaceOf(
    const Model &model, const Cluster &cluster, std::int32_t deviceCount, const ConstraintTable &rows)
{
    SearchSpace space;
    space.ownMicroBatches = hasRow<MicroBatchesRule>(rows);
    const PlanMeaning said = planMeaning(model, deviceCount, rows);
    space.sharding = shardingLeft(model, rows);
    space.ownRecompute = !leavesRecomputation(rows);
    space.leavesGroups = sayNothingOfGroups(rows);
    space.memoryLimit = static_cast<std::int64_t>(leastMemory(cluster));
    for (const Row &row : rows.rows)
        if (const auto *limit = std::get_if<LimitRule>(&row.rule); limit && row.enabled) {
            if (limit->kind == LimitRule::Kind::Memory)
                space.memoryLimit = std::min(space.memoryLimit, limit->value);
            if (limit->kind == LimitRule::Kind::Traffic)
                space.trafficLimits.push_back(*limit);
        }

    const std::vector<MeshAxis> mesh = meshOf(rows);
    const std::vector<MeshSizes> meshes =
        !mesh.empty() ? std::vector{readMesh(mesh, space)} : meshesOf(model, cluster, deviceCount);
    const bool trains = std::any_of(model.graph->operators.begin(), model.graph->operators.end(),
        [](const Operator &op) { return op.direction == Direction::Backward; });
    std::vector<std::int32_t> counts{said.microBatches};
    if (!space.ownMicroBatches)
        counts = divisorsOf(static_cast<std::int32_t>(
            std::clamp<std::int64_t>(model.batch->size, 1, std::numeric_limits<std::int32_t>::max())));
    std::vector<RecomputeWord> words{RecomputeWord::None};
    if (!space.ownRecompute && trains)
        for (const RecomputeWord word : {RecomputeWord::Selective, RecomputeWord::Full})
            if (const auto chosen = recomputeChoice(model, rows, word); chosen && !chosen->rows.empty())
                words.push_back(word);
    for (const auto &[replicas, ranks, shards, ranksOutside, outerShards] : meshes)
        for (const std::int32_t microBatches : counts) {
            if (microBatches > std::min<std::int64_t>(kMostMicroBatches, model.batch->mostMicroBatches)
                && !space.ownMicroBatches)
                continue;
            if (!said.wholeBatches && !batchDivides(model, std::int64_t{replicas} * microBatches))
                continue;
            const std::int32_t mostZero = trains && replicas > 1 && space.sharding.left > 0 ? 3 : 0;
            for (const auto &[schedule, chunks] : ordersOf(rows, said, ranks, microBatches, trains))
                for (std::int32_t zero = space.sharding.isLeft ? 0 : space.sharding.own;
                     zero <= (space.sharding.isLeft ? mostZero : space.sharding.own); ++zero)
                    for (const RecomputeWord word : words)
                        if (const Configuration each{replicas, ranks, shards, chunks, microBatches, schedule,
                                zero, word, ranksOutside, outerShards};
                            keepsTo(said.degrees, each) && keepsToStages(rows, each))
                            space.configurations.push_back(each);
        }
    thinOut(model, cluster, deviceCount, space.configurations);
    if (space.configurations.empty())
        return Error{ErrorCode::InvalidInput,
            "no mesh of " + counted(deviceCount, "device")
                + " and number of micro-batches fits the rows and a "
                  "batch of "
                + counted(model.batch->size, "sample"),
            "change the batch, the micro-batches or the mesh", "search"};
    return space;
}

} // namespace planloom
