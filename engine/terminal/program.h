#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace planloom {

/// An option of a verb: whether it takes a value, and which.
struct OptionSpec {
    std::string name{}; ///< Without the dashes.
    std::string value{}; ///< Name of its value in the help; empty for a switch.
    std::string meaning{};
    std::vector<std::string> words{}; ///< Values that shells complete, beside those that `value` lists.
};

/// A verb, as `PROGRAM VERB POSITIONAL [options]`.
struct VerbSpec {
    std::string name{}; ///< Empty for a program without verbs, which has one such entry.
    std::string positional{}; ///< "MODEL", "PLAN", "[FILE]"; several words for several of them, "FILE..." for
                              ///< any number.
    std::string meaning{};
    std::vector<OptionSpec> options{};
    std::string example{}; ///< A whole command.
    std::vector<std::string> words{}; ///< Positional words that shells complete.
    std::string details{}; ///< What its own help says behind its meaning.
};

/// A line of a list in help and man page: an environment variable, a file, a kind of word.
struct TermSpec {
    std::string name{};
    std::string meaning{};
};

/// A program as its help, its man page and its completions show it.
struct ProgramSpec {
    std::string name{};
    std::string version{};
    std::string meaning{}; ///< One line.
    std::vector<std::string> paragraphs{}; ///< What the help says behind its verbs.
    std::vector<VerbSpec> verbs{};
    std::vector<TermSpec> environment{};
    std::vector<TermSpec> files{};
    std::vector<std::string> seeAlso{}; ///< Other programs with man pages.

    bool hasVerbs() const { return verbs.size() != 1 || !verbs.front().name.empty(); }
};

/// --help and --version, which every verb of every program takes.
const std::vector<OptionSpec> &standardOptions();

/// What completes a value or a positional word.
struct ValueKind {
    std::vector<std::string> words{}; ///< Those that may stand there, as far as they are known.
    bool files = false; ///< Files may stand there, too.
    bool folders = false; ///< Folders alone.
};

/// From the name of a value: "none|selective|full" lists its words, "FILE" and "PLAN|MODEL" are files.
ValueKind kindOf(const OptionSpec &option);
ValueKind kindOfPositional(const VerbSpec &verb);

} // namespace planloom
