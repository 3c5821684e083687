#pragma once

#include "engine/graph/graph.h"

#include <cstdint>

namespace planloom {

/// Gives windows a dimension of their own where a model counts them on through all samples.
///
/// Attention within windows (Swin, arXiv:2103.14030, section 3.2) or along an axis is written with one
/// dimension that counts the windows of the first sample, then those of the second, and so on. A device that
/// shall have the upper windows of every sample needs several pieces of such a dimension, where a mask is one
/// box:
///
///     x [b r c w w e]                              x [b r c w w e]
///     Reshape -> [b*r*c w*w e]                     Reshape -> [b r*c w*w e]
///     Linear, Reshape, Transpose, Attention        the same
///     Reshape -> [b r c w w e]          becomes    Reshape -> [b r c w w e]
///
/// That is done for all that lies between such Reshapes, if it works on every window by itself and attends
/// within them (Attention or Softmax over heads and places, which may have the windows apart already).
/// Elements stay in their order, in memory and in files (`Tensor::fileShape`). Reshapes that change nothing
/// any more are removed.
///
/// For forward graphs whose attention is fused; annotations are to be computed afterwards.
/// O(operators + tensors).
/// @return how many such places were changed
std::int32_t separateWindows(Graph &graph);

} // namespace planloom
