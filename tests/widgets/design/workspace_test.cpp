#include <QtCore/QElapsedTimer>
#include <QtCore/QFile>
#include <QtCore/QFileInfo>
#include <QtCore/QObject>
#include <QtCore/QTemporaryDir>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>

#include "engine/gesture/blocking.h"
#include "engine/hardware/cluster_json.h"
#include "planloom_paths.h"
#include "tests/model_folder.h"
#include "tests/qt_test.h"
#include "widgets/design/workspace.h"

#include <algorithm>
#include <set>

using namespace planloom;

namespace {

constexpr const char *kSmall = "zoo:mlp?layers=2&hidden=32&batch=8";

bool verified(const Workspace &workspace)
{
    return workspace.latest() && workspace.latest()->verdict && !workspace.isStale()
        && !workspace.isPlanning();
}

} // namespace

class WorkspaceTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void openingAModelPlansIt()
    {
        Workspace workspace;
        workspace.openAny(QString::fromLatin1(kSmall));
        QVERIFY(workspace.isOpening());
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QVERIFY(workspace.latest()->verdict->ok());
        QVERIFY(!workspace.canUndo());
        QCOMPARE(workspace.saveState(), SaveState::None);
        QCOMPARE(workspace.title(), QStringLiteral("mlp"));
    }

    void theNewestTextWins()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        for (int i = 0; i < 20; ++i)
            workspace.setTableText("mesh dp=2\nsplit all : batch over dp\n# " + std::to_string(i) + "\n");
        QVERIFY(workspace.isStale());
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QVERIFY(workspace.latest()->table.text().ends_with("# 19\n"));
        QCOMPARE(
            workspace.history().steps().size(), std::size_t{1}); // keystrokes within a second are one step
    }

    void atMostTenAnswersASecondReachTheViews()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QSignalSpy answers(&workspace, &Workspace::planChanged);
        int drawn = 0;
        TimelineSceneSnapshot last;
        connect(&workspace, &Workspace::planChanged, this, [&] {
            const auto scene = workspace.latest()->scene;
            drawn += scene && scene != last ? 1 : 0;
            last = scene;
        });
        QElapsedTimer clock;
        clock.start();
        while (clock.elapsed() < 1000) {
            workspace.replan();
            QTest::qWait(5);
        }
        // As many with a timeline, and as many before one is there; and the few that were free after a rest.
        constexpr int kFree = EngineService::kMostAtOnce;
        QVERIFY2(answers.count() <= 22 + kFree, qPrintable(QString::number(answers.count())));
        QVERIFY2(drawn <= 11 + kFree, qPrintable(QString::number(drawn)));
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
    }

    void wrongRowsKeepTheLastPlanAndSaySo()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        const PlanUpdateSnapshot good = workspace.lastGood();
        workspace.setTableText("split nonsense\n");
        QTRY_COMPARE_WITH_TIMEOUT(workspace.latest()->errorCount(), std::size_t{1}, kLong);
        QCOMPARE(workspace.lastGood(), good);
        QVERIFY(workspace.isStale());
        workspace.undo();
        // The plan of these rows is known: it is there at once.
        QCOMPARE(workspace.lastGood(), good);
        QVERIFY(verified(workspace));
    }

    void undoBringsBackRowsAndPlanAtOnceAndRedoToo()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        const std::string first = workspace.tableText();
        const PlanUpdateSnapshot firstPlan = workspace.lastGood();
        QSignalSpy text(&workspace, &Workspace::tableChanged);
        workspace.applyGallery("data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace) && text.count() == 1, kLong);
        const std::string second = workspace.tableText();
        const PlanUpdateSnapshot secondPlan = workspace.lastGood();
        QVERIFY(second != first);
        QCOMPARE(workspace.history().undoWords(), std::string("gallery plan data-parallel"));
        workspace.undo();
        QCOMPARE(workspace.tableText(), first);
        QCOMPARE(workspace.lastGood(), firstPlan);
        QVERIFY(!workspace.isStale());
        workspace.redo();
        QCOMPARE(workspace.tableText(), second);
        QCOMPARE(workspace.lastGood(), secondPlan);
        QVERIFY(workspace.history().find(workspace.history().current())->figures.has_value());
    }

    void aGalleryPlanIsPlannedToTheEndAndHasFigures()
    {
        // Large enough that the rows come well before the proof.
        Workspace workspace;
        workspace.openWith(
            {"zoo:gpt?layers=8&hidden=64&heads=4&seq=32&vocab=100&batch=8", {}, {}}, "dgx-a100", 4, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        workspace.applyGallery("3d:dp=2,tp=1,pp=2,micro-batches=4");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace) && workspace.canUndo(), kLong);
        QVERIFY(workspace.lastGood()->table.text() == workspace.tableText());
        QTRY_VERIFY(workspace.history().find(workspace.history().current())->figures.has_value());
    }

    void theClusterIsPartOfTheHistory()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        workspace.setDeviceCount(3);
        workspace.setDeviceCount(4); // within a second: the same step
        workspace.setCluster("dgx-h100");
        QCOMPARE(workspace.history().steps().size(), std::size_t{2});
        workspace.undo();
        QCOMPARE(workspace.cluster(), std::string("dgx-a100"));
        QCOMPARE(workspace.deviceCount(), 4);
        workspace.undo();
        QCOMPARE(workspace.deviceCount(), 2);
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QCOMPARE(workspace.lastGood()->plan->deviceCount, 2);
    }

    void anEditAfterUndoIsABranchAndNothingIsLost()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        workspace.setTableText("# one\n");
        const StepId one = workspace.history().current();
        workspace.undo();
        workspace.setTableText("# two\n");
        QCOMPARE(workspace.history().branches().size(), std::size_t{2});
        workspace.goTo(one);
        QCOMPARE(workspace.tableText(), std::string("# one\n"));
        workspace.switchBranch(workspace.history().branches().back().id);
        QCOMPARE(workspace.tableText(), std::string("# two\n"));
    }

    void aGhostSaysWhichRowsAreInTheWayAndTheyCanBeSwitchedOffWithIt()
    {
        Workspace workspace;
        workspace.openWith(
            {kSmall, {}, {}}, "dgx-a100", 2, {}, "mesh dp=2\nplace all : dp=1\nlimit memory 1KiB\n");
        QTRY_VERIFY_WITH_TIMEOUT(workspace.latest() && workspace.latest()->final, kLong);
        const std::string before = workspace.tableText();
        Proposal proposal;
        proposal.words = "split everything";
        proposal.edit = insertText(workspace.table(), 1, "split all : batch over dp");
        workspace.preview(proposal);
        QCOMPARE(moodOf(*workspace.currentPreview()), GhostMood::Waiting);
        QTRY_VERIFY_WITH_TIMEOUT(workspace.currentPreview()->final, kLong);
        QCOMPARE(moodOf(*workspace.currentPreview()), GhostMood::Blocked);
        QVERIFY(!workspace.currentPreview()->feasible()); // the two rows can't hold together
        QCOMPARE(blockingLines(*workspace.currentPreview()), std::vector<std::int32_t>{2});

        // With that row off there is a plan, which breaks the limit.
        const Proposal without = switchingOff(*workspace.gestureContext(), proposal, {2});
        workspace.preview(without);
        QTRY_VERIFY_WITH_TIMEOUT(workspace.currentPreview()->final, kLong);
        QVERIFY(workspace.currentPreview()->feasible());
        QCOMPARE(moodOf(*workspace.currentPreview()), GhostMood::Blocked);
        QCOMPARE(blockingLines(*workspace.currentPreview()), std::vector<std::int32_t>{3});

        const Proposal all = switchingOff(*workspace.gestureContext(), proposal, {2, 3});
        workspace.preview(all);
        QTRY_VERIFY_WITH_TIMEOUT(workspace.currentPreview()->final, kLong);
        QCOMPARE(moodOf(*workspace.currentPreview()), GhostMood::Holds);
        QVERIFY(blockingLines(*workspace.currentPreview()).empty());
        QVERIFY(workspace.commit(all));
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        workspace.undo();
        QCOMPARE(workspace.tableText(), before); // one step

        proposal.refusal = Error{ErrorCode::InvalidInput, "no"};
        workspace.preview(proposal);
        QCOMPARE(moodOf(*workspace.currentPreview()), GhostMood::Refused);
    }

    void aPreviewWritesNothingAndItsPlanIsUsedWhenItIsCommitted()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        const std::string before = workspace.tableText();
        Proposal proposal;
        proposal.words = "split everything";
        proposal.edit =
            difference(workspace.table(), TableDocument("mesh dp=2\nsplit all : batch over dp\n"));
        workspace.preview(proposal);
        QVERIFY(workspace.currentPreview());
        QVERIFY(!workspace.currentPreview()->update);
        QVERIFY(tagOf(*workspace.currentPreview()).contains(QStringLiteral("…")));
        QTRY_VERIFY_WITH_TIMEOUT(workspace.currentPreview()->final, kLong);
        QVERIFY(workspace.currentPreview()->feasible());
        QCOMPARE(workspace.tableText(), before);
        QVERIFY(!workspace.canUndo());
        const TimelineSceneSnapshot ghost = workspace.currentPreview()->update->scene;
        QVERIFY(workspace.commit(proposal));
        QVERIFY(!workspace.currentPreview());
        QCOMPARE(workspace.lastGood()->scene, ghost); // on screen in the same frame
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QVERIFY(workspace.latest()->verdict->ok());
        QCOMPARE(workspace.history().undoWords(), std::string("split everything"));

        proposal.refusal = Error{ErrorCode::InvalidInput, "no", {}, {}};
        workspace.preview(proposal);
        QVERIFY(workspace.currentPreview()->final);
        QVERIFY(!workspace.commit(proposal));
        QVERIFY(!workspace.currentPreview());
    }

    /// What is searched for a ghost is not begun anew for the drop.
    void aDropTakesOverTheSearchOfItsGhost()
    {
        Workspace workspace;
        workspace.openWith({"zoo:gpt?layers=12&hidden=256&heads=8&seq=128&vocab=512&batch=32", {}, {}},
            "dgx-h100", 8, {}, "# mine\nmesh dp=8 @solver\nsplit all : batch over dp @solver\n");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        Proposal proposal;
        proposal.words = "two micro-batches";
        proposal.edit = insertText(workspace.table(), 0, "micro-batches 2\n");
        TimelineSceneSnapshot ghost;
        bool isBegunAnew = false; // then the rows as they are would be planned again
        connect(&workspace, &Workspace::planChanged, &workspace, [&] {
            const PlanUpdateSnapshot &good = workspace.lastGood();
            isBegunAnew =
                isBegunAnew || (ghost && workspace.isSearching() && good->scene != ghost && !good->search);
        });
        QSignalSpy searched(&workspace, &Workspace::searched);
        // It is dropped in the same event in which the ghost is shown and its search begins: whatever the
        // search takes, its answer comes in a later one.
        bool isDropped = false;
        bool isTakenOver = false;
        const auto drop = [&] {
            const PreviewSnapshot shown = workspace.currentPreview();
            if (isDropped || !shown || !shown->update || !shown->update->scene)
                return;
            isDropped = true;
            ghost = shown->update->scene;
            isTakenOver = !shown->final && workspace.commit(proposal) && !workspace.currentPreview()
                && workspace.isSearching() && workspace.lastGood()->scene == ghost; // in the same frame
        };
        connect(&workspace, &Workspace::previewChanged, &workspace, drop);
        workspace.preview(proposal);
        QTRY_VERIFY_WITH_TIMEOUT(isDropped, kLong);
        QVERIFY(isTakenOver);
        QTRY_VERIFY_WITH_TIMEOUT(!searched.isEmpty() && verified(workspace), kLong);
        QVERIFY(!isBegunAnew);
        QVERIFY(workspace.latest()->verdict->ok());
        QCOMPARE(workspace.latest()->table, workspace.table());
        QCOMPARE(workspace.latest()->plan->microBatches, 2);
        QCOMPARE(workspace.history().steps().size(), std::size_t{1}); // the drop with what was found
        // The next ghost, drop and search work as before.
        proposal.edit = insertText(workspace.table(), 0, "# more\n");
        workspace.preview(proposal);
        QTRY_VERIFY_WITH_TIMEOUT(workspace.currentPreview()->final, kLong);
        QVERIFY(workspace.commit(proposal));
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QVERIFY(workspace.tableText().starts_with("# more\n"));
    }

    void aBrokenLimitIsAnErrorOfItsRowBesideThePlan()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        workspace.setTableText(workspace.tableText() + "limit memory 1KiB\nlimit time 1s\n");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        const auto &rows = workspace.latest()->rows;
        QVERIFY(workspace.latest()->scene);
        QVERIFY(rows[rows.size() - 2].report.error.has_value());
        QVERIFY(!rows.back().report.error.has_value());
        QVERIFY(!rows.back().remark.empty());
        QCOMPARE(workspace.latest()->errorCount(), std::size_t{1});
    }

    void rowsThatCannotHoldTogetherAreNamedWithWaysOut()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        const std::string before = workspace.tableText();
        workspace.setTableText("place all : devices 0\nplace kind:Linear : devices 1\n");
        QTRY_VERIFY_WITH_TIMEOUT(workspace.latest()->errorCount() > 0, kLong);
        QCOMPARE(workspace.latest()->conflicts.size(), std::size_t{1});
        const RowConflict conflict = workspace.latest()->conflicts.front();
        QCOMPARE(conflict.rows.size(), std::size_t{2});
        QVERIFY(!conflict.operators.empty());
        QVERIFY(!conflict.waysOut.empty());
        const RowWayOut &way = conflict.waysOut.front();
        QVERIFY(workspace.editTable(QString::fromStdString(way.words), way.edit));
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QVERIFY(workspace.latest()->conflicts.empty());
    }

    void theNewestPreviewWinsAndEndingLeavesNothing()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        Proposal proposal;
        for (int i = 0; i < 30; ++i) {
            proposal.words = "try " + std::to_string(i);
            proposal.edit = difference(workspace.table(),
                TableDocument(
                    "micro-batches " + std::to_string(1 + i % 3) + "\n# " + std::to_string(i) + "\n"));
            workspace.preview(proposal);
        }
        QTRY_VERIFY_WITH_TIMEOUT(workspace.currentPreview()->final, kLong);
        QCOMPARE(workspace.currentPreview()->proposal.words, std::string("try 29"));
        QVERIFY(workspace.currentPreview()->update->table.text().ends_with("# 29\n"));
        QSignalSpy previews(&workspace, &GestureHost::previewChanged);
        workspace.preview(Proposal{});
        workspace.endPreview();
        const int count = static_cast<int>(previews.count());
        QTest::qWait(200);
        QCOMPARE(previews.count(), count);
        QVERIFY(!workspace.currentPreview());
        QVERIFY(!workspace.isStale());
    }

    void pausedEditsAreSolvedWhenAskedFor()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        workspace.setLive(false);
        workspace.setTableText("mesh dp=2\nsplit all : batch over dp\n");
        QCOMPARE(workspace.unsolvedEdits(), 1);
        QVERIFY(workspace.isStale());
        QTest::qWait(300);
        QVERIFY(workspace.isStale());
        workspace.replan();
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QCOMPARE(workspace.unsolvedEdits(), 0);
        QVERIFY(!workspace.isLive());
    }

    void everythingIsInTheFileAsItHappens()
    {
        const QTemporaryDir folder;
        QString path;
        std::string text;
        StepId head = 0;
        {
            Workspace workspace;
            workspace.setSessionFolder(folder.path());
            workspace.openWith({kSmall, {}, {}}, "dgx-h100", 2, "data-parallel");
            QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
            QVERIFY(workspace.path().isEmpty()); // nothing was done yet
            workspace.setTableText("# mine\n" + workspace.tableText());
            QTRY_VERIFY_WITH_TIMEOUT(workspace.isAcknowledged(), kLong);
            path = workspace.path();
            QVERIFY(QFileInfo::exists(path));
            QVERIFY(!workspace.hasGivenName());
            workspace.setDeviceCount(4);
            workspace.nameCheckpoint(QStringLiteral("four"));
            workspace.undo();
            workspace.redo();
            workspace.addBranch(QStringLiteral("idea"));
            workspace.setTableText("# idea\n" + workspace.tableText());
            workspace.setView("colour-by", "3");
            SessionRun run;
            run.title = "a run";
            run.state = "done";
            run.details = "{}";
            run.timeline = "[1]";
            workspace.addRun(run);
            QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
            text = workspace.tableText();
            head = workspace.history().current();
        }
        Workspace again;
        again.setSessionFolder(folder.path());
        QSignalSpy sessions(&again, &Workspace::sessionChanged);
        again.openAny(path);
        QTRY_VERIFY_WITH_TIMEOUT(verified(again), kLong);
        QCOMPARE(sessions.count(), 1);
        QCOMPARE(again.tableText(), text);
        QCOMPARE(again.cluster(), std::string("dgx-h100"));
        QCOMPARE(again.deviceCount(), 4);
        QCOMPARE(again.history().current(), head);
        QCOMPARE(again.history().branches().size(), std::size_t{2});
        QCOMPARE(again.history().branches().back().name, std::string("idea"));
        QVERIFY(again.history().names().contains("four"));
        QCOMPARE(again.view().at("colour-by"), std::string("3"));
        QCOMPARE(again.runs().size(), std::size_t{1});
        QSignalSpy loaded(&again, &Workspace::runTimelineLoaded);
        again.loadRunTimeline(again.runs().front().id);
        QTRY_COMPARE_WITH_TIMEOUT(loaded.count(), 1, kLong);
        QCOMPARE(loaded.front().at(1).toByteArray(), QByteArray("[1]"));
        QVERIFY(again.canUndo());
        again.undo();
        QVERIFY(again.tableText() != text);
    }

    void runsThatWereCutOffAreInterruptedFromThenOn()
    {
        const QTemporaryDir folder;
        QString path;
        {
            Workspace workspace;
            workspace.setSessionFolder(folder.path());
            workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
            QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
            for (const char *state : {"done", "running", "preparing"}) {
                SessionRun run;
                run.state = state;
                run.details = "{}";
                run.timeline = "[1]";
                workspace.addRun(run);
            }
            workspace.setTableText("# kept\n");
            QTRY_VERIFY_WITH_TIMEOUT(workspace.isAcknowledged(), kLong);
            path = workspace.path();
        }
        {
            Workspace again;
            again.openAny(path);
            QTRY_VERIFY_WITH_TIMEOUT(verified(again), kLong);
            QCOMPARE(again.runs().size(), std::size_t{3});
            QCOMPARE(again.runs()[0].state, std::string("done"));
            QCOMPARE(again.runs()[1].state, std::string("interrupted"));
            QCOMPARE(again.runs()[2].state, std::string("interrupted"));
            QTRY_VERIFY_WITH_TIMEOUT(again.isAcknowledged(), kLong);
        }
        auto stored = SessionStore::open(path.toStdString()); // not only on screen
        QVERIFY(stored);
        QCOMPARE(stored->contents.runs[1].state, std::string("interrupted"));
        QCOMPARE(*stored->store.loadRunTimeline(stored->contents.runs[1].id), std::string("[1]"));
    }

    void aClusterFromAFileIsPartOfTheDesign()
    {
        const QTemporaryDir folder;
        const QString file = folder.filePath(QStringLiteral("lab.json"));
        Cluster lab = *clusterNamed("dgx-a100:2");
        lab.device.memory.value = 12e9;
        {
            QFile out(file);
            QVERIFY(out.open(QIODevice::WriteOnly));
            out.write(QByteArray::fromStdString(toJson(lab)));
        }
        QString path;
        std::string json;
        {
            Workspace workspace;
            workspace.setSessionFolder(folder.path());
            workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
            QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
            workspace.setCluster(file.toStdString());
            QCOMPARE(workspace.cluster(), std::string("lab"));
            QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
            QCOMPARE(workspace.lastGood()->cluster.device.memory.value, 12e9);
            json = workspace.clusterJson();
            workspace.setCluster("dgx-h100");
            QVERIFY(workspace.clusterJson().empty());
            workspace.undo();
            QCOMPARE(workspace.clusterJson(), json);
            // A file that is none stays a path: the engine says what is wrong with it.
            workspace.setCluster(folder.filePath(QStringLiteral("none.json")).toStdString());
            QTRY_VERIFY_WITH_TIMEOUT(workspace.latest()->final && workspace.latest()->error, kLong);
            workspace.undo();
            QTRY_VERIFY_WITH_TIMEOUT(workspace.isAcknowledged(), kLong);
            path = workspace.path();
        }
        QVERIFY(QFile::remove(file));
        const QString elsewhere = folder.filePath(QStringLiteral("elsewhere.planloom"));
        QVERIFY(QFile::rename(path, elsewhere));
        Workspace again;
        again.openAny(elsewhere);
        QTRY_VERIFY_WITH_TIMEOUT(verified(again), kLong);
        QCOMPARE(again.cluster(), std::string("lab"));
        QCOMPARE(again.lastGood()->cluster.device.memory.value, 12e9);
        QVERIFY(again.value("cluster").find('/') == std::string::npos
            && again.value("cluster-json").find(folder.path().toStdString()) == std::string::npos);
        // Another model in this window is planned for the same cluster.
        again.openModel({"zoo:mlp?layers=3&input=8&hidden=16&classes=4&batch=8", {}, {}});
        QTRY_VERIFY_WITH_TIMEOUT(verified(again), kLong);
        QCOMPARE(again.lastGood()->cluster.device.memory.value, 12e9);
    }

    void leavingASessionWaitsForNothingAndLosesNothing()
    {
        const QTemporaryDir folder;
        Workspace workspace;
        workspace.setSessionFolder(folder.path());
        for (int round = 0; round < 3; ++round) {
            workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
            QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
            for (int i = 0; i < 40; ++i)
                QVERIFY(workspace.editTable(
                    QStringLiteral("a note"), insertText(workspace.table(), 0, "# " + std::to_string(i))));
            const std::string text = workspace.tableText();
            const QString path = workspace.path();
            workspace.openWith(
                {kSmall, {}, {}}, "dgx-a100", 2, "single"); // the last notes may still be on their way
            QTRY_VERIFY_WITH_TIMEOUT(workspace.path() != path, kLong);
            workspace.openSession(path); // and the file is wanted back at once
            QTRY_VERIFY_WITH_TIMEOUT(
                workspace.path() == path && verified(workspace) && workspace.tableText() == text, kLong);
            QVERIFY2(!workspace.isReadOnly(), qPrintable(workspace.saveRemark()));
        }
    }

    void plansOfOtherStepsAreMadeAside()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        workspace.setDeviceCount(4);
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        workspace.replan(); // lets go of what is known
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QSignalSpy ready(&workspace, &Workspace::planOfStepReady);
        QVERIFY(!workspace.planOfStep(0));
        QTRY_COMPARE_WITH_TIMEOUT(ready.count(), 1, kLong);
        const PlanUpdateSnapshot root = workspace.planOfStep(0);
        QVERIFY(root && root->scene);
        QCOMPARE(root->plan->deviceCount, 2);
        QCOMPARE(workspace.lastGood()->plan->deviceCount, 4);
    }

    void savingAsMovesTheSession()
    {
        const QTemporaryDir folder;
        const QTemporaryDir drafts;
        Workspace workspace;
        workspace.setSessionFolder(drafts.path());
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        workspace.setTableText("# one\n");
        QTRY_VERIFY_WITH_TIMEOUT(workspace.isAcknowledged(), kLong);
        const QString draft = workspace.path();
        const QString copy = folder.filePath(QStringLiteral("copy.planloom"));
        QSignalSpy saved(&workspace, &Workspace::copySaved);
        workspace.saveCopyAs(copy);
        QTRY_COMPARE_WITH_TIMEOUT(saved.count(), 1, kLong);
        QCOMPARE(workspace.path(), draft);
        const QString named = folder.filePath(QStringLiteral("mine.planloom"));
        workspace.saveAs(named);
        QTRY_COMPARE_WITH_TIMEOUT(workspace.path(), named, kLong);
        QVERIFY(workspace.hasGivenName());
        QCOMPARE(workspace.title(), QStringLiteral("mine"));
        QVERIFY(!QFileInfo::exists(draft));
        workspace.setTableText("# two\n");
        QTRY_VERIFY_WITH_TIMEOUT(workspace.isAcknowledged(), kLong);
        Workspace again;
        again.openAny(copy);
        QTRY_COMPARE_WITH_TIMEOUT(again.tableText(), std::string("# one\n"), kLong);
        QSignalSpy problems(&workspace, &Workspace::problem);
        workspace.saveCopyAs(QStringLiteral("/no/such/folder/a.planloom"));
        QTRY_COMPARE_WITH_TIMEOUT(problems.count(), 1, kLong);
        QCOMPARE(workspace.path(), named);
    }

    void aSessionThatIsOpenElsewhereIsReadOnlyAndSaysSo()
    {
        const QTemporaryDir folder;
        Workspace first;
        first.setSessionFolder(folder.path());
        first.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(first), kLong);
        first.setTableText("# one\n");
        QTRY_VERIFY_WITH_TIMEOUT(first.isAcknowledged(), kLong);
        Workspace second;
        second.openSession(first.path());
        QTRY_VERIFY_WITH_TIMEOUT(verified(second), kLong);
        QVERIFY(second.isReadOnly());
        QCOMPARE(second.saveState(), SaveState::ReadOnly);
        QVERIFY(!second.remark().isEmpty());
        second.setTableText("# two\n"); // may be tried, is not kept
        QTRY_VERIFY_WITH_TIMEOUT(verified(second), kLong);
        QCOMPARE(second.saveState(), SaveState::ReadOnly);
    }

    void whatCannotBeOpenedIsAProblemAndChangesNothing()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        const ModelSnapshot model = workspace.model();
        QSignalSpy problems(&workspace, &Workspace::problem);
        workspace.openAny(QStringLiteral("/no/such/file.onnx"));
        QTRY_COMPARE_WITH_TIMEOUT(problems.count(), 1, kLong);
        QCOMPARE(workspace.model(), model);
        const QTemporaryDir folder;
        QFile other(folder.filePath(QStringLiteral("other.db")));
        QVERIFY(other.open(QIODevice::WriteOnly));
        other.write(QByteArray("SQLite format 3\0", 16) + QByteArray(200, '\0'));
        other.close();
        workspace.openAny(other.fileName());
        QTRY_COMPARE_WITH_TIMEOUT(problems.count(), 2, kLong);
        QCOMPARE(workspace.model(), model);
        QVERIFY(!workspace.isOpening());
    }

    void cancellingWhileOpeningKeepsWhatIsOpen()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        const ModelSnapshot model = workspace.model();
        for (int i = 0; i < 10; ++i) {
            workspace.openAny(QStringLiteral("zoo:gpt?layers=8&hidden=64&heads=4&seq=32&vocab=100&batch=8"));
            QTest::qWait(2 * i);
            if (!workspace.isOpening())
                break; // it was quicker
            workspace.cancelOpening();
            QVERIFY(!workspace.isOpening());
            QCOMPARE(workspace.model(), model);
        }
        workspace.replan();
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
    }

    void aReadOnlyPlaceIsSaidAndEditingGoesOn()
    {
        Workspace workspace;
        workspace.setSessionFolder(QStringLiteral("/proc/no-such-place"));
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QSignalSpy problems(&workspace, &Workspace::problem);
        workspace.setTableText("# one\n");
        QTRY_COMPARE_WITH_TIMEOUT(workspace.saveState(), SaveState::Failed, kLong);
        QVERIFY(!workspace.saveRemark().isEmpty());
        QCOMPARE(problems.count(), 1);
        workspace.setTableText("# two\n");
        workspace.undo();
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
    }

    void rowsAreBoundAnewWhenTheModelChanges()
    {
        const QString model = QString::fromStdString((modelFolder() / "gpt2_tiny.onnx").string());
        if (!QFile::exists(model))
            QSKIP("The models are not there.");
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("model.onnx"));
        QVERIFY(QFile::copy(model, path));
        QFile::setPermissions(path, QFile::ReadOwner | QFile::WriteOwner);
        Workspace workspace;
        workspace.openWith({path.toStdString(), {}, {}}, "dgx-a100", 2, "", "# nothing yet\n");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        std::string name;
        for (const Operator &op : workspace.model()->graph->operators) {
            if (op.direction == Direction::Forward && op.name.find("mlp") != std::string::npos
                && name.empty())
                name = op.name;
        }
        QVERIFY(!name.empty());
        const std::string row = "place name:" + name + " : devices 1  @gesture\n";
        QVERIFY(workspace.editTable(QStringLiteral("a row"), insertText(workspace.table(), 0, row)));
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        const std::string before = workspace.tableText();
        const std::size_t steps = workspace.history().steps().size();

        // Every name with "mlp" in it reads "ffn": the file's lengths stay.
        QFile file(path);
        QVERIFY(file.open(QIODevice::ReadWrite));
        QByteArray bytes = file.readAll();
        bytes.replace("mlp", "ffn");
        file.seek(0);
        QCOMPARE(file.write(bytes), bytes.size());
        file.close();
        ModelSource source = workspace.model()->source;
        source.content.clear();
        workspace.openModel(source, true);
        QVERIFY(workspace.isOpening());
        QTRY_VERIFY_WITH_TIMEOUT(!workspace.isOpening(), kLong);
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        std::string renamed = before;
        renamed.replace(renamed.find("mlp"), 3, "ffn");
        QCOMPARE(workspace.tableText(), renamed);
        QCOMPARE(workspace.latest()->errorCount(), std::size_t{0});
        QCOMPARE(workspace.history().steps().size(), steps + 1);
        QCOMPARE(workspace.history().find(workspace.history().current())->words,
            std::string("Rebind rows to the changed model"));
        QVERIFY2(
            workspace.remark().contains(QStringLiteral("0 operators new, 0 gone, 0 rows no longer bind")),
            qPrintable(workspace.remark()));
        QVERIFY(workspace.remark().contains(QStringLiteral("1 row was bound anew")));
        workspace.undo();
        QCOMPARE(workspace.tableText(), before);
    }

    void rowsOfWhatAChangedModelLacksAreCounted()
    {
        Workspace workspace;
        workspace.openWith(
            {"zoo:gpt?layers=3&hidden=32&heads=2&seq=8&vocab=32&batch=4", {}, {}}, "dgx-a100", 2, "", "");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        workspace.openModel({"zoo:gpt?layers=2&hidden=32&heads=2&seq=8&vocab=32&batch=4", {}, {}}, true);
        QTRY_VERIFY_WITH_TIMEOUT(!workspace.isOpening() && verified(workspace), kLong);
        std::set<std::string> small;
        for (const Operator &op : workspace.model()->graph->operators)
            small.insert(op.name);
        QVERIFY(!workspace.canUndo()); // no row had to change
        workspace.openModel({"zoo:gpt?layers=3&hidden=32&heads=2&seq=8&vocab=32&batch=4", {}, {}}, true);
        QTRY_VERIFY_WITH_TIMEOUT(!workspace.isOpening() && verified(workspace), kLong);
        QVERIFY2(workspace.remark().contains(QStringLiteral("new, 0 gone, 0 rows no longer bind")),
            qPrintable(workspace.remark()));
        std::string rows;
        for (const Operator &op : workspace.model()->graph->operators) {
            if (op.direction == Direction::Forward && small.count(op.name) == 0)
                rows += "place name:" + op.name + " : devices 0\n";
        }
        QVERIFY(!rows.empty());
        const auto count = std::count(rows.begin(), rows.end(), '\n');
        QVERIFY(workspace.editTable(QStringLiteral("rows"), insertText(workspace.table(), 0, rows)));
        workspace.openModel({"zoo:gpt?layers=2&hidden=32&heads=2&seq=8&vocab=32&batch=4", {}, {}}, true);
        workspace.openModel(
            {"zoo:gpt?layers=2&hidden=32&heads=2&seq=8&vocab=32&batch=4", {}, {}}, true); // the newest counts
        QTRY_VERIFY_WITH_TIMEOUT(
            !workspace.isOpening() && workspace.latest() && workspace.latest()->final, kLong);
        QVERIFY2(workspace.remark().contains(QStringLiteral("0 operators new, %1 gone, ").arg(count)),
            qPrintable(workspace.remark()));
        QVERIFY2(
            workspace.remark().contains(count == 1 ? QStringLiteral("1 row no longer binds")
                                                   : QStringLiteral("%1 rows no longer bind").arg(count)),
            qPrintable(workspace.remark()));
        QCOMPARE(workspace.tableText(), rows); // left as they are, and wrong at their place
        QCOMPARE(workspace.latest()->errorCount(), static_cast<std::size_t>(count));
    }

    void quittingWhilePlanningIsSafe()
    {
        for (int i = 0; i < 5; ++i) {
            Workspace workspace;
            workspace.openAny(QStringLiteral("zoo:gpt?layers=4&hidden=64&heads=4&seq=32&vocab=100&batch=8"));
            QTest::qWait(10 * i);
        }
    }

    void modelOptionsAreAStepAndTheModelFollows()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        const std::string rows = workspace.tableText();
        const ModelSnapshot adam = workspace.model();
        const auto has = [&workspace](OperatorKind kind) {
            const auto &operators = workspace.model()->graph->operators;
            return std::any_of(
                operators.begin(), operators.end(), [kind](const Operator &op) { return op.kind == kind; });
        };
        QVERIFY(has(OperatorKind::AdamWStep));

        ModelOptions options = workspace.modelOptions();
        options.optimizer = Optimizer::Sgd;
        options.learningRate = 0.1;
        workspace.setModelOptions(options);
        QVERIFY(workspace.isOpening());
        QVERIFY(workspace.isStale());
        QCOMPARE(workspace.history().undoWords(), std::string("model: learning rate 0.1, sgd"));
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace) && !workspace.isOpening(), kLong);
        QVERIFY(has(OperatorKind::SgdStep));
        QVERIFY(workspace.model()->source.options == options);
        QVERIFY(workspace.latest()->model == workspace.model());
        QCOMPARE(workspace.tableText(), rows);

        // A plan of the step before is of another model: it is said, and nothing waits for it.
        QSignalSpy ready(&workspace, &Workspace::planOfStepReady);
        QVERIFY(!workspace.planOfStep(0));
        QTRY_COMPARE_WITH_TIMEOUT(ready.count(), 1, kLong);
        QVERIFY(ready.front().at(1).value<PlanUpdateSnapshot>()->error.has_value());

        workspace.undo();
        QVERIFY(workspace.modelOptions() == ModelOptions{});
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace) && !workspace.isOpening(), kLong);
        QVERIFY(has(OperatorKind::AdamWStep));
        QVERIFY(workspace.model()->source.options == ModelOptions{});

        workspace.redo();
        workspace.undo(); // before the model was open again
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace) && !workspace.isOpening(), kLong);
        QVERIFY(workspace.model()->source.options == ModelOptions{});

        workspace.setModelOptions(ModelOptions{}); // as they are
        QVERIFY(!workspace.isOpening());
        QVERIFY(workspace.canRedo());
    }

    void sessionsKeepModelOptions()
    {
        QTemporaryDir folder;
        QString path;
        {
            Workspace workspace;
            workspace.setSessionFolder(folder.path());
            workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
            QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
            ModelOptions options;
            options.inference = true;
            workspace.setModelOptions(options);
            QTRY_VERIFY_WITH_TIMEOUT(verified(workspace) && workspace.isAcknowledged(), kLong);
            path = workspace.path();
        }
        Workspace again;
        again.openSession(path);
        QTRY_VERIFY_WITH_TIMEOUT(verified(again), kLong);
        QVERIFY(again.model()->source.options.inference);
        QVERIFY(again.model()->remark.empty());
        again.undo();
        QTRY_VERIFY_WITH_TIMEOUT(verified(again) && !again.isOpening(), kLong);
        QVERIFY(!again.model()->source.options.inference);
        QVERIFY(again.model()->graph->operators.size()
            > static_cast<std::size_t>(again.model()->forwardOperators));
    }

    void aModelReadAgainKeepsItsOptions()
    {
        Workspace workspace;
        workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        ModelOptions options;
        options.optimizer = Optimizer::Sgd;
        workspace.setModelOptions(options);
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace) && !workspace.isOpening(), kLong);
        workspace.openModel({"zoo:mlp?layers=3&hidden=32&batch=8", {}, {}}, true);
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace) && !workspace.isOpening(), kLong);
        QVERIFY(workspace.model()->source.options == options);
        while (workspace.canUndo())
            workspace.undo();
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace) && !workspace.isOpening(), kLong);
        QVERIFY(workspace.model()->source.options == ModelOptions{});
    }

    void sizesThatAFileLeavesOpenAreAskedForAndBecomeRows()
    {
        Workspace workspace;
        std::vector<InputDimension> asked;
        QString said;
        int times = 0;
        connect(&workspace, &Workspace::sizesAsked, this,
            [&](const std::vector<InputDimension> &dimensions, const QString &problem) {
                asked = dimensions;
                said = problem;
                ++times;
            });
        QSignalSpy problems(&workspace, &Workspace::problem);
        workspace.openAny(QStringLiteral(PLANLOOM_SOURCE_DIR "/tests/engine/frontend/pt2/transformer.pt2"));
        QTRY_COMPARE_WITH_TIMEOUT(times, 1, kLong);
        QVERIFY(!workspace.isOpening());
        QVERIFY(said.isEmpty());
        QCOMPARE(asked.size(), std::size_t{1});
        QCOMPARE(asked.front().name, std::string("s52"));
        QCOMPARE(asked.front().most, std::int64_t{64});
        workspace.giveSizes({{"s52", 65}});
        QTRY_COMPARE_WITH_TIMEOUT(times, 2, kLong);
        QVERIFY(said.contains(QLatin1String("2 to 64")));
        QCOMPARE(asked.front().size, std::int64_t{65});
        workspace.giveSizes({{"s52", 4}});
        QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
        QCOMPARE(workspace.model()->batch->size, std::int64_t{4});
        QVERIFY(workspace.tableText().find("dim s52 = 4\n") != std::string::npos);
        QVERIFY(!workspace.canUndo());
        workspace.applyGallery("data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(workspace.canUndo() && verified(workspace), kLong);
        QVERIFY(workspace.tableText().find("dim s52 = 4\n") != std::string::npos); // it is the model's
        QCOMPARE(workspace.model()->batch->size, std::int64_t{4});
        QCOMPARE(problems.count(), 0);
    }

    void sizesAreKnobsThatTheModelFollows()
    {
        QTemporaryDir folder;
        QString path;
        {
            Workspace workspace;
            workspace.setSessionFolder(folder.path());
            workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "data-parallel");
            QTRY_VERIFY_WITH_TIMEOUT(verified(workspace), kLong);
            const PlanUpdateSnapshot before = workspace.lastGood();
            workspace.setSizes({{"batch", 16}});
            QCOMPARE(workspace.history().undoWords(), std::string("open with batch = 16"));
            QVERIFY(workspace.tableText().ends_with("dim batch = 16\n"));
            QVERIFY(workspace.isStale());
            QVERIFY(workspace.lastGood() == before); // what was there stays in sight meanwhile
            QTRY_VERIFY_WITH_TIMEOUT(verified(workspace) && !workspace.isOpening(), kLong);
            QCOMPARE(workspace.model()->batch->size, std::int64_t{16});
            QVERIFY(workspace.lastGood()->model == workspace.model());
            workspace.setSizes({{"batch", 16}}); // as it is
            QVERIFY(!workspace.isOpening());
            workspace.undo();
            QTRY_VERIFY_WITH_TIMEOUT(verified(workspace) && !workspace.isOpening(), kLong);
            QCOMPARE(workspace.model()->batch->size, std::int64_t{8});
            workspace.redo();
            QTRY_VERIFY_WITH_TIMEOUT(
                verified(workspace) && !workspace.isOpening() && workspace.isAcknowledged(), kLong);
            QCOMPARE(workspace.model()->batch->size, std::int64_t{16});
            path = workspace.path();
        }
        Workspace again;
        again.openSession(path);
        QTRY_VERIFY_WITH_TIMEOUT(verified(again) && !again.isOpening(), kLong);
        QCOMPARE(again.model()->batch->size, std::int64_t{16});
        // A size that cannot be is an error of its row; the model stays as it is.
        again.setTableText("dim batch = 70000\ndim heads = 2\n");
        QTRY_VERIFY_WITH_TIMEOUT(again.latest() && again.latest()->errorCount() == 2, kLong);
        QVERIFY(!again.isOpening());
        again.setTableText("");
        QTRY_VERIFY_WITH_TIMEOUT(verified(again) && !again.isOpening(), kLong);
        QCOMPARE(again.model()->batch->size, std::int64_t{8});
    }

    void sessionsWithUnknownOptionsSaySo()
    {
        QTemporaryDir folder;
        const std::string path = folder.filePath(QStringLiteral("new.planloom")).toStdString();
        SessionContents contents;
        contents.model = {kSmall, {}, {}, {{"precision", "half"}}};
        QVERIFY(SessionStore::create(path, contents));
        Workspace workspace;
        QSignalSpy problems(&workspace, &Workspace::problem);
        workspace.openSession(QString::fromStdString(path));
        QTRY_COMPARE_WITH_TIMEOUT(problems.count(), 1, kLong);
        QVERIFY(!workspace.isOpening());
        QVERIFY(!workspace.model());
        QVERIFY(problems.front().front().value<Error>().message.find("precision") != std::string::npos);
    }
};

PLANLOOM_QTEST(WorkspaceTest)
#include "workspace_test.moc"
