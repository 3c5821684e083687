#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

enum class ShellTokenKind : std::uint8_t {
    Word, ///< With its quotes.
    End, ///< A line end, ";", "&&", "||", "|" or "&", as `text` says.
    Next, ///< ";;"
    Open, ///< "("
    Close, ///< ")"
    Array, ///< "NAME=(" or "NAME+=(": `text` is "NAME=" or "NAME+=".
    Directive, ///< What stands behind "#SBATCH".
};

struct ShellToken {
    ShellTokenKind kind = ShellTokenKind::End;
    std::string text{};
    std::int32_t line = 0;
};

struct ShellTokens {
    std::vector<ShellToken> tokens{};
    std::vector<std::int32_t> neverClosed{}; ///< Lines of quotes and brackets that are taken as letters.
};

/// Cuts a script into tokens; bodies of here-documents are read as lines of it. O(length).
ShellTokens shellTokens(std::string_view text);

/// Where what begins at `begin` ends: behind the quote, or the bracket that closes "${", "$(" or "`". The end
/// of the text if it never does. O(length).
std::size_t endOfShellPart(std::string_view text, std::size_t begin);

} // namespace planloom
