#include "sessions/compress.h"

#include <zlib.h>

namespace planloom {

namespace {

/// zlib never makes more than about 1,032 bytes of one: a larger claim is a lie, found before it costs
/// memory.
constexpr std::size_t kMostGrowth = 1100;

const Bytef *data(std::string_view bytes)
{
    return reinterpret_cast<const Bytef *>(bytes.data()); // zlib's byte type
}

} // namespace

Result<std::string> deflated(std::string_view bytes)
{
    uLongf length = compressBound(static_cast<uLong>(bytes.size()));
    std::string result(length, '\0');
    const int status = compress2(reinterpret_cast<Bytef *>(result.data()), &length, data(bytes),
        static_cast<uLong>(bytes.size()), Z_BEST_SPEED);
    if (status != Z_OK)
        return Error{ErrorCode::ResourceLimit, "there is not enough memory to compress the session's data"};
    result.resize(length);
    return result;
}

Result<std::string> inflated(std::string_view bytes, std::size_t size, std::size_t most)
{
    if (size > most) {
        return Error{ErrorCode::ResourceLimit,
            "a compressed entry claims " + std::to_string(size) + " bytes; at most " + std::to_string(most)
                + " are read"};
    }
    if (size > bytes.size() * kMostGrowth + kMostGrowth)
        return Error{ErrorCode::InvalidInput, "a compressed entry claims more bytes than it can hold"};
    std::string result(size, '\0');
    uLongf length = static_cast<uLongf>(size);
    Bytef none = 0;
    Bytef *target = size == 0 ? &none : reinterpret_cast<Bytef *>(result.data());
    if (size == 0)
        length = 1;
    const int status = uncompress(target, &length, data(bytes), static_cast<uLong>(bytes.size()));
    if (status != Z_OK || length != size)
        return Error{ErrorCode::InvalidInput, "a compressed entry is damaged"};
    return result;
}

std::uint32_t checksum(std::string_view bytes)
{
    return static_cast<std::uint32_t>(crc32_z(0, data(bytes), bytes.size()));
}

} // namespace planloom
