#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

class QIODevice;

namespace planloom {

/// Writes a PNG row by row (8 bits of red, green and blue each), so that pictures of any size need the memory
/// of a few rows.
class PngWriter
{
public:
    /// Writes the head. @param device  open, outlives this
    PngWriter(QIODevice *device, std::uint32_t width, std::uint32_t height);
    ~PngWriter();
    PngWriter(const PngWriter &) = delete;
    PngWriter &operator=(const PngWriter &) = delete;

    /// The next row: 3 bytes a pixel. @return false if the device takes no more
    bool writeRow(const std::uint8_t *rgb);
    /// After the last row. @return false if rows are missing, or the device took not all
    bool finish();

private:
    struct Stream;
    bool compress(const std::uint8_t *bytes, std::size_t count, bool last);
    bool writeChunk(const char *kind, const std::uint8_t *bytes, std::size_t count);

    QIODevice *m_device;
    std::uint32_t m_width;
    std::uint32_t m_height;
    std::uint32_t m_row = 0;
    bool m_failed = false;
    std::unique_ptr<Stream> m_stream;
    std::vector<std::uint8_t> m_last; ///< The row before: most rows differ from it in little.
    std::vector<std::uint8_t> m_filtered;
    std::vector<std::uint8_t> m_packed;
};

} // namespace planloom
