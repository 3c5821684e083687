#include "engine/interop/npy.h"

#include "engine/base/files.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

namespace planloom {

namespace {

constexpr std::string_view kMagic{"\x93NUMPY", 6};

struct TypeName {
    DataType type;
    std::string_view name;
};

// Byte order, kind and size as NumPy spells them; one-byte types have no byte order.
constexpr std::array<TypeName, 10> kTypeNames{{{DataType::Float32, "<f4"}, {DataType::Float16, "<f2"},
    {DataType::BFloat16, "|V2"}, {DataType::Float64, "<f8"}, {DataType::Int64, "<i8"},
    {DataType::Int32, "<i4"}, {DataType::Int16, "<i2"}, {DataType::Int8, "|i1"}, {DataType::UInt8, "|u1"},
    {DataType::Bool, "|b1"}}};

std::optional<DataType> dataTypeNamed(std::string_view text)
{
    if (text.empty())
        return std::nullopt;
    for (const TypeName &known : kTypeNames) {
        if (known.name.substr(1) != text.substr(1))
            continue;
        const bool oneByte = sizeOf(known.type) == 1;
        const bool order = text[0] == '<' || text[0] == '=' || text[0] == '|';
        if (order || (oneByte && text[0] == '>'))
            return known.type;
    }
    return std::nullopt;
}

Error invalidArray(std::string_view where, std::string message)
{
    return {ErrorCode::InvalidInput, std::move(message), "write it with numpy.save", std::string{where}};
}

struct Header {
    std::string descr{};
    bool fortran = false;
    Shape shape{};
};

/// Reads the Python dictionary literal of a header.
class HeaderReader
{
public:
    explicit HeaderReader(std::string_view text)
        : m_text(text)
    {
    }

    std::optional<Header> read()
    {
        Header header;
        bool haveDescr = false;
        bool haveOrder = false;
        bool haveShape = false;
        if (!take('{'))
            return std::nullopt;
        while (!take('}')) {
            std::string key;
            if (!text(key) || !take(':'))
                return std::nullopt;
            if (key == "descr" && !haveDescr)
                haveDescr = text(header.descr);
            else if (key == "fortran_order" && !haveOrder)
                haveOrder = boolean(header.fortran);
            else if (key == "shape" && !haveShape)
                haveShape = shape(header.shape);
            else
                return std::nullopt;
            if (!take(',') && !peek('}'))
                return std::nullopt;
            if ((key == "descr" && !haveDescr) || (key == "fortran_order" && !haveOrder)
                || (key == "shape" && !haveShape))
                return std::nullopt;
        }
        skip();
        if (!haveDescr || !haveOrder || !haveShape || m_at != m_text.size())
            return std::nullopt;
        return header;
    }

private:
    void skip()
    {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\n' || m_text[m_at] == '\t'))
            ++m_at;
    }

    bool peek(char c)
    {
        skip();
        return m_at < m_text.size() && m_text[m_at] == c;
    }

    bool take(char c)
    {
        if (!peek(c))
            return false;
        ++m_at;
        return true;
    }

    bool text(std::string &out)
    {
        skip();
        if (m_at >= m_text.size() || (m_text[m_at] != '\'' && m_text[m_at] != '"'))
            return false;
        const std::size_t end = m_text.find(m_text[m_at], m_at + 1);
        if (end == std::string_view::npos)
            return false;
        out = std::string{m_text.substr(m_at + 1, end - m_at - 1)};
        m_at = end + 1;
        return true;
    }

    bool word(std::string_view expected)
    {
        skip();
        if (m_text.substr(m_at, expected.size()) != expected)
            return false;
        m_at += expected.size();
        return true;
    }

    bool boolean(bool &out)
    {
        out = word("True");
        return out || word("False");
    }

    bool shape(Shape &out)
    {
        if (!take('('))
            return false;
        while (!take(')')) {
            skip();
            std::int64_t value = 0;
            std::size_t digits = 0;
            while (m_at < m_text.size() && m_text[m_at] >= '0' && m_text[m_at] <= '9' && digits < 18) {
                value = value * 10 + (m_text[m_at] - '0');
                ++m_at;
                ++digits;
            }
            if (digits == 0 || out.size() >= 64)
                return false;
            out.push_back(value);
            (void)take('L'); // Python 2 wrote long integers so
            if (!take(',') && !peek(')'))
                return false;
        }
        return true;
    }

