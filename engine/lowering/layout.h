#pragma once

#include "engine/graph/mask.h"
#include "engine/hardware/cost_model.h"
#include "engine/lowering/execution_plan.h"

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace planloom {

/// What one device holds of a pTensor: a box, and which of its summands.
struct Holding {
    DeviceId device{};
    IndexMask box{};
    SummandSet summands{};
    std::int32_t buffer = -1; ///< Index into the device's buffers.
};

/// How a tensor lies over a group of devices: R (replicas) x V (summands) x D (parts per dimension) of the
/// reference (SuperScaler, arXiv:2301.08984, section 3.4), with its placement.
///
/// The group's n devices are numbered in mixed radix over `radices` (prime factors of n, outermost first),
/// and each digit has one role. Unlike an (R, V, D) vector alone this says where every part lies, so a path
/// between two layouts is a path between placements too.
struct Layout {
    /// Digits that number the summands, outermost first; the order does not matter to the value.
    std::vector<std::int8_t> summandDigits{};
    /// Per dimension of the tensor: the digits that number its parts, outermost first.
    std::vector<std::vector<std::int8_t>> dimensionDigits{};
    // Digits in neither are replicas.
    friend auto operator<=>(const Layout &, const Layout &) = default;
};

/// The prime factors of n, largest first; empty for n = 1.
std::vector<std::int32_t> radicesOf(std::int32_t n);

/// Recognises holdings, one per device in the group's order, as a layout. The boxes must be a uniform grid
/// over `whole`, and every box must be held with all summands, cut in the same way.
/// @return nothing if they are not a grid, or not aligned with the digits
std::optional<Layout> recogniseLayout(
    const std::vector<Holding> &holdings, const IndexMask &whole, const std::vector<std::int32_t> &radices);

/// The box of `whole` that device number `position` holds under `layout`.
IndexMask boxUnder(const Layout &layout, const IndexMask &whole, const std::vector<std::int32_t> &radices,
    std::int32_t position);

/// One hop between layouts: the digits that change role.
enum class HopKind : std::uint8_t { AllReduce, AllGather, ReduceScatter, AllToAll, Slice };
struct Hop {
    HopKind kind = HopKind::Slice;
    std::vector<std::int8_t> digits{}; ///< Outermost first.
    std::int8_t dimension = -1; ///< Cut (ReduceScatter, AllToAll, Slice) or gathered (AllGather).
    std::int8_t gatherDimension = -1; ///< AllToAll: gathered.
    Layout to{};
    friend auto operator<=>(const Hop &, const Hop &) = default;
};

struct LayoutPath {
    double seconds = 0;
    std::vector<Hop> hops{};
};

/// Cheapest path, by `costs`, from `from` to `to` within one group of devices, both
/// over the tensor box `whole`. All-gather and all-to-all act on the innermost digits of a dimension, so that
/// every part stays a box. Exact: Dijkstra over all layouts of the group.
/// @return nothing if `to` cannot be reached (it has summands that `from` lacks, or extents do not divide)
std::optional<LayoutPath> cheapestPath(const Layout &from, const Layout &to, const IndexMask &whole,
    DataType dataType, const std::vector<DeviceId> &group, const Cluster &cluster, const CostModel &costs);

/// Seconds from `from` to every layout without summands that can be reached.
std::map<Layout, LayoutPath> cheapestPaths(const Layout &from, const IndexMask &whole, DataType dataType,
    const std::vector<DeviceId> &group, const Cluster &cluster, const CostModel &costs);

/// Positions in the group that communicate in `hop`: lists of positions whose digits other than the hop's are
/// equal, each in the order of the hop's digits.
std::vector<std::vector<std::int32_t>> subgroupsOf(
    const std::vector<std::int8_t> &digits, const std::vector<std::int32_t> &radices);

} // namespace planloom
