#pragma once

#include "engine/graph/annotation/annotation.h"

#include <cstdint>

namespace planloom {

/// The identifier that stands right behind `dimension` and nowhere else: a cut of `dimension` into more parts
/// than it has elements goes on in it, and parts stay boxes. Query heads that share a key head, behind the
/// key heads: `(g r^) s, g t -> (g r^) s`. -1 if there is none.
std::int32_t innerOf(const Annotation &annotation, std::int32_t dimension);

/// Whether `dimension` can be cut into so many equal parts, by itself or with the one behind it.
bool dividesInto(const Annotation &annotation, std::int32_t dimension, std::int64_t parts);

} // namespace planloom
