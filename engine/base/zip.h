#pragma once

#include "engine/base/byte_source.h"
#include "engine/base/result.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace planloom {

/// One file of a zip archive, as the archive's directory describes it.
struct ZipEntry {
    std::string name{};
    std::uint32_t flags = 0;
    std::uint32_t method = 0; ///< 0: stored; 8: deflated.
    std::uint32_t checksum = 0; ///< CRC-32 of the unpacked content.
    std::uint64_t packed = 0; ///< Bytes in the archive.
    std::uint64_t size = 0; ///< Bytes once unpacked.
    std::uint64_t header = 0; ///< Where its local header begins; the content follows.

    bool isStored() const { return method == 0; }
    friend bool operator==(const ZipEntry &, const ZipEntry &) = default;
};

/// A zip archive (APPNOTE.TXT 6.3, zip64 included), read piece by piece.
///
/// Safe for any bytes: the directory takes a small multiple of the archive's size, the content of an entry no
/// more than the caller allows, and never more than deflate can make of its packed bytes. Thread-safe as far
/// as its source is.
class ZipArchive
{
public:
    /// Reads the directory.
    /// @param where   named in errors: the archive's path
    /// @param advice  how a sound archive is made: "write it with numpy.savez"
    /// @return InvalidInput if it is no zip archive or its directory is damaged; NotSupported for several
    /// volumes. O(directory)
    static Result<ZipArchive> open(
        std::unique_ptr<const ByteSource> source, std::string where, std::string advice);

    const std::vector<ZipEntry> &entries() const { return m_entries; }
    const ByteSource &source() const { return *m_source; }

    /// Where in the archive the packed bytes of an entry begin; all of them lie inside.
    /// @return InvalidInput if its header is damaged or it is cut off; NotSupported if it is encrypted
    Result<std::uint64_t> contentAt(const ZipEntry &entry) const;

    /// The unpacked content, its checksum verified.
    /// @param most  bytes it may take
    /// @return as `contentAt`; InvalidInput for damaged content; ResourceLimit beyond `most`; NotSupported
    /// for other compressions, or deflated ones where Planloom was built without zlib
    Result<std::vector<std::byte>> content(const ZipEntry &entry, std::uint64_t most) const;

    /// @return InvalidInput if two entries share bytes, which a bomb needs and no writer does
    Result<void> checkOverlaps() const;

private:
    ZipArchive(std::unique_ptr<const ByteSource> source, std::string where, std::string advice);
    Error invalid(std::string message, const std::string &entry = {}) const;
    Error notSupported(std::string message, const std::string &entry = {}) const;
    Result<std::vector<std::byte>> piece(std::uint64_t at, std::uint64_t count) const;
    Result<void> readDirectory();

    std::unique_ptr<const ByteSource> m_source;
    std::string m_where;
    std::string m_advice;
    std::vector<ZipEntry> m_entries{};
};

/// A file to be stored in an archive.
struct ZipContent {
    std::string name{};
    std::span<const std::byte> bytes{};
};

/// An archive of these files, stored as they are. Equal files give equal archives: they have no dates.
/// @return NotSupported from 4 GiB or 65,535 files on (which need zip64)
Result<std::vector<std::byte>> formatZip(const std::vector<ZipContent> &files);

/// CRC-32 as zip archives have it (ISO 3309), of `bytes`.
std::uint32_t zipChecksum(std::span<const std::byte> bytes);

} // namespace planloom
