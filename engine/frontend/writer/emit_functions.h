#pragma once

#include "engine/frontend/writer/node_writer.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// Functions of values that model formats say in different ways, in their canonical forms.

/// @param equation  may leave out its output, and have "..." for dimensions in front
/// @return InvalidInput if it does not fit the inputs
Result<TensorId> emitEinsum(
    NodeWriter &writer, const std::vector<TensorId> &inputs, const std::string &equation);

/// Leaves elements out, and scales the others; x itself where it does not train, or nothing is left out.
/// @param ratio  of elements left out; `ImportOptions::dropoutRatio` replaces that of those that train
/// @return InvalidInput for a ratio outside [0, 1)
Result<TensorId> emitDropout(NodeWriter &writer, TensorId x, double ratio, bool trains);

/// All bits turned over: the exclusive or with ones alone. @return InvalidInput unless x are integers
Result<TensorId> emitBitwiseNot(NodeWriter &writer, TensorId x);

/// theta [n d d+1] applied to the places of an image of `size` [n c ..]: a product with a known matrix.
/// @param aligned  places go from border to border, not from middle to middle
/// @return InvalidInput for other sizes; NotSupported if the places take too much memory
Result<TensorId> emitAffineGrid(
    NodeWriter &writer, TensorId theta, const std::vector<std::int64_t> &size, bool aligned);

/// A sum, mean, extreme and so on over some dimensions, counted from 0.
/// @param keeps  they stay, with an extent of 1
Result<TensorId> emitReduction(NodeWriter &writer, OperatorKind kind, TensorId x,
    const std::vector<std::int64_t> &axes, bool keeps, std::string_view suffix = {});

} // namespace planloom
