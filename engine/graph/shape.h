#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// Extents of a tensor's dimensions, outermost first; empty for a scalar.
using Shape = std::vector<std::int64_t>;

/// Element types Planloom computes or plans with.
enum class DataType : std::uint8_t {
    Float32,
    Float16,
    BFloat16,
    Float64,
    Int64,
    Int32,
    Int16,
    Int8,
    UInt8,
    Bool,
    // Of no pTensor: only buffers of a plan (precision.h) and arithmetic have these.
    Float8E4M3, ///< 4 bits of exponent, 3 of mantissa, up to 448; no infinity (OCP OFP8, arXiv:2209.05433).
    Float8E5M2, ///< As IEEE: 5 bits of exponent, 2 of mantissa, up to 57344.
    TensorFloat32, ///< Arithmetic alone: Float32 whose products see 10 bits of mantissa. 4 bytes in memory.
};

/// Product of the extents; 1 for a scalar.
std::int64_t elementCount(const Shape &shape);

/// Bytes of one element.
std::int64_t sizeOf(DataType type);

/// "float32", "int64", ...
const char *nameOf(DataType type);

bool isFloating(DataType type);

/// "[2 16 64]"
std::string toString(const Shape &shape);

/// Element type and shape of a value.
struct TensorType {
    DataType dataType = DataType::Float32;
    Shape shape{};
    friend bool operator==(const TensorType &, const TensorType &) = default;
};

} // namespace planloom
