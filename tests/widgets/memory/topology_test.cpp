#include <QtCore/QObject>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>

#include "tests/qt_test.h"
#include "widgets/memory/communication_models.h"
#include "widgets/memory/communication_panel.h"
#include "widgets/memory/matrix_view.h"
#include "widgets/memory/topology_view.h"

#include <vector>

using namespace planloom;

namespace {

constexpr const char *kLargeBatchModel = "zoo:gpt?layers=2&hidden=32&heads=4&seq=16&vocab=64&batch=16";

bool overlap(const TopologyBox &a, const TopologyBox &b)
{
    return a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;
}

bool inside(const TopologyBox &inner, const TopologyBox &outer)
{
    return inner.x >= outer.x && inner.y >= outer.y && inner.x + inner.width <= outer.x + outer.width
        && inner.y + inner.height <= outer.y + outer.height;
}

QPoint middle(const TopologyBox &box)
{
    return {static_cast<int>(box.x + box.width / 2), static_cast<int>(box.y + box.height / 2)};
}

} // namespace

class TopologyTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyThingHasItsOwnPlace_data()
    {
        QTest::addColumn<int>("devices");
        QTest::addColumn<int>("perNode");
        QTest::addColumn<int>("width");
        QTest::newRow("one") << 1 << 8 << 300;
        QTest::newRow("half a host") << 5 << 8 << 300;
        QTest::newRow("eight hosts, wide") << 64 << 8 << 1600;
        QTest::newRow("eight hosts, narrow") << 64 << 8 << 100;
        QTest::newRow("last host not full") << 13 << 4 << 700;
        QTest::newRow("one to a host") << 6 << 1 << 400;
        QTest::newRow("many to a host") << 40 << 20 << 900;
    }

    void everyThingHasItsOwnPlace()
    {
        QFETCH(int, devices);
        QFETCH(int, perNode);
        QFETCH(int, width);
        const TopologyLayout layout(devices, perNode, width, {});
        QCOMPARE(layout.nodeCount(), (devices + perNode - 1) / perNode);
        std::vector<TopologyBox> tiles;
        for (int device = 0; device < devices; ++device) {
            const TopologyBox tile = layout.device(device);
            const TopologyBox link = layout.deviceLink(device);
            QVERIFY(inside(tile, layout.node(device / perNode)));
            QVERIFY(inside(link, layout.node(device / perNode)));
            QCOMPARE(link.y + link.height, tile.y); // it hangs from it
            for (const TopologyBox &other : tiles)
                QVERIFY(!overlap(tile, other) && !overlap(link, other));
            tiles.push_back(tile);
            QCOMPARE(layout.deviceAt(middle(tile).x(), middle(tile).y()), device);
            QCOMPARE(layout.deviceAt(middle(link).x(), middle(link).y()), device);
            QCOMPARE(layout.nodeHeadAt(middle(tile).x(), middle(tile).y()), -1);
        }
        for (int node = 0; node < layout.nodeCount(); ++node) {
            const TopologyBox box = layout.node(node);
            QVERIFY(box.y + box.height <= layout.height());
            for (int other = 0; other < node; ++other)
                QVERIFY(!overlap(box, layout.node(other)));
            const auto [first, last] = layout.nodesBetween(box.y, box.y + box.height);
            QVERIFY(first <= node && node < last);
            QCOMPARE(layout.nodeHeadAt(box.x + 3, box.y + 3), layout.hasNetwork() ? node : -1);
            if (layout.hasNetwork())
                QCOMPARE(
                    layout.nodeHeadAt(middle(layout.nodeLink(node)).x(), middle(layout.nodeLink(node)).y()),
                    node);
        }
        QCOMPARE(layout.deviceAt(-5, -5), -1);
        QCOMPARE(layout.deviceAt(width * 100.0, layout.height() * 2), -1);
    }

    void mouseAndKeysChooseLinks()
    {
        auto matrix = std::make_shared<CommunicationMatrix>();
        matrix->deviceCount = 6;
        for (std::int32_t device = 0; device < 6; ++device)
            matrix->links.push_back({false, device, {1000 * device}, 0.15 * device});
        matrix->links.push_back(
            {true, 0, {5000}, 1.4}); // more than it could carry is shown, not drawn beyond its gauge
        matrix->links.push_back({true, 1, {0}, 0});
        Cluster cluster;
        cluster.deviceCount = 6;
        cluster.links.devicesPerNode = 3;
        TopologyView view;
        view.resize(500, 300);
        QVERIFY(!view.grab().isNull()); // empty
        view.setMatrix(matrix, cluster);
        view.show();
        QVERIFY(!view.grab().isNull());
        QVERIFY(!view.current());
        const TopologyLayout &layout = view.layoutOfMap();
        QTest::mouseClick(&view, Qt::LeftButton, {}, middle(layout.device(4)));
        QVERIFY(view.current() && !view.current()->betweenNodes && view.current()->index == 4);
        QVERIFY2(view.accessibleDescription().contains(QStringLiteral("60%")),
            qPrintable(view.accessibleDescription()));
        QTest::keyClick(&view, Qt::Key_Right);
        QCOMPARE(view.current()->index, 5);
        QTest::keyClick(&view, Qt::Key_Right); // the last one stays
        QCOMPARE(view.current()->index, 5);
        QTest::keyClick(&view, Qt::Key_Up);
        QVERIFY(view.current()->betweenNodes && view.current()->index == 1);
        QTest::keyClick(&view, Qt::Key_Left);
        QVERIFY(view.current()->betweenNodes && view.current()->index == 0);
        QVERIFY(view.accessibleDescription().contains(QStringLiteral("140%")));
        QTest::keyClick(&view, Qt::Key_Down);
        QVERIFY(!view.current()->betweenNodes && view.current()->index == 0);
        QTest::keyClick(&view, Qt::Key_Escape);
        QVERIFY(!view.current());
        QTest::mouseClick(&view, Qt::LeftButton, {}, middle(layout.nodeLink(0)));
        QVERIFY(view.current() && view.current()->betweenNodes);
        view.setMatrix(nullptr, {});
        QVERIFY(!view.current());
    }

    void aLinkLeadsToItsFlowsAndTheirOperators()
    {
        Workspace workspace;
        SelectionModel selection;
        CommunicationPanel panel(&workspace, &selection);
        panel.resize(1100, 400);
        panel.show();
        workspace.openWith({kLargeBatchModel, {}, {}}, "dgx-a100", 16, "data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(panel.matrix() && panel.matrix()->links.size() == 18, kLong);
        auto *map = panel.findChild<TopologyView *>();
        auto *tabs = panel.findChild<QTabWidget *>();
        for (int tab = 0; tab < tabs->count(); ++tab)
            if (tabs->widget(tab)->isAncestorOf(map))
                tabs->setCurrentIndex(tab);
        QVERIFY(map->isVisible());
        const auto *flows = panel.findChild<QTableView *>(QStringLiteral("communication.flows"))->model();
        // All that leaves host 0 goes by its link: the sums agree.
        QTest::mouseClick(map, Qt::LeftButton, {}, middle(map->layoutOfMap().nodeLink(0)));
        QVERIFY(map->current() && map->current()->betweenNodes);
        QVERIFY(flows->rowCount() > 0);
        QVERIFY(!selection.selected().empty());
        QTest::mouseClick(map, Qt::LeftButton, {}, middle(map->layoutOfMap().device(2)));
        const auto *model = qobject_cast<const FlowsModel *>(flows);
        std::int64_t sum = 0;
        for (int row = 0; const Flow *flow = model->flowAt(row); ++row) {
            QCOMPARE(flow->from.index, 2);
            sum += flow->bytes.count;
        }
        QCOMPARE(sum, map->current()->bytes.count);
        // A cell of the matrix takes its place.
        auto *cells = panel.findChild<MatrixView *>();
        QTest::mouseClick(cells, Qt::LeftButton, {}, cells->cellRect(0, 1).center().toPoint());
        for (int row = 0; const Flow *flow = model->flowAt(row); ++row)
            QVERIFY(flow->from.index == 0 && flow->to.index == 1);
    }
};

PLANLOOM_QTEST(TopologyTest)
#include "topology_test.moc"
