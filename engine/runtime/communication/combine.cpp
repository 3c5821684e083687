// What combines the parts of a value otherwise than by summing them.

#include "engine/kernels/elements/narrow_float.h"
#include "engine/runtime/devices/box_copy.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

namespace planloom {

namespace {

/// The larger one, or a NaN.
template<typename T> T largerOf(T a, T b)
{
    return b > a || b != b ? b : a;
}

template<typename T> void largest(T *to, std::span<const T *const> from, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        T value = from[0][i];
        for (std::size_t k = 1; k < from.size(); ++k)
            value = largerOf(value, from[k][i]);
        to[i] = value;
    }
}

/// Around the largest, so that nothing overflows; in double, so that what comes out does not depend on how
/// many there are.
template<typename T> void logSumExp(T *to, std::span<const T *const> from, std::size_t count)
{
    for (std::size_t i = 0; i < count; ++i) {
        T top = from[0][i];
        for (std::size_t k = 1; k < from.size(); ++k)
            top = largerOf(top, from[k][i]);
        if (!std::isfinite(top)) { // nothing yet, something infinite, or a NaN
            to[i] = top;
            continue;
        }
        double sum = 0;
        for (const T *each : from)
            sum += std::exp(static_cast<double>(each[i]) - static_cast<double>(top));
        to[i] = static_cast<T>(static_cast<double>(top) + std::log(sum));
    }
}

template<typename T>
bool combineTyped(T *to, std::span<const T *const> from, std::size_t count, Combination combination)
{
    if (combination == Combination::Max) {
        largest(to, from, count);
        return true;
    }
    if constexpr (std::is_floating_point_v<T>) {
        logSumExp(to, from, count);
        return true;
    }
    return false;
}

template<typename T>
bool combineAs(
    std::byte *to, std::span<const std::byte *const> from, std::size_t count, Combination combination)
{
    std::vector<const T *> typed;
    for (const std::byte *each : from)
        typed.push_back(reinterpret_cast<const T *>(each));
    return combineTyped<T>(reinterpret_cast<T *>(to), typed, count, combination);
}

/// As floats, rounded once.
bool combineNarrow(std::byte *to, std::span<const std::byte *const> from, std::size_t count, DataType type,
    Combination combination)
{
    std::vector<std::vector<float>> wide(from.size(), std::vector<float>(count));
    std::vector<const float *> typed;
    for (std::size_t k = 0; k < from.size(); ++k) {
        widen(from[k], type, wide[k].data(), count);
        typed.push_back(wide[k].data());
    }
    std::vector<float> made(count);
    combineTyped<float>(made.data(), typed, count, combination);
    narrow(made.data(), type, to, count);
    return true;
}

} // namespace

bool combineInto(std::byte *to, std::span<const std::byte *const> from, std::size_t count, DataType type,
    Combination combination)
{
    if (combination == Combination::Sum)
        return sumInto(to, from, count, type);
    if (combination == Combination::Weighted) // no combination of the parts alone
        return false;
    switch (type) {
    case DataType::Float32:
        return combineAs<float>(to, from, count, combination);
    case DataType::Float64:
        return combineAs<double>(to, from, count, combination);
    case DataType::Int64:
        return combineAs<std::int64_t>(to, from, count, combination);
    case DataType::Int32:
        return combineAs<std::int32_t>(to, from, count, combination);
    case DataType::Int16:
        return combineAs<std::int16_t>(to, from, count, combination);
    case DataType::Int8:
        return combineAs<std::int8_t>(to, from, count, combination);
    case DataType::UInt8:
        return combineAs<std::uint8_t>(to, from, count, combination);
    default:
        return isNarrowFloat(type) && combineNarrow(to, from, count, type, combination);
    }
}

