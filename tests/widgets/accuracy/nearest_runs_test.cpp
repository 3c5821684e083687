#include <QtCore/QObject>
#include <QtTest/QTest>

#include "tests/qt_test.h"
#include "widgets/accuracy/nearest_runs.h"

using namespace planloom;

namespace {

MeasuredRow rowOf(const char *model, double parameters, std::int64_t devices, double predicted)
{
    MeasuredRow row;
    row.model = model;
    row.device = "H100";
    row.devices = devices;
    row.profile = "dgx-h100";
    row.parameters = parameters;
    row.predictedSeconds = predicted;
    row.measuredSeconds = 10;
    return row;
}

} // namespace

class NearestRunsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void areOfTheSizeAndTheDevicesOfTheDesign()
    {
        std::vector<MeasuredRow> rows{rowOf("70B", 70e9, 64, 9.5), rowOf("8B", 7e9, 64, 12),
            rowOf("405B", 405e9, 512, 11), rowOf("70B again", 70e9, 128, 10.6)};
        rows[0].degrees = "tp 4, pp 4";
        const RunLikeness run{65e9, false, "dgx-h100", 64, {}};
        QCOMPARE(nearestRows(rows, run, 9), (std::vector<std::size_t>{0, 3, 2}));
        QCOMPARE(nearestRunsText(rows, run), QStringLiteral("like runs −5% to +10%"));
        const QString tip = nearestRunsTip(rows, run);
        QVERIFY2(tip.contains(QStringLiteral(
                     "70B on 64 × H100 with tp 4, pp 4: predicted 9.50 s, measured 10.0 s (−5.0%)")),
            qPrintable(tip));
        QVERIFY(!tip.contains(QStringLiteral("<li>8B")));
    }

    void areNoOthers()
    {
        std::vector<MeasuredRow> rows{rowOf("mixture", 70e9, 64, 9.5), rowOf("failed", 70e9, 64, 9.5)};
        rows[0].isMixture = true;
        rows[1].measuredSeconds.reset();
        const RunLikeness run{65e9, false, "dgx-a100", 64, {}};
        QVERIFY(nearestRunsText(rows, run).isEmpty());
        QVERIFY(nearestRunsTip(rows, run).isEmpty());
        rows[1].measuredSeconds = 10;
        rows.push_back(rowOf("on the design's devices", 70e9, 64, 11));
        rows[2].profile = run.profile;
        QCOMPARE(nearestRows(rows, run, 1), std::vector<std::size_t>{2});
    }

    /// Those that the program has: read in the background; the nearest of a run of theirs is on its devices.
    void ofTheProgramAreRead()
    {
        const auto rows = rowsOfFolder(kShownRuns);
        QVERIFY2(rows, rows ? "" : describe(rows.error()).c_str());
        int asked = 0;
        for (const MeasuredRow &row : *rows) {
            if (!row.stepError())
                continue;
            const RunLikeness run{row.parameters, row.isMixture, row.profile, row.devices, row.framework};
            const auto nearest = nearestRows(*rows, run, 1);
            QCOMPARE(nearest.size(), std::size_t{1});
            QCOMPARE((*rows)[nearest[0]].profile, row.profile);
            QCOMPARE((*rows)[nearest[0]].devices, row.devices);
            QTRY_VERIFY_WITH_TIMEOUT(!nearestRunsText(run).isEmpty(), kLong);
            ++asked;
        }
        QVERIFY(asked > 50);
    }
};

PLANLOOM_QTEST(NearestRunsTest)

#include "nearest_runs_test.moc"
