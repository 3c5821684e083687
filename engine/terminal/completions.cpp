#include "engine/terminal/completions.h"

#include <algorithm>
#include <set>

namespace planloom {

namespace {

std::string joined(const std::vector<std::string> &words)
{
    std::string text;
    for (const std::string &word : words)
        text += (text.empty() ? "" : " ") + word;
    return text;
}

std::vector<OptionSpec> allOptionsOf(const VerbSpec &verb)
{
    std::vector<OptionSpec> all;
    std::set<std::string> names; // "help" may be the verb's own
    for (const auto *list : {&verb.options, &standardOptions()})
        for (const OptionSpec &option : *list)
            if (names.insert(option.name).second)
                all.push_back(option);
    return all;
}

/// The first sentence's worth of a meaning: menus of shells have one line for each.
std::string brief(const std::string &meaning)
{
    constexpr std::size_t kMost = 72;
    std::string text =
        meaning.substr(0, std::min({meaning.find(" ("), meaning.find("; "), meaning.find(": ")}));
    if (text.size() > kMost)
        text = text.substr(0, text.rfind(' ', kMost)) + " ...";
    return text;
}

/// In single quotes, for bash and zsh.
std::string quotedForShell(const std::string &text)
{
    std::string quoted = "'";
    for (const char c : text)
        quoted += c == '\'' ? "'\\''" : std::string(1, c);
    return quoted + "'";
}

std::string functionNameOf(const ProgramSpec &program)
{
    std::string name = "_" + program.name;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

/// "words=...; files=...": what completes here.
std::string bashKind(const ValueKind &kind)
{
    return "words=" + quotedForShell(joined(kind.words)) + " files="
        + (kind.files          ? "file"
                : kind.folders ? "directory"
                               : "none");
}

std::string bashOptionsOf(const VerbSpec &verb)
{
    std::vector<std::string> names;
    for (const OptionSpec &option : allOptionsOf(verb))
        names.push_back("--" + option.name);
    return joined(names);
}

/// Bash breaks words at '=', so that `--backend=cu` comes as three.
std::string bashCompletions(const ProgramSpec &program)
{
    std::string text = "# Completions of " + program.name + ", made by " + program.name
        + " --print-completions=bash.\n" + functionNameOf(program) + R"(()
{
    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb= i
    local words= files=none options=
    COMPREPLY=()
    if [[ $current == = ]]; then
        current=
    elif [[ $before == = ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
)";
    if (program.hasVerbs()) {
        std::vector<std::string> verbs;
        for (const VerbSpec &verb : program.verbs)
            verbs.push_back(verb.name);
        text += "    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W '" + joined(verbs)
            + " help --help --version' -- \"$current\"))\n        return\n    fi\n"
              "    verb=${COMP_WORDS[1]}\n    if [[ $verb == help ]]; then\n        ((COMP_CWORD == 2)) && "
              "COMPREPLY=($(compgen -W '"
            + joined(verbs) + "' -- \"$current\"))\n        return\n    fi\n";
    }
    text += "    case $verb in\n";
    for (const VerbSpec &verb : program.verbs) {
        const std::string label = verb.name.empty() ? "''" : verb.name;
        text += "        " + label + ") options='" + bashOptionsOf(verb) + "' "
            + bashKind(kindOfPositional(verb)) + " ;;\n";
    }
    text += "    esac\n    for ((i = 1; i < COMP_CWORD; ++i)); do\n"
            "        [[ ${COMP_WORDS[i]} == -- ]] && options= before=\n    done\n"
            "    case $verb:$before in\n";
    for (const VerbSpec &verb : program.verbs)
        for (const OptionSpec &option : verb.options)
            if (!option.value.empty())
                text += "        " + verb.name + ":--" + option.name
                    + ") options= " + bashKind(kindOf(option)) + " ;;\n";
    return text + R"(    esac
    if [[ $current == -* ]]; then
        COMPREPLY=($(compgen -W "$options" -- "$current"))
        return
    fi
    COMPREPLY=($(compgen -W "$words" -- "$current"))
    if [[ $files != none ]]; then
        compopt -o filenames 2>/dev/null
        while IFS= read -r i; do
            COMPREPLY+=("$i")
        done < <(compgen -A "$files" -- "$current")
    fi
}
complete -F )"
        + functionNameOf(program) + " " + program.name + "\n";
}

std::string zshKind(const ValueKind &kind)
{
    const std::string words = kind.words.empty() ? "" : "(" + joined(kind.words) + ")";
    if (!kind.files && !kind.folders)
        return words.empty() ? " " : words;
    const std::string files = kind.files ? "_files" : "_files -/";
    if (words.empty())
        return files;
    return "{_alternative \"words\\:word\\:" + words + "\" \"files\\:file\\:" + files + "\"}";
}

/// Of _arguments' own signs, in a description.
std::string zshText(const std::string &text)
{
    std::string escaped;
    for (const char c : text) {
        if (c == '[' || c == ']' || c == ':' || c == '\\')
            escaped += '\\';
        escaped += c;
    }
    return escaped;
}

std::string zshArgumentsOf(const VerbSpec &verb)
{
    std::string text = "_arguments -S";
    for (const OptionSpec &option : allOptionsOf(verb)) {
        std::string spec = "*--" + option.name + (option.value.empty() ? "" : "=") + "["
            + zshText(brief(option.meaning)) + "]";
        if (!option.value.empty())
            spec += ":" + zshText(option.value) + ":" + zshKind(kindOf(option));
        text += " \\\n            " + quotedForShell(spec);
    }
    text += " \\\n            '(- *)-h[show this help]'";
    if (!verb.positional.empty())
        text += " \\\n            "
            + quotedForShell("*:" + zshText(verb.positional) + ":" + zshKind(kindOfPositional(verb)));
    return text + "\n";
}

std::string zshCompletions(const ProgramSpec &program)
{
    std::string text = "#compdef " + program.name + "\n# Made by " + program.name
        + " --print-completions=zsh.\n\n" + functionNameOf(program) + "()\n{\n";
    if (!program.hasVerbs()) {
        text += "    " + zshArgumentsOf(program.verbs.front());
    } else {
        text += "    if ((CURRENT == 2)); then\n        local -a verbs=(\n";
        for (const VerbSpec &verb : program.verbs)
            text += "            " + quotedForShell(zshText(verb.name) + ":" + brief(verb.meaning)) + "\n";
        text += "            'help:show the help of a verb'\n        )\n        _describe verb verbs\n"
                "        _arguments '--help[show this help]' '--version[show the version]'\n        return\n "
                "   fi\n"
                "    local verb=${words[2]}\n    shift words\n    ((CURRENT--))\n    case $verb in\n";
        for (const VerbSpec &verb : program.verbs)
            text += "        " + verb.name + ")\n            " + zshArgumentsOf(verb) + "            ;;\n";
        text += "    esac\n";
    }
    return text + "}\n\n" + functionNameOf(program) + " \"$@\"\n";
}

/// In single quotes, for fish.
std::string quotedForFish(const std::string &text)
{
    std::string quoted = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\')
            quoted += '\\';
        quoted += c;
    }
    return quoted + "'";
}

std::string fishKind(const ValueKind &kind)
{
    std::string text = kind.files ? " -rF" : " -x";
    if (kind.folders && !kind.files)
        return text + " -a '(__fish_complete_directories)'";
    return kind.words.empty() ? text : text + " -a " + quotedForFish(joined(kind.words));
}

std::string fishCompletions(const ProgramSpec &program)
{
    const std::string line = "complete -c " + program.name;
    std::string text =
        "# Completions of " + program.name + ", made by " + program.name + " --print-completions=fish.\n";
    if (program.hasVerbs()) {
        text += line + " -f\n";
        for (const VerbSpec &verb : program.verbs)
            text += line + " -n __fish_use_subcommand -a " + verb.name + " -d "
                + quotedForFish(brief(verb.meaning)) + "\n";
        text += line + " -n __fish_use_subcommand -a help -d 'show the help of a verb'\n" + line
            + " -n __fish_use_subcommand -l version -d 'show the version'\n";
    }
    for (const VerbSpec &verb : program.verbs) {
        const std::string start =
            line + (verb.name.empty() ? "" : " -n '__fish_seen_subcommand_from " + verb.name + "'");
        const ValueKind kind = kindOfPositional(verb);
        if (kind.files)
            text += start + " -F\n";
        if (!kind.words.empty())
            text += start + " -a " + quotedForFish(joined(kind.words)) + "\n";
        for (const OptionSpec &option : allOptionsOf(verb))
            text += start + " -l " + option.name + (option.value.empty() ? "" : fishKind(kindOf(option)))
                + " -d " + quotedForFish(brief(option.meaning)) + "\n";
    }
    return text + line + " -s h -d 'show this help'\n";
}

} // namespace

std::string completionsOf(const ProgramSpec &program, std::string_view shell)
{
    if (shell == "bash")
        return bashCompletions(program);
    if (shell == "zsh")
        return zshCompletions(program);
    if (shell == "fish")
        return fishCompletions(program);
    return {};
}

} // namespace planloom
