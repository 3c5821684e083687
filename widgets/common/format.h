#pragma once

#include "engine/base/words.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape.h"

#include <cstdint>
#include <string>

namespace planloom {

// What every view writes alike, besides the numbers of engine/base/words.h.

/// Unit in which a whole axis is written, so that its labels compare: chosen for the axis' extent.
struct TimeUnit {
    double seconds = 1; ///< Of one unit.
    const char *name = "s";
};
TimeUnit timeUnitFor(double extentSeconds);

/// "41.2" in the unit's own terms; as many decimals as `stepSeconds` (distance of two labels) needs.
std::string formatInUnit(double seconds, TimeUnit unit, double stepSeconds);

/// "4 × 64 × 768"; "scalar" for an empty shape.
std::string formatShape(const Shape &shape);

/// "float32 4 × 64 × 768"
std::string formatType(const TensorType &type);
/// The same of a tensor, whose type may be unknown: "type unknown".
std::string formatType(const Tensor &tensor);

/// The operator's name without the path of its scope: "c_attn" for "transformer.h.3.attn.c_attn" in h.3 >
/// attn.
std::string shortName(const Graph &graph, const Operator &op);

/// `text` cut in the middle to at most `most` characters (code points) with "…"; unchanged if it fits.
std::string elided(const std::string &text, std::size_t most);

} // namespace planloom
