#pragma once

#include "engine/graph/shape.h"

#include <cstddef>

namespace planloom {

// Floating types narrower than float: kernels compute with floats, memory holds these.

/// True for Float16, BFloat16, Float8E4M3 and Float8E5M2.
bool isNarrowFloat(DataType type);

/// The floats that `count` elements of a narrow type stand for; exact. `from` and `to` do not overlap.
void widen(const std::byte *from, DataType type, float *to, std::size_t count);

/// Each to the nearest number of a narrow type, ties to even. What is too large becomes infinity, or the
/// largest number in Float8E4M3, which has no infinity. NaN stays NaN.
void narrow(const float *from, DataType type, std::byte *to, std::size_t count);

/// Copies elements of `fromType` as `toType`: equal, or one of them Float32 or Float64 and the other a
/// floating type. False for other pairs, which leaves `to` as it is.
bool convertFloats(
    const std::byte *from, DataType fromType, std::byte *to, DataType toType, std::size_t count);

/// Leaves of each value what products of `type` see: TensorFloat32 10 bits of mantissa, BFloat16 and Float16
/// what they hold; Float8E4M3 and Float8E5M2 what they hold of the values scaled by one power of two, such
/// that the largest of them still fits (Transformer Engine's current scaling with scales of powers of two:
/// then parts of a tensor round as the whole does, but for its smallest values). Others change nothing. May
/// be in place.
void roundFor(DataType type, const float *from, float *to, std::size_t count);

} // namespace planloom
