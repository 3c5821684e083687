#include "engine/interop/configs/shell_values.h"

#include "engine/base/text.h"
#include "engine/interop/configs/shell_tokens.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kMostShellBytes = 1 << 24; ///< Of all words that a script comes to.

/// Integer arithmetic of + - * / % and brackets; nothing where something else stands in it.
class Arithmetic
{
public:
    using Variables = std::map<std::string, std::vector<ShellWord>, std::less<>>;

    Arithmetic(std::string_view text, const Variables &variables)
        : m_text(text)
        , m_variables(variables)
    {
    }

    std::optional<std::int64_t> value()
    {
        const auto sum = terms(0);
        spaces();
        return m_at == m_text.size() ? sum : std::nullopt;
    }

private:
    void spaces()
    {
        while (m_at < m_text.size() && (m_text[m_at] == ' ' || m_text[m_at] == '\t' || m_text[m_at] == '\n'))
            ++m_at;
    }

    std::optional<std::int64_t> terms(std::int32_t depth)
    {
        auto sum = factors(depth);
        for (spaces(); sum && m_at < m_text.size() && (m_text[m_at] == '+' || m_text[m_at] == '-');
             spaces()) {
            const char sign = m_text[m_at++];
            const auto next = factors(depth);
            sum = next ? bounded(sign == '+' ? *sum + *next : *sum - *next) : std::nullopt;
        }
        return sum;
    }

    std::optional<std::int64_t> factors(std::int32_t depth)
    {
        auto product = atom(depth);
        for (spaces(); product && m_at < m_text.size()
             && (m_text[m_at] == '*' || m_text[m_at] == '/' || m_text[m_at] == '%');
             spaces()) {
            const char sign = m_text[m_at++];
            const auto next = atom(depth);
            if (!next || (sign != '*' && *next == 0))
                return std::nullopt;
            product = bounded(sign == '*' ? *product * *next
                    : sign == '/'         ? *product / *next
                                          : *product % *next);
        }
        return product;
    }

    /// Below a billion, so that no product leaves 64 bits.
    static std::optional<std::int64_t> bounded(std::int64_t value)
    {
        return std::abs(value) < 2'000'000'000 ? std::optional(value) : std::nullopt;
    }

    std::optional<std::int64_t> atom(std::int32_t depth)
    {
        spaces();
        if (m_at >= m_text.size() || depth > kMostConfigDepth)
            return std::nullopt;
        if (m_text[m_at] == '(') {
            ++m_at;
            const auto inner = terms(depth + 1);
            spaces();
            if (m_at >= m_text.size() || m_text[m_at++] != ')')
                return std::nullopt;
            return inner;
        }
        if (m_text[m_at] == '-') {
            ++m_at;
            const auto inner = atom(depth + 1);
            return inner ? std::optional(-*inner) : std::nullopt;
        }
        if (m_text[m_at] == '$')
            ++m_at;
        const bool isBraced = m_at < m_text.size() && m_text[m_at] == '{';
        m_at += isBraced ? 1 : 0;
        const std::size_t end = endOfName(m_text, m_at);
        const std::string_view word = m_text.substr(m_at, end - m_at);
        m_at = end + (isBraced ? 1 : 0);
        if (word.empty() || m_at > m_text.size())
            return std::nullopt;
        const auto known = m_variables.find(word);
        if (!isDigit(word.front()) && (known == m_variables.end() || known->second.size() != 1))
            return std::nullopt;
        const std::string_view digits = isDigit(word.front()) ? word : trimmed(known->second.front().text);
        std::int64_t value = 0;
        const auto [rest, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        const bool isWhole = failure == std::errc{} && rest == digits.data() + digits.size();
        return isWhole ? bounded(value) : std::nullopt;
    }

    std::string_view m_text;
    const Variables &m_variables;
    std::size_t m_at = 0;
};

} // namespace

bool isNameLetter(char c)
{
    return isDigit(c) || (lowerCase(c) >= 'a' && lowerCase(c) <= 'z') || c == '_';
}

std::size_t endOfName(std::string_view text, std::size_t at)
{
    while (at < text.size() && isNameLetter(text[at]))
        ++at;
    return at;
}

std::optional<std::int64_t> integerOf(std::string_view text)
{
    const Arithmetic::Variables none;
    return Arithmetic(text, none).value();
}

void ShellValues::append(std::string_view name, std::vector<ShellWord> words, bool isArray)
{
    std::vector<ShellWord> &all = m_variables[std::string(name)];
    if (isArray || all.empty())
        all.insert(all.end(), words.begin(), words.end());
    else if (!words.empty()) {
        m_bytes += all.back().text.size();
        all.back().text += words.front().text;
    }
}

bool ShellValues::isTooLarge() const
{
    return m_bytes > kMostShellBytes;
}

std::vector<ShellWord> ShellValues::wordsOf(std::string_view raw, std::int32_t line, bool splits)
{
    m_words.clear();
    m_word = {{}, line};
    m_isWord = false;
    expand(raw, {.line = line, .splits = splits});
    finishWord(line);
    return std::move(m_words);
}

std::string ShellValues::textOf(std::string_view raw, std::int32_t line)
{
    std::string all;
    for (const ShellWord &word : wordsOf(raw, line, false))
        all += (all.empty() ? "" : " ") + word.text;
    return all;
}

void ShellValues::put(std::string_view text, std::int32_t line)
{
    if (isTooLarge())
        return;
    m_bytes += text.size() + 1;
    if (!m_isWord)
        m_word.line = line;
    m_word.text += text;
    m_isWord = true;
}

