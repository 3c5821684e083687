#include <QtCore/QDir>
#include <QtCore/QObject>
#include <QtGui/QAction>
#include <QtGui/QWheelEvent>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>

#include "engine/base/files.h"
#include "engine/hardware/cluster_json.h"
#include "engine/lowering/program/expand_units.h"
#include "engine/runtime/processes/event_json.h"
#include "engine/simulate/simulate.h"
#include "tests/qt_test.h"
#include "tests/temporary_folder.h"
#include "widgets/trace/trace_models.h"
#include "widgets/trace/trace_panel.h"
#include "widgets/trace/trace_view.h"

#include <nlohmann/json.hpp>

#include <cmath>

using namespace planloom;

namespace {

/// Two ranks with three all-reduces, to which rank 1 comes last; the second takes longest.
std::string rankText(int rank)
{
    std::string text =
        R"({"distributedInfo": {"rank": )" + std::to_string(rank) + R"(, "world_size": 2}, "traceEvents": [)";
    for (int i = 0; i < 3; ++i) {
        const int begin = 1000 * i;
        const int late = rank == 1 ? 100 * (i == 1 ? 3 : 1) : 0;
        text += R"({"ph": "X", "cat": "kernel", "name": "gemm", "ts": )" + std::to_string(begin)
            + R"(, "dur": )" + std::to_string(200 + late) + R"(, "args": {"stream": 7}},)"
            + R"({"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "ts": )"
            + std::to_string(begin + 210 + late) + R"(, "dur": )"
            + std::to_string((i == 1 ? 600 : 500) - late)
            + R"(, "args": {"stream": 20, "Collective name": "allreduce", "dtype": "Float", "In msg nelems": 256, "Group size": 2,
"Process Group Name": "0", "Process Group Description": "dp", "Process Group Ranks": "[0, 1]", "Seq": )"
            + std::to_string(i) + "}},";
    }
    return text + "{}]}";
}

struct Stage {
    TemporaryFolder folder;
    Workspace workspace;
    TracePanel panel{&workspace};

    Stage()
    {
        for (int rank = 0; rank < 2; ++rank)
            [[maybe_unused]] const auto written =
                writeFile(folder.at("rank" + std::to_string(rank) + ".json"), rankText(rank));
        panel.resize(1200, 400);
        panel.show();
    }
    void open()
    {
        panel.open({QString::fromStdString(folder.path().string())});
        QTRY_VERIFY_WITH_TIMEOUT(panel.document() && !panel.document()->isSample && panel.isSettled(), kLong);
    }
    QTableView *table(int index) const { return qobject_cast<QTableView *>(panel.tables()->widget(index)); }
};

/// The log of a run that took three times as long as predicted.
struct MeasuredStage : Stage {
    std::size_t drops = 0; ///< Spans that the log has not,
    bool adds = false; ///< and one that the plan has not.

    void open()
    {
        workspace.openWith({"zoo:mlp?layers=2&hidden=256&batch=64", {}, {}}, "cpu", 2, "data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(
            workspace.latest() && workspace.latest()->verdict && !workspace.isPlanning(), kLong);
        const PlanUpdateSnapshot good = workspace.lastGood();
        const ExecutionPlan plan = expandUnits(*good->execution);
        const auto predicted = simulate(plan, good->cluster);
        QVERIFY(predicted);
        std::string text = event("hello").dump() + "\n";
        for (std::size_t d = 0; d < plan.devices.size(); ++d) {
            std::vector<LiveSpan> spans;
            for (std::size_t row = predicted->deviceBegin[d] + (d == 0 ? drops : 0);
                 row < predicted->deviceBegin[d + 1]; ++row)
                spans.push_back({2, predicted->spans.segment[row], predicted->spans.instruction[row],
                    predicted->spans.microBatch[row], 3 * predicted->spans.start[row],
                    3 * predicted->spans.duration[row]});
            if (adds && d == 0)
                spans.push_back({2, 99, 0, 0, 0, 10});
            text += liveEvent(static_cast<std::int32_t>(d), spans).dump() + "\n";
        }
        QVERIFY(QDir().mkpath(QString::fromStdString(folder.at("run"))));
        QVERIFY(writeFile(folder.at("run/log.jsonl"), text).has_value());
        panel.open({QString::fromStdString(folder.at("run"))});
        QTRY_VERIFY_WITH_TIMEOUT(
            panel.document() && !panel.document()->isSample && panel.isSettled() && panel.match() != nullptr,
            kLong);
    }
};

