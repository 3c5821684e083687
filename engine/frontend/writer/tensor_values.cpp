#include "engine/frontend/writer/tensor_values.h"

#include "engine/kernels/elements/conversion.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace planloom {

namespace {

template<typename T> T load(const std::byte *bytes, std::size_t index)
{
    T value{};
    std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
    return value;
}

template<typename T> void store(std::byte *bytes, std::size_t index, T value)
{
    std::memcpy(bytes + index * sizeof(T), &value, sizeof(T));
}

float floatFromBits(std::uint32_t bits)
{
    float value = 0;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
}

std::uint32_t bitsOf(float value)
{
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/// IEEE binary16: 1 sign, 5 exponent, 10 fraction bits.
double halfToReal(std::uint16_t half)
{
    const double sign = (half & 0x8000U) != 0 ? -1.0 : 1.0;
    const int exponent = (half >> 10U) & 0x1f;
    const int fraction = half & 0x3ff;
    if (exponent == 0)
        return sign * std::ldexp(fraction, -24);
    if (exponent == 31)
        return fraction == 0 ? sign * std::numeric_limits<double>::infinity()
                             : std::numeric_limits<double>::quiet_NaN();
    return sign * std::ldexp(1024 + fraction, exponent - 25);
}

/// Rounds to nearest, ties to even.
std::uint16_t realToHalf(double value)
{
    if (std::isnan(value))
        return 0x7e00U;
    const std::uint16_t sign = std::signbit(value) ? 0x8000U : 0U;
    const double magnitude = std::abs(value);
    if (magnitude >= 65520.0)
        return static_cast<std::uint16_t>(sign | 0x7c00U);
    if (magnitude < std::ldexp(1.0, -14)) // subnormal: multiples of 2^-24
        return static_cast<std::uint16_t>(
            sign | static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, 24))));
    const int exponent = std::ilogb(magnitude);
    const auto fraction =
        static_cast<unsigned>(std::nearbyint(std::ldexp(magnitude, 10 - exponent))); // 1024..2048
    return static_cast<std::uint16_t>(sign + ((static_cast<unsigned>(exponent) + 14U) << 10U) + fraction);
}

std::uint16_t realToBrain(double value)
{
    const std::uint32_t bits = bitsOf(static_cast<float>(value));
    if (std::isnan(value))
        return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
    return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

/// What a type of integers makes of a number.
template<typename To> To wholeOf(Number value)
{
    return value.floating ? wholeNumber<To>(value.real) : static_cast<To>(value.integer);
}

constexpr std::int64_t kMostCounted = std::int64_t{1} << 62;

} // namespace

std::optional<std::int64_t> checkedElementCount(const Shape &shape)
{
    if (std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent < 0; }))
        return std::nullopt;
    if (std::find(shape.begin(), shape.end(), 0) != shape.end())
        return 0;
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) {
        if (extent > kMostCounted / count)
            return std::nullopt;
        count *= extent;
    }
    return count;
}

std::optional<std::int64_t> checkedByteCount(const TensorType &type)
{
    const auto count = checkedElementCount(type.shape);
    if (!count || *count > kMostCounted / sizeOf(type.dataType))
        return std::nullopt;
    return *count * sizeOf(type.dataType);
}

std::int64_t Number::asInteger() const
{
    if (!floating)
        return integer;
    if (std::isnan(real))
        return 0;
    if (real >= 9.2e18)
        return std::numeric_limits<std::int64_t>::max();
    if (real <= -9.2e18)
        return std::numeric_limits<std::int64_t>::min();
    return static_cast<std::int64_t>(real);
}

Number readNumber(DataType type, const std::byte *bytes, std::size_t index)
{
    switch (type) {
    case DataType::Float32:
        return Number::ofReal(load<float>(bytes, index));
    case DataType::Float64:
        return Number::ofReal(load<double>(bytes, index));
    case DataType::Float16:
        return Number::ofReal(halfToReal(load<std::uint16_t>(bytes, index)));
    case DataType::BFloat16:
        return Number::ofReal(
            floatFromBits(static_cast<std::uint32_t>(load<std::uint16_t>(bytes, index)) << 16U));
    case DataType::Int64:
        return Number::ofInteger(load<std::int64_t>(bytes, index));
    case DataType::Int32:
        return Number::ofInteger(load<std::int32_t>(bytes, index));
    case DataType::Int16:
        return Number::ofInteger(load<std::int16_t>(bytes, index));
    case DataType::Int8:
        return Number::ofInteger(load<std::int8_t>(bytes, index));
    case DataType::UInt8:
        return Number::ofInteger(load<std::uint8_t>(bytes, index));
    case DataType::Bool:
        return Number::ofInteger(load<std::uint8_t>(bytes, index) != 0 ? 1 : 0);
    default: // of no pTensor
        return {};
    }
}

