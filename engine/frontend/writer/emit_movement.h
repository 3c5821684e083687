#pragma once

#include "engine/frontend/writer/node_writer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

// Operators that move elements, in their canonical forms: what model formats say in different ways is read
// by each of them and written here. Axes may count from the end. What changes nothing makes no operator:
// then the result is the input itself.
// All of these return InvalidInput, in the node's name, where the arguments do not fit the value.

/// @param shape        one extent may be -1: what is left over
/// @param zeroCopies   an extent of 0 is that of x in its place, not none
Result<TensorId> emitReshape(NodeWriter &writer, TensorId x, const Shape &shape, bool zeroCopies = false);
Result<TensorId> emitTranspose(NodeWriter &writer, TensorId x, const std::vector<std::int64_t> &permutation);
/// Broadcasts x and `shape` to one another.
Result<TensorId> emitExpand(NodeWriter &writer, TensorId x, const Shape &shape);
Result<TensorId> emitTile(NodeWriter &writer, TensorId x, const std::vector<std::int64_t> &repeats);
/// Parts without extent along the axis are left out.
Result<TensorId> emitConcat(NodeWriter &writer, const std::vector<TensorId> &parts, std::int64_t axis);
Result<std::vector<TensorId>> emitSplit(
    NodeWriter &writer, TensorId x, std::int64_t axis, const std::vector<std::int64_t> &sizes);

/// Every `step`th element from `start` on, and before `end`, of dimensions `axes`; places beyond either end
/// of a dimension are its end. Axes are all dimensions in order, and steps 1, where none are given.
struct SliceBounds {
    std::vector<std::int64_t> starts{};
    std::vector<std::int64_t> ends{};
    std::optional<std::vector<std::int64_t>> axes{};
    std::optional<std::vector<std::int64_t>> steps{};
};
Result<TensorId> emitSlice(NodeWriter &writer, TensorId x, const SliceBounds &bounds);

/// @param pads  elements added before each dimension, then behind each; negative ones take some away
/// @param mode  "constant", "reflect", "edge", "wrap"
Result<TensorId> emitPad(NodeWriter &writer, TensorId x, const std::vector<std::int64_t> &pads,
    const std::string &mode = "constant", Number value = Number::ofReal(0));

// Known indices that count from the end are counted from the start instead.
Result<TensorId> emitGather(NodeWriter &writer, TensorId x, TensorId indices, std::int64_t axis);
Result<TensorId> emitGatherElements(NodeWriter &writer, TensorId x, TensorId indices, std::int64_t axis);
Result<TensorId> emitGatherND(
    NodeWriter &writer, TensorId x, TensorId indices, std::int64_t batchDimensions = 0);
/// @param reduction  of these and of those: "none", "add", "mul", "max", "min"
Result<TensorId> emitScatterElements(NodeWriter &writer, TensorId x, TensorId indices, TensorId updates,
    std::int64_t axis, const std::string &reduction);
Result<TensorId> emitScatterND(
    NodeWriter &writer, TensorId x, TensorId indices, TensorId updates, const std::string &reduction);

/// The places of what is not zero, [rank count]: as many as there is room for, where they depend on data.
Result<TensorId> emitNonZero(NodeWriter &writer, TensorId x);
/// The triangle from diagonal k on, or up to it.
Result<TensorId> emitTrilu(NodeWriter &writer, TensorId x, bool upper, std::int64_t k);

} // namespace planloom
