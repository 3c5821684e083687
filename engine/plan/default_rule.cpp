#include "engine/plan/default_rule.h"

#include "engine/base/words.h"
#include "engine/binding/followers.h"
#include "engine/plan/default_rule_steps.h"
#include "engine/plan/followed_split.h"
#include "engine/plan/open_sums.h"
#include "engine/plan/sharing_rule.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace planloom {

namespace {

std::int32_t coshardParts(const OperatorBinding &binding)
{
    const Split *coshard = binding.allowed.coshard.preferred();
    return coshard ? coshard->parts : 1;
}

std::string partsText(std::int64_t parts, std::size_t devices)
{
    return counted(parts, "part") + " on " + counted(static_cast<std::int64_t>(devices), "device");
}

} // namespace

std::vector<Split> insideBlocks(const Partition &partition)
{
    return {partition.splits.begin() + static_cast<std::ptrdiff_t>(blockSplits(partition)),
        partition.splits.end()};
}

void DefaultRule::chooseDomains()
{
    std::vector<const AllowedPlace *> known; // by number in `numbers`
    std::vector<std::int32_t> numbers;
    for (std::size_t i = 0; i < m_domainOf.size(); ++i) {
        const AllowedPlace *place = m_draft.bound.bindings[i].allowed.place.get();
        const Domain *preferred = place ? place->preferred() : nullptr;
        if (!preferred || m_graph.operators[i].direction != Direction::Forward)
            continue;
        const auto found = std::find(known.begin(), known.end(), place);
        if (found == known.end()) {
            known.push_back(place);
            numbers.push_back(m_draft.domainNumber(*preferred));
            m_domainOf[i] = numbers.back();
        } else {
            m_domainOf[i] = numbers[static_cast<std::size_t>(found - known.begin())];
        }
    }
    followPlacesTogether(m_draft, m_domainOf);
    for (std::size_t i = 0; i < m_domainOf.size(); ++i) {
        const OperatorBinding &binding = m_draft.bound.bindings[i];
        if (m_domainOf[i] < 0 || !binding.allowed.place
            || binding.allowed.place->contains(m_draft.domains[static_cast<std::size_t>(m_domainOf[i])]))
            continue;
        m_draft.fail(binding.rowOf(Aspect::Place),
            "operator '" + m_graph.operators[i].name + "' would run with its producer, where it may not",
            "say where it is to run");
    }
}

void DefaultRule::explain(std::string &why, const std::string &part)
{
    why += (why.empty() ? "" : "; ") + part;
}

/// The leader's cut over this axis, if following it costs no communication.
std::optional<Split> DefaultRule::leadersSplit(
    OperatorId op, const MeshAxis &axis, const std::vector<Split> &taken)
{
    if (!m_leader.op.valid())
        return std::nullopt;
    const auto &theirs = m_draft.decisionOf(m_leader.op).partition.splits;
    const auto split =
        std::find_if(theirs.begin(), theirs.end(), [&](const Split &s) { return s.axis == axis.name; });
    return split == theirs.end() ? std::nullopt : followed(m_graph, m_leader, m_graph.at(op), *split, taken);
}

/// A cut of the batch, if rows cut the batch over this axis and it can be.
std::optional<Split> DefaultRule::batchSplit(
    OperatorId op, const MeshAxis &axis, const std::vector<Split> &taken)
{
    const auto &axes = m_draft.bound.batchAxes;
    const std::int32_t batch = m_draft.bound.setting.batchOf(op);
    if (batch < 0 || std::find(axes.begin(), axes.end(), axis.name) == axes.end())
        return std::nullopt;
    const Dimension &dimension = m_graph.at(op).annotation.dimensions[static_cast<std::size_t>(batch)];
    const std::int64_t before = partsAlong(taken, batch);
    if (dimension.mark == DimensionMark::Frozen || before <= 0 || dimension.size <= 1
        || dimension.size % (before * axis.size) != 0)
        return std::nullopt;
    return Split{.kind = SplitKind::Dimension, .dimension = batch, .parts = axis.size, .axis = axis.name};
}

