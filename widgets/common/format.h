#pragma once

#include "engine/base/units.h"
#include "engine/graph/graph.h"
#include "engine/graph/shape.h"

#include <cstdint>
#include <string>

namespace planloom {

// Numbers as every view writes them: three significant digits, always with their unit, IEC prefixes for
// bytes.

/// "0 B", "512 B", "1.50 KiB", "63.2 GiB"; negative sizes keep their sign.
std::string formatBytes(Bytes bytes);

/// "0 s", "850 ns", "41.2 ms", "1.25 s", "312 s". `seconds` may be negative or not finite ("-").
std::string formatSeconds(double seconds);

/// Unit in which a whole axis is written, so that its labels compare: chosen for the axis' extent.
struct TimeUnit {
    double seconds = 1; ///< Of one unit.
    const char *name = "s";
};
TimeUnit timeUnitFor(double extentSeconds);

/// "41.2" in the unit's own terms; as many decimals as `stepSeconds` (distance of two labels) needs.
std::string formatInUnit(double seconds, TimeUnit unit, double stepSeconds);

/// "12", "1,538", "16,956": every digit, grouped by thousands.
std::string formatCount(std::int64_t count);

/// "124 M", "1.56 B", "83.3 k": three significant digits with a decimal prefix (k, M, B, T).
std::string formatQuantity(double quantity);

/// "4 × 64 × 768"; "scalar" for an empty shape.
std::string formatShape(const Shape &shape);

/// "float32 4 × 64 × 768"
std::string formatType(const TensorType &type);

/// The operator's name without the path of its scope: "c_attn" for "transformer.h.3.attn.c_attn" in h.3 >
/// attn.
std::string shortName(const Graph &graph, const Operator &op);

/// `text` cut in the middle to at most `most` characters (code points) with "…"; unchanged if it fits.
std::string elided(const std::string &text, std::size_t most);

} // namespace planloom
