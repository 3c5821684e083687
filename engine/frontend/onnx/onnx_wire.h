#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace planloom {

/// What a walk over an ONNX file's bytes found, before anything is allocated for them.
struct OnnxWireScan {
    std::size_t records =
        0; ///< Messages, strings and packed arrays at all levels: what costs memory once decoded.
    std::string problem{}; ///< Why the bytes are no ONNX model; empty if they may be one.
    std::size_t position = 0; ///< In bytes: where the problem is.
};

/// Follows the protobuf wire format through the messages of onnx.proto without decoding values. Finds
/// truncation and its place, and lets a reader refuse a file of millions of empty messages. O(bytes), no
/// allocation.
OnnxWireScan scanOnnxWire(std::string_view bytes);

} // namespace planloom
