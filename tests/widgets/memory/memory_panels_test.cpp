#include <QtCore/QObject>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QTableView>

#include "tests/qt_test.h"
#include "widgets/memory/communication_lines_view.h"
#include "widgets/memory/communication_models.h"
#include "widgets/memory/communication_panel.h"
#include "widgets/memory/matrix_view.h"
#include "widgets/memory/memory_panel.h"
#include "widgets/memory/memory_views.h"

#include <numeric>

using namespace planloom;

namespace {

constexpr const char *kModel = "zoo:gpt?layers=2&hidden=32&heads=4&seq=16&vocab=64&batch=8";

struct Stage {
    Workspace workspace;
    SelectionModel selection;

    void open(const char *gallery, int devices)
    {
        workspace.openWith({kModel, {}, {}}, "dgx-a100", devices, gallery);
        QTRY_VERIFY_WITH_TIMEOUT(
            workspace.latest() && workspace.latest()->verdict && !workspace.isPlanning(), kLong);
    }
    const Timeline &timeline() const { return *workspace.lastGood()->scene->timeline; }
};

} // namespace

class MemoryPanelsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void liveBuffersSumToTheCurveAtEveryChosenMoment()
    {
        Stage stage;
        MemoryPanel panel(&stage.workspace, &stage.selection);
        panel.resize(1100, 300);
        panel.show();
        stage.open("3d:dp=2,tp=2,pp=1", 4);
        QTRY_VERIFY_WITH_TIMEOUT(!panel.live().empty(), kLong);
        auto *curve = panel.findChild<MemoryCurveView *>();
        for (int device = 0; device < 2; ++device) {
            panel.setDevice(device);
            QTRY_VERIFY_WITH_TIMEOUT(panel.isSettled() && !panel.live().empty(), kLong);
            for (const double share : {0.1, 0.4, 0.8}) {
                QTest::mouseClick(curve, Qt::LeftButton, {},
                    {static_cast<int>(curve->width() * share), curve->height() / 2});
                QVERIFY(panel.time() >= 0);
                std::int64_t sum = 0;
                for (const BufferLifetime &buffer : panel.live())
                    sum += buffer.bytes.count;
                const auto kinds = bytesAt(
                    stage.timeline().memory[static_cast<std::size_t>(device)], Nanoseconds{panel.time()});
                QCOMPARE(sum, std::accumulate(kinds.begin(), kinds.end(), std::int64_t{0}));
            }
        }
    }

    void theKeyboardGoesFromChangeToChangeAndFromTileToTile()
    {
        Stage stage;
        MemoryPanel panel(&stage.workspace, &stage.selection);
        panel.resize(1100, 300);
        panel.show();
        stage.open("single", 1);
        QTRY_VERIFY_WITH_TIMEOUT(!panel.live().empty(), kLong);
        auto *curve = panel.findChild<MemoryCurveView *>();
        QTest::keyClick(curve, Qt::Key_Left);
        const std::int64_t before = panel.time();
        QTest::keyClick(curve, Qt::Key_Right);
        QVERIFY(panel.time() > before);
        auto *tiles = panel.findChild<MemoryTreemap *>();
        QVERIFY(tiles->tileCount() > 1);
        QTest::keyClick(tiles, Qt::Key_Right);
        QVERIFY(tiles->accessibleDescription().contains(QLatin1Char('\n')));
        for (std::size_t i = 0; i < tiles->tileCount() && stage.selection.selected().empty(); ++i)
            QTest::mouseClick(tiles, Qt::LeftButton, {}, tiles->tileRect(i).center().toPoint());
        QVERIFY2(!stage.selection.selected().empty(), "a tile leads to the operator that made it");
    }

    void theMatrixSumsToWhatThePlanSends()
    {
        Stage stage;
        CommunicationPanel panel(&stage.workspace, &stage.selection);
        panel.resize(1100, 300);
        panel.show();
        stage.open("data-parallel", 4);
        QTRY_VERIFY_WITH_TIMEOUT(panel.matrix(), kLong);
        for (std::int32_t d = 0; d < 4; ++d)
            QCOMPARE(panel.matrix()->sentBy({d}).count,
                stage.workspace.lastGood()->summary.devices[static_cast<std::size_t>(d)].sent.count);
        auto *view = panel.findChild<MatrixView *>();
        QSignalSpy chosen(view, &MatrixView::cellChosen);
        QTest::mouseClick(view, Qt::LeftButton, {}, view->cellRect(0, 1).center().toPoint());
        QCOMPARE(view->current(), (std::pair{0, 1}));
        QSignalSpy lines(&panel, &CommunicationPanel::linesChosen);
        auto *flows = panel.findChild<QTableView *>(QStringLiteral("communication.flows"));
        QVERIFY(flows->model()->rowCount() > 0);
        flows->setFocus();
        flows->setCurrentIndex(flows->model()->index(0, 0));
        QVERIFY(!stage.selection.selected().empty());
        QCOMPARE(lines.count(), 1);
        QTest::keyClick(view, Qt::Key_Right);
        QCOMPARE(view->current(), (std::pair{0, 2}));
        QTest::keyClick(view, Qt::Key_Escape);
        QCOMPARE(view->current(), (std::pair{-1, -1}));
    }

    void collectivesAreListedWithTheirOperatorsAndAsCsv()
    {
        Stage stage;
        CommunicationPanel panel(&stage.workspace, &stage.selection);
        stage.open("data-parallel", 4);
        auto *view = panel.findChild<CommunicationLinesView *>();
        QVERIFY(view);
        QTRY_VERIFY_WITH_TIMEOUT(view->lines().rowCount() > 0, kLong);
        const CommunicationLine *line = view->lines().lineAt(0);
        QCOMPARE(line->kind, InstructionKind::AllReduce);
        QCOMPARE(line->shape.ranks, 4);
        using Model = CommunicationLinesModel;
        QCOMPARE(view->model()->index(0, Model::What).data().toString(), QStringLiteral("all-reduce"));
        QVERIFY(view->model()->index(0, Model::Groups).data().toString().contains(QStringLiteral("0-3")));
        view->setCurrentIndex(view->model()->index(0, 0));
        QVERIFY(!stage.selection.selected().empty());
        QCOMPARE(view->csv().count(QStringLiteral("\r\n")), view->lines().rowCount() + 1);
        Model model;
        const QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        model.set(view->lines().lines());
        QCOMPARE(model.rowCount(), view->lines().rowCount());
        model.set(nullptr);
        QCOMPARE(model.rowCount(), 0);
    }

    void modelsKeepTheRules()
    {
        MemoryKindsModel kinds;
        FlowsModel flows;
        LinksModel links;
        const QAbstractItemModelTester a(&kinds, QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QAbstractItemModelTester b(&flows, QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QAbstractItemModelTester c(&links, QAbstractItemModelTester::FailureReportingMode::QtTest);
        kinds.set({1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1});
        QCOMPARE(
            kinds.index(kMemoryKindCount, MemoryKindsModel::Now).data().toString(), QStringLiteral("21 B"));
        flows.set(
            {Flow{.kind = InstructionKind::AllReduce, .from = {0}, .to = {1}, .bytes = {2048}, .count = 3}});
        QCOMPARE(flows.index(0, FlowsModel::Sent).data().toString(), QStringLiteral("2.00 KiB"));
        QVERIFY(!flows.flowAt(1));
        links.set({{false, 0, {10}, 0.1}, {true, 1, {20}, 0.5}});
        QVERIFY(links.index(0, 0).data().toString().contains(QStringLiteral("host 1")));
    }

    void withoutAPlanTheySaySo()
    {
        Stage stage;
        MemoryPanel memory(&stage.workspace, &stage.selection);
        CommunicationPanel communication(&stage.workspace, &stage.selection);
        memory.resize(600, 200);
        communication.resize(600, 200);
        QVERIFY(!memory.grab().isNull());
        QVERIFY(!communication.grab().isNull());
        QVERIFY(memory.live().empty());
    }
};

PLANLOOM_QTEST(MemoryPanelsTest)
#include "memory_panels_test.moc"
