#include "engine/kernels/elements/narrow_float.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace planloom {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

float widened(std::uint32_t code, DataType type)
{
    std::array<std::byte, 2> bytes{static_cast<std::byte>(code), static_cast<std::byte>(code >> 8)};
    float value = 0;
    widen(bytes.data(), type, &value, 1);
    return value;
}

std::uint32_t narrowed(float value, DataType type)
{
    std::array<std::byte, 2> bytes{};
    narrow(&value, type, bytes.data(), 1);
    return static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8;
}

struct Format {
    DataType type;
    std::uint32_t codes; ///< Half of them negative.
};
constexpr std::array kFormats{Format{DataType::BFloat16, 65536}, Format{DataType::Float16, 65536},
    Format{DataType::Float8E4M3, 256}, Format{DataType::Float8E5M2, 256}};

TEST(NarrowFloat, EveryNumberComesBackFromItsFloat)
{
    for (const Format &format : kFormats)
        for (std::uint32_t code = 0; code < format.codes; ++code) {
            const float value = widened(code, format.type);
            if (std::isnan(value)) {
                EXPECT_TRUE(std::isnan(widened(narrowed(value, format.type), format.type)));
                continue;
            }
            ASSERT_EQ(narrowed(value, format.type), code) << nameOf(format.type) << " " << value;
            ASSERT_EQ(std::signbit(value), code >= format.codes / 2);
        }
}

TEST(NarrowFloat, RoundsToTheNearestTiesToEven)
{
    for (const Format &format : kFormats) {
        // Between any two neighbours: below the middle, the middle, above it.
        for (std::uint32_t code = 0; code + 1 < format.codes / 2; ++code) {
            const double low = widened(code, format.type);
            const double high = widened(code + 1, format.type);
            if (!std::isfinite(low) || !std::isfinite(high))
                continue;
            const auto middle = static_cast<float>((low + high) / 2);
            if (static_cast<double>(middle) != (low + high) / 2)
                continue; // below what a float holds
            const std::uint32_t even = code % 2 == 0 ? code : code + 1;
            ASSERT_EQ(narrowed(middle, format.type), even) << nameOf(format.type) << " " << middle;
            ASSERT_EQ(narrowed(std::nextafter(middle, 0.0f), format.type), code);
            ASSERT_EQ(narrowed(std::nextafter(middle, kInfinity), format.type), code + 1);
            ASSERT_EQ(narrowed(-middle, format.type), even + format.codes / 2);
        }
    }
}

TEST(NarrowFloat, HasTheNumbersOfItsFormat)
{
    EXPECT_EQ(widened(0x3f80, DataType::BFloat16), 1.0f);
    EXPECT_EQ(widened(0x7bff, DataType::Float16), 65504.0f);
    EXPECT_EQ(widened(0x0001, DataType::Float16), 0x1p-24f);
    EXPECT_EQ(widened(0x7e, DataType::Float8E4M3), 448.0f);
    EXPECT_EQ(widened(0x01, DataType::Float8E4M3), 0x1p-9f);
    EXPECT_EQ(widened(0x7b, DataType::Float8E5M2), 57344.0f);
    EXPECT_EQ(widened(0x01, DataType::Float8E5M2), 0x1p-16f);
    EXPECT_EQ(widened(0x7c, DataType::Float8E5M2), kInfinity);
    // What is too large.
    EXPECT_EQ(widened(narrowed(65519.9f, DataType::Float16), DataType::Float16), 65504.0f);
    EXPECT_EQ(widened(narrowed(65520.0f, DataType::Float16), DataType::Float16), kInfinity);
    EXPECT_EQ(widened(narrowed(3.4e38f, DataType::BFloat16), DataType::BFloat16), kInfinity);
    EXPECT_EQ(widened(narrowed(-1e9f, DataType::Float8E4M3), DataType::Float8E4M3), -448.0f);
    EXPECT_EQ(widened(narrowed(1e9f, DataType::Float8E5M2), DataType::Float8E5M2), kInfinity);
}

TEST(NarrowFloat, OfManyAtOnceIsThatOfEach)
{
    std::mt19937 random(3);
    std::vector<float> values(5000);
    for (float &value : values)
        value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    for (const Format &format : kFormats) {
        const auto size = static_cast<std::size_t>(sizeOf(format.type));
        std::vector<std::byte> codes(values.size() * size);
        narrow(values.data(), format.type, codes.data(), values.size());
        std::vector<float> back(values.size());
        widen(codes.data(), format.type, back.data(), back.size());
        for (std::size_t i = 0; i < values.size(); ++i) {
            const float own = widened(narrowed(values[i], format.type), format.type);
            ASSERT_TRUE(back[i] == own || (std::isnan(back[i]) && std::isnan(own))) << values[i];
        }
    }
}

TEST(RoundFor, TensorFloat32KeepsTenBitsOfMantissa)
{
    const std::array<float, 3> values{1 + 0x1p-11f, 1 + 0x1.8p-10f, -(1 + 0x1.8p-11f)};
    std::array<float, 3> rounded{};
    roundFor(DataType::TensorFloat32, values.data(), rounded.data(), values.size());
    EXPECT_EQ(rounded, (std::array<float, 3>{1, 1 + 0x1p-9f, -(1 + 0x1p-10f)}));
}

TEST(RoundFor, EightBitsAreScaledByThePowerOfTwoThatTheLargestAllows)
{
    // 0.9 x 2^-20 is 460.8 in units of 2^-29, above 448, so in units of 2^-28: 230.4, between 224 and 240.
    const std::array<float, 4> values{0.9f * 0x1p-20f, -0x1p-20f * 0.5f, 1e-30f, 0};
    std::array<float, 4> rounded{};
    roundFor(DataType::Float8E4M3, values.data(), rounded.data(), values.size());
    EXPECT_EQ(rounded, (std::array<float, 4>{224 * 0x1p-28f, -0x1p-21f, 0, 0}));
    // A part rounds as the whole does.
    std::mt19937 random(5);
    std::normal_distribution<float> normal;
    std::vector<float> whole(4096);
    for (float &value : whole)
        value = normal(random);
    std::vector<float> all(whole.size());
    roundFor(DataType::Float8E5M2, whole.data(), all.data(), whole.size());
    std::vector<float> parts(whole.size());
    for (std::size_t at = 0; at < whole.size(); at += 1024)
        roundFor(DataType::Float8E5M2, whole.data() + at, parts.data() + at, 1024);
    EXPECT_EQ(all, parts);
    for (std::size_t i = 0; i < whole.size(); ++i)
        ASSERT_LE(std::abs(all[i] - whole[i]), 0.125f * std::abs(whole[i]));
}

TEST(ConvertFloats, RefusesOtherTypes)
{
    std::array<std::byte, 8> from{};
    std::array<std::byte, 8> to{};
    EXPECT_FALSE(convertFloats(from.data(), DataType::Int32, to.data(), DataType::Float16, 1));
    EXPECT_TRUE(convertFloats(from.data(), DataType::Int32, to.data(), DataType::Int32, 1));
    const double value = 1.0 / 3;
    std::memcpy(from.data(), &value, sizeof value);
    ASSERT_TRUE(convertFloats(from.data(), DataType::Float64, to.data(), DataType::BFloat16, 1));
    EXPECT_EQ(static_cast<int>(to[0]) | static_cast<int>(to[1]) << 8, 0x3eab);
}

} // namespace
} // namespace planloom
