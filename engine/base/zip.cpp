#include "engine/base/zip.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>

#ifdef PLANLOOM_HAVE_ZLIB
#include <zlib.h>
#endif

namespace planloom {

namespace {

// Zip's own numbers: APPNOTE.TXT 6.3, sections 4.3.7, 4.3.12 and 4.3.14 to 4.3.16, 4.5.3.
constexpr std::uint32_t kLocalHeader = 0x04034b50;
constexpr std::uint32_t kCentralHeader = 0x02014b50;
constexpr std::uint32_t kEndRecord = 0x06054b50;
constexpr std::uint32_t kEndRecord64 = 0x06064b50;
constexpr std::uint32_t kEndLocator64 = 0x07064b50;
constexpr std::size_t kLocalSize = 30;
constexpr std::size_t kCentralSize = 46;
constexpr std::size_t kEndSize = 22;
constexpr std::size_t kEndSize64 = 56;
constexpr std::size_t kLocatorSize64 = 20;
constexpr std::size_t kMostComment = 0xFFFF;
constexpr std::uint32_t kOpen16 = 0xFFFF; ///< "See the zip64 record."
constexpr std::uint32_t kOpen32 = 0xFFFFFFFF;
constexpr std::uint32_t kExtra64 = 0x0001;
constexpr std::uint32_t kEncrypted = 1;
constexpr std::uint64_t kDeflateRatio = 1032; ///< No deflated byte makes more.

/// Little-endian numbers at places already known to be inside.
class Numbers
{
public:
    explicit Numbers(const std::vector<std::byte> &bytes)
        : m_bytes(bytes)
    {
    }
    std::size_t size() const { return m_bytes.size(); }
    bool holds(std::size_t at, std::size_t count) const { return at <= size() && count <= size() - at; }
    std::uint32_t u16(std::size_t at) const { return byteAt(at) | byteAt(at + 1) << 8U; }
    std::uint32_t u32(std::size_t at) const { return u16(at) | u16(at + 2) << 16U; }
    std::uint64_t u64(std::size_t at) const
    {
        return u32(at) | static_cast<std::uint64_t>(u32(at + 4)) << 32U;
    }
    std::string text(std::size_t at, std::size_t count) const
    {
        return {reinterpret_cast<const char *>(m_bytes.data()) + at, count}; // any type may alias char
    }

private:
    std::uint32_t byteAt(std::size_t at) const { return std::to_integer<std::uint32_t>(m_bytes[at]); }
    const std::vector<std::byte> &m_bytes;
};

/// Puts the numbers that the directory leaves to an entry's zip64 field into the entry, in the field's order.
/// @return false if the field lacks one
bool takeExtra64(ZipEntry &entry, const Numbers &directory, std::size_t at, std::size_t count)
{
    std::vector<std::uint64_t *> open;
    for (std::uint64_t *number : {&entry.size, &entry.packed, &entry.header}) {
        if (*number == kOpen32)
            open.push_back(number);
    }
    if (open.empty())
        return true;
    const std::size_t end = at + count;
    while (end - at >= 4) {
        const std::size_t length = directory.u16(at + 2);
        if (length > end - at - 4)
            return false;
        if (directory.u16(at) == kExtra64) {
            if (length < 8 * open.size())
                return false;
            for (std::size_t i = 0; i < open.size(); ++i)
                *open[i] = directory.u64(at + 4 + 8 * i);
            return true;
        }
        at += 4 + length;
    }
    return false;
}

/// Where the directory lies, and of how many entries it should be.
struct DirectoryPlace {
    std::uint64_t at = 0;
    std::uint64_t size = 0;
    std::uint64_t count = 0;
};

} // namespace

std::uint32_t zipChecksum(std::span<const std::byte> bytes)
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
    std::uint32_t sum = 0xFFFFFFFFU;
    for (const std::byte byte : bytes)
        sum = table[(sum ^ std::to_integer<std::uint32_t>(byte)) & 0xFFU] ^ (sum >> 8U);
    return ~sum;
}