Split DefaultRule::byDefault(
    OperatorId op, const MeshAxis &axis, const std::vector<Split> &taken, std::string &why)
{
    const Split whole{.kind = SplitKind::Replicate, .parts = axis.size, .axis = axis.name};
    if (!m_follow)
        return whole;
    const OperatorBinding &binding = m_draft.bindingOf(op);
    const auto said = std::find_if(binding.allowed.axes.begin(), binding.allowed.axes.end(),
        [&](const AxisMeaning &each) { return each.axis == axis.name; });
    const auto isAllowed = [&](const Split &split) {
        if (said != binding.allowed.axes.end() && !said->allowed.contains(split))
            return false;
        if (!m_draft.bound.alikeOf(op).leader || split.kind == SplitKind::Replicate)
            return true;
        std::vector<Split> all = taken;
        all.push_back(split);
        return mayBe(op, all);
    };
    if (Split mine; asItsLeader(op, axis, mine)) {
        explain(why, "cut alike over " + axis.name);
        return mine;
    }
    if (auto mine = leadersSplit(op, axis, taken); mine && isAllowed(*mine)) {
        explain(why, "follows '" + m_graph.at(m_leader.op).name + "' over " + axis.name);
        return *std::move(mine);
    }
    if (binding.allowed.follows && m_leader.op.valid()) {
        explain(why, "replicated over " + axis.name + ": it cannot follow its producer there");
        return whole;
    }
    const Split byValue{.kind = SplitKind::Value, .parts = axis.size, .axis = axis.name};
    if (isAllowed(byValue) && addsOpenSums(m_draft, op, axis)) {
        explain(why, "adds sums over " + axis.name + " before they are reduced");
        return byValue;
    }
    if (auto batch = batchSplit(op, axis, taken); batch && isAllowed(*batch)) {
        explain(why, "cuts the batch over " + axis.name + ", as others do");
        return *std::move(batch);
    }
    if (!isAllowed(whole)) {
        const std::int32_t row =
            binding.axisRows[static_cast<std::size_t>(said - binding.allowed.axes.begin())];
        m_draft.fail(row,
            "operator '" + m_graph.at(op).name + "' may not be replicated over " + axis.name
                + ", and there is nothing else to follow",
            "say how it is to be split");
    }
    explain(why, "replicated over " + axis.name);
    return whole;
}

namespace {

/// Which devices have the parts that `splits`, one for each axis of a domain, make when they are nested in
/// this order: part i along an axis is on its device i. Of an axis that is cut into twice as many parts as it
/// has devices, the first and the last part are on the first one, and so on (`SplitStep::zigzag`).
/// @param nesting  axes, outermost first
std::vector<DeviceId> devicesOfParts(
    const Domain &domain, const std::vector<Split> &splits, const std::vector<std::size_t> &nesting)
{
    std::int32_t count = 1;
    for (const std::size_t axis : nesting)
        count *= splits[axis].parts;
    std::vector<DeviceId> devices;
    std::vector<std::int32_t> place(nesting.size()); // along each axis
    for (std::int32_t part = 0; part < count; ++part) {
        std::int32_t left = part;
        for (auto axis = nesting.rbegin(); axis != nesting.rend(); ++axis) {
            const std::int32_t parts = splits[*axis].parts;
            const std::int32_t digit = left % parts;
            const bool isZigzag = parts == 2 * domain.axes[*axis].size;
            place[*axis] = isZigzag ? std::min(digit, parts - 1 - digit) : digit;
            left /= parts;
        }
        std::size_t device = 0;
        for (std::size_t axis = 0; axis < place.size(); ++axis)
            device = device * static_cast<std::size_t>(domain.axes[axis].size)
                + static_cast<std::size_t>(place[axis]);
        devices.push_back(domain.devices[device]);
    }
    return devices;
}

} // namespace

