#include "engine/table/table_text.h"

#include "engine/table/rule_form.h"

namespace planloom {

namespace {

/// Each line of `note` as "# line".
void appendNote(std::string &text, std::string_view note)
{
    while (true) {
        const std::size_t end = note.find('\n');
        text += "# ";
        text += note.substr(0, end);
        text += '\n';
        if (end == std::string_view::npos)
            return;
        note.remove_prefix(end + 1);
    }
}

} // namespace

std::string print(const Rule &rule)
{
    return std::visit(
        []<typename R>(const R &itself) { return textOf(RuleTraits<R>::describe, itself); }, rule);
}

std::string print(const Row &row)
{
    std::string text = row.enabled ? "" : "off ";
    if (row.preference > 0)
        text +=
            row.preference == 1 ? std::string("prefer ") : "prefer " + std::to_string(row.preference) + ' ';
    const char *word = nameOf(row.rule);
    text += word;
    if (hasSelector(row.rule)) {
        text += ' ' + toString(row.selector);
        if (shapeOf(word) == RuleShape::Colon)
            text += " :";
    }
    if (const std::string rule = print(row.rule); !rule.empty())
        text += ' ' + rule;
    return text;
}

std::string print(const ConstraintTable &table)
{
    std::string text;
    for (const Row &row : table.rows) {
        const bool above = row.note.find('\n') != std::string::npos;
        if (above)
            appendNote(text, row.note);
        text += print(row);
        if (row.origin != RowOrigin::Text)
            text += std::string("  @") + nameOf(row.origin);
        if (!above && !row.note.empty())
            text += "  # " + row.note;
        text += '\n';
    }
    if (!table.note.empty())
        appendNote(text, table.note);
    return text;
}

} // namespace planloom
