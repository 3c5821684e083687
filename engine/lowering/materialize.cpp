#include "engine/lowering/materialize.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace planloom {

namespace {

bool disjointSets(const std::vector<std::int32_t> &a, const std::vector<std::int32_t> &b)
{
    for (std::size_t i = 0, j = 0; i < a.size() && j < b.size();) {
        if (a[i] == b[j])
            return false;
        a[i] < b[j] ? ++i : ++j;
    }
    return true;
}

std::vector<std::int32_t> unionOf(const std::vector<std::int32_t> &a, const std::vector<std::int32_t> &b)
{
    std::vector<std::int32_t> both;
    both.reserve(a.size() + b.size());
    std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
    return both;
}

std::int64_t volumeOf(const IndexMask &box)
{
    std::int64_t volume = 1;
    for (const Range &range : box.ranges)
        volume *= range.size();
    return volume;
}

IndexMask boundsOf(const IndexMask &a, const IndexMask &b)
{
    IndexMask box = a;
    for (std::size_t d = 0; d < box.ranges.size(); ++d) {
        box.ranges[d].begin = std::min(box.ranges[d].begin, b.ranges[d].begin);
        box.ranges[d].end = std::max(box.ranges[d].end, b.ranges[d].end);
    }
    return box;
}

/// The bounding box of `boxes` if they tile it: pairwise disjoint, volumes adding up.
std::optional<IndexMask> tiledBox(const std::vector<IndexMask> &boxes)
{
    IndexMask bounds = boxes.front();
    std::int64_t volume = 0;
    for (const IndexMask &box : boxes) {
        bounds = boundsOf(bounds, box);
        volume += volumeOf(box);
    }
    if (volume != volumeOf(bounds))
        return std::nullopt;
    for (std::size_t i = 0; i < boxes.size(); ++i)
        for (std::size_t j = i + 1; j < boxes.size(); ++j)
            if (intersection(boxes[i], boxes[j]))
                return std::nullopt;
    return bounds;
}

/// What remains of `box` without `hole` (which lies inside it), as disjoint boxes.
void subtract(const IndexMask &box, const IndexMask &hole, std::vector<IndexMask> &rest)
{
    IndexMask core = box;
    for (std::size_t d = 0; d < box.ranges.size(); ++d) {
        if (core.ranges[d].begin < hole.ranges[d].begin) {
            IndexMask part = core;
            part.ranges[d].end = hole.ranges[d].begin;
            rest.push_back(std::move(part));
            core.ranges[d].begin = hole.ranges[d].begin;
        }
        if (hole.ranges[d].end < core.ranges[d].end) {
            IndexMask part = core;
            part.ranges[d].begin = hole.ranges[d].end;
            rest.push_back(std::move(part));
            core.ranges[d].end = hole.ranges[d].end;
        }
    }
}

std::vector<std::int64_t> extentsOf(const IndexMask &box)
{
    std::vector<std::int64_t> extents;
    for (const Range &range : box.ranges)
        extents.push_back(range.size());
    return extents;
}

/// The devices' nodes relative to the first: what link costs depend on.
std::vector<std::int32_t> topologyOf(
    const Cluster &cluster, const std::vector<DeviceId> &group, std::int32_t origin)
{
    std::vector<std::int32_t> nodes;
    for (const DeviceId device : group)
        nodes.push_back(cluster.nodeOf(device) - origin);
    return nodes;
}

bool byDevice(const Holding &a, const Holding &b)
{
    return a.device < b.device;
}

} // namespace

Materializer::Materializer(const Graph &graph, const BatchInfo &batch,
    const std::vector<std::int32_t> &summandCount, const Cluster &cluster, std::int32_t microBatches,
    ProgramBuilder &builder)
    : m_graph(graph)
    , m_batch(batch)
    , m_summandCount(summandCount)
    , m_cluster(cluster)
    , m_microBatches(microBatches)
    , m_builder(builder)
    , m_tensors(graph.tensors.size())
    , m_sent(static_cast<std::size_t>(cluster.deviceCount), 0)
{
}

