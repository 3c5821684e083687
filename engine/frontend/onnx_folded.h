#pragma once

#include "engine/frontend/onnx_model.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// Exporters work parameters into other values when they write a file. What can be taken apart again is; what
// cannot is named, because something else is trained in its place then.

/// The parameters among `names`: by the graph's signature, by what is said of the value, else (in a file
/// without a signature) by a dotted name.
std::vector<std::string> parametersAmong(const OnnxGraph &graph, const std::vector<std::string> &names);

/// Names of what modules keep beside their parameters: "layers.0.attn_mask", "h.1.running_mean".
bool isBufferName(std::string_view name);

/// Elements that optimizers of graphs fold (onnxscript's limit).
constexpr std::int64_t kMostFolded = 512 * 512;

/// The values of a stored tensor, read from beside the file if need be: null if they are missing, or more
/// than `kMostFolded` elements lie there.
std::shared_ptr<const TensorData> valuesOfFolded(const OnnxTensor &tensor);

/// Takes parameters out of values that were computed from them when the file was written, where names of the
/// steps
/// (`folded_from`) and the values themselves leave no doubt:
///
///     cat [3n] from a, b and a buffer        Concat(part [n], zeros [n], part [n]); the zeros are not
///     trained unsqueeze = -exp(w), all below zero    Neg(Exp(log w)): also exp and neg alone embedding [2 s
///     d] from one table, the same row at all places
///                                            Expand of the row [1 1 d]
///     permute [1 h s s] from one table, its rows again and again
///                                            Gather of the rows [r h], then Transpose
///
/// In files without a signature only rows of tables are found, in what has no name of a module.
/// O(elements of such values x their dimensions).
/// @param byHand  what a person decided on, by name in the file: left as it is
/// @return what a user should know
std::vector<std::string> restoreFolded(OnnxGraph &graph, const std::map<std::string, StoredAs> &byHand = {});

/// Finds what is trained in the place of parameters that the file does not have, and cannot have again
/// (`OnnxProvenance::insteadOf`):
/// - values computed from parameters by more than moving their elements, choosing among them, adding
/// constants:
///   exp(w), w v, w + v;
/// - weights that the optimizer of a graph wrote anew: they have a parameter's name, and are not said to be
/// one while
///   others are, or have such a name with an ending ("conv.weight_bias", "conv.weight_scaled"). Where the
///   operator that reads them is in another module, that module's parameters went into them (batch
///   normalisation).
///
/// To be asked after `restoreFolded`. O(nodes + initializers).
/// @return what a user should know
std::vector<std::string> findReplaced(OnnxGraph &graph);

} // namespace planloom
