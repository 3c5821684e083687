// Runs that are stopped or break, as a person meets them: what happened is said, nothing goes on, and the
// next run works.

#include <QtCore/QDir>
#include <QtCore/QElapsedTimer>
#include <QtCore/QFile>
#include <QtCore/QFileInfo>
#include <QtCore/QObject>
#include <QtCore/QScopeGuard>
#include <QtCore/QTemporaryDir>

#include "tests/e2e/runs_in_window.h"

#include <algorithm>
#include <csignal>
#include <limits>
#include <map>
#include <random>

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

/// What a run may leave, and how many of it: what lies where temporary files do, and what this process has
/// open: files, sockets and memory that processes share, which have no names.
std::map<QString, int> thingsOpen()
{
    std::map<QString, int> things;
    for (const QString &name :
        QDir::temp().entryList(QDir::AllEntries | QDir::Hidden | QDir::System | QDir::NoDotAndDotDot))
        ++things[name];
    for (const QFileInfo &each :
        QDir(QStringLiteral("/proc/self/fd")).entryInfoList(QDir::System | QDir::Files)) // numbers differ
        ++things[QFile::symLinkTarget(each.filePath()).section(QLatin1Char('['), 0, 0)];
    return things;
}

/// Of these there are more than before; of others that threads have which end when they are idle, fewer.
QString addedTo(const std::map<QString, int> &before)
{
    QString added;
    for (const auto &[thing, count] : thingsOpen())
        if (const auto known = before.find(thing); known == before.end() || known->second < count)
            added += thing + QLatin1Char(' ');
    return added;
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

    /// PLANLOOM_ENDED_RUNS=N: as often, stopped and with a rank killed.
    void whateverMomentARunIsEndedAtNothingIsLeftOfIt()
    {
        const int rounds = std::max(2, qEnvironmentVariableIntValue("PLANLOOM_ENDED_RUNS"));
        const QTemporaryDir own; // other tests have theirs elsewhere
        const QByteArray common = qgetenv("TMPDIR");
        qputenv("TMPDIR", QFile::encodeName(own.path()));
        const auto restored =
            qScopeGuard([&common] { common.isEmpty() ? qunsetenv("TMPDIR") : qputenv("TMPDIR", common); });
        RunStage stage;
        stage.open();
        stage.expectTheNextToRun(); // has opened what a window keeps open
        const auto before = thingsOpen();
        std::mt19937 random(1);
        int inTime = 0; // while it ran, and not before
        for (int round = 0; round < 2 * rounds; ++round) {
            stage.start(100'000);
            QTest::qWait(static_cast<int>(random() % 2000));
            if (round % 2 == 0) {
                stage.run->stopAction()->trigger();
            } else {
                QTRY_VERIFY_WITH_TIMEOUT(runners().size() > 1, kLong);
                const pid_t rank = lastRank();
                inTime += stage.run->service().record().losses.empty() ? 0 : 1;
                ::kill(rank, SIGKILL);
            }
            QTRY_VERIFY_WITH_TIMEOUT(!stage.run->service().isRunning() && runners().empty(), 5000);
            QVERIFY2(stage.run->service().record().state
                    == (round % 2 == 0 ? RunState::Stopped : RunState::Failed),
                stage.run->service().record().sentence().c_str());
        }
        QVERIFY(stage.at.settled());
        QTRY_COMPARE_WITH_TIMEOUT(addedTo(before), QString(), 5000);
        stage.expectTheNextToRun();
        qInfo("%d of %d were killed as they computed steps", inTime, rounds);
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
