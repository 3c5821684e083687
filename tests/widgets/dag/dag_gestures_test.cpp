#include <QtTest/QtTest>

#include <QtCore/QMimeData>
#include <QtGui/QAction>
#include <QtGui/QContextMenuEvent>
#include <QtGui/QDragEnterEvent>
#include <QtGui/QWheelEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenu>
#include <QtWidgets/QSpinBox>

#include "tests/widgets/dag/fake_gesture_host.h"
#include "widgets/dag/dag_gesture_layer.h"
#include "widgets/dag/dag_line_editors.h"
#include "widgets/dag/dag_view.h"

#include <algorithm>
#include <variant>

using namespace planloom;

namespace {

constexpr const char *kGpt = "zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=128";

/// Everything open but the stack's copies, zoomed so that chips and handles have room.
struct Stage {
    explicit Stage(const char *rows = "", std::int32_t devices = 8)
    {
        graph = trainingStepOf(kGpt);
        host.context = designOf(graph, devices, rows);
        view.resize(1000, 800);
        view.setSelectionModel(&selection);
        view.setGraph(graph);
        view.setGestureHost(&host);
        view.show();
        view.activateWindow();
        view.setFocus();
    }
    bool settled() const { return view.isSettled() && view.picture() != nullptr; }

    OperatorId named(const std::string &name) const
    {
        for (std::size_t i = 0; i < graph->operators.size(); ++i) {
            if (graph->operators[i].name == name)
                return OperatorId {static_cast<std::int32_t>(i)};
        }
        return {};
    }
    std::int32_t boxOf(const std::string &name) const
    {
        const auto picture = view.picture();
        const auto unit = picture->outline->unitOfOperator[static_cast<std::size_t>(named(name).index)];
        return unit < 0 ? -1 : picture->visible.boxOfUnit[static_cast<std::size_t>(unit)];
    }
    QPoint middle(std::int32_t box) const { return view.viewRect(box).center().toPoint(); }
    void click(std::int32_t box) { QTest::mouseClick(&view, Qt::LeftButton, {}, middle(box)); }
    QPoint chip(const std::string &label, bool output) const
    {
        const auto &chips = view.gestures().chips();
        for (std::size_t i = 0; i < chips.size(); ++i) {
            if (chips[i].label == label && chips[i].output == output)
                return view.gestures().chipRect(static_cast<std::int32_t>(i)).center().toPoint();
        }
        qFatal("there is no chip %s", label.c_str());
    }
    void press(QPoint at, Qt::KeyboardModifiers held = {}) { QTest::mousePress(&view, Qt::LeftButton, held, at); }
    void move(QPoint at, Qt::KeyboardModifiers held = {})
    {
        QMouseEvent event(QEvent::MouseMove, QPointF(at), view.mapToGlobal(QPointF(at)), Qt::NoButton, Qt::LeftButton, held);
        QApplication::sendEvent(&view, &event);
    }
    void release(QPoint at, Qt::KeyboardModifiers held = {}) { QTest::mouseRelease(&view, Qt::LeftButton, held, at); }
    const DagGestures &gesture() const { return view.gestures().gestures(); }
    std::vector<OperatorId> copiesOf(const std::string &suffix) const
    {
        std::vector<OperatorId> result;
        for (std::size_t i = 0; i < graph->operators.size(); ++i) {
            const auto &op = graph->operators[i];
            if (op.direction == Direction::Forward && op.name.size() > suffix.size()
                && op.name.compare(op.name.size() - suffix.size(), suffix.size(), suffix) == 0)
                result.push_back(OperatorId {static_cast<std::int32_t>(i)});
        }
        return result;
    }
    /// The row that says what the last gesture was; others may stand behind it for what it does not speak of.
    Row written() const { return TableDocument(host.commits.back().rows.front()).table().rows.front(); }

