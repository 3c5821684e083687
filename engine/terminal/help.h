#pragma once

#include "engine/terminal/program.h"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// Columns of the terminal that standard output is, or what COLUMNS says; else 80.
std::size_t terminalWidth();

/// `text` in lines of at most `width` letters, those behind the first with `indent` blanks before them. A
/// word that is longer stands on a line of its own.
std::string wrapped(std::string_view text, std::size_t width, std::size_t indent);

/// What `--help` prints of a program, and of one of its verbs.
std::string helpOf(const ProgramSpec &program, std::size_t width);
std::string helpOf(const ProgramSpec &program, const VerbSpec &verb, std::size_t width);

/// The text that a program prints for words that ask it about itself, and no more: `-h`, `--help`, `help
/// [VERB]`,
/// `--version`, and `--print-manual` and `--print-completions=SHELL`, from which packages are made.
/// Nothing for other words.
std::optional<std::string> answerOf(const ProgramSpec &program, const std::vector<std::string> &words);

} // namespace planloom
