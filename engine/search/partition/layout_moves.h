#pragma once

#include "engine/hardware/cost_model.h"
#include "engine/search/partition/axis_collectives.h"
#include "engine/search/partition/shard_layout.h"

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace planloom {

/// Devices of the axes that share operators' work.
struct ShardGroups {
    GroupShape inner{}; ///< Of one place along the outer axis.
    GroupShape outer{}; ///< Of one place along the inner axis; of one rank without an outer axis.
    GroupShape both{}; ///< All of them.
    GroupShape apart{}; ///< Two that differ in both places: they may be furthest from each other.
    AxisParts innerParts{}; ///< Of the inner axis.
};

/// What matters of a tensor that is brought from one layout to another.
struct MovedTensor {
    std::int64_t bytes = 0; ///< Whole.
    Combination combination = Combination::Sum; ///< Of its summands.
    std::uint16_t innerCuts = 0; ///< Bit d: the inner axis can cut dimension d evenly;
    std::uint16_t outerCuts = 0; ///< likewise the outer one,
    std::uint16_t bothCuts = 0; ///< and the outer one with the inner one in it.
    friend auto operator<=>(const MovedTensor &, const MovedTensor &) = default;
};

/// What it takes to bring a tensor from one layout over two axes to another: the cheapest way over layouts,
/// by the hops that lowering's way consists of (lowering/layout/layout.h `cheapestPath`), each over the
/// devices of one axis or of both. Lowering may take axes apart into smaller groups, which this does only
/// within one hop over the inner one.
///
/// - all-gather, all-to-all: of what cuts a dimension innermost;
/// - all-reduce, reduce-scatter: of one axis' summands, or of both;
/// - slice: over any axes that have it whole, in one copy;
/// - permute, first or last: of parts that the axes cut in the other order, or that one cuts as the other is
///   to, where both have as many devices.
/// Answers are remembered. For one thread.
class LayoutMoves
{
public:
    /// @param inner  devices of the inner axis; @param outer  likewise
    LayoutMoves(const CostModel &costs, const ShardGroups &groups, std::int32_t inner, std::int32_t outer,
        std::int32_t deviceClass);
    ~LayoutMoves();

    /// Over the devices of one place along the outer axis.
    const AxisCollectives &overInner() const { return m_overInner; }

    /// Of one tensor.
    class Table;
    /// Valid as long as this is.
    const Table &of(const MovedTensor &tensor) const;
    /// Seconds; 0 where both layouts are the same.
    double seconds(ShardLayout from, ShardLayout to, const MovedTensor &tensor) const;

private:
    class Search;

    const GroupShape &groupOf(ShardAxes axes) const;
    double collective(CollectiveKind kind, std::int64_t bytes, ShardAxes axes) const;

    const CostModel &m_costs;
    const ShardGroups m_groups;
    const AxisCollectives m_overInner;
    const std::int32_t m_inner;
    const std::int32_t m_outer;
    const std::int32_t m_deviceClass;
    mutable std::map<MovedTensor, std::unique_ptr<const Table>> m_tables;
};

/// What is known of one tensor's moves, and finds what is not.
class LayoutMoves::Table
{
public:
    Table(const LayoutMoves &moves, const MovedTensor &tensor);
    ~Table();

    double seconds(ShardLayout from, ShardLayout to) const;

private:
    const Search &searchFrom(ShardLayout from, ShardLayout to) const;

    const LayoutMoves &m_moves;
    const MovedTensor m_tensor;
    const std::size_t m_forms; ///< Of one axis, of layouts that the tensor says there are.
    mutable std::map<ShardLayout, std::unique_ptr<const Search>> m_searches;
    mutable std::vector<double> m_known{}; ///< By both layouts; negative: not asked for yet.
};

} // namespace planloom