/// The axes of the mesh in the order in which their splits are nested, outermost first. That is the order of
/// the mesh; but of those that cut one dimension, what is as in the leader lies outside of what is not,
/// nested as there: then each device has a part of what it had. So heads that are cut over tp are cut further
/// over an axis along which the leader cuts the sequence, and only the devices of that axis exchange
/// anything:
///
///     device (ulysses, tp)         0, 0       0, 1       1, 0       1, 1
///     the leader: tokens, heads    t0 h01     t0 h23     t1 h01     t1 h23
///     heads over tp, ulysses       h0         h2         h1         h3        so they are nested
///     heads over ulysses, tp       h0         h1         h2         h3        device 0, 1 has no h1
std::vector<std::size_t> DefaultRule::nestingOfAxes(OperatorId op) const
{
    std::vector<std::size_t> nesting(m_splits.size());
    std::iota(nesting.begin(), nesting.end(), std::size_t{0});
    if (!m_leader.op.valid())
        return nesting;
    const auto &theirs = m_draft.decisionOf(m_leader.op).partition.splits;
    const auto rankOf = [&](std::size_t axis) {
        const auto found = std::find_if(theirs.begin(), theirs.end(), [&](const Split &split) {
            const auto mine = split.axis == m_splits[axis].axis
                ? followed(m_graph, m_leader, m_graph.at(op), split, {})
                : std::nullopt;
            return mine && mine->kind == SplitKind::Dimension && mine->dimension == m_splits[axis].dimension;
        });
        return found - theirs.begin();
    };
    for (std::size_t first = 0; first < m_splits.size(); ++first) {
        std::vector<std::size_t> together; // that cut what the split over axis `first` does
        for (std::size_t axis = 0; axis < m_splits.size(); ++axis)
            if (m_splits[axis].kind == SplitKind::Dimension
                && m_splits[axis].dimension == m_splits[first].dimension)
                together.push_back(axis);
        std::vector<std::size_t> nested = together;
        std::stable_sort(nested.begin(), nested.end(),
            [&](std::size_t a, std::size_t b) { return rankOf(a) < rankOf(b); });
        for (std::size_t i = 0; i < together.size(); ++i)
            nesting[together[i]] = nested[i];
    }
    return nesting;
}

void DefaultRule::onMesh(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices)
{
    const OperatorBinding &binding = m_draft.bindingOf(op);
    OperatorDecision &decision = m_draft.decisionOf(op);
    for (const ChosenSplit &step : m_chosen) {
        const auto has = [&](const auto &axis) { return axis.name == step.split.axis; };
        if (!step.split.axis.empty() && std::none_of(domain.axes.begin(), domain.axes.end(), has)) {
            const std::int32_t placed = binding.rowOf(Aspect::Place);
            const std::string by = placed >= 0 ? " by " + rowWords(placed) : "";
            m_draft.fail(step.row,
                "operator '" + m_graph.at(op).name + "' cannot be split over mesh axis '" + step.split.axis
                    + "': it is placed at one point of that axis" + by,
                "place it on the whole axis, or split it over another one");
            return;
        }
    }
    // What rows decided counts against every default, whichever axis lies outside.
    std::vector<Split> taken;
    for (const ChosenSplit &step : m_chosen)
        taken.push_back(step.split);
    if (m_inLanes)
        taken.push_back(*m_inLanes);
    std::int32_t inner = 1;
    for (const MeshAxis &axis : domain.axes) {
        const auto step = std::find_if(m_chosen.begin(), m_chosen.end(),
            [&](const ChosenSplit &s) { return s.split.axis == axis.name; });
        if (step != m_chosen.end()) {
            m_splits.push_back(step->split);
            m_isFree.push_back(false);
        } else {
            m_isFree.push_back(true);
            m_splits.push_back(byDefault(op, axis, taken, decision.why));
            if (m_splits.back().kind == SplitKind::Replicate)
                m_splits.back().parts = axis.size; // one on each device, however a leader's parts lie
            taken.push_back(m_splits.back());
        }
    }
    std::vector<Split> within;
    for (const ChosenSplit &step : m_chosen) {
        if (step.split.axis.empty()) {
            within.push_back(step.split);
            inner *= step.split.parts;
        }
    }
    keepToParts(op, domain, within);
    const std::vector<std::size_t> nesting = nestingOfAxes(op);
    devices = repeated(devicesOfParts(domain, m_splits, nesting), inner);
    std::vector<Split> nested;
    for (const std::size_t axis : nesting)
        nested.push_back(std::move(m_splits[axis]));
    m_splits = std::move(nested);
    m_splits.insert(m_splits.end(), within.begin(), within.end());
}

