#include "engine/graph/shape.h"

#include <array>

namespace planloom {

namespace {

/// In the order of `DataType`.
struct DataTypeTraits {
    const char *name;
    std::int8_t size; ///< Bytes of one element.
    bool isFloating;
};

const DataTypeTraits &traitsOf(DataType type)
{
    static constexpr std::array<DataTypeTraits, 13> kTraits{{{"float32", 4, true}, {"float16", 2, true},
        {"bfloat16", 2, true}, {"float64", 8, true}, {"int64", 8, false}, {"int32", 4, false},
        {"int16", 2, false}, {"int8", 1, false}, {"uint8", 1, false}, {"bool", 1, false},
        {"float8-e4m3", 1, true}, {"float8-e5m2", 1, true}, {"tensor-float32", 4, true}}};
    return kTraits[static_cast<std::size_t>(type)];
}

} // namespace

std::int64_t elementCount(const Shape &shape)
{
    std::int64_t count = 1;
    for (const std::int64_t extent : shape)
        count *= extent;
    return count;
}

std::int64_t sizeOf(DataType type)
{
    return traitsOf(type).size;
}

const char *nameOf(DataType type)
{
    return traitsOf(type).name;
}

bool isFloating(DataType type)
{
    return traitsOf(type).isFloating;
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