ZipArchive::ZipArchive(std::unique_ptr<const ByteSource> source, std::string where, std::string advice)
    : m_source(std::move(source))
    , m_where(std::move(where))
    , m_advice(std::move(advice))
{
}

Error ZipArchive::invalid(std::string message, const std::string &entry) const
{
    return {ErrorCode::InvalidInput, std::move(message), m_advice,
        entry.empty() ? m_where : m_where + "/" + entry};
}

Error ZipArchive::notSupported(std::string message, const std::string &entry) const
{
    Error error = invalid(std::move(message), entry);
    error.code = ErrorCode::NotSupported;
    return error;
}

Result<std::vector<std::byte>> ZipArchive::piece(std::uint64_t at, std::uint64_t count) const
{
    if (at > m_source->size() || count > m_source->size() - at)
        return invalid("the archive is cut off: " + std::to_string(count) + " bytes were expected from byte "
            + std::to_string(at) + " on, of " + std::to_string(m_source->size()));
    std::vector<std::byte> bytes(static_cast<std::size_t>(count));
    TRY_VOID(m_source->read(at, bytes));
    return bytes;
}

Result<ZipArchive> ZipArchive::open(
    std::unique_ptr<const ByteSource> source, std::string where, std::string advice)
{
    ZipArchive archive(std::move(source), std::move(where), std::move(advice));
    TRY_VOID(archive.readDirectory());
    return archive;
}

Result<void> ZipArchive::readDirectory()
{
    const std::uint64_t whole = m_source->size();
    if (whole < kEndSize)
        return invalid("expected a zip archive, found too few bytes");
    // The end of the archive: [zip64 record] [its locator] [end record] [comment].
    const std::uint64_t tailAt =
        whole - std::min<std::uint64_t>(whole, kEndSize + kMostComment + kLocatorSize64);
    TRY(const auto tailBytes, piece(tailAt, whole - tailAt));
    const Numbers tail(tailBytes);
    std::size_t end = tail.size() - kEndSize;
    const std::size_t lowest = end > kMostComment ? end - kMostComment : 0;
    while (tail.u32(end) != kEndRecord) {
        if (end == lowest)
            return invalid("expected a zip archive, found no directory at its end");
        --end;
    }
    DirectoryPlace place{tail.u32(end + 16), tail.u32(end + 12), tail.u16(end + 10)};
    if (tail.u16(end + 4) != 0 && tail.u16(end + 4) != kOpen16)
        return notSupported("archives in several volumes cannot be read");
    const bool open = place.at == kOpen32 || place.size == kOpen32 || place.count == kOpen16;
    if (open && end >= kLocatorSize64 && tail.u32(end - kLocatorSize64) == kEndLocator64) {
        TRY(const auto bytes, piece(tail.u64(end - kLocatorSize64 + 8), kEndSize64));
        const Numbers record(bytes);
        if (record.u32(0) != kEndRecord64)
            return invalid("the archive's zip64 record is damaged");
        place = {record.u64(48), record.u64(40), record.u64(32)};
    } else if (tail.u16(end + 8) != tail.u16(end + 10)) {
        return notSupported("archives in several volumes cannot be read");
    }
    if (place.at > whole || place.size > whole - place.at)
        return invalid("the archive's directory is damaged: it should lie at byte " + std::to_string(place.at)
            + " of " + std::to_string(whole));
    if (place.count > place.size / kCentralSize)
        return invalid("entry " + std::to_string(place.size / kCentralSize)
            + " of the directory is cut off: it should have " + std::to_string(place.count));
    TRY(const auto bytes, piece(place.at, place.size));
    const Numbers directory(bytes);
    std::size_t at = 0;
    m_entries.reserve(static_cast<std::size_t>(place.count));
    for (std::uint64_t i = 0; i < place.count; ++i) {
        const std::string entryName = "entry " + std::to_string(i) + " of the directory";
        if (!directory.holds(at, kCentralSize) || directory.u32(at) != kCentralHeader)
            return invalid(entryName + " is damaged");
        const std::size_t nameLength = directory.u16(at + 28);
        const std::size_t extraLength = directory.u16(at + 30);
        const std::size_t rest = nameLength + extraLength + directory.u16(at + 32);
        if (!directory.holds(at + kCentralSize, rest))
            return invalid(entryName + " is cut off");
        ZipEntry entry{directory.text(at + kCentralSize, nameLength), directory.u16(at + 8),
            directory.u16(at + 10), directory.u32(at + 16), directory.u32(at + 20), directory.u32(at + 24),
            directory.u32(at + 42)};
        if (!takeExtra64(entry, directory, at + kCentralSize + nameLength, extraLength))
            return invalid(entryName + " lacks its zip64 numbers");
        m_entries.push_back(std::move(entry));
        at += kCentralSize + rest;
    }
    return {};
}

