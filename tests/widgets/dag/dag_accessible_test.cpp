#include <QtTest/QtTest>

#include <QtGui/QAccessible>

#include "tests/qt_test.h"
#include "tests/widgets/dag/fake_gesture_host.h"
#include "widgets/dag/dag_painter.h"
#include "widgets/dag/dag_view.h"

using namespace planloom;

class DagAccessibleTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void boxesInSightAreChildrenWithNamesAndDescriptions()
    {
        DagView view;
        view.resize(900, 700);
        const auto graph = trainingStepOf("zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=128");
        view.setGraph(graph);
        view.setPlan(designOf(graph, 2, "place layer:0-1 : devices 1\n")->plan);
        view.show();
        QTRY_VERIFY(view.isSettled() && view.picture());
        auto *canvas = QAccessible::queryAccessibleInterface(&view);
        QVERIFY(canvas != nullptr);
        QCOMPARE(canvas->role(), QAccessible::Canvas);
        const auto picture = view.picture();
        QCOMPARE(canvas->childCount(), static_cast<int>(picture->visible.boxes.size()) - 1);
        for (int i = 0; i < canvas->childCount(); ++i) {
            auto *box = canvas->child(i);
            QVERIFY(box != nullptr && box->isValid());
            QVERIFY(!box->text(QAccessible::Name).isEmpty());
            QVERIFY(box->text(QAccessible::Description).contains(QStringLiteral("devices")));
            QCOMPARE(canvas->indexOfChild(box), i);
            QCOMPARE(box->parent(), canvas);
            QVERIFY(!box->rect().isEmpty());
            QCOMPARE(box->state().expandable,
                picture->outline->at(picture->visible.at(i + 1).item).kind != OutlineItem::Kind::Operator);
        }
        QCOMPARE(canvas->child(-1), nullptr);
        QCOMPARE(canvas->child(100000), nullptr);
    }

    void theFocusedNodeAndItsNeighboursAreTold()
    {
        DagView view;
        view.resize(900, 700);
        view.setGraph(trainingStepOf("zoo:mlp?layers=3"));
        view.show();
        QTRY_VERIFY(view.isSettled() && view.picture());
        auto *canvas = QAccessible::queryAccessibleInterface(&view);
        QTest::keyClick(&view, Qt::Key_Down);
        QVERIFY(view.focusedBox() > 0);
        auto *focused = canvas->focusChild();
        QVERIFY(focused != nullptr);
        QCOMPARE(canvas->indexOfChild(focused), view.focusedBox() - 1);
        int uses = 0;
        for (const auto &edge : view.picture()->visible.edges)
            uses += edge.from == view.focusedBox() ? 1 : 0;
        QCOMPARE(static_cast<int>(focused->relations(QAccessible::Controller).size()), uses);
        auto *actions = focused->actionInterface();
        QVERIFY(actions != nullptr);
        actions->doAction(QAccessibleActionInterface::pressAction());
        QVERIFY(focused->state().selected);
        const QPoint middle = view.mapToGlobal(view.viewRect(view.focusedBox()).center().toPoint());
        QCOMPARE(canvas->childAt(middle.x(), middle.y()), focused);
        QVERIFY(view.accessibleDescription().contains(QStringLiteral("Focus")));
    }

    void boxesOfAPictureThatHasGoneAreInvalid()
    {
        DagView view;
        view.resize(900, 700);
        view.setReducedMotion(true);
        view.setGraph(trainingStepOf("zoo:gpt?layers=4&hidden=64&heads=4&seq=16&vocab=128"));
        view.show();
        QTRY_VERIFY(view.isSettled() && view.picture());
        auto *canvas = QAccessible::queryAccessibleInterface(&view);
        auto *box = canvas->child(0);
        QVERIFY(box->isValid());
        view.collapseAll();
        QTRY_VERIFY(view.isSettled());
        QVERIFY(!box->isValid());
        QVERIFY(box->text(QAccessible::Name).isEmpty());
        QVERIFY(canvas->child(0)->isValid());
        view.setGraph(nullptr);
        QCOMPARE(canvas->childCount(), 0);
    }
};

PLANLOOM_QTEST(DagAccessibleTest)
#include "dag_accessible_test.moc"
