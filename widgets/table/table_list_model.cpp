#include "widgets/table/table_list_model.h"

#include <QtCore/QMimeData>

#include <algorithm>
#include <set>

namespace planloom {

namespace {

/// More runs than this are told as a reset.
constexpr int kMostRuns = 48;
constexpr const char *kRowsType = "application/x-planloom-rows";

} // namespace

TableListModel::TableListModel(ConstraintTableModel *rows, QObject *parent)
    : QAbstractTableModel(parent)
    , m_source(rows)
{
    connect(rows, &QAbstractItemModel::rowsAboutToBeRemoved, this,
        [this](const QModelIndex &, int first, int last) { removeSource(first, last); });
    connect(rows, &ConstraintTableModel::documentAboutToBeSet, this, [this] { m_settling = true; });
    connect(rows, &ConstraintTableModel::documentSet, this, [this] {
        m_settling = false;
        rebuild();
    });
    connect(rows, &QAbstractItemModel::dataChanged, this,
        [this](const QModelIndex &topLeft, const QModelIndex &bottomRight) {
            sourceChanged(topLeft.row(), bottomRight.row(), topLeft.column(), bottomRight.column());
        });
    m_ids = arranged(*m_source, m_wanted).ids;
}

void TableListModel::rebuild()
{
    ArrangedRows wanted = arranged(*m_source, m_wanted);
    const bool sizesDiffer = wanted.groupSizes != m_groupSizes;
    m_groupSizes = std::move(wanted.groupSizes);
    adopt(std::move(wanted.ids));
    if (sizesDiffer) {
        for (std::size_t i = 0; i < m_ids.size(); ++i) {
            if ((m_ids[i] & kHeading) != 0)
                Q_EMIT dataChanged(
                    index(static_cast<int>(i), 0), index(static_cast<int>(i), kTableColumns - 1));
        }
    }
}

void TableListModel::adopt(std::vector<Id> wanted)
{
    std::size_t head = 0;
    while (head < m_ids.size() && head < wanted.size() && m_ids[head] == wanted[head])
        ++head;
    std::size_t tail = 0;
    while (tail < m_ids.size() - head && tail < wanted.size() - head
        && m_ids[m_ids.size() - 1 - tail] == wanted[wanted.size() - 1 - tail])
        ++tail;
    const auto middle = [&](const std::vector<Id> &ids) {
        return std::vector<Id>(
            ids.begin() + static_cast<std::ptrdiff_t>(head), ids.end() - static_cast<std::ptrdiff_t>(tail));
    };
    const std::vector<Id> before = middle(m_ids);
    const std::vector<Id> after = middle(wanted);
    const IdIndex beforeSet(before);
    const IdIndex afterSet(after);
    const auto runsMissing = [](const std::vector<Id> &ids, const IdIndex &in) {
        int runs = 0;
        bool inside = false;
        for (const Id id : ids) {
            const bool missing = !in.contains(id);
            runs += missing && !inside ? 1 : 0;
            inside = missing;
        }
        return runs;
    };
    if (runsMissing(before, afterSet) + runsMissing(after, beforeSet) > kMostRuns) {
        beginResetModel();
        m_ids = std::move(wanted);
        m_positionsValid = false;
        endResetModel();
        return;
    }
    // What goes,
    for (std::size_t i = m_ids.size() - tail; i-- > head;) {
        if (afterSet.contains(m_ids[i]))
            continue;
        const std::size_t last = i;
        while (i > head && !afterSet.contains(m_ids[i - 1]))
            --i;
        beginRemoveRows({}, static_cast<int>(i), static_cast<int>(last));
        m_ids.erase(m_ids.begin() + static_cast<std::ptrdiff_t>(i),
            m_ids.begin() + static_cast<std::ptrdiff_t>(last + 1));
        m_positionsValid = false;
        endRemoveRows();
    }
    // what stands elsewhere,
    std::vector<Id> staying;
    for (const Id id : after) {
        if (beforeSet.contains(id))
            staying.push_back(id);
    }
    if (!std::equal(staying.begin(), staying.end(), m_ids.begin() + static_cast<std::ptrdiff_t>(head))) {
        Q_EMIT layoutAboutToBeChanged({}, QAbstractItemModel::VerticalSortHint);
        const QModelIndexList from = persistentIndexList();
        std::vector<Id> fromIds;
        for (const QModelIndex &index : from)
            fromIds.push_back(m_ids[static_cast<std::size_t>(index.row())]);
        std::copy(staying.begin(), staying.end(), m_ids.begin() + static_cast<std::ptrdiff_t>(head));
        m_positionsValid = false;
        QModelIndexList to;
        for (qsizetype i = 0; i < from.size(); ++i)
            to << index(positionOf(fromIds[static_cast<std::size_t>(i)]), from[i].column());
        changePersistentIndexList(from, to);
        Q_EMIT layoutChanged({}, QAbstractItemModel::VerticalSortHint);
    }
    // and what comes.
    for (std::size_t i = head; i < wanted.size() - tail; ++i) {
        if (beforeSet.contains(wanted[i]))
            continue;
        std::size_t end = i + 1;
        while (end < wanted.size() - tail && !beforeSet.contains(wanted[end]))
            ++end;
        beginInsertRows({}, static_cast<int>(i), static_cast<int>(end - 1));
        m_ids.insert(m_ids.begin() + static_cast<std::ptrdiff_t>(i),
            wanted.begin() + static_cast<std::ptrdiff_t>(i),
            wanted.begin() + static_cast<std::ptrdiff_t>(end));
        m_positionsValid = false;
        endInsertRows();
        i = end - 1;
    }
}

void TableListModel::removeSource(int first, int last)
{
    std::vector<Id> keys;
    keys.reserve(static_cast<std::size_t>(last - first + 1));
    for (int row = first; row <= last; ++row)
        keys.push_back(m_source->keyAt(row));
    const IdIndex gone(keys);
    int runs = 0;
    for (std::size_t i = 0; i < m_ids.size(); ++i)
        runs += gone.contains(m_ids[i]) && (i == 0 || !gone.contains(m_ids[i - 1])) ? 1 : 0;
    if (runs > kMostRuns) {
        beginResetModel();
        m_ids.erase(std::remove_if(m_ids.begin(), m_ids.end(), [&](Id id) { return gone.contains(id); }),
            m_ids.end());
        m_positionsValid = false;
        endResetModel();
        return;
    }
    for (std::size_t i = m_ids.size(); i-- > 0;) {
        if (!gone.contains(m_ids[i]))
            continue;
        const std::size_t end = i;
        while (i > 0 && gone.contains(m_ids[i - 1]))
            --i;
        beginRemoveRows({}, static_cast<int>(i), static_cast<int>(end));
        m_ids.erase(m_ids.begin() + static_cast<std::ptrdiff_t>(i),
            m_ids.begin() + static_cast<std::ptrdiff_t>(end + 1));
        m_positionsValid = false;
        endRemoveRows();
    }
}

void TableListModel::sourceChanged(int first, int last, int firstColumn, int lastColumn)
{
    constexpr int kOneByOne = 32;
    if (last - first < kOneByOne) {
        for (int row = first; row <= last; ++row) {
            const int shown = rowOfSource(row);
            if (shown >= 0)
                Q_EMIT dataChanged(index(shown, firstColumn), index(shown, lastColumn));
        }
    } else if (rowCount() > 1) {
        Q_EMIT dataChanged(index(0, firstColumn), index(rowCount() - 1, lastColumn));
    }
    if (m_settling)
        return;
    const bool ordered = m_wanted.sortColumn >= firstColumn && m_wanted.sortColumn <= lastColumn;
    const bool all = lastColumn - firstColumn > 1;
    if (ordered || (all && (m_wanted.grouping != RowGrouping::None || !m_wanted.words.empty())))
        rebuild();
}

void TableListModel::setFilter(const QString &words)
{
    if (words == m_filter)
        return;
    m_filter = words;
    m_wanted.words = filterWords(words);
    rebuild();
}

void TableListModel::setGrouping(RowGrouping grouping)
{
    if (grouping == m_wanted.grouping)
        return;
    m_wanted.grouping = grouping;
    m_wanted.collapsed.clear();
    // Headings of other groupings have the same numbers: they must not be taken for these.
    for (std::size_t i = m_ids.size(); i-- > 0;) {
        if ((m_ids[i] & kHeading) == 0)
            continue;
        beginRemoveRows({}, static_cast<int>(i), static_cast<int>(i));
        m_ids.erase(m_ids.begin() + static_cast<std::ptrdiff_t>(i));
        m_positionsValid = false;
        endRemoveRows();
    }
    rebuild();
}

int TableListModel::groupAt(int row) const
{
    return static_cast<int>(m_ids[static_cast<std::size_t>(row)] & ~kHeading);
}

int TableListModel::sizeOfGroup(int group) const
{
    return static_cast<std::size_t>(group) < m_groupSizes.size()
        ? m_groupSizes[static_cast<std::size_t>(group)]
        : 0;
}

bool TableListModel::isCollapsed(int row) const
{
    return kindOf(row) == Kind::Heading && m_wanted.collapsed.count(groupAt(row)) != 0;
}

void TableListModel::setCollapsed(int row, bool collapsed)
{
    if (kindOf(row) != Kind::Heading || isCollapsed(row) == collapsed)
        return;
    const int group = groupAt(row);
    if (collapsed)
        m_wanted.collapsed.insert(group);
    else
        m_wanted.collapsed.erase(group);
    rebuild();
    const int now = positionOf(kHeading | static_cast<Id>(group));
    Q_EMIT dataChanged(index(now, 0), index(now, kTableColumns - 1));
}

void TableListModel::setActing(std::unordered_set<RowKey> keys)
{
    if (keys == m_acting)
        return;
    m_acting = std::move(keys);
    if (rowCount() > 1)
        Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, kTableColumns - 1), {ActingRole});
}