Result<std::uint64_t> ZipArchive::contentAt(const ZipEntry &entry) const
{
    const std::uint64_t whole = m_source->size();
    if (entry.header > whole || whole - entry.header < kLocalSize)
        return invalid("the member's header is damaged", entry.name);
    TRY(const auto bytes, piece(entry.header, kLocalSize));
    const Numbers header(bytes);
    if (header.u32(0) != kLocalHeader)
        return invalid("the member's header is damaged", entry.name);
    // Of the local header the lengths alone: writers of streams leave sizes and checksum open there.
    const std::uint64_t begin = entry.header + kLocalSize + header.u16(26) + header.u16(28);
    if (begin > whole || entry.packed > whole - begin)
        return invalid("the member is cut off", entry.name);
    if ((entry.flags & kEncrypted) != 0)
        return notSupported("the member is encrypted", entry.name);
    if (entry.isStored() && entry.packed != entry.size)
        return invalid("a stored member has two sizes", entry.name);
    return begin;
}

namespace {

/// @return nothing if the bytes are damaged or make another number of bytes
std::optional<std::vector<std::byte>> inflated(const std::vector<std::byte> &packed, std::size_t size)
{
#ifdef PLANLOOM_HAVE_ZLIB
    std::vector<std::byte> out(size);
    z_stream stream{};
    if (inflateInit2(&stream, -MAX_WBITS) != Z_OK)
        return std::nullopt;
    constexpr std::size_t kStretch = std::numeric_limits<uInt>::max(); // zlib counts in unsigned int
    std::byte none{};
    std::size_t taken = 0;
    std::size_t made = 0;
    int status = Z_OK;
    while (status == Z_OK) {
        const std::size_t in = std::min(packed.size() - taken, kStretch);
        const std::size_t room = std::min(size - made, kStretch);
        // zlib's interface takes what it only reads without const.
        stream.next_in = reinterpret_cast<Bytef *>(const_cast<std::byte *>(packed.data() + taken));
        stream.avail_in = static_cast<uInt>(in);
        stream.next_out = reinterpret_cast<Bytef *>(out.empty() ? &none : out.data() + made);
        stream.avail_out = static_cast<uInt>(room);
        status = inflate(&stream, Z_NO_FLUSH);
        taken += in - stream.avail_in;
        made += room - stream.avail_out;
        if (stream.avail_in == in && stream.avail_out == room)
            break; // no progress
    }
    inflateEnd(&stream);
    if (status != Z_STREAM_END || made != size)
        return std::nullopt;
    return out;
#else
    (void)packed;
    (void)size;
    return std::nullopt;
#endif
}

} // namespace

