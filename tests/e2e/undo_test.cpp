// A thousand random edits through the window's workspace: undo leads back through every state, byte for byte;
// so does a window that opened the session's file anew.

#include <QtCore/QObject>
#include <QtTest/QTest>

#include "tests/e2e/random_person.h"
#include "tests/e2e/window_for_tests.h"
#include "tests/qt_test.h"

#include <map>

using namespace planloom;

namespace {

constexpr int kEdits = 1000;
constexpr const char *kRoot = "# the first line, with two  spaces \n\nmesh dp=2 tp=2\nplace layer:0-1 : "
                              "devices 0\t\nsplit all : batch by 2 over dp # mine\nno row at all";

using Design = std::pair<std::string, std::map<std::string, std::string>>;

Design designOf(const Workspace &workspace)
{
    return {workspace.tableText(), workspace.history().state().values};
}

} // namespace

class UndoTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyStepIsUndone()
    {
        const QTemporaryDir folder;
        WindowForTests at(folder.path());
        Workspace &workspace = at.workspace();
        workspace.openWith(
            {"zoo:gpt?layers=4&hidden=32&heads=4&seq=16&vocab=64&batch=8", {}, {}}, "dgx-a100", 4, {}, kRoot);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        QCOMPARE(workspace.tableText(), std::string(kRoot));
        const Design root = designOf(workspace);

        std::map<StepId, Design> states{{0, root}};
        RandomPerson person(workspace, 20);
        for (int i = 0; i < kEdits; ++i) {
            person.edit();
            states[workspace.history().current()] = designOf(workspace);
            if (i % 20 == 0)
                QCoreApplication::processEvents(); // plans and files go on meanwhile
        }
        QVERIFY(states.size() > std::size_t{kEdits / 2});
        const Design last = designOf(workspace);
        QVERIFY(last != root);

        // By the key, a step at a time.
        at.dag()->setFocus();
        while (workspace.canUndo()) {
            QTest::keyClick(at.dag(), Qt::Key_Z, Qt::ControlModifier);
            QVERIFY(designOf(workspace) == states.at(workspace.history().current()));
        }
        QCOMPARE(workspace.history().current(), StepId{0});
        QCOMPARE(workspace.tableText(), std::string(kRoot));
        QVERIFY(designOf(workspace) == root);
        while (workspace.canRedo())
            workspace.redo();
        QVERIFY(designOf(workspace) == last);
        const auto steps = workspace.history().steps().size();

        // From the file alone.
        QTRY_VERIFY_WITH_TIMEOUT(workspace.isAcknowledged(), kPatience);
        const QString path = workspace.path();
        at.window.reset();
        at.open(folder.path());
        at.window->openHere(path);
        QTRY_VERIFY_WITH_TIMEOUT(at.workspace().model() && at.workspace().latest(), kPatience);
        Workspace &again = at.workspace();
        QCOMPARE(again.history().steps().size(), steps);
        QVERIFY(designOf(again) == last);
        while (again.canUndo()) {
            again.undo();
            QVERIFY(designOf(again) == states.at(again.history().current()));
        }
        QCOMPARE(again.tableText(), std::string(kRoot));
        QVERIFY(designOf(again) == root);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && again.isAcknowledged(), kPatience);
    }
};

PLANLOOM_QTEST(UndoTest)
#include "undo_test.moc"
