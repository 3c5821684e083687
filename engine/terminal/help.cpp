#include "engine/terminal/help.h"

#include "engine/terminal/completions.h"
#include "engine/terminal/exit_status.h"
#include "engine/terminal/manual.h"

#include <algorithm>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

namespace planloom {

namespace {

constexpr std::size_t kUsualWidth = 80;
constexpr std::size_t kLeastWidth = 40;
constexpr std::size_t kMostWidth = 120; ///< Longer lines are hard to read.
constexpr std::size_t kNarrow = 70; ///< Below it meanings stand under their names.

/// "  --cluster C    profile with ...": names in a column, meanings wrapped beside it.
std::string listOf(const std::vector<TermSpec> &terms, std::size_t width, std::size_t column)
{
    std::string text;
    const std::size_t indent = width < kNarrow ? 8 : column;
    for (const TermSpec &term : terms) {
        std::string left = "  " + term.name;
        const bool beside = width >= kNarrow && left.size() + 2 <= indent;
        left += beside ? std::string(indent - left.size(), ' ') : "\n" + std::string(indent, ' ');
        text += left + wrapped(term.meaning, width - indent, indent) + "\n";
    }
    return text;
}

std::string usageOf(const ProgramSpec &program, const VerbSpec &verb)
{
    std::string text = program.name;
    for (const std::string &word : {verb.name, verb.positional})
        if (!word.empty())
            text += " " + word;
    return text + " [options]";
}

std::string statusesText(std::size_t width)
{
    std::vector<TermSpec> terms;
    for (const auto &[status, meaning] : exitStatuses())
        terms.push_back({std::to_string(status), meaning});
    return "Exit status:\n" + listOf(terms, width, 6);
}

std::vector<TermSpec> optionTerms(const std::vector<OptionSpec> &options)
{
    std::vector<TermSpec> terms;
    for (const OptionSpec &option : options)
        terms.push_back(
            {"--" + option.name + (option.value.empty() ? "" : " " + option.value), option.meaning});
    return terms;
}

} // namespace

std::size_t terminalWidth()
{
    std::size_t width = kUsualWidth;
    winsize size{};
    if (::isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        width = size.ws_col;
    } else if (const char *const columns = std::getenv("COLUMNS")) {
        const long asked = std::strtol(columns, nullptr, 10);
        width = asked > 0 ? static_cast<std::size_t>(asked) : width;
    }
    return std::clamp(width, kLeastWidth, kMostWidth);
}

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent)
{
    std::string lines;
    std::size_t used = 0;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(' '), text.size());
        const std::string_view word = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (word.empty())
            continue;
        if (used > 0 && used + 1 + word.size() > width) {
            lines += "\n" + std::string(indent, ' ');
            used = 0;
        }
        lines += (used > 0 ? " " : "") + std::string(word);
        used += (used > 0 ? 1 : 0) + word.size();
    }
    return lines;
}

std::string helpOf(const ProgramSpec &program, const VerbSpec &verb, std::size_t width)
{
    std::string text = "Usage: " + wrapped(usageOf(program, verb), width - 7, 7) + "\n\n"
        + wrapped(verb.meaning, width, 0) + "\n";
    if (!verb.details.empty())
        text += "\n" + wrapped(verb.details, width, 0) + "\n";
    for (const std::string &paragraph : program.hasVerbs() ? std::vector<std::string>{} : program.paragraphs)
        text += "\n" + wrapped(paragraph, width, 0) + "\n";
    auto terms = optionTerms(verb.options);
    const auto always = optionTerms(standardOptions());
    terms.insert(terms.end(), always.begin(), always.end());
    text += "\nOptions:\n" + listOf(terms, width, 28);
    if (!verb.example.empty())
        text += "\nExample:\n  " + verb.example + "\n";
    return program.hasVerbs() ? text : text + "\n" + statusesText(width);
}

std::string helpOf(const ProgramSpec &program, std::size_t width)
{
    if (!program.hasVerbs())
        return helpOf(program, program.verbs.front(), width);
    std::string text = "Usage: " + program.name + " VERB ... [options]\n\n"
        + wrapped(program.meaning, width, 0) + "\n\nVerbs:\n";
    std::vector<TermSpec> terms;
    for (const VerbSpec &verb : program.verbs)
        terms.push_back({verb.name + (verb.positional.empty() ? "" : " " + verb.positional), verb.meaning});
    text += listOf(terms, width, 24);
    text += "\nOptions:\n" + listOf(optionTerms(standardOptions()), width, 24);
    for (const std::string &paragraph : program.paragraphs)
        text += "\n" + wrapped(paragraph, width, 0) + "\n";
    text += "\n"
        + wrapped(program.name
                + " VERB --help lists a verb's options, with an example. Behind -- every word is a "
                  "file or a name.",
            width, 0)
        + "\n\n" + statusesText(width);
    for (const VerbSpec &verb : program.verbs)
        if (!verb.example.empty())
            return text + "\nExample:\n  " + verb.example + "\n";
    return text;
}

std::optional<std::string> answerOf(const ProgramSpec &program, const std::vector<std::string> &words)
{
    if (words.empty())
        return std::nullopt;
    const std::string &first = words.front();
    const std::size_t width = terminalWidth();
    if (program.hasVerbs() && first == "help" && words.size() == 2)
        for (const VerbSpec &verb : program.verbs)
            if (verb.name == words[1])
                return helpOf(program, verb, width);
    if (words.size() > 1)
        return std::nullopt;
    if (first == "-h" || first == "--help" || (program.hasVerbs() && first == "help"))
        return helpOf(program, width);
    if (first == "--version")
        return program.name + " " + program.version + "\n";
    if (first == "--print-manual")
        return manualOf(program);
    for (const char *const shell : {"bash", "zsh", "fish"})
        if (first == std::string("--print-completions=") + shell)
            return completionsOf(program, shell);
    return std::nullopt;
}

} // namespace planloom