void TableListModel::setActingFilter(bool only, bool first, std::unordered_set<RowKey> keys)
{
    if (only == m_wanted.chosenOnly && first == m_wanted.chosenFirst && keys == m_wanted.chosen)
        return;
    m_wanted.chosenOnly = only;
    m_wanted.chosenFirst = first;
    m_wanted.chosen = std::move(keys);
    rebuild();
}

void TableListModel::setHovered(std::unordered_set<RowKey> keys)
{
    if (keys == m_hovered)
        return;
    m_hovered = std::move(keys);
    if (rowCount() > 1)
        Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, kTableColumns - 1), {HoverRole});
}

void TableListModel::sort(int column, Qt::SortOrder order)
{
    if (column == m_wanted.sortColumn && order == m_wanted.sortOrder)
        return;
    m_wanted.sortColumn = column;
    m_wanted.sortOrder = order;
    rebuild();
}

TableListModel::Kind TableListModel::kindOf(int row) const
{
    if (row < 0 || row >= rowCount())
        return Kind::NewRow;
    const Id id = m_ids[static_cast<std::size_t>(row)];
    return id == 0 ? Kind::NewRow : (id & kHeading) != 0 ? Kind::Heading : Kind::Row;
}

TableListModel::RowKey TableListModel::keyOf(int row) const
{
    return kindOf(row) == Kind::Row ? m_ids[static_cast<std::size_t>(row)] : 0;
}

