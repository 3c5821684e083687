#pragma once

#include "engine/graph/operator.h"
#include "engine/table/kinds/partition/dimension_ref.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace planloom {

// What PyTorch calls operators, and where its positions ("input,dimension") lie in ours.

/// Whether PyTorch calls operators of `kind` so: "torch.nn.functional.layer_norm".
bool isCalled(OperatorKind kind, const std::string &name);

/// Whether an operator of `kind` is several of PyTorch's that were fused, and one of these is called so: the
/// torch.softmax of an attention.
bool isInside(OperatorKind kind, const std::string &name);

/// Where dimension `position.second` of input `position.first` of PyTorch's operator `name` lies in `op`,
/// which is called so or has it inside; outputs count on behind the inputs. Nothing if `op` has no such
/// dimension.
std::optional<DimensionRef> positionIn(
    const Operator &op, const std::string &name, std::pair<std::int32_t, std::int32_t> position);

} // namespace planloom