bool Materializer::complete(TensorId tensor, const std::vector<std::int32_t> &summands) const
{
    return summands.empty()
        || static_cast<std::int32_t>(summands.size())
        == m_summandCount[static_cast<std::size_t>(tensor.index)];
}

bool Materializer::perMicroBatch(std::int32_t block) const
{
    switch (m_builder.block(block).kind) {
    case SegmentKind::Forward:
    case SegmentKind::Backward:
    case SegmentKind::Transfer:
        return true;
    default:
        return false;
    }
}

IndexMask Materializer::wholeBox(TensorId tensor) const
{
    IndexMask whole = wholeMask(m_graph.at(tensor).type.shape);
    const auto index = static_cast<std::size_t>(tensor.index);
    if (m_batch.tensorRole[index] == BatchRole::Split)
        whole.ranges[static_cast<std::size_t>(m_batch.tensorDimension[index])].end /= m_microBatches;
    return whole;
}

MemoryKind Materializer::memoryOf(TensorId tensor) const
{
    switch (m_graph.at(tensor).role) {
    case TensorRole::Input:
        return MemoryKind::Input;
    case TensorRole::Weight:
    case TensorRole::Buffer:
        return MemoryKind::Weight;
    case TensorRole::OptimizerState:
        return MemoryKind::OptimizerState;
    case TensorRole::Gradient:
        return m_graph.at(m_graph.at(tensor).of).role == TensorRole::Weight ? MemoryKind::Gradient
                                                                            : MemoryKind::Activation;
    case TensorRole::Activation:
        break;
    }
    return MemoryKind::Activation;
}

std::int32_t Materializer::newBuffer(const Task &task, DeviceId device, const IndexMask &box,
    const std::vector<std::int32_t> &summands, MemoryKind memory)
{
    BufferInfo buffer{.tensor = task.tensor, .index = box, .summands = summands, .memory = memory};
    if (complete(task.tensor, summands))
        buffer.summands.clear();
    buffer.perMicroBatch = perMicroBatch(task.block);
    return m_builder.addBuffer(device, std::move(buffer));
}

void Materializer::made(TensorId tensor, std::int32_t block, Holding holding)
{
    TensorState &state = m_tensors[static_cast<std::size_t>(tensor.index)];
    auto it = std::find_if(
        state.made.begin(), state.made.end(), [block](const Made &made) { return made.block == block; });
    if (it == state.made.end()) {
        state.made.push_back(Made{.block = block});
        it = state.made.end() - 1;
    }
    if (complete(tensor, holding.summands)) {
        holding.summands.clear();
        state.available.push_back({holding, block});
    }
    it->raw.push_back(std::move(holding));
    it->merged.clear();
}

void Materializer::available(TensorId tensor, Holding holding, std::int32_t block)
{
    m_tensors[static_cast<std::size_t>(tensor.index)].available.push_back({std::move(holding), block});
}

void Materializer::forget(TensorId tensor, std::int32_t made, std::int32_t reader)
{
    TensorState &state = m_tensors[static_cast<std::size_t>(tensor.index)];
    std::erase_if(state.made, [made](const Made &entry) { return entry.block == made; });
    const auto transfer = m_transfers.find({made, reader});
    std::erase_if(state.available, [&](const Available &entry) {
        return entry.block == made || (transfer != m_transfers.end() && entry.block == transfer->second);
    });
}

std::vector<std::int32_t> Materializer::makersOf(TensorId tensor) const
{
    std::vector<std::int32_t> blocks;
    for (const Made &made : m_tensors[static_cast<std::size_t>(tensor.index)].made)
        blocks.push_back(made.block);
    return blocks;
}

const std::vector<Holding> *Materializer::holdingsOf(TensorId tensor, std::int32_t block) const
{
    for (const Made &made : m_tensors[static_cast<std::size_t>(tensor.index)].made)
        if (made.block == block)
            return made.merged.empty() ? &made.raw : &made.merged;
    return nullptr;
}

std::int32_t Materializer::findAvailable(
    TensorId tensor, DeviceId device, const IndexMask &box, std::int32_t) const
{
    for (const Available &entry : m_tensors[static_cast<std::size_t>(tensor.index)].available)
        if (entry.holding.device == device && entry.holding.box == box)
            return entry.holding.buffer;
    return -1;
}