int TableListModel::sourceRow(int row) const
{
    const RowKey key = keyOf(row);
    return key == 0 ? -1 : m_source->rowOfKey(key);
}

int TableListModel::positionOf(Id id) const
{
    if (!m_positionsValid) {
        m_positions = IdIndex(m_ids);
        m_positionsValid = true;
    }
    return m_positions.find(id);
}

int TableListModel::rowOfKey(RowKey key) const
{
    return key == 0 ? -1 : positionOf(key);
}

int TableListModel::rowOfSource(int sourceRow) const
{
    return rowOfKey(m_source->keyAt(sourceRow));
}

int TableListModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_ids.size());
}

int TableListModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : kTableColumns;
}

QVariant TableListModel::headingData(int row, int column, int role) const
{
    const int group = groupAt(row);
    const int size = sizeOfGroup(group);
    const QString title = titleOfGroup(m_wanted.grouping, group);
    if (role == CollapsedRole)
        return isCollapsed(row);
    if (role == Qt::AccessibleTextRole)
        return tr("group %1, %2 rows, %3")
            .arg(title)
            .arg(size)
            .arg(isCollapsed(row) ? tr("collapsed") : tr("expanded"));
    if (role == Qt::DisplayRole && column == static_cast<int>(TableColumn::Selector))
        return size == 1 ? tr("%1 · 1 row").arg(title) : tr("%1 · %2 rows").arg(title).arg(size);
    return {};
}

QVariant TableListModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const Kind kind = kindOf(index.row());
    if (role == KindRole)
        return static_cast<int>(kind);
    if (kind == Kind::Heading)
        return headingData(index.row(), index.column(), role);
    if (kind == Kind::NewRow)
        return m_draft.data(static_cast<TableColumn>(index.column()), role);
    if (role == ActingRole)
        return m_acting.count(m_ids[static_cast<std::size_t>(index.row())]) != 0;
    if (role == HoverRole)
        return m_hovered.count(m_ids[static_cast<std::size_t>(index.row())]) != 0;
    const int row = sourceRow(index.row());
    return row < 0 ? QVariant() : m_source->data(m_source->index(row, index.column()), role);
}

bool TableListModel::setData(const QModelIndex &index, const QVariant &value, int role)
{
    if (!index.isValid())
        return false;
    const Kind kind = kindOf(index.row());
    if (kind == Kind::Row) {
        const int row = sourceRow(index.row());
        return row >= 0 && m_source->setData(m_source->index(row, index.column()), value, role);
    }
    if (kind == Kind::Heading || role != Qt::EditRole
        || !m_draft.write(static_cast<TableColumn>(index.column()), oneLine(value.toString().toStdString())))
        return false;
    if (m_draft.isComplete())
        return commitDraft();
    draftChanged();
    return true;
}

