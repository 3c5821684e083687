#pragma once

#include "engine/base/result.h"
#include "engine/frontend/onnx/onnx_model.h"

#include <cstddef>
#include <vector>

namespace planloom {

/// The graph's nodes in an order in which each follows those whose values it or its inner graphs read; the
/// file's order where that is one already.
/// @return InvalidInput if two nodes make one value, if a node makes an input or initializer, or if nodes
/// depend on
///   one another in a circle, naming them
/// O(nodes log nodes + values).
Result<std::vector<std::size_t>> orderOfNodes(const OnnxGraph &graph);

} // namespace planloom
