#pragma once

#include "engine/frontend/torch/aten/aten_operators.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// Operators of complex numbers that treat their real and their imaginary parts alike: what moves elements,
// and what is linear.

enum class ComplexPart : std::uint8_t { Real, Imaginary };

/// What ATen's operator `name` makes of one part of a call's arguments, with as many results as the call.
Result<std::vector<AtenValue>> ofPart(AtenContext &context, const std::string &name, ComplexPart part);

/// The operator of either part, as the call's results.
Result<void> partByPart(AtenContext &context);

/// True for operators that are made `partByPart`.
bool isAtenByPart(std::string_view name);

} // namespace planloom
