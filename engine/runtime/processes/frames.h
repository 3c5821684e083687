#pragma once

#include "engine/base/result.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace planloom {

/// Longest text of one frame, in bytes.
constexpr std::size_t kLargestFrame = std::size_t{64} << 20U;

/// Sends one frame: four bytes of length, little-endian, and the text. Blocks until it is written.
/// @param socket  a connected stream socket
/// @return Io if the other end is gone
Result<void> writeFrame(int socket, std::string_view text);

/// Puts frames together from what arrives on a stream.
class FrameReader
{
public:
    /// Takes bytes as they come.
    void feed(std::string_view bytes) { m_bytes.append(bytes); }

    /// The next complete frame, if there is one.
    /// @return InvalidInput if the stream is damaged: its length exceeds `kLargestFrame`
    Result<std::optional<std::string>> next();

private:
    std::string m_bytes;
    std::size_t m_begin = 0;
};

} // namespace planloom
