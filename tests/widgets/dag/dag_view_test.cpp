#include <QtTest/QtTest>

#include <QtGui/QHelpEvent>
#include <QtGui/QWheelEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QToolTip>

#include "engine/frontend/training/training.h"
#include "engine/frontend/zoo/zoo.h"
#include "tests/qt_test.h"
#include "tests/widgets/dag/fake_gesture_host.h"
#include "widgets/dag/dag_find_bar.h"
#include "widgets/dag/dag_view.h"

#include <algorithm>
#include <cmath>

using namespace planloom;

namespace {

constexpr const char *kSixLayers = "zoo:gpt?layers=6&hidden=64&heads=4&seq=16&vocab=100";

/// First item of a kind in sight, open or closed; -1 if there is none.
std::int32_t boxOf(const DagView &view, OutlineItem::Kind kind, bool frame)
{
    const auto picture = view.picture();
    for (std::size_t box = 1; box < picture->visible.boxes.size(); ++box) {
        const auto &shown = picture->visible.boxes[box];
        if (picture->outline->at(shown.item).kind == kind && shown.frame == frame)
            return static_cast<std::int32_t>(box);
    }
    return -1;
}

/// Pixels that differ between two images of equal size.
int differences(const QImage &a, const QImage &b)
{
    int count = 0;
    for (int y = 0; y < a.height(); ++y) {
        for (int x = 0; x < a.width(); ++x)
            count += a.pixel(x, y) != b.pixel(x, y) ? 1 : 0;
    }
    return count;
}

} // namespace

class DagViewTest : public QObject
{
    Q_OBJECT

private:
    static void show(DagView &view, const char *spec)
    {
        view.resize(1000, 700);
        view.setGraph(trainingStepOf(spec));
        view.show();
        QTRY_VERIFY(view.isSettled() && view.picture());
    }

private Q_SLOTS:
    void anEmptyViewPaintsAndTakesEveryInput()
    {
        DagView view;
        view.resize(400, 300);
        view.show();
        QTest::mouseClick(&view, Qt::LeftButton);
        for (const int key :
            {Qt::Key_E, Qt::Key_F, Qt::Key_Home, Qt::Key_Down, Qt::Key_Return, Qt::Key_Escape, Qt::Key_C})
            QTest::keyClick(&view, static_cast<Qt::Key>(key));
        view.expandAll();
        view.fitAll();
        view.findNext();
        view.setGraph(std::make_shared<const Graph>());
        QTRY_VERIFY(view.isSettled());
        QVERIFY(!view.grab().isNull());
        view.setGraph(nullptr);
        QVERIFY(!view.grab().isNull());
    }

    void aModelOpensWhollyInSight()
    {
        DagView view;
        show(view, kSixLayers);
        for (std::size_t box = 1; box < view.picture()->visible.boxes.size(); ++box)
            QVERIFY(QRectF(view.rect()).contains(view.viewRect(static_cast<int>(box))));
        QVERIFY(boxOf(view, OutlineItem::Kind::Stack, true) >= 0
            || boxOf(view, OutlineItem::Kind::Stack, false) >= 0);
    }

    void aClickSelectsForwardBackwardAndStep()
    {
        DagView view;
        show(view, "zoo:mlp?layers=3");
        view.expandAll();
        QTRY_VERIFY(view.isSettled());
        const auto picture = view.picture();
        std::int32_t linear = -1;
        for (std::size_t box = 1; box < picture->visible.boxes.size(); ++box) {
            const auto &item = picture->outline->at(picture->visible.boxes[box].item);
            if (item.kind == OutlineItem::Kind::Operator
                && picture->outline->graph
                        ->at(picture->outline->units[static_cast<std::size_t>(item.begin)].op)
                        .kind
                    == OperatorKind::Linear)
                linear = static_cast<std::int32_t>(box);
        }
        QVERIFY(linear >= 0);
        QSignalSpy changes(view.selectionModel(), &SelectionModel::selectionChanged);
        QTest::mouseClick(&view, Qt::LeftButton, {}, view.viewRect(linear).center().toPoint());
        QCOMPARE(changes.count(), 1);
        const auto expected = operatorsOf(*picture->outline, picture->visible, linear);
        QVERIFY(expected.size() >= 3);
        QVERIFY(view.selectionModel()->selected() == expected);
        QTest::mouseClick(&view, Qt::LeftButton, {}, QPoint(2, 2));
        QVERIFY(view.selectionModel()->selected().empty());
    }

