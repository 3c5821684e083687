#include "sessions/session_file.h"

#include <array>
#include <fstream>
#include <string_view>

namespace planloom {

bool looksLikeSession(const std::filesystem::path &path)
{
    static constexpr std::string_view kMagic{"SQLite format 3\0", 16};
    std::array<char, kMagic.size()> head{};
    std::ifstream stream(path, std::ios::binary);
    return stream.read(head.data(), head.size()) && std::string_view(head.data(), head.size()) == kMagic;
}

} // namespace planloom