void TableListModel::draftChanged()
{
    Q_EMIT dataChanged(index(newRow(), 0), index(newRow(), kTableColumns - 1));
}

void TableListModel::clearDraft()
{
    if (m_draft.isEmpty())
        return;
    m_draft.clear();
    draftChanged();
}

bool TableListModel::commitDraft()
{
    if (m_draft.isEmpty())
        return false;
    const std::string line = lineOf(m_draft.cells());
    const TableDocument &document = m_source->document();
    // Behind the last row, before remarks that end the table.
    const int rows = m_source->rowCount();
    const std::int32_t at = rows == 0 ? document.lineCount() : m_source->lineAt(rows - 1) + 1;
    m_draft.clear();
    draftChanged();
    if (!m_source->apply(tr("add row %1: %2").arg(at + 1).arg(QString::fromStdString(line)),
            insertText(document, at, line)))
        return false;
    Q_EMIT rowAdded(at);
    return true;
}

QStringList TableListModel::mimeTypes() const
{
    return {QString::fromLatin1(kRowsType)};
}

QMimeData *TableListModel::mimeData(const QModelIndexList &indexes) const
{
    std::set<int> rows;
    for (const QModelIndex &index : indexes) {
        const int row = sourceRow(index.row());
        if (row >= 0)
            rows.insert(row);
    }
    if (rows.empty())
        return nullptr;
    QByteArray lines;
    QString text;
    for (const int row : rows) {
        lines += QByteArray::number(m_source->lineAt(row)) + ' ';
        text += QString::fromStdString(m_source->tableLineAt(row).text) + QLatin1Char('\n');
    }
    auto *data = new QMimeData;
    // Lines mean something in this table alone.
    data->setData(
        QString::fromLatin1(kRowsType), QByteArray::number(reinterpret_cast<quintptr>(this)) + ' ' + lines);
    data->setText(text);
    return data;
}

bool TableListModel::canDropMimeData(
    const QMimeData *data, Qt::DropAction action, int, int, const QModelIndex &) const
{
    return action == Qt::MoveAction && isInTextOrder()
        && data->data(QString::fromLatin1(kRowsType))
               .startsWith(QByteArray::number(reinterpret_cast<quintptr>(this)) + ' ');
}

bool TableListModel::dropMimeData(
    const QMimeData *data, Qt::DropAction action, int row, int column, const QModelIndex &parent)
{
    if (!canDropMimeData(data, action, row, column, parent))
        return false;
    std::vector<std::int32_t> lines;
    const auto numbers = data->data(QString::fromLatin1(kRowsType)).split(' ');
    for (qsizetype i = 1; i < numbers.size(); ++i) {
        if (!numbers[i].isEmpty())
            lines.push_back(numbers[i].toInt());
    }
    const int before = parent.isValid() ? parent.row() : row;
    const int source = sourceRow(before);
    const int last = m_source->rowCount() - 1;
    Q_EMIT rowsDropped(lines, source >= 0 ? m_source->lineAt(source) : m_source->lineAt(last) + 1);
    return true;
}

Qt::ItemFlags TableListModel::flags(const QModelIndex &index) const
{
    if (!index.isValid())
        return isInTextOrder() ? Qt::ItemIsDropEnabled : Qt::NoItemFlags;
    const Qt::ItemFlags basic = Qt::ItemIsSelectable | Qt::ItemIsEnabled | Qt::ItemNeverHasChildren;
    switch (kindOf(index.row())) {
    case Kind::Heading:
        return basic;
    case Kind::NewRow:
        return RowDraft::takesText(static_cast<TableColumn>(index.column())) ? basic | Qt::ItemIsEditable
                                                                             : basic;
    case Kind::Row:
        break;
    }
    const int row = sourceRow(index.row());
    return row < 0 ? basic : m_source->flags(m_source->index(row, index.column())) | Qt::ItemIsDragEnabled;
}

QVariant TableListModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    return m_source->headerData(section, orientation, role);
}

QItemSelection wholeRows(const TableListModel &list, std::vector<int> rows)
{
    std::sort(rows.begin(), rows.end());
    QItemSelection selection;
    for (std::size_t i = 0; i < rows.size();) {
        std::size_t end = i + 1;
        while (end < rows.size() && rows[end] <= rows[end - 1] + 1)
            ++end;
        selection.append(
            QItemSelectionRange(list.index(rows[i], 0), list.index(rows[end - 1], kTableColumns - 1)));
        i = end;
    }
    return selection;
}

} // namespace planloom

#include "moc_table_list_model.cpp"
