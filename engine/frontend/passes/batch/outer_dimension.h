#pragma once

// Private to importing: operators with a dimension cut in two.

#include "engine/graph/graph.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// True for kinds that work on every element of further dimensions by itself.
bool hasRoomForDimension(OperatorKind kind);

/// True for kinds that make the same of every item, in whatever order the items stand along an identifier of
/// their annotation.
bool mayReorder(OperatorKind kind);

/// An operator whose items, along one dimension, are counted by two.
struct OuterDimension {
    Attributes attributes{};
    std::vector<TensorType> inputs{};
    std::vector<TensorType> outputs{};
};

/// The operator with dimension `inputDimensions[i]` of input i and `outputDimensions[i]` of output i (-1:
/// none) cut into [before rest]. Inputs that are broadcast along it get a dimension of 1 where they need one.
/// @param inputs, outputs  its types as they are
/// @return nothing if it has no room for another dimension there
std::optional<OuterDimension> withOuterDimension(const Operator &op,
    const std::vector<std::int32_t> &inputDimensions, const std::vector<std::int32_t> &outputDimensions,
    std::int64_t before, const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs);

} // namespace planloom