namespace {

/// As double, whatever float it is.
bool weightsOfRows(const std::byte *own, const std::byte *all, DataType type, std::vector<double> &weights)
{
    const auto fill = [&](const auto *a, const auto *b) {
        for (std::size_t i = 0; i < weights.size(); ++i)
            weights[i] = std::isinf(a[i]) && a[i] < 0
                ? 0
                : std::exp(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    };
    if (type == DataType::Float32)
        fill(reinterpret_cast<const float *>(own), reinterpret_cast<const float *>(all));
    else if (type == DataType::Float64)
        fill(reinterpret_cast<const double *>(own), reinterpret_cast<const double *>(all));
    else
        return false;
    return true;
}

template<typename T>
void scaleRows(T *to, const T *from, const std::vector<double> &weights, std::size_t width)
{
    for (std::size_t row = 0; row < weights.size(); ++row)
        for (std::size_t i = row * width; i < (row + 1) * width; ++i)
            to[i] = static_cast<T>(static_cast<double>(from[i]) * weights[row]);
}

template<typename T>
void addScaledRows(T *to, const T *first, const T *second, const std::vector<double> &firstWeights,
    const std::vector<double> &secondWeights, std::size_t width)
{
    for (std::size_t row = 0; row < firstWeights.size(); ++row)
        for (std::size_t i = row * width; i < (row + 1) * width; ++i)
            to[i] = static_cast<T>(static_cast<double>(first[i]) * firstWeights[row]
                + static_cast<double>(second[i]) * secondWeights[row]);
}

} // namespace

bool mergeInto(std::byte *to, std::byte *logarithms, const std::array<const std::byte *, 2> &from,
    const std::array<const std::byte *, 2> &own, DataType type, DataType weightType, std::size_t rows,
    std::size_t width)
{
    std::vector<double> first(rows);
    std::vector<double> second(rows);
    if (!combineInto(logarithms, own, rows, weightType, Combination::LogSumExp)
        || !weightsOfRows(own[0], logarithms, weightType, first)
        || !weightsOfRows(own[1], logarithms, weightType, second))
        return false;
    if (type == DataType::Float32) {
        addScaledRows(reinterpret_cast<float *>(to), reinterpret_cast<const float *>(from[0]),
            reinterpret_cast<const float *>(from[1]), first, second, width);
    } else if (type == DataType::Float64) {
        addScaledRows(reinterpret_cast<double *>(to), reinterpret_cast<const double *>(from[0]),
            reinterpret_cast<const double *>(from[1]), first, second, width);
    } else if (isNarrowFloat(type)) {
        std::array<std::vector<float>, 2> wide;
        for (std::size_t k = 0; k < wide.size(); ++k) {
            wide[k].resize(rows * width);
            widen(from[k], type, wide[k].data(), wide[k].size());
        }
        addScaledRows(wide[0].data(), wide[0].data(), wide[1].data(), first, second, width);
        narrow(wide[0].data(), type, to, wide[0].size());
    } else {
        return false;
    }
    return true;
}

bool weighInto(std::byte *to, const std::byte *from, DataType type, const std::byte *own,
    const std::byte *all, DataType weightType, std::size_t rows, std::size_t width)
{
    std::vector<double> weights(rows);
    if (!weightsOfRows(own, all, weightType, weights))
        return false;
    if (type == DataType::Float32) {
        scaleRows(reinterpret_cast<float *>(to), reinterpret_cast<const float *>(from), weights, width);
    } else if (type == DataType::Float64) {
        scaleRows(reinterpret_cast<double *>(to), reinterpret_cast<const double *>(from), weights, width);
    } else if (isNarrowFloat(type)) {
        std::vector<float> wide(rows * width);
        widen(from, type, wide.data(), wide.size());
        scaleRows(wide.data(), wide.data(), weights, width);
        narrow(wide.data(), type, to, wide.size());
    } else {
        return false;
    }
    return true;
}

bool canCombine(DataType type, Combination combination)
{
    return canAdd(type) && combination != Combination::Weighted
        && (combination != Combination::LogSumExp || isFloating(type));
}

} // namespace planloom
