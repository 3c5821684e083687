#pragma once

#include "engine/frontend/writer/node_writer.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// Windows of a convolution or pooling over the dimensions of [n c ..] after the first two, as a model says
/// them: what is not given is 1 for each dimension, and 0 for pads.
struct WrittenWindows {
    std::optional<std::vector<std::int64_t>> kernel{};
    std::optional<std::vector<std::int64_t>> strides{};
    std::optional<std::vector<std::int64_t>> dilations{};
    std::optional<std::vector<std::int64_t>> pads{}; ///< Begins, then ends.
    /// "NOTSET", "VALID" (no pads), "SAME_UPPER" or "SAME_LOWER": as many outputs as inputs over the stride,
    /// with the larger half of an odd number of pads at the end or the begin.
    std::string autoPad = "NOTSET";
};

/// x [n c ..], a weight [o c/g ..] and a bias, which may be invalid.
struct ConvolutionInputs {
    TensorId x{};
    TensorId weight{};
    TensorId bias{};
};

/// @return InvalidInput for windows that do not fit the input or the weight
Result<TensorId> emitConv(
    NodeWriter &writer, const ConvolutionInputs &inputs, const WrittenWindows &windows, std::int64_t groups);

/// @param extra        elements more at the end of each dimension; 0 where none are given
/// @param outputShape  extents of the last dimensions, which decide the pads instead
/// @return as `emitConv`; NotSupported for SAME pads that are not defined
Result<TensorId> emitConvTranspose(NodeWriter &writer, const ConvolutionInputs &inputs,
    const WrittenWindows &windows, std::int64_t groups, const std::optional<std::vector<std::int64_t>> &extra,
    const std::optional<std::vector<std::int64_t>> &outputShape = {});

/// The attributes that poolings share. @return as `emitConv`; NotSupported for SAME pads of dilated windows
Result<Attributes> poolAttributes(
    NodeWriter &writer, TensorId x, const WrittenWindows &windows, bool roundsUp);

} // namespace planloom
