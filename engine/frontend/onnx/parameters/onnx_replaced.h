#pragma once

#include "engine/frontend/onnx/onnx_model.h"

#include <string>
#include <vector>

namespace planloom {

/// Finds what is trained in the place of parameters that the file does not have, and cannot have again
/// (`OnnxProvenance::insteadOf`):
/// - values computed from parameters by more than moving their elements, choosing among them and adding
///   constants: exp(w), w v, w + v;
/// - weights that the optimizer of a graph wrote anew: they have a parameter's name, and are not said to be
/// one
///   while others are, or have such a name with an ending ("conv.weight_bias", "conv.weight_scaled"). Where
///   the operator that reads them is in another module, that module's parameters went into them (batch
///   normalisation).
///
/// To be asked after `restoreFolded` (onnx_folded.h). O(nodes + initializers).
/// @return what a user should know
std::vector<std::string> findReplaced(OnnxGraph &graph);

} // namespace planloom
