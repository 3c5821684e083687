#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace planloom {

// Reading what people write. Letters are those of ASCII alone, whatever the locale; others stay as they are.

constexpr bool isDigit(char c)
{
    return c >= '0' && c <= '9';
}

constexpr char lowerCase(char c)
{
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

inline std::string lowerCase(std::string_view text)
{
    std::string result(text);
    for (char &c : result)
        c = lowerCase(c);
    return result;
}

/// True if `part` stands in `text`, in letters of either case.
inline bool containsLetters(std::string_view text, std::string_view part)
{
    return part.empty()
        || std::search(text.begin(), text.end(), part.begin(), part.end(),
               [](char a, char b) { return lowerCase(a) == lowerCase(b); })
        != text.end();
}

/// True for the same letters, in either case.
inline bool sameLetters(std::string_view a, std::string_view b)
{
    return std::equal(
        a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) { return lowerCase(x) == lowerCase(y); });
}

/// Without the spaces, tabs and ends of lines around it.
constexpr std::string_view trimmed(std::string_view text)
{
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    if (first == std::string_view::npos)
        return {};
    return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

} // namespace planloom