    void controlClickAddsAndTakesAway()
    {
        DagView view;
        show(view, "zoo:mlp?layers=3");
        view.expandAll();
        QTRY_VERIFY(view.isSettled());
        std::vector<std::int32_t> nodes;
        for (std::size_t box = 1; box < view.picture()->visible.boxes.size(); ++box) {
            if (!view.picture()->visible.boxes[box].frame)
                nodes.push_back(static_cast<std::int32_t>(box));
        }
        QVERIFY(nodes.size() >= 2);
        const auto clickOn = [&](std::int32_t box) {
            QTest::mouseClick(
                &view, Qt::LeftButton, Qt::ControlModifier, view.viewRect(box).center().toPoint());
        };
        clickOn(nodes[0]);
        const auto first = view.selectionModel()->selected();
        clickOn(nodes[1]);
        QVERIFY(view.selectionModel()->selected().size() > first.size());
        clickOn(nodes[1]);
        QVERIFY(view.selectionModel()->selected() == first);
    }

    void aBoxFromLeftTakesWhatItEnclosesAndFromRightWhatItTouches()
    {
        DagView view;
        show(view, "zoo:mlp?layers=3");
        view.expandAll();
        QTRY_VERIFY(view.isSettled());
        std::int32_t node = -1;
        for (std::size_t box = 1; box < view.picture()->visible.boxes.size() && node < 0; ++box) {
            if (!view.picture()->visible.boxes[box].frame)
                node = static_cast<std::int32_t>(box);
        }
        const QRectF rect = view.viewRect(node);
        const QPoint corner = rect.topLeft().toPoint() - QPoint(3, 3);
        const QPoint half(rect.center().x(), rect.center().y());
        const auto drag = [&view](QPoint from, QPoint to) {
            QTest::mousePress(&view, Qt::LeftButton, {}, from);
            QTest::mouseMove(&view, (from + to) / 2);
            QTest::mouseMove(&view, to);
            QTest::mouseRelease(&view, Qt::LeftButton, {}, to);
        };
        drag(corner, half);
        QVERIFY(view.selectionModel()->selected().empty());
        drag(half + QPoint(0, 200), corner + QPoint(-20, 0)); // ends left of where it began
        QVERIFY(!view.selectionModel()->selected().empty());
        drag(corner, rect.bottomRight().toPoint() + QPoint(4, 4));
        QVERIFY(view.selectionModel()->selected()
            == operatorsOf(*view.picture()->outline, view.picture()->visible, node));
    }

    void openingAndClosingKeepsWhatIsUnderThePointer()
    {
        DagView view;
        show(view, kSixLayers);
        view.collapseAll();
        QTRY_VERIFY(view.isSettled());
        const std::int32_t box = boxOf(view, OutlineItem::Kind::Stack, false);
        QVERIFY(box >= 0);
        const std::int32_t item = view.picture()->visible.at(box).item;
        const QRectF before = view.viewRect(box);
        const QPointF pointer(before.left() + 0.3 * before.width(), before.top() + 8);
        for (int round = 0; round < 2; ++round) {
            QTest::mouseDClick(&view, Qt::LeftButton, {}, pointer.toPoint());
            QTRY_VERIFY(view.isSettled());
            const std::int32_t now = view.picture()->visible.boxOfItem(item);
            QVERIFY(now >= 0);
            QCOMPARE(view.picture()->visible.at(now).frame, round == 0);
            const QRectF after = view.viewRect(now);
            QVERIFY2(std::abs(after.left() + 0.3 * after.width() - pointer.x()) <= 2, "drifted sideways");
            QVERIFY2(std::abs(after.top() + 8 - pointer.y()) <= 2, "drifted up or down");
            QVERIFY(after.contains(pointer));
        }
    }

