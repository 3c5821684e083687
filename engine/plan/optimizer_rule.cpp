#include "engine/plan/optimizer_rule.h"

#include "engine/graph/operators/weight_update.h"
#include "engine/plan/default_rule.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace planloom {

namespace {

/// Which devices hold which box of a weight.
using Cells = std::map<IndexMask, std::vector<DeviceId>>;

std::int64_t volumeOf(const IndexMask &mask)
{
    return elementCount(shapeOf(mask));
}

/// The union of boxes, if that is a box too: one holds all others, or they tile their bounding box.
std::optional<IndexMask> unionOf(const std::set<IndexMask> &boxes)
{
    IndexMask bound = *boxes.begin();
    std::int64_t total = 0;
    for (const IndexMask &box : boxes) {
        total += volumeOf(box);
        for (std::size_t d = 0; d < bound.ranges.size(); ++d) {
            bound.ranges[d].begin = std::min(bound.ranges[d].begin, box.ranges[d].begin);
            bound.ranges[d].end = std::max(bound.ranges[d].end, box.ranges[d].end);
        }
    }
    if (boxes.contains(bound))
        return bound;
    if (total != volumeOf(bound))
        return std::nullopt;
    for (auto a = boxes.begin(); a != boxes.end(); ++a) {
        for (auto b = std::next(a); b != boxes.end(); ++b) {
            if (intersection(*a, *b))
                return std::nullopt;
        }
    }
    return bound;
}

/// What each device's forward parts see of `weight`.
std::map<DeviceId, std::set<IndexMask>> boxesOf(const PlanDraft &draft, TensorId weight)
{
    const Graph &graph = draft.graph();
    std::map<DeviceId, std::set<IndexMask>> boxes;
    for (const OperatorId user : draft.index().uses().consumers[static_cast<std::size_t>(weight.index)]) {
        const Operator &op = graph.at(user);
        if (op.direction != Direction::Forward)
            continue;
        const OperatorDecision &decision = draft.plan.decisions[static_cast<std::size_t>(user.index)];
        for (std::size_t slot = 0; slot < op.inputs.size(); ++slot) {
            if (op.inputs[slot] != weight)
                continue;
            for (std::size_t part = 0; part < decision.devices.size(); ++part) {
                boxes[decision.devices[part]].insert(
                    inputView(graph, op, decision.partition, static_cast<std::int32_t>(part), slot).index);
            }
        }
    }
    return boxes;
}

/// Cells with equally many devices that are a grid over the whole tensor; `cuts` gets each dimension's
/// ranges.
bool isGrid(const Cells &cells, const Shape &shape, std::vector<std::vector<Range>> &cuts)
{
    cuts.assign(shape.size(), {});
    std::size_t expected = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        std::set<Range> ranges;
        for (const auto &[box, devices] : cells)
            ranges.insert(box.ranges[d]);
        std::int64_t end = 0;
        for (const Range &range : ranges) {
            if (range.begin != end)
                return false;
            end = range.end;
        }
        if (end != shape[d])
            return false;
        cuts[d].assign(ranges.begin(), ranges.end());
        expected *= ranges.size();
    }
    if (cells.size() != expected)
        return false;
    const std::size_t replicas = cells.begin()->second.size();
    return std::all_of(
        cells.begin(), cells.end(), [&](const auto &cell) { return cell.second.size() == replicas; });
}

/// The replicas of each cell ordered so that shard i of each comes first by `i`: the new order, and the
/// number of shards; 1 where they can't be told apart along the axis.
struct Sharding {
    std::int32_t parts = 1;
    std::vector<std::vector<DeviceId>> cells{};
};

Sharding shardingOf(const PlanDraft &draft, const OptimizerShardingRule &rule, const Cells &cells)
{
    Sharding sharding;
    const auto axis = std::find_if(draft.bound.setting.mesh.begin(), draft.bound.setting.mesh.end(),
        [&](const MeshAxis &a) { return a.name == rule.axis; });
    for (const auto &[box, devices] : cells) {
        if (axis == draft.bound.setting.mesh.end()) {
            const auto replicas = static_cast<std::int32_t>(devices.size());
            sharding.parts = rule.parts > 0 ? rule.parts : replicas;
            if (replicas % sharding.parts != 0)
                return {};
            sharding.cells.push_back(devices);
            continue;
        }
        // Groups that differ along the axis alone, by the other coordinates.
        const auto position = static_cast<std::size_t>(axis - draft.bound.setting.mesh.begin());
        std::map<std::vector<std::int32_t>, std::vector<DeviceId>> groups;
        for (const DeviceId device : devices) {
            auto coordinates = coordinatesOf(draft.bound.setting.mesh, device);
            if (!coordinates)
                return {};
            (*coordinates)[position] = 0;
            groups[*coordinates].push_back(device);
        }
        std::vector<DeviceId> ordered;
        for (std::int32_t i = 0; i < axis->size; ++i) {
            for (const auto &[others, members] : groups) {
                if (members.size() != static_cast<std::size_t>(axis->size))
                    return {};
                ordered.push_back(members[static_cast<std::size_t>(i)]);
            }
        }
        sharding.parts = axis->size;
        sharding.cells.push_back(std::move(ordered));
    }
    return sharding;
}

