// Runs that are stopped or break, as a person meets them: what happened is said, nothing goes on, and the
// next run works.

#include <QtCore/QElapsedTimer>
#include <QtCore/QObject>
#include <QtTest/QTest>
#include <QtWidgets/QLabel>

#include "planloom_paths.h"
#include "tests/e2e/window_for_tests.h"
#include "tests/qt_test.h"
#include "widgets/run/run_panel.h"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <vector>

#include <unistd.h>

using namespace planloom;

namespace {

struct Process {
    pid_t process = 0;
    std::string name{};
};

/// The runner and its ranks: processes that this one has started, and those that they have.
std::vector<Process> runners()
{
    std::map<pid_t, std::vector<Process>> children;
    std::error_code none;
    for (const auto &entry : std::filesystem::directory_iterator("/proc", none)) {
        std::ifstream file(entry.path() / "stat"); // "12 (name) S 1 ..."
        std::string text;
        if (!std::getline(file, text))
            continue;
        const std::size_t open = text.find('(');
        const std::size_t close = text.rfind(')');
        if (open == std::string::npos || close == std::string::npos || text.substr(close + 2, 1) == "Z")
            continue;
        children[static_cast<pid_t>(std::stol(text.substr(close + 4)))].push_back(
            {static_cast<pid_t>(std::stol(text)), text.substr(open + 1, close - open - 1)});
    }
    std::vector<Process> found;
    std::vector<pid_t> open{::getpid()};
    while (!open.empty()) {
        const pid_t parent = open.back();
        open.pop_back();
        for (const Process &child : children[parent]) {
            open.push_back(child.process);
            if (child.name == "planloom-exec")
                found.push_back(child);
        }
    }
    return found;
}

struct Stage {
    WindowForTests at;
    RunPanel *run = nullptr;

    /// Starts a run of two ranks that goes on for ever, and waits until it does.
    void begin()
    {
        if (run == nullptr) {
            at.workspace().openWith({kSmallGpt, {}, {}}, "dgx-a100", 4, "data-parallel");
            QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kLong);
            run = at.window->run();
            run->service().setProgram(QStringLiteral(PLANLOOM_BINARY_DIR "/bin/planloom-exec"));
        }
        start({.steps = 100'000, .check = false, .live = false, .seed = 1, .ranks = 2});
        QTRY_VERIFY_WITH_TIMEOUT(run->service().record().losses.size() > 2, kLong);
        QTRY_COMPARE_WITH_TIMEOUT(runners().size(), std::size_t{3}, kLong); // supervisor and ranks, no probe
    }

    void start(const RunSetup &setup)
    {
        run->setSetup(setup);
        QTRY_VERIFY_WITH_TIMEOUT(run->runAction()->isEnabled(), kLong);
        run->runAction()->trigger();
    }

    /// The rank that was started last; the supervisor is the oldest.
    static pid_t lastRank()
    {
        pid_t last = 0;
        for (const Process &process : runners())
            last = std::max(last, process.process);
        return last;
    }

    /// After a fault: all has ended, the window says so, and goes on working.
    void expectOver(RunState state, int milliseconds)
    {
        QTRY_VERIFY_WITH_TIMEOUT(!run->service().isRunning(), milliseconds);
        QTRY_VERIFY_WITH_TIMEOUT(runners().empty(), milliseconds);
        QVERIFY2(run->service().record().state == state, run->service().record().sentence().c_str());
        QVERIFY(at.settled());
        start({.steps = 1, .check = false, .live = false, .seed = 1, .ranks = 2});
        QTRY_VERIFY_WITH_TIMEOUT(!run->service().isRunning(), kLong);
        QVERIFY2(run->service().record().state == RunState::Done, run->service().record().sentence().c_str());
    }

    /// All that the Run dock says.
    QString said() const
    {
        QString text;
        for (const QLabel *label : run->findChildren<QLabel *>())
            text += label->text() + QLatin1Char('\n');
        return text;
    }
};

} // namespace

class RunFaultsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aRankThatIsKilledIsNamedWithItsDevicesAndWhereTheyWere()
    {
        Stage stage;
        stage.begin();
        const pid_t rank = Stage::lastRank();
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
    }

    void aRunThatIsStoppedEndsWithAllItsProcesses()
    {
        Stage stage;
        stage.begin();
        QElapsedTimer timer;
        timer.start();
        stage.run->stopAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.run->service().isRunning() && runners().empty(), kLong);
        QVERIFY2(timer.elapsed() < 5000, qPrintable(QString::number(timer.elapsed())));
        stage.expectOver(RunState::Stopped, 5000);
    }

    void aRankThatDoesNotAnswerIsNamedAndCanBeStopped()
    {
        Stage stage;
        stage.begin();
        QElapsedTimer timer;
        timer.start();
        ::kill(Stage::lastRank(), SIGSTOP);
        QTRY_VERIFY_WITH_TIMEOUT(stage.said().contains(QStringLiteral("does not answer any more")), 15'000);
        QVERIFY2(stage.said().contains(QStringLiteral("rank 1 (devices")), qPrintable(stage.said()));
        QVERIFY(stage.run->service().isRunning());
        stage.run->stopAction()->trigger();
        stage.expectOver(RunState::Stopped, 5000);
    }

    void aRunnerThatIsKilledTakesItsRanksWithIt()
    {
        Stage stage;
        stage.begin();
        pid_t supervisor = std::numeric_limits<pid_t>::max();
        for (const Process &process : runners())
            supervisor = std::min(supervisor, process.process);
        ::kill(supervisor, SIGKILL);
        stage.expectOver(RunState::Failed, 5000);
    }

    void aWindowThatGoesTakesItsRunWithIt()
    {
        {
            Stage stage;
            stage.begin();
        }
        QTRY_VERIFY_WITH_TIMEOUT(runners().empty(), 5000);
    }
};

PLANLOOM_QTEST(RunFaultsTest)
#include "run_faults_test.moc"
