#pragma once

#include <QtTest/QTest>
#include <QtWidgets/QLabel>

#include "planloom_paths.h"
#include "tests/e2e/window_for_tests.h"
#include "tests/qt_test.h"
#include "widgets/run/run_panel.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <unistd.h>

namespace planloom {

struct RunnerProcess {
    pid_t process = 0;
    std::string name{};
};

/// The runner and its ranks: processes that this one has started, and those that they have.
inline std::vector<RunnerProcess> runners()
{
    std::map<pid_t, std::vector<RunnerProcess>> children;
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
    std::vector<RunnerProcess> found;
    std::vector<pid_t> open{::getpid()};
    while (!open.empty()) {
        const pid_t parent = open.back();
        open.pop_back();
        for (const RunnerProcess &child : children[parent]) {
            open.push_back(child.process);
            if (child.name == "planloom-exec")
                found.push_back(child);
        }
    }
    return found;
}

/// A window in which a small model runs.
struct RunStage {
    WindowForTests at;
    RunPanel *run = nullptr;
    const char *model = kSmallGpt;
    QString program = QStringLiteral(PLANLOOM_BINARY_DIR "/bin/planloom-exec");
    RunSetup setup{.check = false, .live = false, .seed = 1, .ranks = 2}; ///< But for the steps.
    std::size_t processes = 3; ///< Of a run: supervisor and ranks, no probe.

    void open(int devices = 4)
    {
        if (run != nullptr)
            return;
        at.workspace().openWith({model, {}, {}}, "dgx-a100", devices, "data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kLong);
        run = at.window->run();
        run->service().setProgram(program);
    }

    /// Starts a run that goes on for ever, and waits until it does.
    void begin()
    {
        open();
        start(100'000);
        QTRY_VERIFY_WITH_TIMEOUT(run->service().record().losses.size() > 2, kLong);
        QTRY_COMPARE_WITH_TIMEOUT(runners().size(), processes, kLong);
    }

    void start(std::int32_t steps)
    {
        setup.steps = steps;
        run->setSetup(setup);
        QTRY_VERIFY_WITH_TIMEOUT(run->runAction()->isEnabled(), kLong);
        run->runAction()->trigger();
    }

    /// After a fault: all has ended, the window says so, and goes on working.
    void expectOver(RunState state, int milliseconds)
    {
        QTRY_VERIFY_WITH_TIMEOUT(!run->service().isRunning(), milliseconds);
        QTRY_VERIFY_WITH_TIMEOUT(runners().empty(), milliseconds);
        QVERIFY2(run->service().record().state == state, run->service().record().sentence().c_str());
        QVERIFY(at.settled());
    }

    void expectTheNextToRun()
    {
        start(1);
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

} // namespace planloom