std::int32_t Materializer::transferBlock(std::int32_t from, std::int32_t to)
{
    const auto [it, fresh] = m_transfers.try_emplace({from, to}, -1);
    if (fresh) {
        const BlockInfo source = m_builder.block(from);
        const BlockInfo target = m_builder.block(to);
        // Just behind its source; transfers of one source in the order of their targets.
        it->second = m_builder.addBlock(
            SegmentKind::Transfer, source.stage, source.rank + 0.25 + 1e-6 * (target.rank - source.rank));
        BlockInfo &transfer = m_builder.blocks()[static_cast<std::size_t>(it->second)];
        transfer.source = from;
        transfer.target = to;
    }
    return it->second;
}

// ---- single steps
// ------------------------------------------------------------------------------------------

Holding Materializer::select(const Holding &from, const IndexMask &box, const Task &task)
{
    if (from.box == box)
        return from;
    Holding result{from.device, box, from.summands,
        newBuffer(task, from.device, box, from.summands, memoryOf(task.tensor))};
    m_builder.emit(from.device, task.block,
        {.kind = InstructionKind::Select,
            .op = task.op,
            .inputs = {from.buffer},
            .outputs = {result.buffer}});
    return result;
}

Holding Materializer::move(const Holding &from, DeviceId to, const Task &task)
{
    if (from.device == to)
        return from;
    Holding result{
        to, from.box, from.summands, newBuffer(task, to, from.box, from.summands, MemoryKind::Communication)};
    const std::int32_t tag = m_builder.newTag();
    m_builder.emit(from.device, task.block,
        {.kind = InstructionKind::Send, .op = task.op, .peer = to, .tag = tag, .inputs = {from.buffer}});
    m_builder.emit(to, task.block,
        {.kind = InstructionKind::Recv,
            .op = task.op,
            .peer = from.device,
            .tag = tag,
            .outputs = {result.buffer}});
    m_sent[static_cast<std::size_t>(from.device.index)] += volumeOf(from.box) * sizeOf(task.dataType);
    return result;
}

Holding Materializer::concat(const std::vector<Holding> &pieces, const IndexMask &box, const Task &task)
{
    if (pieces.size() == 1 && pieces.front().box == box)
        return pieces.front();
    const Holding &first = pieces.front();
    Holding result{first.device, box, first.summands,
        newBuffer(task, first.device, box, first.summands, memoryOf(task.tensor))};
    Instruction instruction{.kind = InstructionKind::Concat, .op = task.op, .outputs = {result.buffer}};
    for (const Holding &piece : pieces)
        instruction.inputs.push_back(piece.buffer);
    m_builder.emit(first.device, task.block, std::move(instruction));
    return result;
}

Holding Materializer::sum(const std::vector<Holding> &pieces, const Task &task)
{
    if (pieces.size() == 1)
        return pieces.front();
    Holding result = pieces.front();
    Instruction instruction{.kind = InstructionKind::Sum, .op = task.op};
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        instruction.inputs.push_back(pieces[i].buffer);
        if (i > 0)
            result.summands = unionOf(result.summands, pieces[i].summands);
    }
    result.buffer = newBuffer(task, result.device, result.box, result.summands, memoryOf(task.tensor));
    if (complete(task.tensor, result.summands))
        result.summands.clear();
    instruction.outputs = {result.buffer};
    m_builder.emit(result.device, task.block, std::move(instruction));
    return result;
}

