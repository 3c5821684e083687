#include <QtTest/QtTest>

#include <QtCore/QMimeData>
#include <QtGui/QContextMenuEvent>
#include <QtGui/QDragEnterEvent>
#include <QtGui/QWheelEvent>
#include <QtWidgets/QMenu>
#include <QtWidgets/QSpinBox>

#include "tests/qt_test.h"
#include "tests/widgets/dag/gesture_stage.h"
#include "widgets/dag/dag_line_editors.h"

#include <algorithm>
#include <variant>

using namespace planloom;

/// Splitting operators by hand on the canvas: chips and axes.
class DagGesturesSplitTest : public QObject
{
    Q_OBJECT

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
            // The meaning is on the chip, which is as wide as what is written on it.
            QVERIFY(!expected[i].meaning.empty());
            QFont bold(stage.view.font());
            bold.setBold(true);
            const QString text = QString::fromStdString(expected[i].label + " " + expected[i].meaning);
            QVERIFY(chip.width() > QFontMetricsF(bold).horizontalAdvance(text));
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
        QVERIFY(
            stage.view.gestures().tag().contains(QString::fromStdString(stage.host.previews.back().words)));
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
        const auto &name = stage.graph->at(stage.named(kName))
                               .annotation.dimensions[static_cast<std::size_t>(dimension)]
                               .name;
        QCOMPARE(rule->steps[0].dimension.name, name);
        QVERIFY(stage.host.selectedBy(stage.written()) == stage.copiesOf(".mlp.c_fc"));
        QCOMPARE(stage.copiesOf(".mlp.c_fc").size(), 4U);
        expectNothing(stage, 1);
    }

    void pushingAChipInPutsTogetherWhatIsSplit()
    {
        Stage stage("split name:*.mlp.c_fc : n by 4\n");
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        const QPoint start = stage.chip("n", true);
        const QPoint inside = stage.middle(box);
        stage.press(start);
        stage.move(inside);
        QVERIFY(stage.gesture().isPushed());
        QVERIFY(stage.gesture().proposal() && stage.gesture().proposal()->accepted());
        QVERIFY2(stage.gesture().proposal()->words.rfind("no longer split", 0) == 0,
            stage.gesture().proposal()->words.c_str());
        stage.move(start + QPoint(0, 40)); // out again: split as far as that is
        QVERIFY(!stage.gesture().isPushed());
        QVERIFY(stage.gesture().parts() > 1);
        stage.move(inside); // and back: given up
        QVERIFY(!stage.gesture().isPushed());
        stage.release(inside);
        expectNothing(stage);
        stage.press(start);
        stage.move(inside);
        QVERIFY(stage.gesture().isPushed());
        QTest::keyClick(&stage.view, Qt::Key_Escape);
        stage.release(inside);
        expectNothing(stage);
        stage.press(start);
        stage.move(inside);
        stage.release(inside);
        QCOMPARE(stage.host.commits.size(), 1U);
        QVERIFY2(
            stage.host.context->document.table().rows.empty(), stage.host.context->document.text().c_str());
        // What is whole already stays so.
        stage.host.context = designOf(stage.graph, 8, "");
        Q_EMIT stage.host.contextChanged();
        const QPoint whole = stage.chip("n", true);
        stage.press(whole);
        stage.move(inside);
        stage.release(inside);
        expectNothing(stage, 1);
    }

    void wheelAndDigitsSetThePartsExactly()
    {
        Stage stage;
        openOneLayer(stage);
        select(stage, kName);
        const QPoint start =
            stage.view.gestures()
                .chipRect(static_cast<std::int32_t>(stage.view.gestures().chips().size()) - 1)
                .center()
                .toPoint();
        const QPoint place = start + QPoint(0, 10);
        stage.press(start);
        stage.move(place);
        QCOMPARE(stage.gesture().parts(), 2);
        const DagCamera before = stage.view.camera();
        for (const int turn : {120, 120, -120}) {
            QWheelEvent wheel(QPointF(place), stage.view.mapToGlobal(QPointF(place)), {}, QPoint(0, turn),
                Qt::LeftButton, {}, Qt::NoScrollPhase, false);
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
        const QPoint start =
            stage.view.gestures()
                .chipRect(static_cast<std::int32_t>(stage.view.gestures().chips().size()) - 1)
                .center()
                .toPoint();
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
        for (const auto &[held, kind] : {std::pair{Qt::ShiftModifier, SplitKind::Replicate},
                 std::pair{Qt::ControlModifier, SplitKind::Value}}) {
            select(stage, kName);
            const QPoint start =
                stage.view.gestures()
                    .chipRect(static_cast<std::int32_t>(stage.view.gestures().chips().size()) - 1)
                    .center()
                    .toPoint();
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
        const QPoint start =
            stage.view.gestures()
                .chipRect(static_cast<std::int32_t>(stage.view.gestures().chips().size()) - 1)
                .center()
                .toPoint();
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
        const std::int32_t box = select(stage, "h.0.attn.attention");
        QCOMPARE(stage.view.gestures().chipBox(), box);
        const auto &chips = stage.view.gestures().chips();
        const auto locked = std::find_if(
            chips.begin(), chips.end(), [](const DimensionChip &chip) { return !chip.locked.empty(); });
        QVERIFY(locked != chips.end());
        const QString why = QString::fromStdString(locked->locked);
        const QPoint start = stage.view.gestures()
                                 .chipRect(static_cast<std::int32_t>(locked - chips.begin()))
                                 .center()
                                 .toPoint();
        QMouseEvent hover(QEvent::MouseMove, QPointF(start), stage.view.mapToGlobal(QPointF(start)),
            Qt::NoButton, Qt::NoButton, {});
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
};

PLANLOOM_QTEST(DagGesturesSplitTest)
#include "dag_gestures_split_test.moc"
