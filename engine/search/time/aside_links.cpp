#include "engine/search/time/aside_links.h"

#include <algorithm>

namespace planloom {

namespace {

Bytes bytesAs(double bytes)
{
    return Bytes{static_cast<std::int64_t>(bytes)};
}

ShardLayout withoutSums(ShardLayout layout)
{
    const auto added = [](AxisLayout own) { return own == kSummands ? kWhole : own; };
    return {added(layout.inner), added(layout.outer)};
}

} // namespace

std::int32_t rankOf(const MeshPlaces &places, DeviceId device)
{
    for (std::int32_t rank = 0; rank < places.ranks; ++rank) {
        const std::vector<DeviceId> own = places.allOf(rank);
        if (std::find(own.begin(), own.end(), device) != own.end())
            return rank;
    }
    return -1;
}

AsideLinks::AsideLinks(const std::vector<std::vector<DeviceId>> &groups, const Cluster &cluster,
    const PartitionProblem &problem, const MeshPlaces &places)
    : m_groups(groups)
    , m_cluster(cluster)
    , m_setting(problem.setting())
    , m_costs(*m_setting.costs)
    , m_problem(problem)
    , m_places(places)
{
}

bool AsideLinks::isIn(std::int32_t group, std::int32_t rank)
{
    const auto [known, fresh] = m_isIn.try_emplace({group, rank}, false);
    if (fresh)
        known->second = rankOf(m_places, devicesOf(group).front()) == rank;
    return known->second;
}

AsideLinks::Sent AsideLinks::toGroup(TensorId tensor, bool gradient, ShardLayout layout, std::int32_t rank,
    std::int32_t group, double groupParts)
{
    const MovedTensor moved = m_problem.moved(tensor, gradient);
    const ShardAxes sums = m_setting.sumsOf(layout);
    const double bytes = bytesOf(moved, tensor);
    const Reach &reach = reachOf(rank, group, layout, isCut(tensor));
    const auto pieces = static_cast<double>(reach.pieces);
    const double piece = std::min(bytes / pieces, bytes / groupParts);
    const double share = std::max(1.0, pieces / groupParts) / pieces; // of the pieces that one device wants
    Sent sent;
    const double summands = m_setting.devicesOver(sums);
    for (const auto &[shape, count] : reach.received)
        sent.link += count * share * seconds(piece, shape);
    // Those that hold pieces themselves send them to one device of the group after the other.
    const std::size_t devices = devicesOf(group).size();
    sent.link *= reach.local > 0 ? static_cast<double>(devices) : 1;
    if (sums != ShardAxes::None) {
        // One by one, or added up where they are.
        double joined = m_problem.moves().seconds(layout, withoutSums(layout), moved);
        if (isIn(group, rank) && m_places.replicas > 1 && isCut(tensor))
            joined += m_costs.collective(CollectiveKind::AllGather, bytesAs(bytes),
                groupShape(m_cluster, m_places.replicaGroup(rank, 0)));
        else if (!isIn(group, rank))
            joined += sent.link;
        const double single = sent.link * summands
            + (summands - 1) * seconds(piece, reach.sent.empty() ? GroupShape{} : reach.sent.front().first);
        if (joined < single) {
            sent.link = joined;
            return sent;
        }
        sent.link = single;
    }
    if (pieces * summands > groupParts)
        sent.copies = copy(bytes / groupParts);
    return sent;
}

AsideLinks::Sent AsideLinks::fromGroup(TensorId tensor, bool gradient, ShardLayout layout, std::int32_t rank,
    std::int32_t group, double groupParts)
{
    const double bytes = bytesOf(m_problem.moved(tensor, gradient), tensor);
    const Reach &reach = reachOf(rank, group, layout, isCut(tensor));
    const auto pieces = static_cast<double>(reach.pieces);
    const auto sources = static_cast<double>(devicesOf(group).size());
    const double piece = bytes / pieces;
    Sent sent;
    double count = reach.local;
    for (const auto &[shape, each] : reach.sent) {
        sent.link += each * seconds(piece, shape) / sources;
        count += each;
    }
    if (pieces > groupParts) {
        sent.firstCopy = copy(piece);
        sent.copies = count / sources * sent.firstCopy;
    }
    if (reach.everybody.ranks > 2 && reach.pieces == 1)
        sent.link = std::min(
            sent.link, m_costs.collective(CollectiveKind::Broadcast, bytesAs(bytes), reach.everybody));
    // Shards that want it whole may get a slice each, which they gather.
    if (const std::int32_t holders = m_places.shards / m_setting.partsOf(layout);
        holders > 1 && !isIn(group, rank)) {
        const double gathered = sent.link / holders
            + m_costs.collective(CollectiveKind::AllGather, bytesAs(piece),
                groupShape(m_cluster, m_places.shardsOver(0, rank, ShardAxes::Both)));
        sent.link = std::min(sent.link, gathered);
    }
    return sent;
}

AsideLinks::Sent AsideLinks::between(TensorId tensor, bool gradient, std::int32_t from, std::int32_t to)
{
    const DeviceId first = devicesOf(from).front();
    const DeviceId second = devicesOf(to).front();
    if (first == second)
        return {};
    return {.link = seconds(
                bytesOf(m_problem.moved(tensor, gradient), tensor), groupShape(m_cluster, {first, second}))};
}

bool AsideLinks::isCut(TensorId tensor) const
{
    const BatchInfo &batch = *m_setting.model->batch;
    const auto t = at(tensor);
    return t < batch.tensorRole.size() && batch.tensorRole[t] == BatchRole::Split;
}

double AsideLinks::bytesOf(const MovedTensor &moved, TensorId tensor) const
{
    return static_cast<double>(moved.bytes) * (isCut(tensor) ? m_places.replicas : 1);
}

double AsideLinks::copy(double bytes) const
{
    return m_costs.copy(bytesAs(bytes), m_setting.deviceClass);
}

double AsideLinks::seconds(double bytes, GroupShape shape) const
{
    return m_costs.collective(CollectiveKind::SendRecv, bytesAs(bytes), shape);
}

const AsideLinks::Reach &AsideLinks::reachOf(
    std::int32_t rank, std::int32_t group, ShardLayout layout, bool cut)
{
    const bool inner = planloom::isCut(layout.inner);
    const bool outer = planloom::isCut(layout.outer);
    const auto [known, fresh] = m_reach.try_emplace({rank, group, inner, outer, cut});
    if (!fresh)
        return known->second;
    Reach &reach = known->second;
    const std::vector<DeviceId> &own = devicesOf(group);
    const DeviceId first = own.front();
    const std::int32_t innerShards = m_places.shards / m_places.outerShards;
    std::map<std::int32_t, DeviceId> nearest; // by piece
    std::vector<DeviceId> all{first};
    const auto isNearer = [&](DeviceId a, DeviceId b) {
        const auto distance = [&](DeviceId each) {
            return each == first ? 0 : m_cluster.nodeOf(each) == m_cluster.nodeOf(first) ? 1 : 2;
        };
        return distance(a) < distance(b);
    };
    const auto add = [&](std::vector<std::pair<GroupShape, double>> &to, DeviceId device) {
        const GroupShape shape = groupShape(m_cluster, {first, device});
        const auto at =
            std::find_if(to.begin(), to.end(), [&](const auto &each) { return each.first == shape; });
        if (at == to.end())
            to.emplace_back(shape, 1);
        else
            ++at->second;
    };
    for (std::int32_t replica = 0; replica < m_places.replicas; ++replica)
        for (std::int32_t shard = 0; shard < m_places.shards; ++shard) {
            const DeviceId device = m_places.at(replica, rank, shard);
            const std::int32_t piece =
                ((cut ? replica : 0) * m_places.outerShards + (outer ? shard / innerShards : 0)) * innerShards
                + (inner ? shard % innerShards : 0);
            const auto [at, isFirst] = nearest.try_emplace(piece, device);
            if (!isFirst && isNearer(device, at->second))
                at->second = device;
            if (std::find(own.begin(), own.end(), device) != own.end()) {
                ++reach.local;
            } else {
                add(reach.sent, device);
                all.push_back(device);
            }
        }
    reach.pieces = static_cast<std::int32_t>(nearest.size());
    for (const auto &[piece, device] : nearest)
        if (device != first)
            add(reach.received, device);
    reach.everybody = groupShape(m_cluster, all);
    return reach;
}

} // namespace planloom