void ShellValues::finishWord(std::int32_t line)
{
    if (m_isWord && !isTooLarge()) {
        m_bytes += sizeof(ShellWord);
        m_words.push_back(std::move(m_word));
    }
    m_word = {{}, line};
    m_isWord = false;
}

void ShellValues::putSplit(std::string_view text, std::int32_t line)
{
    for (std::size_t at = 0; at < text.size();) {
        const char c = text[at];
        if (c == ' ' || c == '\t' || c == '\n' || c == kLineGoesOn) {
            line += c == '\n' || c == kLineGoesOn ? 1 : 0;
            finishWord(line);
            ++at;
            continue;
        }
        const std::size_t end = std::min(text.find_first_of(" \t\n\x01", at), text.size());
        put(text.substr(at, end - at), line);
        at = end;
    }
}

void ShellValues::putWords(const std::vector<ShellWord> &words, std::string_view marks, const Part &part)
{
    const bool isEach = marks == "[@]" || marks == "[*]";
    for (std::size_t i = 0; i < words.size() && !isTooLarge() && (i == 0 || isEach); ++i) {
        if (i > 0)
            finishWord(words[i].line);
        if (part.isQuoted || !part.splits)
            put(words[i].text, words[i].line);
        else
            putSplit(words[i].text, words[i].line);
    }
}

/// What stands behind "$" at `at`. @return where it ends
std::size_t ShellValues::variable(std::string_view raw, std::size_t at, const Part &part)
{
    const std::size_t begin = at + 1;
    const auto literal = [&](std::size_t end) {
        put(raw.substr(at, end - at), part.line);
        return end;
    };
    if (begin >= raw.size())
        return literal(begin);
    const std::size_t end = std::min(endOfShellPart(raw, at), raw.size());
    if (raw.substr(begin).starts_with("((")) {
        if (end < begin + 4)
            return literal(end);
        const auto value = Arithmetic(raw.substr(begin + 2, end - begin - 4), m_variables).value();
        if (!value)
            return literal(end);
        put(std::to_string(*value), part.line);
        return end;
    }
    if (raw[begin] == '(')
        return literal(end);
    if (raw[begin] == '{') {
        braced(raw.substr(begin + 1, end - std::min(end, begin + 2)), raw.substr(at, end - at), part);
        return end;
    }
    const std::size_t nameEnd = endOfName(raw, begin);
    const auto known = m_variables.find(raw.substr(begin, nameEnd - begin));
    if (known == m_variables.end())
        return literal(std::max(nameEnd, begin + 1));
    putWords(known->second, {}, part);
    return nameEnd;
}

/// "NAME", "NAME[@]", "NAME:-word", "NAME-word", "NAME:=word", "NAME:+word", "NAME^^", "NAME,,".
void ShellValues::braced(std::string_view inner, std::string_view whole, const Part &part)
{
    const std::size_t end = endOfName(inner, 0);
    const std::string_view name = inner.substr(0, end);
    const std::string_view rest = inner.substr(end);
    const auto known = m_variables.find(name);
    const bool isKnown = known != m_variables.end();
    const bool isEmpty = !isKnown || known->second.empty()
        || (known->second.size() == 1 && known->second.front().text.empty());
    if (part.depth > kMostConfigDepth)
        return put(whole, part.line);
    Part inside = part;
    ++inside.depth;
    const bool isStrict = rest.starts_with(':'); // an empty variable counts as none
    const bool counts = isKnown && !(isStrict && isEmpty);
    const std::string_view rule = rest.substr(isStrict ? 1 : 0);
    if (rule.starts_with('-') || rule.starts_with('=')) {
        if (counts)
            return putWords(known->second, {}, part);
        if (rule.starts_with('='))
            m_variables[std::string(name)] = {{std::string(rule.substr(1)), part.line}};
        return expand(rule.substr(1), inside);
    }
    if (rule.starts_with('+'))
        return counts ? expand(rule.substr(1), inside) : void();
    if (isKnown && (rest == "^^" || rest == ",,") && !known->second.empty()) {
        std::string text = known->second.front().text;
        for (char &c : text)
            c = rest == ",," ? lowerCase(c) : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
        return put(text, part.line);
    }
    if (isKnown && (rest.empty() || rest == "[@]" || rest == "[*]"))
        return putWords(known->second, rest, part);
    put(whole, part.line);
}

void ShellValues::expand(std::string_view raw, Part part)
{
    for (std::size_t at = 0; at < raw.size() && !isTooLarge();) {
        const char c = raw[at];
        std::size_t end = at + 1;
        if ((c == '\'' || c == '"') && !part.isQuoted && endOfShellPart(raw, at) <= raw.size()) {
            end = endOfShellPart(raw, at);
            const std::string_view inner = raw.substr(at + 1, end - at - 2);
            put(c == '"' ? std::string_view{} : inner, part.line);
            Part inside = part;
            inside.isQuoted = true;
            ++inside.depth;
            if (c == '"')
                expand(inner, inside);
        } else if (c == '$') {
            end = variable(raw, at, part);
        } else if (c == '\\' && at + 1 < raw.size()) {
            put(raw[at + 1] == '\n' ? std::string_view(part.isQuoted ? "\x01" : "") : raw.substr(at + 1, 1),
                part.line);
            end = at + 2;
        } else {
            end = std::min(raw.find_first_of("'\"$\\\n", at + 1), raw.size());
            if (part.isQuoted || !part.splits || part.depth == 0)
                put(raw.substr(at, end - at), part.line);
            else
                putSplit(raw.substr(at, end - at), part.line);
        }
        part.line += static_cast<std::int32_t>(std::count(raw.begin() + static_cast<std::ptrdiff_t>(at),
            raw.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
        at = end;
    }
}

} // namespace planloom
