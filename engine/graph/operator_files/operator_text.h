#pragma once

// Private to the graph room: the lines of an operator file, read from left to right.

#include "engine/base/result.h"
#include "engine/base/text.h"
#include "engine/graph/operator_files/size_expression.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace planloom {

/// A place in an operator file, counted from 1.
struct OperatorTextPlace {
    std::size_t line = 0;
    std::size_t column = 0;
};

/// One line at a time, without its comment.
class OperatorText
{
public:
    OperatorText(std::string_view text, std::string name)
        : m_rest(text)
        , m_name(std::move(name))
    {
    }

    /// Goes to the next line that says something. @return false at the end of the file
    bool nextLine()
    {
        while (!m_ended) {
            const std::size_t end = m_rest.find('\n');
            m_line = m_rest.substr(0, end);
            m_ended = end == std::string_view::npos;
            m_rest.remove_prefix(m_ended ? m_rest.size() : end + 1);
            ++m_number;
            m_line = withoutComment(m_line);
            while (!m_line.empty() && isSpace(m_line.back()))
                m_line.remove_suffix(1);
            m_at = 0;
            if (peek() != '\0')
                return true;
        }
        m_line = {};
        m_at = 0;
        return false;
    }

    /// The next character that is no space; '\0' at the end of the line.
    char peek()
    {
        while (m_at < m_line.size() && isSpace(m_line[m_at]))
            ++m_at;
        return m_at < m_line.size() ? m_line[m_at] : '\0';
    }

    bool startsWith(std::string_view text)
    {
        peek();
        return m_line.substr(m_at, text.size()) == text;
    }

    bool take(std::string_view text)
    {
        if (!startsWith(text))
            return false;
        m_at += text.size();
        return true;
    }

    OperatorTextPlace place()
    {
        peek();
        return {m_number, m_at + 1};
    }
    std::size_t lineNumber() const { return m_number; }

    /// "'x'", or "the end of the line".
    std::string found()
    {
        const char c = peek();
        if (c == '\0')
            return "the end of the line";
        const std::string word(peekName());
        return "'" + (word.empty() ? std::string(1, c) : word) + "'";
    }

    Error fail(OperatorTextPlace place, std::string message, std::string advice = {}) const
    {
        return {ErrorCode::InvalidInput, std::move(message), std::move(advice),
            m_name + ":" + std::to_string(place.line) + ":" + std::to_string(place.column)};
    }
    Error expected(const std::string &what, std::string advice = {})
    {
        const std::string message = "expected " + what + ", found " + found();
        return fail(place(), message, std::move(advice));
    }

    Result<void> expect(char wanted)
    {
        if (peek() != wanted)
            return expected(std::string("'") + wanted + "'");
        ++m_at;
        return {};
    }
    Result<void> expectEnd()
    {
        return peek() == '\0' ? Result<void>{} : Result<void>{expected("the end of the line")};
    }

    /// Letters, digits and '_', not beginning with a digit; empty if there is none.
    std::string_view peekName()
    {
        const char c = peek();
        if (isDigit(c) || !isNameLetter(c))
            return {};
        std::size_t end = m_at;
        while (end < m_line.size() && isNameLetter(m_line[end]))
            ++end;
        return m_line.substr(m_at, end - m_at);
    }
    Result<std::string> takeName(const std::string &what)
    {
        const std::string name(peekName());
        if (name.empty())
            return expected(what);
        m_at += name.size();
        return name;
    }

    /// Letters, digits, '_', '.', '/' and '-' without spaces between them, up to "->"; may be empty.
    std::string takeDotted()
    {
        peek();
        const std::size_t begin = m_at;
        const auto isPart = [this] {
            const char c = m_line[m_at];
            return isNameLetter(c) || c == '.' || c == '/' || (c == '-' && m_line.substr(m_at, 2) != "->");
        };
        while (m_at < m_line.size() && isPart())
            ++m_at;
        return std::string(m_line.substr(begin, m_at - begin));
    }

    /// What stands before the next ',' or ']'.
    std::string_view peekNumber()
    {
        peek();
        return m_line.substr(m_at, m_line.find_first_of(",]", m_at) - m_at);
    }

    Result<SizeExpression> takeExpression()
    {
        peek();
        std::size_t at = m_at;
        auto expression = parseSizeExpression(m_line, at);
        if (!expression)
            return placed(std::move(expression).error(), 0);
        m_at = at;
        return expression;
    }

    /// A text in double quotes, in which \" and \\ stand for what is behind the backslash.
    Result<std::string> takeQuoted()
    {
        if (peek() != '"')
            return expected("a text in quotes");
        const OperatorTextPlace begin = place();
        std::string text;
        for (++m_at; m_at < m_line.size() && m_line[m_at] != '"'; ++m_at) {
            if (m_line[m_at] == '\\' && m_at + 1 < m_line.size())
                ++m_at;
            text += m_line[m_at];
        }
        if (m_at == m_line.size())
            return fail(begin, "this text has no closing quote");
        ++m_at;
        return text;
    }

    /// All that is left of the line, and its column.
    std::pair<std::string, OperatorTextPlace> takeRest()
    {
        const OperatorTextPlace begin = place();
        std::string rest(m_line.substr(m_at));
        m_at = m_line.size();
        return {std::move(rest), begin};
    }

    /// An error whose `where` is "position:N" of a text that begins at byte `offset` of this line.
    Error placed(Error error, std::size_t offset) const
    {
        return placed(std::move(error), {m_number, offset + 1});
    }
    Error placed(Error error, OperatorTextPlace begin) const
    {
        constexpr std::string_view kPosition = "position:";
        std::size_t position = 0;
        if (error.where.starts_with(kPosition))
            for (const char c : error.where.substr(kPosition.size()))
                position = position * 10 + static_cast<std::size_t>(c - '0');
        begin.column += position;
        return fail(begin, std::move(error.message), std::move(error.advice));
    }

private:
    static bool isSpace(char c) { return c == ' ' || c == '\t' || c == '\r'; }
    static bool isNameLetter(char c)
    {
        return isDigit(c) || c == '_' || (lowerCase(c) >= 'a' && lowerCase(c) <= 'z');
    }
    static std::string_view withoutComment(std::string_view line)
    {
        bool quoted = false;
        for (std::size_t i = 0; i < line.size(); ++i) {
            if (quoted && line[i] == '\\')
                ++i;
            else if (line[i] == '"')
                quoted = !quoted;
            else if (line[i] == '#' && !quoted)
                return line.substr(0, i);
        }
        return line;
    }

    std::string_view m_rest;
    std::string m_name;
    std::string_view m_line{};
    std::size_t m_at = 0;
    std::size_t m_number = 0;
    bool m_ended = false;
};

} // namespace planloom
