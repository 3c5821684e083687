#pragma once

#include "engine/graph/attributes.h"
#include "engine/graph/tensor.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace planloom {

/// Product of extents in elements and bytes, or nothing if an extent is negative or a product exceeds 2^62.
std::optional<std::int64_t> checkedElementCount(const Shape &shape);
std::optional<std::int64_t> checkedByteCount(const TensorType &type);

/// One number of a tensor, exact for integers and for floating types up to float64.
struct Number {
    bool floating = false;
    double real = 0;
    std::int64_t integer = 0;

    static Number ofReal(double value) { return {true, value, 0}; }
    static Number ofInteger(std::int64_t value) { return {false, 0, value}; }
    double asReal() const { return floating ? real : static_cast<double>(integer); }
    /// Truncated and saturated; NaN becomes 0.
    std::int64_t asInteger() const;
};

/// A number as an attribute, exact where it is an integer.
inline Attribute numberAttribute(Number number)
{
    return number.floating ? Attribute(number.real) : Attribute(number.integer);
}

/// `value` as a tensor of that type holds it.
Number rounded(DataType type, double value);

/// Element `index` of values of type `type`.
Number readNumber(DataType type, const std::byte *bytes, std::size_t index);

/// Stores `value` as element `index`; rounds to nearest for floating types, cuts to integers as a Cast does
/// (`wholeNumber`), and takes anything other than 0 as true.
void writeNumber(DataType type, std::byte *bytes, std::size_t index, Number value);

std::vector<std::int64_t> integersOf(const TensorData &data);
std::vector<double> realsOf(const TensorData &data);

std::shared_ptr<const TensorData> integerTensor(std::vector<std::int64_t> values, Shape shape);
std::shared_ptr<const TensorData> scalarTensor(DataType type, double value);
std::shared_ptr<const TensorData> realTensor(DataType type, const std::vector<double> &values, Shape shape);
/// All elements of `type` equal to `value`.
TensorData filledTensor(const TensorType &type, Number value);

} // namespace planloom
