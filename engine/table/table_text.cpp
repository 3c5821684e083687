#include "engine/table/table_text.h"

#include "engine/table/kinds/all_kinds.h"
#include "engine/table/rule_form.h"
#include "engine/table/text_cursor.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

/// The selector and the rule of a row that begins with `word`, one of R's.
template<typename R> Result<void> parseBehind(TextCursor &cursor, std::string_view word, Row &row)
{
    if constexpr (RuleTraits<R>::shape != RuleShape::Plain) {
        TRY(row.selector, parseSelector(cursor));
    }
    if constexpr (RuleTraits<R>::shape == RuleShape::Colon) {
        TRY_VOID(cursor.require(':', "behind the selector"));
    }
    RuleForm form = RuleForm::readText(cursor, word);
    RuleTraits<R>::describe(form, row.rule.emplace<R>());
    return form.finish();
}

Error expectedRow(TextCursor &cursor)
{
    const auto &names = ruleNames();
    std::string list = "a row: ";
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i > 0)
            list += i + 1 < names.size() ? ", " : " or ";
        list += names[i];
    }
    return cursor.expected(list);
}

Result<void> parseRule(TextCursor &cursor, Row &row)
{
    const std::string_view word = cursor.peekWord();
    Result<void> result;
    const bool known = anyKind([&]<typename R>(std::type_identity<R>) {
        const auto &words = RuleTraits<R>::words;
        if (std::find(words.begin(), words.end(), word) == words.end())
            return false;
        cursor.takeWord(word);
        result = parseBehind<R>(cursor, word, row);
        return true;
    });
    if (!known)
        return expectedRow(cursor);
    return result;
}

Result<Row> parseRowAt(std::string_view line, std::int32_t number)
{
    TextCursor cursor(line, number);
    Row row;
    row.enabled = !cursor.takeWord("off");
    if (cursor.takeWord("prefer")) {
        row.preference = 1;
        if (const std::string_view next = cursor.peekWord();
            !next.empty() && next.find_first_not_of("+-0123456789") == std::string_view::npos) {
            TRY(const auto weight,
                cursor.integer("the weight of a preference, as in prefer 2", 1, kMostWeight));
            row.preference = static_cast<std::int32_t>(weight);
        }
    }
    TRY_VOID(parseRule(cursor, row));
    if (cursor.take('@')) {
        const std::string origin(cursor.peekWord());
        bool known = false;
        for (const RowOrigin candidate : {RowOrigin::Text, RowOrigin::Gesture, RowOrigin::Template,
                 RowOrigin::Import, RowOrigin::Solver}) {
            if (origin == nameOf(candidate)) {
                row.origin = candidate;
                known = true;
            }
        }
        if (!known)
            return cursor.expected("an origin: gesture, template, import, solver or text");
        cursor.takeWord(origin);
    }
    if (!cursor.atEnd())
        return cursor.expected("the end of the row");
    return row;
}

/// Where the note of `line` begins: a '#' outside quotes; npos if there is none.
std::size_t noteStart(std::string_view line)
{
    bool inside = false;
    for (std::size_t i = 0; i < line.size(); ++i) {
        if (inside && line[i] == '\\')
            ++i;
        else if (line[i] == '"')
            inside = !inside;
        else if (line[i] == '#' && !inside)
            return i;
    }
    return std::string_view::npos;
}

std::string_view noteText(std::string_view behindHash)
{
    if (!behindHash.empty() && behindHash.front() == ' ')
        behindHash.remove_prefix(1);
    return behindHash;
}

} // namespace

TableText readTable(std::string_view text)
{
    TableText result;
    std::optional<std::string> note; // of lines of notes alone, for the row below
    const auto addNote = [&](std::string_view line) {
        if (note)
            *note += '\n';
        else
            note.emplace();
        note->append(line);
    };
    std::int32_t number = 0;
    while (!text.empty()) {
        ++number;
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        while (!line.empty() && line.back() == '\r')
            line.remove_suffix(1);
        const std::size_t hash = noteStart(line);
        const std::string_view content = line.substr(0, hash);
        const bool blank = content.find_first_not_of(" \t") == std::string_view::npos;
        if (hash != std::string_view::npos)
            addNote(noteText(line.substr(hash + 1)));
        if (blank)
            continue;
        auto row = parseRowAt(content, number);
        if (row) {
            row->note = note.value_or("");
            result.table.rows.push_back(*std::move(row));
        } else {
            result.errors.push_back(std::move(row).error());
        }
        note.reset();
    }
    result.table.note = note.value_or("");
    return result;
}

Result<ConstraintTable> parseTable(std::string_view text)
{
    TableText result = readTable(text);
    if (!result.errors.empty())
        return std::move(result.errors.front());
    return std::move(result.table);
}

Result<Row> parseRow(std::string_view line)
{
    const std::size_t hash = noteStart(line);
    TRY(Row row, parseRowAt(line.substr(0, hash), 1));
    if (hash != std::string_view::npos)
        row.note = noteText(line.substr(hash + 1));
    return row;
}

} // namespace planloom
