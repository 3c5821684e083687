#pragma once

#include "engine/graph/graph.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// What is known, while a model is imported, of a value in which data choose how many elements a dimension
/// has: the rows that a NonZero found places for, and behind them rows that belong to no place
/// (engine/graph/operators/places.h).
struct ChosenRows {
    TensorId places{}; ///< All indices that the NonZero makes, [r c].
    std::size_t dimension = 0; ///< Of the value, as long as there are places.
    /// Which of the r indices the value holds, one after the other along `indexDimension`, or a single one
    /// where that is -1; -1 for other numbers beside them. Empty for values whose rows without place hold
    /// whatever was computed of them.
    std::vector<std::int64_t> indices{};
    std::int32_t indexDimension = -1;
    /// Of a single index: what it was multiplied by. Joined indices, i n + j with j < n, count as i times n;
    /// 0 if nothing is known.
    std::int64_t scale = 1;
    /// A list of rows divided among so many, one after the other: `dimension` is 1, and has as many as each
    /// gets. 0: it is not divided.
    std::int64_t parts = 0;

    bool holdsPlaces() const { return !indices.empty(); }
};

/// A value that follows, element by element of dimension `rows.dimension`, from values of which one has
/// chosen rows: what it has of them. Nothing where it does not hold places.
///
/// @param op  an operator that moves, adds to or multiplies places; its inputs and outputs lie in `graph`
/// @param mask  the extents that the indices are below
/// @param rows  of each input, null where it has none; `dimension` is where the output has its rows
std::optional<ChosenRows> placesAfter(const Graph &graph, const Operator &op,
    const std::vector<const ChosenRows *> &rows, const Shape &mask, std::size_t output,
    std::size_t dimension);

/// Where output dimensions follow from the rows of an input, element by element; what is in the way if none
/// do.
struct RowFlow {
    std::vector<std::int32_t> dimensions{}; ///< By output: where it has the rows; -1 where it has not.
    std::string problem{};
};
RowFlow followRows(const Graph &graph, const Operator &op, const std::vector<const ChosenRows *> &rows);

/// The dimensions of a graph's values, operator by operator, that the batch leads: cut into samples, each
/// part belongs to one.
class BatchDimensions
{
public:
    /// Follows the operators that the graph has by now. O(new operators).
    void update(const Graph &graph);
    /// Dimension of a value; -1 if none. After `update`.
    std::int32_t of(TensorId id) const
    {
        const auto at = static_cast<std::size_t>(id.index);
        return at < m_dimensions.size() ? m_dimensions[at] : -1;
    }
    std::int64_t size() const { return m_size; }

private:
    std::vector<std::int32_t> m_dimensions{};
    std::size_t m_followed = 0;
    std::int64_t m_size = 0;
};

/// The share of `mask` that is to be expected not to be zero: 1 / n where it compares what is one of n (the
/// choice of a TopK or ArgMax, a OneHot), 1 where nothing is known.
/// @param producers  by tensor: the operator that makes it, or an invalid id
double expectedShare(const Graph &graph, const std::vector<OperatorId> &producers, TensorId mask);

} // namespace planloom
