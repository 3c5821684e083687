#pragma once

#include "engine/kernels/elements/vector_math.h"

#include <cstdint>
#include <type_traits>

namespace planloom {

/// The integer that `value` is cut to, towards 0, on every kind of device.
///
/// ONNX leaves open what becomes of numbers that the type does not hold. This is what ONNX Runtime, PyTorch
/// and NumPy make of them on x86 processors: the least number of 32 bits, or of 64 where the type has that
/// many, stands for all that do not fit into these, NaN among them; narrower types keep the lowest bits.
template<typename To, typename From> PLANLOOM_INLINE To wholeNumber(From value)
{
    static_assert(std::is_integral_v<To> && !std::is_integral_v<From>);
    if constexpr (sizeof(To) == sizeof(std::int64_t)) {
        const bool fits = value >= From(-9223372036854775808.0) && value < From(9223372036854775808.0);
        return static_cast<To>(
            fits ? static_cast<std::int64_t>(value) : -std::int64_t{9223372036854775807LL} - 1);
    } else {
        const bool fits = value >= From(-2147483648.0) && value < From(2147483648.0);
        return static_cast<To>(fits ? static_cast<std::int32_t>(value) : -std::int32_t{2147483647} - 1);
    }
}

} // namespace planloom