void writeNumber(DataType type, std::byte *bytes, std::size_t index, Number value)
{
    switch (type) {
    case DataType::Float32:
        store(bytes, index, static_cast<float>(value.asReal()));
        break;
    case DataType::Float64:
        store(bytes, index, value.asReal());
        break;
    case DataType::Float16:
        store(bytes, index, realToHalf(value.asReal()));
        break;
    case DataType::BFloat16:
        store(bytes, index, realToBrain(value.asReal()));
        break;
    case DataType::Int64:
        store(bytes, index, wholeOf<std::int64_t>(value));
        break;
    case DataType::Int32:
        store(bytes, index, wholeOf<std::int32_t>(value));
        break;
    case DataType::Int16:
        store(bytes, index, wholeOf<std::int16_t>(value));
        break;
    case DataType::Int8:
        store(bytes, index, wholeOf<std::int8_t>(value));
        break;
    case DataType::UInt8:
        store(bytes, index, wholeOf<std::uint8_t>(value));
        break;
    case DataType::Bool: {
        const bool set = value.floating ? value.real != 0 : value.integer != 0;
        store(bytes, index, static_cast<std::uint8_t>(set ? 1 : 0));
        break;
    }
    default: // of no pTensor
        break;
    }
}

std::vector<std::int64_t> integersOf(const TensorData &data)
{
    std::vector<std::int64_t> values(static_cast<std::size_t>(elementCount(data.type.shape)));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = readNumber(data.type.dataType, data.bytes.data(), i).asInteger();
    return values;
}

std::vector<double> realsOf(const TensorData &data)
{
    std::vector<double> values(static_cast<std::size_t>(elementCount(data.type.shape)));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = readNumber(data.type.dataType, data.bytes.data(), i).asReal();
    return values;
}

std::shared_ptr<const TensorData> integerTensor(std::vector<std::int64_t> values, Shape shape)
{
    auto data = std::make_shared<TensorData>();
    data->type = {DataType::Int64, std::move(shape)};
    data->bytes.resize(values.size() * sizeof(std::int64_t));
    if (!values.empty())
        std::memcpy(data->bytes.data(), values.data(), data->bytes.size());
    return data;
}

std::shared_ptr<const TensorData> realTensor(DataType type, const std::vector<double> &values, Shape shape)
{
    auto data = std::make_shared<TensorData>();
    data->type = {type, std::move(shape)};
    data->bytes.resize(values.size() * static_cast<std::size_t>(sizeOf(type)));
    for (std::size_t i = 0; i < values.size(); ++i)
        writeNumber(type, data->bytes.data(), i, Number::ofReal(values[i]));
    return data;
}

std::shared_ptr<const TensorData> scalarTensor(DataType type, double value)
{
    return std::make_shared<const TensorData>(filledTensor({type, {}}, Number::ofReal(value)));
}

Number rounded(DataType type, double value)
{
    return readNumber(type, scalarTensor(type, value)->bytes.data(), 0);
}

TensorData filledTensor(const TensorType &type, Number value)
{
    const auto count = static_cast<std::size_t>(elementCount(type.shape));
    const auto size = static_cast<std::size_t>(sizeOf(type.dataType));
    TensorData data{type, std::vector<std::byte>(count * size)};
    std::byte element[8] = {};
    writeNumber(type.dataType, element, 0, value);
    if (size == 1) {
        std::fill(data.bytes.begin(), data.bytes.end(), element[0]);
    } else {
        for (std::size_t i = 0; i < count; ++i)
            std::memcpy(data.bytes.data() + i * size, element, size);
    }
    return data;
}

} // namespace planloom