/// Steps dealt out to a list of devices: as many, several parts per device, or replicas.
void DefaultRule::dealOut(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices)
{
    const OperatorBinding &binding = m_draft.bindingOf(op);
    std::int64_t parts = 1;
    for (const ChosenSplit &step : m_chosen) {
        m_splits.push_back(step.split);
        parts *= step.split.parts;
    }
    const auto count = static_cast<std::int64_t>(domain.devices.size());
    if (!canDealOut(parts, count)) {
        m_draft.fail(firstRow({binding.rowOf(Aspect::Place), m_chosen.back().row}),
            "operator '" + m_graph.at(op).name + "' has " + partsText(parts, domain.devices.size())
                + ": neither divides the other",
            "give one device per part, or a place row with fewer or more devices");
    } else if (parts % count == 0) {
        devices = repeated(domain.devices, static_cast<std::int32_t>(parts / count));
    } else {
        m_splits.push_back({.kind = SplitKind::Replicate, .parts = static_cast<std::int32_t>(count / parts)});
        devices = domain.devices;
    }
}

/// The leader's splits one by one, on its devices; false if that would cost communication or leave devices
/// with the same work.
bool DefaultRule::followList(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices)
{
    if (!m_follow || !m_leader.op.valid())
        return false;
    const auto leader = static_cast<std::size_t>(m_leader.op.index);
    if (m_domainOf[leader] != m_domain)
        return false;
    const OperatorDecision &theirs = m_draft.decisionOf(m_leader.op);
    if (laneCount(theirs.partition) != (m_inLanes ? m_lanes : 1))
        return false;
    const std::int32_t inner = coshardParts(m_draft.bound.bindings[leader]);
    const bool repeats = distinct(domain.devices).size() != domain.devices.size();
    std::vector<Split> splits;
    std::vector<Split> taken;
    if (m_inLanes)
        taken.push_back(*m_inLanes);
    std::vector<Split> led = insideBlocks(theirs.partition);
    if (inner > 1)
        led.pop_back();
    for (const Split &split : led) {
        const auto mine = followed(m_graph, m_leader, m_graph.at(op), split, taken);
        if (!mine && repeats)
            return false;
        splits.push_back(
            mine.value_or(Split{.kind = SplitKind::Replicate, .parts = split.parts, .axis = split.axis}));
        taken.push_back(splits.back());
    }
    m_splits = std::move(splits);
    const std::size_t inBlock = theirs.devices.size()
        / static_cast<std::size_t>(laneCount(theirs.partition) * sliceCount(theirs.partition));
    // What one lane does for all is on the devices of the last one: here it is on those of the first.
    const auto everywhere = m_draft.inEveryLane.find(m_leader.op);
    const std::vector<DeviceId> &its =
        everywhere != m_draft.inEveryLane.end() ? everywhere->second : theirs.devices;
    for (std::size_t i = 0; i < inBlock; i += static_cast<std::size_t>(inner))
        devices.push_back(its[i]);
    explain(m_draft.decisionOf(op).why, "follows '" + m_graph.at(m_leader.op).name + "'");
    return true;
}

