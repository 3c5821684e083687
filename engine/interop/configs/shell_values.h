#pragma once

#include "engine/interop/configs/shell_text.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

constexpr char kLineGoesOn = '\x01'; ///< In a value: its line goes on in the next one.

bool isNameLetter(char c); ///< Of names of variables.
/// Where the name that begins at `at` ends.
std::size_t endOfName(std::string_view text, std::size_t at);

/// What + - * / % and brackets of whole numbers below two billion come to; nothing for other texts.
std::optional<std::int64_t> integerOf(std::string_view text);

/// Variables of a script, and what words come to with them.
class ShellValues
{
public:
    void set(std::string_view name, std::vector<ShellWord> words)
    {
        m_variables[std::string(name)] = std::move(words);
    }
    /// "NAME+=": further words of an array, or letters behind the last word.
    void append(std::string_view name, std::vector<ShellWord> words, bool isArray);
    bool isTooLarge() const; ///< All that was made so far: no more is made.

    /// The words that one word with its quotes comes to; `splits`: at spaces of variables outside of quotes.
    std::vector<ShellWord> wordsOf(std::string_view raw, std::int32_t line, bool splits = true);
    std::string textOf(std::string_view raw, std::int32_t line);

private:
    /// Where a part of a word stands, and how it is read.
    struct Part {
        std::int32_t line = 0;
        bool isQuoted = false;
        bool splits = true;
        std::int32_t depth = 0;
    };
    void put(std::string_view text, std::int32_t line);
    void finishWord(std::int32_t line);
    void putSplit(std::string_view text, std::int32_t line);
    void putWords(const std::vector<ShellWord> &words, std::string_view marks, const Part &part);
    std::size_t variable(std::string_view raw, std::size_t at, const Part &part);
    void braced(std::string_view inner, std::string_view whole, const Part &part);
    void expand(std::string_view raw, Part part);

    std::map<std::string, std::vector<ShellWord>, std::less<>> m_variables{};
    std::vector<ShellWord> m_words{};
    ShellWord m_word{};
    bool m_isWord = false;
    std::size_t m_bytes = 0; ///< Of all words that were made.
};

} // namespace planloom
