// A person at the window until it is killed: opens a session in the real window and works on it at random, as
// fast as it goes. For kill_sessions.sh; session_promise.h says what is in the log. What counts as
// acknowledged is what the status bar shows.
//
//   window_writer write FOLDER LOG SEED    opens FOLDER's session, or begins one there, and works without end
//   window_writer check FOLDER LOG         as session_writer

#include <QtWidgets/QLabel>
#include <QtWidgets/QStatusBar>

#include "tests/e2e/random_person.h"
#include "tests/e2e/session_promise.h"
#include "widgets/history/history_panel.h"
#include "widgets/run/run_panel.h"

#include "planloom_paths.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

using namespace planloom;

namespace {

constexpr const char *kModel = "zoo:mlp?layers=3&input=8&hidden=16&classes=4&batch=8";
constexpr const char *kRows = "mesh dp=2\nsplit all : batch over dp\n";

/// Works at a window, and tells the log.
class Person
{
public:
    Person(WindowForTests &at, const PromiseLog &log, std::string lock, unsigned seed)
        : m_at(at)
        , m_log(log)
        , m_lock(std::move(lock))
        , m_editor(at.workspace(), seed)
    {
        Workspace &workspace = at.workspace();
        // Connected behind the window itself: it has shown by then what there is to show.
        QObject::connect(&workspace, &Workspace::historyChanged, at.window.get(), [this] { noteTry(); });
        QObject::connect(&workspace, &Workspace::runsChanged, at.window.get(), [this] { noteTry(); });
        QObject::connect(&workspace, &Workspace::saveStateChanged, at.window.get(), [this] { noteShown(); });
        QObject::connect(&workspace, &Workspace::planChanged, at.window.get(), [this] { notePlan(); });
        if (auto *panel = at.window->findChild<RunPanel *>())
            panel->service().setProgram(QStringLiteral(PLANLOOM_BINARY_DIR "/bin/planloom-exec"));
    }

    std::string digest() const { return digestOf(m_at.workspace().history(), m_at.workspace().runs()); }

    [[noreturn]] void work()
    {
        for (;;) {
            {
                const NoKill held(m_lock);
                for (std::size_t burst = 1 + m_editor.below(5); burst > 0; --burst)
                    act();
                QCoreApplication::processEvents(QEventLoop::AllEvents, static_cast<int>(m_editor.below(20)));
            }
            // Now it may be killed, while what was done is being written.
            std::this_thread::sleep_for(std::chrono::microseconds(m_editor.below(4000)));
            // People pause, too: then all of it is saved, and shown to be.
            if (m_editor.below(3) == 0)
                await([this] { return m_at.workspace().saveState() != SaveState::Saving; });
        }
    }

    /// Lets things happen until `done`.
    void await(const std::function<bool()> &done) const
    {
        while (!done()) {
            const NoKill held(m_lock);
            QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents | QEventLoop::AllEvents, 10);
        }
    }

private:
    void act()
    {
        Workspace &workspace = m_at.workspace();
        const auto below = [this](std::size_t count) { return m_editor.below(count); };
        const auto press = [this](int key, Qt::KeyboardModifiers held) {
            QTest::keyClick(m_at.dag(), static_cast<Qt::Key>(key), held);
        };
        switch (below(24)) {
        case 0:
        case 1:
            press(Qt::Key_Z, Qt::ControlModifier);
            return;
        case 2:
            press(Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);
            return;
        case 3: // back to the beginning, by the key
            for (int i = 0; workspace.canUndo() && i < 200; ++i)
                press(Qt::Key_Z, Qt::ControlModifier);
            return;
        case 4:
            workspace.goTo(static_cast<StepId>(below(workspace.history().steps().size() + 1)));
            return;
        case 5:
            workspace.addBranch({});
            return;
        case 6:
            workspace.switchBranch(static_cast<std::int32_t>(below(workspace.history().branches().size())));
            return;
        case 7:
            workspace.renameBranch(workspace.history().branch(), QStringLiteral("line %1").arg(below(50)));
            return;
        case 8:
            workspace.nameCheckpoint(QStringLiteral("plan %1").arg(below(6)));
            return;
        case 9:
            workspace.removeName(QStringLiteral("plan %1").arg(below(6)));
            return;
        case 10: // typing: joined into one step
            for (const char *text : {"# a", "# an", "# and"})
                workspace.setTableText(text);
            return;
        case 11: // a plan that works, so that there are figures and runs
            workspace.setTableText(kRows);
            return;
        case 12: {
            SessionRun run;
            run.step = workspace.history().current();
            run.title = "a run";
            run.state = below(2) == 0 ? "done" : "running";
            run.details = "{}";
            run.timeline = std::string(3000, '.');
            const std::int64_t id = workspace.addRun(run);
            if (below(3) == 0)
                workspace.removeRun(id);
            return;
        }
        case 13:
            workspace.setView("zoom", std::to_string(below(1000)));
            return;
        case 14:
            workspace.setThumbnail(QByteArray(2000, 'p'));
            return;
        case 15:
            if (auto *panel = below(4) == 0 ? m_at.window->findChild<RunPanel *>() : nullptr;
                panel && panel->runAction()->isEnabled())
                panel->runAction()->trigger();
            return;
        default:
            m_editor.edit();
        }
    }