    void zoomingKeepsWhatIsUnderThePointer()
    {
        DagView view;
        show(view, kSixLayers);
        const QPointF pointer(333, 222);
        for (const int turn : {120, 120, 240, -120, -480, 120}) {
            const double x = view.camera().sceneX(pointer.x());
            const double y = view.camera().sceneY(pointer.y());
            const double scale = view.camera().scale;
            QWheelEvent wheel(pointer, view.mapToGlobal(pointer), {}, QPoint(0, turn), Qt::NoButton,
                Qt::ControlModifier, Qt::NoScrollPhase, false);
            QApplication::sendEvent(&view, &wheel);
            QVERIFY(turn > 0 ? view.camera().scale > scale : view.camera().scale < scale);
            QVERIFY(std::abs(view.camera().viewX(x) - pointer.x()) < 1e-6);
            QVERIFY(std::abs(view.camera().viewY(y) - pointer.y()) < 1e-6);
        }
    }

    void theMiddleButtonAndTheWheelPan()
    {
        DagView view;
        show(view, kSixLayers);
        const DagCamera before = view.camera();
        QTest::mousePress(&view, Qt::MiddleButton, {}, QPoint(300, 300));
        QTest::mouseMove(&view, QPoint(340, 280));
        QTest::mouseRelease(&view, Qt::MiddleButton, {}, QPoint(340, 280));
        QCOMPARE(view.camera().x, before.x + 40);
        QCOMPARE(view.camera().y, before.y - 20);
        QCOMPARE(view.camera().scale, before.scale);
        QTest::keyClick(&view, Qt::Key_Home);
        QCOMPARE(view.camera().x, before.x);
    }

    void arrowsWalkAndEOpens()
    {
        DagView view;
        show(view, kSixLayers);
        view.collapseAll();
        QTRY_VERIFY(view.isSettled());
        QTest::keyClick(&view, Qt::Key_Down);
        QVERIFY(view.focusedBox() > 0);
        for (int step = 0; step < 20; ++step)
            QTest::keyClick(&view, Qt::Key_Up);
        const std::int32_t top = view.focusedBox();
        for (int step = 0; step < 20; ++step) {
            const std::int32_t box = view.focusedBox();
            if (view.picture()->outline->at(view.picture()->visible.at(box).item).kind
                == OutlineItem::Kind::Stack)
                break;
            QTest::keyClick(&view, Qt::Key_Down);
        }
        QVERIFY(view.focusedBox() != top);
        const std::int32_t item = view.picture()->visible.at(view.focusedBox()).item;
        QCOMPARE(view.picture()->outline->at(item).kind, OutlineItem::Kind::Stack);
        QTest::keyClick(&view, Qt::Key_E);
        QTRY_VERIFY(view.isSettled());
        QVERIFY(view.picture()->visible.at(view.picture()->visible.boxOfItem(item)).frame);
        QTest::keyClick(&view, Qt::Key_E);
        QTRY_VERIFY(view.isSettled());
        QVERIFY(!view.picture()->visible.at(view.picture()->visible.boxOfItem(item)).frame);
        QVERIFY(view.accessibleDescription().contains(QStringLiteral("Focus")));
    }

