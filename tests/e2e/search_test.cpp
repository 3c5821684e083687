// From a model without rows to the best plan that was found, what it rests on, and back.

#include <QtCore/QObject>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTableWidget>

#include "engine/gesture/gesture.h"
#include "tests/e2e/window_for_tests.h"
#include "tests/qt_test.h"
#include "widgets/main/notice_bar.h"
#include "widgets/main/search_report.h"
#include "widgets/problems/problems_panel.h"
#include "widgets/schedule/schedule_board.h"
#include "widgets/table/constraint_table_model.h"
#include "widgets/table/table_panel.h"

#include <algorithm>
#include <cmath>
#include <set>

using namespace planloom;

namespace {

int solverRows(const Workspace &workspace)
{
    const auto &lines = workspace.table().lines();
    return static_cast<int>(std::count_if(lines.begin(), lines.end(),
        [](const TableLineSnapshot &line) { return line->row && line->row->origin == RowOrigin::Solver; }));
}

void search(WindowForTests &at)
{
    QSignalSpy done(&at.workspace(), &Workspace::searched);
    at.window->findChild<QAction *>(QStringLiteral("solve.best"))->trigger();
    QVERIFY(at.workspace().isSearching());
    QTRY_VERIFY_WITH_TIMEOUT(!done.isEmpty(), kPatience);
    QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
}

/// Searches long enough for something to be shown on the way.
void open(WindowForTests &at)
{
    at.workspace().setBetterEvery(std::chrono::milliseconds(1));
    at.workspace().openWith({"zoo:gpt?layers=12&hidden=256&heads=8&seq=128&vocab=512&batch=32", {}, {}},
        "dgx-h100", 8, {}, "# mine\n");
    QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
}

void untilShown(WindowForTests &at)
{
    at.workspace().setHandAtWork({});
    at.workspace().searchBest();
    QTRY_VERIFY_WITH_TIMEOUT(at.workspace().showsBestSoFar(), kPatience);
}

/// Beside the timeline's title.
QString said(const WindowForTests &at)
{
    return at.window->findChild<QLabel *>(QStringLiteral("shownPlan"))->text();
}

} // namespace

class SearchTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void findsTheBestPlanAndSaysHowGoodItIs()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        workspace.openWith({kSmallGpt, {}, {}}, "dgx-h100", 4, {}, "# mine\n");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        const double before = workspace.latest()->summary.stepSeconds;
        search(at);
        QVERIFY(solverRows(workspace) > 0);
        QVERIFY(workspace.tableText().starts_with("# mine\n"));
        QVERIFY(workspace.latest()->search);
        const SearchResult &found = *workspace.latest()->search;
        QVERIFY(found.fits);
        QVERIFY(found.bound > 0 && found.bound <= found.best.simulatedSeconds);
        QVERIFY(workspace.latest()->summary.stepSeconds < before);
        QCOMPARE(workspace.latest()->summary.stepSeconds, found.best.simulatedSeconds);
        QVERIFY(workspace.latest()->verdict && workspace.latest()->verdict->ok());
        workspace.undo(); // one step
        QCOMPARE(workspace.tableText(), std::string("# mine\n"));
    }

    void choosesAgainWithinTheRowsOfAPerson()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        workspace.openWith({kSmallGpt, {}, {}}, "dgx-h100", 4, {});
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        search(at);
        QSignalSpy again(&workspace, &Workspace::searched);
        Row row;
        row.rule = MicroBatchesRule{2};
        const TableEdit own = insertText(workspace.table(), 0, "micro-batches 2\n");
        QVERIFY(workspace.editTable(QStringLiteral("two micro-batches"), own));
        QTRY_VERIFY_WITH_TIMEOUT(!again.isEmpty(), kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        QVERIFY(workspace.latest()->search);
        QCOMPARE(workspace.latest()->plan->microBatches, 2);
        QCOMPARE(workspace.latest()->search->best.configuration.microBatches, 2);
        QCOMPARE(static_cast<int>(workspace.latest()->errorCount()), 0);
    }

    /// What was chosen for an edit goes with it: one undo leads to the plan before, one redo back.
    void takesAnEditBackWithItsAnswer()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        workspace.openWith(
            {kSmallGpt, {}, {}}, "dgx-h100", 4, {}, "micro-batches 4\ndegree pipeline exactly 2\n");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        search(at);
        at.dag()->setFocus();
        std::vector<std::string> rows{workspace.tableText()};
        std::vector<double> steps{workspace.latest()->summary.stepSeconds};
        const auto first = workspace.history().steps().size();
        for (const int line : {1, 0}) { // switched off, one after the other
            QSignalSpy again(&workspace, &Workspace::searched);
            ConstraintTableModel *table = at.window->constraints()->rows();
            QVERIFY(table->setData(
                table->index(line, static_cast<int>(TableColumn::On)), Qt::Unchecked, Qt::CheckStateRole));
            QTRY_VERIFY_WITH_TIMEOUT(!again.isEmpty() && at.settled(), kPatience);
            QVERIFY(workspace.tableText() != rows.back());
            rows.push_back(workspace.tableText());
            steps.push_back(workspace.latest()->summary.stepSeconds);
        }
        QCOMPARE(workspace.history().steps().size(), first + 2);
        const HistoryStep *last = workspace.history().find(workspace.history().current());
        QVERIFY(last->words.starts_with("switch off row 1") && last->words.find("best plan: ") < 40);
        QVERIFY(last->figures && last->figures->stepSeconds == steps.back());
        for (const int left : {1, 0}) {
            QTest::keySequence(at.window.get(), QKeySequence::Undo);
            QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
            QCOMPARE(workspace.tableText(), rows[static_cast<std::size_t>(left)]);
            QCOMPARE(workspace.latest()->summary.stepSeconds, steps[static_cast<std::size_t>(left)]);
            QVERIFY(workspace.latest()->search); // it is known how good it is
        }
        QTest::keySequence(at.window.get(), QKeySequence::Redo);
        QCOMPARE(workspace.tableText(), rows[1]);
    }

    /// A plan that is shown on the way belongs to the edit, too, for whoever goes on with it.
    void takesAnEditBackWithWhatWasShownForIt()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        open(at);
        search(at);
        workspace.setHandAtWork({});
        const std::string before = workspace.tableText();
        const auto steps = workspace.history().steps().size();
        QVERIFY(workspace.editTable(QStringLiteral("less"),
            insertText(workspace.table(), 0, "precision all : bf16\n"))); // all is priced anew
        QTRY_VERIFY_WITH_TIMEOUT(workspace.showsBestSoFar(), kPatience);
        const std::string shown = workspace.tableText();
        QVERIFY(workspace.editTable(QStringLiteral("remark"),
            insertText(workspace.table(), workspace.table().lineCount(), "# more\n")));
        QCOMPARE(workspace.history().steps().size(), steps + 2);
        workspace.undo();
        QCOMPARE(workspace.tableText(), shown);
        workspace.undo();
        QCOMPARE(workspace.tableText(), before);
    }

    /// Rows of a person that leave no plan are shown as those that cannot hold together, not as a plan that
    /// breaks them; what was found before takes no part; and a way out has it search again.
    void showsRowsThatLeaveNoPlanAsAConflict()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        workspace.openWith({kSmallGpt, {}, {}}, "dgx-h100", 4, {});
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        search(at);
        const TableEdit own =
            insertText(workspace.table(), 0, "degree data exactly 4\nzero1 all\ndegree pipeline exactly 4\n");
        QVERIFY(workspace.editTable(QStringLiteral("too many"), own));
        QTRY_VERIFY_WITH_TIMEOUT(!workspace.isPlanning() && workspace.latest()->searchProblem
                && workspace.latest()->table == workspace.table() && workspace.latest()->final,
            kPatience);
        QVERIFY(!workspace.latest()->plan);
        QCOMPARE(workspace.latest()->conflicts.size(), std::size_t{1});
        auto *problems = at.window->findChild<ProblemsPanel *>();
        QVERIFY(problems);
        problems->addProblem(*workspace.latest()->searchProblem); // as where the search was asked for
        QCOMPARE(problems->count(), 1);
        const RowConflict conflict = workspace.latest()->conflicts.front();
        QVERIFY(conflict.minimal);
        QCOMPARE(conflict.lines, (std::vector<std::int32_t>{0, 2}));
        for (const RowLine &row : workspace.latest()->rows)
            QCOMPARE(row.report.error.has_value(), row.line == 0 || row.line == 2);
        QVERIFY(!conflict.waysOut.empty());
        QVERIFY(conflict.waysOut.front().holds);
        QSignalSpy again(&workspace, &Workspace::searched);
        QVERIFY(workspace.editTable(QStringLiteral("way out"), conflict.waysOut.front().edit));
        QTRY_VERIFY_WITH_TIMEOUT(!again.isEmpty() && at.settled(), kPatience);
        QVERIFY(workspace.latest()->search);
        QCOMPARE(static_cast<int>(workspace.latest()->errorCount()), 0);
    }

    /// All that is left open is chosen again around an operator that a hand has placed.
    void goesOnAroundWhatAHandHasPlaced()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        workspace.openWith({kSmallGpt, {}, {}}, "dgx-h100", 4, {});
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        search(at);
        const QString said = at.window->notices().textOf(QStringLiteral("searched"));
        QVERIFY(!said.isEmpty());
        const double before = workspace.latest()->summary.stepSeconds;
        const auto op = workspace.model()->index->select(*parseSelector("layer:0 & kind:Linear")).front();
        const Proposal placed =
            proposePlace(*workspace.gestureContext(), PlaceGesture{{op}, {DeviceId{2}}, {}, false});
        QVERIFY(!placed.refusal);
        QVERIFY(workspace.commit(placed));
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && workspace.latest()->search, kPatience);
        QCOMPARE(static_cast<int>(workspace.latest()->errorCount()), 0);
        QVERIFY(workspace.latest()->plan);
        QCOMPARE(workspace.latest()->plan->decisions[static_cast<std::size_t>(op.index)].devices,
            std::vector<DeviceId>{DeviceId{2}});
        // A row only takes plans away.
        QVERIFY(workspace.latest()->summary.stepSeconds >= before);
        QVERIFY(solverRows(workspace) > 0);
        // What is said above is of the plan that is shown.
        const QString now = at.window->notices().textOf(QStringLiteral("searched"));
        QVERIFY(now != said && !now.isEmpty());
    }

    /// Whatever schedule is taken for the stages of a plan that was searched, they stay as it needs them.
    void leavesAPlanToASchedule()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        workspace.openWith({"zoo:gpt?layers=8&hidden=256&heads=8&seq=128&vocab=512&batch=8", {}, {}},
            "dgx-h100", 8, {}, "micro-batches 8\ndegree pipeline exactly 4\n");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        search(at);
        const StepId searched = workspace.history().current();
        QVERIFY(at.window->trigger(QStringLiteral("schedule.best")));
        ScheduleBoard *board = at.window->scheduleBoard();
        QSignalSpy found(board, &ScheduleBoard::found);
        QTRY_VERIFY_WITH_TIMEOUT(!found.isEmpty(), 4 * kPatience);
        QPushButton *apply = nullptr;
        for (QPushButton *button : board->findChildren<QPushButton *>())
            if (button->text() == QStringLiteral("&Apply"))
                apply = button;
        QVERIFY(apply);
        std::set<ScheduleKind> taken;
        for (int line = 0; line < board->list()->rowCount(); ++line) {
            const TriedSchedule *tried = board->triedAt(line);
            if (!tried || tried->problem || !taken.insert(tried->rule.kind).second)
                continue;
            board->list()->clearSelection();
            board->list()->selectRow(line);
            const TriedSchedule wanted = *tried;
            apply->click();
            QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
            const PlanUpdateSnapshot plan = workspace.latest();
            QVERIFY2(plan->errorCount() == 0 && plan->plan && plan->scene, wanted.name.c_str());
            QVERIFY2(
                plan->plan->schedule == wanted.rule.kind && plan->plan->stageCount > 1, wanted.name.c_str());
            const auto &known = kSearchedSchedules;
            if (std::find(known.begin(), known.end(), wanted.rule.kind) == known.end())
                QVERIFY2(std::abs(plan->summary.stepSeconds / wanted.stepSeconds - 1) < 1e-6,
                    wanted.name.c_str()); // as it was promised
            workspace.goTo(searched);
            QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        }
        QVERIFY(taken.count(ScheduleKind::Listed) == 1 && taken.count(ScheduleKind::DualPipeV) == 1);
        QVERIFY(taken.count(ScheduleKind::OneFOneB) == 1);
    }

    /// An edit beside such a schedule keeps the grey rows; without it they are chosen again.
    void choosesAgainOnceTheScheduleGoes()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        workspace.openWith({kSmallGpt, {}, {}}, "dgx-h100", 4, {},
            "micro-batches 4\ndegree pipeline exactly 2\ndegree stages exactly 2\n");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        search(at);
        const int chosen = solverRows(workspace);
        const Proposal typed = proposeText(*workspace.gestureContext(), "schedule eager-1f1b", {});
        QVERIFY(workspace.commit(typed));
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        QCOMPARE(static_cast<int>(workspace.latest()->errorCount()), 0);
        QVERIFY(workspace.latest()->plan->schedule == ScheduleKind::Eager1F1B);
        QCOMPARE(workspace.latest()->plan->stageCount, 2);
        QVERIFY(solverRows(workspace) >= chosen - 1);
        // By name it says what is in the way.
        QSignalSpy problems(&workspace, &Workspace::problem);
        const std::string rows = workspace.tableText();
        workspace.searchBest();
        QCOMPARE(problems.size(), 1);
        QVERIFY(!workspace.isSearching());
        QCOMPARE(workspace.tableText(), rows);
        std::int32_t line = 0;
        while (!workspace.table().lines()[static_cast<std::size_t>(line)]->text.starts_with("schedule"))
            ++line;
        QSignalSpy again(&workspace, &Workspace::searched);
        QVERIFY(workspace.editTable(QStringLiteral("without it"), removeLines(workspace.table(), {line})));
        QTRY_VERIFY_WITH_TIMEOUT(!again.isEmpty() && at.settled(), kPatience);
        QCOMPARE(static_cast<int>(workspace.latest()->errorCount()), 0);
    }

    void keepsWhatWasSearched()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        workspace.openWith({kSmallGpt, {}, {}}, "dgx-h100", 4, {});
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        search(at);
        const std::size_t rows = workspace.table().table().rows.size();
        at.window->findChild<QAction *>(QStringLiteral("solve.keepSearched"))->trigger();
        QCOMPARE(solverRows(workspace), 0);
        QCOMPARE(workspace.table().table().rows.size(), rows);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
    }

    void opensAnotherPlanThatWasLookedAt()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        workspace.openWith({kSmallGpt, {}, {}}, "dgx-h100", 4, {});
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        search(at);
        const auto seen = workspace.latest()->search->seen;
        QPushButton *show = nullptr;
        for (QPushButton *button : at.window->findChildren<QPushButton *>())
            if (button->text() == QStringLiteral("Show What Was Searched"))
                show = button;
        QVERIFY(show);
        QTest::mouseClick(show, Qt::LeftButton);
        auto *report = at.window->findChild<SearchReport *>();
        QVERIFY(report);
        auto *list = report->findChild<QTableWidget *>(QStringLiteral("searchedPlans"));
        QVERIFY(list && list->rowCount() > 1);
        int other = -1; // the slowest of those that have rows
        for (int i = 0; i < list->rowCount(); ++i)
            if (seen[static_cast<std::size_t>(i)].rows)
                other = i;
        QVERIFY(other >= 0);
        const double wanted = seen[static_cast<std::size_t>(other)].simulatedSeconds;
        list->setCurrentCell(other, 0);
        QPushButton *open = nullptr;
        for (QPushButton *button : report->findChildren<QPushButton *>())
            if (button->text() == QStringLiteral("&Open Plan"))
                open = button;
        QVERIFY(open && open->isEnabled());
        QTest::mouseClick(open, Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(
            at.settled() && workspace.latest()->summary.stepSeconds == wanted, kPatience);
        QCOMPARE(solverRows(workspace), 0);
    }

    void isStoppedWithTheBestSoFar()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        workspace.openWith({kSmallGpt, {}, {}}, "dgx-h100", 4, {}, "# mine\n");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        // The moment that there is a better plan, it is enough.
        QMetaObject::Connection once = connect(&workspace, &Workspace::stateChanged, &workspace, [&] {
            if (workspace.isSearching() && workspace.searchProgress())
                at.window->findChild<QAction *>(QStringLiteral("solve.stop"))->trigger();
        });
        QSignalSpy done(&workspace, &Workspace::searched);
        workspace.searchBest();
        QTRY_VERIFY_WITH_TIMEOUT(!done.isEmpty(), kPatience);
        QObject::disconnect(once);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        QVERIFY(solverRows(workspace) > 0);
        QVERIFY(workspace.latest()->search && workspace.latest()->search->bound > 0);
        QVERIFY(workspace.latest()->verdict && workspace.latest()->verdict->ok());
    }

    /// Each better plan takes the place of what is shown: graph, timeline and grey rows, without a step.
    void showsWhatItHasSoFar()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        open(at);
        workspace.setHandAtWork({}); // where the real pointer is, is no matter of this test
        const QString before = QString::fromStdString(workspace.tableText());
        const auto steps = workspace.history().steps().size();
        int shown = 0;
        double last = 0;
        bool isSound = true;
        const auto look = connect(&workspace, &Workspace::planChanged, &workspace, [&] {
            if (!workspace.showsBestSoFar())
                return;
            const PlanUpdateSnapshot &plan = workspace.lastGood();
            isSound = isSound && plan->table == workspace.table() && solverRows(workspace) > 0
                && workspace.tableText().starts_with("# mine\n")
                && workspace.history().steps().size() == steps
                && (last == 0 || plan->summary.stepSeconds <= last) && !workspace.isStale();
            last = plan->summary.stepSeconds;
            ++shown;
        });
        bool isPainted = false;
        const auto state = connect(&workspace, &Workspace::stateChanged, &workspace, [&] {
            isPainted = isPainted
                || (workspace.showsBestSoFar() && at.timeline()->scene() == workspace.lastGood()->scene
                    && at.window->constraints()->rows()->document() == workspace.table()
                    && said(at).startsWith(QStringLiteral("the best plan so far: ")));
        });
        search(at);
        QObject::disconnect(look);
        QObject::disconnect(state);
        QVERIFY(shown > 0);
        QVERIFY(isSound);
        QVERIFY(isPainted);
        QVERIFY(!workspace.showsBestSoFar());
        QCOMPARE(said(at), QString());
        QCOMPARE(workspace.history().steps().size(), steps + 1);
        workspace.undo();
        QCOMPARE(QString::fromStdString(workspace.tableText()), before);
    }

    void goesBackToThePlanBeforeWhereTheSearchIsGivenUp()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        open(at);
        const PlanUpdateSnapshot before = workspace.lastGood();
        untilShown(at);
        QVERIFY(solverRows(workspace) > 0);
        workspace.stopPlanning();
        QVERIFY(!workspace.showsBestSoFar());
        QCOMPARE(workspace.tableText(), std::string("# mine\n"));
        QCOMPARE(workspace.lastGood(), before);
        QVERIFY(!workspace.isStale());
        QCOMPARE(at.timeline()->scene(), before->scene);
        QVERIFY(workspace.history().steps().empty());
    }

    void keepsWhatIsShownAsAStepOnceAPersonGoesOnWithIt()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        open(at);
        untilShown(at);
        const std::string shown = workspace.tableText();
        QVERIFY(workspace.editTable(QStringLiteral("remark"),
            insertText(workspace.table(), workspace.table().lineCount(), "# more\n")));
        QCOMPARE(workspace.tableText(), shown + "# more\n");
        QCOMPARE(workspace.history().steps().size(), std::size_t{2});
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        while (workspace.tableText() != shown && workspace.canUndo())
            workspace.undo();
        QCOMPARE(workspace.tableText(), shown);
        workspace.undo();
        QCOMPARE(workspace.tableText(), std::string("# mine\n"));
    }

    void keepsTheShownPlanOnTheButton()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        open(at);
        untilShown(at);
        QSignalSpy done(&workspace, &Workspace::searched);
        at.window->findChild<QAction *>(QStringLiteral("solve.stop"))->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!done.isEmpty(), kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        QVERIFY(!workspace.showsBestSoFar());
        QVERIFY(solverRows(workspace) > 0);
        QCOMPARE(workspace.history().steps().size(), std::size_t{1});
    }

    /// Nothing is replaced under a hand, nor under an editor.
    void waitsForAHandThatIsAtWork()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        open(at);
        bool isAtWork = true;
        workspace.setHandAtWork([&] { return isAtWork; });
        bool wasShown = false;
        const auto look = connect(&workspace, &Workspace::planChanged, &workspace,
            [&] { wasShown = wasShown || workspace.showsBestSoFar(); });
        search(at);
        QObject::disconnect(look);
        QVERIFY(!wasShown);
        QVERIFY(solverRows(workspace) > 0); // the end is another matter
    }

    void isRememberedByLaterSessionsAndOtherWindows()
    {
        QTemporaryDir solved;
        QTemporaryDir sessions;
        QString path;
        double gap = 0;
        {
            WindowForTests at(sessions.path());
            Workspace &workspace = at.workspace();
            workspace.setSolvedFolder(solved.path());
            workspace.openWith({kSmallGpt, {}, {}}, "dgx-h100", 4, {}, "# mine\n");
            QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
            search(at);
            gap = workspace.latest()->search->gap();
            QTRY_VERIFY_WITH_TIMEOUT(workspace.isAcknowledged(), kPatience);
            path = workspace.path();
        }
        WindowForTests again(sessions.path());
        again.workspace().setSolvedFolder(solved.path());
        again.workspace().openSession(path);
        QTRY_VERIFY_WITH_TIMEOUT(again.workspace().model() && again.settled(), kPatience);
        QVERIFY(again.workspace().latest()->search); // it was not searched
        QCOMPARE(again.workspace().latest()->search->gap(), gap);
        WindowForTests other;
        other.workspace().setSolvedFolder(solved.path());
        other.workspace().openWith({kSmallGpt, {}, {}}, "dgx-h100", 4, {}, "# mine\n");
        QTRY_VERIFY_WITH_TIMEOUT(other.settled(), kPatience);
        search(other);
        QCOMPARE(other.workspace().latest()->search->gap(), gap);
        QCOMPARE(other.workspace().latest()->search->searchSeconds,
            again.workspace().latest()->search->searchSeconds); // nor was this
    }

    void choosesAgainForOtherDevices()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        workspace.openWith({kSmallGpt, {}, {}}, "dgx-h100", 4, {});
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        search(at);
        QSignalSpy again(&workspace, &Workspace::searched);
        workspace.setDeviceCount(8);
        QTRY_VERIFY_WITH_TIMEOUT(!again.isEmpty(), kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        QCOMPARE(static_cast<int>(workspace.latest()->errorCount()), 0);
        QVERIFY(workspace.latest()->search);
        const Configuration &best = workspace.latest()->search->best.configuration;
        QVERIFY(best.replicas * best.ranks * best.shards <= 8);
        QCOMPARE(workspace.latest()->deviceCount, 8);
    }

    void saysWhyThereIsNothingToSearch()
    {
        WindowForTests at;
        Workspace &workspace = at.workspace();
        workspace.openWith({kSmallGpt, {}, {}}, "dgx-h100", 4, {}, "place all : devices 0\n");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        QSignalSpy problems(&workspace, &Workspace::problem);
        workspace.searchBest();
        QTRY_VERIFY_WITH_TIMEOUT(!problems.isEmpty(), kPatience);
        const auto error = problems.front().front().value<Error>();
        QVERIFY(error.message.find("place every operator") != std::string::npos);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
    }
};

PLANLOOM_QTEST(SearchTest)
#include "search_test.moc"
