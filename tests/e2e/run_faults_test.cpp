// Runs that are stopped or break, as a person meets them: what happened is said, nothing goes on, and the
// next run works.

#include <QtCore/QElapsedTimer>
#include <QtCore/QObject>

#include "tests/e2e/runs_in_window.h"

#include <csignal>
#include <limits>

using namespace planloom;

namespace {

/// The rank that was started last; the supervisor is the oldest.
pid_t lastRank()
{
    pid_t last = 0;
    for (const RunnerProcess &process : runners())
        last = std::max(last, process.process);
    return last;
}

} // namespace

class RunFaultsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aRankThatIsKilledIsNamedWithItsDevicesAndWhereTheyWere()
    {
        RunStage stage;
        stage.begin();
        const pid_t rank = lastRank();
        QElapsedTimer timer;
        timer.start();
        ::kill(rank, SIGKILL);
        QTRY_VERIFY_WITH_TIMEOUT(!stage.run->service().isRunning(), kLong);
        QVERIFY2(timer.elapsed() < 5000, qPrintable(QString::number(timer.elapsed())));
        const QString said = stage.said();
        QVERIFY2(said.contains(QStringLiteral("was killed by signal 9")), qPrintable(said));
        QVERIFY2(said.contains(QStringLiteral("ank 1 (devices")), qPrintable(said));
        QVERIFY2(said.contains(QStringLiteral(" was at ")), qPrintable(said));
        QVERIFY2(said.contains(QStringLiteral("run again; the plan is unchanged")), qPrintable(said));
        stage.expectOver(RunState::Failed, 5000);
        stage.expectTheNextToRun();
    }

    void aRunThatIsStoppedEndsWithAllItsProcesses()
    {
        RunStage stage;
        stage.begin();
        QElapsedTimer timer;
        timer.start();
        stage.run->stopAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.run->service().isRunning() && runners().empty(), kLong);
        QVERIFY2(timer.elapsed() < 5000, qPrintable(QString::number(timer.elapsed())));
        stage.expectOver(RunState::Stopped, 5000);
        stage.expectTheNextToRun();
    }

    void aRankThatDoesNotAnswerIsNamedAndCanBeStopped()
    {
        RunStage stage;
        stage.begin();
        QElapsedTimer timer;
        timer.start();
        ::kill(lastRank(), SIGSTOP);
        QTRY_VERIFY_WITH_TIMEOUT(stage.said().contains(QStringLiteral("does not answer any more")), 15'000);
        QVERIFY2(stage.said().contains(QStringLiteral("rank 1 (devices")), qPrintable(stage.said()));
        QVERIFY(stage.run->service().isRunning());
        stage.run->stopAction()->trigger();
        stage.expectOver(RunState::Stopped, 5000);
        stage.expectTheNextToRun();
    }

    void aRunnerThatIsKilledTakesItsRanksWithIt()
    {
        RunStage stage;
        stage.begin();
        pid_t supervisor = std::numeric_limits<pid_t>::max();
        for (const RunnerProcess &process : runners())
            supervisor = std::min(supervisor, process.process);
        ::kill(supervisor, SIGKILL);
        stage.expectOver(RunState::Failed, 5000);
        stage.expectTheNextToRun();
    }

    void aWindowThatGoesTakesItsRunWithIt()
    {
        {
            RunStage stage;
            stage.begin();
        }
        QTRY_VERIFY_WITH_TIMEOUT(runners().empty(), 5000);
    }
};

PLANLOOM_QTEST(RunFaultsTest)
#include "run_faults_test.moc"
