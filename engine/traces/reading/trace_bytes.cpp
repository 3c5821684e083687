#include "engine/traces/reading/trace_bytes.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace planloom {

namespace {

/// Traces pack to a twentieth or less rarely than that; what unpacks to more than this is made to fill
/// memory.
constexpr std::uint64_t kMostRatio = 200;
constexpr std::uint64_t kFreeBytes = std::uint64_t{16} << 20; ///< That any file may unpack to.
constexpr std::size_t kPackedBlock = std::size_t{256} << 10;

} // namespace

/// zlib's state, and the packed bytes that it has been given.
struct TraceBytes::Unpacking {
    z_stream stream{};
    std::vector<unsigned char> packed = std::vector<unsigned char>(kPackedBlock);
    std::uint64_t unpacked = 0;
    bool isReady = false;
    bool hasEnded = false;

    ~Unpacking()
    {
        if (isReady)
            inflateEnd(&stream);
    }
};

TraceBytes::TraceBytes(std::unique_ptr<const ByteSource> source, std::string where)
    : m_source(std::move(source))
    , m_where(std::move(where))
    , m_end(m_source->size())
{
    std::array<std::byte, 2> head{};
    m_isPacked = m_source->size() >= 2 && m_source->read(0, head) && head[0] == std::byte{0x1f}
        && head[1] == std::byte{0x8b};
    if (m_isPacked) {
        m_unpacking = std::make_unique<Unpacking>();
        m_unpacking->isReady = inflateInit2(&m_unpacking->stream, 15 + 16) == Z_OK; // a gzip header alone
    }
}

TraceBytes::~TraceBytes() = default;

void TraceBytes::seek(std::uint64_t offset, std::uint64_t end)
{
    m_at = std::min(offset, m_source->size());
    m_end = std::clamp(end, m_at, m_source->size());
}

Result<std::size_t> TraceBytes::read(std::span<char> into)
{
    if (m_isPacked)
        return readPacked(into);
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), m_end - m_at));
    TRY_VOID(m_source->read(m_at, std::as_writable_bytes(into.first(count))));
    m_at += count;
    return count;
}

Result<std::size_t> TraceBytes::readPacked(std::span<char> into)
{
    Unpacking &state = *m_unpacking;
    if (!state.isReady)
        return Error{ErrorCode::ResourceLimit, "there is no memory to unpack the file", {}, m_where};
    z_stream &stream = state.stream;
    stream.next_out = reinterpret_cast<unsigned char *>(into.data()); // octets, whatever char's sign is
    stream.avail_out = static_cast<uInt>(std::min<std::size_t>(into.size(), 1U << 30));
    const std::size_t asked = stream.avail_out;
    while (stream.avail_out == asked && !state.hasEnded) {
        if (stream.avail_in == 0) {
            const auto count = static_cast<std::size_t>(
                std::min<std::uint64_t>(state.packed.size(), m_source->size() - m_at));
            if (count == 0)
                return Error{ErrorCode::InvalidInput, "the compressed data end in the middle",
                    "the file is cut off: copy it anew", m_where + "@" + std::to_string(m_at)};
            TRY_VOID(m_source->read(m_at, std::as_writable_bytes(std::span(state.packed).first(count))));
            m_at += count;
            stream.next_in = state.packed.data();
            stream.avail_in = static_cast<uInt>(count);
        }
        const int status = inflate(&stream, Z_NO_FLUSH);
        if (status == Z_STREAM_END) {
            // Files of several members one behind the other are one file.
            state.hasEnded = stream.avail_in == 0 && m_at == m_source->size();
            if (!state.hasEnded && inflateReset(&stream) != Z_OK)
                state.hasEnded = true;
        } else if (status != Z_OK && status != Z_BUF_ERROR) {
            if (stream.avail_out != asked) // what came before is given first; the next call ends up here
                break;
            return Error{ErrorCode::InvalidInput, "the compressed data are damaged",
                "copy the file anew, or unpack it with gzip to see how far it goes",
                m_where + "@" + std::to_string(m_at - stream.avail_in)};
        }
    }
    const std::size_t made = asked - stream.avail_out;
    state.unpacked += made;
    if (state.unpacked > kFreeBytes && state.unpacked / kMostRatio > m_source->size())
        return Error{ErrorCode::ResourceLimit,
            "the file unpacks to more than " + std::to_string(kMostRatio)
                + " times its size, as no trace does",
            "unpack it with gzip if it is to be trusted", m_where};
    return made;
}

} // namespace planloom
