#include "widgets/history/history_model.h"

#include <QtCore/QDateTime>
#include <QtCore/QLocale>

#include "widgets/common/format.h"
#include "widgets/common/qt_text.h"

#include <algorithm>
#include <map>
#include <utility>

namespace planloom {

namespace {

constexpr double kTick = 1e-9; ///< Seconds: one tick of simulated time.
constexpr int kMostRuns = 16; ///< Changed runs of rows reported one by one.

QStringList listOf(const std::vector<std::string> &texts)
{
    QStringList list;
    for (const std::string &text : texts)
        list << toQString(text);
    return list;
}

/// "14:03" today, else "11 Nov 14:03".
QString timeOf(std::int64_t created)
{
    if (created <= 0)
        return {};
    const QDateTime time = QDateTime::fromMSecsSinceEpoch(created);
    const QString clock = QLocale().toString(time.time(), QStringLiteral("HH:mm"));
    if (time.date() == QDate::currentDate())
        return clock;
    return QLocale().toString(time.date(), QStringLiteral("d MMM")) + QLatin1Char(' ') + clock;
}

std::string signedBytes(std::int64_t difference)
{
    if (difference == 0)
        return "0 B";
    return (difference < 0 ? "\u2212" : "+") + formatBytes({difference < 0 ? -difference : difference});
}

Change timeChange(const StepFigures &before, const StepFigures &after)
{
    return judged(before.stepSeconds, after.stepSeconds, kTick);
}

Change peakChange(const StepFigures &before, const StepFigures &after)
{
    return judged(static_cast<double>(before.peakBytes), static_cast<double>(after.peakBytes), 0);
}

/// Rows whose part of the tree looks different; first above last if none.
std::pair<int, int> differentRows(const HistoryLanes &before, const HistoryLanes &after)
{
    std::size_t first = after.rowCount();
    std::size_t last = 0;
    const auto add = [&](std::size_t from, std::size_t to) {
        first = std::min(first, from);
        last = std::max(last, to);
    };
    const std::size_t common = std::min(before.lines().size(), after.lines().size());
    for (std::size_t i = 0; i < after.lines().size(); ++i) {
        const BranchLine &now = after.lines()[i];
        if (i >= common) {
            add(now.fork, now.last);
            continue;
        }
        const BranchLine &old = before.lines()[i];
        if (now == old)
            continue;
        const bool grew = now.lane == old.lane && now.fork == old.fork && now.branch == old.branch;
        add(grew ? std::min(now.last, old.last) : std::min(now.fork, old.fork), std::max(now.last, old.last));
    }
    return {static_cast<int>(first), static_cast<int>(std::min(last, after.rowCount() - 1))};
}

} // namespace

HistoryModel::HistoryModel(QObject *parent)
    : QAbstractTableModel(parent)
{
    reset(History());
}

struct HistoryModel::Marks {
    explicit Marks(const History &history)
    {
        for (const auto &[name, id] : history.names())
            names[id].push_back(name);
        for (const Branch &branch : history.branches())
            heads[branch.head].push_back(branch.name);
    }
    static const std::vector<std::string> &at(
        const std::map<StepId, std::vector<std::string>> &marks, std::size_t row)
    {
        static const std::vector<std::string> kNone;
        const auto found = marks.find(static_cast<StepId>(row));
        return found == marks.end() ? kNone : found->second;
    }
    std::map<StepId, std::vector<std::string>> names{};
    std::map<StepId, std::vector<std::string>> heads{};
};

bool HistoryModel::takeOver(std::size_t row, const History &history, const HistoryLanes &lanes,
    const Marks &marks, const std::optional<StepFigures> &root)
{
    Entry &entry = m_entries[row];
    bool changed = false;
    const auto take = [&changed](auto &known, const auto &now) {
        if (known != now) {
            known = now;
            changed = true;
        }
    };
    take(entry.place, lanes.placeOf(row));
    take(entry.branch, lanes.branchOf(row));
    take(entry.names, Marks::at(marks.names, row));
    take(entry.heads, Marks::at(marks.heads, row));
    if (row == 0) {
        take(entry.parent, StepId{-1});
        take(entry.figures, root);
        return changed;
    }
    const HistoryStep &step = history.steps()[row - 1];
    take(entry.parent, step.parent);
    take(entry.created, step.created);
    take(entry.words, step.words);
    take(entry.figures, step.figures);
    const Entry &parent = m_entries[static_cast<std::size_t>(step.parent)]; // above: it is up to date
    take(entry.before, parent.figures ? parent.figures : parent.before);
    return changed;
}

void HistoryModel::reset(const History &history, const std::optional<StepFigures> &root)
{
    beginResetModel();
    m_lanes = HistoryLanes(history);
    m_entries.assign(m_lanes.rowCount(), {});
    const Marks marks(history);
    for (std::size_t row = 0; row < m_entries.size(); ++row)
        takeOver(row, history, m_lanes, marks, root);
    m_current = static_cast<int>(history.current());
    endResetModel();
}

void HistoryModel::update(const History &history, const std::optional<StepFigures> &root)
{
    const std::size_t kept = m_entries.size();
    bool fits = history.steps().size() + 1 >= kept;
    for (std::size_t row = 1; fits && row < kept; ++row) {
        const HistoryStep &step = history.steps()[row - 1];
        fits = m_entries[row].parent == step.parent && m_entries[row].created == step.created;
    }
    if (!fits) {
        reset(history, root);
        return;
    }
    HistoryLanes lanes(history);
    const Marks marks(history);
    std::vector<std::pair<int, int>> runs; // of changed rows
    for (std::size_t row = 0; row < kept; ++row) {
        if (!takeOver(row, history, lanes, marks, root))
            continue;
        const int changed = static_cast<int>(row);
        if (!runs.empty() && runs.back().second == changed - 1)
            runs.back().second = changed;
        else
            runs.emplace_back(changed, changed);
    }
    if (runs.size() > kMostRuns)
        runs = {{runs.front().first, runs.back().second}};
    const auto [firstDrawn, lastDrawn] = differentRows(m_lanes, lanes);
    const bool grows = lanes.rowCount() > kept;
    if (grows)
        beginInsertRows({}, static_cast<int>(kept), static_cast<int>(lanes.rowCount()) - 1);
    m_entries.resize(lanes.rowCount());
    for (std::size_t row = kept; row < m_entries.size(); ++row)
        takeOver(row, history, lanes, marks, root);
    m_lanes = std::move(lanes);
    m_current = static_cast<int>(history.current());
    if (grows)
        endInsertRows();
    for (const auto &[first, last] : runs)
        Q_EMIT dataChanged(index(first, 0), index(last, ColumnCount - 1));
    if (firstDrawn <= lastDrawn) // lines of the tree pass rows that are the same otherwise
        Q_EMIT dataChanged(index(firstDrawn, Tree), index(lastDrawn, Tree), {Qt::DecorationRole});
}

const StepFigures *HistoryModel::figuresBefore(int row) const
{
    const auto &before = m_entries[static_cast<std::size_t>(row)].before;
    return before ? &*before : nullptr;
}

int HistoryModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_entries.size());
}

int HistoryModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QString HistoryModel::spoken(const Entry &entry) const
{
    QString text = entry.parent < 0 ? tr("Beginning") : toQString(entry.words);
    for (const std::string &name : entry.names)
        text += tr(", named %1").arg(toQString(name));
    for (const std::string &head : entry.heads)
        text += tr(", end of %1").arg(toQString(head));
    switch (entry.place) {
    case StepPlace::Current:
        return text + tr(", you are here");
    case StepPlace::Redo:
        return text + tr(", to be redone");
    case StepPlace::Elsewhere:
        return text + tr(", on another branch");
    case StepPlace::Past:
        break;
    }
    return text;
}

QVariant HistoryModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || index.row() >= rowCount())
        return {};
    const Entry &entry = m_entries[static_cast<std::size_t>(index.row())];
    const bool compares = entry.figures && entry.before;
    switch (role) {
    case Qt::DisplayRole:
        switch (index.column()) {
        case Words:
            return entry.parent < 0 ? tr("Beginning") : toQString(entry.words);
        case StepTime:
            return entry.figures ? toQString(formatSeconds(entry.figures->stepSeconds)) : QStringLiteral("–");
        case TimeChange:
            if (!compares)
                return {};
            return QString::fromUtf8(arrowOf(entry.before->stepSeconds, entry.figures->stepSeconds,
                       timeChange(*entry.before, *entry.figures)))
                + QLatin1Char(' ')
                + toQString(percentText(entry.before->stepSeconds, entry.figures->stepSeconds));
        case Peak:
            return entry.figures ? toQString(formatBytes({entry.figures->peakBytes})) : QStringLiteral("–");
        case PeakChange:
            if (!compares)
                return {};
            return QString::fromUtf8(arrowOf(static_cast<double>(entry.before->peakBytes),
                       static_cast<double>(entry.figures->peakBytes),
                       peakChange(*entry.before, *entry.figures)))
                + QLatin1Char(' ')
                + toQString(signedBytes(entry.figures->peakBytes - entry.before->peakBytes));
        case When:
            return timeOf(entry.created);
        default:
            return {};
        }
    case Qt::ToolTipRole: {
        QString text = spoken(entry);
        if (entry.figures) {
            text += tr("\nstep %1, peak %2")
                        .arg(toQString(formatSeconds(entry.figures->stepSeconds)),
                            toQString(formatBytes({entry.figures->peakBytes})));
            text += entry.figures->verified ? tr(", verified") : tr(", not verified");
        } else if (entry.parent >= 0) {
            text += tr("\nits plan is not known: it was not waited for, or its rows could not hold");
        }
        if (entry.created > 0)
            text += QLatin1Char('\n')
                + QLocale().toString(QDateTime::fromMSecsSinceEpoch(entry.created), QLocale::LongFormat);
        return text;
    }
    case Qt::AccessibleTextRole:
        if (index.column() == Tree)
            return tr("Branch lane %1").arg(m_lanes.row(static_cast<std::size_t>(index.row())).lane + 1);
        return index.column() == Words ? spoken(entry) : data(index, Qt::DisplayRole);
    case Qt::TextAlignmentRole:
        if (index.column() >= StepTime)
            return QVariant::fromValue(Qt::Alignment(Qt::AlignRight | Qt::AlignVCenter));
        return {};
    case PlaceRole:
        return static_cast<int>(entry.place);
    case NamesRole:
        return listOf(entry.names);
    case BranchesRole:
        return listOf(entry.heads);
    case ChangeRole:
        if (!compares)
            return {};
        if (index.column() == TimeChange)
            return static_cast<int>(timeChange(*entry.before, *entry.figures));
        if (index.column() == PeakChange)
            return static_cast<int>(peakChange(*entry.before, *entry.figures));
        return {};
    default:
        return {};
    }
}

QVariant HistoryModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Words:
        return tr("Step");
    case StepTime:
        return tr("Step time");
    case TimeChange:
        return tr("Change");
    case Peak:
        return tr("Peak");
    case PeakChange:
        return tr("Change");
    case When:
        return tr("When");
    default:
        return QString();
    }
}

void HistoryFilter::setText(const QString &text)
{
    if (text == m_text)
        return;
    m_text = text;
    invalidateFilter();
}

bool HistoryFilter::filterAcceptsRow(int row, const QModelIndex &parent) const
{
    if (m_text.isEmpty())
        return true;
    const QModelIndex index = sourceModel()->index(row, HistoryModel::Words, parent);
    if (index.data().toString().contains(m_text, Qt::CaseInsensitive))
        return true;
    const auto holds = [this](const QStringList &list) {
        return std::any_of(list.begin(), list.end(),
            [this](const QString &each) { return each.contains(m_text, Qt::CaseInsensitive); });
    };
    return holds(index.data(HistoryModel::NamesRole).toStringList())
        || holds(index.data(HistoryModel::BranchesRole).toStringList());
}

} // namespace planloom

#include "moc_history_model.cpp"
