// The regular way: along paths of layouts, and between two groups of devices.

#include "engine/lowering/layout/materialize.h"

#include "engine/lowering/layout/box_algebra.h"
#include "engine/lowering/layout/permutation.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>

namespace planloom {

// ----------------------------------------------------------------------------------------

void Materializer::walk(const LayoutPath &path, std::vector<Holding> &holdings,
    const std::vector<DeviceId> &group, const Task &task)
{
    const std::vector<std::int32_t> radices = radicesOf(static_cast<std::int32_t>(group.size()));
    for (const Hop &hop : path.hops) {
        std::vector<Holding> next = holdings;
        const auto boxAt = [&](std::size_t position) {
            return hop.cells.empty()
                ? boxUnder(hop.to, task.whole, radices, static_cast<std::int32_t>(position))
                : hop.cells[position].box;
        };
        if (hop.kind == HopKind::Slice || hop.kind == HopKind::ValueSelect)
            for (std::size_t p = 0; p < next.size(); ++p)
                next[p] = selectPart(holdings[p], boxAt(p),
                    hop.kind == HopKind::Slice ? ValueMask{} : hop.valueParts[p], task);
        else if (hop.kind == HopKind::Permute)
            for (const auto &[sender, receiver] : messagesOf(hop.sources))
                next[at(receiver)] = move(holdings[at(sender)], group[at(receiver)], task);
        else
            communicate(hop, holdings, next, group, task);
        holdings = std::move(next);
        for (const Holding &h : holdings)
            if (h.summands.empty() && h.valuePart.complete())
                m_tensors[at(task.tensor)].available.add({h, task.block});
    }
}

/// A hop that is a collective of each of its subgroups.
void Materializer::communicate(const Hop &hop, const std::vector<Holding> &holdings,
    std::vector<Holding> &next, const std::vector<DeviceId> &group, const Task &task)
{
    const std::vector<std::int32_t> radices = radicesOf(static_cast<std::int32_t>(group.size()));
    const bool reduces = hop.kind == HopKind::AllReduce || hop.kind == HopKind::ReduceScatter;
    for (const auto &positions : subgroupsOf(hop.digits, radices)) {
        std::vector<DeviceId> members;
        std::vector<Holding> added;
        for (const std::int32_t position : positions) {
            members.push_back(group[at(position)]);
            if (reduces)
                added.push_back(holdings[at(position)]);
        }
        const SummandSet all = summandsOf(added);
        Instruction instruction{.op = task.op, .group = m_builder.groupOf(members)};
        switch (hop.kind) {
        case HopKind::AllReduce:
            instruction.kind = InstructionKind::AllReduce;
            instruction.combination = task.combination;
            break;
        case HopKind::AllGather:
            instruction.kind = InstructionKind::AllGather;
            instruction.dimension = hop.dimension;
            break;
        case HopKind::ReduceScatter:
            instruction.kind = InstructionKind::ReduceScatter;
            instruction.dimension = hop.dimension;
            instruction.combination = task.combination;
            break;
        case HopKind::AllToAll:
            instruction.kind = InstructionKind::AllToAll;
            instruction.dimension = hop.dimension;
            instruction.gatherDimension = hop.gatherDimension;
            break;
        default:
            assert(false && "no collective");
        }
        for (const std::int32_t position : positions) {
            const auto p = at(position);
            Holding &to = next[p];
            to.box = boxUnder(hop.to, task.whole, radices, position);
            to.summands = canonical(task.tensor, reduces ? all : holdings[p].summands, to.box);
            to.buffer = newBuffer(task, to.device, to.box, to.summands, memoryOf(task.tensor));
            Instruction own = instruction;
            own.inputs = {holdings[p].buffer};
            own.outputs = {to.buffer};
            m_builder.emit(to.device, task.block, std::move(own));
            const auto n = static_cast<std::int64_t>(members.size());
            m_sent[at(to.device)] += volumeOf(holdings[p].box) * sizeOf(task.dataType) * (n - 1) / n;
        }
    }
}

namespace {

/// What a crossing takes, for many layouts on either side of it.
class CrossingClock
{
public:
    CrossingClock(const Cluster &cluster, const CostModel &costs, const std::vector<DeviceId> &producers,
        const std::vector<DeviceId> &consumers, DataType dataType)
        : m_costs(costs)
        , m_elementBytes(sizeOf(dataType))
        , m_producers(producers.size())
    {
        m_shapes.reserve(producers.size() * consumers.size());
        for (const DeviceId consumer : consumers)
            for (const DeviceId producer : producers)
                m_shapes.push_back(groupShape(cluster, {producer, consumer}));
    }

