#include "engine/runtime/processes/frames.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <sys/socket.h>

namespace planloom {

namespace {

Result<void> sendAll(int socket, const char *data, std::size_t size)
{
    while (size > 0) {
        const ssize_t sent = ::send(socket, data, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return Error{
                ErrorCode::Io, std::string{"the other process is gone: "} + std::strerror(errno), {}, {}};
        data += sent;
        size -= static_cast<std::size_t>(sent);
    }
    return {};
}

} // namespace

Result<void> writeFrame(int socket, std::string_view text)
{
    const auto length = static_cast<std::uint32_t>(text.size());
    std::array<char, 4> head{};
    for (std::size_t i = 0; i < head.size(); ++i)
        head[i] = static_cast<char>(length >> (8 * i) & 0xFFU);
    TRY_VOID(sendAll(socket, head.data(), head.size()));
    return sendAll(socket, text.data(), text.size());
}

Result<std::optional<std::string>> FrameReader::next()
{
    if (m_bytes.size() - m_begin < 4)
        return std::optional<std::string>{};
    std::size_t length = 0;
    for (std::size_t i = 0; i < 4; ++i)
        length |= static_cast<std::size_t>(static_cast<unsigned char>(m_bytes[m_begin + i])) << (8 * i);
    if (length > kLargestFrame)
        return Error{ErrorCode::InvalidInput, "a frame claims " + std::to_string(length) + " bytes", {}, {}};
    if (m_bytes.size() - m_begin - 4 < length)
        return std::optional<std::string>{};
    std::optional<std::string> text = m_bytes.substr(m_begin + 4, length);
    m_begin += 4 + length;
    if (m_begin > m_bytes.size() / 2) {
        m_bytes.erase(0, m_begin);
        m_begin = 0;
    }
    return text;
}

} // namespace planloom
