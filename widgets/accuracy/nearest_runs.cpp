#include "widgets/accuracy/nearest_runs.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QCoreApplication>
#include <QtCore/QDir>
#include <QtCore/QFile>

#include "engine/base/units.h"
#include "widgets/common/format.h"
#include "widgets/common/qt_text.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <utility>

namespace planloom {

namespace {

constexpr std::size_t kShown = 3; ///< Of the runs that are nearest.

class NearestRunsTexts
{
    Q_DECLARE_TR_FUNCTIONS(NearestRuns)
};

/// The program's own, once they are read. Where they cannot be, the dialog says why.
const std::vector<MeasuredRow> &shownRuns()
{
    using Rows = std::vector<MeasuredRow>;
    static const Rows none;
    static const QFuture<std::shared_ptr<const Rows>> reading = QtConcurrent::run([] {
        auto rows = rowsOfFolder(kShownRuns);
        return std::make_shared<const Rows>(rows ? *std::move(rows) : Rows());
    });
    static std::shared_ptr<const Rows> rows;
    if (!rows && reading.isFinished())
        rows = reading.result();
    return rows ? *rows : none;
}

QString signedPercent(double share, int decimals)
{
    return (share < 0 ? QStringLiteral("−%1%") : QStringLiteral("+%1%"))
        .arg(std::abs(100 * share), 0, 'f', decimals);
}

} // namespace

Result<std::vector<MeasuredRow>> rowsOfFolder(const QString &folder)
{
    std::vector<MeasuredRow> all;
    for (const QFileInfo &info :
        QDir(folder).entryInfoList({QStringLiteral("*.json")}, QDir::Files, QDir::Name)) {
        QFile file(info.filePath());
        if (!file.open(QIODevice::ReadOnly))
            return Error{ErrorCode::Io, "the file could not be read: " + file.errorString().toStdString(), {},
                info.filePath().toStdString()};
        auto rows = measuredRows(file.readAll().toStdString());
        if (!rows) {
            Error error = std::move(rows).error();
            error.where = info.filePath().toStdString() + "#" + error.where;
            return error;
        }
        std::move(rows->begin(), rows->end(), std::back_inserter(all));
    }
    return all;
}

QString nameOfRun(const MeasuredRow &row)
{
    const QString name = NearestRunsTexts::tr("%1 on %2 × %3")
                             .arg(toQString(row.model))
                             .arg(row.devices)
                             .arg(toQString(row.device));
    return row.degrees.empty() ? name : NearestRunsTexts::tr("%1 with %2").arg(name, toQString(row.degrees));
}

QString nearestRunsText(const std::vector<MeasuredRow> &rows, const RunLikeness &run)
{
    std::vector<double> errors;
    for (const std::size_t row : nearestRows(rows, run, kShown))
        errors.push_back(*rows[row].stepError());
    if (errors.empty())
        return {};
    const auto [least, most] = std::minmax_element(errors.begin(), errors.end());
    const QString from = signedPercent(*least, 0);
    const QString to = signedPercent(*most, 0);
    return from == to ? NearestRunsTexts::tr("like runs %1").arg(from)
                      : NearestRunsTexts::tr("like runs %1 to %2").arg(from, to);
}

QString nearestRunsTip(const std::vector<MeasuredRow> &rows, const RunLikeness &run)
{
    QString list;
    for (const std::size_t number : nearestRows(rows, run, kShown)) {
        const MeasuredRow &row = rows[number];
        list += QStringLiteral("<li>%1</li>")
                    .arg(NearestRunsTexts::tr("%1: predicted %2, measured %3 (%4)")
                             .arg(nameOfRun(row), toQString(formatSeconds(*row.predictedSeconds)),
                                 toQString(formatSeconds(*row.measuredSeconds)),
                                 signedPercent(*row.stepError(), 1))
                             .toHtmlEscaped());
    }
    return list.isEmpty()
        ? QString()
        : NearestRunsTexts::tr("<p>Runs that others measured, nearest to this one:</p><ul>%1</ul>").arg(list);
}

QString nearestRunsText(const RunLikeness &run)
{
    return nearestRunsText(shownRuns(), run);
}

QString nearestRunsTip(const RunLikeness &run)
{
    return nearestRunsTip(shownRuns(), run);
}

} // namespace planloom
