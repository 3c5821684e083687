#include <QtCore/QMimeData>
#include <QtCore/QObject>
#include <QtGui/QAction>
#include <QtGui/QClipboard>
#include <QtGui/QDropEvent>
#include <QtGui/QGuiApplication>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>
#include <QtWidgets/QTableWidget>
#include <QtWidgets/QToolButton>

#include "tests/qt_test.h"
#include "tests/widgets/compare/planned.h"
#include "widgets/compare/communication_compare.h"
#include "widgets/compare/compare_causes.h"
#include "widgets/compare/compare_models.h"
#include "widgets/compare/compare_view.h"
#include "widgets/compare/compared_timeline.h"
#include "widgets/compare/memory_overlay.h"
#include "widgets/compare/waterfall_view.h"
#include "widgets/design/workspace.h"
#include "widgets/memory/matrix_view.h"
#include "widgets/timeline/timeline_view.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

using namespace planloom;

namespace {

constexpr const char *kFourLayers = "zoo:mlp?layers=4&hidden=64&batch=16";

} // namespace

class CompareViewTest : public QObject
{
    Q_OBJECT

    std::unique_ptr<Workspace> m_workspace;
    std::unique_ptr<SelectionModel> m_selection;
    std::unique_ptr<CompareChoice> m_choice;
    std::unique_ptr<CompareView> m_view;

    QAction *action(const char *name) const { return m_view->findChild<QAction *>(QLatin1String(name)); }

