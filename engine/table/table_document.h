#pragma once

#include "engine/base/result.h"
#include "engine/table/table.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// One line of a constraint table as a person wrote it, and what it says.
struct TableLine {
    std::string text{}; ///< Without its line end; carriage returns before it are kept.
    std::optional<Row> row{}; ///< If it holds a row; its note is that of this line alone.
    std::optional<Error> error{}; ///< If it should be a row and is not; `where` is "line:1:COLUMN".
    /// True for a line that is empty or a note.
    bool isRemark() const { return !row && !error; }
    friend bool operator==(const TableLine &, const TableLine &) = default;
};
using TableLineSnapshot = std::shared_ptr<const TableLine>;

/// What a line says. Never fails: what is no row has an error. O(length).
TableLineSnapshot readLine(std::string_view text);

/// Puts `inserted` in the place of `removed`, which stood at `line`. A table that ends in a line end has an
/// empty line behind it here, so that splices can give and take that line end.
struct TableSplice {
    std::int32_t line = 0; ///< 0-based.
    std::vector<std::string> removed{};
    std::vector<std::string> inserted{};
    friend bool operator==(const TableSplice &, const TableSplice &) = default;
};

/// A change of a table: splices carried out one after the other. Lines no splice touches stay as they are,
/// byte by byte. Empty changes nothing.
struct TableEdit {
    std::vector<TableSplice> splices{};
    bool empty() const { return splices.empty(); }
    friend bool operator==(const TableEdit &, const TableEdit &) = default;
};

/// The edit that takes `edit` back.
TableEdit inverse(const TableEdit &edit);

/// A constraint table as a document: rows, notes, empty lines and lines that are not (yet) rows, all as
/// written. The text form is its truth: `TableDocument(text).text() == text` for every text. A value; copies
/// share their lines and are O(lines) without copying text. Thread-safe to read.
class TableDocument
{
public:
    TableDocument() = default;
    /// O(length).
    explicit TableDocument(std::string_view text);

    std::string text() const;
    const std::vector<TableLineSnapshot> &lines() const { return m_lines; }
    std::int32_t lineCount() const { return static_cast<std::int32_t>(m_lines.size()); }
    /// Lines that hold a row, ascending: `rowLines()[i]` is the line of `table().rows[i]`.
    std::vector<std::int32_t> rowLines() const;
    /// All rows, with the notes of lines above them; what `readTable(text()).table` gives.
    ConstraintTable table() const;
    /// `where` is "line:LINE:COLUMN", both from 1, as `readTable` says it.
    std::vector<Error> errors() const;

    /// Carries `edit` out. @return InvalidInput if what a splice removes does not stand there (nothing is
    /// changed)
    Result<void> apply(const TableEdit &edit);

    /// What stands between line ends: `lines()`, and an empty one behind them where the text ends in a line
    /// end.
    std::vector<TableLineSnapshot> pieces() const;

    /// Equal pieces, and so equal texts: an edit fits the one if it fits the other.
    friend bool operator==(const TableDocument &, const TableDocument &);

private:
    std::vector<TableLineSnapshot> m_lines{};
    bool m_endsInLineEnd = true; ///< The last line has a line end; true for an empty table.
};

/// The smallest single splice between two documents (common lines at both ends stay); empty if they are
/// equal.
TableEdit difference(const TableDocument &before, const TableDocument &after);

// Ways to change a table. Lines are indices into `document.lines()`; those out of range, or without a row
// where a row is meant, are passed by. None carries the change out.

/// Behind the last row (and before remarks that end the table), with the line ends the table has.
TableEdit appendRows(const TableDocument &document, const std::vector<Row> &rows);
/// `line` is written anew as `row`. Remarks above it stay if its note is as before (the line's own, or all of
/// it as `table()` has it); else they make place for the new note.
TableEdit replaceRow(const TableDocument &document, std::int32_t line, const Row &row);
/// `line` becomes `text`, whatever it is.
TableEdit replaceLine(const TableDocument &document, std::int32_t line, std::string_view text);
/// `text` (one or more lines) before `line`; at the end for `lineCount()`.
TableEdit insertText(const TableDocument &document, std::int32_t line, std::string_view text);
TableEdit removeLines(const TableDocument &document, std::vector<std::int32_t> lines);
/// Rows switched on or off; nothing else of their text changes.
TableEdit setEnabled(const TableDocument &document, const std::vector<std::int32_t> &lines, bool enabled);
/// The lines, in their order, before the line `to` (in the numbering before the move).
TableEdit moveLines(const TableDocument &document, std::vector<std::int32_t> lines, std::int32_t to);
/// One edit after the other, where `second` was made for what `first` leaves.
TableEdit joined(TableEdit first, const TableEdit &second);

} // namespace planloom