    /// Seconds until every consumer of `receivers` has its box of `wanted` from those that hold it, by
    /// position in `held`.
    double seconds(const std::vector<IndexMask> &held, const std::vector<IndexMask> &wanted,
        const std::vector<std::int32_t> &receivers)
    {
        m_sending.assign(m_producers, 0);
        double worst = 0;
        for (const std::int32_t receiver : receivers) {
            const auto c = at(receiver);
            double receiving = 0;
            m_taken.clear();
            // The same rule as `fetch`: the least busy producer among replicas.
            m_byLoad.resize(m_producers);
            std::iota(m_byLoad.begin(), m_byLoad.end(), std::size_t{0});
            std::sort(m_byLoad.begin(), m_byLoad.end(), [this](std::size_t a, std::size_t b) {
                return m_sending[a] != m_sending[b] ? m_sending[a] < m_sending[b] : a < b;
            });
            for (const std::size_t p : m_byLoad) {
                const auto piece = intersection(held[p], wanted[c]);
                if (!piece || std::find(m_taken.begin(), m_taken.end(), *piece) != m_taken.end())
                    continue;
                m_taken.push_back(*piece);
                const double seconds = m_costs.collective(CollectiveKind::SendRecv,
                    Bytes{volumeOf(*piece) * m_elementBytes}, m_shapes[c * m_producers + p]);
                m_sending[p] += seconds;
                receiving += seconds;
            }
            worst = std::max(worst, receiving);
        }
        return std::max(worst, *std::max_element(m_sending.begin(), m_sending.end()));
    }

