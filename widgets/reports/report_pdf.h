#pragma once

#include "engine/base/result.h"
#include "engine/report/report.h"

#include <QtGui/QImage>

#include <QtCore/QByteArray>
#include <QtCore/QString>

namespace planloom {

/// The step of one plan as a still picture, `width` pixels wide: devices under one another, as on the page
/// for screens, in the colours of the light theme. For workers. O(spans of the devices that are drawn)
QImage timelinePicture(const ReportedPlan &plan, int width);

/// The report as a PDF of A4 pages, across. For workers.
QByteArray reportPdf(const Report &report);

/// Writes it whole or not at all. Waits for the disk. @return as `writeFile`
Result<void> writeReportPdf(const Report &report, const QString &path);

} // namespace planloom
