#include "engine/terminal/manual.h"

#include "engine/terminal/exit_status.h"

#include <string_view>

namespace planloom {

namespace {

/// A line of text, in which nothing means something to roff.
std::string plain(std::string_view text)
{
    std::string escaped = text.starts_with('.') || text.starts_with('\'') ? "\\&" : "";
    for (const char c : text) {
        if (c == '\\')
            escaped += "\\e";
        else if (c == '-')
            escaped += "\\-";
        else if (c == '\'')
            escaped += "\\(aq";
        else if (c == '^')
            escaped += "\\(ha";
        else if (c == '~')
            escaped += "\\(ti";
        else
            escaped += c;
    }
    return escaped;
}

std::string upperCase(std::string text)
{
    for (char &c : text)
        c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    return text;
}

std::string capital(const std::string &text)
{
    return text.empty() ? text : upperCase(text.substr(0, 1)) + text.substr(1);
}

std::string synopsisOf(const ProgramSpec &program, const VerbSpec &verb)
{
    std::string line = ".B " + plain(program.name) + (verb.name.empty() ? "" : " " + plain(verb.name)) + "\n";
    if (!verb.positional.empty())
        line += ".I " + plain(verb.positional) + "\n";
    return line + "[options]\n";
}

std::string term(const std::string &name, const std::string &value, const std::string &meaning)
{
    return ".TP\n\\fB" + plain(name) + "\\fR" + (value.empty() ? "" : " \\fI" + plain(value) + "\\fR") + "\n"
        + plain(meaning) + "\n";
}

std::string optionsOf(const std::vector<OptionSpec> &options)
{
    std::string text;
    for (const OptionSpec &option : options)
        text += term("--" + option.name, option.value, option.meaning);
    return text;
}

std::string exampleOf(const VerbSpec &verb)
{
    return verb.example.empty() ? ""
                                : ".PP\nExample:\n.PP\n.nf\n.RS\n" + plain(verb.example) + "\n.RE\n.fi\n";
}

std::string termsOf(const char *title, const std::vector<TermSpec> &terms)
{
    std::string text = terms.empty() ? "" : ".SH " + std::string(title) + "\n";
    for (const TermSpec &each : terms)
        text += term(each.name, {}, each.meaning);
    return text;
}

} // namespace

std::string manualOf(const ProgramSpec &program)
{
    std::string text = ".\\\" Made by " + program.name + " \\-\\-print\\-manual.\n.TH "
        + upperCase(program.name) + " 1 \"\" \"Planloom " + program.version
        + "\" \"User Commands\"\n.SH NAME\n" + plain(program.name) + " \\- " + plain(program.meaning)
        + "\n.SH SYNOPSIS\n";
    for (std::size_t i = 0; i < program.verbs.size(); ++i)
        text += (i > 0 ? ".br\n" : "") + synopsisOf(program, program.verbs[i]);
    text += ".SH DESCRIPTION\n";
    if (!program.hasVerbs())
        text += plain(capital(program.verbs.front().meaning)) + "\n.PP\n";
    for (std::size_t i = 0; i < program.paragraphs.size(); ++i)
        text += (i > 0 ? ".PP\n" : "") + plain(program.paragraphs[i]) + "\n";
    if (program.hasVerbs()) {
        text += ".SH VERBS\n";
        for (const VerbSpec &verb : program.verbs)
            text += ".SS " + plain(verb.name + (verb.positional.empty() ? "" : " " + verb.positional)) + "\n"
                + plain(capital(verb.meaning)) + ".\n"
                + (verb.details.empty() ? "" : plain(verb.details) + "\n") + optionsOf(verb.options)
                + exampleOf(verb);
        text += ".SH OPTIONS OF EVERY VERB\n" + optionsOf(standardOptions());
    } else {
        text += ".SH OPTIONS\n" + optionsOf(program.verbs.front().options) + optionsOf(standardOptions())
            + exampleOf(program.verbs.front());
    }
    text += ".SH EXIT STATUS\n";
    for (const auto &[status, meaning] : exitStatuses())
        text += term(std::to_string(status), {}, meaning);
    text += termsOf("ENVIRONMENT", program.environment) + termsOf("FILES", program.files);
    for (std::size_t i = 0; i < program.seeAlso.size(); ++i)
        text += (i == 0 ? ".SH SEE ALSO\n.BR " : ",\n.BR ") + plain(program.seeAlso[i]) + " (1)";
    return text + (program.seeAlso.empty() ? "" : "\n");
}

} // namespace planloom