    /// No crossing to `wanted` takes less: every consumer gets its box in one message from its nearest
    /// producer, as pieces take no less.
    double least(const std::vector<IndexMask> &wanted, const std::vector<std::int32_t> &receivers) const
    {
        double worst = 0;
        for (const std::int32_t receiver : receivers) {
            const auto c = at(receiver);
            double nearest = std::numeric_limits<double>::infinity();
            for (std::size_t p = 0; p < m_producers; ++p)
                nearest = std::min(nearest,
                    m_costs.collective(CollectiveKind::SendRecv, Bytes{volumeOf(wanted[c]) * m_elementBytes},
                        m_shapes[c * m_producers + p]));
            worst = std::max(worst, nearest);
        }
        return worst;
    }

private:
    const CostModel &m_costs;
    std::int64_t m_elementBytes;
    std::size_t m_producers;
    std::vector<GroupShape> m_shapes{}; ///< By consumer and producer.
    std::vector<double> m_sending{}; ///< By producer.
    std::vector<std::size_t> m_byLoad{};
    std::vector<IndexMask> m_taken{};
};

/// Seconds of the slowest broadcast among `consumers` along `digits`, of what each of them is to hold.
double broadcastSeconds(const std::vector<std::int8_t> &digits, const std::vector<IndexMask> &boxes,
    const std::vector<DeviceId> &consumers, DataType dataType, const Cluster &cluster, const CostModel &costs)
{
    double worst = 0;
    for (const auto &positions :
        subgroupsOf(digits, radicesOf(static_cast<std::int32_t>(consumers.size())))) {
        std::vector<DeviceId> members;
        for (const std::int32_t position : positions)
            members.push_back(consumers[at(position)]);
        const Bytes bytes{volumeOf(boxes[at(positions.front())]) * sizeOf(dataType)};
        worst =
            std::max(worst, costs.collective(CollectiveKind::Broadcast, bytes, groupShape(cluster, members)));
    }
    return worst;
}

/// The first of every subgroup along `digits`; everybody where there are none.
std::vector<std::int32_t> receiversOf(const std::vector<std::int8_t> &digits, std::size_t consumers)
{
    std::vector<std::int32_t> first;
    for (const auto &positions : subgroupsOf(digits, radicesOf(static_cast<std::int32_t>(consumers))))
        first.push_back(positions.front());
    return first;
}

/// What each of `count` devices holds of `whole` under `layout`.
std::vector<IndexMask> boxesUnder(const Layout &layout, const IndexMask &whole, std::size_t count)
{
    const auto radices = radicesOf(static_cast<std::int32_t>(count));
    std::vector<IndexMask> boxes;
    boxes.reserve(count);
    for (std::size_t position = 0; position < count; ++position)
        boxes.push_back(boxUnder(layout, whole, radices, static_cast<std::int32_t>(position)));
    return boxes;
}

/// Where to land: the wanted layout, one whose replicas hold slices that an all-gather joins again, or the
/// wanted layout on one of several replicas, which passes it on.
struct Landing {
    Layout layout{};
    LayoutPath after{};
    std::vector<std::int8_t> broadcast{};
    std::vector<IndexMask> boxes{}; ///< By consumer.
    std::vector<std::int32_t> receivers{}; ///< Positions that take part in the crossing.
    double afterSeconds = 0;
    double least = 0; ///< Seconds from the crossing's begin on.
};

std::vector<Landing> landingsOf(const Layout &to, const IndexMask &whole, DataType dataType,
    const std::vector<DeviceId> &consumers, const Cluster &cluster, const CostModel &costs)
{
    std::vector<Landing> landings{{to, {}}};
    const auto radices = radicesOf(static_cast<std::int32_t>(consumers.size()));
    std::vector<std::int8_t> replicas;
    for (std::size_t d = 0; d < radices.size(); ++d) {
        const auto digit = static_cast<std::int8_t>(d);
        if (std::none_of(to.dimensionDigits.begin(), to.dimensionDigits.end(), [digit](const auto &digits) {
                return std::find(digits.begin(), digits.end(), digit) != digits.end();
            }))
            replicas.push_back(digit);
    }
    for (std::uint32_t subset = 1; subset < (1u << std::min<std::size_t>(replicas.size(), 6)); ++subset) {
        std::vector<std::int8_t> chosen;
        std::int64_t slices = 1;
        for (std::size_t r = 0; r < replicas.size(); ++r)
            if (subset >> r & 1u) {
                chosen.push_back(replicas[r]);
                slices *= radices[at(replicas[r])];
            }
        landings.push_back({to, {}, chosen});
        for (std::size_t dimension = 0; dimension < whole.ranges.size(); ++dimension) {
            Layout layout = to;
            auto &digits = layout.dimensionDigits[dimension];
            std::int64_t parts = slices;
            for (const std::int8_t digit : digits)
                parts *= radices[at(digit)];
            digits.insert(digits.end(), chosen.begin(), chosen.end());
            if (whole.ranges[dimension].size() % parts != 0)
                continue;
            if (auto path = cheapestPath(layout, to, whole, dataType, consumers, cluster, costs))
                landings.push_back({std::move(layout), std::move(*path)});
        }
    }
    return landings;
}

} // namespace

std::optional<Materializer::CrossingChoice> Materializer::chooseCrossing(const Layout &from, const Layout &to,
    const std::vector<DeviceId> &producers, const std::vector<DeviceId> &consumers, const Task &task)
{
    const std::int32_t origin = m_cluster.nodeOf(producers.front());
    CrossingKey key{from, to, shapeOf(task.whole), task.dataType, task.combination,
        topologyOf(m_cluster, producers, origin), topologyOf(m_cluster, consumers, origin)};
    const auto [known, isNew] = m_crossings.try_emplace(std::move(key));
    if (isNew)
        known->second = findCrossing(from, to, producers, consumers, task);
    return known->second;
}

std::optional<Materializer::CrossingChoice> Materializer::findCrossing(const Layout &from, const Layout &to,
    const std::vector<DeviceId> &producers, const std::vector<DeviceId> &consumers, const Task &task) const
{
    std::vector<Landing> landings = landingsOf(to, task.whole, task.dataType, consumers, m_cluster, m_costs);
    CrossingClock clock(m_cluster, m_costs, producers, consumers, task.dataType);
    for (Landing &landing : landings) {
        landing.boxes = boxesUnder(landing.layout, task.whole, consumers.size());
        landing.receivers = receiversOf(landing.broadcast, consumers.size());
        landing.afterSeconds = landing.after.seconds
            + (landing.broadcast.empty() ? 0
                                         : broadcastSeconds(landing.broadcast, landing.boxes, consumers,
                                             task.dataType, m_cluster, m_costs));
        landing.least = landing.afterSeconds + clock.least(landing.boxes, landing.receivers);
    }

    // To send what there is, with all summands added up first, is a bound on everything better.
    Layout added = from;
    added.summandDigits.clear();
    const auto adding =
        cheapestPath(from, added, task.whole, task.dataType, producers, m_cluster, m_costs, task.combination);
    double bound = std::numeric_limits<double>::infinity();
    double least = bound;
    for (const Landing &landing : landings) {
        least = std::min(least, landing.least);
        if (adding)
            bound = std::min(bound,
                adding->seconds + landing.afterSeconds
                    + clock.seconds(
                        boxesUnder(added, task.whole, producers.size()), landing.boxes, landing.receivers));
    }
    std::vector<std::pair<Layout, LayoutPath>> starts;
    for (auto &[layout, path] : cheapestPaths(
             from, task.whole, task.dataType, producers, m_cluster, m_costs, bound - least, task.combination))
        starts.emplace_back(layout, std::move(path));
    std::stable_sort(starts.begin(), starts.end(), [](const auto &a, const auto &b) {
        return a.second.seconds != b.second.seconds ? a.second.seconds < b.second.seconds
                                                    : a.second.hops.size() < b.second.hops.size();
    });
    std::optional<CrossingChoice> best;
    double bestSeconds = 0;
    for (const auto &[layout, before] : starts) {
        if (best && before.seconds >= bestSeconds)
            break;
        const std::vector<IndexMask> held = boxesUnder(layout, task.whole, producers.size());
        for (const Landing &landing : landings) {
            if (best && before.seconds + landing.least >= bestSeconds)
                continue;
            const double seconds =
                before.seconds + landing.afterSeconds + clock.seconds(held, landing.boxes, landing.receivers);
            if (!best || seconds < bestSeconds) {
                best =
                    CrossingChoice{before, layout, landing.layout, landing.after, landing.broadcast, seconds};
                bestSeconds = seconds;
            }
        }
    }
    return best;
}

std::optional<std::vector<Holding>> Materializer::convertAcross(
    const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task)
{
    std::vector<Holding> holdings = from;
    std::sort(holdings.begin(), holdings.end(), byDevice);
    std::vector<Holding> wanted;
    for (const Need &need : needs)
        wanted.push_back({need.device, need.box, {}, -1});
    std::stable_sort(wanted.begin(), wanted.end(), byDevice);
    const auto groupOf = [](const std::vector<Holding> &list) {
        std::vector<DeviceId> group;
        for (const Holding &h : list)
            group.push_back(h.device);
        return group;
    };
    const std::vector<DeviceId> producers = groupOf(holdings);
    const std::vector<DeviceId> consumers = groupOf(wanted);
    if (std::adjacent_find(producers.begin(), producers.end()) != producers.end()
        || std::adjacent_find(consumers.begin(), consumers.end()) != consumers.end())
        return std::nullopt;
    std::vector<DeviceId> common;
    std::set_intersection(
        producers.begin(), producers.end(), consumers.begin(), consumers.end(), std::back_inserter(common));
    if (!common.empty())
        return std::nullopt;
    const auto source =
        recogniseLayout(holdings, task.whole, radicesOf(static_cast<std::int32_t>(producers.size())));
    const auto target =
        recogniseLayout(wanted, task.whole, radicesOf(static_cast<std::int32_t>(consumers.size())));
    if (!source || !target)
        return std::nullopt;
    const auto choice = chooseCrossing(*source, *target, producers, consumers, task);
    if (!choice)
        return std::nullopt;
    if (const auto all = spreadSeconds(from, needs, task); all && *all < choice->seconds)
        return spread(from, needs, task);

    walk(choice->before, holdings, producers, task);
    std::vector<const Holding *> sources;
    for (const Holding &h : holdings)
        sources.push_back(&h);
    const auto radices = radicesOf(static_cast<std::int32_t>(consumers.size()));
    std::vector<Holding> landed;
    for (const std::int32_t c : receiversOf(choice->broadcast, consumers.size())) {
        const Need need{consumers[at(c)], boxUnder(choice->to, task.whole, radices, c), {}};
        landed.push_back(concat(fetch(sources, need, task), need.box, task));
    }
    if (choice->broadcast.empty()) {
        walk(choice->after, landed, consumers, task);
        return landed;
    }
    std::vector<Holding> received;
    const auto groups = subgroupsOf(choice->broadcast, radices);
    for (std::size_t g = 0; g < groups.size(); ++g) {
        std::vector<DeviceId> members;
        for (const std::int32_t position : groups[g])
            members.push_back(consumers[at(position)]);
        broadcast(landed[g], members, task, received);
    }
    return received;
}

} // namespace planloom
