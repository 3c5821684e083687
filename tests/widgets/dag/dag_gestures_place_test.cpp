#include <QtTest/QtTest>

#include <QtCore/QMimeData>
#include <QtGui/QDragEnterEvent>
#include <QtGui/QWheelEvent>
#include <QtWidgets/QLineEdit>

#include "tests/qt_test.h"
#include "tests/widgets/dag/gesture_stage.h"
#include "widgets/dag/dag_line_editors.h"

#include <algorithm>
#include <variant>

using namespace planloom;

/// Placing operators by hand on the canvas: bodies and the shelf.
class DagGesturesPlaceTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aBodyIsDroppedOnADevice()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        const QPoint start = stage.middle(box);
        stage.press(start);
        stage.move(start + QPoint(0, 20));
        QVERIFY(stage.view.gestures().dragging());
        QCOMPARE(stage.view.gestures().tiles().size(), 9U);
        QVERIFY(stage.host.shown == nullptr); // over nothing
        const auto tileOf = [&](std::int32_t device) {
            return stage.view.gestures().tileRect(device + 1).center().toPoint();
        };
        stage.move(tileOf(3));
        QVERIFY(stage.host.shown != nullptr);
        stage.view.grab();
        stage.move(tileOf(5));
        stage.release(tileOf(5));
        QCOMPARE(stage.host.commits.size(), 1U);
        const Row row = stage.written();
        const auto *rule = std::get_if<OpAssignRule>(&row.rule);
        QVERIFY(rule != nullptr);
        QVERIFY(rule->devices == std::vector{DeviceId{5}});
        QVERIFY(stage.host.selectedBy(stage.written()) == stage.copiesOf(".mlp.c_fc"));
        expectNothing(stage, 1);
        QVERIFY(stage.view.gestures().tiles().empty());
    }

    void theShelfShowsMemoryAsItWouldBe()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        stage.lift(box);
        const QRectF tile = stage.view.gestures().tileRect(1);
        stage.move(tile.center().toPoint());
        const QImage before = stage.view.grab(tile.toAlignedRect()).toImage();
        auto update = std::make_shared<PlanUpdate>();
        update->scene = std::make_shared<const TimelineScene>();
        update->summary.devices.assign(8, {.peak = Bytes{79LL << 30}});
        // The tag needs a timeline; what is shown here is memory alone, so it is asked of the view's own
        // update.
        stage.view.setUpdate(update);
        const QImage after = stage.view.grab(tile.toAlignedRect()).toImage();
        QVERIFY(before != after);
        QTest::keyClick(&stage.view, Qt::Key_Escape);
        expectNothing(stage);
    }

    void shiftPlacesOnlyTheCopyInSight()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        stage.lift(box);
        const QPoint tile = stage.view.gestures().tileRect(2).center().toPoint();
        stage.move(tile, Qt::ShiftModifier);
        QCOMPARE(stage.gesture().operators().size(), 1U);
        stage.release(tile, Qt::ShiftModifier);
        QVERIFY(stage.host.selectedBy(stage.written()) == std::vector{stage.named(kName)});
    }

    void altReplicates()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        stage.lift(box);
        const QPoint tile = stage.view.gestures().tileRect(2).center().toPoint();
        stage.move(tile);
        const auto plain = stage.host.previews.size();
        stage.move(tile, Qt::AltModifier);
        QCOMPARE(stage.host.previews.size(), plain + 1); // proposed anew
        stage.release(tile, Qt::AltModifier);
        QCOMPARE(stage.host.commits.size(), 1U);
    }

    void aGroupAndASelectionMoveAsAWhole()
    {
        Stage stage;
        QTRY_VERIFY(stage.settled());
        stage.view.collapseAll();
        QTRY_VERIFY(stage.view.isSettled());
        std::int32_t stack = -1;
        for (std::size_t box = 1; box < stage.view.picture()->visible.boxes.size(); ++box) {
            if (stage.view.picture()->outline->at(stage.view.picture()->visible.boxes[box].item).kind
                == OutlineItem::Kind::Stack)
                stack = static_cast<std::int32_t>(box);
        }
        QVERIFY(stack > 0);
        const auto inside =
            operatorsOf(*stage.view.picture()->outline, stage.view.picture()->visible, stack, false);
        const auto drag = [&](QPoint from) {
            stage.press(from);
            stage.move(from + QPoint(0, 12));
            const QPoint tile = stage.view.gestures().tileRect(1).center().toPoint();
            stage.move(tile);
            stage.release(tile);
        };
        drag(stage.middle(stack));
        QCOMPARE(stage.host.commits.size(), 1U);
        QVERIFY(stage.host.selectedBy(stage.written()) == inside);
        // The dragged box was selected; with everything selected, everything moves.
        QTest::keyClick(&stage.view, Qt::Key_A, Qt::ControlModifier);
        drag(stage.middle(stack));
        QCOMPARE(stage.host.commits.size(), 2U);
        QVERIFY(stage.host.commits.back().operators.size() > inside.size());
    }

    void aBodyDroppedBesideTheShelfStays()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        stage.press(stage.middle(box));
        stage.move(stage.middle(box) + QPoint(60, 60));
        stage.release(stage.middle(box) + QPoint(60, 60));
        expectNothing(stage);
        stage.press(stage.middle(box));
        stage.move(stage.middle(box) + QPoint(60, 60));
        stage.move(stage.view.gestures().tileRect(1).center().toPoint());
        QTest::keyClick(&stage.view, Qt::Key_Escape);
        expectNothing(stage);
    }

    void freeGivesTheChoiceBack()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        QTest::keyClick(&stage.view, Qt::Key_G);
        auto *editor = qobject_cast<PlaceEditor *>(stage.view.gestures().editor());
        QVERIFY(editor != nullptr);
        QTest::keyClicks(editor->findChild<QLineEdit *>(), QStringLiteral("2"));
        QTest::keyClick(editor->findChild<QLineEdit *>(), Qt::Key_Return);
        const auto placed = [&] {
            const auto rows = stage.host.rows();
            return std::any_of(rows.begin(), rows.end(), [&](const Row &row) {
                const auto *rule = std::get_if<OpAssignRule>(&row.rule);
                return rule != nullptr && rule->devices == std::vector{DeviceId{2}};
            });
        };
        QVERIFY(placed());
        stage.lift(box);
        const QPoint tile = stage.view.gestures().tileRect(0).center().toPoint();
        QVERIFY(stage.view.gestures().tiles()[0].target.free);
        stage.move(tile);
        stage.release(tile);
        QCOMPARE(stage.host.commits.size(), 2U);
        QVERIFY(!placed());
    }

    void manyDevicesScrollOnTheShelf()
    {
        Stage stage("mesh pp=4 tp=16\n", 64);
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        stage.lift(box);
        const auto last = static_cast<std::int32_t>(stage.view.gestures().tiles().size()) - 1;
        QCOMPARE(last, 4 + 16 + 8);
        QVERIFY(stage.view.gestures().tileRect(last).left() > stage.view.width());
        const QPointF on = stage.view.gestures().tileRect(1).center();
        stage.move(on.toPoint());
        for (int i = 0; i < 60; ++i) {
            QWheelEvent wheel(on, stage.view.mapToGlobal(on), {}, QPoint(0, -120), Qt::LeftButton, {},
                Qt::NoScrollPhase, false);
            QApplication::sendEvent(&stage.view, &wheel);
        }
        QVERIFY(stage.view.gestures().tileRect(last).right() <= stage.view.width());
        stage.move(stage.view.gestures().tileRect(last).center().toPoint());
        QVERIFY(stage.gesture().target().has_value());
        QCOMPARE(stage.gesture().target()->devices.size(), 8U);
        QTest::keyClick(&stage.view, Qt::Key_Escape);
        expectNothing(stage);
    }

    void aDeviceFromElsewhereIsDroppedOnANode()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        stage.selection.clear();
        QMimeData data;
        data.setData(QStringLiteral("application/x-planloom-device"), "3");
        const QPoint place = stage.middle(box);
        QDragEnterEvent entering(place, Qt::CopyAction, &data, Qt::LeftButton, {});
        QApplication::sendEvent(&stage.view, &entering);
        QDragMoveEvent moving(place, Qt::CopyAction, &data, Qt::LeftButton, {});
        QApplication::sendEvent(&stage.view, &moving);
        QVERIFY(moving.isAccepted());
        stage.view.grab();
        QDropEvent drop(place, Qt::CopyAction, &data, Qt::LeftButton, {});
        QApplication::sendEvent(&stage.view, &drop);
        QCOMPARE(stage.host.commits.size(), 1U);
        QVERIFY(std::get<OpAssignRule>(stage.written().rule).devices == std::vector{DeviceId{3}});
        QVERIFY(stage.host.selectedBy(stage.written()) == stage.copiesOf(".mlp.c_fc"));
        expectNothing(stage, 1);
    }
};

PLANLOOM_QTEST(DagGesturesPlaceTest)
#include "dag_gestures_place_test.moc"