Result<std::vector<std::byte>> ZipArchive::content(const ZipEntry &entry, std::uint64_t most) const
{
    TRY(const std::uint64_t begin, contentAt(entry));
    if (entry.method != 0 && entry.method != 8)
        return notSupported("compression method " + std::to_string(entry.method) + " is unknown", entry.name);
    if (entry.size / kDeflateRatio > entry.packed)
        return invalid("the member claims more bytes than it can hold", entry.name);
    if (entry.size > most)
        return Error{ErrorCode::ResourceLimit,
            "the member takes " + std::to_string(entry.size) + " bytes, more than the " + std::to_string(most)
                + " that are allowed",
            m_advice, m_where + "/" + entry.name};
    TRY(auto bytes, piece(begin, entry.packed));
    if (!entry.isStored()) {
#ifndef PLANLOOM_HAVE_ZLIB
        return notSupported("this build has no zlib to unpack compressed members", entry.name);
#endif
        auto unpacked = inflated(bytes, static_cast<std::size_t>(entry.size));
        if (!unpacked)
            return invalid("the deflated data is damaged", entry.name);
        bytes = *std::move(unpacked);
    }
    if (zipChecksum(bytes) != entry.checksum)
        return invalid("the checksum does not match", entry.name);
    return bytes;
}

Result<void> ZipArchive::checkOverlaps() const
{
    std::vector<const ZipEntry *> order;
    for (const ZipEntry &entry : m_entries)
        order.push_back(&entry);
    std::sort(order.begin(), order.end(),
        [](const ZipEntry *a, const ZipEntry *b) { return a->header < b->header; });
    std::uint64_t free = 0;
    for (const ZipEntry *entry : order) {
        TRY(const std::uint64_t begin, contentAt(*entry));
        if (entry->header < free)
            return invalid("the member shares bytes with another one", entry->name);
        free = begin + entry->packed;
    }
    return {};
}

namespace {

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

Result<std::vector<std::byte>> formatZip(const std::vector<ZipContent> &files)
{
    std::vector<std::byte> bytes;
    std::vector<std::byte> directory;
    constexpr std::size_t kLimit = 0xFFFFFFFE;
    if (files.size() >= kOpen16)
        return Error{ErrorCode::NotSupported, "an archive holds at most 65,534 files", {}, {}};
    for (const ZipContent &file : files) {
        if (file.name.size() > 0xFFFF
            || file.bytes.size() > kLimit - std::min(kLimit, bytes.size() + 1024 + file.name.size()))
            return Error{ErrorCode::NotSupported, "an archive holds less than 4 GiB", {}, file.name};
        const auto at = static_cast<std::uint32_t>(bytes.size());
        const std::uint32_t sum = zipChecksum(file.bytes);
        const auto size = static_cast<std::uint32_t>(file.bytes.size());
        const auto nameLength = static_cast<std::uint32_t>(file.name.size());
        append32(bytes, kLocalHeader);
        appendFields(bytes, sum, size, nameLength);
        appendText(bytes, file.name);
        bytes.insert(bytes.end(), file.bytes.begin(), file.bytes.end());
        append32(directory, kCentralHeader);
        append16(directory, 20);
        appendFields(directory, sum, size, nameLength);
        append16(directory, 0); // comment
        append16(directory, 0); // volume
        append16(directory, 0);
        append32(directory, 0);
        append32(directory, at);
        appendText(directory, file.name);
    }
    if (directory.size() + kEndSize > kLimit - bytes.size())
        return Error{ErrorCode::NotSupported, "an archive holds less than 4 GiB", {}, {}};
    const auto directoryAt = static_cast<std::uint32_t>(bytes.size());
    bytes.insert(bytes.end(), directory.begin(), directory.end());
    const auto count = static_cast<std::uint32_t>(files.size());
    append32(bytes, kEndRecord);
    append32(bytes, 0);
    append16(bytes, count);
    append16(bytes, count);
    append32(bytes, static_cast<std::uint32_t>(directory.size()));
    append32(bytes, directoryAt);
    append16(bytes, 0);
    return bytes;
}

} // namespace planloom