void DefaultRule::onList(OperatorId op, const Domain &domain, std::vector<DeviceId> &devices)
{
    if (!m_chosen.empty())
        return dealOut(op, domain, devices);
    const bool isBound =
        !m_draft.bindingOf(op).allowed.parts.empty() || m_draft.bound.alikeOf(op).leader.valid();
    if (followList(op, domain, devices)) {
        if (!isBound
            || (m_draft.bound.alikeOf(op).leader == op && mayBe(op, m_splits)
                && keepTo(m_draft.bindingOf(op).allowed.parts, m_splits)))
            return;
        m_splits.clear();
    }
    devices = distinct(domain.devices);
    if (isBound)
        return keepToParts(op, domain, {});
    if (devices.size() > 1) {
        m_splits.push_back(
            {.kind = SplitKind::Replicate, .parts = static_cast<std::int32_t>(devices.size())});
        explain(m_draft.decisionOf(op).why, "replicated");
    }
}

void DefaultRule::addCoshard(OperatorId op, std::vector<DeviceId> &devices)
{
    const Split *coshard = m_draft.bindingOf(op).allowed.coshard.preferred();
    if (!coshard || coshard->parts <= 1)
        return;
    m_splits.push_back(*coshard);
    devices = repeated(devices, coshard->parts);
}

/// All slices of a stage run on the same devices.
void DefaultRule::addSlices(OperatorId op, std::vector<DeviceId> &devices)
{
    const Split *slices = m_draft.bindingOf(op).allowed.slices.preferred();
    if (!slices || slices->parts <= 1)
        return;
    m_splits.insert(m_splits.begin(), *slices);
    const std::vector<DeviceId> once = devices;
    for (std::int32_t i = 1; i < slices->parts; ++i)
        devices.insert(devices.end(), once.begin(), once.end());
}

/// The places of the lanes that a row asks for; nothing where none does, or where it cannot be.
std::optional<DefaultRule::LaneDomains> DefaultRule::lanesOf(OperatorId op, const Domain &domain)
{
    const OperatorBinding &binding = m_draft.bindingOf(op);
    if (!binding.allowed.lanes)
        return std::nullopt;
    const LanesRule &rule = *binding.allowed.lanes;
    const auto refuse = [&](const std::string &message, const std::string &advice) {
        m_draft.fail(
            binding.rowOf(Aspect::Lanes), "operator '" + m_graph.at(op).name + "' " + message, advice);
        return std::nullopt;
    };
    if (m_draft.plan.wholeBatches)
        return refuse("cannot be in lanes: they would cut the batch, and micro-batches are whole ones",
            "say micro-batches without 'whole', or use more of them");
    LaneDomains lanes;
    if (domain.onMesh) {
        if (rule.axis.empty())
            return refuse("is placed on a mesh, and its lanes say no axis of it",
                "say over which axis: lanes ... : over AXIS");
        const auto axis = std::find_if(domain.axes.begin(), domain.axes.end(),
            [&](const MeshAxis &each) { return each.name == rule.axis; });
        if (axis == domain.axes.end()) // one lane
            return std::nullopt;
        std::int32_t inner = 1;
        for (auto behind = std::next(axis); behind != domain.axes.end(); ++behind)
            inner *= behind->size;
        for (std::int32_t lane = 0; lane < axis->size; ++lane) {
            Domain one = domain;
            one.axes.erase(one.axes.begin() + (axis - domain.axes.begin()));
            one.devices.clear();
            for (std::size_t d = 0; d < domain.devices.size(); ++d)
                if (static_cast<std::int32_t>(d) / inner % axis->size == lane)
                    one.devices.push_back(domain.devices[d]);
            lanes.push_back(std::move(one));
        }
        return lanes;
    }
    if (!rule.axis.empty())
        return refuse("is placed on a list of devices, which has no axis '" + rule.axis + "' for its lanes",
            "place it on the mesh, or say how many lanes there are");
    const auto count = static_cast<std::size_t>(rule.count);
    if (domain.devices.size() % count != 0)
        return refuse("has " + counted(rule.count, "lane") + " on "
                + counted(static_cast<std::int64_t>(domain.devices.size()), "device"),
            "place it on as many devices for each lane");
    const std::size_t each = domain.devices.size() / count;
    for (std::size_t lane = 0; lane < count; ++lane)
        lanes.push_back(domainOfList({domain.devices.begin() + static_cast<std::ptrdiff_t>(lane * each),
            domain.devices.begin() + static_cast<std::ptrdiff_t>((lane + 1) * each)}));
    return lanes;
}

