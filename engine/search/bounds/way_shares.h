#pragma once

#include "engine/search/memory/held_limits.h"

#include <vector>

namespace planloom {

/// How much of a mean of ways each of them is so that the least time of some partitions is longest in it, and
/// what bytes cost beside that they hold beyond limits.
class WayShares
{
public:
    /// Partitions keep to limits from now on. @param limits  may be added to; must outlive it
    void keepTo(const HeldLimits &limits) { m_limits = &limits; }
    /// Of a partition and a way that came with it. @param byWay  seconds of it, of all ways; @param
    /// byPartition those of the new way under the partitions before
    void add(const std::vector<std::int32_t> &choice, const std::vector<double> &byWay,
        std::vector<double> byPartition);

    struct Shares {
        std::vector<double> ways{}; ///< Of each, in the mean whose least time is longest.
        std::vector<double> partitions{}; ///< Of each, in the mixture that the mean cannot tell apart.
        std::vector<double> prices{}; ///< Seconds of a byte, by limit.
    };
    Shares best();
    /// What bytes are held at these prices; nothing costs anything without limits.
    const HeldLimits *limits() const { return m_beyond.empty() ? nullptr : m_limits; }

private:
    void holdAgainstLimits();

    std::vector<std::vector<double>> m_seconds{}; ///< Of each way under each partition.
    std::vector<std::vector<std::int32_t>> m_choices{}; ///< Of each partition.
    const HeldLimits *m_limits = nullptr;
    std::vector<std::vector<double>> m_beyond{}; ///< Bytes beyond each limit under each partition.
    double m_expected = 0; ///< What the bound of the partitions so far comes to.
};

} // namespace planloom