void ctrlWheel(TraceView *view, QPoint at, int delta)
{
    QWheelEvent event(at, view->viewport()->mapToGlobal(at), {}, {0, delta}, Qt::NoButton,
        Qt::ControlModifier, Qt::NoScrollPhase, false);
    QApplication::sendEvent(view->viewport(), &event);
}

} // namespace

class TracePanelTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void showsWhereTheTimeOfRanksGoesAndWhoCameLast()
    {
        Stage stage;
        QAbstractItemModelTester tester(stage.table(1)->model());
        QSignalSpy opened(&stage.panel, &TracePanel::opened);
        stage.open();
        QCOMPARE(opened.count(), 1);
        QVERIFY2(stage.panel.text().startsWith(QStringLiteral("2 ranks, 12 events")),
            qPrintable(stage.panel.text()));
        QCOMPARE(stage.table(0)->model()->rowCount(), 2);
        QAbstractItemModel *collectives = stage.table(1)->model();
        QCOMPARE(collectives->rowCount(), 3);
        QCOMPARE(collectives->index(0, 6).data().toString(), QStringLiteral("rank 1"));
        QCOMPARE(collectives->index(0, 7).data().toString(), QStringLiteral("300 µs"));
        QCOMPARE(collectives->index(0, 1).data().toString(), QStringLiteral("dp: 0-1"));
        QVERIFY(!stage.panel.match());
    }

    void aClickOnACollectiveGoesToIt()
    {
        Stage stage;
        stage.open();
        TraceView *view = stage.panel.view();
        const TimeAxis all = view->axis();
        QTableView *table = stage.table(1);
        stage.panel.tables()->setCurrentIndex(1);
        QTest::mouseClick(
            table->viewport(), Qt::LeftButton, {}, table->visualRect(table->model()->index(0, 0)).center());
        QVERIFY(view->selected().has_value());
        const auto [rank, event] = *view->selected();
        QCOMPARE(rank, 1U);
        const TraceEvent &chosen = stage.panel.document()->trace.ranks[rank].events[event];
        QCOMPARE(chosen.start, std::int64_t{1510'000});
        QVERIFY(view->axis().nanosecondsPerPixel < all.nanosecondsPerPixel);
        QVERIFY(view->accessibleDescription().contains(QStringLiteral("all-reduce of rank 1")));
    }

    void theWheelZoomsWhereThePointerIsAndKeysShowAll()
    {
        Stage stage;
        stage.open();
        TraceView *view = stage.panel.view();
        const TimeAxis all = view->axis();
        const QPoint at(view->viewport()->width() / 2, view->viewport()->height() / 2);
        ctrlWheel(view, at, 480);
        QVERIFY(view->axis().nanosecondsPerPixel < all.nanosecondsPerPixel / 2);
        QVERIFY(view->horizontalScrollBar()->maximum() > 0);
        QTest::keyClick(view, Qt::Key_Home);
        QCOMPARE(view->axis(), all);
        QTest::keyClick(view, Qt::Key_Plus);
        QVERIFY(view->axis().nanosecondsPerPixel < all.nanosecondsPerPixel);
        const double origin = view->axis().origin;
        QTest::keyClick(view, Qt::Key_Right);
        QVERIFY(view->axis().origin > origin);
    }

    void anEventUnderThePointerIsChosenByAClick()
    {
        Stage stage;
        stage.open();
        TraceView *view = stage.panel.view();
        QSignalSpy chosen(view, &TraceView::chosen);
        std::optional<TracePlace> place;
        QPoint at;
        for (int x = view->viewport()->width() - 1; x > 0 && !place; --x) {
            at = {x, view->viewport()->height() / 5};
            place = view->placeAt(at);
        }
        QVERIFY2(place.has_value(), "the first lane has events");
        QTest::mouseClick(view->viewport(), Qt::LeftButton, {}, at);
        QCOMPARE(chosen.count(), 1);
        QCOMPARE(view->selected(), place);
        QVERIFY(!view->placeAt({2, at.y()}).has_value());
    }

    void aFileThatIsNoTraceIsSaid()
    {
        Stage stage;
        const std::string path = stage.folder.at("other.json");
        QVERIFY(writeFile(path, "{\"a\": 1}").has_value());
        QSignalSpy failed(&stage.panel, &TracePanel::failed);
        stage.panel.open({QString::fromStdString(path)});
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, kLong);
        QVERIFY2(stage.panel.text().contains(QStringLiteral("expected a trace of torch.profiler")),
            qPrintable(stage.panel.text()));
        QVERIFY(!stage.panel.document());
    }

    void anOpenPlanIsHeldAgainstIt()
    {
        Stage stage;
        stage.workspace.openWith({"zoo:mlp?layers=2&hidden=64&batch=16", {}, {}}, "cpu", 2, "data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(
            stage.workspace.latest() && stage.workspace.latest()->verdict && !stage.workspace.isPlanning(),
            kLong);
        stage.open();
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.match() && stage.panel.isSettled(), kLong);
        QCOMPARE(stage.panel.match()->matched.ranks, 2);
        QAbstractItemModel *against = stage.table(2)->model();
        QVERIFY(against->rowCount() > 2);
        QCOMPARE(against->index(0, 0).data().toString(), QStringLiteral("step"));
    }

    void aMeasuredRunLiesOverThePredictionRankByRank()
    {
        MeasuredStage stage;
        stage.open();
        const TraceMatchSnapshot match = stage.panel.match();
        QVERIFY(match->matched.isExact);
        QVERIFY2(stage.panel.text().contains(QStringLiteral("every span matched")),
            qPrintable(stage.panel.text()));
        QCOMPARE(match->predicted.size(), std::size_t{2});
        std::size_t predicted = 0;
        for (const RankTrace &rank : match->predicted)
            predicted += rank.events.size();
        QCOMPARE(predicted, stage.panel.document()->trace.eventCount());
        // What ran is named, with what was predicted for it.
        const RankTrace &rank = stage.panel.document()->trace.ranks[0];
        std::uint32_t longest = 0;
        for (std::uint32_t i = 0; i < rank.events.size(); ++i)
            if (rank.events[i].duration > rank.events[longest].duration)
                longest = i;
        const QString said = stage.panel.view()->textOf(TracePlace{0, longest});
        QVERIFY2(said.contains(QStringLiteral("kernel of layers.")), qPrintable(said));
        QVERIFY2(said.contains(QStringLiteral("measured is 300% of it")), qPrintable(said));
        // Below each rank stands what was predicted: it is seen, and cannot be chosen.
        TraceView *view = stage.panel.view();
        bool isChosen = false;
        for (int y = 0; y < view->viewport()->height(); y += 4)
            for (int x = view->viewport()->width() / 3; x < view->viewport()->width(); x += 4)
                isChosen = isChosen || view->placeAt({x, y}).has_value();
        QVERIFY(isChosen);
    }

    void whatOnlyOneSideHasIsListed()
    {
        MeasuredStage stage;
        stage.drops = 2;
        stage.adds = true;
        stage.open();
        QVERIFY2(stage.panel.text().contains(QStringLiteral("2 only in the plan, 1 only in the run")),
            qPrintable(stage.panel.text()));
        QAbstractItemModel *against = stage.table(2)->model();
        int plan = 0;
        int run = 0;
        for (int row = 0; row < against->rowCount(); ++row) {
            const QString what = against->index(row, 0).data().toString();
            plan += what.startsWith(QStringLiteral("only in the plan: ")) ? 1 : 0;
            run += what.startsWith(QStringLiteral("only in the run: segment 99")) ? 1 : 0;
        }
        QCOMPARE(plan, 2);
        QCOMPARE(run, 1);
    }

    void calibratedFromItThePredictionFollows()
    {
        MeasuredStage stage;
        stage.open();
        auto *calibrate = stage.panel.findChild<QAction *>(QStringLiteral("trace.calibrate"));
        QVERIFY(calibrate->isEnabled());
        Cluster made;
        connect(&stage.panel, &TracePanel::calibrated, this,
            [&made](const Cluster &cluster, const QString &) { made = cluster; });
        calibrate->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.isSettled() && !made.name.empty(), kLong);
        QCOMPARE(made.name, std::string("cpu-measured"));
        QAbstractItemModel *errors = stage.table(3)->model();
        QVERIFY(errors->rowCount() > 2);
        const auto step = errors->index(errors->rowCount() - 1, 0).data().toString();
        QVERIFY2(step.startsWith(QStringLiteral("a step, ")), qPrintable(step));
        stage.workspace.setCluster(made.name, toJson(made));
        QTRY_VERIFY_WITH_TIMEOUT(stage.workspace.latest()->cluster.name == made.name
                && stage.panel.isSettled() && stage.panel.match() && stage.panel.match()->predictedSeconds > 0
                && std::abs(stage.panel.match()->predictedSeconds / stage.panel.match()->measuredSeconds - 1)
                    < 0.1,
            kLong);
    }
};

PLANLOOM_QTEST(TracePanelTest)
#include "trace_panel_test.moc"
