#include "engine/terminal/program.h"

#include "engine/base/text.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace planloom {

namespace {

/// "NAME[:KEY=VALUE,...]|all" is NAME and all: what may follow a word is left out.
std::vector<std::string> alternativesOf(const std::string &value)
{
    std::vector<std::string> parts(1);
    bool isTail = false;
    for (const char c : value) {
        if (c == '|' || c == ' ') {
            parts.emplace_back();
            isTail = false;
        } else if (c == '[') {
            isTail = !parts.back().empty();
        } else if (c != ']' && !isTail) {
            parts.back() += c;
        }
    }
    return parts;
}

/// "1f1b", "fp32", "cuda-emulated": words that are typed as they are stand in small letters.
bool isTypedAsItIs(const std::string &word)
{
    return !word.empty()
        && std::none_of(word.begin(), word.end(), [](char c) { return c >= 'A' && c <= 'Z'; })
        && word.find("...") == std::string::npos && word.find('=') == std::string::npos;
}

bool namesFile(std::string_view word)
{
    constexpr std::array<std::string_view, 10> kFiles{
        "FILE", "PATH", "PLAN", "MODEL", "PLACEMENT", "PNG", "NEW", "PLAN_A", "PLAN_B", "C"};
    const std::string_view stem = word.substr(0, word.find('.'));
    return std::find(kFiles.begin(), kFiles.end(), stem) != kFiles.end();
}

ValueKind kindOfValue(const std::string &value, const std::vector<std::string> &words)
{
    ValueKind kind{words, false, false};
    for (const std::string &part : alternativesOf(value)) {
        kind.files = kind.files || namesFile(part);
        kind.folders = kind.folders || part == "DIR";
        if (isTypedAsItIs(part))
            kind.words.push_back(part);
    }
    return kind;
}

} // namespace

const std::vector<OptionSpec> &standardOptions()
{
    static const std::vector<OptionSpec> kOptions{
        {"help", "", "show this help, as -h does", {}}, {"version", "", "show the version", {}}};
    return kOptions;
}

ValueKind kindOf(const OptionSpec &option)
{
    return kindOfValue(option.value, option.words);
}

ValueKind kindOfPositional(const VerbSpec &verb)
{
    return kindOfValue(verb.positional, verb.words);
}

} // namespace planloom
