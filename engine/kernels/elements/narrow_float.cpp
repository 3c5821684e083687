#include "engine/kernels/elements/narrow_float.h"

#include "engine/kernels/elements/vector_math.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace planloom {

namespace {

constexpr std::uint32_t kSign = 0x80000000u;
constexpr std::uint32_t kInfinity = 0x7f800000u;

/// Nearest number with `mantissa` bits behind the leading one and exponents from `least` on: adding a number
/// whose last place is the wanted one lets the adder round.
PLANLOOM_INLINE float nearestOf(float value, int mantissa, int least)
{
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const float a = std::bit_cast<float>(bits & ~kSign);
    const std::uint32_t own = bits & kInfinity;
    const std::uint32_t smallest = static_cast<std::uint32_t>(least + 127) << 23;
    const std::uint32_t exponent = own > smallest ? own : smallest;
    const float magic = std::bit_cast<float>(exponent + (static_cast<std::uint32_t>(23 - mantissa) << 23));
    const float rounded = (a + magic) - magic;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(rounded) | (bits & kSign));
}

/// `bits` of a float without its lowest `dropped` bits, rounded; NaN keeps a bit of its own.
PLANLOOM_INLINE std::uint32_t roundedBits(std::uint32_t bits, int dropped)
{
    const std::uint32_t half = (1u << (dropped - 1)) - 1 + ((bits >> dropped) & 1u);
    const std::uint32_t rounded = (bits + half) >> dropped << dropped;
    const std::uint32_t nan = (bits >> dropped << dropped) | 0x400000u;
    return (bits & ~kSign) > kInfinity ? nan : rounded;
}

PLANLOOM_HOT void fromBFloat16s(const std::uint16_t *from, float *to, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        to[i] = std::bit_cast<float>(static_cast<std::uint32_t>(from[i]) << 16);
}

PLANLOOM_HOT void toBFloat16s(const float *from, std::uint16_t *to, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i)
        to[i] = static_cast<std::uint16_t>(roundedBits(std::bit_cast<std::uint32_t>(from[i]), 16) >> 16);
}

PLANLOOM_HOT void fromFloat16s(const std::uint16_t *from, float *to, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t half = from[i];
        // As a float the bits stand for 2^-112 times the value, also of numbers without a leading one.
        const float scaled = std::bit_cast<float>((half & 0x7fffu) << 13) * 0x1p112f;
        const std::uint32_t special = kInfinity | (half & 0x3ffu) << 13;
        const std::uint32_t bits =
            (half & 0x7c00u) == 0x7c00u ? special : std::bit_cast<std::uint32_t>(scaled);
        to[i] = std::bit_cast<float>(bits | (half & 0x8000u) << 16);
    }
}

PLANLOOM_HOT void toFloat16s(const float *from, std::uint16_t *to, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t bits = std::bit_cast<std::uint32_t>(from[i]);
        const float a = std::bit_cast<float>(bits & ~kSign);
        // From 2^-14 on: the exponent counts from another number; below, units of 2^-24 are counted.
        const std::uint32_t normal = (roundedBits(bits & ~kSign, 13) - (112u << 23)) >> 13;
        const std::uint32_t small = std::bit_cast<std::uint32_t>(a * 0x1p24f + 0x1p23f) - 0x4b000000u;
        std::uint32_t half = a < 0x1p-14f ? small : normal;
        half = a >= 65520.0f ? 0x7c00u : half; // half way between the largest number and what would follow
        half = (bits & ~kSign) > kInfinity ? 0x7e00u : half;
        to[i] = static_cast<std::uint16_t>(half | (bits & kSign) >> 16);
    }
}

struct Float8Format {
    int mantissa;
    int least; ///< Exponent of the smallest number with a leading one.
    float largest;
    bool infinity;
};

Float8Format formatOf(DataType type)
{
    return type == DataType::Float8E4M3 ? Float8Format{3, -6, 448.0f, false}
                                        : Float8Format{2, -14, 57344.0f, true};
}

float valueOfFloat8(std::uint8_t code, const Float8Format &format)
{
    const int fraction = code & ((1 << format.mantissa) - 1);
    const int exponent = (code & 0x7f) >> format.mantissa;
    const int most = format.infinity ? 31 : 15;
    float value = 0;
    if (exponent == most && (format.infinity || fraction == 7))
        value = format.infinity && fraction == 0 ? std::numeric_limits<float>::infinity()
                                                 : std::numeric_limits<float>::quiet_NaN();
    else if (exponent == 0)
        value = std::ldexp(static_cast<float>(fraction), format.least - format.mantissa);
    else
        value = std::ldexp(static_cast<float>(fraction + (1 << format.mantissa)),
            format.least + exponent - 1 - format.mantissa);
    return (code & 0x80) != 0 ? -value : value;
}

std::uint8_t float8Of(float value, const Float8Format &format)
{
    const int sign = std::signbit(value) ? 0x80 : 0;
    if (std::isnan(value))
        return static_cast<std::uint8_t>(sign | 0x7f);
    const float a = std::fabs(value);
    const int infinity = format.infinity ? 0x7c : 0x7e; // or the largest number
    if (std::isinf(a))
        return static_cast<std::uint8_t>(sign | infinity);
    const float rounded = nearestOf(std::min(a, 2 * format.largest), format.mantissa, format.least);
    if (rounded > format.largest)
        return static_cast<std::uint8_t>(sign | infinity);
    if (rounded == 0)
        return static_cast<std::uint8_t>(sign);
    const int exponent = std::max(std::ilogb(rounded), format.least);
    const auto units = static_cast<int>(std::ldexp(rounded, format.mantissa - exponent));
    // The leading one of a number that has it moves on to the exponent by itself.
    return static_cast<std::uint8_t>(sign | (((exponent - format.least) << format.mantissa) + units));
}

