#pragma once

#include "engine/frontend/zoo/zoo_parts.h"

#include <cstdint>
#include <string_view>

namespace planloom {

// What models of images and volumes share: x is [n c ..] with any number of dimensions behind.

/// Convolution with windows as wide as high, padded so that stride 1 keeps the size; weights "<name>.weight".
TensorId convolution(ZooBuilder &b, TensorId x, std::int64_t channels, std::int64_t kernel,
    std::int64_t stride, std::string_view name, bool bias);

/// Transposed convolution whose windows tile what it makes: every extent times `factor`.
TensorId upConvolution(
    ZooBuilder &b, TensorId x, std::int64_t channels, std::int64_t factor, std::string_view name);

/// Batch norm in training mode: mean and variance over the mini-batch.
TensorId batchNorm(ZooBuilder &b, TensorId x, std::string_view name);

TensorId relu(ZooBuilder &b, TensorId x, std::string_view name);

TensorId maxPool(ZooBuilder &b, TensorId x, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
    std::string_view name);

/// [n c ..] -> [n c]
TensorId globalAverage(ZooBuilder &b, TensorId x, std::string_view name);

} // namespace planloom
