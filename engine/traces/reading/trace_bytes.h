#pragma once

#include "engine/base/byte_source.h"
#include "engine/base/result.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace planloom {

/// The bytes of a file one after the other, unpacked where they are gzip's (RFC 1952).
///
/// Safe for any bytes: memory does not depend on the file, and what a packed file unpacks to is bounded by a
/// multiple of its size that no trace reaches. Not thread-safe.
class TraceBytes
{
public:
    /// @param where  named in errors
    TraceBytes(std::unique_ptr<const ByteSource> source, std::string where);
    ~TraceBytes();
    TraceBytes(const TraceBytes &) = delete;
    TraceBytes &operator=(const TraceBytes &) = delete;

    bool isPacked() const { return m_isPacked; }
    std::uint64_t size() const { return m_source->size(); } ///< Of the file.
    /// Of what is not packed: goes on at `offset`, up to `end`.
    void seek(std::uint64_t offset, std::uint64_t end);

    /// Fills the front of `into`. @return how many bytes; 0 at the end. InvalidInput where packed bytes are
    /// damaged or cut off (those before are given first), ResourceLimit where they unpack to too much; Io
    Result<std::size_t> read(std::span<char> into);

private:
    struct Unpacking;

    Result<std::size_t> readPacked(std::span<char> into);

    std::unique_ptr<const ByteSource> m_source;
    std::string m_where;
    bool m_isPacked = false;
    std::uint64_t m_at = 0; ///< Of the file.
    std::uint64_t m_end = 0;
    std::unique_ptr<Unpacking> m_unpacking;
};

} // namespace planloom
