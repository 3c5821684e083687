#include "engine/interop/machines/number_text.h"

#include "engine/base/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace planloom {

std::string asName(std::string text)
{
    constexpr std::size_t kMostLetters = 80;
    text.resize(std::min(text.size(), kMostLetters));
    for (char &c : text)
        if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f)
            c = '?';
    return text;
}

std::optional<std::int64_t> wholeNumber(std::string_view text)
{
    const bool isHexadecimal = text.substr(0, 2) == "0x" || text.substr(0, 2) == "0X";
    if (isHexadecimal)
        text.remove_prefix(2);
    std::int64_t value = 0;
    const auto [end, failure] =
        std::from_chars(text.data(), text.data() + text.size(), value, isHexadecimal ? 16 : 10);
    if (failure != std::errc{} || end != text.data() + text.size()
        || (isHexadecimal && text.starts_with('-')))
        return std::nullopt;
    return value;
}

std::optional<double> realNumber(std::string_view text)
{
    double value = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failure != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
        return std::nullopt;
    return value;
}

std::optional<double> leadingNumber(std::string_view text)
{
    text = trimmed(text);
    std::size_t length = 0;
    while (length < text.size() && (isDigit(text[length]) || text[length] == '.'))
        ++length;
    return length == 0 ? std::nullopt : realNumber(text.substr(0, length));
}

Error atLine(std::int32_t line, std::string message, std::string advice)
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice),
        "line:" + std::to_string(line) + ":1"};
}

} // namespace planloom
