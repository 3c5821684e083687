#include "widgets/compare/compare_models.h"

#include "widgets/common/qt_text.h"

#include <QtCore/QDataStream>
#include <QtCore/QIODevice>
#include <QtCore/QMimeData>

#include <algorithm>

namespace planloom {

namespace {

constexpr const char *kRowsType = "application/x-planloom-compared-rows";

/// Side of a drag, and indices of rows.
struct Dragged {
    bool fromA = true;
    std::vector<int> rows{};
};

std::optional<Dragged> draggedIn(const QMimeData *data)
{
    if (!data || !data->hasFormat(QLatin1String(kRowsType)))
        return {};
    QDataStream stream(data->data(QLatin1String(kRowsType)));
    Dragged dragged;
    qint32 count = 0;
    stream >> dragged.fromA >> count;
    for (qint32 i = 0; i < count && stream.status() == QDataStream::Ok; ++i) {
        qint32 row = 0;
        stream >> row;
        dragged.rows.push_back(row);
    }
    if (stream.status() != QDataStream::Ok)
        return {};
    return dragged;
}

bool isSideA(int column)
{
    return column == RowDiffModel::SelectorA || column == RowDiffModel::RuleA;
}

bool isSideB(int column)
{
    return column == RowDiffModel::SelectorB || column == RowDiffModel::RuleB;
}

} // namespace

MetricModel::MetricModel(QObject *parent)
    : QAbstractTableModel(parent)
{
}

void MetricModel::setMetrics(std::vector<PlanMetric> metrics, QStringList titles)
{
    beginResetModel();
    m_metrics = std::move(metrics);
    m_titles = std::move(titles);
    endResetModel();
}

int MetricModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_metrics.size());
}

int MetricModel::columnCount(const QModelIndex &parent) const
{
    if (parent.isValid() || m_titles.isEmpty())
        return 0;
    return 2 + 3 * (static_cast<int>(m_titles.size()) - 1);
}

QVariant MetricModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const PlanMetric &metric = m_metrics[static_cast<std::size_t>(index.row())];
    const int column = index.column();
    const auto plan = static_cast<std::size_t>(column < 2 ? 0 : (column - 2) / 3 + 1);
    const int part = column < 2 ? 0 : (column - 2) % 3; // value, difference, share
    switch (role) {
    case Qt::DisplayRole: {
        if (column == 0)
            return tr(metric.name.c_str());
        if (part == 0)
            return toQString(valueText(metric, plan));
        const QString text = toQString(part == 1 ? deltaText(metric, 0, plan) : percentText(metric, 0, plan));
        if (part == 2 || text.isEmpty())
            return text;
        const Change change = changeOf(metric, 0, plan);
        if (change == Change::Other) // neither better nor worse
            return text;
        return QString::fromUtf8(arrowOf(*metric.values[0], *metric.values[plan], change)) + QLatin1Char(' ')
            + text;
    }
    case Qt::ToolTipRole: {
        if (part == 0)
            return {};
        switch (changeOf(metric, 0, plan)) {
        case Change::Better:
            return tr("better than A");
        case Change::Worse:
            return tr("worse than A");
        case Change::Same:
            return tr("the same: differences below 0.5% or one tick mean nothing");
        case Change::Other:
            return tr("different, neither better nor worse");
        }
        return {};
    }
    case Qt::TextAlignmentRole:
        if (column > 0)
            return QVariant::fromValue(Qt::Alignment(Qt::AlignRight | Qt::AlignVCenter));
        return {};
    case ChangeRole:
        return column >= 2 && part > 0 ? QVariant(static_cast<int>(changeOf(metric, 0, plan))) : QVariant();
    case Qt::AccessibleTextRole: {
        QString text = data(index, Qt::DisplayRole).toString();
        if (part == 1 && !text.isEmpty())
            text += QStringLiteral(", ") + data(index, Qt::ToolTipRole).toString();
        return text;
    }
    default:
        return {};
    }
}

QVariant MetricModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    if (section == 0)
        return tr("Figure");
    const int plan = section < 2 ? 0 : (section - 2) / 3 + 1;
    const int part = section < 2 ? 0 : (section - 2) % 3;
    const QChar letter('A' + plan);
    if (part == 0)
        return QString(letter) + QStringLiteral(": ") + m_titles.value(plan);
    return part == 1 ? tr("%1 − A").arg(letter) : tr("%");
}

RowDiffModel::RowDiffModel(QObject *parent)
    : QAbstractTableModel(parent)
{
}

void RowDiffModel::setRows(std::vector<ComparedRow> rows)
{
    if (rows == m_rows)
        return;
    beginResetModel();
    m_rows = std::move(rows);
    reshow();
    endResetModel();
}

void RowDiffModel::setOnlyDifferences(bool only)
{
    if (only == m_onlyDifferences)
        return;
    beginResetModel();
    m_onlyDifferences = only;
    reshow();
    endResetModel();
}

void RowDiffModel::reshow()
{
    m_shown.clear();
    for (std::size_t i = 0; i < m_rows.size(); ++i) {
        if (!m_onlyDifferences || m_rows[i].kind != ComparedRow::Kind::Same)
            m_shown.push_back(i);
    }
}