/// Joins what each device made itself: replicas are dropped, equal boxes summed, neighbouring ones
/// concatenated.
const std::vector<Holding> &Materializer::merge(Made &made, Task task)
{
    if (!made.merged.empty())
        return made.merged;
    task.block = made.block;
    std::vector<Holding> sorted = made.raw;
    std::stable_sort(sorted.begin(), sorted.end(), byDevice);
    for (std::size_t begin = 0; begin < sorted.size();) {
        std::size_t end = begin;
        while (end < sorted.size() && sorted[end].device == sorted[begin].device)
            ++end;
        std::vector<Holding> local;
        for (std::size_t i = begin; i < end; ++i)
            if (std::none_of(local.begin(), local.end(), [&](const Holding &h) {
                    return h.box == sorted[i].box && h.summands == sorted[i].summands;
                }))
                local.push_back(sorted[i]);
        begin = end;
        if (local.size() > 1) {
            // Sum within each box.
            std::vector<std::vector<Holding>> byBox;
            for (const Holding &h : local) {
                auto it = std::find_if(byBox.begin(), byBox.end(), [&](const auto &list) {
                    return list.front().box == h.box
                        && std::all_of(list.begin(), list.end(), [&](const Holding &other) {
                               return !h.summands.empty() && disjointSets(other.summands, h.summands);
                           });
                });
                if (it == byBox.end())
                    byBox.push_back({h});
                else
                    it->push_back(h);
            }
            local.clear();
            for (const auto &list : byBox)
                local.push_back(sum(list, task));
            // Concatenate boxes that hold the same summands.
            const bool alike = std::all_of(local.begin(), local.end(),
                [&](const Holding &h) { return h.summands == local.front().summands; });
            if (local.size() > 1 && alike) {
                std::vector<IndexMask> boxes;
                for (const Holding &h : local)
                    boxes.push_back(h.box);
                if (const auto box = tiledBox(boxes))
                    local = {concat(local, *box, task)};
            }
        }
        for (Holding &h : local) {
            if (h.summands.empty() && std::none_of(made.raw.begin(), made.raw.end(), [&](const Holding &r) {
                    return r.device == h.device && r.buffer == h.buffer;
                }))
                m_tensors[static_cast<std::size_t>(task.tensor.index)].available.push_back({h, made.block});
            made.merged.push_back(std::move(h));
        }
    }
    return made.merged;
}

// ---- the regular way
// ----------------------------------------------------------------------------------------

void Materializer::walk(const LayoutPath &path, std::vector<Holding> &holdings,
    const std::vector<DeviceId> &group, const Task &task)
{
    const std::vector<std::int32_t> radices = radicesOf(static_cast<std::int32_t>(group.size()));
    for (const Hop &hop : path.hops) {
        std::vector<Holding> next(holdings.size());
        for (const auto &positions : subgroupsOf(hop.digits, radices)) {
            if (hop.kind == HopKind::Slice) {
                for (const std::int32_t position : positions) {
                    const auto p = static_cast<std::size_t>(position);
                    next[p] = select(holdings[p], boxUnder(hop.to, task.whole, radices, position), task);
                }
                continue;
            }
            std::vector<DeviceId> members;
            std::vector<std::int32_t> all;
            for (const std::int32_t position : positions) {
                members.push_back(group[static_cast<std::size_t>(position)]);
                if (hop.kind == HopKind::AllReduce || hop.kind == HopKind::ReduceScatter)
                    all = unionOf(all, holdings[static_cast<std::size_t>(position)].summands);
            }
            Instruction instruction{.op = task.op, .group = m_builder.groupOf(members)};
            switch (hop.kind) {
            case HopKind::AllReduce:
                instruction.kind = InstructionKind::AllReduce;
                break;
            case HopKind::AllGather:
                instruction.kind = InstructionKind::AllGather;
                instruction.dimension = hop.dimension;
                break;
            case HopKind::ReduceScatter:
                instruction.kind = InstructionKind::ReduceScatter;
                instruction.dimension = hop.dimension;
                break;
            case HopKind::AllToAll:
                instruction.kind = InstructionKind::AllToAll;
                instruction.dimension = hop.dimension;
                instruction.gatherDimension = hop.gatherDimension;
                break;
            case HopKind::Slice:
                break;
            }
            for (const std::int32_t position : positions) {
                const auto p = static_cast<std::size_t>(position);
                const bool reduces = hop.kind == HopKind::AllReduce || hop.kind == HopKind::ReduceScatter;
                Holding &to = next[p];
                to.device = holdings[p].device;
                to.box = boxUnder(hop.to, task.whole, radices, position);
                to.summands = reduces ? all : holdings[p].summands;
                if (complete(task.tensor, to.summands))
                    to.summands.clear();
                to.buffer = newBuffer(task, to.device, to.box, to.summands, memoryOf(task.tensor));
                Instruction own = instruction;
                own.inputs = {holdings[p].buffer};
                own.outputs = {to.buffer};
                m_builder.emit(to.device, task.block, std::move(own));
                const auto n = static_cast<std::int64_t>(members.size());
                m_sent[static_cast<std::size_t>(to.device.index)] +=
                    volumeOf(holdings[p].box) * sizeOf(task.dataType) * (n - 1) / n;
            }
        }
        holdings = std::move(next);
        for (const Holding &h : holdings)
            if (h.summands.empty())
                m_tensors[static_cast<std::size_t>(task.tensor.index)].available.push_back({h, task.block});
    }
}

