#pragma once

#include "engine/graph/graph.h"

#include <cstdint>

namespace planloom {

/// Gives the equal parts of a fused projection a dimension of their own, so that each of them can be cut.
///
/// Several projections of one x are often one product: queries, keys and values (GPT-2's c_attn, Swin's and
/// ViT's qkv, MultiheadAttention's in_proj), or gate and up (SwiGLU). Their columns lie side by side, and
/// operators behind it take them apart. A device that shall have the first heads of all three needs three
/// pieces of the weight, where a mask is one box. With the parts as a dimension it is one:
///
///     x [b s k]  W [k 3h]                          x [b s k]  W [k 3 h]
///          Linear + bias [3h]                           Linear + bias [3 h]
///          y [b s 3h]                     becomes       y [b s 3 h]
///     Split -> q k v, each [b s h]                 Split -> [b s 1 h] each; Reshape -> q, k, v [b s h]
///
/// What counts is what becomes of y, on its way through elementwise operators, transposes and reshapes that
/// keep its columns together: it is cut by one Split into equal parts, or by Slices at multiples of one
/// length, or reshaped so that the parts are an own dimension, which a Split, Slice or Gather cuts later. A
/// weight of several products is changed if all of them agree. Elements stay in their order, in files and in
/// memory; `Tensor::fileShape` says the shape that files have. Parts of unequal lengths become weights of
/// their own before (`divideProjections`).
///
/// For forward graphs whose products are fused already (Linear); annotations, and which scopes are copies,
/// are to be computed afterwards if any was changed. O(operators + tensors).
/// @return how many weights were changed; one that was divided, and a part of it with parts, are two
std::int32_t partProjections(Graph &graph);

} // namespace planloom
