// The way back out of what is wrong: the nearest step whose plan is known to fit.

#include <QtTest/QTest>

#include "sessions/history.h"
#include "tests/qt_test.h"
#include "widgets/problems/ways_out.h"

using namespace planloom;

namespace {

constexpr double kMemory = 1'000;

/// Steps one behind the other, each another number of devices.
History historyOf(int steps)
{
    History history;
    for (int step = 1; step <= steps; ++step) {
        const auto before = step == 1 ? std::nullopt : std::optional<std::string>(std::to_string(step - 1));
        const auto made = history.record("plan for " + std::to_string(step) + " devices",
            {{}, {{"devices", before, std::to_string(step)}}}, step);
        if (!made)
            qFatal("no step");
    }
    return history;
}

StepFigures figures(std::int64_t peak)
{
    StepFigures figures;
    figures.stepSeconds = 0.02;
    figures.peakBytes = peak;
    return figures;
}

} // namespace

class WaysBackTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theLastEditIsUndoneWhereThePlanBeforeItFits()
    {
        History history = historyOf(3);
        history.setFigures(2, figures(900));
        const auto way = wayBack(history, kMemory);
        QVERIFY(way);
        QCOMPARE(way->step, StepId{2});
        QVERIFY2(way->words.find("undo") == 0 && way->words.find("plan for 3 devices") != std::string::npos,
            way->words.c_str());
        QVERIFY2(way->effect.find("step 20.0 ms") != std::string::npos, way->effect.c_str());
    }

    void stepsWithoutAPlanAndThoseThatDoNotFitArePassedBy()
    {
        History history = historyOf(4);
        history.setFigures(0, figures(500));
        history.setFigures(1, figures(800));
        history.setFigures(3, figures(1'001)); // more than a device has
        const auto way = wayBack(history, kMemory);
        QVERIFY(way);
        QCOMPARE(way->step, StepId{1});
        QVERIFY2(way->words.find('3') != std::string::npos
                && way->words.find("plan for 2 devices") != std::string::npos,
            way->words.c_str());
    }

    void thereIsNoneWhereNothingBeforeIsKnownToWork()
    {
        History history = historyOf(2);
        QVERIFY(!wayBack(history, kMemory));
        history.setFigures(2, figures(10)); // of the present step: that is no way back
        QVERIFY(!wayBack(history, kMemory));
        QVERIFY(!wayBack(History(), kMemory));
    }
};

PLANLOOM_QTEST(WaysBackTest)

#include "ways_back_test.moc"
