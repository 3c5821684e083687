#include <QtCore/QMimeData>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>

#include "tests/qt_test.h"
#include "widgets/design/workspace.h"
#include "widgets/scenes/scene_list.h"

#include <memory>

using namespace planloom;

namespace {

QStringList namesOf(const SceneList &list)
{
    QStringList names;
    for (const Scene &scene : list.scenes())
        names << scene.name;
    return names;
}

} // namespace

/// The list of scenes: order, names, taking back, what is kept in the session's view state.
class SceneListTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void itIsOrderedAndTakenBack()
    {
        Workspace workspace;
        SceneList list(&workspace);
        const QAbstractItemModelTester tester(&list, QAbstractItemModelTester::FailureReportingMode::QtTest);
        for (const char *name : {"a", "b", "c", "d"})
            QVERIFY(list.add({.name = QLatin1String(name)}, list.rowCount() - 1) >= 0);
        QCOMPARE(namesOf(list).join(QString()), QStringLiteral("abcd"));
        QCOMPARE(list.add({.name = QStringLiteral("x")}, 1), 2);
        QCOMPARE(namesOf(list).join(QString()), QStringLiteral("abxcd"));
        list.move(2, 4);
        QCOMPARE(namesOf(list).join(QString()), QStringLiteral("abcdx"));
        list.move(4, 0);
        QCOMPARE(namesOf(list).join(QString()), QStringLiteral("xabcd"));
        list.move(0, -1);
        list.move(0, 5);
        QCOMPARE(namesOf(list).join(QString()), QStringLiteral("xabcd"));
        list.remove(1);
        list.rename(0, QStringLiteral("  new \n name "));
        list.rename(0, QStringLiteral("   "));
        QCOMPARE(namesOf(list), (QStringList{"new name", "b", "c", "d"}));
        list.undo();
        list.undo();
        QCOMPARE(namesOf(list).join(QString()), QStringLiteral("xabcd"));
        while (list.canUndo())
            list.undo();
        QCOMPARE(list.rowCount(), 0);
    }

    void aDragMovesARow()
    {
        Workspace workspace;
        SceneList list(&workspace);
        for (const char *name : {"a", "b", "c"})
            list.add({.name = QLatin1String(name)}, list.rowCount() - 1);
        QSignalSpy moved(&list, &SceneList::moved);
        const auto drag = [&](int from, int before) {
            const std::unique_ptr<QMimeData> data(list.mimeData({list.index(from)}));
            // False: or the view would remove the row that it dragged.
            QVERIFY(!list.dropMimeData(data.get(), Qt::MoveAction, before, 0, {}));
        };
        drag(0, 3);
        QCOMPARE(namesOf(list).join(QString()), QStringLiteral("bca"));
        drag(2, 0);
        QCOMPARE(namesOf(list).join(QString()), QStringLiteral("abc"));
        drag(1, 2); // where it is
        QCOMPARE(namesOf(list).join(QString()), QStringLiteral("abc"));
        QCOMPARE(moved.count(), 2);
        QMimeData foreign;
        foreign.setText(QStringLiteral("7"));
        QVERIFY(!list.dropMimeData(&foreign, Qt::MoveAction, 0, 0, {}));
        QCOMPARE(namesOf(list).join(QString()), QStringLiteral("abc"));
    }

    void keystrokesOfANoteAreTakenBackTogether()
    {
        Workspace workspace;
        SceneList list(&workspace);
        list.add({.name = QStringLiteral("a")}, -1);
        for (const char *note : {"h", "he", "hel"})
            list.change(0, QStringLiteral("note/0"), [&](Scene &scene) { scene.note = QLatin1String(note); });
        QCOMPARE(list.data(list.index(0), SceneList::NoteLineRole).toString(), QStringLiteral("hel"));
        list.undo();
        QCOMPARE(list.scenes()[0].note, QString());
    }

    void itIsKeptInTheViewAndReadFromIt()
    {
        Workspace workspace;
        {
            SceneList list(&workspace);
            list.add({.name = QStringLiteral("kept"), .note = QStringLiteral("n"), .seconds = 5}, -1);
        }
        const SceneList again(&workspace);
        QCOMPARE(namesOf(again), QStringList{QStringLiteral("kept")});
        QCOMPARE(again.scenes()[0].seconds, 5);
        workspace.setView(SceneList::kViewKey, "{broken");
        SceneList broken(&workspace);
        QCOMPARE(broken.rowCount(), 0);
        QVERIFY2(broken.problem().contains(QStringLiteral("cannot be read")), qPrintable(broken.problem()));
        QCOMPARE(workspace.view().at(SceneList::kViewKey), std::string("{broken")); // as long as none is made
        broken.add({.name = QStringLiteral("new")}, -1);
        QVERIFY(broken.problem().isEmpty());
        QCOMPARE(namesOf(SceneList(&workspace)), QStringList{QStringLiteral("new")});
    }

    void thereAreOnlySoMany()
    {
        Workspace workspace;
        workspace.setView(
            SceneList::kViewKey, sceneText(std::vector<Scene>(kMostScenes, {.name = QStringLiteral("s")})));
        SceneList list(&workspace);
        QCOMPARE(list.rowCount(), static_cast<int>(kMostScenes));
        QCOMPARE(list.add({.name = QStringLiteral("one more")}, 0), -1);
    }
};

PLANLOOM_QTEST(SceneListTest)
#include "scene_list_test.moc"
