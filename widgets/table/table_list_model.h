#pragma once

#include <QtCore/QAbstractTableModel>
#include <QtCore/QItemSelectionModel>

#include "widgets/table/constraint_table_model.h"
#include "widgets/table/id_index.h"
#include "widgets/table/list_arrangement.h"
#include "widgets/table/row_draft.h"

#include <cstdint>
#include <unordered_set>
#include <vector>

namespace planloom {

/// The rows as the grid shows them: sorted, filtered, under headings that collapse, and at the end a row that
/// is not there yet and becomes one when something is typed into it.
class TableListModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    using RowKey = ConstraintTableModel::RowKey;

    enum class Kind : std::uint8_t { Row, Heading, NewRow };
    enum Role {
        KindRole = Qt::UserRole + 40, ///< int: Kind
        CollapsedRole, ///< bool, of headings
        ActingRole, ///< bool: the row acts on what is selected.
        HoverRole, ///< bool: the row acts on what is under the pointer elsewhere.
    };

    explicit TableListModel(ConstraintTableModel *rows, QObject *parent = nullptr);

    ConstraintTableModel *rows() const { return m_source; }
    /// Words that a shown row has, in any cell.
    void setFilter(const QString &words);
    const QString &filter() const { return m_filter; }
    void setGrouping(RowGrouping grouping);
    RowGrouping grouping() const { return m_wanted.grouping; }
    bool isCollapsed(int row) const;
    void setCollapsed(int row, bool collapsed); ///< `row` is a heading's.
    /// Rows that act on what is selected.
    void setActing(std::unordered_set<RowKey> keys);
    /// Which of them are shown alone, or first.
    void setActingFilter(bool only, bool first, std::unordered_set<RowKey> keys);
    bool showsActingOnly() const { return m_wanted.chosenOnly; }
    void setHovered(std::unordered_set<RowKey> keys);

    void sort(int column, Qt::SortOrder order = Qt::AscendingOrder) override; ///< -1: as in the text.
    int sortColumn() const { return m_wanted.sortColumn; }
    Qt::SortOrder sortOrder() const { return m_wanted.sortOrder; }
    /// Rows stand as in the text: moving them makes sense.
    bool isInTextOrder() const { return m_wanted.isInTextOrder(); }

    Kind kindOf(int row) const;
    int sourceRow(int row) const; ///< -1 for headings and the new row.
    int rowOfSource(int sourceRow) const; ///< -1 if it is not shown.
    int rowOfKey(RowKey key) const;
    RowKey keyOf(int row) const; ///< 0 for headings and the new row.
    int newRow() const { return rowCount() - 1; }
    /// What has been typed into the new row, until it becomes one.
    const RowCells &draft() const { return m_draft.cells(); }
    void clearDraft();
    /// Adds the draft as a row, right or wrong. @return false if nothing was typed
    bool commitDraft();

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    bool setData(const QModelIndex &index, const QVariant &value, int role = Qt::EditRole) override;
    Qt::ItemFlags flags(const QModelIndex &index) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
    // Rows are dragged as their text, and moved within the table.
    QStringList mimeTypes() const override;
    QMimeData *mimeData(const QModelIndexList &indexes) const override;
    bool canDropMimeData(const QMimeData *data, Qt::DropAction action, int row, int column,
        const QModelIndex &parent) const override;
    bool dropMimeData(const QMimeData *data, Qt::DropAction action, int row, int column,
        const QModelIndex &parent) override;
    Qt::DropActions supportedDropActions() const override { return Qt::MoveAction; }
    Qt::DropActions supportedDragActions() const override { return Qt::MoveAction | Qt::CopyAction; }

Q_SIGNALS:
    void rowsDropped(std::vector<std::int32_t> lines, std::int32_t before); ///< To be moved before a line.
    void rowAdded(int line); ///< By typing into the new row.

private:
    using Id = ListArrangement::Id;
    static constexpr Id kHeading = ListArrangement::kHeading;

    void rebuild();
    void adopt(std::vector<Id> wanted);
    void removeSource(int first, int last);
    void sourceChanged(int first, int last, int firstColumn, int lastColumn);
    int groupAt(int row) const; ///< Of a heading.
    int sizeOfGroup(int group) const;
    QVariant headingData(int row, int column, int role) const;
    int positionOf(Id id) const;
    void draftChanged();

    ConstraintTableModel *m_source;
    ListArrangement m_wanted;
    std::vector<Id> m_ids;
    mutable IdIndex m_positions; ///< Made when asked for.
    mutable bool m_positionsValid = false;
    bool m_settling = false; ///< The document is changing: the list is put in order when it has changed.
    QString m_filter;
    std::vector<int> m_groupSizes;
    std::unordered_set<RowKey> m_acting;
    std::unordered_set<RowKey> m_hovered;
    RowDraft m_draft;
};

/// `rows` of `list` with all their cells, runs of them as one range.
QItemSelection wholeRows(const TableListModel &list, std::vector<int> rows);

} // namespace planloom