/// Elements of a weight from which on uneven shards are worth it: each device's comes to every other one by
/// itself, which takes longer than updating all of a smaller weight everywhere.
constexpr std::int64_t kLeastUneven = std::int64_t{1} << 16;

/// The identifier that leads dimension `d` of the weight in its optimizer operator.
std::optional<std::int32_t> identifierAt(const Operator &step, std::size_t d)
{
    const TensorTerms &terms = step.annotation.inputs.front();
    if (terms.opaque || d >= terms.terms.size())
        return std::nullopt;
    return splittableFactor(step.annotation, terms.terms[d]);
}

/// The cut of replicas into shards, beside the cuts of the grid; nothing if the weight is too small.
std::optional<Split> shardSplit(const Operator &step, const Shape &shape,
    const std::vector<std::vector<Range>> &cuts, std::int32_t parts, const std::string &axis)
{
    Split split{.kind = SplitKind::Dimension, .parts = parts, .axis = axis};
    for (std::size_t d = 0; d < shape.size(); ++d) {
        const bool divides = std::all_of(cuts[d].begin(), cuts[d].end(),
            [&](const Range &r) { return r.size() > 0 && r.size() % parts == 0; });
        const auto identifier = identifierAt(step, d);
        if (divides && identifier) {
            split.dimension = *identifier;
            return split;
        }
    }
    if (elementCount(shape) < kLeastUneven)
        return std::nullopt;
    std::optional<std::size_t> longest;
    for (std::size_t d = 0; d < shape.size(); ++d) {
        if (cuts[d].size() == 1 && shape[d] >= parts && identifierAt(step, d)
            && (!longest || shape[d] > shape[*longest]))
            longest = d;
    }
    if (!longest)
        return std::nullopt;
    split.dimension = *identifierAt(step, *longest);
    const std::int64_t extent = shape[*longest];
    for (std::int32_t i = 0; i < parts; ++i)
        split.sizes.push_back(extent * (i + 1) / parts - extent * i / parts);
    return split;
}

/// The grid's cuts as splits; false if the optimizer operator cannot be cut so.
bool gridSplits(const Operator &step, const std::vector<std::vector<Range>> &cuts, std::vector<Split> &splits)
{
    for (std::size_t d = 0; d < cuts.size(); ++d) {
        if (cuts[d].size() <= 1)
            continue;
        const auto identifier = identifierAt(step, d);
        if (!identifier)
            return false;
        Split split{.kind = SplitKind::Dimension,
            .dimension = *identifier,
            .parts = static_cast<std::int32_t>(cuts[d].size())};
        const bool even = std::all_of(cuts[d].begin(), cuts[d].end(),
            [&](const Range &r) { return r.size() == cuts[d].front().size(); });
        if (!even) {
            for (const Range &range : cuts[d])
                split.sizes.push_back(range.size());
        }
        splits.push_back(std::move(split));
    }
    return true;
}

void decideOne(PlanDraft &draft, OperatorId id)
{
    const Graph &graph = draft.graph();
    const Operator &step = graph.at(id);
    const OperatorBinding &binding = draft.bindingOf(id);
    OperatorDecision &decision = draft.decisionOf(id);
    const TensorId weight = step.inputs.front();
    const auto seen = boxesOf(draft, weight);
    if (const Domain *place = binding.allowed.place ? binding.allowed.place->preferred() : nullptr;
        place || binding.allowed.splits()) {
        std::int32_t domain = place ? draft.domainNumber(*place) : -1;
        if (domain < 0) {
            std::vector<DeviceId> devices;
            for (const auto &[device, boxes] : seen)
                devices.push_back(device);
            const bool overAxes = !binding.allowed.axes.empty();
            domain = overAxes || devices.empty() ? 0 : draft.domainNumber(domainOfList(std::move(devices)));
        }
        return decideByRowsAlone(draft, id, domain);
    }

    const Shape &shape = graph.at(weight).type.shape;
    Cells cells;
    bool regular = !seen.empty();
    for (const auto &[device, boxes] : seen) {
        const auto box = unionOf(boxes);
        regular = regular && box;
        if (box)
            cells[*box].push_back(device);
    }
    std::vector<std::vector<Range>> cuts;
    std::vector<Split> splits;
    regular = regular && isGrid(cells, shape, cuts) && gridSplits(step, cuts, splits);
    decision.why = "follows how forward operators cut its weight";
    if (!regular) {
        decision.why = "its weight is cut in different ways, so every device that uses it updates all of it";
        splits.clear();
        cells.clear();
        cuts.assign(shape.size(), {});
        for (std::size_t d = 0; d < shape.size(); ++d)
            cuts[d] = {{0, shape[d]}};
        auto &devices = cells[wholeMask(shape)];
        for (const auto &[device, boxes] : seen)
            devices.push_back(device);
        if (devices.empty())
            devices.push_back(draft.domains.front().devices.front());
    }

    auto replicas = static_cast<std::int32_t>(cells.begin()->second.size());
    std::vector<std::vector<DeviceId>> ordered;
    for (const auto &[box, devices] : cells)
        ordered.push_back(devices);
    if (binding.rowOf(Aspect::Sharding) >= 0) {
        decision.rows.push_back({binding.rowOf(Aspect::Sharding)});
        const OptimizerShardingRule &rule = *binding.allowed.sharding;
        Sharding sharding = rule.stage > 0 ? shardingOf(draft, rule, cells) : Sharding{};
        const auto split = rule.stage > 0 && sharding.parts > 1
            ? shardSplit(step, shape, cuts, sharding.parts, rule.axis)
            : std::optional<Split>{};
        if (split) {
            splits.push_back(*split);
            replicas /= sharding.parts;
            decision.sharding = {rule.stage, rule.keep, rule.prefetch};
            ordered = std::move(sharding.cells);
        } else if (rule.stage > 0) {
            decision.why += "; not sharded: no replicas to share the work, or the weight is too small";
        }
    }
    if (replicas > 1)
        splits.push_back({.kind = SplitKind::Replicate, .parts = replicas});
    for (const auto &devices : ordered)
        decision.devices.insert(decision.devices.end(), devices.begin(), devices.end());
    decision.partition.splits = std::move(splits);
}

} // namespace

