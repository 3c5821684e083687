#include "engine/search/partition/axis_collectives.h"

#include <algorithm>

namespace planloom {

AxisCollectives::AxisCollectives(
    const CostModel &costs, GroupShape whole, AxisParts parts, std::int32_t devices)
    : m_costs(costs)
    , m_all{1, devices}
    , m_shapes(std::move(parts))
{
    m_shapes[m_all] = whole;
}

double AxisCollectives::seconds(CollectiveKind kind, std::int64_t bytes) const
{
    return seconds(kind, bytes, m_all);
}

double AxisCollectives::seconds(CollectiveKind kind, std::int64_t bytes, AxisPart over) const
{
    if (over.count < 2 || bytes == 0)
        return 0;
    if (const auto known = m_known.find({kind, bytes, over}); known != m_known.end())
        return known->second;
    double least = m_costs.collective(kind, Bytes{bytes}, m_shapes.at(over));
    if (kind == CollectiveKind::AllReduce)
        least = std::min(least,
            seconds(CollectiveKind::ReduceScatter, bytes, over)
                + seconds(CollectiveKind::AllGather, bytes, over));
    for (std::int32_t near = 2; kind != CollectiveKind::AllToAll && near < over.count; ++near)
        if (over.count % near == 0 && m_shapes.contains({over.stride, near})
            && m_shapes.contains({over.stride * near, over.count / near}))
            least = std::min(least, apart(kind, bytes, over, near));
    m_known[{kind, bytes, over}] = least;
    return least;
}

double AxisCollectives::apart(CollectiveKind kind, std::int64_t bytes, AxisPart over, std::int32_t near) const
{
    const AxisPart inner{over.stride, near};
    const AxisPart outer{over.stride * near, over.count / near};
    switch (kind) {
    case CollectiveKind::AllGather: // of what cuts innermost, so that parts stay boxes
        return seconds(kind, bytes / outer.count, inner) + seconds(kind, bytes, outer);
    case CollectiveKind::ReduceScatter: // the other way round
        return seconds(kind, bytes, outer) + seconds(kind, bytes / outer.count, inner);
    default: {
        const auto around = [&](AxisPart first, AxisPart second) {
            return seconds(CollectiveKind::ReduceScatter, bytes, first)
                + seconds(CollectiveKind::AllReduce, bytes / first.count, second)
                + seconds(CollectiveKind::AllGather, bytes, first);
        };
        return std::min(around(inner, outer), around(outer, inner));
    }
    }
}

} // namespace planloom
