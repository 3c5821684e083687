#include "engine/interop/configs/shell_tokens.h"

#include "engine/base/text.h"
#include "engine/interop/configs/setting.h"

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

constexpr std::string_view kDirective = "#SBATCH";

bool isNameCharacter(char c)
{
    return isDigit(c) || (lowerCase(c) >= 'a' && lowerCase(c) <= 'z') || c == '_';
}

/// "NAME=" or "NAME+=", behind which a bracket begins an array.
bool isAssignment(std::string_view word)
{
    if (!word.ends_with('=') || isDigit(word.front()))
        return false;
    word.remove_suffix(word.ends_with("+=") ? 2 : 1);
    return !word.empty() && std::all_of(word.begin(), word.end(), isNameCharacter);
}

/// Cuts a text into tokens.
class ShellCutter
{
public:
    explicit ShellCutter(std::string_view text)
        : m_text(text)
    {
    }

    ShellTokens cut()
    {
        while (m_at < m_text.size()) {
            const char c = m_text[m_at];
            if (c == '\n' || c == ';' || c == '&' || c == '|' || c == '(' || c == ')')
                mark(c);
            else if (c == ' ' || c == '\t' || c == '\r')
                ++m_at;
            else if (c == '\\' && m_at + 1 < m_text.size() && m_text[m_at + 1] == '\n')
                skip(2);
            else if (c == '#')
                comment();
            else if (c == '<' || c == '>')
                redirection();
            else
                word();
        }
        return {std::move(m_tokens), std::move(m_open)};
    }

private:
    void add(ShellTokenKind kind, std::string text = {})
    {
        m_tokens.push_back({kind, std::move(text), m_line});
    }

    void skip(std::size_t count)
    {
        for (std::size_t i = 0; i < count && m_at < m_text.size(); ++i, ++m_at)
            m_line += m_text[m_at] == '\n' ? 1 : 0;
    }

    void mark(char c)
    {
        const bool isTwice = m_at + 1 < m_text.size() && m_text[m_at + 1] == c;
        if (c == '(' || c == ')')
            add(c == '(' ? ShellTokenKind::Open : ShellTokenKind::Close);
        else
            add(c == ';' && isTwice ? ShellTokenKind::Next : ShellTokenKind::End,
                std::string(isTwice && c != '\n' ? 2 : 1, c));
        skip(isTwice && c != '\n' && c != '(' && c != ')' ? 2 : 1);
    }

    void comment()
    {
        const std::size_t end = std::min(m_text.find('\n', m_at), m_text.size());
        if (const std::string_view line = m_text.substr(m_at, end - m_at); line.starts_with(kDirective))
            add(ShellTokenKind::Directive, std::string(trimmed(line.substr(kDirective.size()))));
        m_at = end;
    }

    /// A redirection's file is no word of the command. What a here-document holds is read as lines behind it.
    void redirection()
    {
        while (m_at < m_text.size()
            && (m_text[m_at] == '<' || m_text[m_at] == '>' || m_text[m_at] == '&' || m_text[m_at] == '-'
                || m_text[m_at] == ' '))
            ++m_at;
        while (m_at < m_text.size()
            && std::string_view(" \t\r\n;&|()").find(m_text[m_at]) == std::string_view::npos)
            ++m_at;
    }

    void word()
    {
        const std::size_t begin = m_at;
        const std::int32_t line = m_line;
        while (m_at < m_text.size()) {
            const char c = m_text[m_at];
            if (std::string_view(" \t\r\n;&|()<>").find(c) != std::string_view::npos)
                break;
            const bool opens =
                c == '$' && m_at + 1 < m_text.size() && (m_text[m_at + 1] == '{' || m_text[m_at + 1] == '(');
            if (c == '\'' || c == '"' || c == '`' || opens) {
                const std::size_t end = endOfShellPart(m_text, m_at);
                if (end > m_text.size())
                    m_open.push_back(m_line); // of a here-document's English, most often
                skip(end > m_text.size() ? 1 : end - m_at);
            } else
                skip(c == '\\' ? 2 : 1);
        }
        std::string text(m_text.substr(begin, m_at - begin));
        if (text == "[[") { // a condition to its end: what joins its parts ends no command
            const std::size_t end = std::min(m_text.find("]]", m_at), m_text.size() - 2) + 2;
            skip(end - m_at);
            text = std::string(m_text.substr(begin, m_at - begin));
        }
        if (m_at < m_text.size() && m_text[m_at] == '(' && isAssignment(text)) {
            ++m_at;
            m_tokens.push_back({ShellTokenKind::Array, std::move(text), line});
            return;
        }
        m_tokens.push_back({ShellTokenKind::Word, std::move(text), line});
    }

    std::string_view m_text;
    std::size_t m_at = 0;
    std::int32_t m_line = 1;
    std::vector<ShellToken> m_tokens{};
    std::vector<std::int32_t> m_open{};
};

} // namespace

std::size_t endOfShellPart(std::string_view text, std::size_t begin)
{
    const std::size_t never = text.size() + 1;
    std::string closing; // of what is open, the innermost last
    std::size_t at = begin;
    while (at < text.size()) {
        const char c = text[at];
        const bool isLiteral = !closing.empty() && closing.back() == '\'';
        if (!closing.empty() && c == closing.back()) {
            closing.pop_back();
            ++at;
        } else if (isLiteral)
            ++at;
        else if (c == '\\')
            at += 2;
        else if (c == '$' && at + 1 < text.size() && (text[at + 1] == '{' || text[at + 1] == '(')) {
            closing += text[at + 1] == '{' ? '}' : ')';
            at += 2;
        } else if (c == '"' || c == '`' || (c == '\'' && (closing.empty() || closing.back() != '"'))) {
            closing += c;
            ++at;
        } else if (c == '(' && !closing.empty() && closing.back() == ')') {
            closing += ')';
            ++at;
        } else
            ++at;
        if (closing.empty())
            return std::min(at, never);
        if (closing.size() > static_cast<std::size_t>(kMostConfigDepth))
            return never;
    }
    return never;
}

ShellTokens shellTokens(std::string_view text)
{
    return ShellCutter(text).cut();
}

} // namespace planloom