void decideOptimizers(PlanDraft &draft)
{
    for (std::size_t i = 0; i < draft.graph().operators.size(); ++i) {
        if (updatesWeight(draft.graph().operators[i]))
            decideOne(draft, {static_cast<std::int32_t>(i)});
    }
}

std::vector<std::int64_t> unitShares(std::int64_t extent, std::int32_t units)
{
    if (!canShareOut(extent, units))
        return {};
    const std::int64_t each = (extent + units - 1) / units;
    std::vector<std::int64_t> shares(static_cast<std::size_t>(units), each);
    shares.back() = extent - each * (units - 1);
    return shares;
}

void shareOutUpdates(PlanDraft &draft, const std::vector<std::int32_t> &shardings)
{
    for (std::size_t o = 0; o < shardings.size(); ++o) {
        if (shardings[o] < 0)
            continue;
        const OperatorId id{static_cast<std::int32_t>(o)};
        const Operator &step = draft.graph().at(id);
        OperatorDecision &decision = draft.decisionOf(id);
        const std::int32_t units = draft.plan.units.count;
        const TensorView weight = inputView(draft.graph(), step, decision.partition, 0, 0);
        // The first dimension that divides, or else the longest one of which every unit gets something.
        std::optional<std::int32_t> identifier;
        std::vector<std::int64_t> sizes;
        for (std::size_t d = 0; !identifier && d < weight.index.ranges.size(); ++d)
            if (weight.index.ranges[d].size() % units == 0 && weight.index.ranges[d].size() > 0)
                identifier = identifierAt(step, d);
        std::int64_t longest = 0;
        for (std::size_t d = 0; (!identifier || !sizes.empty()) && d < weight.index.ranges.size(); ++d) {
            const std::int64_t extent = weight.index.ranges[d].size();
            const auto its = identifierAt(step, d);
            auto shares = unitShares(extent, units);
            if (!its || extent <= longest || shares.empty())
                continue;
            longest = extent;
            identifier = its;
            sizes = std::move(shares);
        }
        decision.rows.push_back({shardings[o]});
        std::sort(decision.rows.begin(), decision.rows.end());
        Partition shared = decision.partition;
        if (identifier)
            shared.splits.push_back({.kind = SplitKind::Dimension,
                .dimension = *identifier,
                .parts = units,
                .sizes = std::move(sizes),
                .over = SplitOver::Units});
        const auto &rule =
            std::get<OptimizerShardingRule>(draft.table.rows[static_cast<std::size_t>(shardings[o])].rule);
        if (identifier && checkPartition(step, shared)) {
            decision.partition = std::move(shared);
            decision.sharding = {rule.stage, rule.keep, rule.prefetch};
        } else
            decision.why +=
                "; every unit updates all of it: none of its dimensions divides by " + std::to_string(units);
    }
}

void groupShardedWeights(PlanDraft &draft)
{
    const Graph &graph = draft.graph();
    std::set<TensorId> sharded;
    for (std::size_t o = 0; o < graph.operators.size(); ++o)
        if (draft.plan.decisions[o].sharding.stage > 1)
            sharded.insert(graph.operators[o].inputs.front());
    if (sharded.empty())
        return;
    for (std::size_t o = 0; o < graph.operators.size(); ++o) {
        const Operator &op = graph.operators[o];
        if (op.direction == Direction::Optimizer)
            continue;
        const OperatorId id{static_cast<std::int32_t>(o)};
        const OperatorId forward = op.direction == Direction::Backward ? op.mirror : id;
        const bool reads = std::any_of(graph.at(forward).inputs.begin(), graph.at(forward).inputs.end(),
            [&](TensorId input) { return sharded.contains(input); });
        if (reads)
            draft.decisionOf(id).gatherGroup = draft.index().layerOf(forward);
    }
}

} // namespace planloom
