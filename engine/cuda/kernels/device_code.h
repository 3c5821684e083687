#pragma once

#include "engine/graph/shape.h"
#include "engine/kernels/elements/vector_math.h"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace planloom {

// What kernels of the device are made of. All of it is compiled for the host as well, where tests run it.

constexpr std::int32_t kMostLoops = 8; ///< Of a nest, once loops without a gap between them are one.

/// The bits of a value as another type of the same size.
template<typename To, typename From> PLANLOOM_INLINE To bitsAs(From from)
{
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

/// Elements in the memory of the device, of a type that is known when the kernel runs: a switch that all
/// threads take alike costs little beside a read of memory, and there is one kernel instead of one for every
/// combination.
struct Elements {
    void *data = nullptr;
    DataType type = DataType::Float32;
};

PLANLOOM_INLINE std::uint32_t keptBits(std::uint32_t bits, int dropped)
{
    const std::uint32_t half = (1u << (dropped - 1)) - 1 + ((bits >> dropped) & 1u);
    const std::uint32_t nan = (bits >> dropped << dropped) | 0x400000u;
    return (bits & 0x7fffffffu) > 0x7f800000u ? nan : (bits + half) >> dropped << dropped;
}

PLANLOOM_INLINE float floatOfHalf(std::uint16_t half)
{
    const float scaled =
        bitsAs<float>((half & 0x7fffu) << 13) * 5192296858534827628530496329220096.0f; // 2^112
    const std::uint32_t special = 0x7f800000u | (half & 0x3ffu) << 13;
    const std::uint32_t bits = (half & 0x7c00u) == 0x7c00u ? special : bitsAs<std::uint32_t>(scaled);
    return bitsAs<float>(bits | (half & 0x8000u) << 16);
}

/// As `narrow` of narrow_float.h rounds: to the nearest, ties to even.
PLANLOOM_INLINE std::uint16_t halfOfFloat(float value)
{
    const auto bits = bitsAs<std::uint32_t>(value);
    const float a = bitsAs<float>(bits & 0x7fffffffu);
    const std::uint32_t normal = (keptBits(bits & 0x7fffffffu, 13) - (112u << 23)) >> 13;
    const std::uint32_t small = bitsAs<std::uint32_t>(a * 16777216.0f + 8388608.0f) - 0x4b000000u;
    std::uint32_t half = a < 6.103515625e-05f ? small : normal;
    half = a >= 65520.0f ? 0x7c00u : half;
    half = (bits & 0x7fffffffu) > 0x7f800000u ? 0x7e00u : half;
    return static_cast<std::uint16_t>(half | (bits & 0x80000000u) >> 16);
}

/// What products of `type` see of a float (`roundFor` of narrow_float.h, without the types of 8 bits).
PLANLOOM_INLINE float roundedFor(DataType type, float value)
{
    if (type == DataType::TensorFloat32)
        return bitsAs<float>(keptBits(bitsAs<std::uint32_t>(value), 13));
    if (type == DataType::BFloat16)
        return bitsAs<float>(keptBits(bitsAs<std::uint32_t>(value), 16));
    if (type == DataType::Float16)
        return floatOfHalf(halfOfFloat(value));
    return value;
}

/// The types that `load` and `store` know.
inline bool isLoadable(DataType type)
{
    return type != DataType::Float8E4M3 && type != DataType::Float8E5M2 && type != DataType::TensorFloat32;
}

/// Element `i` as T: float, double or std::int64_t.
template<typename T> PLANLOOM_INLINE T load(const Elements &from, std::int64_t i)
{
    switch (from.type) {
    case DataType::Float32:
        return static_cast<T>(static_cast<const float *>(from.data)[i]);
    case DataType::BFloat16:
        return static_cast<T>(bitsAs<float>(
            static_cast<std::uint32_t>(static_cast<const std::uint16_t *>(from.data)[i]) << 16));
    case DataType::Float16:
        return static_cast<T>(floatOfHalf(static_cast<const std::uint16_t *>(from.data)[i]));
    case DataType::Float64:
        return static_cast<T>(static_cast<const double *>(from.data)[i]);
    case DataType::Int64:
        return static_cast<T>(static_cast<const std::int64_t *>(from.data)[i]);
    case DataType::Int32:
        return static_cast<T>(static_cast<const std::int32_t *>(from.data)[i]);
    case DataType::Int16:
        return static_cast<T>(static_cast<const std::int16_t *>(from.data)[i]);
    case DataType::Int8:
        return static_cast<T>(static_cast<const std::int8_t *>(from.data)[i]);
    default:
        return static_cast<T>(static_cast<const std::uint8_t *>(from.data)[i]);
    }
}

PLANLOOM_INLINE float at(const Elements &from, std::int64_t i)
{
    return load<float>(from, i);
}

template<typename T> PLANLOOM_INLINE void store(const Elements &to, std::int64_t i, T value)
{
    switch (to.type) {
    case DataType::Float32:
        static_cast<float *>(to.data)[i] = static_cast<float>(value);
        break;
    case DataType::BFloat16:
        static_cast<std::uint16_t *>(to.data)[i] =
            static_cast<std::uint16_t>(keptBits(bitsAs<std::uint32_t>(static_cast<float>(value)), 16) >> 16);
        break;
    case DataType::Float16:
        static_cast<std::uint16_t *>(to.data)[i] = halfOfFloat(static_cast<float>(value));
        break;
    case DataType::Float64:
        static_cast<double *>(to.data)[i] = static_cast<double>(value);
        break;
    case DataType::Int64:
        static_cast<std::int64_t *>(to.data)[i] = static_cast<std::int64_t>(value);
        break;
    case DataType::Int32:
        static_cast<std::int32_t *>(to.data)[i] = static_cast<std::int32_t>(value);
        break;
    case DataType::Int16:
        static_cast<std::int16_t *>(to.data)[i] = static_cast<std::int16_t>(value);
        break;
    case DataType::Int8:
        static_cast<std::int8_t *>(to.data)[i] = static_cast<std::int8_t>(value);
        break;
    default:
        static_cast<std::uint8_t *>(to.data)[i] = static_cast<std::uint8_t>(value);
    }
}

/// A loop nest with N operands, as LoopNest of iteration.h has it, for one thread of many to find its place
/// in.
template<int N> struct Nest {
    std::int32_t loops = 0; ///< Outermost first.
    std::int64_t extents[kMostLoops] = {};
    std::int64_t strides[N][kMostLoops] = {};

    /// offsets[n] += where operand n's element of place `i` lies.
    PLANLOOM_INLINE void find(std::int64_t i, std::int64_t *offsets) const
    {
        for (std::int32_t d = loops - 1; d >= 0; --d) {
            const std::int64_t here = i % extents[d];
            i /= extents[d];
            for (int n = 0; n < N; ++n)
                offsets[n] += here * strides[n][d];
        }
    }
};

/// Where a kernel tells the host of a value that it cannot take; in memory that both can read.
struct Problem {
    std::int32_t found = 0;
    std::int64_t value = 0;
    std::int64_t bound = 0;

    PLANLOOM_INLINE void tell(std::int64_t what, std::int64_t limit) // of several, any one
    {
        value = what;
        bound = limit;
        found = 1;
    }
};

/// Floats of memory that the threads of a team share.
constexpr std::int32_t kTeamFloats = 6144;

/// The team of a kernel that runs on the host: one thread. On the device it is a block of them. What a kernel
/// of a team relies on: `size` threads with `index` 0 to size - 1 run the same code; `sum` and `largest` are
/// met by all of them, and give all the same.
class LoneTeam
{
public:
    explicit LoneTeam(float *shared)
        : m_shared(shared)
    {
    }
    std::int64_t index() const { return 0; }
    std::int64_t size() const { return 1; }
    void meet() const { }
    double sum(double own) const { return own; }
    float largest(float own) const { return own; }
    float *shared() const { return m_shared; }

private:
    float *m_shared;
};

} // namespace planloom
