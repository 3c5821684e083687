#include "widgets/run/run_models.h"

#include "widgets/common/format.h"

#include <QtCore/QDateTime>
#include <QtCore/QLocale>

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

QString secondsText(double seconds)
{
    return QString::fromStdString(formatSeconds(seconds));
}

QString bytesText(std::int64_t bytes)
{
    return QString::fromStdString(formatBytes(Bytes{bytes}));
}

/// "+12%" of measured over predicted; empty where one is missing.
QString percentText(double predicted, double measured)
{
    if (!(predicted > 0) || !(measured > 0))
        return {};
    const double percent = 100 * (measured / predicted - 1);
    return (percent < 0 ? QStringLiteral("−") : QStringLiteral("+"))
        + QString::number(std::abs(percent), 'f', std::abs(percent) < 10 ? 1 : 0) + QLatin1Char('%');
}

} // namespace

void RunFiguresModel::addThroughput(std::vector<Line> &lines, const RunRecord &record) const
{
    const double before = record.predictedStepSeconds;
    const double after = record.measuredStepSeconds();
    const auto add = [&](const QString &figure, const auto &figureIn, const auto &textOf) {
        const double predicted = before > 0 ? figureIn(before) : 0;
        const double measured = after > 0 ? figureIn(after) : 0;
        lines.push_back({figure, predicted > 0 ? textOf(predicted) : QString(),
            measured > 0 ? textOf(measured) : QString(), percentText(predicted, measured)});
    };
    const auto quantity = [](double value) { return QString::fromStdString(formatQuantity(value)); };
    for (const auto &[figure, count] : {std::pair{tr("Samples a second"), record.work.samples},
             std::pair{tr("Tokens a second"), record.work.tokens}})
        if (count > 0)
            add(
                figure, [count = count](double seconds) { return static_cast<double>(count) / seconds; },
                quantity);
    if (record.work.flops > 0 && record.fastestRate > 0)
        add(
            tr("MFU of %1 GFLOP/s").arg(record.fastestRate * 1e-9, 0, 'f', record.fastestRate < 1e10 ? 1 : 0),
            [&](double seconds) { return modelFlopsUtilization(record.work, seconds, record.fastestRate); },
            [](double share) { return QString::number(100 * share, 'f', 1) + QLatin1Char('%'); });
    if (!lines.empty())
        lines.back().isUtilization = record.work.flops > 0 && record.fastestRate > 0;
}

void RunFiguresModel::setRun(const RunRecord &record, const Timeline *predicted, double memoryCap)
{
    std::vector<Line> lines;
    const double measuredStep = record.measuredStepSeconds();
    lines.push_back(
        {tr("Step"), record.predictedStepSeconds > 0 ? secondsText(record.predictedStepSeconds) : QString(),
            measuredStep > 0 ? secondsText(measuredStep) : QString(),
            percentText(record.predictedStepSeconds, measuredStep)});
    addThroughput(lines, record);
    if (const QString over = QString::fromStdString(record.measuredOver()); over != m_over) {
        m_over = over;
        Q_EMIT headerDataChanged(Qt::Horizontal, Measured, Measured);
    }
    const Timeline *measured = record.measured().get();
    for (std::size_t d = 0; d < record.devices.size(); ++d) {
        const bool knowsPrediction = predicted && d < predicted->busy.size();
        const bool knowsMeasure = measured && d < measured->busy.size();
        const double before = knowsPrediction ? static_cast<double>(predicted->busy[d].count()) * 1e-9 : 0;
        const double after = knowsMeasure ? static_cast<double>(measured->busy[d].count()) * 1e-9 : 0;
        lines.push_back({tr("Device %1, busy").arg(d), knowsPrediction ? secondsText(before) : QString(),
            knowsMeasure ? secondsText(after) : QString(), percentText(before, after)});
        const std::int64_t peakBefore = knowsPrediction ? predicted->memory[d].peak.count : 0;
        const std::int64_t peakAfter = d < record.peakBytes.size() ? record.peakBytes[d] : 0;
        lines.push_back(
            {tr("Device %1, peak memory").arg(d), peakBefore > 0 ? bytesText(peakBefore) : QString(),
                peakAfter > 0 ? bytesText(peakAfter) : QString(),
                percentText(static_cast<double>(peakBefore), static_cast<double>(peakAfter)),
                memoryCap > 0 ? bytesText(static_cast<std::int64_t>(memoryCap)) : QString()});
    }
    if (lines.size() != m_lines.size()) {
        beginResetModel();
        m_lines = std::move(lines);
        endResetModel();
        return;
    }
    for (std::size_t i = 0; i < lines.size(); ++i) {
        if (m_lines[i] == lines[i])
            continue;
        m_lines[i] = std::move(lines[i]);
        Q_EMIT dataChanged(index(static_cast<int>(i), 0), index(static_cast<int>(i), ColumnCount - 1));
    }
}

int RunFiguresModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_lines.size());
}

int RunFiguresModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant RunFiguresModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid())
        return {};
    if (role == Qt::TextAlignmentRole)
        return index.column() == Figure ? QVariant(Qt::AlignLeft | Qt::AlignVCenter)
                                        : QVariant(Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole && m_lines[static_cast<std::size_t>(index.row())].isUtilization)
        return tr("Model FLOPs utilisation: what the model's operators compute in a step, each once,\n"
                  "as a share of the fastest that a kernel was measured to compute on this machine");
    if (role == Qt::ToolTipRole && index.column() == Figure)
        return m_lines[static_cast<std::size_t>(index.row())].figure;
    if (role != Qt::DisplayRole && role != Qt::AccessibleTextRole)
        return {};
    const Line &line = m_lines[static_cast<std::size_t>(index.row())];
    switch (index.column()) {
    case Figure:
        return line.figure;
    case Predicted:
        return line.predicted;
    case Measured:
        return line.measured;
    case Difference:
        return line.difference;
    default:
        return line.cap;
    }
}

QVariant RunFiguresModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || (role != Qt::DisplayRole && role != Qt::ToolTipRole))
        return {};
    const bool isLong = role == Qt::ToolTipRole;
    switch (section) {
    case Figure:
        return tr("Figure");
    case Predicted:
        return isLong ? tr("Predicted for this machine, as it was calibrated") : tr("Predicted");
    case Measured:
        if (!isLong)
            return tr("Measured");
        return m_over.isEmpty() ? tr("Measured on this machine")
                                : tr("Measured on this machine: %1").arg(m_over);
    case Difference:
        return isLong ? tr("By how much measured is more than predicted") : tr("Error");
    default:
        return tr("Cap");
    }
}

void RunListModel::setRuns(const std::vector<SessionRun> &runs)
{
    std::vector<Entry> entries;
    for (auto run = runs.rbegin(); run != runs.rend(); ++run) {
        Entry entry{run->id,
            QLocale().toString(QDateTime::fromMSecsSinceEpoch(run->created), QLocale::ShortFormat),
            QString::fromStdString(run->title), QString::fromStdString(run->state), {}, {}};
        if (const auto record = RunRecord::fromJson(run->details)) {
            if (const double step = record->measuredStepSeconds(); step > 0)
                entry.step = secondsText(step);
            if (!record->losses.empty())
                entry.loss = QString::number(record->losses.back(), 'g', 5);
        }
        entries.push_back(std::move(entry));
    }
    if (entries == m_entries)
        return;
    beginResetModel();
    m_entries = std::move(entries);
    endResetModel();
}

std::int64_t RunListModel::runAt(int row) const
{
    return row >= 0 && row < rowCount() ? m_entries[static_cast<std::size_t>(row)].id : 0;
}

int RunListModel::rowCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_entries.size());
}

int RunListModel::columnCount(const QModelIndex &parent) const
{
    return parent.isValid() ? 0 : ColumnCount;
}

QVariant RunListModel::data(const QModelIndex &index, int role) const
{
    if (!index.isValid() || (role != Qt::DisplayRole && role != Qt::AccessibleTextRole))
        return {};
    const Entry &entry = m_entries[static_cast<std::size_t>(index.row())];
    switch (index.column()) {
    case Started:
        return entry.started;
    case Title:
        return entry.title;
    case State:
        return entry.state;
    case Step:
        return entry.step;
    default:
        return entry.loss;
    }
}

QVariant RunListModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || role != Qt::DisplayRole)
        return {};
    switch (section) {
    case Started:
        return tr("Started");
    case Title:
        return tr("Run");
    case State:
        return tr("State");
    case Step:
        return tr("Step");
    default:
        return tr("Loss");
    }
}

} // namespace planloom

#include "moc_run_models.cpp"
