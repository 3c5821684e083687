#pragma once

#include <QtCore/QAbstractTableModel>

#include "widgets/table/constraint_table_model.h"

#include <cstdint>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

namespace planloom {

/// By what the rows are put together under headings.
enum class RowGrouping : std::uint8_t { None, Rule, Origin };

/// The rows as the grid shows them: sorted, filtered, under headings that collapse, and at the end a row that is not there
/// yet and becomes one when something is typed into it.
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
    RowGrouping grouping() const { return m_grouping; }
    bool isCollapsed(int row) const;
    void setCollapsed(int row, bool collapsed); ///< `row` is a heading's.
    /// Rows that act on what is selected.
    void setActing(std::unordered_set<RowKey> keys);
    /// Which of them are shown alone, or first.
    void setActingFilter(bool only, bool first, std::unordered_set<RowKey> keys);
    bool showsActingOnly() const { return m_actingOnly; }
    void setHovered(std::unordered_set<RowKey> keys);

    void sort(int column, Qt::SortOrder order = Qt::AscendingOrder) override; ///< -1: as in the text.
    int sortColumn() const { return m_sortColumn; }
    Qt::SortOrder sortOrder() const { return m_sortOrder; }
    /// Rows stand as in the text: moving them makes sense.
    bool isInTextOrder() const;

    Kind kindOf(int row) const;
    int sourceRow(int row) const; ///< -1 for headings and the new row.
    int rowOfSource(int sourceRow) const; ///< -1 if it is not shown.
    int rowOfKey(RowKey key) const;
    RowKey keyOf(int row) const; ///< 0 for headings and the new row.
    int newRow() const { return rowCount() - 1; }
    /// What has been typed into the new row, until it becomes one.
    const RowCells &draft() const { return m_draft; }
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
    bool canDropMimeData(const QMimeData *data, Qt::DropAction action, int row, int column, const QModelIndex &parent) const override;
    bool dropMimeData(const QMimeData *data, Qt::DropAction action, int row, int column, const QModelIndex &parent) override;
    Qt::DropActions supportedDropActions() const override { return Qt::MoveAction; }
    Qt::DropActions supportedDragActions() const override { return Qt::MoveAction | Qt::CopyAction; }

Q_SIGNALS:
    void rowsDropped(std::vector<std::int32_t> lines, std::int32_t before); ///< To be moved before a line.
    void rowAdded(int line); ///< By typing into the new row.

private:
    /// A row's key, or a heading's number with the top bit set, or 0 for the new row.
    using Id = std::uint64_t;
    static constexpr Id kHeading = Id{1} << 63;

    std::vector<Id> target() const;
    void rebuild();
    void removeSource(int first, int last);
    void sourceChanged(int first, int last, int firstColumn, int lastColumn);
    bool shows(int sourceRow) const;
    int groupOf(int sourceRow) const;
    QString titleOfGroup(int group) const;
    QString accessibleHeading(int row) const;
    QVariant draftData(TableColumn column, int role) const;
    std::string fieldOf(int sourceRow, TableColumn column) const;
    int positionOf(Id id) const;
    void draftChanged();

    ConstraintTableModel *m_source;
    std::vector<Id> m_ids;
    mutable std::unordered_map<Id, int> m_positions; ///< Made when asked for.
    mutable bool m_positionsValid = false;
    QString m_filter;
    std::vector<std::string> m_filterWords;
    RowGrouping m_grouping = RowGrouping::None;
    std::set<int> m_collapsed; ///< Groups.
    std::vector<int> m_groupSizes;
    int m_sortColumn = -1;
    Qt::SortOrder m_sortOrder = Qt::AscendingOrder;
    std::unordered_set<RowKey> m_acting;
    std::unordered_set<RowKey> m_hovered;
    std::unordered_set<RowKey> m_chosen; ///< What the acting filter goes by.
    bool m_actingOnly = false;
    bool m_actingFirst = false;
    RowCells m_draft;
};

} // namespace planloom
