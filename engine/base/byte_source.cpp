#include "engine/base/byte_source.h"

#include <algorithm>
#include <fstream>
#include <mutex>
#include <system_error>
#include <utility>

namespace planloom {

namespace {

Error beyondEnd(std::uint64_t offset, std::size_t count, std::uint64_t size)
{
    return {ErrorCode::InvalidInput,
        std::to_string(count) + " bytes were expected from byte " + std::to_string(offset)
            + " on, but there are " + std::to_string(size) + " in all",
        "the file is cut off: copy it anew", {}};
}

bool holds(std::uint64_t size, std::uint64_t offset, std::uint64_t count)
{
    return offset <= size && count <= size - offset;
}

class MemorySource final : public ByteSource
{
public:
    explicit MemorySource(std::span<const std::byte> bytes)
        : m_bytes(bytes)
    {
    }
    std::uint64_t size() const override { return m_bytes.size(); }
    Result<void> read(std::uint64_t offset, std::span<std::byte> bytes) const override
    {
        if (!holds(size(), offset, bytes.size()))
            return beyondEnd(offset, bytes.size(), size());
        std::copy_n(m_bytes.begin() + static_cast<std::ptrdiff_t>(offset), bytes.size(), bytes.begin());
        return {};
    }

private:
    std::span<const std::byte> m_bytes;
};

class FileSource final : public ByteSource
{
public:
    FileSource(std::ifstream stream, std::uint64_t size, std::string where)
        : m_stream(std::move(stream))
        , m_size(size)
        , m_where(std::move(where))
    {
    }
    std::uint64_t size() const override { return m_size; }
    Result<void> read(std::uint64_t offset, std::span<std::byte> bytes) const override
    {
        if (!holds(m_size, offset, bytes.size()))
            return beyondEnd(offset, bytes.size(), m_size);
        const std::scoped_lock lock(m_mutex);
        m_stream.clear();
        m_stream.seekg(static_cast<std::streamoff>(offset));
        const auto count = static_cast<std::streamsize>(bytes.size());
        m_stream.read(reinterpret_cast<char *>(bytes.data()), count); // any type may alias char
        if (!m_stream || m_stream.gcount() != count)
            return Error{ErrorCode::Io, "the file cannot be read from byte " + std::to_string(offset) + " on",
                "check its permissions, and whether it is still being written", m_where};
        return {};
    }

private:
    mutable std::mutex m_mutex{};
    mutable std::ifstream m_stream;
    std::uint64_t m_size = 0;
    std::string m_where;
};

} // namespace

std::unique_ptr<const ByteSource> sourceOf(std::span<const std::byte> bytes)
{
    return std::make_unique<MemorySource>(bytes);
}

std::unique_ptr<const ByteSource> sourceOf(std::string_view bytes)
{
    return sourceOf(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())));
}

Result<std::unique_ptr<const ByteSource>> openByteSource(const std::filesystem::path &path)
{
    const std::string where = path.string();
    std::error_code failure;
    const auto status = std::filesystem::status(path, failure);
    if (!std::filesystem::exists(status))
        return Error{ErrorCode::NotFound, "there is no such file", "check the path", where};
    if (!std::filesystem::is_regular_file(status))
        return Error{ErrorCode::InvalidInput, "expected a regular file", "check the path", where};
    const auto size = std::filesystem::file_size(path, failure);
    std::ifstream stream(path, std::ios::binary);
    if (failure || !stream)
        return Error{ErrorCode::Io, "cannot be read", "check its permissions", where};
    std::unique_ptr<const ByteSource> source = std::make_unique<FileSource>(std::move(stream), size, where);
    return source;
}

} // namespace planloom
