#pragma once

#include "engine/base/result.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>

namespace planloom {

/// Bytes of which a reader takes the pieces that it needs: a file of any size, or memory.
class ByteSource
{
public:
    virtual ~ByteSource() = default;
    virtual std::uint64_t size() const = 0;
    /// Fills `bytes` from `offset` on. @return InvalidInput beyond the end; Io
    virtual Result<void> read(std::uint64_t offset, std::span<std::byte> bytes) const = 0;
};

/// Memory that outlives the source.
std::unique_ptr<const ByteSource> sourceOf(std::span<const std::byte> bytes);
std::unique_ptr<const ByteSource> sourceOf(std::string_view bytes);

/// A regular file, kept open. @return NotFound; InvalidInput for anything else, such as a folder; Io
Result<std::unique_ptr<const ByteSource>> openByteSource(const std::filesystem::path &path);

} // namespace planloom