    void findReachesIntoClosedGroups()
    {
        DagView view;
        show(view, kSixLayers);
        view.collapseAll();
        QTRY_VERIFY(view.isSettled());
        view.openFind();
        auto *bar = view.findChild<DagFindBar *>();
        QVERIFY(bar != nullptr && bar->isVisible());
        auto *edit = bar->findChild<QLineEdit *>();
        edit->setText(QStringLiteral("H.4.ATTN.ATTENTION"));
        QTest::keyClick(edit, Qt::Key_Return);
        QTRY_VERIFY(view.isSettled());
        const auto &selected = view.selectionModel()->selected();
        QVERIFY(!selected.empty());
        QCOMPARE(
            view.picture()->outline->graph->at(selected.front()).name, std::string("h.4.attn.attention"));
        const auto unit =
            view.picture()->outline->unitOfOperator[static_cast<std::size_t>(selected.front().index)];
        const std::int32_t box = view.picture()->visible.boxOfUnit[static_cast<std::size_t>(unit)];
        QCOMPARE(view.picture()->visible.at(box).copies, 1); // its own copy, not the one that stands for all
        QVERIFY(QRectF(view.rect()).contains(view.viewRect(box)));
        // What every copy has is shown on the one that stands for all.
        view.collapseAll();
        QTRY_VERIFY(view.isSettled());
        edit->setText(QStringLiteral("attention"));
        for (int hit = 0; hit < 3; ++hit) {
            QTest::keyClick(edit, Qt::Key_Return);
            QTRY_VERIFY(view.isSettled());
        }
        const auto third = view.picture()->outline->unitOfOperator[static_cast<std::size_t>(
            view.selectionModel()->selected().front().index)];
        QCOMPARE(view.picture()
                     ->visible.at(view.picture()->visible.boxOfUnit[static_cast<std::size_t>(third)])
                     .copies,
            6);
        QTest::keyClick(edit, Qt::Key_Escape);
        QVERIFY(!bar->isVisible());
    }

    void theSelectionOfOtherViewsShows()
    {
        DagView view;
        SelectionModel shared;
        view.setSelectionModel(&shared);
        show(view, "zoo:mlp?layers=3");
        const QImage before = view.grab().toImage();
        const auto &outline = *view.picture()->outline;
        shared.select({outline.units.front().op});
        QVERIFY(differences(before, view.grab().toImage()) > 50);
        shared.clear();
        QCOMPARE(differences(before, view.grab().toImage()), 0);
    }

    void aDestroyedSelectionModelIsReplaced()
    {
        DagView view;
        show(view, "zoo:mlp?layers=3");
        {
            SelectionModel shared;
            view.setSelectionModel(&shared);
        }
        QVERIFY(view.selectionModel() != nullptr);
        QTest::keyClick(&view, Qt::Key_A, Qt::ControlModifier);
        QVERIFY(!view.selectionModel()->selected().empty());
    }

    void coloursFollowPlanTimesAndTheme()
    {
        DagView view;
        show(view, kSixLayers);
        const auto graph = view.picture()->outline->graph;
        auto plan = std::make_shared<Plan>();
        plan->graph = graph;
        plan->deviceCount = 2;
        plan->stageCount = 2;
        plan->decisions.resize(graph->operators.size());
        for (std::size_t i = 0; i < plan->decisions.size(); ++i) {
            const int half = i * 2 < plan->decisions.size() ? 0 : 1;
            plan->decisions[i].devices = {DeviceId{half}};
            plan->decisions[i].stage = StageId{half};
        }
        const QImage byKind = view.grab().toImage();
        view.setPlan(plan);
        view.setColourBy(ColourBy::Device);
        const QImage byDevice = view.grab().toImage();
        QVERIFY(differences(byKind, byDevice) > 500);
        view.setTimes(std::vector<double>(graph->operators.size(), 1e-3));
        view.setColourBy(ColourBy::Time);
        const QImage byTime = view.grab().toImage();
        QVERIFY(differences(byDevice, byTime) > 500);
        QPalette dark = applicationPalette(darkPalette());
        view.setPalette(dark);
        QCOMPARE(view.grab().toImage().pixelColor(3, 3), darkPalette().canvas);
        // A plan of another graph has nothing to say about this one.
        auto other = std::make_shared<Plan>(*plan);
        other->decisions.pop_back();
        view.setPlan(other);
        QVERIFY(!view.grab().isNull());
    }

    void modesChangeWhatIsShown()
    {
        DagView view;
        show(view, "zoo:mlp?layers=3");
        QSignalSpy modes(&view, &DagView::modeChanged);
        const auto folded = view.picture()->outline->units.size();
        view.setMode(DagMode::Unrolled);
        QTRY_VERIFY(view.isSettled());
        QVERIFY(view.picture()->outline->units.size() > folded);
        view.setMode(DagMode::ForwardOnly);
        QTRY_VERIFY(view.isSettled());
        QVERIFY(view.picture()->outline->units.size() <= folded);
        QCOMPARE(modes.count(), 2);
    }

