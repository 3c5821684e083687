#pragma once

#include "engine/base/result.h"
#include "engine/graph/graph.h"
#include "engine/graph/operators/mask.h"

#include <compare>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace planloom {

enum class SplitKind : std::uint8_t {
    Dimension, ///< Cut one identifier of the annotation.
    Replicate, ///< The same work in every part.
    Value, ///< Divide the value of the operator's linear inputs; outputs become summands.
};

/// Where the parts of a split go.
enum class SplitOver : std::uint8_t {
    Devices, ///< Each to a device of its own, or one after the other on one.
    Units, ///< To the scale units of a plan (scale_units.h): part u to unit u. Always the last split.
    /// To slices of a stage (TeraPipe, arXiv:2102.07988), each of which is a block of its own: all parts of
    /// slice 0 run before those of slice 1, on the same devices, and the backward pass the other way round.
    /// Always before all splits but that over lanes.
    Slices,
    /// To lanes of a stage (Chimera, arXiv:2107.06925), each of which is a block of its own on devices of its
    /// own, and orders its micro-batches as it likes. Always the first split.
    Lanes,
};

/// One op-trans step: an operator becomes `parts` operators.
struct Split {
    SplitKind kind = SplitKind::Replicate;
    std::int32_t dimension = -1; ///< Index into the annotation's dimensions, for SplitKind::Dimension.
    std::int32_t parts = 1;
    /// Extents of uneven parts; empty means equal parts. Over units, some may be 0.
    std::vector<std::int64_t> sizes{};
    std::string axis{}; ///< Name of the mesh axis it runs over; may be empty.
    SplitOver over = SplitOver::Devices;
    friend auto operator<=>(const Split &, const Split &) = default;
};

/// The sizes of `parts` parts of `size` elements that do not divide: alike, rounded up, and what is left for
/// the last one, as if what is cut were padded; where none would be left, the first ones have one more than
/// the others. Empty where equal parts do, and where there are fewer elements than parts.
std::vector<std::int64_t> roundedShares(std::int64_t size, std::int32_t parts);

/// Nested splits, outermost first. Part p is a mixed-radix number with the last split varying fastest. An
/// empty list is the whole operator in one part.
struct Partition {
    std::vector<Split> splits{};
    friend auto operator<=>(const Partition &, const Partition &) = default;
};

std::int32_t partCount(const Partition &partition);

/// Into how many shards, one for each scale unit, the last split cuts every other part; 1 without such a
/// split. Part p of a unit is then part p x unitParts + u of all, for unit u.
std::int32_t unitParts(const Partition &partition);

/// Into how many lanes the first split takes the operator; 1 without such a split.
std::int32_t laneCount(const Partition &partition);
/// The lane that part `part` is of.
std::int32_t laneOf(const Partition &partition, std::int32_t part);

/// Into how many slices the first split, or that behind the lanes', cuts the operator; 1 without such a
/// split.
std::int32_t sliceCount(const Partition &partition);
/// The slice that part `part` is of.
std::int32_t sliceOf(const Partition &partition, std::int32_t part);

/// How many splits, over lanes and slices, stand before those over devices.
std::size_t blockSplits(const Partition &partition);

/// What a part of `op` computes, where its slice begins behind others: a causal Attention that has keys
/// before its first query. Nothing where it is as `op` says.
std::optional<Operator> operatorOfSlice(const Operator &op, const Partition &partition, std::int32_t part);

/// Checks that `partition` is legal for `op`: identifiers splittable, sizes divide (or add up), Value splits
/// only with linear inputs. @param outer  what there is to cut of every identifier; empty means the whole
/// operator
/// @return InvalidInput whose message names the identifier and both sizes
Result<void> checkPartition(
    const Operator &op, const Partition &partition, const std::vector<Range> &outer = {});

/// What one part of a partitioned operator works on.
struct PartBox {
    std::vector<Range> ranges{}; ///< Per identifier of the annotation, in the whole operator's coordinates.
    /// Which summand of its outputs' value this part makes, for an output that lacks all cut Reduce
    /// identifiers is given by `summand()`; the digits here are (index, count) of Value splits alone.
    ValueMask value{};
    std::int32_t replica = 0; ///< Which replica, in mixed-radix order of the Replicate splits.
    friend bool operator==(const PartBox &, const PartBox &) = default;
};

/// The box of part `part`, within `outer` (ranges per identifier; empty means the whole operator).
/// Micro-batches are such outer ranges. The partition must be legal for `op`.
///
/// A causal Attention cut into slices of its queries has in each slice only the keys up to its last query:
/// what is cut further of the keys is cut of those. The gradients of other keys are zero, so the slice makes
/// no summand of them.
PartBox partBox(
    const Operator &op, const Partition &partition, std::int32_t part, const std::vector<Range> &outer = {});

/// The index mask that `box` gives a tensor with these terms and this shape.
IndexMask maskOf(const Annotation &annotation, const TensorTerms &terms, const Shape &shape,
    const std::vector<Range> &ranges);

/// The view that part `part` reads of input slot `slot`: complete, except a summand of the linear inputs
/// under a Value split. Absent inputs give an invalid tensor.
TensorView inputView(const Graph &graph, const Operator &op, const Partition &partition, std::int32_t part,
    std::size_t slot, const std::vector<Range> &outer = {});

/// The view that part `part` makes of output slot `slot`: its value mask numbers the summands over the cut
/// Reduce identifiers the output lacks and the Value splits, in part order, outermost first.
TensorView outputView(const Graph &graph, const Operator &op, const Partition &partition, std::int32_t part,
    std::size_t slot, const std::vector<Range> &outer = {});

/// All that one part reads and makes, by slot: `inputView` and `outputView`, worked out together.
struct PartViews {
    std::vector<TensorView> inputs{};
    std::vector<TensorView> outputs{};
};
PartViews partViews(const Graph &graph, const Operator &op, const Partition &partition, std::int32_t part,
    const std::vector<Range> &outer = {});
/// The same, into what has room for all of an operator's slots.
void fillPartViews(const Graph &graph, const Operator &op, const Partition &partition, std::int32_t part,
    const std::vector<Range> &outer, std::span<TensorView> inputs, std::span<TensorView> outputs);

/// The partition that a backward operator takes from its forward's (annotations share their identifiers).
Partition mirrored(const Operator &backward, const Partition &forward);

/// "m:2 k+:4 replicate:2"
std::string toString(const Annotation &annotation, const Partition &partition);

} // namespace planloom
