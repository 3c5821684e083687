#pragma once

#include "engine/graph/attributes.h"
#include "engine/graph/operators/operator_kind.h"
#include "engine/graph/tensor.h"

#include <memory>
#include <optional>
#include <vector>

namespace planloom {

/// Computes a forward operator at import from inputs whose values are known, by the kernel that a run would
/// use: functions of elements and sums in float64 or in their integers, and rounded once to the output's
/// type; what moves elements exactly; other kinds where that is cheap.
///
/// @param inputs   by slot; null for absent ones
/// @param outputs  the operator's output types, whose sizes the caller has found acceptable
/// @return the outputs' values; nothing if the kind, its types or its values cannot be computed here, or
///   some values have no elements, or integers may leave their range
/// O(elements of inputs and outputs) but for kernels.
std::optional<std::vector<TensorData>> foldOperator(OperatorKind kind, const Attributes &attributes,
    const std::vector<std::shared_ptr<const TensorData>> &inputs, const std::vector<TensorType> &outputs);

} // namespace planloom
