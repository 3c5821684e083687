#include "engine/graph/shape.h"

namespace planloom {

std::int64_t elementCount(const Shape &shape)
{
    std::int64_t count = 1;
    for (const std::int64_t extent : shape)
        count *= extent;
    return count;
}

std::int64_t sizeOf(DataType type)
{
    switch (type) {
    case DataType::Float64:
    case DataType::Int64:
        return 8;
    case DataType::Float32:
    case DataType::Int32:
    case DataType::TensorFloat32:
        return 4;
    case DataType::Float16:
    case DataType::BFloat16:
    case DataType::Int16:
        return 2;
    case DataType::Int8:
    case DataType::UInt8:
    case DataType::Bool:
    case DataType::Float8E4M3:
    case DataType::Float8E5M2:
        return 1;
    }
    return 1;
}

const char *nameOf(DataType type)
{
    switch (type) {
    case DataType::Float32:
        return "float32";
    case DataType::Float16:
        return "float16";
    case DataType::BFloat16:
        return "bfloat16";
    case DataType::Float64:
        return "float64";
    case DataType::Int64:
        return "int64";
    case DataType::Int32:
        return "int32";
    case DataType::Int16:
        return "int16";
    case DataType::Int8:
        return "int8";
    case DataType::UInt8:
        return "uint8";
    case DataType::Bool:
        return "bool";
    case DataType::Float8E4M3:
        return "float8-e4m3";
    case DataType::Float8E5M2:
        return "float8-e5m2";
    case DataType::TensorFloat32:
        return "tensor-float32";
    }
    return "unknown";
}

bool isFloating(DataType type)
{
    switch (type) {
    case DataType::Float32:
    case DataType::Float16:
    case DataType::BFloat16:
    case DataType::Float64:
    case DataType::Float8E4M3:
    case DataType::Float8E5M2:
    case DataType::TensorFloat32:
        return true;
    default:
        return false;
    }
}

std::string toString(const Shape &shape)
{
    std::string text = "[";
    for (const std::int64_t extent : shape) {
        if (text.size() > 1)
            text += ' ';
        text += std::to_string(extent);
    }
    return text + "]";
}

} // namespace planloom
