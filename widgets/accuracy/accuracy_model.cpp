#include "widgets/accuracy/accuracy_model.h"

#include "engine/base/units.h"
#include "widgets/common/format.h"
#include "widgets/common/qt_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace planloom {

namespace {

constexpr quintptr kGroupId = std::numeric_limits<quintptr>::max(); ///< Else the group that a row is in.

bool isFigure(int column)
{
    return column == AccuracyModel::Devices
        || (column >= AccuracyModel::Off && column <= AccuracyModel::MeasuredPeak);
}

QVariant figure(const std::optional<double> &value, int role, std::string (*words)(double))
{
    if (!value)
        return role == AccuracyModel::kSortRole ? QVariant(-1.0) : QVariant();
    return role == AccuracyModel::kSortRole ? QVariant(std::abs(*value)) : QVariant(toQString(words(*value)));
}

std::string secondsWords(double seconds)
{
    return formatSeconds(seconds);
}

std::string byteWords(double bytes)
{
    return formatBytes(Bytes{std::llround(bytes)});
}

std::string errorWords(double error)
{
    return QStringLiteral("%1%2%")
        .arg(error < 0 ? QStringLiteral("−") : QStringLiteral("+"))
        .arg(std::abs(100 * error), 0, 'f', 1)
        .toStdString();
}

} // namespace

AccuracyModel::AccuracyModel(QObject *parent)
    : QAbstractItemModel(parent)
{
}

void AccuracyModel::setRows(std::vector<MeasuredRow> rows)
{
    beginResetModel();
    m_rows = std::move(rows);
    std::stable_sort(m_rows.begin(), m_rows.end(),
        [](const MeasuredRow &a, const MeasuredRow &b) { return a.source < b.source; });
    m_groups.clear();
    for (int first = 0; first < static_cast<int>(m_rows.size());) {
        Group group{first, 0, {}, {}};
        std::vector<double> steps;
        std::vector<double> peaks;
        const std::string &source = m_rows[static_cast<std::size_t>(first)].source;
        for (; first < static_cast<int>(m_rows.size()); ++first, ++group.count) {
            const MeasuredRow &row = m_rows[static_cast<std::size_t>(first)];
            if (row.source != source)
                break;
            if (const auto error = row.stepError())
                steps.push_back(*error);
            if (const auto error = row.peakError())
                peaks.push_back(*error);
        }
        group.step = summaryOf(std::move(steps));
        group.peak = summaryOf(std::move(peaks));
        m_groups.push_back(group);
    }
    endResetModel();
}

void AccuracyModel::setColours(std::vector<QColor> colours)
{
    m_colours = std::move(colours);
    if (!m_groups.empty())
        Q_EMIT dataChanged(index(0, Run), index(groupCount() - 1, Run), {Qt::DecorationRole});
}

int AccuracyModel::groupOf(int row) const
{
    const auto found = std::find_if(m_groups.begin(), m_groups.end(),
        [row](const Group &group) { return row < group.first + group.count; });
    return static_cast<int>(found - m_groups.begin());
}

QModelIndex AccuracyModel::indexOf(int row) const
{
    if (row < 0 || row >= static_cast<int>(m_rows.size()))
        return {};
    const int group = groupOf(row);
    return createIndex(
        row - m_groups[static_cast<std::size_t>(group)].first, 0, static_cast<quintptr>(group));
}

std::optional<int> AccuracyModel::rowOf(const QModelIndex &index) const
{
    if (!index.isValid() || index.internalId() == kGroupId)
        return std::nullopt;
    return m_groups[index.internalId()].first + index.row();
}

QModelIndex AccuracyModel::index(int row, int column, const QModelIndex &parent) const
{
    if (!hasIndex(row, column, parent))
        return {};
    return createIndex(row, column, parent.isValid() ? static_cast<quintptr>(parent.row()) : kGroupId);
}

QModelIndex AccuracyModel::parent(const QModelIndex &child) const
{
    if (!child.isValid() || child.internalId() == kGroupId)
        return {};
    return createIndex(static_cast<int>(child.internalId()), 0, kGroupId);
}

int AccuracyModel::rowCount(const QModelIndex &parent) const
{
    if (!parent.isValid())
        return groupCount();
    return parent.internalId() == kGroupId && parent.column() == 0
        ? m_groups[static_cast<std::size_t>(parent.row())].count
        : 0;
}

int AccuracyModel::columnCount(const QModelIndex &) const
{
    return Columns;
}