/// How the lanes share an operator out: each its samples; all of what has none, where it is made of nothing
/// that lanes made. Nothing for what one lane does for all.
std::optional<Split> DefaultRule::laneSplit(OperatorId op, const std::string &axis)
{
    Split split{.kind = SplitKind::Dimension,
        .dimension = m_draft.bound.setting.batchOf(op),
        .parts = m_lanes,
        .axis = axis,
        .over = SplitOver::Lanes};
    if (split.dimension >= 0)
        return split;
    if (m_draft.readsOfLanes(m_graph.at(op)))
        return std::nullopt;
    split.kind = SplitKind::Replicate;
    return split;
}

/// What was decided for the first lane is so in all of them, each on its own devices; what one does for all
/// is on those of the last.
void DefaultRule::addLanes(OperatorId op, const LaneDomains &lanes, std::vector<DeviceId> &devices)
{
    const std::vector<DeviceId> first = std::exchange(devices, {});
    for (const Domain &lane : lanes)
        for (const DeviceId device : first) {
            const auto &from = lanes.front().devices;
            const auto at = std::find(from.begin(), from.end(), device) - from.begin();
            devices.push_back(lane.devices[static_cast<std::size_t>(at)]);
        }
    if (m_inLanes) {
        m_splits.insert(m_splits.begin(), *m_inLanes);
        return;
    }
    explain(m_draft.decisionOf(op).why, "the last lane does for all what adds up what they make");
    m_draft.inEveryLane.emplace(op, devices);
    devices.erase(devices.begin(), devices.end() - static_cast<std::ptrdiff_t>(first.size()));
}

/// Blames the last row of an operator whose splits are only together illegal.
void DefaultRule::checkResult(OperatorId op)
{
    const OperatorBinding &binding = m_draft.bindingOf(op);
    const Operator &itself = m_graph.at(op);
    checkParts(op);
    checkFollowing(op);
    const BoundTable::AlikeWith alike = m_draft.bound.alikeOf(op);
    const std::int32_t row =
        firstRow({alike.row, binding.rowOf(Aspect::Coshard), binding.rowOf(Aspect::Slices),
            binding.rowOf(Aspect::Lanes), binding.splitRow(), binding.rowOf(Aspect::Place)});
    if (row < 0)
        return;
    if (const auto legal = checkPartition(itself, {m_splits}); !legal)
        m_draft.fail(row, "with the other rows: " + legal.error().message, legal.error().advice);
    const std::int32_t cuts = batchCuts(m_draft.plan);
    if (cuts <= 1 || m_draft.plan.wholeBatches
        || m_draft.batch().oncePerStep[static_cast<std::size_t>(op.index)])
        return;
    const std::int32_t batch = m_draft.bound.setting.batchOf(op);
    if (batch < 0)
        return;
    const std::int64_t parts = partsAlong(m_splits, batch);
    const std::int64_t size = itself.annotation.dimensions[static_cast<std::size_t>(batch)].size;
    if (parts == 1 || (parts > 0 && size % (cuts * parts) == 0))
        return;
    // Units cut the batch, too, where no row asks for micro-batches.
    const RowId micro = m_draft.bound.plan.microBatchesRow;
    m_draft.fail(micro.valid() ? micro.index : row,
        "operator '" + itself.name + "' has a batch of " + std::to_string(size) + ", which "
            + (parts == 0 ? "is cut unevenly by " + rowWords(row) + ": "
                          : rowWords(row) + " cuts into " + counted(parts, "part") + ": ")
            + (m_draft.plan.units.isOne() ? "" : counted(m_draft.plan.units.count, "replica") + " with ")
            + counted(m_draft.plan.microBatches, "micro-batch") + " of equal parts are not possible",
        m_draft.plan.units.isOne() ? "use fewer micro-batches, or fewer parts"
                                   : "use fewer replicas, micro-batches or parts");
}

