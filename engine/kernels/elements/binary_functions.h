#pragma once

#include "engine/kernels/elements/vector_math.h"

#include <cmath>
#include <cstdint>
#include <type_traits>

// The functions of two operands: of all elements alike, and the same code on every kind of device.

namespace planloom::binary {

// Each function gives its value and its slopes in a and in b, and says which operands each slope needs.
#define PLANLOOM_BINARY_FUNCTION(Name, valueOfAB, slopeInA, needsA, slopeInB, needsB)                        \
    struct Name {                                                                                            \
        static constexpr int kSlopeNeeds[2] = {needsA, needsB};                                              \
        template<typename T> PLANLOOM_INLINE static T value(T a, T b) { return static_cast<T>(valueOfAB); }  \
        template<int Side, typename T>                                                                       \
        PLANLOOM_INLINE static T slope([[maybe_unused]] T a, [[maybe_unused]] T b)                           \
        {                                                                                                    \
            if constexpr (Side == 0)                                                                         \
                return static_cast<T>(slopeInA);                                                             \
            else                                                                                             \
                return static_cast<T>(slopeInB);                                                             \
        }                                                                                                    \
    };

constexpr int kNone = 0;
constexpr int kOnlyA = 1;
constexpr int kOnlyB = 2;
constexpr int kBoth = 3;

template<typename T> PLANLOOM_INLINE T power(T a, T b)
{
    if constexpr (std::is_integral_v<T>) {
        if (b < 0)
            return a == 1 ? T(1) : a == T(-1) ? (b % 2 == 0 ? T(1) : T(-1)) : T(0);
        std::uint64_t result = 1; // Wraps around like the hardware does, without undefined behaviour.
        auto base = static_cast<std::uint64_t>(a);
        for (auto left = static_cast<std::uint64_t>(b); left != 0; left >>= 1) {
            if ((left & 1) != 0)
                result *= base;
            base *= base;
        }
        return static_cast<T>(result);
    } else {
        return std::pow(a, b);
    }
}

/// d(a^b)/da; 0 where b is 0, whatever a is.
template<typename T> PLANLOOM_INLINE T powerSlopeA(T a, T b)
{
    return b == T(0) ? T(0) : b == T(2) ? T(2) * a : b * power(a, static_cast<T>(b - T(1)));
}

/// d(a^b)/db; 0 where a is 0, as PyTorch has it.
template<typename T> PLANLOOM_INLINE T powerSlopeB(T a, T b)
{
    return a == T(0) ? T(0) : power(a, b) * static_cast<T>(std::log(a));
}

PLANLOOM_BINARY_FUNCTION(Add, a + b, T(1), kNone, T(1), kNone)
PLANLOOM_BINARY_FUNCTION(Sub, a - b, T(1), kNone, T(-1), kNone)
PLANLOOM_BINARY_FUNCTION(Mul, a *b, b, kOnlyB, a, kOnlyA)
PLANLOOM_BINARY_FUNCTION(Div, a / b, T(1) / b, kOnlyB, -a / (b * b), kBoth)
PLANLOOM_BINARY_FUNCTION(Pow, power(a, b), powerSlopeA(a, b), kBoth, powerSlopeB(a, b), kBoth)
// Equal operands share the gradient.
PLANLOOM_BINARY_FUNCTION(Min, b < a || b != b ? b : a,
    a < b        ? T(1)
        : a == b ? T(0.5)
                 : T(0),
    kBoth,
    b < a        ? T(1)
        : a == b ? T(0.5)
                 : T(0),
    kBoth)
PLANLOOM_BINARY_FUNCTION(Max, b > a || b != b ? b : a,
    a > b        ? T(1)
        : a == b ? T(0.5)
                 : T(0),
    kBoth,
    b > a        ? T(1)
        : a == b ? T(0.5)
                 : T(0),
    kBoth)
PLANLOOM_BINARY_FUNCTION(PRelu, a<T(0) ? b * a : a, a> T(0) ? T(1) : b, kBoth, a > T(0) ? T(0) : a, kOnlyA)

// The remainder's quotient is constant between its jumps: rounded down, or towards zero where `fmod` is 1.
// Its values are in logic.cpp, with those of integers.
PLANLOOM_BINARY_FUNCTION(FloorMod, a - b * std::floor(a / b), T(1), kNone, -std::floor(a / b), kBoth)
PLANLOOM_BINARY_FUNCTION(TruncatedMod, std::fmod(a, b), T(1), kNone, -std::trunc(a / b), kBoth)

/// Functions that one operand alone decides in places, as those of one operand are constant in some.
template<typename Function, int Side> inline constexpr bool kIsFlatInPlaces = false;
template<int Side> inline constexpr bool kIsFlatInPlaces<Min, Side> = true;
template<int Side> inline constexpr bool kIsFlatInPlaces<Max, Side> = true;
template<> inline constexpr bool kIsFlatInPlaces<PRelu, 1> = true;

/// The gradient of an operand from that of f(a, b), where the slope is known.
template<typename Function, int Side, typename T> PLANLOOM_INLINE T gradient(T dy, T slope)
{
    if constexpr (kIsFlatInPlaces<Function, Side>)
        return slope == T(0) ? T(0) : dy * slope;
    else
        return dy * slope;
}

} // namespace planloom::binary
