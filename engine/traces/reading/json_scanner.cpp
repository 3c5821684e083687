#include "engine/traces/reading/json_scanner.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kBlock = std::size_t{512} << 10;
constexpr std::size_t kMostToken = std::size_t{4} << 20; ///< Bytes of a string that is asked for.
constexpr std::size_t kMostDepth = 512;

bool isSeparator(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',' || c == ':';
}

bool isPlain(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-'
        || c == '.' || c == '_';
}

void appendUtf8(std::string &text, std::uint32_t point)
{
    if (point < 0x80) {
        text += static_cast<char>(point);
    } else if (point < 0x800) {
        text += static_cast<char>(0xc0U | point >> 6U);
        text += static_cast<char>(0x80U | (point & 0x3fU));
    } else if (point < 0x10000) {
        text += static_cast<char>(0xe0U | point >> 12U);
        text += static_cast<char>(0x80U | (point >> 6U & 0x3fU));
        text += static_cast<char>(0x80U | (point & 0x3fU));
    } else {
        text += static_cast<char>(0xf0U | point >> 18U);
        text += static_cast<char>(0x80U | (point >> 12U & 0x3fU));
        text += static_cast<char>(0x80U | (point >> 6U & 0x3fU));
        text += static_cast<char>(0x80U | (point & 0x3fU));
    }
}

