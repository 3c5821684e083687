#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>

namespace planloom {

/// How a tensor lies over the devices of one mesh axis: whole on each, in summands, or cut along a dimension.
using AxisLayout = std::int8_t;
constexpr AxisLayout kAbsent = -1;
constexpr AxisLayout kWhole = 0;
constexpr AxisLayout kSummands = 1;
constexpr AxisLayout cutAlong(std::size_t dimension)
{
    return static_cast<AxisLayout>(2 + dimension);
}
constexpr bool isCut(AxisLayout layout)
{
    return layout >= cutAlong(0);
}

/// How a tensor lies over the devices of the two axes that share operators' work. Neighbours along the inner
/// axis are neighbours in the cluster; those along the outer one are as many devices apart as the inner axis
/// has. Where both cut one dimension, the outer axis cuts it first:
///
///     outer 0 | outer 1          both along one dimension, each over two devices:
///     in 0  1 | in 0  1          quarters 0 1 2 3 lie on outer/inner 0/0 0/1 1/0 1/1
///
/// Without an outer axis, tensors are whole over it.
struct ShardLayout {
    AxisLayout inner = kWhole;
    AxisLayout outer = kWhole;
    friend auto operator<=>(const ShardLayout &, const ShardLayout &) = default;

    constexpr bool isAbsent() const { return inner == kAbsent; }
    constexpr bool isWhole() const { return inner == kWhole && outer == kWhole; }
};
constexpr ShardLayout kAbsentLayout{kAbsent, kAbsent};

/// What of a layout tells memory apart that several read: a view's dimensions are others, and what is cut of
/// the same memory is taken for the same.
constexpr ShardLayout formOf(ShardLayout layout)
{
    const auto form = [](AxisLayout own) { return isCut(own) ? cutAlong(0) : own; };
    return {form(layout.inner), form(layout.outer)};
}

/// A set of the two axes.
enum class ShardAxes : std::uint8_t { None, Inner, Outer, Both };
constexpr std::size_t kShardAxisSets = 4; ///< How many there are.
/// Those of either. (Not an operator: in this namespace it would hide Qt's for keys.)
constexpr ShardAxes together(ShardAxes a, ShardAxes b)
{
    return static_cast<ShardAxes>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool contains(ShardAxes axes, ShardAxes axis)
{
    return (static_cast<unsigned>(axes) & static_cast<unsigned>(axis)) != 0;
}
constexpr std::size_t indexOf(ShardAxes axes)
{
    return static_cast<std::size_t>(axes);
}

} // namespace planloom
