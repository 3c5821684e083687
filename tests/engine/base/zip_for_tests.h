#pragma once

#include "engine/base/zip.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace planloom::testing_support {

/// One file of an archive that a test writes; what is written of it may be untrue.
struct ZipMember {
    std::string name{};
    std::string content{}; ///< As it lies in the archive.
    std::uint32_t method = 0;
    std::uint32_t flags = 0;
    std::int64_t size = -1; ///< Unpacked; -1: that of `content`.
    std::int64_t header = -1; ///< Where the directory says its header is; -1: where it is.
    std::string unpacked{}; ///< Of which the checksum is, where it differs from `content`.
};

/// Writes archives, sound ones and others, with zip64 numbers on request.
inline std::string zipOf(const std::vector<ZipMember> &members, bool zip64 = false)
{
    std::string bytes;
    std::string directory;
    const auto put = [](std::string &to, std::uint64_t value, int width) {
        for (int i = 0; i < width; ++i)
            to += static_cast<char>(value >> (8 * i) & 0xFFU);
    };
    for (const ZipMember &member : members) {
        const std::string &plain = member.unpacked.empty() ? member.content : member.unpacked;
        const auto sum = zipChecksum(std::as_bytes(std::span<const char>(plain.data(), plain.size())));
        const std::uint64_t size = member.size >= 0 ? static_cast<std::uint64_t>(member.size) : plain.size();
        const std::uint64_t at =
            member.header >= 0 ? static_cast<std::uint64_t>(member.header) : bytes.size();
        put(bytes, 0x04034b50, 4);
        put(bytes, 20, 2);
        put(bytes, member.flags, 2);
        put(bytes, member.method, 2);
        put(bytes, 0, 4);
        put(bytes, sum, 4);
        put(bytes, member.content.size(), 4);
        put(bytes, size, 4);
        put(bytes, member.name.size(), 2);
        put(bytes, 0, 2);
        bytes += member.name + member.content;
        put(directory, 0x02014b50, 4);
        put(directory, 20, 2);
        put(directory, 20, 2);
        put(directory, member.flags, 2);
        put(directory, member.method, 2);
        put(directory, 0, 4);
        put(directory, sum, 4);
        put(directory, zip64 ? 0xFFFFFFFF : member.content.size(), 4);
        put(directory, zip64 ? 0xFFFFFFFF : size, 4);
        put(directory, member.name.size(), 2);
        put(directory, zip64 ? 28 : 0, 2);
        put(directory, 0, 2);
        put(directory, 0, 2);
        put(directory, 0, 2);
        put(directory, 0, 4);
        put(directory, zip64 ? 0xFFFFFFFF : at, 4);
        directory += member.name;
        if (zip64) {
            put(directory, 1, 2);
            put(directory, 24, 2);
            put(directory, size, 8);
            put(directory, member.content.size(), 8);
            put(directory, at, 8);
        }
    }
    const std::uint64_t directoryAt = bytes.size();
    bytes += directory;
    if (zip64) {
        const std::uint64_t recordAt = bytes.size();
        put(bytes, 0x06064b50, 4);
        put(bytes, 44, 8);
        put(bytes, 45, 2);
        put(bytes, 45, 2);
        put(bytes, 0, 4);
        put(bytes, 0, 4);
        put(bytes, members.size(), 8);
        put(bytes, members.size(), 8);
        put(bytes, directory.size(), 8);
        put(bytes, directoryAt, 8);
        put(bytes, 0x07064b50, 4);
        put(bytes, 0, 4);
        put(bytes, recordAt, 8);
        put(bytes, 1, 4);
    }
    put(bytes, 0x06054b50, 4);
    put(bytes, 0, 4);
    put(bytes, zip64 ? 0xFFFF : members.size(), 2);
    put(bytes, zip64 ? 0xFFFF : members.size(), 2);
    put(bytes, zip64 ? 0xFFFFFFFF : directory.size(), 4);
    put(bytes, zip64 ? 0xFFFFFFFF : directoryAt, 4);
    put(bytes, 0, 2);
    return bytes;
}

} // namespace planloom::testing_support