PLANLOOM_HOT void roundMantissas(const float *from, float *to, std::size_t count, int dropped)
{
    for (std::size_t i = 0; i < count; ++i)
        to[i] = std::bit_cast<float>(roundedBits(std::bit_cast<std::uint32_t>(from[i]), dropped));
}

PLANLOOM_HOT float largestOf(const float *values, std::size_t count)
{
    float most = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const float a = std::fabs(values[i]);
        most = a > most ? a : most;
    }
    return most;
}

PLANLOOM_HOT void roundScaled(
    const float *from, float *to, std::size_t count, float scale, int mantissa, int least)
{
    const float back = 1 / scale;
    for (std::size_t i = 0; i < count; ++i) {
        const float rounded = nearestOf(from[i] * scale, mantissa, least) * back;
        to[i] = std::fabs(from[i]) < std::numeric_limits<float>::infinity() ? rounded : from[i];
    }
}

} // namespace

bool isNarrowFloat(DataType type)
{
    return type == DataType::Float16 || type == DataType::BFloat16 || type == DataType::Float8E4M3
        || type == DataType::Float8E5M2;
}

void widen(const std::byte *from, DataType type, float *to, std::size_t count)
{
    if (type == DataType::BFloat16)
        return fromBFloat16s(reinterpret_cast<const std::uint16_t *>(from), to, count);
    if (type == DataType::Float16)
        return fromFloat16s(reinterpret_cast<const std::uint16_t *>(from), to, count);
    const Float8Format format = formatOf(type);
    for (std::size_t i = 0; i < count; ++i)
        to[i] = valueOfFloat8(static_cast<std::uint8_t>(from[i]), format);
}

void narrow(const float *from, DataType type, std::byte *to, std::size_t count)
{
    if (type == DataType::BFloat16)
        return toBFloat16s(from, reinterpret_cast<std::uint16_t *>(to), count);
    if (type == DataType::Float16)
        return toFloat16s(from, reinterpret_cast<std::uint16_t *>(to), count);
    const Float8Format format = formatOf(type);
    for (std::size_t i = 0; i < count; ++i)
        to[i] = static_cast<std::byte>(float8Of(from[i], format));
}

bool convertFloats(
    const std::byte *from, DataType fromType, std::byte *to, DataType toType, std::size_t count)
{
    if (fromType == toType) {
        std::memcpy(to, from, count * static_cast<std::size_t>(sizeOf(toType)));
        return true;
    }
    if (!isFloating(fromType) || !isFloating(toType))
        return false;
    constexpr std::size_t kBlock = 1024; // stays in the first cache
    float block[kBlock];
    const auto fromSize = static_cast<std::size_t>(sizeOf(fromType));
    const auto toSize = static_cast<std::size_t>(sizeOf(toType));
    for (std::size_t at = 0; at < count; at += kBlock) {
        const std::size_t length = std::min(kBlock, count - at);
        const std::byte *source = from + at * fromSize;
        std::byte *target = to + at * toSize;
        const float *values = block;
        if (fromType == DataType::Float32)
            values = reinterpret_cast<const float *>(source);
        else if (fromType == DataType::Float64)
            for (std::size_t i = 0; i < length; ++i)
                block[i] = static_cast<float>(reinterpret_cast<const double *>(source)[i]);
        else
            widen(source, fromType, block, length);
        if (toType == DataType::Float32)
            std::memcpy(target, values, length * sizeof(float));
        else if (toType == DataType::Float64)
            for (std::size_t i = 0; i < length; ++i)
                reinterpret_cast<double *>(target)[i] = values[i];
        else
            narrow(values, toType, target, length);
    }
    return true;
}

void roundFor(DataType type, const float *from, float *to, std::size_t count)
{
    switch (type) {
    case DataType::TensorFloat32:
        return roundMantissas(from, to, count, 13);
    case DataType::BFloat16:
        return roundMantissas(from, to, count, 16);
    case DataType::Float16: {
        constexpr std::size_t kBlock = 1024;
        std::uint16_t block[kBlock];
        for (std::size_t at = 0; at < count; at += kBlock) {
            const std::size_t length = std::min(kBlock, count - at);
            toFloat16s(from + at, block, length);
            fromFloat16s(block, to + at, length);
        }
        return;
    }
    case DataType::Float8E4M3:
    case DataType::Float8E5M2: {
        const Float8Format format = formatOf(type);
        const float most = largestOf(from, count);
        int exponent = 0;
        if (most > 0 && most < std::numeric_limits<float>::infinity()) {
            exponent = std::ilogb(format.largest) - std::ilogb(most);
            if (std::ldexp(most, exponent) > format.largest)
                --exponent;
        }
        return roundScaled(from, to, count, std::ldexp(1.0f, std::clamp(exponent, -100, 100)),
            format.mantissa, format.least);
    }
    default:
        if (from != to)
            std::memcpy(to, from, count * sizeof(float));
    }
}

} // namespace planloom
