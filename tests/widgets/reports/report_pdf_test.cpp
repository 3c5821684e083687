// A report as PDF: pages, pictures of the timelines where spans are, and a file that is whole.

#include <QtCore/QFile>
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>

#include "engine/simulate/simulate.h"
#include "tests/engine/simulate/gallery_plans.h"
#include "tests/qt_test.h"
#include "widgets/common/palette.h"
#include "widgets/reports/report_pdf.h"

namespace planloom {
namespace {

ReportedPlan planOf(const char *gallery, std::int32_t devices)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=4&hidden=16&batch=16");
    const SimulatedPlan simulatedPlan = simulated(gallery, galleryPlan(graph, gallery, devices));
    return {simulatedPlan.name, simulatedPlan.plan, simulatedPlan.cluster, simulatedPlan.timeline, {}};
}

class ReportPdfTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void drawsWhatADeviceDoesAndLeavesItsIdleTimeEmpty()
    {
        const ReportedPlan plan = planOf("pipeline:schedule=gpipe,micro-batches=4", 2);
        const QImage picture = timelinePicture(plan, 3000);
        QCOMPARE(picture.width(), 3000);
        const Palette &palette = lightPalette();
        const auto count = [&](const QColor &colour) {
            std::int64_t pixels = 0;
            for (int y = 0; y < picture.height(); ++y)
                for (int x = 0; x < picture.width(); ++x)
                    pixels += picture.pixel(x, y) == colour.rgb() ? 1 : 0;
            return pixels;
        };
        QVERIFY(count(directionColour(palette, Direction::Forward)) > 1000);
        QVERIFY(count(directionColour(palette, Direction::Backward)) > 1000);
        QVERIFY(count(palette.surfaceRaised) > 10000);
    }

    void isAPdfWithAllSectionsOrOfTwoPlans()
    {
        const QByteArray one = reportPdf({{planOf("data-parallel", 2)}, {}});
        QVERIFY(one.startsWith("%PDF-"));
        QVERIFY(one.contains("%%EOF"));
        const QByteArray two = reportPdf({{planOf("data-parallel", 2), planOf("tensor-parallel", 4)}, {}});
        QVERIFY(two.count("/Type /Page\n") + two.count("/Type /Page ") >= one.count("/Type /Page\n"));
        QVERIFY(two.size() > one.size());
    }

    void isWrittenWholeOrNotAtAll()
    {
        const QTemporaryDir folder;
        const Report report{{planOf("data-parallel", 2)}, {}};
        const QString path = folder.filePath(QStringLiteral("a.pdf"));
        QVERIFY(writeReportPdf(report, path));
        QFile file(path);
        QVERIFY(file.open(QIODevice::ReadOnly));
        QVERIFY(file.readAll().startsWith("%PDF-"));
        const auto nowhere = writeReportPdf(report, folder.filePath(QStringLiteral("no/such.pdf")));
        QVERIFY(!nowhere);
        QCOMPARE(nowhere.error().code, ErrorCode::NotFound);
    }
};

} // namespace
} // namespace planloom

using planloom::ReportPdfTest;
PLANLOOM_QTEST(ReportPdfTest)

#include "report_pdf_test.moc"
