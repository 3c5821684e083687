#pragma once

#include "engine/frontend/onnx/onnx_model.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace planloom {

// Exporters work parameters into other values when they write a file. What can be taken apart again is; what
// cannot is named (onnx_replaced.h), because something else is trained in its place then.

/// Elements that optimizers of graphs fold (onnxscript's limit).
constexpr std::int64_t kMostFolded = 512 * 512;

/// The values of a stored tensor, read from beside the file if need be: null if they are missing, or more
/// than `kMostFolded` elements lie there.
std::shared_ptr<const TensorData> valuesOfFolded(const StoredTensor &tensor);

/// Takes parameters out of values that were computed from them when the file was written, where names of the
/// steps (`folded_from`) and the values themselves leave no doubt:
///
///     cat [3n] from a, b and a buffer                 Concat(part [n], zeros [n], part [n])
///     unsqueeze = -exp(w), all below zero             Neg(Exp(log w)); also exp(w) and exp(-w)
///     embedding [2 s d] from one table, the same      Expand of the row [1 1 d]
///       row at all places
///     permute [1 h s s] from one table, its rows      Gather of the rows [r h], then Transpose
///       again and again
///
/// In files without a signature only rows of tables are found, in what has no name of a module.
/// O(elements of such values x their dimensions).
/// @param byHand  what a person decided on, by name in the file: left as it is
/// @return what a user should know
std::vector<std::string> restoreFolded(OnnxGraph &graph, const std::map<std::string, StoredAs> &byHand = {});

} // namespace planloom