int RowDiffModel::differences() const
{
    return static_cast<int>(std::count_if(m_rows.begin(), m_rows.end(),
        [](const ComparedRow &row) { return row.kind != ComparedRow::Kind::Same; }));
}

int RowDiffModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_shown.size());
}

int RowDiffModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant RowDiffModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const ComparedRow &row = rowAt(index.row());
    const ComparedRow::Cells &cells = isSideA(index.column()) ? row.a : row.b;
    const auto ruleOf = [](const ComparedRow::Cells &side) {
        return side.enabled ? toQString(side.rule) : tr("off · %1").arg(toQString(side.rule));
    };
    switch (role) {
    case Qt::DisplayRole:
    case Qt::AccessibleTextRole:
        switch (index.column()) {
        case State:
            switch (row.kind) {
            case ComparedRow::Kind::Same:
                return tr("= same");
            case ComparedRow::Kind::Changed:
                return tr("≠ changed");
            case ComparedRow::Kind::OnlyA:
                return tr("− only in A");
            case ComparedRow::Kind::OnlyB:
                return tr("+ only in B");
            }
            return {};
        case SelectorA:
        case SelectorB:
            if (cells.text.empty())
                return {};
            return cells.selector.empty() ? tr("whole plan") : toQString(cells.selector);
        default:
            return cells.text.empty() ? QString() : ruleOf(cells);
        }
    case Qt::ToolTipRole:
        if (index.column() == State)
            return tr(
                "Drag a row to the other side, or press \"Take into Current\", to try it in the design.");
        return toQString(cells.text);
    case DiffersRole:
        if (row.kind == ComparedRow::Kind::Same || index.column() == State)
            return false;
        if (row.kind != ComparedRow::Kind::Changed)
            return !cells.text.empty();
        if (index.column() == SelectorA || index.column() == SelectorB)
            return row.a.selector != row.b.selector;
        return row.a.rule != row.b.rule || row.a.enabled != row.b.enabled;
    case KindRole:
        return static_cast<int>(row.kind);
    default:
        return {};
    }
}

QVariant RowDiffModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case State:
        return tr("State");
    case SelectorA:
        return tr("A · Selector");
    case RuleA:
        return tr("A · Rule");
    case SelectorB:
        return tr("B · Selector");
    case RuleB:
        return tr("B · Rule");
    default:
        return {};
    }
}

Qt::ItemFlags RowDiffModel::flags(const QModelIndex &index) const
{
    Qt::ItemFlags flags = QAbstractTableModel::flags(index);
    if (!index.isValid())
        return flags | Qt::ItemIsDropEnabled;
    flags |= Qt::ItemIsDropEnabled;
    if (index.column() != State && rowAt(index.row()).kind != ComparedRow::Kind::Same)
        flags |= Qt::ItemIsDragEnabled;
    return flags;
}

QStringList RowDiffModel::mimeTypes() const
{
    return {QLatin1String(kRowsType), QStringLiteral("text/plain")};
}

QMimeData *RowDiffModel::mimeData(const QModelIndexList &indexes) const
{
    if (indexes.isEmpty())
        return nullptr;
    // Cells are dragged: they tell the side. Of a drag over both sides, A's counts.
    std::vector<qint32> rows;
    bool onlyB = true;
    for (const QModelIndex &index : indexes) {
        if (index.column() == State)
            continue;
        const auto row = static_cast<qint32>(m_shown[static_cast<std::size_t>(index.row())]);
        if (std::find(rows.begin(), rows.end(), row) == rows.end())
            rows.push_back(row);
        onlyB = onlyB && isSideB(index.column());
    }
    const bool fromA = !onlyB;
    QByteArray bytes;
    QDataStream stream(&bytes, QIODevice::WriteOnly);
    stream << fromA << static_cast<qint32>(rows.size());
    QString text;
    for (const qint32 row : rows) {
        stream << row;
        const ComparedRow &compared = m_rows[static_cast<std::size_t>(row)];
        text += toQString(fromA ? compared.a.text : compared.b.text) + QLatin1Char('\n');
    }
    auto *data = new QMimeData;
    data->setData(QLatin1String(kRowsType), bytes);
    data->setText(text);
    return data;
}

bool RowDiffModel::canDropMimeData(
    const QMimeData *data, Qt::DropAction action, int, int column, const QModelIndex &parent) const
{
    const auto dragged = draggedIn(data);
    const int target = parent.isValid() ? parent.column() : column;
    return dragged && action == Qt::CopyAction && (dragged->fromA ? isSideB(target) : isSideA(target));
}

bool RowDiffModel::dropMimeData(
    const QMimeData *data, Qt::DropAction action, int row, int column, const QModelIndex &parent)
{
    if (!canDropMimeData(data, action, row, column, parent))
        return false;
    const auto dragged = draggedIn(data);
    const bool valid = std::all_of(dragged->rows.begin(), dragged->rows.end(),
        [this](int each) { return each >= 0 && static_cast<std::size_t>(each) < m_rows.size(); });
    if (!valid)
        return false;
    Q_EMIT takeOverRequested(dragged->rows, dragged->fromA);
    return true;
}

} // namespace planloom

#include "moc_compare_models.cpp"
