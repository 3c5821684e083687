#pragma once

#include "engine/lowering/layout/path_costs.h"

#include <cstdint>
#include <map>
#include <vector>

namespace planloom {

/// What a path of layouts is wanted to end with.
struct PathGoal {
    std::vector<std::int64_t> extents{}; ///< By dimension: of the largest cell that is wanted.
    std::int64_t elements = 0; ///< Of the largest cell.
    std::int64_t summands = 1; ///< How many are wanted.
};

/// How long paths to a goal take at least, by layouts of which only the number of parts is known: of each
/// dimension and of summands, whichever digits number them. Every hop between layouts is one between such
/// numbers, no dearer; so it is a bound that the triangle inequality holds for, as A* asks.
class LayoutBound
{
public:
    /// @param from   the layout that paths begin with
    /// O(ways to share the group's parts out x kinds of hops x log)
    LayoutBound(const Layout &from, const PathGoal &goal, const IndexMask &whole,
        const std::vector<std::int32_t> &radices, PathCosts &costs);

    /// Seconds; infinite where no path leads from there to the goal.
    double from(const Layout &layout) const;

private:
    using Parts = std::vector<std::int64_t>; ///< By dimension, then of summands.
    struct Arrow {
        std::int32_t from = 0;
        double seconds = 0;
    };

    Parts partsOf(const Layout &layout) const;
    std::int32_t stateOf(const Parts &parts);
    void addHops(std::int32_t state);
    void relax();

    const IndexMask &m_whole;
    const std::vector<std::int32_t> &m_radices;
    PathCosts &m_costs;
    std::int64_t m_positions = 1;
    std::map<Parts, std::int32_t> m_states{};
    std::vector<Parts> m_parts{}; ///< By state.
    std::vector<std::vector<Arrow>> m_arrows{}; ///< By state: hops that lead to it.
    std::vector<double> m_seconds{}; ///< By state.
};

} // namespace planloom
