#pragma once

#include "engine/frontend/torch/aten/aten_operators.h"

#include <optional>
#include <string_view>
#include <vector>

namespace planloom {

/// True for targets that compute with sizes, not tensors: "_operator.mul", "math.ceil", "torch.sym_max".
bool isPt2Arithmetic(std::string_view target);

/// Computes one. Integers stay integers as in Python.
/// @return nothing for what is not known here, for arguments that are no numbers, and for a division by 0
std::optional<AtenValue> computePt2Number(std::string_view target, const std::vector<AtenValue> &arguments);

} // namespace planloom
