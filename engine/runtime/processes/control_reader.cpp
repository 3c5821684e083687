#include "engine/runtime/processes/control_reader.h"

#include <array>

#include <unistd.h>

namespace planloom {

std::vector<std::string> ControlReader::read()
{
    constexpr std::size_t kLongest = 4096;
    std::array<char, 256> bytes{};
    std::vector<std::string> lines;
    const ssize_t got = ::read(m_descriptor, bytes.data(), bytes.size());
    if (got <= 0) {
        m_descriptor = -1;
        return lines;
    }
    m_text.append(bytes.data(), static_cast<std::size_t>(got));
    for (std::size_t end = m_text.find('\n'); end != std::string::npos; end = m_text.find('\n')) {
        lines.push_back(m_text.substr(0, m_text.find_first_of("\r\n")));
        m_text.erase(0, end + 1);
    }
    if (m_text.size() > kLongest)
        m_text.clear();
    return lines;
}

} // namespace planloom
