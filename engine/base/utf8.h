#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace planloom {

/// Bytes of the UTF-8 character that begins at `at`; 0 if none does, or if it is a control character other
/// than line ends and tabs.
inline std::size_t characterAt(std::string_view text, std::size_t at)
{
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char first = byte(at);
    if (first < 0x80)
        return first >= 0x20 && first != 0x7f ? 1 : first == '\n' || first == '\t' || first == '\r' ? 1 : 0;
    const std::size_t length = first >= 0xc2 && first <= 0xdf ? 2
        : first >= 0xe0 && first <= 0xef                      ? 3
        : first >= 0xf0 && first <= 0xf4                      ? 4
                                                              : 0;
    if (length == 0 || at + length > text.size())
        return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(at + i) & 0xc0U) != 0x80)
            return 0;
    const unsigned char second = byte(at + 1);
    const bool isLonger = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
    const bool isBeyond = (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90);
    return isLonger || isBeyond ? 0 : length;
}

constexpr const char *kNoCharacter = "\xEF\xBF\xBD"; ///< U+FFFD, in the place of what is none.

/// `text` with `kNoCharacter` in the place of every byte that is of no character.
inline std::string withCharactersAlone(std::string_view text)
{
    std::string result;
    result.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t length = characterAt(text, at);
        if (length == 0)
            result += kNoCharacter;
        else
            result += text.substr(at, length);
        at += length == 0 ? 1 : length;
    }
    return result;
}

} // namespace planloom
