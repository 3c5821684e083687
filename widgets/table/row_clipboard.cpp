#include "widgets/table/row_clipboard.h"

#include "engine/base/text.h"
#include "engine/table/table_document.h"
#include "widgets/table/row_cells.h"

#include <algorithm>
#include <array>
#include <optional>

namespace planloom {

namespace {

using Fields = std::vector<std::string>;

/// Cells of one spreadsheet line; a quoted cell may hold tabs, and "" stands for a quote, as spreadsheets
/// write them.
Fields fieldsOf(std::string_view line)
{
    Fields fields;
    while (true) {
        std::string field;
        // A cell is quoted by the spreadsheet only if the quotes enclose all of it; other quotes are those of
        // a row.
        const bool isQuoted = !line.empty() && line.front() == '"';
        std::size_t end = isQuoted ? 1 : 0;
        bool closed = false;
        if (isQuoted) {
            for (; end < line.size(); ++end) {
                if (line[end] != '"') {
                    field += line[end];
                } else if (end + 1 < line.size() && line[end + 1] == '"') {
                    field += line[end++];
                } else {
                    closed = true;
                    ++end;
                    break;
                }
            }
            closed = closed && (end == line.size() || line[end] == '\t');
        }
        if (!closed) {
            end = std::min(line.find('\t'), line.size());
            field = line.substr(0, end);
        }
        fields.push_back(oneLine(field));
        if (end >= line.size())
            return fields;
        line.remove_prefix(end + 1);
    }
}

/// Which field holds which cell; -1 where none does.
struct Layout {
    int on = -1;
    int selector = -1;
    int rule = -1;
    int value = -1;
    int strength = -1;
    int origin = -1;
    int note = -1;
};

std::optional<Layout> layoutOfHeader(const Fields &fields)
{
    Layout layout;
    for (int i = 0; i < static_cast<int>(fields.size()); ++i) {
        const std::string name = lowerCase(fields[static_cast<std::size_t>(i)]);
        if (name == "on" || name == "enabled")
            layout.on = i;
        else if (name == "selector" || name == "operators")
            layout.selector = i;
        else if (name == "rule")
            layout.rule = i;
        else if (name == "value")
            layout.value = i;
        else if (name == "must/prefer" || name == "prefer" || name == "weight" || name == "strength")
            layout.strength = i;
        else if (name == "origin")
            layout.origin = i;
        else if (name == "note" || name == "notes")
            layout.note = i;
    }
    if (layout.rule < 0 || (layout.value < 0 && layout.selector < 0))
        return {};
    return layout;
}

/// Without headers: the rule is where most lines have a rule's word, and what stands around it follows the
/// grid's order.
std::optional<Layout> layoutOfBody(const std::vector<Fields> &lines)
{
    std::vector<int> votes;
    for (const Fields &fields : lines) {
        votes.resize(std::max(votes.size(), fields.size()));
        for (std::size_t i = 0; i < fields.size(); ++i)
            votes[i] += findRuleWord(fields[i]) ? 1 : 0;
    }
    const auto best = std::max_element(votes.begin(), votes.end());
    if (best == votes.end() || *best == 0)
        return {};
    Layout layout;
    layout.rule = static_cast<int>(best - votes.begin());
    if (layout.rule == 0) { // rule, selector, value
        layout.selector = 1;
        layout.value = 2;
        layout.note = 3;
        return layout;
    }
    layout.selector = layout.rule - 1;
    layout.value = layout.rule + 1;
    layout.note = layout.rule + 2;
    if (layout.selector > 0)
        layout.on = 0;
    return layout;
}

RowCells cellsOfFields(const Layout &layout, const Fields &fields)
{
    const auto at = [&](int column) {
        return column >= 0 && column < static_cast<int>(fields.size())
            ? fields[static_cast<std::size_t>(column)]
            : std::string{};
    };
    RowCells cells;
    const std::string on = lowerCase(at(layout.on));
    static constexpr std::array<std::string_view, 5> kOff{"off", "no", "false", "0", "n"};
    cells.enabled = std::find(kOff.begin(), kOff.end(), on) == kOff.end();
    cells.selector = at(layout.selector);
    cells.rule = lowerCase(at(layout.rule));
    cells.value = at(layout.value);
    cells.strength = lowerCase(at(layout.strength));
    if (!cells.strength.empty() && cells.strength.find_first_not_of("0123456789") == std::string::npos)
        cells.strength = cells.strength == "0" ? "must" : "prefer " + cells.strength; // a column of weights
    cells.origin = lowerCase(at(layout.origin));
    cells.note = at(layout.note);
    const RuleWord *rule = findRuleWord(cells.rule);
    if (rule && rule->shape == RuleShape::Plain) {
        if (cells.value.empty())
            cells.value = cells.selector;
        cells.selector.clear();
    }
    return cells;
}

} // namespace

Result<PastedRows> readPastedRows(std::string_view text)
{
    if (text.size() > kMostPastedBytes) {
        return Error{ErrorCode::ResourceLimit,
            "the text to paste has " + std::to_string(text.size()) + " bytes; at most "
                + std::to_string(kMostPastedBytes) + " are read",
            "paste fewer rows at once"};
    }
    PastedRows pasted;
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        while (!line.empty() && line.back() == '\r')
            line.remove_suffix(1);
        lines.push_back(line);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (lines.size() > kMostPastedLines) {
            return Error{ErrorCode::ResourceLimit,
                "the text to paste has more than " + std::to_string(kMostPastedLines) + " lines",
                "paste fewer rows at once"};
        }
    }
    std::vector<Fields> table;
    for (const std::string_view line : lines) {
        if (line.find('\t') != std::string_view::npos && !readLine(line)->row)
            table.push_back(fieldsOf(line));
    }
    std::optional<Layout> layout;
    bool hasHeader = false;
    if (!table.empty()) {
        layout = layoutOfHeader(table.front());
        hasHeader = layout.has_value();
        if (!layout)
            layout = layoutOfBody(table);
        pasted.fromSpreadsheet = layout.has_value();
    }
    std::size_t next = 0; // of `table`
    for (const std::string_view line : lines) {
        const auto read = readLine(line);
        const bool isTable = line.find('\t') != std::string_view::npos && !read->row;
        if (isTable && layout) {
            const Fields &fields = table[next++];
            if (hasHeader && next == 1)
                continue;
            if (std::all_of(
                    fields.begin(), fields.end(), [](const std::string &field) { return field.empty(); }))
                continue;
            const RowCells cells = cellsOfFields(*layout, fields);
            const auto wrong = checkCells(cells);
            wrong ? ++pasted.unreadable : ++pasted.rows;
            pasted.lines.push_back(lineOf(cells));
            // A line without rule and texts in the fields that the layout knows is kept as it was.
            if (wrong && cells.rule.empty())
                pasted.lines.back() = oneLine(line);
            continue;
        }
        if (read->isRemark()) {
            if (!line.empty())
                pasted.lines.emplace_back(line);
            continue;
        }
        read->row ? ++pasted.rows : ++pasted.unreadable;
        // Tabs around the cells of a row are no part of it; those inside quotes are.
        const bool hasTabs =
            line.find('\t') != std::string_view::npos && line.find('"') == std::string_view::npos;
        if (read->row)
            pasted.lines.push_back(hasTabs ? lineOf(cellsOf(line)) : std::string(line));
        else
            pasted.lines.push_back(oneLine(line));
    }
    if (pasted.rows == 0) {
        return Error{ErrorCode::InvalidInput,
            lines.empty() ? "there is no text to paste"
                          : "what is to be pasted holds no row: nothing was changed",
            "rows look like this: split layer:0-5 : batch by 2. From a spreadsheet: columns Selector, Rule "
            "and Value"};
    }
    return pasted;
}

} // namespace planloom
