#include "engine/interop/npz.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <system_error>

#ifdef PLANLOOM_HAVE_ZLIB
#include <zlib.h>
#endif

namespace planloom {

namespace {

// Zip's own numbers: APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12, 4.3.16.
constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kCentralHeader = 0x02014b50;
constexpr std::uint32_t kEndRecord = 0x06054b50;
constexpr std::size_t kLocalSize = 30;
constexpr std::size_t kCentralSize = 46;
constexpr std::size_t kEndSize = 22;
constexpr std::uint32_t kZip64Marker = 0xFFFFFFFF;
constexpr std::size_t kLeastLimit = std::size_t{256} << 20U;

Error invalidArchive(std::string_view where, std::string message)
{
    return {ErrorCode::InvalidInput, std::move(message), "write it with numpy.savez", std::string{where}};
}

Error notSupported(std::string_view where, std::string message)
{
    return {ErrorCode::NotSupported, std::move(message), "write it with numpy.savez", std::string{where}};
}

std::uint32_t crcOf(std::span<const std::byte> bytes)
{
    static const auto table = [] {
        std::array<std::uint32_t, 256> made{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            std::uint32_t value = i;
            for (int bit = 0; bit < 8; ++bit)
                value = (value & 1U) != 0 ? 0xEDB88320U ^ (value >> 1U) : value >> 1U;
            made[i] = value;
        }
        return made;
    }();
    std::uint32_t crc = 0xFFFFFFFFU;
    for (const std::byte byte : bytes)
        crc = table[(crc ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU] ^ (crc >> 8U);
    return ~crc;
}

/// Little-endian numbers at places already known to be inside.
class Archive
{
public:
    explicit Archive(std::span<const std::byte> bytes)
        : m_bytes(bytes)
    {
    }
    std::size_t size() const { return m_bytes.size(); }
    bool holds(std::size_t at, std::size_t length) const { return at <= size() && length <= size() - at; }
    std::uint32_t u16(std::size_t at) const { return byteAt(at) | byteAt(at + 1) << 8U; }
    std::uint32_t u32(std::size_t at) const { return u16(at) | u16(at + 2) << 16U; }
    std::span<const std::byte> part(std::size_t at, std::size_t length) const
    {
        return m_bytes.subspan(at, length);
    }
    std::string text(std::size_t at, std::size_t length) const
    {
        return {reinterpret_cast<const char *>(m_bytes.data()) + at, length};
    }

private:
    std::uint32_t byteAt(std::size_t at) const { return std::to_integer<std::uint32_t>(m_bytes[at]); }
    std::span<const std::byte> m_bytes;
};

Result<std::vector<std::byte>> inflated(
    std::span<const std::byte> bytes, std::size_t size, std::string_view where)
{
#ifdef PLANLOOM_HAVE_ZLIB
    if (size / 1032 > bytes.size()) // deflate's highest ratio
        return invalidArchive(where, "the member claims more bytes than it can hold");
    std::vector<std::byte> out(size);
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return Error{ErrorCode::ResourceLimit, "no memory for unpacking", {}, std::string{where}};
    std::byte none{};
    stream.next_in =
        reinterpret_cast<Bytef *>(const_cast<std::byte *>(bytes.data())); // zlib's interface, not written
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef *>(out.empty() ? &none : out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    const int status = inflate(&stream, Z_FINISH);
    const bool complete = status == Z_STREAM_END && stream.total_out == size;
    inflateEnd(&stream);
    if (!complete)
        return invalidArchive(where, "the deflated data is damaged");
    return out;
#else
    (void)bytes;
    (void)size;
    return notSupported(where, "this build has no zlib to unpack compressed members");
#endif
}

struct Member {
    std::string name{};
    std::uint32_t flags = 0;
    std::uint32_t method = 0;
    std::uint32_t crc = 0;
    std::size_t packed = 0;
    std::size_t size = 0;
    std::size_t localAt = 0;
};

Result<std::vector<Member>> membersOf(const Archive &zip, std::string_view where)
{
    if (zip.size() < kEndSize)
        return invalidArchive(where, "expected a zip archive, found too few bytes");
    std::size_t end = zip.size() - kEndSize;
    const std::size_t lowest = end > 0xFFFF ? end - 0xFFFF : 0; // a comment may follow the record
    while (zip.u32(end) != kEndRecord) {
        if (end == lowest)
            return invalidArchive(where, "expected a zip archive, found no directory at its end");
        --end;
    }
    const std::size_t count = zip.u16(end + 10);
    const std::size_t directory = zip.u32(end + 16);
    if (count == 0xFFFF || directory == kZip64Marker)
        return notSupported(where, "archives in zip64 format cannot be read");
    if (zip.u16(end + 4) != 0 || zip.u16(end + 6) != 0 || zip.u16(end + 8) != count)
        return notSupported(where, "archives in several volumes cannot be read");
    std::vector<Member> members;
    std::size_t at = directory;
    for (std::size_t i = 0; i < count; ++i) {
        if (!zip.holds(at, kCentralSize) || zip.u32(at) != kCentralHeader)
            return invalidArchive(where, "entry " + std::to_string(i) + " of the directory is damaged");
        const std::size_t nameLength = zip.u16(at + 28);
        const std::size_t rest = nameLength + zip.u16(at + 30) + zip.u16(at + 32);
        if (!zip.holds(at + kCentralSize, rest))
            return invalidArchive(where, "entry " + std::to_string(i) + " of the directory is cut off");
        Member member{zip.text(at + kCentralSize, nameLength), zip.u16(at + 8), zip.u16(at + 10),
            zip.u32(at + 16), zip.u32(at + 20), zip.u32(at + 24), zip.u32(at + 42)};
        if (member.packed == kZip64Marker || member.size == kZip64Marker || member.localAt == kZip64Marker)
            return notSupported(where, "member " + member.name + " needs zip64, which cannot be read");
        members.push_back(std::move(member));
        at += kCentralSize + rest;
    }
    return members;
}

Result<std::vector<std::byte>> contentOf(const Archive &zip, const Member &member, std::string_view where)
{
    // Sizes and checksum are the directory's: writers of streams (numpy among them) leave the local ones
    // open.
    if (!zip.holds(member.localAt, kLocalSize) || zip.u32(member.localAt) != kLocalHeader)
        return invalidArchive(where, "the member's header is damaged");
    if ((member.flags & 1U) != 0)
        return notSupported(where, "the member is encrypted");
    const std::size_t begin =
        member.localAt + kLocalSize + zip.u16(member.localAt + 26) + zip.u16(member.localAt + 28);
    if (!zip.holds(begin, member.packed))
        return invalidArchive(where, "the member is cut off");
    const auto packed = zip.part(begin, member.packed);
    std::vector<std::byte> content;
    if (member.method == 0) {
        if (member.packed != member.size)
            return invalidArchive(where, "a stored member has two sizes");
        content.assign(packed.begin(), packed.end());
    } else if (member.method == 8) {
        TRY(content, inflated(packed, member.size, where));
    } else {
        return notSupported(where, "compression method " + std::to_string(member.method) + " is unknown");
    }
    if (crcOf(content) != member.crc)
        return invalidArchive(where, "the checksum does not match");
    return content;
}

void append16(std::vector<std::byte> &bytes, std::uint32_t value)
{
    bytes.push_back(static_cast<std::byte>(value & 0xFFU));
    bytes.push_back(static_cast<std::byte>(value >> 8U & 0xFFU));
}

void append32(std::vector<std::byte> &bytes, std::uint32_t value)
{
    append16(bytes, value & 0xFFFFU);
    append16(bytes, value >> 16U);
}

void appendText(std::vector<std::byte> &bytes, const std::string &text)
{
    for (const char c : text)
        bytes.push_back(static_cast<std::byte>(c));
}

/// What local and central headers have in common, from "version needed" to the lengths of name and extra
/// field.
void appendFields(
    std::vector<std::byte> &bytes, std::uint32_t crc, std::uint32_t size, std::uint32_t nameLength)
{
    append16(bytes, 20);
    append16(bytes, 0x800); // names are UTF-8
    append16(bytes, 0);
    append32(bytes, 0x00210000); // 1 January 1980: equal arrays give equal files
    append32(bytes, crc);
    append32(bytes, size);
    append32(bytes, size);
    append16(bytes, nameLength);
    append16(bytes, 0);
}

} // namespace

Result<NamedArrays> parseNpz(std::span<const std::byte> bytes, std::string_view where)
{
    const Archive zip{bytes};
    TRY(const auto members, membersOf(zip, where));
    const std::size_t limit = std::max(kLeastLimit, bytes.size() * 20);
    std::size_t total = 0;
    NamedArrays arrays;
    for (const Member &member : members) {
        constexpr std::string_view kSuffix = ".npy";
        if (!member.name.ends_with(kSuffix))
            continue;
        const std::string place = std::string{where} + "/" + member.name;
        total += member.size;
        if (total > limit)
            return Error{ErrorCode::ResourceLimit,
                "the members unpack to more than " + std::to_string(limit >> 20U) + " MiB",
                "split the archive, or store it uncompressed", place};
        TRY(const auto content, contentOf(zip, member, place));
        TRY(auto array, parseNpy(content, place));
        const std::string name = member.name.substr(0, member.name.size() - kSuffix.size());
        if (!arrays.emplace(name, std::move(array)).second)
            return invalidArchive(place, "two members have this name");
    }
    return arrays;
}

Result<NamedArrays> readNpz(const std::string &path)
{
    TRY(const auto bytes, readBytes(path));
    return parseNpz(bytes, path);
}

Result<std::vector<std::byte>> formatNpz(const NamedArrays &arrays)
{
    std::vector<std::byte> bytes;
    std::vector<std::byte> directory;
    constexpr std::size_t kLimit = 0xFFFFFFFE;
    if (arrays.size() >= 0xFFFF)
        return Error{ErrorCode::NotSupported, "an archive holds at most 65,534 arrays", {}, {}};
    for (const auto &[name, array] : arrays) {
        const std::string file = name + ".npy";
        const std::vector<std::byte> content = formatNpy(array);
        if (file.size() > 0xFFFF
            || content.size() > kLimit - std::min(kLimit, bytes.size() + 1024 + file.size()))
            return Error{
                ErrorCode::NotSupported, "an .npz archive holds less than 4 GiB", "write a folder", name};
        const auto at = static_cast<std::uint32_t>(bytes.size());
        const std::uint32_t crc = crcOf(content);
        const auto size = static_cast<std::uint32_t>(content.size());
        const auto nameLength = static_cast<std::uint32_t>(file.size());
        append32(bytes, kLocalHeader);
        appendFields(bytes, crc, size, nameLength);
        appendText(bytes, file);
        bytes.insert(bytes.end(), content.begin(), content.end());
        append32(directory, kCentralHeader);
        append16(directory, 20);
        appendFields(directory, crc, size, nameLength);
        append16(directory, 0); // comment
        append16(directory, 0); // volume
        append16(directory, 0);
        append32(directory, 0);
        append32(directory, at);
        appendText(directory, file);
    }
    if (directory.size() + kEndSize > kLimit - bytes.size())
        return Error{ErrorCode::NotSupported, "an .npz archive holds less than 4 GiB", "write a folder", {}};
    const auto directoryAt = static_cast<std::uint32_t>(bytes.size());
    bytes.insert(bytes.end(), directory.begin(), directory.end());
    const auto count = static_cast<std::uint32_t>(arrays.size());
    append32(bytes, kEndRecord);
    append32(bytes, 0);
    append16(bytes, count);
    append16(bytes, count);
    append32(bytes, static_cast<std::uint32_t>(directory.size()));
    append32(bytes, directoryAt);
    append16(bytes, 0);
    return bytes;
}

Result<void> writeNpz(const std::string &path, const NamedArrays &arrays)
{
    TRY(const auto bytes, formatNpz(arrays));
    return writeBytes(path, bytes);
}

Result<NamedArrays> readInputs(const std::string &path)
{
    std::error_code failure;
    NamedArrays inputs;
    if (std::filesystem::is_directory(path, failure)) {
        std::filesystem::recursive_directory_iterator entry{path, failure};
        for (const std::filesystem::recursive_directory_iterator end; !failure && entry != end;
             entry.increment(failure)) {
            if (entry->path().extension() != ".npy" || !entry->is_regular_file(failure))
                continue;
            TRY(auto array, readNpy(entry->path().string()));
            std::string name = entry->path().lexically_relative(path).generic_string();
            name.resize(name.size() - 4);
            inputs.emplace(std::move(name), std::move(array));
        }
        if (failure)
            return Error{ErrorCode::Io, "cannot list " + path + ": " + failure.message(), {}, path};
    } else {
        TRY(auto members, readNpz(path));
        constexpr std::string_view kPrefix = "in.";
        const bool prefixed = std::any_of(members.begin(), members.end(),
            [&](const auto &member) { return member.first.starts_with(kPrefix); });
        for (auto &[name, array] : members) {
            if (!prefixed)
                inputs.emplace(name, std::move(array));
            else if (name.starts_with(kPrefix))
                inputs.emplace(name.substr(kPrefix.size()), std::move(array));
        }
    }
    if (inputs.empty())
        return Error{ErrorCode::InvalidInput, "there are no arrays in " + path,
            "give an .npz with in.<name> members, or a folder of <name>.npy", path};
    return inputs;
}

} // namespace planloom
