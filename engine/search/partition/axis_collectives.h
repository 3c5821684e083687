#pragma once

#include "engine/hardware/cost_model.h"

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

namespace planloom {

/// Devices of an axis that lie evenly apart in it.
struct AxisPart {
    std::int32_t stride = 1;
    std::int32_t count = 1;
    friend auto operator<=>(const AxisPart &, const AxisPart &) = default;
};
/// The shapes of such groups, of all that have one stride and count that which takes longest; those that an
/// axis falls into where it is taken apart by divisors.
using AxisParts = std::map<AxisPart, GroupShape>;

/// Collectives over the devices of an axis: by one launch, or by one after the other over parts of them,
/// which have fewer steps, or fewer that leave a node; lowering's ways take axes apart like that
/// (lowering/layout/layout.h `cheapestPath`). Answers are remembered. For one thread.
class AxisCollectives
{
public:
    /// @param costs  must outlive it; @param whole  of all devices; @param parts  without any nothing is
    /// taken apart
    AxisCollectives(const CostModel &costs, GroupShape whole, AxisParts parts, std::int32_t devices);

    /// Seconds. @param kind  AllGather, ReduceScatter, AllReduce, or AllToAll, which is not taken apart:
    /// parts would lie in another order @param bytes  as `CostModel::collective`
    double seconds(CollectiveKind kind, std::int64_t bytes) const;

private:
    double seconds(CollectiveKind kind, std::int64_t bytes, AxisPart over) const;
    /// Two or three after one another: over `near` devices that lie `over.stride` apart, and over one of each
    /// such group.
    double apart(CollectiveKind kind, std::int64_t bytes, AxisPart over, std::int32_t near) const;

    const CostModel &m_costs;
    const AxisPart m_all;
    AxisParts m_shapes;
    mutable std::map<std::tuple<CollectiveKind, std::int64_t, AxisPart>, double> m_known{};
};

} // namespace planloom