void DefaultRule::decide(OperatorId op, std::int32_t domainNumber)
{
    const OperatorBinding &binding = m_draft.bindingOf(op);
    const Domain &all = m_draft.domains[static_cast<std::size_t>(domainNumber)];
    OperatorDecision &decision = m_draft.decisionOf(op);
    m_splits.clear();
    m_isFree.clear();
    m_domain = domainNumber;
    m_chosen = chosenSplits(m_graph.at(op), binding);
    m_leader = m_follow ? leaderOf(m_draft.index(), op) : Leader{};
    std::vector<DeviceId> devices;
    const auto lanes = lanesOf(op, all);
    m_lanes = lanes ? static_cast<std::int32_t>(lanes->size()) : 1;
    m_inLanes = lanes ? laneSplit(op, binding.allowed.lanes->axis) : std::nullopt;
    const Domain &domain = lanes ? lanes->front() : all;
    const auto isOverAxis = [](const ChosenSplit &step) { return !step.split.axis.empty(); };
    const bool overAxes = std::any_of(m_chosen.begin(), m_chosen.end(), isOverAxis);
    if (domain.onMesh && (overAxes || m_chosen.empty()))
        onMesh(op, domain, devices);
    else
        onList(op, domain, devices);
    addCoshard(op, devices);
    addSlices(op, devices);
    if (lanes && !m_draft.failed())
        addLanes(op, *lanes, devices);
    if (m_inLanes ? m_inLanes->kind == SplitKind::Dimension : m_draft.readsOfLanes(m_graph.at(op)))
        m_draft.noteOfLanes(m_graph.at(op));
    const auto follow = [&](std::int32_t row) {
        if (row >= 0)
            decision.rows.push_back({row});
    };
    for (std::size_t i = 0; i < kAspectCount; ++i)
        if (const auto aspect = static_cast<Aspect>(i); aspect != Aspect::Sharding
            && aspect != Aspect::Precision && aspect != Aspect::Offload) // these are decided later
            follow(binding.rowOf(aspect));
    follow(binding.withinRow);
    follow(m_draft.bound.alikeOf(op).row);
    for (const std::int32_t row : binding.partsRows)
        follow(row);
    for (const std::int32_t row : binding.axisRows)
        follow(row);
    std::sort(decision.rows.begin(), decision.rows.end());
    decision.rows.erase(std::unique(decision.rows.begin(), decision.rows.end()), decision.rows.end());
    checkResult(op);
    decision.partition.splits = m_splits;
    decision.devices = std::move(devices);
}

void DefaultRule::decideAll()
{
    chooseDomains();
    for (std::size_t i = 0; i < m_graph.operators.size(); ++i) {
        if (m_graph.operators[i].direction == Direction::Forward)
            decide({static_cast<std::int32_t>(i)}, m_domainOf[i]);
    }
    if (!m_draft.failed())
        checkSharing(m_draft);
}

namespace {

class FollowingDecider : public Decider
{
public:
    void decide(PlanDraft &draft) const override { DefaultRule(draft, true).decideAll(); }
};

} // namespace

const Decider &defaultDecider()
{
    static const FollowingDecider kDecider;
    return kDecider;
}

void decideByRowsAlone(PlanDraft &draft, OperatorId op, std::int32_t domain)
{
    DefaultRule(draft, false).decide(op, domain);
}

} // namespace planloom
