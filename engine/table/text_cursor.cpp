#include "engine/table/text_cursor.h"

#include "engine/base/nearest_name.h"

#include <algorithm>
#include <charconv>

namespace planloom {

namespace {

int hexDigit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

} // namespace

bool isWordCharacter(char c)
{
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'))
        return true;
    return std::string_view("_.*?/-+'[]$~^%\\").find(c) != std::string_view::npos;
}

std::string inQuotes(std::string_view text)
{
    static constexpr char kHex[] = "0123456789abcdef";
    std::string result = "\"";
    for (const char c : text) {
        const auto code = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (c == '\n') {
            result += "\\n";
        } else if (c == '\r') {
            result += "\\r";
        } else if (c == '\t') {
            result += "\\t";
        } else if (code < 0x20 || code == 0x7f) {
            result += "\\x";
            result += kHex[code >> 4];
            result += kHex[code & 15];
        } else {
            result += c;
        }
    }
    return result + '"';
}

std::string asWord(std::string_view text)
{
    if (!text.empty() && std::all_of(text.begin(), text.end(), isWordCharacter))
        return std::string(text);
    return inQuotes(text);
}

void TextCursor::skipSpaces()
{
    while (m_position < m_text.size() && (m_text[m_position] == ' ' || m_text[m_position] == '\t'))
        ++m_position;
}

bool TextCursor::atEnd()
{
    skipSpaces();
    return m_position >= m_text.size();
}

char TextCursor::peek()
{
    return atEnd() ? '\0' : m_text[m_position];
}

bool TextCursor::take(char symbol)
{
    if (atEnd() || m_text[m_position] != symbol)
        return false;
    ++m_position;
    return true;
}

std::string_view TextCursor::peekWord()
{
    skipSpaces();
    std::size_t end = m_position;
    while (end < m_text.size() && isWordCharacter(m_text[end]))
        ++end;
    return m_text.substr(m_position, end - m_position);
}

bool TextCursor::takeWord(std::string_view keyword)
{
    if (peekWord() != keyword)
        return false;
    m_position += keyword.size();
    return true;
}

Result<std::string> TextCursor::word(std::string_view what)
{
    bool wasQuoted = false;
    return word(what, wasQuoted);
}

Result<std::string> TextCursor::word(std::string_view what, bool &wasQuoted)
{
    wasQuoted = peek() == '"';
    if (!wasQuoted) {
        const std::string_view plain = peekWord();
        if (plain.empty())
            return expected(what);
        m_position += plain.size();
        return std::string(plain);
    }
    const std::size_t start = m_position++;
    std::string text;
    while (m_position < m_text.size() && m_text[m_position] != '"') {
        const char c = m_text[m_position++];
        if (c != '\\') {
            text += c;
            continue;
        }
        if (m_position >= m_text.size())
            break;
        const char escape = m_text[m_position++];
        if (escape == '"' || escape == '\\') {
            text += escape;
        } else if (escape == 'n') {
            text += '\n';
        } else if (escape == 'r') {
            text += '\r';
        } else if (escape == 't') {
            text += '\t';
        } else if (escape == 'x' && m_position + 1 < m_text.size() && hexDigit(m_text[m_position]) >= 0
            && hexDigit(m_text[m_position + 1]) >= 0) {
            text += static_cast<char>(hexDigit(m_text[m_position]) * 16 + hexDigit(m_text[m_position + 1]));
            m_position += 2;
        } else {
            return at(m_position - 2, "expected an escape \\\" \\\\ \\n \\r \\t or \\xHH");
        }
    }
    if (m_position >= m_text.size())
        return at(start, "expected a closing quote on the same line");
    ++m_position;
    return text;
}

Result<std::int64_t> TextCursor::integer(std::string_view what, std::int64_t least, std::int64_t most)
{
    std::string_view text = peekWord();
    const std::size_t start = m_position;
    std::string_view digits = text;
    if (digits.size() > 1 && digits.front() == '+' && digits[1] != '-')
        digits.remove_prefix(1);
    std::int64_t value = 0;
    const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || failure != std::errc{} || end != digits.data() + digits.size())
        return expected(what);
    if (value < least || value > most) {
        return at(start,
            "expected " + std::string(what) + " between " + std::to_string(least) + " and "
                + std::to_string(most) + ", found " + std::to_string(value));
    }
    m_position += text.size();
    return value;
}

Result<void> TextCursor::require(char symbol, std::string_view why)
{
    if (take(symbol))
        return {};
    return expected("'" + std::string(1, symbol) + "' " + std::string(why));
}

namespace {

/// The words that "a row: mesh, place or 'order'" lets one choose from: what stands between commas and "or".
std::vector<std::string_view> wordsOffered(std::string_view what)
{
    std::vector<std::string_view> words;
    constexpr std::string_view kBetween = " ,;:'()=";
    for (std::size_t begin = 0; begin < what.size();) {
        const std::size_t end = std::min(what.find_first_of(kBetween, begin), what.size());
        if (const std::string_view word = what.substr(begin, end - begin); word.size() > 2)
            words.push_back(word);
        begin = end + 1;
    }
    return words;
}

} // namespace

Error TextCursor::expected(std::string_view what)
{
    std::string found;
    if (atEnd()) {
        found = "the end of the row";
    } else if (const std::string_view word = peekWord(); !word.empty()) {
        found = "'" + std::string(word.substr(0, 40)) + "'";
    } else {
        const char c = m_text[m_position];
        found = static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f
            ? "a byte that is not printable ASCII"
            : "'" + std::string(1, c) + "'";
    }
    // Where words are expected, the one that was meant is often a letter away.
    const std::string_view word = peekWord();
    return at(m_position, "expected " + std::string(what) + ", found " + found,
        word.empty() ? std::string{} : didYouMean(word, wordsOffered(what)));
}

Error TextCursor::at(std::size_t position, std::string message, std::string advice) const
{
    return {ErrorCode::InvalidInput, std::move(message), std::move(advice),
        "line:" + std::to_string(m_line) + ":" + std::to_string(m_firstColumn + position + 1)};
}

} // namespace planloom