    void noteTry()
    {
        const std::string now = digest();
        if (std::exchange(m_tried, now) != now)
            m_log.line("try", std::to_string(++m_number), now);
    }

    /// What the status bar shows counts.
    void noteShown() const
    {
        const auto labels = m_at.window->statusBar()->findChildren<QLabel *>();
        const bool isShownAsSaved = std::any_of(labels.begin(), labels.end(),
            [](const QLabel *label) { return label->text() == QStringLiteral("● saved"); });
        if (isShownAsSaved && !m_at.workspace().isAcknowledged())
            fail("the status bar shows as saved what is not");
        if (isShownAsSaved)
            m_log.line("ack", std::to_string(m_number), digest());
    }

    void notePlan() const
    {
        const Workspace &workspace = m_at.workspace();
        if (!workspace.latest() || !workspace.latest()->final || !workspace.latest()->scene
            || workspace.isStale())
            return;
        char seconds[64];
        std::snprintf(seconds, sizeof seconds, "%.17g", workspace.latest()->summary.stepSeconds);
        m_log.line("plan", digestOf(workspace.history().state()), seconds);
    }

    WindowForTests &m_at;
    const PromiseLog &m_log;
    std::string m_lock;
    RandomPerson m_editor;
    std::string m_tried{};
    long m_number = 0;
};

int write(const std::string &folder, const std::string &logPath, unsigned seed)
{
    const PromiseLog log(logPath);
    const std::filesystem::path path = sessionIn(folder);
    WindowForTests at(QString::fromStdString(folder));
    Person person(at, log, logPath + ".lock", seed);
    bool isOpen = false;
    QObject::connect(&at.workspace(), &Workspace::sessionChanged, at.window.get(), [&] {
        if (!path.empty())
            log.line("open", "0", person.digest());
        isOpen = true;
    });
    if (path.empty())
        at.workspace().openWith({kModel, {}, {}}, "dgx-a100", 2, {}, kRows);
    else
        at.window->openHere(QString::fromStdString(path.string()));
    person.await([&] { return isOpen; });
    if (at.workspace().isReadOnly())
        fail("it opens read-only: " + at.workspace().remark().toStdString());
    std::puts("ready");
    std::fflush(stdout);
    person.work();
}

} // namespace

int main(int argc, char **argv)
{
    if (argc == 4 && std::strcmp(argv[1], "check") == 0)
        return checkPromise(argv[2], argv[3]);
    if (argc == 5 && std::strcmp(argv[1], "write") == 0) {
        qInstallMessageHandler(
            [](QtMsgType, const QMessageLogContext &, const QString &) {}); // errors are what `fail` says
        QApplication application(argc, argv);
        return write(argv[2], argv[3], static_cast<unsigned>(std::strtoul(argv[4], nullptr, 10)));
    }
    std::fputs("window_writer write FOLDER LOG SEED | check FOLDER LOG\n", stderr);
    return 2;
}
