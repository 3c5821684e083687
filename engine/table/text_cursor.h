#pragma once

#include "engine/base/result.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace planloom {

/// Reads one line of text token by token; errors name the line and column (1-based) and what was expected.
///
/// A *word* is a run of letters, digits and `_ . * ? / - + ' [ ] $ ~ ^ % \`, or any text in "quotes", where
/// \" \\ \n \r \t and \xHH stand for themselves.
class TextCursor
{
public:
    explicit TextCursor(std::string_view line, std::int32_t lineNumber = 1, std::size_t firstColumn = 0)
        : m_text(line)
        , m_line(lineNumber)
        , m_firstColumn(firstColumn)
    {
    }

    void skipSpaces();
    bool atEnd(); ///< Nothing but spaces is left.
    /// The next character behind spaces; 0 at the end.
    char peek();
    /// Skips `symbol` if it comes next.
    bool take(char symbol);
    /// Skips the unquoted word `keyword` if exactly it comes next.
    bool takeWord(std::string_view keyword);
    /// The next unquoted word without skipping it; empty if there is none.
    std::string_view peekWord();
    /// A word or quoted text. @param expected  what to call it in the error
    Result<std::string> word(std::string_view expected);
    /// As `word`, and whether it was quoted.
    Result<std::string> word(std::string_view expected, bool &quoted);
    /// A decimal integer in [least, most], with sign.
    Result<std::int64_t> integer(std::string_view expected, std::int64_t least, std::int64_t most);
    Result<void> require(char symbol, std::string_view why);
    /// InvalidInput: "expected X, found Y" at the current place.
    Error expected(std::string_view what);
    Error at(std::size_t position, std::string message, std::string advice = {}) const;

    std::size_t position() const { return m_position; }
    std::string_view rest() const { return m_text.substr(m_position); }
    void rewind(std::size_t position) { m_position = position; }

private:
    std::string_view m_text{};
    std::size_t m_position = 0;
    std::int32_t m_line = 1;
    std::size_t m_firstColumn = 0;
};

bool isWordCharacter(char c);

/// `text` as a word of the text form: as it is where that reads back, else in quotes.
std::string asWord(std::string_view text);

/// `text` always in quotes.
std::string inQuotes(std::string_view text);

} // namespace planloom