std::optional<std::vector<Holding>> Materializer::convertWithin(
    const std::vector<Holding> &from, const std::vector<Need> &needs, const Task &task)
{
    // Same devices on both sides, one box each.
    if (from.size() != needs.size())
        return std::nullopt;
    std::vector<DeviceId> group;
    std::vector<Holding> holdings = from;
    std::sort(holdings.begin(), holdings.end(), byDevice);
    std::vector<Holding> wanted;
    for (const Need &need : needs)
        wanted.push_back({need.device, need.box, {}, -1});
    std::stable_sort(wanted.begin(), wanted.end(), byDevice);
    for (std::size_t i = 0; i < holdings.size(); ++i) {
        if (holdings[i].device != wanted[i].device || (i > 0 && holdings[i].device == holdings[i - 1].device))
            return std::nullopt;
        group.push_back(holdings[i].device);
    }
    const auto radices = radicesOf(static_cast<std::int32_t>(group.size()));
    const auto source = recogniseLayout(holdings, task.whole, radices);
    const auto target = recogniseLayout(wanted, task.whole, radices);
    if (!source || !target)
        return std::nullopt;
    PathKey key{*source, *target, extentsOf(task.whole), task.dataType,
        topologyOf(m_cluster, group, m_cluster.nodeOf(group.front()))};
    auto it = m_paths.find(key);
    if (it == m_paths.end())
        it = m_paths
                 .emplace(std::move(key),
                     cheapestPath(*source, *target, task.whole, task.dataType, group, m_cluster))
                 .first;
    if (!it->second)
        return std::nullopt;
    const LayoutPath path = *it->second;
    walk(path, holdings, group, task);
    return holdings;
}

double Materializer::crossingSeconds(const Layout &from, const Layout &to,
    const std::vector<DeviceId> &producers, const std::vector<DeviceId> &consumers, const Task &task) const
{
    const auto fromRadices = radicesOf(static_cast<std::int32_t>(producers.size()));
    const auto toRadices = radicesOf(static_cast<std::int32_t>(consumers.size()));
    std::vector<IndexMask> held;
    for (std::size_t p = 0; p < producers.size(); ++p)
        held.push_back(boxUnder(from, task.whole, fromRadices, static_cast<std::int32_t>(p)));
    std::vector<double> sending(producers.size(), 0);
    double worst = 0;
    for (std::size_t c = 0; c < consumers.size(); ++c) {
        const IndexMask box = boxUnder(to, task.whole, toRadices, static_cast<std::int32_t>(c));
        double receiving = 0;
        std::vector<IndexMask> taken;
        // The same rule as `fetch`: the least busy producer among replicas.
        std::vector<std::size_t> byLoad(producers.size());
        std::iota(byLoad.begin(), byLoad.end(), std::size_t{0});
        std::stable_sort(byLoad.begin(), byLoad.end(),
            [&](std::size_t a, std::size_t b) { return sending[a] < sending[b]; });
        for (const std::size_t p : byLoad) {
            const auto piece = intersection(held[p], box);
            if (!piece || std::find(taken.begin(), taken.end(), *piece) != taken.end())
                continue;
            taken.push_back(*piece);
            const double seconds = collectiveSeconds(m_cluster, CollectiveKind::SendRecv,
                Bytes{volumeOf(*piece) * sizeOf(task.dataType)}, {producers[p], consumers[c]});
            sending[p] += seconds;
            receiving += seconds;
        }
        worst = std::max(worst, receiving);
    }
    return std::max(worst, *std::max_element(sending.begin(), sending.end()));
}

