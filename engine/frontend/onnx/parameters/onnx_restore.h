#pragma once

#include "engine/frontend/onnx/onnx_model.h"

#include <map>
#include <string>
#include <vector>

namespace planloom {

/// Gives a graph of a file back what its exporter took from it, where metadata say what that was: ties
/// between parameters (onnx_ties.h), parameters that were folded (onnx_folded.h), the names of modules
/// (onnx_metadata.h).
/// @param byHand  tensors of the file that a person decided on, which stay as they are
/// @return what a user should know of it, and of what cannot be restored: parameters that were worked into
///   other values are trained otherwise than in PyTorch
std::vector<std::string> restoreFromMetadata(
    OnnxGraph &graph, const std::map<std::string, StoredAs> &byHand = {});

} // namespace planloom
