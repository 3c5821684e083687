#pragma once

#include <string>
#include <string_view>

namespace planloom {

/// SHA-256 (FIPS 180-4) of `bytes` as 64 hexadecimal digits: how a session knows its model again. O(bytes).
std::string sha256(std::string_view bytes);

} // namespace planloom