std::optional<Materializer::CrossingChoice> Materializer::chooseCrossing(const Layout &from, const Layout &to,
    const std::vector<DeviceId> &producers, const std::vector<DeviceId> &consumers, const Task &task)
{
    const std::int32_t origin = m_cluster.nodeOf(producers.front());
    CrossingKey key{from, to, extentsOf(task.whole), task.dataType, topologyOf(m_cluster, producers, origin),
        topologyOf(m_cluster, consumers, origin)};
    if (const auto it = m_crossings.find(key); it != m_crossings.end())
        return it->second;

    // Where to land: the wanted layout, or one whose replicas hold slices that an all-gather joins again.
    struct Landing {
        Layout layout;
        LayoutPath after;
    };
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
    for (std::uint32_t subset = 1; subset < (1u << std::min<std::size_t>(replicas.size(), 6)); ++subset)
        for (std::size_t dimension = 0; dimension < task.whole.ranges.size(); ++dimension) {
            Layout layout = to;
            std::int64_t parts = 1;
            for (const std::int8_t digit : layout.dimensionDigits[dimension])
                parts *= radices[static_cast<std::size_t>(digit)];
            for (std::size_t r = 0; r < replicas.size(); ++r)
                if (subset >> r & 1u) {
                    layout.dimensionDigits[dimension].push_back(replicas[r]);
                    parts *= radices[static_cast<std::size_t>(replicas[r])];
                }
            if (task.whole.ranges[dimension].size() % parts != 0)
                continue;
            if (auto path = cheapestPath(layout, to, task.whole, task.dataType, consumers, m_cluster))
                landings.push_back({std::move(layout), std::move(*path)});
        }

    std::vector<std::pair<Layout, LayoutPath>> starts;
    for (auto &[layout, path] : cheapestPaths(from, task.whole, task.dataType, producers, m_cluster))
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
        for (const Landing &landing : landings) {
            if (best && before.seconds + landing.after.seconds >= bestSeconds)
                continue;
            const double seconds = before.seconds + landing.after.seconds
                + crossingSeconds(layout, landing.layout, producers, consumers, task);
            if (!best || seconds < bestSeconds) {
                best = CrossingChoice{before, layout, landing.layout, landing.after};
                bestSeconds = seconds;
            }
        }
    }
    m_crossings.emplace(std::move(key), best);
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

    walk(choice->before, holdings, producers, task);
    std::vector<const Holding *> sources;
    for (const Holding &h : holdings)
        sources.push_back(&h);
    const auto radices = radicesOf(static_cast<std::int32_t>(consumers.size()));
    std::vector<Holding> landed;
    for (std::size_t c = 0; c < consumers.size(); ++c)
        landed.push_back(fetch(sources,
            {consumers[c], boxUnder(choice->to, task.whole, radices, static_cast<std::int32_t>(c))}, task));
    walk(choice->after, landed, consumers, task);
    return landed;
}

// ---- the general way
// ----------------------------------------------------------------------------------------

/// Collects a box from sources that all hold the same summands: local pieces first, then from the device that
/// has sent least. The sources must cover the box.
Holding Materializer::fetch(const std::vector<const Holding *> &sources, const Need &need, const Task &task)
{
    std::vector<const Holding *> byPreference = sources;
    const auto cost = [&](const Holding *h) {
        const bool local = h->device == need.device;
        const bool near = m_cluster.nodeOf(h->device) == m_cluster.nodeOf(need.device);
        return std::make_tuple(local ? 0
                : near               ? 1
                                     : 2,
            local ? 0 : m_sent[static_cast<std::size_t>(h->device.index)], h->device.index);
    };
    std::stable_sort(byPreference.begin(), byPreference.end(),
        [&](const Holding *a, const Holding *b) { return cost(a) < cost(b); });
    std::vector<IndexMask> missing{need.box};
    std::vector<Holding> pieces;
    for (const Holding *source : byPreference) {
        std::vector<IndexMask> still;
        for (const IndexMask &box : missing) {
            const auto piece = intersection(source->box, box);
            if (!piece || volumeOf(*piece) == 0) {
                still.push_back(box);
                continue;
            }
            pieces.push_back(move(select(*source, *piece, task), need.device, task));
            subtract(box, *piece, still);
        }
        missing = std::move(still);
        if (missing.empty())
            break;
    }
    assert(missing.empty() && "the sources do not cover the box");
    return concat(pieces, need.box, task);
}

