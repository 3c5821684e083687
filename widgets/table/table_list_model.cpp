#include "widgets/table/table_list_model.h"

#include <QtCore/QMimeData>

#include <algorithm>
#include <array>

namespace planloom {

namespace {

/// More runs than this are told as a reset.
constexpr int kMostRuns = 48;
constexpr const char *kRowsType = "application/x-planloom-rows";
constexpr std::array<const char *, 4> kOrigins{"text", "gesture", "template", "import"};

char folded(char c)
{
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool containsFolded(std::string_view text, std::string_view word)
{
    return std::search(text.begin(), text.end(), word.begin(), word.end(),
               [](char a, char b) { return folded(a) == b; })
        != text.end();
}

} // namespace

TableListModel::TableListModel(ConstraintTableModel *rows, QObject *parent)
    : QAbstractTableModel(parent), m_source(rows)
{
    connect(rows, &QAbstractItemModel::rowsAboutToBeRemoved, this,
        [this](const QModelIndex &, int first, int last) { removeSource(first, last); });
    connect(rows, &ConstraintTableModel::documentSet, this, &TableListModel::rebuild);
    connect(rows, &QAbstractItemModel::dataChanged, this,
        [this](const QModelIndex &topLeft, const QModelIndex &bottomRight) {
            sourceChanged(topLeft.row(), bottomRight.row(), topLeft.column(), bottomRight.column());
        });
    m_ids = target();
}

bool TableListModel::isInTextOrder() const
{
    return m_sortColumn < 0 && m_grouping == RowGrouping::None && !(m_actingFirst && !m_chosen.empty());
}

int TableListModel::groupOf(int sourceRow) const
{
    const RowCells &cells = m_source->cellsAt(sourceRow);
    if (m_grouping == RowGrouping::Rule) {
        const RuleWord *word = findRuleWord(cells.rule);
        return word ? static_cast<int>(word - ruleWords().data()) : static_cast<int>(ruleWords().size());
    }
    if (cells.origin.empty())
        return 0;
    const auto found = std::find(kOrigins.begin(), kOrigins.end(), cells.origin);
    return static_cast<int>(found - kOrigins.begin());
}

QString TableListModel::titleOfGroup(int group) const
{
    if (m_grouping == RowGrouping::Rule) {
        return group < static_cast<int>(ruleWords().size())
            ? QString::fromUtf8(ruleWords()[static_cast<std::size_t>(group)].word.data())
            : tr("not yet rows");
    }
    return group < static_cast<int>(kOrigins.size()) ? QString::fromLatin1(kOrigins[static_cast<std::size_t>(group)])
                                                     : tr("other origin");
}

bool TableListModel::shows(int sourceRow) const
{
    if (m_actingOnly && m_chosen.count(m_source->keyAt(sourceRow)) == 0)
        return false;
    if (m_filterWords.empty())
        return true;
    const std::string &text = m_source->tableLineAt(sourceRow).text;
    std::string note;
    for (const std::string &word : m_filterWords) {
        if (containsFolded(text, word))
            continue;
        if (note.empty())
            note = m_source->noteAt(sourceRow).toStdString() + ' ';
        if (!containsFolded(note, word))
            return false;
    }
    return true;
}

std::string TableListModel::fieldOf(int sourceRow, TableColumn column) const
{
    const RowCells &cells = m_source->cellsAt(sourceRow);
    std::string text = column == TableColumn::Selector ? cells.selector
        : column == TableColumn::Rule                  ? cells.rule
        : column == TableColumn::Value                 ? cells.value
        : column == TableColumn::Strength              ? cells.strength
        : column == TableColumn::Origin                ? cells.origin
                                                       : m_source->noteAt(sourceRow).toStdString();
    std::transform(text.begin(), text.end(), text.begin(), folded);
    return text;
}

std::vector<TableListModel::Id> TableListModel::target() const
{
    const int count = m_source->rowCount();
    std::vector<int> rows;
    rows.reserve(static_cast<std::size_t>(count));
    for (int row = 0; row < count; ++row) {
        if (shows(row))
            rows.push_back(row);
    }
    const bool falling = m_sortOrder == Qt::DescendingOrder;
    if (m_sortColumn >= 0) {
        const auto column = static_cast<TableColumn>(m_sortColumn);
        const auto sortBy = [&](const auto &keys) {
            std::stable_sort(rows.begin(), rows.end(), [&](int a, int b) {
                const auto &left = keys[static_cast<std::size_t>(a)];
                const auto &right = keys[static_cast<std::size_t>(b)];
                return falling ? right < left : left < right;
            });
        };
        if (column == TableColumn::On || column == TableColumn::Number || column == TableColumn::Binds
            || column == TableColumn::Price || column == TableColumn::Strength) {
            std::vector<double> keys(static_cast<std::size_t>(count));
            for (const int row : rows) {
                keys[static_cast<std::size_t>(row)]
                    = m_source->index(row, m_sortColumn).data(ConstraintTableModel::SortRole).toDouble();
            }
            sortBy(keys);
        } else {
            std::vector<std::string> keys(static_cast<std::size_t>(count));
            for (const int row : rows)
                keys[static_cast<std::size_t>(row)] = fieldOf(row, column);
            sortBy(keys);
        }
    }
    if (m_actingFirst && !m_chosen.empty()) {
        std::stable_partition(
            rows.begin(), rows.end(), [&](int row) { return m_chosen.count(m_source->keyAt(row)) != 0; });
    }
    std::vector<Id> ids;
    ids.reserve(rows.size() + 16);
    if (m_grouping == RowGrouping::None) {
        for (const int row : rows)
            ids.push_back(m_source->keyAt(row));
    } else {
        std::vector<std::vector<int>> groups;
        for (const int row : rows) {
            const auto group = static_cast<std::size_t>(groupOf(row));
            groups.resize(std::max(groups.size(), group + 1));
            groups[group].push_back(row);
        }
        for (std::size_t group = 0; group < groups.size(); ++group) {
            if (groups[group].empty())
                continue;
            ids.push_back(kHeading | group);
            if (m_collapsed.count(static_cast<int>(group)) != 0)
                continue;
            for (const int row : groups[group])
                ids.push_back(m_source->keyAt(row));
        }
    }
    ids.push_back(0);
    return ids;
}

void TableListModel::rebuild()
{
    const std::vector<Id> wanted = target();
    std::vector<int> sizes;
    if (m_grouping != RowGrouping::None) {
        for (int row = 0; row < m_source->rowCount(); ++row) {
            if (!shows(row))
                continue;
            const auto group = static_cast<std::size_t>(groupOf(row));
            sizes.resize(std::max(sizes.size(), group + 1));
            ++sizes[group];
        }
    }
    const bool sizesDiffer = sizes != m_groupSizes;
    m_groupSizes = std::move(sizes);
    std::size_t head = 0;
    while (head < m_ids.size() && head < wanted.size() && m_ids[head] == wanted[head])
        ++head;
    std::size_t tail = 0;
    while (tail < m_ids.size() - head && tail < wanted.size() - head
        && m_ids[m_ids.size() - 1 - tail] == wanted[wanted.size() - 1 - tail])
        ++tail;
    const auto middle = [&](const std::vector<Id> &ids) {
        return std::vector<Id>(ids.begin() + static_cast<std::ptrdiff_t>(head),
            ids.end() - static_cast<std::ptrdiff_t>(tail));
    };
    const std::vector<Id> before = middle(m_ids);
    const std::vector<Id> after = middle(wanted);
    const std::unordered_set<Id> beforeSet(before.begin(), before.end());
    const std::unordered_set<Id> afterSet(after.begin(), after.end());
    const auto runsMissing = [](const std::vector<Id> &ids, const std::unordered_set<Id> &in) {
        int runs = 0;
        bool inside = false;
        for (const Id id : ids) {
            const bool missing = in.count(id) == 0;
            runs += missing && !inside ? 1 : 0;
            inside = missing;
        }
        return runs;
    };
    if (runsMissing(before, afterSet) + runsMissing(after, beforeSet) > kMostRuns) {
        beginResetModel();
        m_ids = wanted;
        m_positionsValid = false;
        endResetModel();
        return;
    }
    // What goes,
    for (std::size_t i = m_ids.size() - tail; i-- > head;) {
        if (afterSet.count(m_ids[i]) != 0)
            continue;
        const std::size_t last = i;
        while (i > head && afterSet.count(m_ids[i - 1]) == 0)
            --i;
        beginRemoveRows({}, static_cast<int>(i), static_cast<int>(last));
        m_ids.erase(m_ids.begin() + static_cast<std::ptrdiff_t>(i), m_ids.begin() + static_cast<std::ptrdiff_t>(last + 1));
        m_positionsValid = false;
        endRemoveRows();
    }
    // what stands elsewhere,
    std::vector<Id> staying;
    for (const Id id : after) {
        if (beforeSet.count(id) != 0)
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
        if (beforeSet.count(wanted[i]) != 0)
            continue;
        std::size_t end = i + 1;
        while (end < wanted.size() - tail && beforeSet.count(wanted[end]) == 0)
            ++end;
        beginInsertRows({}, static_cast<int>(i), static_cast<int>(end - 1));
        m_ids.insert(m_ids.begin() + static_cast<std::ptrdiff_t>(i), wanted.begin() + static_cast<std::ptrdiff_t>(i),
            wanted.begin() + static_cast<std::ptrdiff_t>(end));
        m_positionsValid = false;
        endInsertRows();
        i = end - 1;
    }
    if (sizesDiffer) {
        for (std::size_t i = 0; i < m_ids.size(); ++i) {
            if ((m_ids[i] & kHeading) != 0)
                Q_EMIT dataChanged(index(static_cast<int>(i), 0), index(static_cast<int>(i), kTableColumns - 1));
        }
    }
}

void TableListModel::removeSource(int first, int last)
{
    std::unordered_set<Id> gone;
    for (int row = first; row <= last; ++row)
        gone.insert(m_source->keyAt(row));
    int runs = 0;
    for (std::size_t i = 0; i < m_ids.size(); ++i)
        runs += gone.count(m_ids[i]) != 0 && (i == 0 || gone.count(m_ids[i - 1]) == 0) ? 1 : 0;
    if (runs > kMostRuns) {
        beginResetModel();
        m_ids.erase(std::remove_if(m_ids.begin(), m_ids.end(), [&](Id id) { return gone.count(id) != 0; }), m_ids.end());
        m_positionsValid = false;
        endResetModel();
        return;
    }
    for (std::size_t i = m_ids.size(); i-- > 0;) {
        if (gone.count(m_ids[i]) == 0)
            continue;
        const std::size_t end = i;
        while (i > 0 && gone.count(m_ids[i - 1]) != 0)
            --i;
        beginRemoveRows({}, static_cast<int>(i), static_cast<int>(end));
        m_ids.erase(m_ids.begin() + static_cast<std::ptrdiff_t>(i), m_ids.begin() + static_cast<std::ptrdiff_t>(end + 1));
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
    const bool ordered = m_sortColumn >= firstColumn && m_sortColumn <= lastColumn;
    const bool all = lastColumn - firstColumn > 1;
    if (ordered || (all && (m_grouping != RowGrouping::None || !m_filterWords.empty())))
        rebuild();
}

void TableListModel::setFilter(const QString &words)
{
    if (words == m_filter)
        return;
    m_filter = words;
    m_filterWords.clear();
    for (const QString &word : words.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
        std::string text = word.toStdString();
        std::transform(text.begin(), text.end(), text.begin(), folded);
        m_filterWords.push_back(std::move(text));
    }
    rebuild();
}

void TableListModel::setGrouping(RowGrouping grouping)
{
    if (grouping == m_grouping)
        return;
    m_grouping = grouping;
    m_collapsed.clear();
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

bool TableListModel::isCollapsed(int row) const
{
    return kindOf(row) == Kind::Heading
        && m_collapsed.count(static_cast<int>(m_ids[static_cast<std::size_t>(row)] & ~kHeading)) != 0;
}

void TableListModel::setCollapsed(int row, bool collapsed)
{
    if (kindOf(row) != Kind::Heading || isCollapsed(row) == collapsed)
        return;
    const int group = static_cast<int>(m_ids[static_cast<std::size_t>(row)] & ~kHeading);
    collapsed ? static_cast<void>(m_collapsed.insert(group)) : static_cast<void>(m_collapsed.erase(group));
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
    if (only == m_actingOnly && first == m_actingFirst && keys == m_chosen)
        return;
    m_actingOnly = only;
    m_actingFirst = first;
    m_chosen = std::move(keys);
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
    if (column == m_sortColumn && order == m_sortOrder)
        return;
    m_sortColumn = column;
    m_sortOrder = order;
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
        m_positions.clear();
        m_positions.reserve(m_ids.size());
        for (std::size_t i = 0; i < m_ids.size(); ++i)
            m_positions.emplace(m_ids[i], static_cast<int>(i));
        m_positionsValid = true;
    }
    const auto found = m_positions.find(id);
    return found == m_positions.end() ? -1 : found->second;
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

QString TableListModel::accessibleHeading(int row) const
{
    const auto group = static_cast<std::size_t>(m_ids[static_cast<std::size_t>(row)] & ~kHeading);
    const int size = group < m_groupSizes.size() ? m_groupSizes[group] : 0;
    return tr("group %1, %2 rows, %3")
        .arg(titleOfGroup(static_cast<int>(group)))
        .arg(size)
        .arg(isCollapsed(row) ? tr("collapsed") : tr("expanded"));
}

QVariant TableListModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const Kind kind = kindOf(index.row());
    if (role == KindRole)
        return static_cast<int>(kind);
    if (kind == Kind::Heading) {
        const auto group = static_cast<std::size_t>(m_ids[static_cast<std::size_t>(index.row())] & ~kHeading);
        const int size = group < m_groupSizes.size() ? m_groupSizes[group] : 0;
        if (role == CollapsedRole)
            return isCollapsed(index.row());
        if (role == Qt::AccessibleTextRole)
            return accessibleHeading(index.row());
        if (role == Qt::DisplayRole && index.column() == static_cast<int>(TableColumn::Selector)) {
            return size == 1 ? tr("%1 · 1 row").arg(titleOfGroup(static_cast<int>(group)))
                             : tr("%1 · %2 rows").arg(titleOfGroup(static_cast<int>(group))).arg(size);
        }
        return {};
    }
    if (kind == Kind::NewRow)
        return draftData(static_cast<TableColumn>(index.column()), role);
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
    if (kind == Kind::Heading || role != Qt::EditRole)
        return false;
    const std::string text = oneLine(value.toString().toStdString());
    const auto column = static_cast<TableColumn>(index.column());
    // A whole row typed into one cell is a row.
    const bool startsRow = column == TableColumn::Selector || column == TableColumn::Rule;
    if (startsRow && text.find(' ') != std::string::npos && readLine(text)->row) {
        m_draft = cellsOf(text);
        return commitDraft();
    }
    switch (column) {
    case TableColumn::Selector:
        m_draft.selector = text;
        break;
    case TableColumn::Rule: {
        m_draft.rule = text;
        const RuleWord *word = findRuleWord(text);
        if (word && word->shape != RuleShape::Plain && m_draft.selector.empty())
            m_draft.selector = "all";
        if (word && word->shape == RuleShape::Plain)
            m_draft.selector.clear();
        break;
    }
    case TableColumn::Value:
        m_draft.value = text;
        break;
    case TableColumn::Strength:
        m_draft.strength = weightOf(text) == 0 ? std::string{} : text;
        break;
    case TableColumn::Origin:
        m_draft.origin = text;
        break;
    case TableColumn::Note:
        m_draft.note = text;
        break;
    default:
        return false;
    }
    const RuleWord *word = findRuleWord(m_draft.rule);
    const bool complete = !m_draft.rule.empty() && (!m_draft.value.empty() || (word && !word->needsValue));
    draftChanged();
    return complete ? commitDraft() : true;
}

void TableListModel::draftChanged()
{
    Q_EMIT dataChanged(index(newRow(), 0), index(newRow(), kTableColumns - 1));
}

void TableListModel::clearDraft()
{
    if (m_draft == RowCells{})
        return;
    m_draft = {};
    draftChanged();
}

bool TableListModel::commitDraft()
{
    if (m_draft == RowCells{})
        return false;
    const std::string line = lineOf(m_draft);
    const TableDocument &document = m_source->document();
    // Behind the last row, before remarks that end the table.
    const int rows = m_source->rowCount();
    const std::int32_t at = rows == 0 ? document.lineCount() : m_source->lineAt(rows - 1) + 1;
    m_draft = {};
    draftChanged();
    if (!m_source->apply(tr("add row %1: %2").arg(at + 1).arg(QString::fromStdString(line)), insertText(document, at, line)))
        return false;
    Q_EMIT rowAdded(at);
    return true;
}

QVariant TableListModel::draftData(TableColumn column, int role) const
{
    const auto text = [&]() -> std::string {
        switch (column) {
        case TableColumn::Selector:
            return m_draft.selector;
        case TableColumn::Rule:
            return m_draft.rule;
        case TableColumn::Value:
            return m_draft.value;
        case TableColumn::Strength:
            return m_draft.strength;
        case TableColumn::Origin:
            return m_draft.origin;
        case TableColumn::Note:
            return m_draft.note;
        default:
            return {};
        }
    };
    const bool fresh = m_draft == RowCells{};
    switch (role) {
    case Qt::DisplayRole:
        if (column == TableColumn::Number)
            return QStringLiteral("+");
        if (fresh && column == TableColumn::Selector)
            return tr("new row: choose a rule, or type it whole");
        return QString::fromStdString(text());
    case Qt::EditRole:
        return QString::fromStdString(text());
    case ConstraintTableModel::RuleRole:
        return QString::fromStdString(m_draft.rule);
    case ConstraintTableModel::EnabledRole:
        return !fresh;
    case ConstraintTableModel::ProblemRole:
        if (!fresh) {
            const auto problem = checkCells(m_draft);
            if (problem && problem->column == column && !text().empty())
                return QString::fromStdString(problem->message);
        }
        return QString();
    case Qt::TextAlignmentRole:
        return QVariant::fromValue(Qt::Alignment((column == TableColumn::Number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter));
    case Qt::ToolTipRole:
        return tr("Type here to add a row");
    case Qt::AccessibleTextRole: {
        const QString said = QString::fromStdString(text());
        return tr("new row, %1: %2").arg(titleOf(column).toLower(), said.isEmpty() ? tr("empty") : said);
    }
    default:
        return {};
    }
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
    data->setData(QString::fromLatin1(kRowsType), QByteArray::number(reinterpret_cast<quintptr>(this)) + ' ' + lines);
    data->setText(text);
    return data;
}

bool TableListModel::canDropMimeData(
    const QMimeData *data, Qt::DropAction action, int, int, const QModelIndex &) const
{
    return action == Qt::MoveAction && isInTextOrder()
        && data->data(QString::fromLatin1(kRowsType)).startsWith(QByteArray::number(reinterpret_cast<quintptr>(this)) + ' ');
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
    case Kind::NewRow: {
        const auto column = static_cast<TableColumn>(index.column());
        const bool editable = column == TableColumn::Selector || column == TableColumn::Rule || column == TableColumn::Value
            || column == TableColumn::Note || column == TableColumn::Origin || column == TableColumn::Strength;
        return editable ? basic | Qt::ItemIsEditable : basic;
    }
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

} // namespace planloom