    void theFlowFollowsTheWindowsShapeUnlessChosen()
    {
        DagView wide;
        wide.resize(1200, 400);
        wide.setGraph(trainingStepOf(kSixLayers));
        QTRY_VERIFY(wide.isSettled() && wide.picture());
        QCOMPARE(wide.picture()->scene.flow, DagFlow::Right);
        wide.setFlow(DagFlow::Down);
        QTRY_VERIFY(wide.isSettled());
        QCOMPARE(wide.picture()->scene.flow, DagFlow::Down);
        QVERIFY(!wide.grab().isNull());
        wide.setFlow({});
        QTRY_VERIFY(wide.isSettled());
        QCOMPARE(wide.picture()->scene.flow, DagFlow::Right);
    }

    void aTooltipTellsWhatTheOperatorIs()
    {
        DagView view;
        show(view, "zoo:mlp?layers=3");
        view.expandAll();
        QTRY_VERIFY(view.isSettled());
        const auto picture = view.picture();
        for (std::size_t box = 1; box < picture->visible.boxes.size(); ++box) {
            const QPoint place = view.viewRect(static_cast<int>(box)).topLeft().toPoint() + QPoint(6, 4);
            QHelpEvent help(QEvent::ToolTip, place, view.mapToGlobal(place));
            QApplication::sendEvent(&view, &help);
            const auto &item = picture->outline->at(picture->visible.boxes[box].item);
            if (item.kind != OutlineItem::Kind::Operator)
                continue;
            const auto &op =
                picture->outline->graph->at(picture->outline->units[static_cast<std::size_t>(item.begin)].op);
            QVERIFY(QToolTip::text().contains(QString::fromStdString(op.name)));
            QVERIFY(QToolTip::text().contains(QString::fromLatin1(nameOf(op.kind))));
        }
    }

    void bracketsWalkAlongEdges()
    {
        DagView view;
        show(view, "zoo:mlp?layers=3");
        QTest::keyClick(&view, Qt::Key_Down);
        const std::int32_t start = view.focusedBox();
        QVERIFY(start > 0);
        QTest::keyClick(&view, Qt::Key_BracketRight);
        const std::int32_t next = view.focusedBox();
        const auto &edges = view.picture()->visible.edges;
        QVERIFY(next == start || std::count(edges.begin(), edges.end(), VisibleEdge{start, next}) == 1);
        for (int step = 0; step < 100; ++step)
            QTest::keyClick(&view, Qt::Key_BracketLeft);
        const std::int32_t first = view.focusedBox();
        QVERIFY(std::none_of(
            edges.begin(), edges.end(), [first](const VisibleEdge &edge) { return edge.to == first; }));
    }

    void everyZoomPaints()
    {
        DagView view;
        show(view, "zoo:moe?layers=2");
        view.expandAll();
        QTRY_VERIFY(view.isSettled());
        view.zoomBy(1e-9);
        for (int step = 0; step < 40; ++step) {
            const QImage image = view.grab().toImage();
            QCOMPARE(image.width(), static_cast<int>(1000 * image.devicePixelRatio()));
            view.zoomBy(1.4);
        }
        QCOMPARE(view.camera().scale, DagCamera::kMostScale);
    }

    void rapidChangesEndWithTheLast()
    {
        DagView view;
        show(view, kSixLayers);
        for (int round = 0; round < 10; ++round) {
            view.expandAll();
            view.collapseAll();
        }
        view.expandAll();
        QTRY_VERIFY(view.isSettled());
        QVERIFY(view.picture()->state == fullyOpen(*view.picture()->outline));
        view.setGraph(trainingStepOf("zoo:mlp?layers=3"));
        QTRY_VERIFY(view.isSettled() && view.picture());
        QVERIFY(view.picture()->outline->graph->name.find("mlp") != std::string::npos);
    }
};

PLANLOOM_QTEST(DagViewTest)
#include "dag_view_test.moc"