    bool isOf(StepId a, const std::string &rowsOfB) const
    {
        return m_view->result() && !m_view->isComparing() && m_choice->a() == a
            && m_view->result()->b->table.text() == rowsOfB && m_view->result()->waterfall.has_value();
    }

private Q_SLOTS:
    void init()
    {
        m_workspace = std::make_unique<Workspace>();
        m_selection = std::make_unique<SelectionModel>();
        m_choice = std::make_unique<CompareChoice>();
        m_workspace->openWith(
            {kFourLayers, {}, {}}, "dgx-a100", 2, {}, "mesh dp=2\nsplit all : batch over dp\n");
        QTRY_VERIFY_WITH_TIMEOUT(isPlanned(*m_workspace), kLong);
        m_workspace->setTableText("mesh tp=2\nsplit name:* : out0.-1 over tp\n");
        QTRY_VERIFY_WITH_TIMEOUT(isPlanned(*m_workspace), kLong);
        m_view = std::make_unique<CompareView>(m_workspace.get(), m_selection.get(), m_choice.get());
        m_view->resize(1200, 900);
        m_view->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_view.get()));
        QTRY_VERIFY_WITH_TIMEOUT(isOf(0, m_workspace->tableText()), kLong);
    }

    void cleanup()
    {
        m_view.reset();
        m_choice.reset();
        m_selection.reset();
        m_workspace.reset();
    }

    void theWaterfallSumsExactly()
    {
        const auto &bars = m_view->waterfall()->bars();
        QCOMPARE(bars.size(), kStepPartCount + 2);
        std::int64_t at = bars.front().end;
        QCOMPARE(at, m_view->result()->a->scene->timeline->step.count());
        for (std::size_t i = 1; i + 1 < bars.size(); ++i) {
            QCOMPARE(bars[i].begin, at);
            at += bars[i].delta();
            QVERIFY(!m_view->waterfall()->labelOf(bars[i]).isEmpty());
            QVERIFY(m_view->waterfall()->valueOf(bars[i]).endsWith(QLatin1Char('s')));
        }
        QCOMPARE(at, bars.back().end);
        QCOMPARE(at, m_view->result()->b->scene->timeline->step.count());
        QVERIFY(m_view->waterfall()->accessibleDescription().contains(QStringLiteral("compute")));
    }

    void modelsAreProperAndSwapNegates()
    {
        QAbstractItemModelTester metricTester(
            m_view->metrics(), QAbstractItemModelTester::FailureReportingMode::QtTest);
        QAbstractItemModelTester rowTester(
            m_view->rows(), QAbstractItemModelTester::FailureReportingMode::QtTest);
        MetricModel &metrics = *m_view->metrics();
        QCOMPARE(metrics.columnCount(), 5);
        const QString there = metrics.index(0, 3).data().toString();
        const int meaning = metrics.index(0, 3).data(MetricModel::ChangeRole).toInt();
        const int differences = m_view->rows()->differences();
        QVERIFY(differences > 0);
        m_choice->swap();
        QTRY_VERIFY_WITH_TIMEOUT(
            m_view->result()->a == m_workspace->lastGood() && !m_view->isComparing(), kLong);
        QCOMPARE(m_view->rows()->differences(), differences);
        const QString back = metrics.index(0, 3).data().toString();
        QCOMPARE(there.mid(3), back.mid(3)); // the same size ...
        if (meaning != static_cast<int>(Change::Same)) {
            QVERIFY(there.left(3) != back.left(3)); // ... the other way
            QVERIFY(metrics.index(0, 3).data(MetricModel::ChangeRole).toInt() != meaning);
        }
        m_view->rows()->setOnlyDifferences(true);
        QCOMPARE(m_view->rows()->rowCount(), differences);
        // With itself: nothing.
        m_choice->setPlans({m_workspace->history().current(), kCurrentPlan});
        QTRY_VERIFY_WITH_TIMEOUT(m_view->result()->a == m_view->result()->b && !m_view->isComparing(), kLong);
        QVERIFY(m_view->result()->isEmpty());
        QCOMPARE(m_view->rows()->rowCount(), 0);
        for (int row = 0; row < metrics.rowCount(); ++row)
            QCOMPARE(
                metrics.index(row, 3).data(MetricModel::ChangeRole).toInt(), static_cast<int>(Change::Same));
        QCOMPARE(m_view->comparedTimeline()->lanes().size(), std::size_t{1}); // all devices alike
    }

    void timelinesLieOverEachOtherAtAChosenEvent()
    {
        const TimelineScene &a = *m_view->result()->a->scene;
        const TimelineScene &b = *m_view->result()->b->scene;
        TimelineView *ofA = m_view->timeline(false);
        TimelineView *ofB = m_view->timeline(true);
        const auto at = [](const TimelineView *view, std::int64_t time) {
            return view->axis().xOf(static_cast<double>(time));
        };
        m_selection->select({OperatorId{2}});
        for (int i = 0; i < kAlignAtCount; ++i) {
            const auto event = static_cast<AlignAt>(i);
            m_view->setAlignment(event);
            const auto inA = timeOf(event, a, OperatorId{2});
            const auto inB = timeOf(event, b, OperatorId{2});
            QVERIFY(inA && inB);
            QCOMPARE(m_view->shift(), static_cast<double>(*inB - *inA));
            QVERIFY2(std::abs(at(ofA, *inA) - at(ofB, *inB)) < 1e-6, "the event is at one place");
            ofA->zoomIn(); // and stays there
            QVERIFY(std::abs(at(ofA, *inA) - at(ofB, *inB)) < 1e-6);
            ofB->zoomIn();
            QVERIFY(std::abs(at(ofA, *inA) - at(ofB, *inB)) < 1e-6);
            QCOMPARE(m_view->comparedTimeline()->axis(), ofA->axis());
        }
        // The event may be another operator's, or none.
        m_selection->select({OperatorId{1}});
        QCOMPARE(m_view->shift(),
            static_cast<double>(
                *timeOf(AlignAt::Operator, b, OperatorId{1}) - *timeOf(AlignAt::Operator, a, OperatorId{1})));
        m_selection->select({});
        QCOMPARE(m_view->shift(), 0.0);
        QVERIFY(!timeOf(AlignAt::Operator, a, {}));
        // By hand.
        auto *box = m_view->findChild<QComboBox *>(QStringLiteral("compare.align"));
        QVERIFY(box);
        box->setFocus();
        QTest::keyClick(box, Qt::Key_Home);
        QTest::keyClick(box, Qt::Key_Down);
        QCOMPARE(m_view->alignment(), AlignAt::End);
        QCOMPARE(m_view->shift(), static_cast<double>(b.timeline->step.count() - a.timeline->step.count()));
    }

    void communicationIsComparedPairByPair()
    {
        auto *tabs = m_view->findChild<QTabWidget *>();
        CommunicationCompare *part = m_view->communication();
        tabs->setCurrentWidget(part);
        QTRY_VERIFY_WITH_TIMEOUT(part->isSettled() && part->matrixOfB()->valueOf(0, 1) > 0, kLong);
        const auto sent = [](const PlanUpdateSnapshot &plan, std::size_t device) {
            return static_cast<double>(plan->summary.devices[device].sent.count);
        };
        for (std::size_t device = 0; device < 2; ++device) {
            const int from = static_cast<int>(device);
            double a = 0;
            double b = 0;
            for (int to = 0; to < 2; ++to) {
                a += part->matrixOfA()->valueOf(from, to);
                b += part->matrixOfB()->valueOf(from, to);
                QCOMPARE(part->difference()->valueOf(from, to),
                    part->matrixOfB()->valueOf(from, to) - part->matrixOfA()->valueOf(from, to));
            }
            QCOMPARE(a, sent(m_view->result()->a, device)); // the sums of rows are the bytes of the plans
            QCOMPARE(b, sent(m_view->result()->b, device));
        }
        QCOMPARE(part->matrixOfA()->largest(), part->matrixOfB()->largest());
        QTest::mouseClick(
            part->difference(), Qt::LeftButton, {}, part->difference()->cellRect(0, 1).center().toPoint());
        QCOMPARE(part->matrixOfA()->current(), (std::pair{0, 1})); // one pair in all three
        QVERIFY(part->difference()->accessibleDescription().contains(QStringLiteral("→")));
        QVERIFY(!part->grab().isNull());
        // With itself: nothing.
        m_choice->setPlans({m_workspace->history().current(), kCurrentPlan});
        QTRY_VERIFY_WITH_TIMEOUT(
            m_view->result()->a == m_view->result()->b && !m_view->isComparing() && part->isSettled(), kLong);
        QTRY_COMPARE_WITH_TIMEOUT(part->difference()->valueOf(0, 1), 0.0, kLong);
        QVERIFY(part->matrixOfA()->valueOf(0, 1) > 0);
    }

    void aRowDraggedToTheOtherSideIsAWhatIf()
    {
        auto *tabs = m_view->findChild<QTabWidget *>();
        QTableView *list = m_view->rowList();
        tabs->setCurrentWidget(list->parentWidget());
        const std::string before = m_workspace->tableText();
        int row = -1;
        for (int i = 0; i < m_view->rows()->rowCount() && row < 0; ++i) {
            if (m_view->rows()
                    ->index(i, RowDiffModel::RuleA)
                    .data()
                    .toString()
                    .contains(QStringLiteral("batch")))
                row = i;
        }
        QVERIFY(row >= 0);
        const QModelIndex dragged = m_view->rows()->index(row, RowDiffModel::RuleA);
        QVERIFY(dragged.flags() & Qt::ItemIsDragEnabled);
        const std::unique_ptr<QMimeData> data(m_view->rows()->mimeData({dragged}));
        const auto drop = [&](int column) {
            const QPoint at = list->visualRect(m_view->rows()->index(row, column)).center();
            QDragEnterEvent enter(at, Qt::CopyAction, data.get(), Qt::LeftButton, Qt::NoModifier);
            QCoreApplication::sendEvent(list->viewport(), &enter);
            QDragMoveEvent move(at, Qt::CopyAction, data.get(), Qt::LeftButton, Qt::NoModifier);
            QCoreApplication::sendEvent(list->viewport(), &move);
            if (!move.isAccepted()) {
                QDragLeaveEvent leave;
                QCoreApplication::sendEvent(list->viewport(), &leave);
                return;
            }
            QDropEvent event(QPointF(at), Qt::CopyAction, data.get(), Qt::LeftButton, Qt::NoModifier);
            QCoreApplication::sendEvent(list->viewport(), &event);
        };
        drop(RowDiffModel::RuleA); // where it came from
        QCOMPARE(m_workspace->tableText(), before);
        drop(RowDiffModel::RuleB);
        QTRY_VERIFY_WITH_TIMEOUT(m_workspace->tableText() != before, kLong);
        QVERIFY(m_workspace->tableText().find("batch over dp") != std::string::npos);
        QVERIFY(m_workspace->canUndo());
        m_workspace->undo();
        QCOMPARE(m_workspace->tableText(), before); // one step
    }

    void axesAreLinked()
    {
        TimelineView *a = m_view->timeline(false);
        TimelineView *b = m_view->timeline(true);
        QVERIFY(a->isVisible() && b->isVisible());
        a->setFocus();
        QTest::keyClick(a, Qt::Key_W);
        QCOMPARE(b->axis(), a->axis());
        QCOMPARE(m_view->comparedTimeline()->axis(), a->axis());
        b->zoomIn();
        QCOMPARE(a->axis(), b->axis());
        m_view->setMode(CompareMode::Butterfly);
        m_view->comparedTimeline()->setFocus();
        QTest::keyClick(m_view->comparedTimeline(), Qt::Key_Home);
        QCOMPARE(a->axis(), m_view->comparedTimeline()->axis());
    }

    void differenceDrawsArrowsToNewPlaces()
    {
        m_view->setMode(CompareMode::Difference);
        QVERIFY(m_view->comparedTimeline()->isVisible());
        QVERIFY(!m_view->timeline(false)->isVisible());
        m_view->comparedTimeline()->grab();
        const auto &moves = m_view->result()->moves;
        QVERIFY(!moves.empty());
        const auto &first = moves.moved;
        if (!first.empty()) {
            QVERIFY(m_view->comparedTimeline()->rectOf(false, first.front().a));
            QVERIFY(m_view->comparedTimeline()->rectOf(true, first.front().b));
            QVERIFY(m_view->comparedTimeline()->arrowCount() > 0);
        }
        // A click selects the operator in all views.
        const std::size_t row = moves.onlyB.empty() ? first.front().b : moves.onlyB.front();
        const auto rect = m_view->comparedTimeline()->rectOf(true, row);
        QVERIFY(rect);
        QTest::mouseClick(
            m_view->comparedTimeline()->viewport(), Qt::LeftButton, {}, rect->center().toPoint());
        QCOMPARE(m_selection->selected().size(), std::size_t{1});
        m_view->setMode(CompareMode::Butterfly);
        m_view->comparedTimeline()->grab();
        QCOMPARE(m_view->comparedTimeline()->arrowCount(), 0);
    }

    void everyQueueHasATrackInBothHalves()
    {
        m_view->setMode(CompareMode::Butterfly);
        ComparedTimeline *both = m_view->comparedTimeline();
        both->grab();
        const TimelineScene &a = *m_view->result()->a->scene; // data parallel
        const TimelineScene &b = *m_view->result()->b->scene; // tensor parallel
        const LaneRows data = a.lanes[0].rowsOf(QueueKind::Data);
        const LaneRows tensor = b.lanes[0].rowsOf(QueueKind::Tensor);
        QVERIFY(data.begin < data.end && tensor.begin < tensor.end);
        QVERIFY(both->lanes().front().queues.has(QueueKind::Data));
        QVERIFY(both->lanes().front().queues.has(QueueKind::Tensor));
        const QRectF compute = *both->rectOf(false, a.lanes[0].compute.begin);
        const QRectF ofData = *both->rectOf(false, data.begin);
        const QRectF ofTensor = *both->rectOf(true, tensor.begin);
        QVERIFY(ofData.bottom() <= compute.top()); // A's above its operators
        QVERIFY(ofData.height() >= 6);
        QVERIFY(std::abs(ofTensor.height() - ofData.height()) <= 1); // as the strip divides
        const QRectF computeOfB = *both->rectOf(true, b.lanes[0].compute.begin);
        QVERIFY(ofTensor.top() >= computeOfB.bottom());
        // In the order of queues: tensor first, right below B's operators; data below it, right above A's.
        QVERIFY(ofTensor.top() - computeOfB.bottom() < ofData.height());
        QVERIFY(compute.top() - ofData.bottom() < ofData.height());
        // What is clicked on is what is there.
        for (const auto &[ofB, row] : {std::pair{false, data.begin}, {true, tensor.begin}}) {
            m_selection->clear();
            const TimelineScene &scene = ofB ? b : a;
            const double middle = static_cast<double>(scene.timeline->spans.start[row])
                + static_cast<double>(scene.timeline->spans.duration[row]) / 2;
            both->setAxis({middle - 10 * 500.0, 10});
            QTest::mouseClick(
                both->viewport(), Qt::LeftButton, {}, both->rectOf(ofB, row)->center().toPoint());
            QCOMPARE(m_selection->selected(), std::vector<OperatorId>{scene.operatorOf(row)});
        }
    }

    void holdingTheKeyBlinks()
    {
        m_view->activateWindow();
        m_view->timeline(false)->setFocus();
        QTest::keyPress(m_view->timeline(false), Qt::Key_QuoteLeft);
        QVERIFY(m_view->isBlinking());
        QVERIFY(m_view->timeline(true)->isVisible() && !m_view->timeline(false)->isVisible());
        QTRY_VERIFY(m_view->timeline(false)->isVisible() && !m_view->timeline(true)->isVisible());
        QTest::keyRelease(m_view.get(), Qt::Key_QuoteLeft);
        QVERIFY(!m_view->isBlinking());
        QVERIFY(m_view->timeline(true)->isVisible() && m_view->timeline(false)->isVisible());
    }

    void rowsAreTakenIntoTheCurrentDesign()
    {
        RowDiffModel &rows = *m_view->rows();
        int row = 0;
        while (row < rows.rowCount() && rows.rowAt(row).a.text != "mesh dp=2")
            ++row;
        QVERIFY(row < rows.rowCount());
        QVERIFY(rows.index(row, RowDiffModel::RuleA).data(RowDiffModel::DiffersRole).toBool());
        const StepId before = m_workspace->history().current();
        action("compare.takeIntoCurrent")->trigger(); // nothing selected
        QVERIFY(!m_view->remark().isEmpty());
        QCOMPARE(m_workspace->history().current(), before);
        m_view->rowList()->selectionModel()->select(
            rows.index(row, RowDiffModel::RuleA), QItemSelectionModel::ClearAndSelect);
        action("compare.takeIntoCurrent")->trigger();
        QCOMPARE(m_workspace->history().current(), before + 1);
        QVERIFY(m_workspace->tableText().find("mesh dp=2") != std::string::npos);
        QVERIFY(m_workspace->tableText().find("mesh tp=2") == std::string::npos);
        m_workspace->undo();
        QTRY_VERIFY_WITH_TIMEOUT(isOf(0, m_workspace->tableText()), kLong);

        // The same by dragging the cell to the other side.
        row = 0;
        while (rows.rowAt(row).a.text != "mesh dp=2")
            ++row;
        const std::unique_ptr<QMimeData> data(rows.mimeData({rows.index(row, RowDiffModel::RuleA)}));
        QCOMPARE(data->text(), QStringLiteral("mesh dp=2\n"));
        QVERIFY(
            !rows.canDropMimeData(data.get(), Qt::CopyAction, -1, -1, rows.index(0, RowDiffModel::RuleA)));
        QVERIFY(rows.dropMimeData(data.get(), Qt::CopyAction, -1, -1, rows.index(0, RowDiffModel::RuleB)));
        QVERIFY(m_workspace->tableText().find("mesh dp=2") != std::string::npos);
        // B is the current design: the comparison follows.
        QTRY_VERIFY_WITH_TIMEOUT(m_view->result()->b->table.text() == m_workspace->tableText(), kLong);
    }

    void choosersChooseAndFiguresAreCopied()
    {
        m_workspace->nameCheckpoint(QStringLiteral("tensor"));
        auto *chooser = m_view->findChildren<QComboBox *>().value(0);
        QTRY_VERIFY(chooser->findText(QStringLiteral("tensor")) >= 0);
        chooser->setCurrentIndex(chooser->findText(QStringLiteral("tensor")));
        Q_EMIT chooser->activated(chooser->currentIndex());
        QCOMPARE(m_choice->a(), m_workspace->history().names().at("tensor"));
        QVERIFY(m_choice->setChosen(0, true)); // a third plan
        QTRY_COMPARE(m_view->metrics()->columnCount(), 8);
        action("compare.copyTable")->trigger();
        QVERIFY(QGuiApplication::clipboard()->text().startsWith(
            QStringLiteral("figure,unit,tensor,Current,Beginning")));
        action("compare.copyJson")->trigger();
        QVERIFY(QGuiApplication::clipboard()->text().startsWith(QLatin1Char('{')));
    }

    void memoryHasALaneForEveryKindOfDevice()
    {
        QVERIFY(!m_view->memory()->lanes().empty());
        const QString peak = m_view->memory()->peakText(m_view->memory()->lanes().front());
        QVERIFY2(peak.contains(QStringLiteral("→")), qPrintable(peak));
        QVERIFY(m_view->memory()->accessibleDescription().contains(QStringLiteral("peak")));
    }

    void aPlanWithoutATimelineIsSaid()
    {
        m_workspace->setTableText("place all : devices 99\n");
        QTRY_VERIFY_WITH_TIMEOUT(m_view->remark().contains(QLatin1Char('B')), kLong);
        m_workspace->undo();
        QTRY_VERIFY_WITH_TIMEOUT(m_view->remark().isEmpty(), kLong);
    }

    void reasonsNameTheRowsAndChooseTheirOperators()
    {
        CompareCauses *causes = m_view->causes();
        QVERIFY(causes->count() > 0);
        QCOMPARE(causes->list()->rowCount(), causes->count());
        const QString a = causes->list()->item(0, 0)->text();
        const QString b = causes->list()->item(0, 1)->text();
        QVERIFY2(a.contains(QStringLiteral("1  mesh dp=2")), qPrintable(a));
        QVERIFY2(b.contains(QStringLiteral("1  mesh tp=2")), qPrintable(b));
        std::size_t told = 0;
        for (const DifferenceCause &cause : m_view->result()->causes)
            told += cause.operators.size();
        const auto &operators = m_view->result()->operators;
        QCOMPARE(told,
            static_cast<std::size_t>(std::count_if(
                operators.begin(), operators.end(), [](std::uint8_t change) { return change != 0; })));
        causes->list()->selectRow(0);
        QCOMPARE(m_selection->selected().size(), m_view->result()->causes.front().operators.size());
    }

    void everyActionAndControlIsNamed()
    {
        QVERIFY(m_view->actions().size() >= 9);
        for (const QAction *each : m_view->actions()) {
            QVERIFY(!each->objectName().isEmpty());
            QVERIFY(!each->text().isEmpty());
        }
        for (const QComboBox *box : m_view->findChildren<QComboBox *>())
            QVERIFY(
                !box->accessibleName().isEmpty() || box->parentWidget()->inherits("planloom::DagFindBar"));
    }
};

PLANLOOM_QTEST(CompareViewTest)
#include "compare_view_test.moc"
