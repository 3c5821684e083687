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

/// The number of a device among those that differ from it along the axes at these places, first axis first;
/// sets its coordinates along them to 0.
std::int32_t takeCoordinates(const std::vector<MeshAxis> &mesh, const std::vector<std::size_t> &places,
    std::vector<std::int32_t> &coordinates)
{
    std::int32_t number = 0;
    for (const std::size_t place : places) {
        number = number * mesh[place].size + coordinates[place];
        coordinates[place] = 0;
    }
    return number;
}

/// The axes of the row along which a cell's devices differ.
std::vector<std::size_t> sharedAxes(const std::vector<MeshAxis> &mesh, const OptimizerShardingRule &rule,
    const std::vector<DeviceId> &devices)
{
    std::vector<std::size_t> places;
    for (std::size_t a = 0; a < mesh.size(); ++a) {
        if (!sharesOver(rule, mesh[a].name))
            continue;
        std::set<std::int32_t> seen;
        for (const DeviceId device : devices)
            if (const auto coordinates = coordinatesOf(mesh, device))
                seen.insert((*coordinates)[a]);
        if (seen.size() > 1)
            places.push_back(a);
    }
    return places;
}

Sharding shardingOf(const PlanDraft &draft, const OptimizerShardingRule &rule, const Cells &cells)
{
    const std::vector<MeshAxis> &mesh = draft.bound.setting.mesh;
    Sharding sharding;
    const std::vector<std::size_t> axes =
        rule.axis.empty() ? std::vector<std::size_t>{} : sharedAxes(mesh, rule, cells.begin()->second);
    if (!rule.axis.empty() && axes.empty())
        return {};
    for (const std::size_t place : axes)
        sharding.parts *= mesh[place].size;
    for (const auto &[box, devices] : cells) {
        if (rule.axis.empty()) {
            const auto replicas = static_cast<std::int32_t>(devices.size());
            sharding.parts = rule.parts > 0 ? rule.parts : replicas;
            if (replicas % sharding.parts != 0)
                return {};
            sharding.cells.push_back(devices);
            continue;
        }
        // Groups that differ along the axes alone, by the other coordinates; each by its place in them.
        std::map<std::vector<std::int32_t>, std::map<std::int32_t, DeviceId>> groups;
        for (const DeviceId device : devices) {
            auto coordinates = coordinatesOf(mesh, device);
            if (!coordinates)
                return {};
            const std::int32_t number = takeCoordinates(mesh, axes, *coordinates);
            groups[*coordinates][number] = device;
        }
        std::vector<DeviceId> ordered;
        for (std::int32_t i = 0; i < sharding.parts; ++i)
            for (const auto &[others, members] : groups) {
                const auto member = members.find(i);
                if (member == members.end())
                    return {};
                ordered.push_back(member->second);
            }
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

namespace {

/// How `extent` is shared out among `units`.
std::vector<std::int64_t> unitShares(std::int64_t extent, std::int32_t units)
{
    const std::int64_t each = (extent + units - 1) / units;
    std::vector<std::int64_t> shares(static_cast<std::size_t>(units), each);
    for (std::size_t unit = 0; unit < shares.size(); ++unit)
        shares[unit] = std::clamp<std::int64_t>(extent - each * static_cast<std::int64_t>(unit), 0, each);
    return shares;
}

/// How the units share out what a part of `step` updates: along the first dimension that divides, else along
/// that which is padded least. Nothing where rows of the operator's kind may not be cut at all.
std::optional<Split> unitSplit(const Operator &step, const IndexMask &weight, std::int32_t units)
{
    std::optional<Split> best;
    double least = 0;
    for (std::size_t d = 0; d < weight.ranges.size(); ++d) {
        const std::int64_t extent = weight.ranges[d].size();
        const auto identifier = identifierAt(step, d);
        if (!identifier || extent < 1)
            continue;
        const std::int64_t each = (extent + units - 1) / units;
        const double padded = static_cast<double>(each * units) / static_cast<double>(extent);
        if (best && padded >= least)
            continue;
        least = padded;
        best = Split{
            .kind = SplitKind::Dimension, .dimension = *identifier, .parts = units, .over = SplitOver::Units};
        if (extent % units != 0)
            best->sizes = unitShares(extent, units);
    }
    return best;
}

} // namespace

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
        decision.rows.push_back({shardings[o]});
        std::sort(decision.rows.begin(), decision.rows.end());
        decision.rows.erase(std::unique(decision.rows.begin(), decision.rows.end()), decision.rows.end());
        Partition shared = decision.partition;
        const auto split = unitSplit(step, weight.index, units);
        if (split)
            shared.splits.push_back(*split);
        const auto &rule =
            std::get<OptimizerShardingRule>(draft.table.rows[static_cast<std::size_t>(shardings[o])].rule);
        if (split && checkPartition(step, shared)) {
            decision.partition = std::move(shared);
            decision.sharding = {rule.stage, rule.keep, rule.prefetch};
        } else
            decision.why += "; every unit updates all of it: it cannot be cut";
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