/// Four hexadecimal digits at `at`; -1 if there are none.
std::int32_t hexAt(std::string_view text, std::size_t at)
{
    if (at + 4 > text.size())
        return -1;
    std::int32_t value = 0;
    for (const char c : text.substr(at, 4)) {
        const int digit = c >= '0' && c <= '9' ? c - '0'
            : c >= 'a' && c <= 'f'             ? c - 'a' + 10
            : c >= 'A' && c <= 'F'             ? c - 'A' + 10
                                               : -1;
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

/// How many bytes the UTF-8 letter at `at` has; 0 if it is none.
std::size_t utf8LengthAt(std::string_view text, std::size_t at)
{
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
    const unsigned char lead = byte(at);
    const std::size_t length = lead < 0x80 ? 1
        : lead >= 0xc2 && lead < 0xe0      ? 2
        : lead >= 0xe0 && lead < 0xf0      ? 3
        : lead >= 0xf0 && lead < 0xf5      ? 4
                                           : 0;
    if (length == 0 || at + length > text.size())
        return 0;
    for (std::size_t i = 1; i < length; ++i)
        if ((byte(at + i) & 0xc0U) != 0x80)
            return 0;
    return length;
}

} // namespace

std::string unescapedJson(std::string_view text)
{
    constexpr std::string_view kNoLetter = "\xef\xbf\xbd";
    std::string plain;
    plain.reserve(text.size());
    for (std::size_t i = 0; i < text.size();) {
        if (text[i] != '\\') {
            const std::size_t length = utf8LengthAt(text, i);
            plain += length > 0 ? text.substr(i, length) : kNoLetter;
            i += std::max<std::size_t>(length, 1);
            continue;
        }
        const char escape = i + 1 < text.size() ? text[i + 1] : '\\';
        constexpr std::string_view kEscapes = "bfnrt";
        constexpr std::string_view kMeanings = "\b\f\n\r\t";
        if (const std::size_t which = kEscapes.find(escape); which != std::string_view::npos) {
            plain += kMeanings[which];
        } else if (escape == 'u') {
            std::int32_t point = hexAt(text, i + 2);
            if (point >= 0xd800 && point < 0xdc00 && text.substr(std::min(i + 6, text.size()), 2) == "\\u") {
                const std::int32_t low = hexAt(text, i + 8);
                if (low >= 0xdc00 && low < 0xe000) {
                    point = 0x10000 + ((point - 0xd800) << 10) + (low - 0xdc00);
                    i += 6;
                }
            }
            if (point < 0 || (point >= 0xd800 && point < 0xe000))
                plain += kNoLetter;
            else
                appendUtf8(plain, static_cast<std::uint32_t>(point));
            i += point < 0 ? 2 : 6;
            continue;
        } else {
            plain += escape;
        }
        i += 2;
    }
    return plain;
}

JsonScanner::JsonScanner(TraceBytes &bytes, std::string where)
    : m_bytes(bytes)
    , m_where(std::move(where))
    , m_buffer(bytes.isPacked()
              ? kBlock
              : static_cast<std::size_t>(std::clamp<std::uint64_t>(bytes.size() + 1, 4096, kBlock)))
{
}

std::string JsonScanner::plainText() const
{
    return unescapedJson(text());
}

JsonToken JsonScanner::fail(ErrorCode code, std::string message)
{
    if (!m_failure)
        m_failure = Error{code, std::move(message), {}, m_where + "@" + std::to_string(offset())};
    m_at = m_end;
    m_hasEnded = true;
    return JsonToken::End;
}

/// Makes room and reads on. Letters from `kept` on stay, at the front, where `kept` then is.
bool JsonScanner::fill(std::size_t &kept)
{
    if (m_hasEnded)
        return false;
    const std::size_t keepFrom = std::exchange(kept, 0);
    std::memmove(m_buffer.data(), m_buffer.data() + keepFrom, m_end - keepFrom);
    m_passed += keepFrom;
    m_at -= keepFrom;
    m_end -= keepFrom;
    m_textBegin -= std::min(m_textBegin, keepFrom);
    m_textEnd -= std::min(m_textEnd, keepFrom);
    if (m_end == m_buffer.size())
        m_buffer.resize(2 * m_buffer.size());
    auto count = m_bytes.read(std::span(m_buffer).subspan(m_end));
    if (!count) {
        if (!m_failure)
            m_failure = std::move(count).error();
        m_hasEnded = true;
        return false;
    }
    m_hasEnded = *count == 0;
    m_end += *count;
    return *count > 0;
}

/// Reads on behind the next letter.
bool JsonScanner::readOn()
{
    std::size_t kept = m_at;
    return fill(kept);
}

JsonToken JsonScanner::readString(bool isKey)
{
    std::size_t from = m_at; // of the letters behind the quote
    for (;;) {
        const void *const quote = std::memchr(m_buffer.data() + m_at, '"', m_end - m_at);
        if (!quote) {
            m_at = m_end;
            const std::size_t length = m_at - from;
            if (length > kMostToken)
                return fail(ErrorCode::ResourceLimit, "a string has more than 4 MiB");
            if (!fill(from))
                return fail(ErrorCode::InvalidInput, "the text ends in the middle of a string");
            continue;
        }
        m_at = static_cast<std::size_t>(static_cast<const char *>(quote) - m_buffer.data());
        std::size_t slashes = 0;
        while (m_at - slashes > from && m_buffer[m_at - slashes - 1] == '\\')
            ++slashes;
        ++m_at;
        if (slashes % 2 == 0)
            break;
    }
    m_textBegin = from;
    m_textEnd = m_at - 1;
    return isKey ? JsonToken::Key : JsonToken::String;
}

JsonToken JsonScanner::next()
{
    for (;;) {
        while (m_at < m_end && isSeparator(m_buffer[m_at])) {
            if (m_buffer[m_at] == ',')
                m_expectsKey = !m_open.empty() && m_open.back() == '{';
            ++m_at;
        }
        if (m_at < m_end)
            break;
        if (!has()) {
            if (!m_open.empty() && !m_failure)
                return fail(ErrorCode::InvalidInput, "the text ends in the middle");
            return JsonToken::End;
        }
    }
    const char c = m_buffer[m_at];
    if (c == '"') {
        ++m_at;
        const bool isKey = std::exchange(m_expectsKey, false);
        return readString(isKey);
    }
    if (c == '{' || c == '[') {
        if (m_open.size() >= kMostDepth)
            return fail(ErrorCode::ResourceLimit, "values are nested deeper than 512 levels");
        ++m_at;
        m_open.push_back(c);
        m_expectsKey = c == '{';
        return c == '{' ? JsonToken::BeginObject : JsonToken::BeginArray;
    }
    if (c == '}' || c == ']') {
        if (m_open.empty() || m_open.back() != (c == '}' ? '{' : '['))
            return fail(ErrorCode::InvalidInput, std::string("a '") + c + "' ends nothing that is open");
        ++m_at;
        m_open.pop_back();
        m_expectsKey = false;
        return c == '}' ? JsonToken::EndObject : JsonToken::EndArray;
    }
    if (!isPlain(c))
        return fail(ErrorCode::InvalidInput, "expected a value of JSON");
    std::size_t from = m_at;
    for (;;) {
        while (m_at < m_end && isPlain(m_buffer[m_at]))
            ++m_at;
        if (m_at < m_end)
            break;
        if (m_at - from > 1024)
            return fail(ErrorCode::InvalidInput, "a number has more than 1,024 digits");
        if (!fill(from))
            break;
    }
    m_textBegin = from;
    m_textEnd = m_at;
    return (c >= '0' && c <= '9') || ((c == '-' || c == '+') && m_at - from > 1 && m_buffer[from + 1] != 'I')
        ? JsonToken::Number
        : JsonToken::Word;
}

/// Behind a quote: up to behind the one that ends the string.
bool JsonScanner::passString()
{
    for (;;) {
        while (m_at < m_end && m_buffer[m_at] != '"' && m_buffer[m_at] != '\\')
            ++m_at;
        if (!has())
            return false;
        const char c = m_buffer[m_at++];
        if (c == '"')
            return true;
        if (!has())
            return false;
        ++m_at; // what is escaped
    }
}

/// Passes by until only `depth` brackets are open.
bool JsonScanner::passOpen(std::size_t depth)
{
    while (m_open.size() > depth) {
        while (m_at < m_end) {
            const char c = m_buffer[m_at];
            if (c == '"' || c == '{' || c == '}' || c == '[' || c == ']')
                break;
            ++m_at;
        }
        if (!has())
            return fail(ErrorCode::InvalidInput, "the text ends in the middle"), false;
        const char c = m_buffer[m_at];
        if (c == '"') {
            ++m_at;
            if (!passString())
                return fail(ErrorCode::InvalidInput, "the text ends in the middle of a string"), false;
        } else if (next() == JsonToken::End) {
            return false;
        }
    }
    m_expectsKey = false;
    return true;
}

bool JsonScanner::skipValue()
{
    const std::size_t depth = m_open.size();
    while (has() && isSeparator(m_buffer[m_at]))
        ++m_at;
    if (has() && m_buffer[m_at] == '"') { // of any length
        ++m_at;
        m_expectsKey = false;
        return passString()
            || (fail(ErrorCode::InvalidInput, "the text ends in the middle of a string"), false);
    }
    const JsonToken token = next();
    if (token == JsonToken::End)
        return false;
    return m_open.size() <= depth || passOpen(depth);
}

bool JsonScanner::skipRest()
{
    return m_open.empty() || passOpen(m_open.size() - 1);
}

bool JsonScanner::findObject(std::string_view key)
{
    m_open.clear();
    m_expectsKey = false;
    while (has()) {
        const void *const brace = std::memchr(m_buffer.data() + m_at, '{', m_end - m_at);
        if (!brace) {
            m_at = m_end;
            continue;
        }
        m_at = static_cast<std::size_t>(static_cast<const char *>(brace) - m_buffer.data());
        constexpr std::size_t kAhead = 256; // spaces and the key
        if (m_end - m_at < kAhead)
            readOn();
        std::size_t at = m_at + 1;
        while (at < m_end && (isSeparator(m_buffer[at]) || m_buffer[at] == '"'))
            ++at;
        if (std::string_view(m_buffer.data() + at, m_end - at).starts_with(key))
            return true;
        ++m_at;
    }
    return false;
}

} // namespace planloom
