#pragma once

#include "engine/table/table_document.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// Columns of the constraint table's grid, in their order on the screen.
enum class TableColumn : std::uint8_t {
    On,
    Number,
    Selector,
    Rule,
    Value,
    Strength,
    Binds,
    Price,
    Origin,
    Note
};
constexpr int kTableColumns = 10;

/// "Selector", "Value": the column's name in messages, as its header has it in English.
const char *nameOf(TableColumn column);

/// What the grid knows of a rule word.
struct RuleWord {
    std::string_view word{};
    RuleShape shape = RuleShape::Plain;
    bool needsValue = true; ///< False where "recompute layer:*" is a row already.
    std::string_view value{}; ///< An example of a value: "batch by 2 over tp".
    std::string_view valueStart{}; ///< In an `Open` row that can't be read: words the value may begin with,
                                   ///< with '|' between.
};

/// All rules, in the order people meet them; each is written in its file of kinds/.
const std::vector<RuleWord> &ruleWords();
/// Null for unknown ones.
const RuleWord *findRuleWord(std::string_view word);

/// A line of the table as the texts of its cells, as written.
struct RowCells {
    bool enabled = true;
    std::string selector{};
    std::string rule{}; ///< "split"
    std::string value{}; ///< "batch by 2"
    std::string strength{}; ///< "prefer", "prefer 2"; empty for a row that must hold.
    std::string origin{}; ///< "gesture"; empty for text.
    std::string note{}; ///< Of the line itself.
    friend bool operator==(const RowCells &, const RowCells &) = default;
};

/// Takes a line apart: as the row it is, or else by what its words look like, so that every part of what was
/// written is in some cell. O(length).
RowCells cellsOf(std::string_view line);
/// Puts cells together. `cellsOf(lineOf(c))` equals `c` where the cells are good ones, in one line each.
std::string lineOf(const RowCells &cells);

/// Why a cell's text is wrong.
struct CellProblem {
    TableColumn column = TableColumn::Value;
    std::string message{}; ///< "Value: expected a number of parts, found 'x'. For example: batch by 2"
    std::int32_t position = 0; ///< Where in the cell's text, in bytes from 0.
    friend bool operator==(const CellProblem &, const CellProblem &) = default;
};

/// The first wrong cell; nothing where `lineOf(cells)` is a row. O(length).
std::optional<CellProblem> checkCells(const RowCells &cells);
/// As `checkCells`, for one of the texts a person is typing: the other cells may be wrong or missing.
std::optional<CellProblem> checkSelector(std::string_view text);
std::optional<CellProblem> checkRule(std::string_view text);
std::optional<CellProblem> checkValue(std::string_view rule, std::string_view text);
std::optional<CellProblem> checkStrength(std::string_view text);
std::optional<CellProblem> checkOrigin(std::string_view text);

/// The weight that "prefer 2", or a plain "2", gives; 0 for "must" and an empty text; nothing if it is
/// neither.
std::optional<std::int32_t> weightOf(std::string_view strength);

/// Where the note of a line begins: a '#' outside quotes; npos if it has none.
std::size_t noteBegin(std::string_view line);

/// `text` in one line, without spaces at its ends.
std::string oneLine(std::string_view text);

} // namespace planloom
