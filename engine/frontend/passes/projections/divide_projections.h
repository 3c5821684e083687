#pragma once

#include "engine/graph/graph.h"

#include <cstdint>

namespace planloom {

/// Makes a fused projection whose parts differ in size several projections, of a weight each.
///
/// With grouped-query attention (Ainslie et al., arXiv:2305.13245) queries have more heads than keys and
/// values. Where all three are one product, their columns are no grid that a mask could cut part by part:
///
///     x [b s k]  W [k q+2h]                        x [b s k]    W.part.0 [k q]  W.part.1 [k 2h]
///          Linear + bias [q+2h]                         Linear + bias.part.0      Linear + bias.part.1
///          y [b s q+2h]               becomes           [b s q]                  [b s 2h]
///     Split -> q k v                                    queries                   Split -> k v
///
/// Neighbours of equal lengths stay one weight, for `partProjections`. What counts is what becomes of y, on
/// its way through elementwise operators, transposes and reshapes that keep its columns together, which are
/// repeated for each part: Splits, Slices or Gathers of single places that leave nothing over and do not
/// overlap. A weight of several products is divided if all of them agree.
///
/// `Tensor::filePart` says what of the file's tensor a part is, so that values are read, and gradients and
/// updated weights shown, as files have them.
///
/// For forward graphs whose products are fused already (Linear); annotations, and which scopes are copies,
/// are to be computed afterwards if any was divided. O(operators + tensors + values of divided weights).
/// @return how many weights were divided
std::int32_t divideProjections(Graph &graph);

} // namespace planloom