QVariant AccuracyModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    if (role == Qt::TextAlignmentRole)
        return isFigure(index.column()) ? QVariant(Qt::AlignRight | Qt::AlignVCenter) : QVariant();
    if (const auto row = rowOf(index))
        return ofRow(m_rows[static_cast<std::size_t>(*row)], index.column(), role);
    const auto group = static_cast<std::size_t>(index.row());
    if (role == Qt::DecorationRole && index.column() == Run && group < m_colours.size())
        return m_colours[group];
    return ofGroup(m_groups[group], index.column(), role);
}

QVariant AccuracyModel::ofGroup(const Group &group, int column, int role) const
{
    if (role != Qt::DisplayRole && role != Qt::ToolTipRole && role != kSortRole)
        return {};
    const auto summary = [&](const ErrorSummary &errors) {
        if (role == kSortRole)
            return errors.count > 0 ? QVariant(errors.median) : QVariant(-1.0);
        if (errors.count == 0)
            return QVariant();
        const QString brief =
            tr("%1% (%2%)").arg(100 * errors.median, 0, 'f', 1).arg(100 * errors.worst, 0, 'f', 1);
        return QVariant(role == Qt::DisplayRole ? brief
                                                : tr("Off by %1% in the median and %2% at worst, of %3 runs")
                                                      .arg(100 * errors.median, 0, 'f', 1)
                                                      .arg(100 * errors.worst, 0, 'f', 1)
                                                      .arg(errors.count));
    };
    switch (column) {
    case Run: {
        const QString source = toQString(m_rows[static_cast<std::size_t>(group.first)].source);
        return role == kSortRole ? source : tr("%1 (%2 runs)").arg(source).arg(group.count);
    }
    case Off:
        return summary(group.step);
    case PeakOff:
        return summary(group.peak);
    default:
        return isFigure(column) && role == kSortRole ? QVariant(-1.0) : QVariant();
    }
}

QVariant AccuracyModel::ofRow(const MeasuredRow &row, int column, int role)
{
    if (role != Qt::DisplayRole && role != Qt::ToolTipRole && role != kSortRole)
        return {};
    switch (column) {
    case Run:
        return toQString(row.model);
    case Device:
        return toQString(row.device);
    case Devices:
        return row.devices > 0 ? QVariant(static_cast<qlonglong>(row.devices)) : QVariant();
    case Framework:
        return toQString(row.framework);
    case Predicted:
        return figure(row.predictedSeconds, role, secondsWords);
    case Measured:
        return figure(row.measuredSeconds, role, secondsWords);
    case Off:
        return figure(row.stepError(), role, errorWords);
    case PredictedPeak:
        return figure(row.predictedPeak, role, byteWords);
    case MeasuredPeak:
        return figure(row.measuredPeak, role, byteWords);
    case PeakOff:
        return figure(row.peakError(), role, errorWords);
    case Remark:
        return !row.skipped.empty() ? tr("not predicted: %1").arg(toQString(row.skipped))
            : !row.as.empty()       ? tr("predicted as %1").arg(toQString(row.as))
                                    : QString();
    default:
        return {};
    }
}

QVariant AccuracyModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || (role != Qt::DisplayRole && role != Qt::ToolTipRole))
        return {};
    switch (section) {
    case Run:
        return role == Qt::DisplayRole ? tr("Run") : tr("The model, below the source of its measurement");
    case Device:
        return tr("Device");
    case Devices:
        return tr("Devices");
    case Framework:
        return role == Qt::DisplayRole ? tr("Framework") : tr("The framework that the step is predicted for");
    case Predicted:
        return role == Qt::DisplayRole ? tr("Step") : tr("Predicted time of a training step");
    case Measured:
        return role == Qt::DisplayRole ? tr("Measured") : tr("Measured time of a training step");
    case Off:
        return role == Qt::DisplayRole
            ? tr("Step off")
            : tr("Predicted over measured time, less 1; of a source the median, and "
                 "in brackets the worst, whichever way");
    case PredictedPeak:
        return role == Qt::DisplayRole ? tr("Peak") : tr("Predicted peak memory of the fullest device");
    case MeasuredPeak:
        return role == Qt::DisplayRole ? tr("Measured") : tr("Measured peak memory");
    case PeakOff:
        return role == Qt::DisplayRole ? tr("Peak off")
                                       : tr("Predicted over measured memory, less 1; of a source the median, "
                                            "and in brackets the worst, whichever way");
    case Remark:
        return tr("Remark");
    default:
        return {};
    }
}

} // namespace planloom

#include "moc_accuracy_model.cpp"
