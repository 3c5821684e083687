// What the window shows as saved is saved: undo to the beginning, kills, disks that refuse, writes that can't
// succeed.

#include <QtCore/QProcess>
#include <QtTest/QSignalSpy>
#include <QtWidgets/QAbstractButton>
#include <QtWidgets/QLabel>
#include <QtWidgets/QMessageBox>
#include <QtWidgets/QStatusBar>

#include "tests/e2e/session_promise.h"
#include "tests/e2e/window_for_tests.h"
#include "tests/qt_test.h"
#include "widgets/main/recent_list.h"

#include <SQLiteCpp/Database.h>

#include <algorithm>
#include <csignal>

using namespace planloom;

namespace {

constexpr const char *kModel = "zoo:mlp?layers=3&input=8&hidden=16&classes=4&batch=8";
constexpr const char *kRows = "mesh dp=2 tp=2\nsplit all : batch over dp\n";

std::string digestOf(const Workspace &workspace)
{
    return digestOf(workspace.history(), workspace.runs());
}

/// What the file says, read beside the window.
std::string digestOfFile(const QString &path)
{
    const auto opened = SessionStore::openToLook(path.toStdString());
    return opened ? digestOf(opened->contents.history, opened->contents.runs) : describe(opened.error());
}

QString shown(const WindowForTests &at)
{
    for (const auto *label : at.window->statusBar()->findChildren<QLabel *>()) {
        for (const char *state :
            {"● saved", "◌ saving…", "✖ not saved", "▣ read-only", "○ nothing to save yet"}) {
            if (label->text() == QString::fromUtf8(state))
                return label->text();
        }
    }
    return {};
}

bool isShownAsSaved(const WindowForTests &at)
{
    return shown(at) == QStringLiteral("● saved");
}

void openModel(WindowForTests &at)
{
    at.workspace().openWith({kModel, {}, {}}, "dgx-a100", 4, {}, kRows);
}

void edit(WindowForTests &at, const QString &words, const std::string &row = "# a note")
{
    Workspace &workspace = at.workspace();
    workspace.editTable(words, insertText(workspace.table(), workspace.table().lineCount(), row));
}

/// By the key, as often as it goes.
void undoAll(WindowForTests &at)
{
    at.dag()->setFocus();
    while (at.workspace().canUndo())
        QTest::keyClick(at.dag(), Qt::Key_Z, Qt::ControlModifier);
}

/// Ends a child process that finds something wrong.
void mustHold(bool holds, const char *what)
{
    if (!holds)
        fail(what);
}

void writeNote(const QString &path, const std::string &text)
{
    QFile file(path);
    mustHold(file.open(QIODevice::WriteOnly) && file.write(QByteArray::fromStdString(text)) >= 0, "no note");
}

std::vector<std::string> readNote(const QString &path)
{
    QFile file(path);
    std::vector<std::string> lines;
    if (file.open(QIODevice::ReadOnly)) {
        for (const QByteArray &line : file.readAll().split('\n'))
            lines.push_back(line.toStdString());
    }
    return lines;
}

// --- what children do until they are killed
// ----------------------------------------------------------------------------

/// Undoes its first edit, goes on, and dies once all is shown as saved.
[[noreturn]] void undoTheFirstEdit(const QString &folder)
{
    WindowForTests at(folder);
    Workspace &workspace = at.workspace();
    openModel(at);
    mustHold(waitFor([&] { return at.settled(); }), "the model does not open");
    const auto settle = [&](const char *what) {
        mustHold(waitFor([&] { return at.settled() && isShownAsSaved(at); }), what);
    };
    edit(at, QStringLiteral("first"), "micro-batches 2");
    settle("the first edit is not saved");
    undoAll(at);
    settle("undoing the first edit is not saved");
    mustHold(workspace.history().current() == kRootStep, "undo does not lead to the beginning");
    edit(at, QStringLiteral("second"), "micro-batches 4");
    settle("the second edit is not saved");
    workspace.nameCheckpoint(QStringLiteral("kept"));
    workspace.addBranch(QStringLiteral("idea"));
    edit(at, QStringLiteral("third"));
    undoAll(at);
    settle("going back again is not saved");
    edit(at, QStringLiteral("fourth"), "micro-batches 2");
    settle("the fourth edit is not saved");
    writeNote(folder + QStringLiteral("/note"), workspace.path().toStdString() + '\n' + digestOf(workspace));
    ::raise(SIGKILL);
    std::abort();
}

/// Loses its disk after the first edit, plans a second one, and dies.
[[noreturn]] void planWithoutADisk(const QString &folder)
{
    WindowForTests at(folder);
    Workspace &workspace = at.workspace();
    openModel(at);
    mustHold(waitFor([&] { return at.settled(); }), "the model does not open");
    edit(at, QStringLiteral("kept"), "micro-batches 2");
    mustHold(waitFor([&] { return at.settled() && isShownAsSaved(at); }), "the first edit is not saved");
    const std::string path = workspace.path().toStdString();
    mustHold(waitFor([&] {
        const auto summary = readSummary(path);
        return summary && !summary->thumbnail.empty() && summary->stepSeconds > 0;
    }),
        "there is no picture of the plan");
    const double kept = workspace.lastGood()->summary.stepSeconds;
    mustHold(QFile::rename(workspace.path(), workspace.path() + QStringLiteral("-aside")),
        "the file cannot be moved");
    workspace.setDeviceCount(8);
    workspace.setTableText("mesh dp=8\nsplit all : batch over dp\n");
    mustHold(waitFor([&] { return at.settled() && shown(at) == QStringLiteral("✖ not saved"); }),
        "it is shown as saved without a disk");
    mustHold(workspace.lastGood()->summary.stepSeconds != kept,
        "both plans take the same time: the test shows nothing");
    QTest::qWait(4000); // longer than the window waits with a picture
    writeNote(folder + QStringLiteral("/note"), path + '\n');
    ::raise(SIGKILL);
    std::abort();
}

} // namespace

class SavingTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void whatFollowsAnUndoToTheBeginningIsThereAfterAKill()
    {
        const QTemporaryDir folder;
        QVERIFY(dies(QStringLiteral("--undo"), folder.path()));
        const auto note = readNote(folder.filePath(QStringLiteral("note")));
        QCOMPARE(note.size(), std::size_t{2});
        WindowForTests at(folder.path());
        at.window->openHere(QString::fromStdString(note[0]));
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && isShownAsSaved(at), kPatience);
        QCOMPARE(digestOf(at.workspace()), note[1]);
        const History &history = at.workspace().history();
        QCOMPARE(history.steps().size(), std::size_t{4});
        QCOMPARE(history.find(4)->parent, kRootStep);
        QVERIFY(history.branches().size() >= 3);
        QVERIFY(history.names().contains("kept"));
        QVERIFY(history.figuresOf(kRootStep)); // the beginning was planned
        undoAll(at);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && isShownAsSaved(at), kPatience);
        QCOMPARE(digestOfFile(at.workspace().path()), digestOf(at.workspace()));
    }

    void theStartPageShowsWhatOpens()
    {
        const QTemporaryDir folder;
        QVERIFY(dies(QStringLiteral("--without-disk"), folder.path()));
        const QString path =
            QString::fromStdString(readNote(folder.filePath(QStringLiteral("note"))).front());
        QVERIFY(QFile::rename(path + QStringLiteral("-aside"), path));
        SessionSummary card;
        {
            RecentList list(folder.path());
            QTRY_COMPARE_WITH_TIMEOUT(list.entries().size(), std::size_t{1}, kPatience);
            QCOMPARE(QString::fromStdString(list.entries().front().session.path.string()), path);
            card = list.entries().front().summary;
        }
        WindowForTests at(folder.path());
        at.window->openHere(path);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && isShownAsSaved(at), kPatience);
        QCOMPARE(at.workspace().history().steps().size(), std::size_t{1}); // the second one was never saved
        QCOMPARE(card.stepSeconds, at.workspace().lastGood()->summary.stepSeconds);
        QCOMPARE(card.devices, at.workspace().deviceCount());
        QPixmap picture;
        QVERIFY(picture.loadFromData(reinterpret_cast<const uchar *>(card.thumbnail.data()),
            static_cast<uint>(card.thumbnail.size())));
    }

    void aWriteTheFileRefusesIsReportedAndNothingIsLost()
    {
        const QTemporaryDir folder;
        WindowForTests at(folder.path());
        begin(at);
        edit(at, QStringLiteral("second"));
        QTRY_VERIFY_WITH_TIMEOUT(isShownAsSaved(at), kPatience);
        // As a bug would leave it: the step that the next one follows is not there.
        sql(at, "DELETE FROM step WHERE id = 2");
        const QSignalSpy problems(&at.workspace(), &Workspace::problem);
        edit(at, QStringLiteral("third"));
        edit(at, QStringLiteral("fourth"));
        QTRY_VERIFY_WITH_TIMEOUT(isShownAsSaved(at) && !problems.isEmpty(), kPatience);
        QCOMPARE(digestOfFile(at.workspace().path()), digestOf(at.workspace()));
    }

    void whatIsBehindARefusedWriteIsSavedAndTheRestIsSaidToBeMissing()
    {
        const QTemporaryDir folder;
        WindowForTests at(folder.path());
        Workspace &workspace = at.workspace();
        begin(at);
        sql(at,
            "CREATE TRIGGER no BEFORE INSERT ON step WHEN NEW.words = 'never' BEGIN SELECT RAISE(ABORT, "
            "'never'); END");
        edit(at, QStringLiteral("never"));
        QTRY_COMPARE_WITH_TIMEOUT(shown(at), QStringLiteral("✖ not saved"), kPatience);
        workspace.undo();
        edit(at, QStringLiteral("behind it"));
        QTRY_VERIFY_WITH_TIMEOUT(holdsWords(workspace.path(), "behind it"), kPatience);
        QCOMPARE(shown(at), QStringLiteral("✖ not saved")); // for one is missing
        QVERIFY(!holdsWords(workspace.path(), "never"));
        sql(at, "DROP TRIGGER no");
        edit(at, QStringLiteral("now all of it"));
        QTRY_VERIFY_WITH_TIMEOUT(isShownAsSaved(at), kPatience);
        QCOMPARE(digestOfFile(workspace.path()), digestOf(workspace));
    }

    void aDiskThatRefusesIsTriedAgainInOrder()
    {
        const QTemporaryDir folder;
        WindowForTests at(folder.path());
        Workspace &workspace = at.workspace();
        begin(at);
        const QString path = workspace.path();
        const std::string before = digestOf(workspace);
        QVERIFY(QFile::rename(path, path + QStringLiteral("-aside")));
        edit(at, QStringLiteral("second"));
        QTRY_COMPARE_WITH_TIMEOUT(shown(at), QStringLiteral("✖ not saved"), kPatience);
        undoAll(at);
        edit(at, QStringLiteral("third"));
        workspace.nameCheckpoint(QStringLiteral("kept"));
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        QCOMPARE(shown(at), QStringLiteral("✖ not saved"));
        QCOMPARE(digestOfFile(path + QStringLiteral("-aside")), before);
        QVERIFY(QFile::rename(path + QStringLiteral("-aside"), path));
        QTRY_VERIFY_WITH_TIMEOUT(isShownAsSaved(at), kPatience); // by itself
        QCOMPARE(digestOfFile(path), digestOf(workspace));
    }

    void viewsFiguresAndPicturesHoldNothingBack()
    {
        const QTemporaryDir folder;
        WindowForTests at(folder.path());
        Workspace &workspace = at.workspace();
        begin(at);
        sql(at,
            "DROP TABLE view_state; DROP TABLE thumbnail; CREATE TRIGGER no BEFORE UPDATE OF step_seconds ON "
            "step "
            "BEGIN SELECT RAISE(ABORT, 'no figures'); END");
        const QSignalSpy minor(&workspace, &Workspace::minorProblem);
        const QSignalSpy problems(&workspace, &Workspace::problem);
        workspace.setThumbnail("picture");
        workspace.setView("zoom", "2");
        edit(at, QStringLiteral("second"), "micro-batches 2");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && minor.count() >= 3, kPatience);
        edit(at, QStringLiteral("third"));
        QTRY_VERIFY_WITH_TIMEOUT(isShownAsSaved(at), kPatience);
        QCOMPARE(digestOfFile(workspace.path()), digestOf(workspace));
        QCOMPARE(problems.count(), 0);
    }

    void closingAsksBeforeWorkIsLost()
    {
        const QTemporaryDir folder;
        WindowForTests at(folder.path());
        begin(at);
        const QString path = at.workspace().path();
        QVERIFY(QFile::rename(path, path + QStringLiteral("-aside")));
        edit(at, QStringLiteral("second"));
        QVERIFY(!at.window->close()); // even before it is known to fail
        const auto box = [&] { return at.window->findChild<QMessageBox *>(QStringLiteral("unsavedBox")); };
        QVERIFY(box());
        box()->button(QMessageBox::Cancel)->click();
        QTRY_VERIFY(!box());
        QVERIFY(at.window->isVisible());
        // A session that was left is still waiting for its disk, too.
        openModel(at);
        QTRY_VERIFY_WITH_TIMEOUT(at.workspace().path().isEmpty() && at.settled(), kPatience);
        QVERIFY(!at.window->close());
        QVERIFY(box());
        box()->button(QMessageBox::Cancel)->click();
        QTRY_VERIFY(!box());
        QVERIFY(QFile::rename(path + QStringLiteral("-aside"), path));
        QTRY_VERIFY_WITH_TIMEOUT(at.workspace().isEverythingSaved(), kPatience);
        QVERIFY(holdsWords(path, "second"));
        QVERIFY(at.window->close());
    }

    void whoeverChoosesToMayClose()
    {
        const QTemporaryDir folder;
        WindowForTests at(folder.path());
        begin(at);
        QVERIFY(QFile::remove(at.workspace().path()));
        edit(at, QStringLiteral("second"));
        QVERIFY(!at.window->close());
        auto *box = at.window->findChild<QMessageBox *>(QStringLiteral("unsavedBox"));
        QVERIFY(box);
        const auto buttons = box->buttons();
        const auto lose = std::find_if(buttons.begin(), buttons.end(), [box](QAbstractButton *button) {
            return box->buttonRole(button) == QMessageBox::DestructiveRole;
        });
        QVERIFY(lose != buttons.end());
        (*lose)->click();
        QTRY_VERIFY(!at.window->isVisible());
    }

    void aReadOnlySessionNeverCountsAsSaved()
    {
        const QTemporaryDir folder;
        WindowForTests first(folder.path());
        begin(first);
        SessionRun run;
        run.state = "done";
        run.details = "{}";
        run.timeline = "[1]";
        first.workspace().addRun(run);
        QTRY_VERIFY_WITH_TIMEOUT(isShownAsSaved(first), kPatience);
        WindowForTests second(folder.path());
        second.workspace().openSession(first.workspace().path()); // as another program would
        QTRY_VERIFY_WITH_TIMEOUT(second.settled() && second.workspace().isReadOnly(), kPatience);
        QSignalSpy loaded(&second.workspace(), &Workspace::runTimelineLoaded);
        second.workspace().loadRunTimeline(1);
        QTRY_COMPARE_WITH_TIMEOUT(loaded.count(), 1, kPatience);
        edit(second, QStringLiteral("not kept"));
        QCoreApplication::processEvents();
        QCOMPARE(shown(second), QStringLiteral("▣ read-only"));
    }

    void editsOfAReadOnlySessionAreAskedAboutBeforeTheyAreLost()
    {
        const QTemporaryDir folder;
        WindowForTests first(folder.path());
        begin(first);
        WindowForTests at(folder.path());
        at.workspace().openSession(first.workspace().path());
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && at.workspace().isReadOnly(), kPatience);
        const auto box = [&] { return at.window->findChild<QMessageBox *>(QStringLiteral("unsavedBox")); };
        const auto click = [&](QMessageBox::ButtonRole role) {
            for (QAbstractButton *button : box()->buttons())
                if (box()->buttonRole(button) == role)
                    return button->click();
        };
        // Looking alone loses nothing; two edits do.
        QVERIFY(at.window->close());
        at.window->show();
        edit(at, QStringLiteral("one"));
        QCOMPARE(at.workspace().unkeptEdits(), 1);
        edit(at, QStringLiteral("two"));
        QVERIFY(!at.window->close());
        QVERIFY(box());
        QVERIFY2(box()->text().startsWith(QStringLiteral("2 edits aren't kept anywhere")),
            qPrintable(box()->text()));
        click(QMessageBox::RejectRole);
        QTRY_VERIFY(!box());
        // Another session in its place would lose them, too.
        at.window->openHere(QString::fromLatin1(kModel));
        QVERIFY(box() && !at.workspace().isOpening());
        click(QMessageBox::RejectRole);
        QTRY_VERIFY(!box());
        // In a copy they are kept.
        QSignalSpy saved(&at.workspace(), &Workspace::copySaved);
        at.workspace().saveCopyAs(folder.filePath(QStringLiteral("copy.planloom")));
        QTRY_COMPARE_WITH_TIMEOUT(saved.count(), 1, kPatience);
        QVERIFY(at.window->close());
        QVERIFY(holdsWords(folder.filePath(QStringLiteral("copy.planloom")), "two"));
        at.window->show();
        edit(at, QStringLiteral("three"));
        QVERIFY(!at.window->close());
        QVERIFY2(box()->text().startsWith(QStringLiteral("1 edit isn't kept anywhere")),
            qPrintable(box()->text()));
        click(QMessageBox::DestructiveRole);
        QTRY_VERIFY(!at.window->isVisible());
    }

    void aBranchBegunBeforeTheRowsCameIsKept()
    {
        const QTemporaryDir folder;
        WindowForTests at(folder.path());
        Workspace &workspace = at.workspace();
        const auto once = connect(&workspace, &Workspace::modelChanged, &workspace,
            [&] { workspace.addBranch(QStringLiteral("early")); });
        workspace.openWith({kModel, {}, {}}, "dgx-a100", 4, "data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && !workspace.tableText().empty(), kPatience);
        disconnect(once);
        edit(at, QStringLiteral("second"));
        QTRY_VERIFY_WITH_TIMEOUT(isShownAsSaved(at), kPatience);
        QCOMPARE(workspace.history().branches().size(), std::size_t{2});
        QCOMPARE(digestOfFile(workspace.path()), digestOf(workspace));
    }

    void windowsThatBeginAtTheSameMomentKeepFilesOfTheirOwn()
    {
        const QTemporaryDir folder;
        std::vector<std::unique_ptr<WindowForTests>> windows;
        for (int i = 0; i < 3; ++i) {
            windows.push_back(std::make_unique<WindowForTests>(folder.path()));
            openModel(*windows.back());
        }
        for (const auto &at : windows)
            QTRY_VERIFY_WITH_TIMEOUT(at->settled(), kPatience);
        for (std::size_t i = 0; i < windows.size(); ++i)
            edit(*windows[i], QStringLiteral("edit %1").arg(i));
        QStringList paths;
        for (const auto &at : windows) {
            QTRY_VERIFY_WITH_TIMEOUT(isShownAsSaved(*at), kPatience);
            QCOMPARE(digestOfFile(at->workspace().path()), digestOf(at->workspace()));
            paths.append(at->workspace().path());
        }
        QCOMPARE(paths.removeDuplicates(), 0);
    }

private:
    /// One edit, saved.
    static void begin(WindowForTests &at)
    {
        openModel(at);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        edit(at, QStringLiteral("first"));
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && isShownAsSaved(at), kPatience);
    }

    static bool holdsWords(const QString &path, const std::string &words)
    {
        try {
            SQLite::Database database(path.toStdString(), SQLite::OPEN_READONLY);
            database.setBusyTimeout(kPatience); // whoever closes the file has it for himself for a moment
            return database.execAndGet("SELECT count(*) FROM step WHERE words = '" + words + "'").getInt()
                > 0;
        } catch (const SQLite::Exception &problem) {
            qWarning() << "looking for" << words.c_str() << "in" << path << ':' << problem.what();
            return false;
        }
    }

    /// As another program would, or a mistake of ours.
    static void sql(const WindowForTests &at, const char *statements)
    {
        SQLite::Database database(at.workspace().path().toStdString(), SQLite::OPEN_READWRITE);
        database.setBusyTimeout(kPatience);
        database.exec(statements);
    }

    /// Whether this program, started with `what`, was killed as it wished.
    static bool dies(const QString &what, const QString &folder)
    {
        QProcess process;
        process.setProcessChannelMode(QProcess::ForwardedErrorChannel);
        process.start(QCoreApplication::applicationFilePath(),
            {QStringLiteral("--file=saving_test.cpp"), what, folder});
        return process.waitForFinished(4 * kPatience) && process.exitStatus() == QProcess::CrashExit;
    }
};

/// Runs the tests; or, as a child of theirs, what is to be killed.
static int runSavingTest(int argc, char **argv)
{
    QApplication application(argc, argv);
    if (argc == 3 && qstrcmp(argv[1], "--undo") == 0)
        undoTheFirstEdit(QString::fromLocal8Bit(argv[2]));
    if (argc == 3 && qstrcmp(argv[1], "--without-disk") == 0)
        planWithoutADisk(QString::fromLocal8Bit(argv[2]));
    SavingTest test;
    return QTest::qExec(&test, argc, argv);
}

PLANLOOM_QTEST_RUN_BY(SavingTest, runSavingTest)
#include "saving_test.moc"
