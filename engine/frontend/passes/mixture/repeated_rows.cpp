#include "engine/frontend/passes/mixture/repeated_rows.h"

#include <cstring>
#include <string>
#include <unordered_map>

namespace planloom {

RepeatedRows rowsAlong(const TensorData &data, std::size_t axis)
{
    const Shape &shape = data.type.shape;
    const auto size = static_cast<std::size_t>(sizeOf(data.type.dataType));
    const auto extent = static_cast<std::size_t>(axis < shape.size() ? shape[axis] : 1);
    std::size_t inner = 1;
    for (std::size_t d = axis + 1; d < shape.size(); ++d)
        inner *= static_cast<std::size_t>(shape[d]);
    const std::vector<std::byte> &bytes = data.bytes;
    const std::size_t outer = bytes.size() / (size * extent * inner);
    RepeatedRows rows{axis, {}, {}, 0};
    std::unordered_map<std::string, std::int64_t> known;
    std::string row(extent * size, '\0');
    for (std::size_t o = 0; o < outer; ++o) {
        for (std::size_t i = 0; i < inner; ++i) {
            for (std::size_t e = 0; e < extent; ++e)
                std::memcpy(
                    row.data() + e * size, bytes.data() + ((o * extent + e) * inner + i) * size, size);
            const auto [found, isNew] = known.emplace(row, rows.count);
            if (isNew) {
                ++rows.count;
                const auto *begin =
                    reinterpret_cast<const std::byte *>(row.data()); // as the tensor holds them
                rows.table.insert(rows.table.end(), begin, begin + row.size());
            }
            rows.places.push_back(found->second);
        }
    }
    return rows;
}

bool keepEqualSlice(TensorData &data, std::size_t axis)
{
    Shape &shape = data.type.shape;
    auto run = static_cast<std::size_t>(sizeOf(data.type.dataType)); // bytes of one slice that lie together
    for (std::size_t d = axis + 1; d < shape.size(); ++d)
        run *= static_cast<std::size_t>(shape[d]);
    const std::size_t block = run * static_cast<std::size_t>(shape[axis]);
    if (block == run)
        return false;
    for (std::size_t begin = 0; begin < data.bytes.size(); begin += block) {
        const std::byte *first = data.bytes.data() + begin;
        if (std::memcmp(first, first + run, block - run) != 0)
            return false;
    }
    std::vector<std::byte> slice;
    for (std::size_t begin = 0; begin < data.bytes.size(); begin += block)
        slice.insert(slice.end(), data.bytes.begin() + static_cast<std::ptrdiff_t>(begin),
            data.bytes.begin() + static_cast<std::ptrdiff_t>(begin + run));
    data.bytes = std::move(slice);
    shape[axis] = 1;
    return true;
}

bool isCoarse(const TensorData &data)
{
    if (data.type.dataType != DataType::Float32)
        return true;
    std::size_t fine = 0;
    for (std::size_t at = 0; at < data.bytes.size(); at += sizeof(std::uint32_t)) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, data.bytes.data() + at, sizeof bits);
        fine += (bits & 0xffffU) != 0 ? 1 : 0;
    }
    return fine * 2 * sizeof(std::uint32_t) < data.bytes.size();
}

} // namespace planloom
