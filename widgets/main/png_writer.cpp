#include "widgets/main/png_writer.h"

#include <QtCore/QIODevice>

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace planloom {

namespace {

constexpr std::size_t kBytesPerPixel = 3;
constexpr std::size_t kPacked = 1 << 16; ///< Bytes of a chunk of data.
constexpr int kCompression = 5;
constexpr std::uint8_t kDepth = 8;
constexpr std::uint8_t kTrueColour = 2;
constexpr std::uint8_t kFilterUp = 2;
constexpr std::array<std::uint8_t, 8> kSignature{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

void put(std::uint8_t *at, std::uint32_t number)
{
    for (int byte = 0; byte < 4; ++byte)
        at[byte] = static_cast<std::uint8_t>(number >> (24 - 8 * byte));
}

} // namespace

struct PngWriter::Stream {
    z_stream z{};
};

PngWriter::PngWriter(QIODevice *device, std::uint32_t width, std::uint32_t height)
    : m_device(device)
    , m_width(width)
    , m_height(height)
    , m_stream(std::make_unique<Stream>())
    , m_last(width * kBytesPerPixel)
    , m_filtered(width * kBytesPerPixel + 1)
    , m_packed(kPacked)
{
    m_failed = deflateInit(&m_stream->z, kCompression) != Z_OK
        || m_device->write(reinterpret_cast<const char *>(kSignature.data()), kSignature.size())
            != static_cast<qint64>(kSignature.size());
    m_stream->z.next_out = m_packed.data();
    m_stream->z.avail_out = static_cast<uInt>(kPacked);
    std::array<std::uint8_t, 13> head{};
    put(head.data(), width);
    put(head.data() + 4, height);
    head[8] = kDepth;
    head[9] = kTrueColour;
    m_failed = !writeChunk("IHDR", head.data(), head.size()) || m_failed;
}

PngWriter::~PngWriter()
{
    deflateEnd(&m_stream->z);
}

bool PngWriter::writeChunk(const char *kind, const std::uint8_t *bytes, std::size_t count)
{
    std::array<std::uint8_t, 8> head{};
    put(head.data(), static_cast<std::uint32_t>(count));
    std::memcpy(head.data() + 4, kind, 4);
    uLong sum = crc32(0, head.data() + 4, 4);
    if (count > 0)
        sum = crc32(sum, bytes, static_cast<uInt>(count));
    std::array<std::uint8_t, 4> tail{};
    put(tail.data(), static_cast<std::uint32_t>(sum));
    const auto write = [this](const std::uint8_t *from, std::size_t size) {
        return m_device->write(reinterpret_cast<const char *>(from), static_cast<qint64>(size))
            == static_cast<qint64>(size);
    };
    return write(head.data(), head.size()) && (count == 0 || write(bytes, count))
        && write(tail.data(), tail.size());
}

bool PngWriter::compress(const std::uint8_t *bytes, std::size_t count, bool last)
{
    z_stream &z = m_stream->z;
    z.next_in = const_cast<Bytef *>(bytes); // zlib reads it only
    z.avail_in = static_cast<uInt>(count);
    int state = Z_OK;
    while (z.avail_in > 0 || last) {
        state = deflate(&z, last ? Z_FINISH : Z_NO_FLUSH);
        if (state == Z_STREAM_ERROR)
            return false;
        if (z.avail_out == 0 || (last && state == Z_STREAM_END)) {
            if (!writeChunk("IDAT", m_packed.data(), kPacked - z.avail_out))
                return false;
            z.next_out = m_packed.data();
            z.avail_out = static_cast<uInt>(kPacked);
        }
        if (last && state == Z_STREAM_END)
            break;
    }
    return true;
}

bool PngWriter::writeRow(const std::uint8_t *rgb)
{
    if (m_failed || m_row == m_height)
        return false;
    m_filtered[0] = kFilterUp;
    for (std::size_t i = 0; i < m_last.size(); ++i)
        m_filtered[i + 1] = static_cast<std::uint8_t>(rgb[i] - m_last[i]);
    std::copy(rgb, rgb + m_last.size(), m_last.begin());
    ++m_row;
    m_failed = !compress(m_filtered.data(), m_filtered.size(), false);
    return !m_failed;
}

bool PngWriter::finish()
{
    return !m_failed && m_row == m_height && compress(nullptr, 0, true) && writeChunk("IEND", nullptr, 0);
}

} // namespace planloom
