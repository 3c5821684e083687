#pragma once

#include "engine/graph/operators/mask.h"
#include "engine/hardware/cost_model.h"
#include "engine/lowering/program/execution_plan.h"

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
    ValueMask valuePart{}; ///< As in `BufferInfo`: what a ValueSelect left of these summands.
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
    /// The digits number the summands in one order here, in another there: only a reduction over all of them
    /// is known to leave everybody the same.
    bool mixedSummands = false;
    friend auto operator<=>(const Layout &, const Layout &) = default;
};

/// The prime factors of n, largest first; empty for n = 1.
std::vector<std::int32_t> radicesOf(std::int32_t n);

/// Recognises holdings, one per device in the group's order, as a layout. The boxes must be a uniform grid
/// over `whole`, and every box must be held with all summands, cut in the same way.
/// @param mixed  whether summands may be mixed (`Layout::mixedSummands`), where they are no layout otherwise
/// @return nothing if they are not a grid, or not aligned with the digits
std::optional<Layout> recogniseLayout(const std::vector<Holding> &holdings, const IndexMask &whole,
    const std::vector<std::int32_t> &radices, bool mixed = false);

/// The box of `whole` that device number `position` holds under `layout`.
IndexMask boxUnder(const Layout &layout, const IndexMask &whole, const std::vector<std::int32_t> &radices,
    std::int32_t position);

/// What one position of a group holds or wants: a box, and the number of its summand. Only whether numbers
/// are equal matters; all are 0 where values are complete.
struct Cell {
    IndexMask box{};
    std::int32_t summand = 0;
    friend auto operator<=>(const Cell &, const Cell &) = default;
};

/// What every position holds under `layout`.
std::vector<Cell> cellsUnder(
    const Layout &layout, const IndexMask &whole, const std::vector<std::int32_t> &radices);

/// One hop between layouts.
enum class HopKind : std::uint8_t {
    AllReduce,
    AllGather, ///< Of the innermost digits of a dimension, so that every part stays a box.
    ReduceScatter,
    AllToAll, ///< As AllGather.
    Slice, ///< Local: every position keeps a box of what it has.
    ValueSelect, ///< Local, last: a Slice of which one position carries the value on, others zeros.
    Permute, ///< Positions swap what they hold, in messages.
};
struct Hop {
    HopKind kind = HopKind::Slice;
    std::vector<std::int8_t> digits{}; ///< Of collectives: those that change role, outermost first.
    std::int8_t dimension = -1; ///< Cut (ReduceScatter, AllToAll) or gathered (AllGather).
    std::int8_t gatherDimension = -1; ///< AllToAll: gathered.
    std::vector<std::int32_t>
        sources{}; ///< Permute, by position: whose cell it gets; its own where it stays.
    Layout to{}; ///< Where `cells` is empty: the layout it leads to.
    std::vector<Cell> cells{}; ///< Of the last Slice, ValueSelect or Permute: what was asked for.
    std::vector<ValueMask> valueParts{}; ///< ValueSelect, by position: the part of what it holds.
    friend auto operator<=>(const Hop &, const Hop &) = default;
};

/// Whether collectives of a path are launched alone, or in a bucket with others of the same group: then
/// their latency is shared, and a path of few hops leaves few kinds of groups in the bucket.
enum class Launch : std::uint8_t { Alone, InBucket };

struct LayoutPath {
    double seconds = 0;
    std::vector<Hop> hops{};
};

/// Cheapest path, by `costs`, from a layout to what every position of the group wants, over the tensor box
/// `whole`. Exact over the hops above: Dijkstra over all layouts of the group. Of paths that cost the same,
/// one with the fewest hops. In the middle of a path, groups of more than 16 devices permute two digits at a
/// time.
/// @param to  by position. Its summands are any that together make the value
/// @param combination  of the tensor's summands: what a reduction takes, and whether values can be divided
/// @return nothing if `to` cannot be reached (boxes that are neither held nor part of what can be made)
std::optional<LayoutPath> cheapestPath(const Layout &from, const std::vector<Cell> &to,
    const IndexMask &whole, DataType dataType, const std::vector<DeviceId> &group, const Cluster &cluster,
    const CostModel &costs, Combination combination = Combination::Sum, Launch launch = Launch::Alone);

/// The same, to a layout.
std::optional<LayoutPath> cheapestPath(const Layout &from, const Layout &to, const IndexMask &whole,
    DataType dataType, const std::vector<DeviceId> &group, const Cluster &cluster, const CostModel &costs,
    Combination combination = Combination::Sum);

/// Paths from `from` to every layout without summands that is not further than `bound` (seconds), without a
/// Permute.
std::map<Layout, LayoutPath> cheapestPaths(const Layout &from, const IndexMask &whole, DataType dataType,
    const std::vector<DeviceId> &group, const Cluster &cluster, const CostModel &costs, double bound,
    Combination combination = Combination::Sum);

/// A number for each device, all that the costs of a group's paths depend on: its node, counted from
/// `origin`, or where nodes are not alike, its own and its class.
std::vector<std::int32_t> topologyOf(
    const Cluster &cluster, const std::vector<DeviceId> &group, std::int32_t origin);

/// Positions in the group that communicate in `hop`: lists of positions whose digits other than the hop's are
/// equal, each in the order of the hop's digits.
std::vector<std::vector<std::int32_t>> subgroupsOf(
    const std::vector<std::int8_t> &digits, const std::vector<std::int32_t> &radices);

} // namespace planloom
