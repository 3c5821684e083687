#include "engine/lowering/layout/path_costs.h"

#include "engine/hardware/full_bucket.h"
#include "engine/lowering/layout/permutation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace planloom {

PathCosts::PathCosts(const IndexMask &whole, DataType dataType, const std::vector<DeviceId> &group,
    const Cluster &cluster, const CostModel &costs, const std::vector<std::int32_t> &radices,
    Combination combination, Launch launch)
    : m_whole(whole)
    , m_elementBytes(sizeOf(dataType))
    , m_group(group)
    , m_cluster(cluster)
    , m_costs(costs)
    , m_radices(radices)
    , m_combination(combination)
    , m_launch(launch)
{
    if (launch == Launch::InBucket)
        fillBucket(groupShape(cluster, group));
}

double PathCosts::copying(std::int64_t elements) const
{
    return m_costs.copy(Bytes{elements * m_elementBytes}, m_cluster.classOf(m_group.front()));
}

double PathCosts::permuting(
    const std::vector<std::pair<std::int32_t, std::int32_t>> &messages, std::int64_t elements) const
{
    return secondsOf(messages, m_group.size(), [&](std::int32_t sender, std::int32_t receiver) {
        return m_costs.collective(CollectiveKind::SendRecv, Bytes{elements * m_elementBytes},
            groupShape(m_cluster, {m_group[at(sender)], m_group[at(receiver)]}));
    });
}

/// A bucket is just full (`isFullBucket`). Each further hop takes its latency again, of which a message has
/// its share.
void PathCosts::fillBucket(GroupShape group)
{
    const auto seconds = [&](std::int64_t bytes) {
        return m_costs.collective(CollectiveKind::AllReduce, Bytes{bytes}, group);
    };
    const double latency = seconds(1);
    const std::int64_t bytes = elementCount(shapeOf(m_whole)) * m_elementBytes;
    std::int64_t bucket = std::int64_t{1} << 16;
    while (bucket < bytes || (latency > 0 && !isFullBucket(latency, seconds(bucket))))
        bucket *= 2;
    m_ofBucket = static_cast<double>(bytes) / static_cast<double>(bucket);
    m_hopSeconds = latency * m_ofBucket;
}

/// A message's share of what its bucket takes.
double PathCosts::inBucket(CollectiveKind kind, std::int64_t bytes, GroupShape shape) const
{
    const Bytes all{std::llround(static_cast<double>(bytes) / m_ofBucket)};
    return m_ofBucket * alone(kind, all, shape);
}

double PathCosts::alone(CollectiveKind kind, Bytes bytes, GroupShape shape) const
{
    const bool reduces = kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter;
    return reduces ? reductionSeconds(m_costs, kind, bytes, shape, m_combination)
                   : m_costs.collective(kind, bytes, shape);
}

/// Of the groups whose members differ in `digits`; those that look alike to the links cost the same.
PathCosts::Shapes PathCosts::shapesOf(const Digits &digits) const
{
    Shapes shapes;
    std::vector<std::vector<std::int32_t>> distinct;
    for (const auto &positions : subgroupsOf(digits, m_radices)) {
        std::vector<DeviceId> members;
        for (const std::int32_t position : positions)
            members.push_back(m_group[at(position)]);
        std::vector<std::int32_t> nodes = topologyOf(m_cluster, members, m_cluster.nodeOf(members.front()));
        std::sort(nodes.begin(), nodes.end());
        if (std::find(distinct.begin(), distinct.end(), nodes) != distinct.end())
            continue;
        distinct.push_back(std::move(nodes));
        if (const GroupShape shape = groupShape(m_cluster, members);
            std::find(shapes.begin(), shapes.end(), shape) == shapes.end())
            shapes.push_back(shape);
    }
    return shapes;
}

double PathCosts::slowest(CollectiveKind kind, std::int64_t elements, const Shapes &shapes) const
{
    const Bytes bytes{elements * m_elementBytes};
    double worst = 0;
    for (const GroupShape &shape : shapes)
        // In a bucket more than what a smaller group could save by its latency.
        worst = std::max(worst,
            m_launch == Launch::InBucket ? inBucket(kind, bytes.count, shape) + m_hopSeconds
                                         : alone(kind, bytes, shape));
    return worst;
}

double PathCosts::collective(CollectiveKind kind, std::int64_t elements, const Digits &digits)
{
    std::string key(digits.begin(), digits.end());
    key += static_cast<char>(kind);
    key.append(reinterpret_cast<const char *>(&elements), sizeof elements); // its bytes, to be told apart by
    if (const auto it = m_seconds.find(key); it != m_seconds.end())
        return it->second;
    const double worst = slowest(kind, elements, shapesOf(digits));
    m_seconds.emplace(std::move(key), worst);
    return worst;
}

const std::vector<std::int64_t> &PathCosts::partCounts()
{
    constexpr std::size_t kMostLooks = std::size_t{1} << 19; // devices of all combinations
    if (!m_partCounts.empty() || m_radices.size() > 16 || (m_group.size() << m_radices.size()) > kMostLooks)
        return m_partCounts;
    for (std::uint32_t subset = 1; subset < 1U << m_radices.size(); ++subset) {
        Digits digits;
        for (std::size_t d = 0; d < m_radices.size(); ++d)
            if (subset >> d & 1U)
                digits.push_back(static_cast<std::int8_t>(d));
        std::vector<Shapes> &all = m_shapes[partsOf(digits, m_radices)];
        if (Shapes shapes = shapesOf(digits); std::find(all.begin(), all.end(), shapes) == all.end())
            all.push_back(std::move(shapes));
    }
    for (const auto &[parts, shapes] : m_shapes)
        m_partCounts.push_back(parts);
    return m_partCounts;
}

double PathCosts::leastCollective(CollectiveKind kind, std::int64_t elements, std::int64_t parts)
{
    const auto [known, isNew] =
        m_least.try_emplace({kind, elements, parts}, std::numeric_limits<double>::infinity());
    if (isNew)
        for (const Shapes &shapes : m_shapes[parts])
            known->second = std::min(known->second, slowest(kind, elements, shapes));
    return known->second;
}

} // namespace planloom
