#pragma once

#include "engine/base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace planloom {

/// `bytes` deflated (zlib's format). @return ResourceLimit if zlib has no memory
Result<std::string> deflated(std::string_view bytes);

/// Inverse of `deflated`.
/// @param size  the original's length; must be right
/// @param most  a longer original is refused before anything is allocated
/// @return InvalidInput if the bytes are not what `deflated` made of `size` bytes, ResourceLimit above `most`
Result<std::string> inflated(std::string_view bytes, std::size_t size, std::size_t most);

/// CRC-32 of `bytes`, by which damage is noticed.
std::uint32_t checksum(std::string_view bytes);

} // namespace planloom
