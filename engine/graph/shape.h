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
    Bool
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
