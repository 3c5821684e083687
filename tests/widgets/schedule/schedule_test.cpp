// Schedules to choose from: which fit, what is known of them, and what becomes of the choice.

#include <QtCore/QSignalBlocker>
#include <QtGui/QStandardItemModel>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QAbstractItemView>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTableWidget>

#include "engine/schedule/search/template_example.h"
#include "tests/qt_test.h"
#include "widgets/compare/compare_choice.h"
#include "widgets/design/workspace.h"
#include "widgets/schedule/schedule_board.h"
#include "widgets/schedule/schedule_chooser.h"
#include "widgets/schedule/schedule_picture.h"
#include "widgets/timeline/timeline_view.h"

#include <algorithm>

using namespace planloom;

namespace {

constexpr int kPatience = 30'000;
constexpr const char *kModel = "zoo:gpt?layers=4&hidden=64&heads=4&seq=64&vocab=128&batch=8&fused=0";

bool isSettled(const Workspace &workspace)
{
    return !workspace.isOpening() && !workspace.isPlanning() && workspace.latest()
        && workspace.latest()->final && !workspace.isStale();
}

void open(Workspace &workspace)
{
    workspace.openWith({kModel, {}, {}}, "dgx-h100", 4, "pipeline:stages=4,micro-batches=8,schedule=1f1b");
    QTRY_VERIFY_WITH_TIMEOUT(isSettled(workspace), kPatience);
    QVERIFY(workspace.lastGood());
    QCOMPARE(workspace.lastGood()->plan->schedule, ScheduleKind::OneFOneB);
}

int lineOf(const ScheduleBoard &board, ScheduleKind kind)
{
    for (int line = 0; line < board.list()->rowCount(); ++line)
        if (const TriedSchedule *tried = board.triedAt(line); tried && tried->rule.kind == kind)
            return line;
    return -1;
}

QPushButton *button(const QWidget &in, const QString &text)
{
    for (QPushButton *each : in.findChildren<QPushButton *>())
        if (each->text() == text)
            return each;
    return nullptr;
}

} // namespace

class ScheduleTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyTemplateHasAPictureOfItsOwn()
    {
        QList<QImage> seen;
        for (const Theme theme : {Theme::Light, Theme::Dark}) {
            for (const ScheduleKind kind : kAllSchedules) {
                const auto example = exampleOf(kind);
                QVERIFY(example);
                const QImage picture =
                    pictureOf(example->stages, example->starts, paletteOf(theme), {132, 36}, 2);
                QCOMPARE(picture.size(), QSize(264, 72));
                QVERIFY2(!seen.contains(picture), nameOf(kind));
                seen.append(picture);
            }
        }
    }

    void whatDoesNotFitIsGreyAndSaysWhy()
    {
        Workspace workspace;
        open(workspace);
        ScheduleChooser chooser;
        QVERIFY(!chooser.isPossible(ScheduleKind::GPipe)); // without a plan
        QSignalSpy known(&chooser, &ScheduleChooser::possibleChanged);
        chooser.setPlan(workspace.lastGood());
        QCOMPARE(chooser.currentText(), QStringLiteral("1f1b"));
        QTRY_VERIFY_WITH_TIMEOUT(known.size() >= 2, kPatience); // a plan, and what is for it
        QVERIFY(chooser.isPossible(ScheduleKind::GPipe));
        QVERIFY(chooser.isPossible(ScheduleKind::ZeroBubbleH1));
        QVERIFY(!chooser.isPossible(ScheduleKind::DualPipe));
        const int row = chooser.findText(QStringLiteral("dualpipe"));
        QVERIFY(!qobject_cast<QStandardItemModel *>(chooser.model())->item(row)->isEnabled());
        const QString tip = chooser.itemData(row, Qt::ToolTipRole).toString();
        QVERIFY2(tip.contains(QStringLiteral("arXiv:2412.19437")), qPrintable(tip));
        QVERIFY2(tip.contains(chooser.reason(ScheduleKind::DualPipe).toHtmlEscaped()), qPrintable(tip));
        chooser.setPlan(nullptr);
        QVERIFY(!chooser.isPossible(ScheduleKind::GPipe));
        QCOMPARE(chooser.currentIndex(), -1);
    }

    void aKeyChooses()
    {
        Workspace workspace;
        open(workspace);
        ScheduleChooser chooser;
        chooser.setPlan(workspace.lastGood());
        chooser.show();
        QSignalSpy chosen(&chooser, &ScheduleChooser::chosen);
        QTest::keyClick(&chooser, Qt::Key_Up);
        QCOMPARE(chosen.size(), 1);
        QCOMPARE(chosen.front().front().value<ScheduleKind>(), ScheduleKind::GPipe);
        QSignalSpy all(&chooser, &ScheduleChooser::allAsked);
        QSignalSpy best(&chooser, &ScheduleChooser::bestAsked);
        QTest::keyClick(&chooser, Qt::Key_End); // skips to the last
        QCOMPARE(best.size(), 1);
        QCOMPARE(chooser.currentText(), QStringLiteral("1f1b")); // no schedule
        QTest::keyClick(&chooser, Qt::Key_End);
        QCOMPARE(chosen.size(), 1);
        QVERIFY(all.isEmpty());
    }

    void whatIsKeptForOtherNumbersIsListedAndTaken()
    {
        Workspace workspace;
        open(workspace);
        ScheduleChooser chooser;
        chooser.setPlan(workspace.lastGood());
        const int plain = chooser.count();
        TableDocument table = workspace.table();
        workspace.editTable(QStringLiteral("keep"),
            insertText(table, table.lineCount(),
                "schedule gpipe at 4 micro-batches\nschedule zb-h1 at 8 micro-batches"));
        QTRY_VERIFY_WITH_TIMEOUT(isSettled(workspace), kPatience);
        QCOMPARE(workspace.lastGood()->plan->schedule, ScheduleKind::ZeroBubbleH1);
        chooser.setPlan(workspace.lastGood());
        QCOMPARE(chooser.count(), plain + 3); // and a separator
        QCOMPARE(chooser.currentText(), QStringLiteral("zb-h1"));
        const int kept = chooser.findText(QStringLiteral("gpipe at 4 micro-batches"));
        QVERIFY(kept > chooser.findText(QStringLiteral("zb-h1")));
        QSignalSpy chosen(&chooser, &ScheduleChooser::keptChosen);
        Q_EMIT chooser.activated(kept);
        QCOMPARE(chosen.size(), 1);
        workspace.commit(proposeKeptSchedule(*workspace.gestureContext(), chosen.front().front().toInt()));
        QTRY_VERIFY_WITH_TIMEOUT(isSettled(workspace), kPatience);
        QCOMPARE(workspace.lastGood()->plan->schedule, ScheduleKind::GPipe);
        QCOMPARE(workspace.lastGood()->plan->microBatches, 4);
        workspace.undo();
        QTRY_VERIFY_WITH_TIMEOUT(isSettled(workspace), kPatience);
        QCOMPARE(workspace.lastGood()->plan->microBatches, 8);
        QCOMPARE(workspace.lastGood()->plan->schedule, ScheduleKind::ZeroBubbleH1);
        chooser.setPlan(nullptr);
        QCOMPARE(chooser.count(), plain);
    }

    void allThatFitStandSideBySide()
    {
        Workspace workspace;
        open(workspace);
        SelectionModel selection;
        ScheduleBoard board(&workspace, &selection);
        board.show();
        board.tryAll();
        QVERIFY(board.isWorking());
        QTRY_VERIFY_WITH_TIMEOUT(!board.isWorking(), kPatience);
        QCOMPARE(board.list()->rowCount(), static_cast<int>(kAllSchedules.size()));
        double last = 0;
        bool problems = false;
        for (int line = 0; line < board.list()->rowCount(); ++line) {
            const TriedSchedule *tried = board.triedAt(line);
            QVERIFY(tried);
            problems = problems || tried->problem;
            QCOMPARE(problems, tried->problem.has_value()); // those without a plan are last
            if (problems)
                continue;
            QVERIFY(tried->stepSeconds >= last || !tried->fits);
            last = tried->stepSeconds;
            QVERIFY(!board.list()->item(line, 6)->data(Qt::DecorationRole).value<QImage>().isNull());
        }
        QVERIFY(problems);
        // A click shows it, Apply takes it, and it is one step.
        const std::string before = workspace.tableText();
        const int line = lineOf(board, ScheduleKind::GPipe);
        QTest::mouseClick(board.list()->viewport(), Qt::LeftButton, {},
            board.list()->visualItemRect(board.list()->item(line, 0)).center());
        QTRY_VERIFY_WITH_TIMEOUT(board.timeline()->scene() != nullptr, kPatience);
        QCOMPARE(static_cast<double>(board.timeline()->scene()->timeline->step.count()) / 1e9,
            board.triedAt(line)->stepSeconds);
        QCOMPARE(workspace.tableText(), before); // looked at alone
        QTest::mouseClick(button(board, QStringLiteral("&Apply")), Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(isSettled(workspace), kPatience);
        QCOMPARE(workspace.lastGood()->plan->schedule, ScheduleKind::GPipe);
        QCOMPARE(workspace.lastGood()->summary.stepSeconds, board.triedAt(line)->stepSeconds);
        workspace.undo();
        QCOMPARE(workspace.tableText(), before);
        if (const QByteArray folder = qgetenv("PLANLOOM_PICTURES"); !folder.isEmpty())
            board.grab().save(QString::fromLocal8Bit(folder) + QStringLiteral("/schedules.png"));
    }

    void twoGoToTheComparison()
    {
        Workspace workspace;
        open(workspace);
        SelectionModel selection;
        ScheduleBoard board(&workspace, &selection);
        board.show();
        board.tryAll();
        QTRY_VERIFY_WITH_TIMEOUT(!board.isWorking(), kPatience);
        QSignalSpy asked(&board, &ScheduleBoard::compareAsked);
        const std::string before = workspace.tableText();
        const StepId home = workspace.history().current();
        for (const ScheduleKind kind : {ScheduleKind::GPipe, ScheduleKind::ZeroBubbleH1})
            board.list()->selectionModel()->select(board.list()->model()->index(lineOf(board, kind), 0),
                QItemSelectionModel::Select | QItemSelectionModel::Rows);
        QTest::mouseClick(button(board, QStringLiteral("&Compare")), Qt::LeftButton);
        QCOMPARE(asked.size(), 1);
        const auto steps = asked.front().front().value<std::vector<StepId>>();
        QCOMPARE(steps.size(), std::size_t{2});
        QCOMPARE(workspace.tableText(), before); // beside what the person works on
        QCOMPARE(workspace.history().current(), home);
        QCOMPARE(workspace.history().branch(), 0);
        for (const StepId step : steps) {
            const auto state = workspace.history().stateAt(step);
            QVERIFY(state);
            const ConstraintTable table = state->table.table();
            QCOMPARE(static_cast<int>(std::count_if(table.rows.begin(), table.rows.end(),
                         [](const Row &row) {
                             const auto *rule = std::get_if<ScheduleRule>(&row.rule);
                             return rule
                                 && (rule->kind == ScheduleKind::GPipe
                                     || rule->kind == ScheduleKind::ZeroBubbleH1);
                         })),
                1);
        }
    }

    void theBestIsFoundAndProven()
    {
        Workspace workspace;
        open(workspace);
        SelectionModel selection;
        ScheduleBoard board(&workspace, &selection);
        board.show();
        const double before = workspace.lastGood()->summary.stepSeconds;
        const std::string rows = workspace.tableText();
        QSignalSpy found(&board, &ScheduleBoard::found);
        board.findBest();
        QTRY_VERIFY_WITH_TIMEOUT(!found.isEmpty(), 2 * kPatience);
        QCOMPARE(workspace.tableText(), rows); // the dialog has a button for it
        QPushButton *apply = button(board, QStringLiteral("&Apply"));
        QVERIFY(apply->isEnabled());
        QTest::mouseClick(apply, Qt::LeftButton);
        QVERIFY2(!board.state().contains(QStringLiteral("try again")), qPrintable(board.state()));
        QTRY_VERIFY_WITH_TIMEOUT(isSettled(workspace), kPatience);
        QVERIFY(workspace.lastGood()->summary.stepSeconds <= before);
        QCOMPARE(workspace.lastGood()->summary.stepSeconds, board.triedAt(0)->stepSeconds);
        QVERIFY2(board.proof().contains(QStringLiteral("GPU ")), qPrintable(board.proof()));
        QVERIFY(!found.front().front().toString().contains(QLatin1Char('\n'))); // one sentence
        workspace.undo();
        QCOMPARE(workspace.tableText(), rows);
    }

    void stopsAndKeepsWhatIsKnown()
    {
        Workspace workspace;
        open(workspace);
        SelectionModel selection;
        ScheduleBoard board(&workspace, &selection);
        board.show();
        board.findBest();
        QTRY_VERIFY_WITH_TIMEOUT(board.list()->rowCount() > 2, kPatience);
        const std::string rows = workspace.tableText();
        QTest::mouseClick(button(board, QStringLiteral("&Stop")), Qt::LeftButton);
        QVERIFY(!board.isWorking());
        QVERIFY(board.list()->rowCount() > 2);
        QVERIFY(board.state().startsWith(QStringLiteral("Stopped.")));
        QCOMPARE(workspace.tableText(), rows);
        QVERIFY(button(board, QStringLiteral("Find &Best"))->isEnabled());
        // What is changed meanwhile stops it too.
        board.tryAll();
        workspace.setDeviceCount(8);
        QVERIFY(!board.isWorking());
    }
};

PLANLOOM_QTEST(ScheduleTest)
#include "schedule_test.moc"
