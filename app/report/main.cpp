// planloom-report OUT.pdf CLUSTER PLAN|SESSION [PLAN|SESSION]: writes a report as PDF, without a display.
// CLUSTER is empty for that of the files. planloom-cli starts it, has looked at the files before, and passes
// its status on.

#include <QtGui/QGuiApplication>

#include "sessions/session_report.h"
#include "widgets/reports/report_pdf.h"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kUsage = 2;

int failed(const planloom::Error &error)
{
    std::fprintf(stderr, "planloom-report: %s\n", planloom::describe(error).c_str());
    return kFailed;
}

} // namespace

int main(int argc, char **argv)
{
    if (argc < 4 || argc > 5) {
        std::fputs("planloom-report OUT.pdf CLUSTER PLAN [OTHER]: planloom-cli report starts it\n", stderr);
        return kUsage;
    }
    ::setenv("QT_QPA_PLATFORM", "offscreen", 1);
    const QGuiApplication application(argc, argv);
    const auto report = planloom::reportOfFiles(argv[3], argc > 4 ? argv[4] : "", argv[2]);
    if (!report)
        return failed(report.error());
    const auto written = planloom::writeReportPdf(*report, QString::fromLocal8Bit(argv[1]));
    return written ? kDone : failed(written.error());
}
