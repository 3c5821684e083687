// A working day in one go, and a crash at its end: what was done is there afterwards.
//
// The day is a process of its own (this program with --class=LongScenarioTest --day FOLDER), which ends by
// SIGKILL; the test opens what it left.

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtCore/QProcess>
#include <QtTest/QSignalSpy>
#include <QtWidgets/QComboBox>

#include "planloom_paths.h"
#include "tests/e2e/window_for_tests.h"
#include "tests/model_folder.h"
#include "tests/qt_test.h"
#include "widgets/compare/compare_view.h"
#include "widgets/run/run_panel.h"
#include "widgets/table/rows_view.h"
#include "widgets/table/table_panel.h"

#include <csignal>
#include <cstdio>
#include <filesystem>

using namespace planloom;

namespace {

constexpr int kDay = 150'000; ///< ms for the whole of it, on a busy machine.

/// What must be the same after the crash.
QByteArray stateOf(Workspace &workspace)
{
    QByteArray text = QByteArray::fromStdString(workspace.tableText()) + '\n';
    text += "current " + QByteArray::number(qlonglong(workspace.history().current())) + " of "
        + QByteArray::number(qulonglong(workspace.history().steps().size())) + '\n';
    for (const HistoryStep &step : workspace.history().steps())
        text +=
            QByteArray::number(qlonglong(step.parent)) + ' ' + QByteArray::fromStdString(step.words) + '\n';
    for (const Branch &branch : workspace.history().branches())
        text += "branch " + QByteArray::fromStdString(branch.name) + ' '
            + QByteArray::number(qlonglong(branch.head)) + '\n';
    for (const auto &[name, step] : workspace.history().names())
        text += "name " + QByteArray::fromStdString(name) + ' ' + QByteArray::number(qlonglong(step)) + '\n';
    for (const SessionRun &run : workspace.runs())
        text += "run " + QByteArray::fromStdString(run.title + ' ' + run.state + ' ' + run.details) + '\n';
    return text;
}

std::optional<std::string> tableTextAt(const History &history, StepId step)
{
    const auto state = history.stateAt(step);
    return state ? std::optional(state->table.text()) : std::nullopt;
}

/// Fails by leaving the process with a reason, as there is no test around it.
void must(bool held, const char *what)
{
    if (held)
        return;
    std::fprintf(stderr, "the day failed: %s\n", what);
    std::_Exit(3);
}

int day(const QString &folder)
{
    WindowForTests at(folder + QStringLiteral("/sessions"));
    must(waitFor([&] { return at.window->isVisible(); }), "the window does not show");

    // Opened by drop.
    const QString file = QString::fromStdString((modelFolder() / "gpt2_tiny.onnx").string());
    if (QFile::exists(file))
        dropFile(at.window.get(), file);
    else
        at.window->openHere(QString::fromLatin1(kSmallGpt));
    must(waitFor([&] { return at.settled() && at.dag()->isSettled(); }), "the model is not planned");
    at.workspace().setDeviceCount(4);
    at.workspace().applyGallery("pipeline:micro-batches=2,schedule=1f1b");
    must(waitFor([&] { return at.settled() && at.workspace().lastGood()->plan->stageCount > 1; }),
        "the pipeline is not planned");

    // A layer on device 1, dragged to the shelf; of a model without layers, its first group.
    must(waitFor([&] { return at.dag()->isSettled() && at.dag()->picture(); }), "the DAG is not there");
    const auto drag = [&](std::int32_t box) {
        const std::size_t steps = at.workspace().history().steps().size();
        const QPoint from = middleOf(at, box);
        pressAt(at.dag(), from);
        moveTo(at.dag(), from + QPoint(0, 30));
        const auto &tiles = at.dag()->gestures().tiles();
        for (std::size_t i = 0; i < tiles.size(); ++i) {
            if (tiles[i].devices == std::vector<DeviceId>{{1}}) {
                const QPoint tile =
                    at.dag()->gestures().tileRect(static_cast<std::int32_t>(i)).center().toPoint();
                moveTo(at.dag(), tile);
                releaseAt(at.dag(), tile);
                break;
            }
        }
        return at.workspace().history().steps().size() > steps;
    };
    bool placed = false;
    const auto picture = at.dag()->picture();
    for (std::int32_t box = static_cast<std::int32_t>(picture->scene.rects.size()) - 1; box > 0 && !placed;
         --box) {
        if (picture->visible.boxes[static_cast<std::size_t>(box)].item > 0
            && at.dag()->rect().contains(middleOf(at, box)))
            placed = drag(box);
    }
    must(placed, "nothing could be placed on device 1");
    must(waitFor([&] { return at.settled(); }), "the placement is not planned");

    // An operator of an MLP split in two by its chip.
    std::string mlp;
    for (const Operator &op : at.graph().operators) {
        if (op.kind == OperatorKind::Linear && op.direction == Direction::Forward
            && op.name.find("mlp") != std::string::npos)
            mlp = op.name;
    }
    must(!mlp.empty(), "the model has no MLP");
    selectOperator(at, mlp);
    const std::int32_t chip = freeChip(at);
    must(chip >= 0, "no chip can be pulled");
    const std::string beforeSplit = at.workspace().tableText();
    const QPoint start = chipAt(at, chip);
    pressAt(at.dag(), start);
    moveTo(at.dag(), start + QPoint(0, 40));
    QTest::keyClick(at.dag(), Qt::Key_2);
    moveTo(at.dag(), start + QPoint(1, 60));
    releaseAt(at.dag(), start + QPoint(1, 60));
    must(at.workspace().tableText() != beforeSplit, "the chip wrote no row");
    must(at.workspace().tableText().find("by 2") != std::string::npos, "it is not split in two");
    must(waitFor([&] { return at.settled(); }), "the split is not planned");

    // A block earlier on the timeline.
    const std::string beforeOrder = at.workspace().tableText();
    bool moved = false;
    for (std::int32_t lane = 0; lane < 4 && !moved; ++lane) {
        for (std::size_t block = 1; block < 8 && !moved; ++block) {
            const auto late = at.timeline()->rectOfBlock(lane, block);
            const auto early = at.timeline()->rectOfBlock(lane, block - 1);
            if (!late || !early)
                continue;
            QWidget *canvas = at.timeline()->viewport();
            const QPoint to(early->left() + 1, late->center().y());
            pressAt(canvas, late->center());
            moveTo(canvas, late->center() - QPoint(8, 0));
            moveTo(canvas, to);
            releaseAt(canvas, to);
            moved = at.workspace().tableText() != beforeOrder;
        }
    }
    must(moved, "no block could be moved earlier");
    must(waitFor([&] { return at.settled() || at.workspace().latest()->errorCount() > 0; }),
        "the order is not answered");

    // Undo twice, redo once, with the keys.
    const std::string ordered = at.workspace().tableText();
    key(at.dag(), Qt::Key_Z, Qt::ControlModifier);
    key(at.dag(), Qt::Key_Z, Qt::ControlModifier);
    must(at.workspace().tableText() == beforeSplit, "two undos do not lead to before the split");
    key(at.dag(), Qt::Key_Y, Qt::ControlModifier);
    must(at.workspace().tableText() == beforeOrder, "redo does not bring the split back");
    must(waitFor([&] { return at.settled(); }), "the redone rows are not planned");

    // A row off, with the keyboard; that is a branch by itself, as the order lies ahead.
    const std::size_t branches = at.workspace().history().branches().size();
    at.window->docks().reveal(QStringLiteral("constraints"));
    RowsView *grid = at.window->constraints()->grid();
    grid->setFocus();
    const int last = grid->model()->rowCount() - 2; // behind it stands the row to be typed
    grid->setCurrentIndex(grid->model()->index(last, 2));
    QTest::keyClick(grid, Qt::Key_Space);
    must(at.workspace().tableText().find("\noff ") != std::string::npos, "no row is off");
    must(at.workspace().history().branches().size() == branches + 1, "the edit behind the head is no branch");
    must(waitFor([&] { return at.settled(); }), "the rows without it are not planned");
    must(at.window->trigger(QStringLiteral("history.newBranch")), "there is no command for a branch");
    at.workspace().nameCheckpoint(QStringLiteral("without it"));

    // The branches beside each other.
    at.window->docks().apply(QStringLiteral("compare"));
    auto *compare = at.window->findChild<CompareView *>();
    must(compare != nullptr && waitFor([&] { return compare->isVisible(); }), "nothing is compared");
    // The new branch against the head of the one that was left: the order lies there.
    QComboBox *plans = nullptr;
    for (QComboBox *box : compare->findChildren<QComboBox *>()) {
        if (box->accessibleName() == QLatin1String("Plan A"))
            plans = box;
    }
    must(plans != nullptr, "no plan can be chosen");
    const auto &history = at.workspace().history();
    StepId left = 0; // where the branch that was left ends
    for (const Branch &branch : history.branches()) {
        const auto &text = tableTextAt(history, branch.head);
        if (text && *text == ordered)
            left = branch.head;
    }
    must(left != 0, "the branch with the order is gone");
    int index = -1;
    must(waitFor([&] {
        return (index = plans->findData(QVariant::fromValue(static_cast<qlonglong>(left)))) >= 0;
    }),
        "the other branch is not among the plans");
    plans->setCurrentIndex(index);
    Q_EMIT plans->activated(index);
    must(waitFor([&] {
        const CompareSnapshot &result = compare->result();
        return !compare->isComparing() && result && result->a && result->b
            && result->a->table.text() == *tableTextAt(history, left)
            && result->b->table == at.workspace().table();
    }),
        "the branches are not compared");
    must(!compare->result()->isEmpty(), "the branches are the same");
    must(compare->result()->waterfall.has_value(), "it is not said where the time goes");
    at.window->docks().apply(QStringLiteral("run"));

    // A run on four CPU devices, compared with the model.
    auto *run = at.window->findChild<RunPanel *>();
    must(run != nullptr, "there is no run panel");
    run->service().setProgram(QStringLiteral(PLANLOOM_BINARY_DIR "/bin/planloom-exec"));
    must(waitFor([&] { return at.settled() && run->runAction()->isEnabled(); }), "the plan may not run");
    run->runAction()->trigger();
    must(QTest::qWaitFor([&] { return !run->service().isRunning(); }, kDay / 2), "the run does not end");
    must(run->service().record().check && run->service().record().check->ok,
        run->service().record().sentence().c_str());
    must(waitFor([&] {
        return at.workspace().runs().size() == 1 && at.workspace().runs().front().state == "done";
    }),
        "the run is not kept");
    must(waitFor([&] { return at.workspace().isAcknowledged(); }), "not all of it is in the file");
    const std::string path = at.workspace().path().toStdString();
    at.window->setColouring(TimelineColouring::Stage);
    // Asked of the file: what the workspace holds of the view is behind the window by the time for which it
    // gathers.
    must(waitFor([&] {
        const auto kept = SessionStore::openToLook(path);
        if (!kept)
            return false;
        const auto colour = kept->contents.view.find("window.colour");
        return colour != kept->contents.view.end()
            && colour->second == std::to_string(static_cast<int>(TimelineColouring::Stage));
    }),
        "the view is not in the file");
    QFile digest(folder + QStringLiteral("/digest"));
    must(digest.open(QIODevice::WriteOnly), "no digest");
    digest.write(at.workspace().path().toUtf8() + '\n' + stateOf(at.workspace()));
    digest.close();
    ::raise(SIGKILL);
    return 1;
}

} // namespace

class LongScenarioTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void whatWasDoneIsThereAfterACrash()
    {
        const QTemporaryDir folder;
        QDir(folder.path()).mkdir(QStringLiteral("sessions"));
        QProcess process;
        process.setProcessChannelMode(QProcess::ForwardedErrorChannel);
        process.start(QCoreApplication::applicationFilePath(),
            {QStringLiteral("--class=LongScenarioTest"), QStringLiteral("--day"), folder.path()});
        QVERIFY(process.waitForFinished(kDay));
        QCOMPARE(process.exitStatus(), QProcess::CrashExit); // killed, as planned
        QFile file(folder.filePath(QStringLiteral("digest")));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QString session = QString::fromUtf8(file.readLine()).trimmed();
        const QByteArray digest = file.readAll();

        WindowForTests at(folder.filePath(QStringLiteral("sessions")));
        at.window->openHere(session);
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        QCOMPARE(stateOf(at.workspace()), digest);
        QVERIFY(!at.workspace().isReadOnly());
        QCOMPARE(at.timeline()->colouring(), TimelineColouring::Stage);
        // And work goes on: the run can be looked at again, and undo leads back.
        at.workspace().undo();
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && at.workspace().isAcknowledged(), kPatience);
    }
};

static int runLongScenario(int argc, char **argv)
{
    QApplication application(argc, argv);
    if (argc == 3 && qstrcmp(argv[1], "--day") == 0)
        return day(QString::fromLocal8Bit(argv[2]));
    LongScenarioTest test;
    return QTest::qExec(&test, argc, argv);
}

PLANLOOM_QTEST_RUN_BY(LongScenarioTest, runLongScenario)

#include "long_scenario_test.moc"
