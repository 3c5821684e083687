#include "widgets/run/span_errors.h"

#include "widgets/common/format.h"

#include <cmath>

namespace planloom {

void SpanErrorsModel::setErrors(const SpanErrors &errors)
{
    beginResetModel();
    m_lines = errors.kinds;
    m_lines.insert(m_lines.end(), errors.worst.begin(), errors.worst.end());
    endResetModel();
}

OperatorId SpanErrorsModel::operatorAt(int row) const
{
    return row >= 0 && row < rowCount() ? m_lines[static_cast<std::size_t>(row)].op : OperatorId{};
}

int SpanErrorsModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_lines.size());
}

int SpanErrorsModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant SpanErrorsModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant((index.column() == What ? Qt::AlignLeft : Qt::AlignRight) | Qt::AlignVCenter);
    if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole)
        return {};
    const SpanError &line = m_lines[static_cast<std::size_t>(index.row())];
    const auto seconds = [](double value) { return QString::fromStdString(formatSeconds(value)); };
    switch (index.column()) {
    case What:
        return line.device < 0 ? tr("all %1").arg(QString::fromStdString(line.what))
                               : QString::fromStdString(line.what);
    case Device:
        return line.device < 0 ? QString() : QString::number(line.device);
    case Count:
        return QString::number(line.count);
    case Predicted:
        return seconds(line.predicted);
    case Measured:
        return seconds(line.measured);
    default: {
        const double difference = line.measured - line.predicted;
        return (difference < 0 ? QStringLiteral("−") : QStringLiteral("+")) + seconds(std::abs(difference));
    }
    }
}

QVariant SpanErrorsModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case What:
        return tr("Totals, and the worst spans");
    case Device:
        return tr("Device");
    case Count:
        return tr("Spans");
    case Predicted:
        return tr("Predicted");
    case Measured:
        return tr("Measured");
    default:
        return tr("Off by");
    }
}

} // namespace planloom

#include "moc_span_errors.cpp"
