#pragma once

#include "engine/graph/graph.h"

namespace planloom {

/// Takes the batch out of stored tensors whose values are the same for each of its samples.
///
/// Exporters fold what does not depend on the inputs, the batch's extent included:
///
///     mask [2 1 s s] -> Add(scores [2 h s s])          mask [1 1 s s] -> Add
///     token [2 1 d] -> Concat(patches [2 n d])         token [1 1 d] -> Expand [2 1 d] -> Concat
///
/// A dimension that is as long as the batch, and along which all slices are equal, gets extent 1 where
/// - only operators that broadcast read the tensor, none of which makes less for it; or
/// - it is dimension 0 of a parameter of at least two dimensions that the exporter worked out
///   (`Classification::folded`), and what else reads it are Concats along other dimensions. These read an
///   Expand to the batch. So the class token of a vision transformer is one parameter again.
/// Values beside the file are read up to 1 MiB; more is left as it is. Constants that stay as long as the
/// batch are sliced by micro-batch like inputs (engine/graph/dimensions/batch.h).
///
/// For forward graphs as they are imported: before operators are fused and annotated. `Tensor::filePart` says
/// what of the file's tensor is left. O(operators + values of the tensors concerned).
void collapseBatch(Graph &graph);

} // namespace planloom
