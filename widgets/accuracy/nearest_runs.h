#pragma once

#include <QtCore/QString>

#include "engine/base/result.h"
#include "engine/measured/measured_rows.h"

#include <vector>

namespace planloom {

/// Where the program's own measured runs are: files as `measuredRows` reads them.
inline const QString kShownRuns = QStringLiteral(":/planloom/runs");

/// Rows of all files of `folder`. Waits for the disk.
/// @return Io; InvalidInput, of the first file that is wrong
Result<std::vector<MeasuredRow>> rowsOfFolder(const QString &folder);

/// "llama31_70b on 64 × H100 with tp 4, pp 4, cp 2"
QString nameOfRun(const MeasuredRow &row);

/// What predictions of the measured runs nearest to `run` are off by, in a few words: "like runs −5 to +6%".
/// Empty where none are like it, and while the program's own runs are read, which the first call begins.
/// GUI thread.
QString nearestRunsText(const RunLikeness &run);

/// The same as rich text, run by run: predicted and measured.
QString nearestRunsTip(const RunLikeness &run);

/// Of rows that are known.
QString nearestRunsText(const std::vector<MeasuredRow> &rows, const RunLikeness &run);
QString nearestRunsTip(const std::vector<MeasuredRow> &rows, const RunLikeness &run);

} // namespace planloom
