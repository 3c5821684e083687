#pragma once

#include "engine/kernels/elements/vector_math.h"

#include <cmath>
#include <cstdint>
#include <type_traits>

// Comparisons, logic, bits and remainders of two numbers: the same code on every kind of device.

namespace planloom::logic {

struct Equal {
    template<typename T> PLANLOOM_INLINE bool operator()(T a, T b) const { return a == b; }
};
struct Greater {
    template<typename T> PLANLOOM_INLINE bool operator()(T a, T b) const { return a > b; }
};
struct GreaterOrEqual {
    template<typename T> PLANLOOM_INLINE bool operator()(T a, T b) const { return a >= b; }
};
struct Less {
    template<typename T> PLANLOOM_INLINE bool operator()(T a, T b) const { return a < b; }
};
struct LessOrEqual {
    template<typename T> PLANLOOM_INLINE bool operator()(T a, T b) const { return a <= b; }
};
struct And {
    template<typename T> PLANLOOM_INLINE bool operator()(T a, T b) const { return a != T(0) && b != T(0); }
};
struct Or {
    template<typename T> PLANLOOM_INLINE bool operator()(T a, T b) const { return a != T(0) || b != T(0); }
};
struct Xor {
    template<typename T> PLANLOOM_INLINE bool operator()(T a, T b) const
    {
        return (a != T(0)) != (b != T(0));
    }
};

struct BitwiseAnd {
    template<typename T> PLANLOOM_INLINE T operator()(T a, T b) const { return static_cast<T>(a & b); }
};
struct BitwiseOr {
    template<typename T> PLANLOOM_INLINE T operator()(T a, T b) const { return static_cast<T>(a | b); }
};
struct BitwiseXor {
    template<typename T> PLANLOOM_INLINE T operator()(T a, T b) const { return static_cast<T>(a ^ b); }
};

/// The remainder with the sign of the divisor (Python's), or of the dividend (C's). Integers must not be
/// divided by 0.
template<typename T> PLANLOOM_INLINE T remainder(T a, T divisor, bool likeC)
{
    T rest;
    if constexpr (std::is_integral_v<T>)
        rest = divisor == T(-1) ? T(0) : static_cast<T>(a % divisor);
    else
        rest = std::fmod(a, divisor);
    return !likeC && rest != T(0) && (rest < T(0)) != (divisor < T(0)) ? static_cast<T>(rest + divisor)
                                                                       : rest;
}

/// The `bits` bits of `a`, unsigned as ONNX has it, shifted by `by`.
PLANLOOM_INLINE std::uint64_t shifted(std::uint64_t a, std::uint64_t by, std::uint64_t bits, bool left)
{
    return by >= bits ? 0 : left ? a << by : a >> by;
}

} // namespace planloom::logic