    GraphSnapshot graph;
    FakeGestureHost host;
    SelectionModel selection;
    DagView view;
};

/// One copy of the layers stands for all, everything inside is open.
void openOneLayer(Stage &stage)
{
    QTRY_VERIFY(stage.settled());
    stage.view.expandAll();
    QTRY_VERIFY(stage.view.isSettled());
    const auto picture = stage.view.picture();
    for (std::size_t item = 0; item < picture->outline->items.size(); ++item) {
        if (picture->outline->items[item].kind == OutlineItem::Kind::Stack)
            stage.view.toggleCopies(static_cast<std::int32_t>(item));
    }
    QTRY_VERIFY(stage.view.isSettled());
    stage.view.fitAll();
}

/// Zooms in on an operator and selects its box.
std::int32_t select(Stage &stage, const std::string &name)
{
    stage.view.showOperator(stage.named(name));
    const std::int32_t box = stage.boxOf(name);
    stage.view.zoomBy(1.0 / stage.view.camera().scale);
    const QPointF off = QRectF(stage.view.rect()).center() - stage.view.viewRect(box).center();
    stage.view.panBy(off.x(), off.y());
    stage.click(box);
    return box;
}

constexpr const char *kName = "h.0.mlp.c_fc";

} // namespace

class DagGesturesTest : public QObject
{
    Q_OBJECT

private:
    /// Nothing was written, nothing is shown.
    static void expectNothing(const Stage &stage, std::size_t commits = 0)
    {
        QCOMPARE(stage.host.commits.size(), commits);
        QVERIFY(stage.host.shown == nullptr);
        QVERIFY(!stage.gesture().active());
        QVERIFY(!stage.view.gestures().dragging());
        QVERIFY(stage.view.gestures().editor() == nullptr);
    }

private Q_SLOTS:
    void aSelectedOperatorShowsItsChips()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        QCOMPARE(stage.view.gestures().chipBox(), box);
        const auto expected = chipsOf(*stage.host.context, stage.named(kName));
        QCOMPARE(stage.view.gestures().chips().size(), expected.size());
        QVERIFY(!expected.empty());
        const QRectF node = stage.view.viewRect(box);
        for (std::size_t i = 0; i < expected.size(); ++i) {
            const QRectF chip = stage.view.gestures().chipRect(static_cast<std::int32_t>(i));
            QVERIFY(chip.height() >= 18);
            QVERIFY(expected[i].output ? chip.bottom() > node.bottom() : chip.top() < node.top());
        }
        stage.selection.clear();
        QCOMPARE(stage.view.gestures().chipBox(), -1);
        // Without a host there is nothing to pull.
        stage.click(box);
        QCOMPARE(stage.view.gestures().chipBox(), box);
        stage.view.setGestureHost(nullptr);
        QCOMPARE(stage.view.gestures().chipBox(), -1);
    }

    void pullingAChipSplitsEveryCopy()
    {
        Stage stage;
        openOneLayer(stage);
        select(stage, kName);
        const auto &chips = stage.view.gestures().chips();
        const auto out = std::find_if(chips.begin(), chips.end(),
            [](const DimensionChip &chip) { return chip.output && chip.locked.empty() && chip.size >= 64; });
        QVERIFY(out != chips.end());
        const auto index = static_cast<std::int32_t>(out - chips.begin());
        const std::string label = out->label;
        const std::int32_t dimension = out->dimension;
        const QPoint start = stage.view.gestures().chipRect(index).center().toPoint();
        stage.press(start);
        stage.move(start + QPoint(0, 4));
        QVERIFY(stage.host.previews.empty()); // not yet a drag
        stage.move(start + QPoint(0, 40));
        QCOMPARE(stage.gesture().parts(), 4);
        QVERIFY(stage.gesture().proposal()->accepted());
        QVERIFY(!stage.host.previews.empty());
        QVERIFY(stage.view.gestures().tag().contains(QString::fromStdString(stage.host.previews.back().words)));
        QVERIFY(stage.host.commits.empty());
        stage.view.grab();
        QVERIFY(QRectF(stage.view.rect()).contains(stage.view.gestures().tagRect()));
        stage.release(start + QPoint(0, 40));
        QCOMPARE(stage.host.commits.size(), 1U);
        const Row row = stage.written();
        const auto *rule = std::get_if<OpTransRule>(&row.rule);
        QVERIFY(rule != nullptr);
        QCOMPARE(rule->steps.size(), 1U);
        QCOMPARE(rule->steps[0].parts, 4);
        QVERIFY(rule->steps[0].kind == SplitKind::Dimension);
        const auto &name = stage.graph->at(stage.named(kName)).annotation.dimensions[static_cast<std::size_t>(dimension)].name;
        QCOMPARE(rule->steps[0].dimension.name, name);
        QVERIFY(stage.host.selectedBy(stage.written()) == stage.copiesOf(".mlp.c_fc"));
        QCOMPARE(stage.copiesOf(".mlp.c_fc").size(), 4U);
        expectNothing(stage, 1);
    }

    void wheelAndDigitsSetThePartsExactly()
    {
        Stage stage;
        openOneLayer(stage);
        select(stage, kName);
        const QPoint start = stage.view.gestures().chipRect(static_cast<std::int32_t>(stage.view.gestures().chips().size()) - 1).center().toPoint();
        const QPoint place = start + QPoint(0, 10);
        stage.press(start);
        stage.move(place);
        QCOMPARE(stage.gesture().parts(), 2);
        const DagCamera before = stage.view.camera();
        for (const int turn : {120, 120, -120}) {
            QWheelEvent wheel(QPointF(place), stage.view.mapToGlobal(QPointF(place)), {}, QPoint(0, turn), Qt::LeftButton, {},
                Qt::NoScrollPhase, false);
            QApplication::sendEvent(&stage.view, &wheel);
        }
        QCOMPARE(stage.gesture().parts(), 4);
        QVERIFY(stage.view.camera() == before); // the wheel counts instead of scrolling
        stage.move(place + QPoint(0, 60));
        QCOMPARE(stage.gesture().parts(), 4); // exactly, whatever the distance
        QTest::keyClick(&stage.view, Qt::Key_1);
        QTest::keyClick(&stage.view, Qt::Key_6);
        QCOMPARE(stage.gesture().parts(), 16);
        QTest::keyClick(&stage.view, Qt::Key_Backspace);
        QVERIFY(stage.gesture().parts() > 4 && stage.gesture().parts() != 16); // the distance again
        QTest::keyClick(&stage.view, Qt::Key_8);
        stage.release(place + QPoint(0, 60));
        QCOMPARE(std::get<OpTransRule>(stage.written().rule).steps[0].parts, 8);
    }

    void countsThatDoNotDivideAreRefusedInASentence()
    {
        Stage stage;
        openOneLayer(stage);
        select(stage, kName);
        QSignalSpy notes(&stage.view, &DagView::noted);
        const QPoint start = stage.view.gestures().chipRect(static_cast<std::int32_t>(stage.view.gestures().chips().size()) - 1).center().toPoint();
        stage.press(start);
        stage.move(start + QPoint(0, 30));
        QTest::keyClick(&stage.view, Qt::Key_7);
        QCOMPARE(stage.gesture().parts(), 7);
        QVERIFY(stage.gesture().proposal()->refusal);
        QCOMPARE(stage.view.cursor().shape(), Qt::ForbiddenCursor);
        QVERIFY(stage.view.gestures().tag().contains(
            QString::fromStdString(stage.gesture().proposal()->refusal->message)));
        stage.release(start + QPoint(0, 30));
        expectNothing(stage);
        QCOMPARE(notes.count(), 1);
    }

    void shiftReplicatesAndControlSplitsTheValue()
    {
        Stage stage;
        openOneLayer(stage);
        for (const auto &[held, kind] : {std::pair {Qt::ShiftModifier, SplitKind::Replicate},
                 std::pair {Qt::ControlModifier, SplitKind::Value}}) {
            select(stage, kName);
            const QPoint start = stage.view.gestures().chipRect(static_cast<std::int32_t>(stage.view.gestures().chips().size()) - 1).center().toPoint();
            stage.press(start);
            stage.move(start + QPoint(0, 20), held);
            QVERIFY(stage.gesture().splitKind() == kind);
            stage.move(start + QPoint(0, 20));
            QVERIFY(stage.gesture().splitKind() == SplitKind::Dimension);
            stage.release(start + QPoint(0, 20), held); // what is held at the release counts
            QVERIFY(!stage.host.commits.empty());
            QVERIFY(std::get<OpTransRule>(stage.written().rule).steps.back().kind == kind);
        }
        QCOMPARE(stage.host.commits.size(), 2U);
    }

    void escapeRightButtonAndGoingBackLeaveNothing()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        const QPoint start = stage.view.gestures().chipRect(static_cast<std::int32_t>(stage.view.gestures().chips().size()) - 1).center().toPoint();
        const QPoint far = start + QPoint(30, 60);
        const auto selected = stage.selection.selected();

        stage.press(start); // before it is a drag
        QTest::keyClick(&stage.view, Qt::Key_Escape);
        stage.release(start);
        expectNothing(stage);

        stage.press(start); // in the middle
        stage.move(far);
        QVERIFY(stage.host.shown != nullptr);
        QTest::keyClick(&stage.view, Qt::Key_Escape);
        expectNothing(stage);
        stage.move(far + QPoint(5, 5));
        stage.release(far);
        expectNothing(stage);

        stage.press(start); // with the right button
        stage.move(far);
        QTest::mousePress(&stage.view, Qt::RightButton, {}, far);
        expectNothing(stage);
        QContextMenuEvent menu(QContextMenuEvent::Mouse, far, stage.view.mapToGlobal(far));
        QApplication::sendEvent(&stage.view, &menu);
        QVERIFY(stage.view.findChildren<QMenu *>().isEmpty()); // that press was for the gesture
        QTest::mouseRelease(&stage.view, Qt::RightButton, {}, far);
        stage.release(far);
        expectNothing(stage);

        stage.press(start); // dropped back on the node
        stage.move(far);
        stage.move(stage.middle(box));
        stage.release(stage.middle(box));
        expectNothing(stage);
        QVERIFY(stage.selection.selected() == selected);
        QVERIFY(stage.host.ended >= 3);
    }

    void aLockedChipSaysWhy()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, "h.0.attn.softmax");
        QCOMPARE(stage.view.gestures().chipBox(), box);
        const auto &chips = stage.view.gestures().chips();
        const auto locked = std::find_if(
            chips.begin(), chips.end(), [](const DimensionChip &chip) { return !chip.locked.empty(); });
        QVERIFY(locked != chips.end());
        const QString why = QString::fromStdString(locked->locked);
        const QPoint start = stage.view.gestures().chipRect(static_cast<std::int32_t>(locked - chips.begin())).center().toPoint();
        QMouseEvent hover(QEvent::MouseMove, QPointF(start), stage.view.mapToGlobal(QPointF(start)), Qt::NoButton, Qt::NoButton, {});
        QApplication::sendEvent(&stage.view, &hover);
        QCOMPARE(stage.view.cursor().shape(), Qt::ForbiddenCursor);
        QSignalSpy notes(&stage.view, &DagView::noted);
        stage.press(start);
        stage.move(start + QPoint(0, -50));
        QVERIFY(stage.gesture().proposal() && stage.gesture().proposal()->refusal);
        stage.release(start + QPoint(0, -50));
        expectNothing(stage);
        QCOMPARE(notes.count(), 1);
        QVERIFY(!notes.front().front().toString().isEmpty());
        QVERIFY(!why.isEmpty());
    }

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
        QVERIFY(rule->devices == std::vector {DeviceId {5}});
        QVERIFY(stage.host.selectedBy(stage.written()) == stage.copiesOf(".mlp.c_fc"));
        expectNothing(stage, 1);
        QVERIFY(stage.view.gestures().tiles().empty());
    }

    void theShelfShowsMemoryAsItWouldBe()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        stage.press(stage.middle(box));
        stage.move(stage.middle(box) + QPoint(0, 20));
        const QRectF tile = stage.view.gestures().tileRect(1);
        stage.move(tile.center().toPoint());
        const QImage before = stage.view.grab(tile.toAlignedRect()).toImage();
        auto update = std::make_shared<PlanUpdate>();
        update->scene = std::make_shared<const TimelineScene>();
        update->summary.devices.assign(8, {.peak = Bytes {79LL << 30}});
        // The tag needs a timeline; what is shown here is memory alone, so it is asked of the view's own update.
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
        stage.press(stage.middle(box));
        stage.move(stage.middle(box) + QPoint(0, 20));
        const QPoint tile = stage.view.gestures().tileRect(2).center().toPoint();
        stage.move(tile, Qt::ShiftModifier);
        QCOMPARE(stage.gesture().operators().size(), 1U);
        stage.release(tile, Qt::ShiftModifier);
        QVERIFY(stage.host.selectedBy(stage.written()) == std::vector {stage.named(kName)});
    }

    void altReplicates()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        stage.press(stage.middle(box));
        stage.move(stage.middle(box) + QPoint(0, 20));
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
            if (stage.view.picture()->outline->at(stage.view.picture()->visible.boxes[box].item).kind == OutlineItem::Kind::Stack)
                stack = static_cast<std::int32_t>(box);
        }
        QVERIFY(stack > 0);
        const auto inside = operatorsOf(*stage.view.picture()->outline, stage.view.picture()->visible, stack, false);
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
                return rule != nullptr && rule->devices == std::vector {DeviceId {2}};
            });
        };
        QVERIFY(placed());
        stage.press(stage.middle(box));
        stage.move(stage.middle(box) + QPoint(0, 20));
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
        stage.press(stage.middle(box));
        stage.move(stage.middle(box) + QPoint(0, 20));
        const auto last = static_cast<std::int32_t>(stage.view.gestures().tiles().size()) - 1;
        QCOMPARE(last, 4 + 16 + 8);
        QVERIFY(stage.view.gestures().tileRect(last).left() > stage.view.width());
        const QPointF on = stage.view.gestures().tileRect(1).center();
        stage.move(on.toPoint());
        for (int i = 0; i < 60; ++i) {
            QWheelEvent wheel(on, stage.view.mapToGlobal(on), {}, QPoint(0, -120), Qt::LeftButton, {}, Qt::NoScrollPhase, false);
            QApplication::sendEvent(&stage.view, &wheel);
        }
        QVERIFY(stage.view.gestures().tileRect(last).right() <= stage.view.width());
        stage.move(stage.view.gestures().tileRect(last).center().toPoint());
        QVERIFY(stage.gesture().target().has_value());
        QCOMPARE(stage.gesture().target()->devices.size(), 8U);
        QTest::keyClick(&stage.view, Qt::Key_Escape);
        expectNothing(stage);
    }

    void theHandleOrdersOneBeforeAnother()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t from = select(stage, "h.0.attn.softmax");
        stage.view.zoomBy(0.7 / stage.view.camera().scale);
        const std::int32_t to = stage.boxOf(kName);
        const QPointF off = QRectF(stage.view.rect()).center()
            - (stage.view.viewRect(to).center() + stage.view.viewRect(from).center()) / 2;
        stage.view.panBy(off.x(), off.y()); // both in sight
        QVERIFY(stage.view.rect().contains(stage.middle(to)));
        const QPoint start = stage.view.gestures().handleRect(from).center().toPoint();
        QVERIFY(stage.view.rect().contains(start));
        stage.press(start);
        stage.move(start + QPoint(12, 4));
        QVERIFY(stage.view.gestures().dragging());
        QVERIFY(!stage.gesture().proposal());
        stage.move(stage.middle(to));
        QVERIFY(stage.gesture().proposal());
        stage.view.grab();
        stage.release(stage.middle(to));
        QCOMPARE(stage.host.commits.size(), 1U);
        const Row row = stage.written();
        const auto *rule = std::get_if<OpOrderRule>(&row.rule);
        QVERIFY(rule != nullptr);
        QVERIFY(stage.host.selectedBy(stage.written()) == stage.copiesOf(".attn.softmax"));
        Row second;
        second.selector = rule->second;
        QVERIFY(stage.host.selectedBy(second) == stage.copiesOf(".mlp.c_fc"));
    }

    void anOrderAgainstTheDataIsRefused()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t from = select(stage, kName);
        stage.view.zoomBy(0.7 / stage.view.camera().scale);
        const std::int32_t to = stage.boxOf("h.0.attn.softmax");
        const QPointF off = QRectF(stage.view.rect()).center()
            - (stage.view.viewRect(to).center() + stage.view.viewRect(from).center()) / 2;
        stage.view.panBy(off.x(), off.y()); // both in sight
        QVERIFY(stage.view.rect().contains(stage.middle(to)));
        const QPoint start = stage.view.gestures().handleRect(from).center().toPoint();
        QVERIFY(stage.view.rect().contains(start));
        stage.press(start);
        stage.move(start + QPoint(12, 4));
        stage.move(stage.middle(to));
        QVERIFY(stage.gesture().proposal() && stage.gesture().proposal()->refusal);
        QVERIFY(!stage.gesture().proposal()->cycle.empty());
        QCOMPARE(stage.view.cursor().shape(), Qt::ForbiddenCursor);
        stage.view.grab();
        stage.release(stage.middle(to));
        expectNothing(stage);
        stage.press(start);
        stage.move(start + QPoint(12, 4));
        QTest::keyClick(&stage.view, Qt::Key_Escape);
        expectNothing(stage);
    }

    void tOpensALineThatSplits()
    {
        Stage stage("mesh dp=2 tp=4\n");
        openOneLayer(stage);
        select(stage, kName);
        QTest::keyClick(&stage.view, Qt::Key_T);
        auto *editor = qobject_cast<SplitEditor *>(stage.view.gestures().editor());
        QVERIFY(editor != nullptr && editor->isVisible());
        QVERIFY(stage.view.rect().contains(editor->geometry()));
        QVERIFY(stage.host.shown != nullptr); // live from the start
        auto *spin = editor->findChild<QSpinBox *>();
        auto *dimension = editor->findChildren<QComboBox *>().front();
        dimension->setCurrentIndex(dimension->count() - 1);
        QTest::keyClick(spin, Qt::Key_Up);
        QCOMPARE(editor->parts(), 4);
        QCOMPARE(stage.gesture().parts(), 4);
        QVERIFY(stage.gesture().proposal()->accepted());
        QVERIFY(stage.host.commits.empty());
        stage.view.grab();
        QTest::keyClick(spin, Qt::Key_Return);
        QCOMPARE(stage.host.commits.size(), 1U);
        QCOMPARE(std::get<OpTransRule>(stage.written().rule).steps[0].parts, 4);
        QVERIFY(stage.host.selectedBy(stage.written()) == stage.copiesOf(".mlp.c_fc"));
        QVERIFY(stage.view.hasFocus());
        expectNothing(stage, 1);
    }

    void theSplitLineTakesAnAxisAndIsAbandonedByEscape()
    {
        Stage stage("mesh dp=2 tp=4\n");
        openOneLayer(stage);
        select(stage, kName);
        QTest::keyClick(&stage.view, Qt::Key_T);
        auto *editor = qobject_cast<SplitEditor *>(stage.view.gestures().editor());
        QVERIFY(editor != nullptr);
        auto *axis = editor->findChildren<QComboBox *>().back();
        QCOMPARE(axis->count(), 3);
        axis->setCurrentIndex(2);
        QCOMPARE(stage.gesture().axis(), std::string("tp"));
        QTest::keyClick(axis, Qt::Key_Escape);
        expectNothing(stage);
        QTest::keyClick(&stage.view, Qt::Key_T, Qt::ShiftModifier);
        editor = qobject_cast<SplitEditor *>(stage.view.gestures().editor());
        QVERIFY(editor != nullptr && editor->kind() == SplitKind::Replicate);
        axis = editor->findChildren<QComboBox *>().back();
        axis->setCurrentIndex(1);
        QTest::keyClick(axis, Qt::Key_Return);
        QCOMPARE(stage.host.commits.size(), 1U);
        const auto step = std::get<OpTransRule>(stage.written().rule).steps[0];
        QVERIFY(step.kind == SplitKind::Replicate);
        QCOMPARE(step.axis, std::string("dp"));
    }

    void aLineWithAMistakeStaysWithTheReason()
    {
        Stage stage;
        openOneLayer(stage);
        select(stage, kName);
        QTest::keyClick(&stage.view, Qt::Key_G);
        auto *editor = qobject_cast<PlaceEditor *>(stage.view.gestures().editor());
        QVERIFY(editor != nullptr);
        auto *line = editor->findChild<QLineEdit *>();
        QTest::keyClicks(line, QStringLiteral("9"));
        QVERIFY(editor->problem().contains(QStringLiteral("no device 9")));
        QTest::keyClick(line, Qt::Key_Return);
        QVERIFY(stage.view.gestures().editor() == editor);
        QVERIFY(stage.host.commits.empty());
        QTest::keyClick(line, Qt::Key_Backspace);
        QTest::keyClicks(line, QStringLiteral("4-5"));
        QVERIFY(editor->problem().isEmpty());
        QTest::keyClick(line, Qt::Key_Return);
        QCOMPARE(stage.host.commits.size(), 1U);
        QVERIFY(std::get<OpAssignRule>(stage.written().rule).devices == (std::vector {DeviceId {4}, DeviceId {5}}));
    }

    void bPicksWhatRunsLaterByName()
    {
        Stage stage;
        openOneLayer(stage);
        select(stage, "h.0.attn.softmax");
        QTest::keyClick(&stage.view, Qt::Key_B);
        auto *editor = qobject_cast<OrderEditor *>(stage.view.gestures().editor());
        QVERIFY(editor != nullptr);
        auto *line = editor->findChild<QLineEdit *>();
        QTest::keyClicks(line, QStringLiteral("MLP.C_FC"));
        QCOMPARE(editor->choice(), 0);
        QTest::keyClick(line, Qt::Key_Down);
        QCOMPARE(editor->choice(), 1);
        QVERIFY(stage.gesture().proposal());
        QTest::keyClick(line, Qt::Key_Up);
        QTest::keyClicks(line, QStringLiteral("nothing"));
        QCOMPARE(editor->choice(), -1);
        QVERIFY(!editor->problem().isEmpty());
        QTest::keyClick(line, Qt::Key_Escape);
        expectNothing(stage);
    }

    void keysWithoutALineWriteAtOnce()
    {
        Stage stage;
        openOneLayer(stage);
        select(stage, kName);
        QTest::keyClick(&stage.view, Qt::Key_R);
        QCOMPARE(stage.host.commits.size(), 1U);
        QVERIFY(std::holds_alternative<RecomputeRule>(stage.written().rule));
        QTest::keyClick(&stage.view, Qt::Key_P);
        QCOMPARE(stage.host.commits.size(), 2U);
        QTest::keyClick(&stage.view, Qt::Key_G, Qt::ControlModifier);
        auto *editor = qobject_cast<StageEditor *>(stage.view.gestures().editor());
        QVERIFY(editor != nullptr);
        QTest::keyClick(editor->findChild<QSpinBox *>(), Qt::Key_Up);
        QTest::keyClick(editor->findChild<QSpinBox *>(), Qt::Key_Return);
        const auto stages = stage.host.commits.size();
        QCOMPARE(stages, 3U);
        QVERIFY(std::holds_alternative<StageRule>(stage.written().rule));
        QCOMPARE(std::get<StageRule>(stage.written().rule).index, 1);
        QTest::keyClick(&stage.view, Qt::Key_Delete);
        QCOMPARE(stage.host.commits.size(), 4U);
        QVERIFY(stage.host.rows().empty());
        QTest::keyClick(&stage.view, Qt::Key_P, Qt::ShiftModifier); // nothing is left to free
        QCOMPARE(stage.host.commits.size(), 4U);
    }

    void nothingSelectedIsSaidNotDone()
    {
        Stage stage;
        openOneLayer(stage);
        QTest::keyClick(&stage.view, Qt::Key_Escape);
        stage.selection.clear();
        QSignalSpy notes(&stage.view, &DagView::noted);
        stage.view.focusBox(-1);
        for (const int key : {Qt::Key_T, Qt::Key_G, Qt::Key_B, Qt::Key_R, Qt::Key_P, Qt::Key_Delete})
            QTest::keyClick(&stage.view, static_cast<Qt::Key>(key));
        QCOMPARE(notes.count(), 6);
        expectNothing(stage);
    }

    void anAxisFromElsewhereIsDroppedOnAChip()
    {
        Stage stage("mesh dp=2 tp=4\n");
        openOneLayer(stage);
        select(stage, kName);
        const auto &chips = stage.view.gestures().chips();
        const auto index = static_cast<std::int32_t>(chips.size()) - 1;
        const QPoint place = stage.view.gestures().chipRect(index).center().toPoint();
        QMimeData data;
        data.setData(QStringLiteral("application/x-planloom-axis"), "tp");
        const auto enter = [&](QPoint at) {
            QDragEnterEvent entering(at, Qt::CopyAction, &data, Qt::LeftButton, {});
            QApplication::sendEvent(&stage.view, &entering);
            QDragMoveEvent moving(at, Qt::CopyAction, &data, Qt::LeftButton, {});
            QApplication::sendEvent(&stage.view, &moving);
            return moving.isAccepted();
        };
        QVERIFY(enter(place));
        QCOMPARE(stage.gesture().axis(), std::string("tp"));
        QDragLeaveEvent leaving;
        QApplication::sendEvent(&stage.view, &leaving);
        expectNothing(stage);
        QVERIFY(enter(place));
        QDropEvent drop(place, Qt::CopyAction, &data, Qt::LeftButton, {});
        QApplication::sendEvent(&stage.view, &drop);
        QVERIFY(drop.isAccepted());
        QCOMPARE(stage.host.commits.size(), 1U);
        const auto step = std::get<OpTransRule>(stage.written().rule).steps[0];
        QCOMPARE(step.axis, std::string("tp"));
        expectNothing(stage, 1);
        // Beside every box there is nothing to drop it on.
        QVERIFY(!enter(QPoint(2, 2)));
        QApplication::sendEvent(&stage.view, &leaving);
        QMimeData other;
        other.setText(QStringLiteral("hello"));
        QDragEnterEvent foreign(place, Qt::CopyAction, &other, Qt::LeftButton, {});
        foreign.ignore();
        QApplication::sendEvent(&stage.view, &foreign);
        QVERIFY(!foreign.isAccepted());
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
        QVERIFY(std::get<OpAssignRule>(stage.written().rule).devices == std::vector {DeviceId {3}});
        QVERIFY(stage.host.selectedBy(stage.written()) == stage.copiesOf(".mlp.c_fc"));
        expectNothing(stage, 1);
    }

    void everyGestureIsAnActionWithANameAndAShortcut()
    {
        Stage stage;
        for (const char *name : {"dag.split", "dag.replicate", "dag.place", "dag.order", "dag.recompute", "dag.hold",
                 "dag.free", "dag.stage", "dag.remove"}) {
            auto *action = stage.view.findChild<QAction *>(QLatin1String(name));
            QVERIFY2(action != nullptr, name);
            QVERIFY(!action->text().isEmpty());
            QVERIFY(!action->shortcut().isEmpty());
            QCOMPARE(action->shortcutContext(), Qt::WidgetShortcut);
            QVERIFY(stage.view.actions().contains(action));
        }
    }

    void aPlanThatComesInTheMiddleOfADragDoesNotDisturbIt()
    {
        Stage stage;
        openOneLayer(stage);
        select(stage, kName);
        const auto last = static_cast<std::int32_t>(stage.view.gestures().chips().size()) - 1;
        const QPoint start = stage.view.gestures().chipRect(last).center().toPoint();
        stage.press(start);
        stage.view.setPlan(stage.host.context->plan); // before it is a drag
        Q_EMIT stage.host.contextChanged();
        stage.move(start + QPoint(0, 20));
        QCOMPARE(stage.gesture().chip(), last);
        stage.view.setPlan(nullptr); // and after
        Q_EMIT stage.host.contextChanged();
        stage.move(start + QPoint(0, 40));
        stage.release(start + QPoint(0, 40));
        QCOMPARE(stage.host.commits.size(), 1U);
        QCOMPARE(std::get<OpTransRule>(stage.written().rule).steps[0].parts, 4);
    }

    void aClickOnAChipOpensItsLine()
    {
        Stage stage;
        openOneLayer(stage);
        select(stage, kName);
        const auto last = static_cast<std::int32_t>(stage.view.gestures().chips().size()) - 1;
        const std::int32_t dimension = stage.view.gestures().chips().back().dimension;
        const QPoint place = stage.view.gestures().chipRect(last).center().toPoint();
        stage.press(place);
        stage.release(place);
        auto *editor = qobject_cast<SplitEditor *>(stage.view.gestures().editor());
        QVERIFY(editor != nullptr);
        QCOMPARE(stage.gesture().chips()[static_cast<std::size_t>(editor->chip())].dimension, dimension);
        QTest::keyClick(editor->findChild<QSpinBox *>(), Qt::Key_Escape);
        expectNothing(stage);
    }

    void aModelThatGoesEndsWhatIsUnderWay()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        stage.press(stage.middle(box));
        stage.move(stage.middle(box) + QPoint(0, 20));
        stage.move(stage.view.gestures().tileRect(1).center().toPoint());
        stage.view.setGraph(nullptr);
        stage.host.context = nullptr;
        expectNothing(stage);
        stage.release(QPoint(10, 10));
        QVERIFY(!stage.view.grab().isNull());
    }

    void aHostThatGoesLeavesACanvasThatShows()
    {
        DagView view;
        view.resize(800, 600);
        {
            FakeGestureHost host;
            const auto graph = trainingStepOf(kGpt);
            host.context = designOf(graph, 2);
            view.setGraph(graph);
            view.setGestureHost(&host);
            view.show();
            QTRY_VERIFY(view.isSettled() && view.picture());
        }
        QTest::keyClick(&view, Qt::Key_T);
        QTest::mouseClick(&view, Qt::LeftButton, {}, QPoint(300, 200));
        QVERIFY(!view.grab().isNull());
    }
};

QTEST_MAIN(DagGesturesTest)
#include "dag_gestures_test.moc"
