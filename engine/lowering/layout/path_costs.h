#pragma once

#include "engine/lowering/layout/layout.h"
#include "engine/lowering/layout/layout_digits.h"

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

namespace planloom {

/// What hops between layouts of one tensor over one group of devices take, in seconds. Remembers them.
class PathCosts
{
public:
    /// All references must outlive it. @param whole  the tensor's box
    PathCosts(const IndexMask &whole, DataType dataType, const std::vector<DeviceId> &group,
        const Cluster &cluster, const CostModel &costs, const std::vector<std::int32_t> &radices,
        Combination combination, Launch launch);

    /// The devices of a group copy at once; they are taken to be like the first.
    double copying(std::int64_t elements) const;
    double permuting(
        const std::vector<std::pair<std::int32_t, std::int32_t>> &messages, std::int64_t elements) const;
    /// Of the groups whose members differ in `digits`: the slowest.
    double collective(CollectiveKind kind, std::int64_t elements, const Digits &digits);
    /// The least of `collective` over any digits of that many parts; infinite where there are none.
    double leastCollective(CollectiveKind kind, std::int64_t elements, std::int64_t parts);
    /// How many parts some digits have, ascending, each number once; nothing where digits are too many to be
    /// looked at in all their combinations.
    const std::vector<std::int64_t> &partCounts();

private:
    using Shapes = std::vector<GroupShape>;

    void fillBucket(GroupShape group);
    double inBucket(CollectiveKind kind, std::int64_t bytes, GroupShape shape) const;
    double alone(CollectiveKind kind, Bytes bytes, GroupShape shape) const;
    Shapes shapesOf(const Digits &digits) const;
    double slowest(CollectiveKind kind, std::int64_t elements, const Shapes &shapes) const;

    const IndexMask &m_whole;
    std::int64_t m_elementBytes;
    const std::vector<DeviceId> &m_group;
    const Cluster &m_cluster;
    const CostModel &m_costs;
    const std::vector<std::int32_t> &m_radices;
    Combination m_combination; ///< Of summands.
    Launch m_launch;
    double m_ofBucket = 1; ///< Which part of its bucket the tensor is.
    double m_hopSeconds = 0; ///< That every collective in a bucket costs beside its share.
    std::unordered_map<std::string, double> m_seconds{}; ///< By digits, kind and elements.
    std::map<std::int64_t, std::vector<Shapes>> m_shapes{}; ///< Of digits by their parts, each once.
    std::vector<std::int64_t> m_partCounts{};
    std::map<std::tuple<CollectiveKind, std::int64_t, std::int64_t>, double> m_least{};
};

} // namespace planloom