/// Collects a box from sources with any boxes and summands: cut in cells by the sources' borders, every cell
/// the sum of disjoint sets of summands.
Holding Materializer::fetchGeneral(const std::vector<Holding> &sources, const Need &need, const Task &task)
{
    std::vector<IndexMask> cells{need.box};
    for (std::size_t d = 0; d < need.box.ranges.size(); ++d) {
        std::vector<std::int64_t> borders;
        for (const Holding &h : sources)
            for (const std::int64_t at : {h.box.ranges[d].begin, h.box.ranges[d].end})
                if (at > need.box.ranges[d].begin && at < need.box.ranges[d].end)
                    borders.push_back(at);
        std::sort(borders.begin(), borders.end());
        borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
        std::vector<IndexMask> cut;
        for (const IndexMask &cell : cells) {
            std::int64_t begin = cell.ranges[d].begin;
            for (std::size_t i = 0; i <= borders.size(); ++i) {
                IndexMask part = cell;
                part.ranges[d] = {begin, i < borders.size() ? borders[i] : cell.ranges[d].end};
                begin = part.ranges[d].end;
                cut.push_back(std::move(part));
            }
        }
        cells = std::move(cut);
    }
    std::vector<Holding> done;
    for (const IndexMask &cell : cells) {
        std::vector<const Holding *> candidates;
        for (const Holding &h : sources)
            if (contains(h.box, cell))
                candidates.push_back(&h);
        std::stable_sort(candidates.begin(), candidates.end(), [&](const Holding *a, const Holding *b) {
            const auto cost = [&](const Holding *h) {
                const bool local = h->device == need.device;
                return std::make_tuple(
                    local ? 0 : 1, local ? 0 : m_sent[static_cast<std::size_t>(h->device.index)]);
            };
            return cost(a) < cost(b);
        });
        std::vector<std::int32_t> covered;
        std::vector<Holding> summands;
        for (const Holding *h : candidates) {
            if (!summands.empty() && (h->summands.empty() || !disjointSets(covered, h->summands)))
                continue;
            covered = unionOf(covered, h->summands);
            summands.push_back(move(select(*h, cell, task), need.device, task));
            if (h->summands.empty())
                break;
        }
        assert(!summands.empty() && (summands.front().summands.empty() || covered == task.summands));
        done.push_back(sum(summands, task));
    }
    return concat(done, need.box, task);
}

std::vector<Holding> Materializer::convert(Made &made, const std::vector<Need> &needs, const Task &task)
{
    const std::vector<Holding> merged = merge(made, task);
    // Several boxes on one device are asked for as one where they tile.
    std::vector<Need> joined;
    for (const Need &need : needs) {
        if (std::any_of(joined.begin(), joined.end(), [&](const Need &n) { return n.device == need.device; }))
            continue;
        std::vector<IndexMask> boxes;
        for (const Need &other : needs)
            if (other.device == need.device
                && std::find(boxes.begin(), boxes.end(), other.box) == boxes.end())
                boxes.push_back(other.box);
        if (boxes.size() == 1)
            joined.push_back(need);
        else if (const auto box = tiledBox(boxes))
            joined.push_back({need.device, *box});
        else
            for (const IndexMask &box : boxes)
                joined.push_back({need.device, box});
    }
    std::vector<Holding> result;
    if (auto within = convertWithin(merged, joined, task))
        result = std::move(*within);
    else if (auto across = convertAcross(merged, joined, task))
        result = std::move(*across);
    else {
        const bool alike = std::all_of(merged.begin(), merged.end(),
            [&](const Holding &h) { return h.summands == merged.front().summands; });
        std::vector<const Holding *> sources;
        for (const Holding &h : merged)
            sources.push_back(&h);
        for (const Need &need : joined)
            result.push_back(alike ? fetch(sources, need, task) : fetchGeneral(made.raw, need, task));
    }
    // Back to what was asked for, in its order.
    std::vector<Holding> ordered;
    for (const Need &need : needs) {
        const auto it = std::find_if(result.begin(), result.end(),
            [&](const Holding &h) { return h.device == need.device && contains(h.box, need.box); });
        assert(it != result.end());
        ordered.push_back(select(*it, need.box, task));
        if (it->box != need.box)
            result.push_back(ordered.back());
    }
    return ordered;
}

