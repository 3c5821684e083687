#pragma once

#include <QtCore/QVariant>

#include "widgets/table/row_cells.h"

#include <string>

namespace planloom {

/// What has been typed into the row that is not there yet, until it becomes one.
class RowDraft
{
public:
    const RowCells &cells() const { return m_cells; }
    bool isEmpty() const { return m_cells == RowCells{}; }
    void clear() { m_cells = {}; }

    /// Puts `text` (one line) into a cell; a whole row typed where a row begins fills all of them.
    ///
    /// @return false if the column takes no text
    bool write(TableColumn column, const std::string &text);
    /// Enough is there for a row, right or wrong.
    bool isComplete() const;
    /// The cell of the draft as a view wants it.
    QVariant data(TableColumn column, int role) const;
    static bool takesText(TableColumn column);

private:
    const std::string *field(TableColumn column) const;

    RowCells m_cells;
};

} // namespace planloom
