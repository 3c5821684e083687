#include <QtTest/QtTest>

#include <QtGui/QAction>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QSpinBox>

#include "tests/qt_test.h"
#include "tests/widgets/dag/gesture_stage.h"
#include "widgets/dag/dag_line_editors.h"

#include <algorithm>
#include <variant>

using namespace planloom;

/// Orders and lines on the canvas, and what ends a gesture.
class DagGesturesTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theHandleOrdersOneBeforeAnother()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t from = select(stage, "h.0.attn.attention");
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
        QVERIFY(stage.host.selectedBy(stage.written()) == stage.copiesOf(".attn.attention"));
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
        const std::int32_t to = stage.boxOf("h.0.attn.attention");
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
        // What a letter means stands beside it, as on the chips.
        int told = 0;
        for (int i = 0; i < dimension->count(); ++i) {
            const DimensionChip &chip =
                stage.view.gestures().chips()[static_cast<std::size_t>(dimension->itemData(i).toInt())];
            QVERIFY(dimension->itemText(i).contains(QString::fromStdString(chip.meaning)));
            told += chip.meaning.empty() ? 0 : 1;
        }
        QVERIFY(told > 0);
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
        QVERIFY(
            std::get<OpAssignRule>(stage.written().rule).devices == (std::vector{DeviceId{4}, DeviceId{5}}));
    }

    void bPicksWhatRunsLaterByName()
    {
        Stage stage;
        openOneLayer(stage);
        select(stage, "h.0.attn.attention");
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

    void everyGestureIsAnActionWithANameAndAShortcut()
    {
        Stage stage;
        for (const char *name : {"dag.split", "dag.replicate", "dag.place", "dag.order", "dag.recompute",
                 "dag.hold", "dag.free", "dag.stage", "dag.remove"}) {
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

    void aModelThatGoesEndsWhatIsUnderWay()
    {
        Stage stage;
        openOneLayer(stage);
        const std::int32_t box = select(stage, kName);
        stage.lift(box);
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

PLANLOOM_QTEST(DagGesturesTest)
#include "dag_gestures_test.moc"
