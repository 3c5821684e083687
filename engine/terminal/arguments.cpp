#include "engine/terminal/arguments.h"

#include "engine/base/nearest_name.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <limits>

namespace planloom {

namespace {

std::string commandOf(const ProgramSpec &program, const VerbSpec &verb)
{
    return program.name + (verb.name.empty() ? "" : " " + verb.name);
}

Error usage(std::string message, const ProgramSpec &program, const VerbSpec &verb)
{
    return {ErrorCode::InvalidInput, std::move(message),
        commandOf(program, verb) + " --help lists the options", "command line"};
}

bool isOption(const std::string &word)
{
    return word.size() > 1 && word[0] == '-';
}

const OptionSpec *findOption(const VerbSpec &verb, std::string_view name)
{
    for (const auto *list : {&verb.options, &standardOptions()})
        for (const OptionSpec &option : *list)
            if (option.name == name)
                return &option;
    return nullptr;
}

/// How many positional words a verb takes: at least and at most. The last one may be repeated where it ends
/// in "...".
std::pair<std::size_t, std::size_t> positionalsOf(const VerbSpec &verb)
{
    const std::string &words = verb.positional;
    const auto most =
        static_cast<std::size_t>(words.empty() ? 0 : 1 + std::count(words.begin(), words.end(), ' '));
    const std::size_t least = most - static_cast<std::size_t>(std::count(words.begin(), words.end(), '['));
    return {least, words.ends_with("...") ? std::numeric_limits<std::size_t>::max() : most};
}

Error tooMany(const ProgramSpec &program, const VerbSpec &verb, const std::string &word)
{
    const std::size_t most = positionalsOf(verb).second;
    return usage(most == 0 ? "expected options alone, found \"" + word + "\""
                           : std::string("expected ") + (most == 1 ? "one " : "") + verb.positional
                + ", found \"" + word + "\" too",
        program, verb);
}

} // namespace

Error unknownOption(const ProgramSpec &program, const VerbSpec &verb, const std::string &word)
{
    std::vector<std::string_view> known;
    for (const auto *list : {&verb.options, &standardOptions()})
        for (const OptionSpec &option : *list)
            known.push_back(option.name);
    const std::string name = word.substr(std::min(word.find_first_not_of('-'), word.size()));
    std::string message = "\"" + word + "\" is no option of " + commandOf(program, verb);
    if (const auto near = nearestNames(name, known); !didYouMean(name, known).empty() && !near.empty())
        message += ": did you mean --" + near.front() + "?";
    return usage(std::move(message), program, verb);
}

Result<const VerbSpec *> findVerb(const ProgramSpec &program, const std::string &name)
{
    std::vector<std::string_view> known;
    for (const VerbSpec &verb : program.verbs) {
        if (verb.name == name)
            return &verb;
        known.push_back(verb.name);
    }
    const std::string guess = didYouMean(name, known);
    return Error{ErrorCode::InvalidInput,
        "\"" + name + "\" is no " + (isOption(name) ? "option" : "verb") + " of " + program.name
            + (guess.empty() ? "" : ": " + guess),
        program.name + " --help lists the verbs", "command line"};
}

Result<Arguments> Arguments::parse(
    const ProgramSpec &program, const VerbSpec &verb, const std::vector<std::string> &words)
{
    Arguments arguments;
    const auto [least, most] = positionalsOf(verb);
    bool options = true;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string &word = words[i];
        if (options && word == "--") {
            options = false;
            continue;
        }
        if (!options || !isOption(word)) {
            if (arguments.m_positional.size() == most)
                return tooMany(program, verb, word);
            arguments.m_positional.push_back(word);
            continue;
        }
        if (word == "-h") {
            arguments.m_options.emplace("help", "");
            continue;
        }
        const std::size_t equals = word.find('=');
        const std::string name =
            word.rfind("--", 0) == 0 ? word.substr(2, equals == std::string::npos ? equals : equals - 2) : "";
        const OptionSpec *const option = findOption(verb, name);
        if (!option)
            return unknownOption(program, verb, word.substr(0, equals));
        if (option->value.empty()) {
            if (equals != std::string::npos)
                return usage("--" + name + " takes no value", program, verb);
            arguments.m_options.emplace(name, "");
        } else if (equals != std::string::npos) {
            arguments.m_options.emplace(name, word.substr(equals + 1));
        } else if (i + 1 < words.size()) {
            arguments.m_options.emplace(name, words[++i]);
        } else {
            return usage("--" + name + " expects " + option->value, program, verb);
        }
    }
    const bool isAsked = arguments.has("help") || arguments.has("version");
    if (arguments.m_positional.size() < least && !isAsked)
        return usage(commandOf(program, verb) + " expects " + verb.positional, program, verb);
    if (most < std::numeric_limits<std::size_t>::max())
        arguments.m_positional.resize(most);
    return arguments;
}

bool Arguments::has(std::string_view option) const
{
    return m_options.find(option) != m_options.end();
}

std::string Arguments::text(std::string_view option, std::string_view fallback) const
{
    // The last one wins, as users expect of repeated options.
    const auto [begin, end] = m_options.equal_range(option);
    return begin == end ? std::string(fallback) : std::prev(end)->second;
}

std::vector<std::string> Arguments::texts(std::string_view option) const
{
    std::vector<std::string> values;
    const auto [begin, end] = m_options.equal_range(option);
    for (auto it = begin; it != end; ++it)
        values.push_back(it->second);
    return values;
}

Result<std::int64_t> Arguments::integer(
    std::string_view option, std::int64_t fallback, std::int64_t least, std::int64_t most) const
{
    if (!has(option))
        return fallback;
    const std::string value = text(option);
    char *end = nullptr;
    errno = 0;
    const long long number = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end != '\0' || errno != 0 || number < least || number > most)
        return Error{ErrorCode::InvalidInput,
            "expected an integer from " + std::to_string(least) + " to " + std::to_string(most) + ", found \""
                + value + "\"",
            {}, "--" + std::string(option)};
    return static_cast<std::int64_t>(number);
}

Result<double> Arguments::real(std::string_view option, double fallback) const
{
    if (!has(option))
        return fallback;
    const std::string value = text(option);
    char *end = nullptr;
    const double number = std::strtod(value.c_str(), &end);
    if (value.empty() || *end != '\0' || !(number >= -1e30 && number <= 1e30))
        return Error{ErrorCode::InvalidInput, "expected a number, found \"" + value + "\"", {},
            "--" + std::string(option)};
    return number;
}

} // namespace planloom