    std::string_view m_text;
    std::size_t m_at = 0;
};

/// Elements x size, or nothing if that exceeds `limit`, or extents overflow when multiplied in whatever
/// order.
std::optional<std::size_t> byteCount(const Shape &shape, DataType type, std::size_t limit)
{
    std::int64_t product = sizeOf(type); // of extents other than zero
    bool empty = false;
    for (const std::int64_t extent : shape) {
        empty = empty || extent == 0;
        if (extent != 0 && __builtin_mul_overflow(product, extent, &product))
            return std::nullopt;
    }
    if (empty)
        return 0;
    const auto bytes = static_cast<std::size_t>(product);
    if (bytes > limit)
        return std::nullopt;
    return bytes;
}

/// Column-major to row-major.
std::vector<std::byte> transposed(
    std::span<const std::byte> from, const Shape &shape, std::size_t elementSize)
{
    std::vector<std::byte> to(from.size());
    const std::size_t rank = shape.size();
    std::vector<std::size_t> stride(rank, 1);
    for (std::size_t d = 1; d < rank; ++d)
        stride[d] = stride[d - 1] * static_cast<std::size_t>(shape[d - 1]);
    std::vector<std::int64_t> index(rank, 0);
    std::size_t source = 0;
    for (std::size_t i = 0; i < to.size(); i += elementSize) {
        std::memcpy(to.data() + i, from.data() + source * elementSize, elementSize);
        for (std::size_t d = rank; d-- > 0;) {
            source += stride[d];
            if (++index[d] < shape[d])
                break;
            source -= stride[d] * static_cast<std::size_t>(shape[d]);
            index[d] = 0;
        }
    }
    return to;
}

} // namespace

Result<NpyHead> parseNpyHead(std::span<const std::byte> bytes, std::uint64_t size, std::string_view where)
{
    const auto byteAt = [&](std::size_t i) { return std::to_integer<std::size_t>(bytes[i]); };
    if (bytes.size() < 10 || std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
        return invalidArray(where, "expected a NumPy array, found no \\x93NUMPY at its beginning");
    const std::size_t version = byteAt(6);
    if (version < 1 || version > 3)
        return Error{ErrorCode::NotSupported,
            "version " + std::to_string(version) + " of the .npy format is unknown",
            "versions 1 to 3 are read", std::string{where}};
    const std::size_t start = version == 1 ? 10 : 12;
    if (bytes.size() < start)
        return invalidArray(where, "the header is cut off");
    std::size_t length = byteAt(8) | byteAt(9) << 8U;
    if (version > 1)
        length |= byteAt(10) << 16U | byteAt(11) << 24U;
    if (length > bytes.size() - start)
        return invalidArray(where, "the header is cut off");
    const std::string_view text{reinterpret_cast<const char *>(bytes.data()) + start, length};
    const auto header = HeaderReader{text}.read();
    if (!header)
        return invalidArray(where, "the header is not a dictionary of descr, fortran_order and shape");
    const auto type = dataTypeNamed(header->descr);
    if (!type)
        return Error{ErrorCode::NotSupported, "elements of type \"" + header->descr + "\" cannot be read",
            "convert to a little-endian float, integer or bool type of at most 8 bytes", std::string{where}};
    const std::uint64_t content = size - start - length;
    const auto expected = byteCount(header->shape, *type, content);
    if (!expected || *expected != content)
        return invalidArray(where,
            "an array of shape " + toString(header->shape) + " of " + nameOf(*type) + " does not take the "
                + std::to_string(content) + " bytes that follow its header");
    return NpyHead{{*type, header->shape}, header->fortran && header->shape.size() > 1, start + length};
}

Result<TensorData> parseNpy(std::span<const std::byte> bytes, std::string_view where)
{
    TRY(const auto head, parseNpyHead(bytes, bytes.size(), where));
    const std::span<const std::byte> content = bytes.subspan(static_cast<std::size_t>(head.begin));
    TensorData array{head.type, {}};
    if (head.isColumnMajor)
        array.bytes =
            transposed(content, head.type.shape, static_cast<std::size_t>(sizeOf(head.type.dataType)));
    else
        array.bytes.assign(content.begin(), content.end());
    return array;
}

std::vector<std::byte> formatNpy(const TensorData &array)
{
    std::string descr;
    for (const TypeName &known : kTypeNames)
        if (known.type == array.type.dataType)
            descr = known.name;
    std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
    for (const std::int64_t extent : array.type.shape)
        header += std::to_string(extent) + ",";
    header += "), }";
    const std::size_t unpadded = kMagic.size() + 4 + header.size() + 1;
    header.append((64 - unpadded % 64) % 64, ' ');
    header += '\n';
    std::string text{kMagic};
    text += '\x01';
    text += '\x00';
    text += static_cast<char>(header.size() & 0xFFU);
    text += static_cast<char>(header.size() >> 8U);
    text += header;
    std::vector<std::byte> bytes(text.size() + array.bytes.size());
    std::memcpy(bytes.data(), text.data(), text.size());
    if (!array.bytes.empty())
        std::memcpy(bytes.data() + text.size(), array.bytes.data(), array.bytes.size());
    return bytes;
}

Result<std::vector<std::byte>> readBytes(const std::string &path)
{
    std::error_code failure;
    if (!std::filesystem::is_regular_file(path, failure))
        return Error{ErrorCode::NotFound, "there is no file " + path, "check the path", path};
    const auto size = std::filesystem::file_size(path, failure);
    std::ifstream file(path, std::ios::binary);
    if (failure || !file)
        return Error{ErrorCode::Io, "cannot read " + path, "check its permissions", path};
    std::vector<std::byte> bytes(size);
    file.read(reinterpret_cast<char *>(bytes.data()), static_cast<std::streamsize>(size));
    if (file.gcount() != static_cast<std::streamsize>(size))
        return Error{ErrorCode::Io, "reading " + path + " stopped early", {}, path};
    return bytes;
}

Result<void> writeBytes(const std::string &path, std::span<const std::byte> bytes)
{
    std::error_code failure;
    const auto folder = std::filesystem::path{path}.parent_path();
    if (!folder.empty())
        std::filesystem::create_directories(folder, failure);
    return writeFile(path, {reinterpret_cast<const char *>(bytes.data()), bytes.size()});
}

Result<TensorData> readNpy(const std::string &path)
{
    TRY(const auto bytes, readBytes(path));
    return parseNpy(bytes, path);
}

Result<void> writeNpy(const std::string &path, const TensorData &array)
{
    return writeBytes(path, formatNpy(array));
}

} // namespace planloom