Result<std::vector<std::int32_t>> Materializer::ensure(
    TensorId tensor, const std::vector<Need> &needs, std::int32_t block, OperatorId op)
{
    TensorState &state = m_tensors[static_cast<std::size_t>(tensor.index)];
    Task task{.tensor = tensor,
        .op = op,
        .block = block,
        .dataType = m_graph.at(tensor).type.dataType,
        .whole = wholeBox(tensor)};
    std::vector<std::int32_t> buffers(needs.size(), -1);
    const auto meetLocally = [&] {
        bool all = true;
        for (std::size_t i = 0; i < needs.size(); ++i) {
            if (buffers[i] >= 0)
                continue;
            const Available *containing = nullptr;
            for (const Available &entry : state.available) {
                if (entry.holding.device != needs[i].device)
                    continue;
                if (entry.holding.box == needs[i].box) {
                    containing = &entry;
                    break;
                }
                if (contains(entry.holding.box, needs[i].box)
                    && (!containing || volumeOf(entry.holding.box) < volumeOf(containing->holding.box)))
                    containing = &entry;
            }
            if (!containing) {
                all = false;
                continue;
            }
            const Holding source = containing->holding;
            const Holding found = select(source, needs[i].box, task);
            if (found.buffer != source.buffer)
                state.available.push_back({found, block});
            buffers[i] = found.buffer;
        }
        return all;
    };
    if (meetLocally())
        return buffers;
    if (state.made.empty())
        return Error{ErrorCode::Internal, "nothing makes " + m_graph.at(tensor).name + " before it is read",
            {}, "operator:" + m_graph.at(op).name};
    std::fill(buffers.begin(), buffers.end(), -1);

    // Every block's contributions are brought over on their own, then added up.
    std::vector<std::vector<Holding>> brought;
    for (Made &made : state.made) {
        Task own = task;
        const BlockInfo &from = m_builder.block(made.block);
        const BlockInfo &to = m_builder.block(block);
        if (made.block == block)
            own.block = block;
        else if (from.kind == SegmentKind::Prologue || !perMicroBatch(block))
            own.block = from.kind == SegmentKind::Prologue ? made.block : block;
        else {
            // Stay inside the block if no other device takes part.
            const auto isLocal = [&] {
                for (const Need &need : needs)
                    if (std::none_of(made.raw.begin(), made.raw.end(), [&](const Holding &h) {
                            return h.device == need.device && contains(h.box, need.box);
                        }))
                        return false;
                return std::all_of(made.raw.begin(), made.raw.end(), [&](const Holding &h) {
                    return h.summands.size() == made.raw.front().summands.size()
                        && h.summands == made.raw.front().summands;
                });
            };
            own.block = isLocal() && from.stage == to.stage ? block : transferBlock(made.block, block);
        }
        for (const Holding &h : made.raw)
            own.summands = unionOf(own.summands, h.summands);
        brought.push_back(convert(made, needs, own));
    }
    for (std::size_t i = 0; i < needs.size(); ++i) {
        std::vector<Holding> pieces;
        for (const auto &list : brought)
            pieces.push_back(list[i]);
        const Holding total = sum(pieces, task);
        buffers[i] = total.buffer;
        if (findAvailable(tensor, needs[i].device, needs[i].box, block) < 0)
            state.available.push_back({total, block});
    }
    return buffers;
}

} // namespace planloom
