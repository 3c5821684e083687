#include <QtCore/QObject>
#include <QtGui/QAction>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QTableView>
#include <QtWidgets/QToolButton>

#include "tests/qt_test.h"
#include "widgets/design/workspace.h"
#include "widgets/history/history_model.h"
#include "widgets/history/history_panel.h"
#include "widgets/history/name_bar.h"

using namespace planloom;

namespace {

constexpr const char *kSmall = "zoo:mlp?layers=2&hidden=32&batch=8";

void open(Workspace &workspace)
{
    workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "single");
    QTRY_VERIFY_WITH_TIMEOUT(workspace.lastGood() && !workspace.isStale() && !workspace.isPlanning(), kLong);
}

QRect rectOf(QTableView *list, int row)
{
    return list->visualRect(list->model()->index(row, HistoryModel::Words));
}

} // namespace

class HistoryPanelTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void clicksAndEnterGoToSteps()
    {
        Workspace workspace;
        open(workspace);
        HistoryPanel panel(&workspace);
        panel.resize(900, 400);
        panel.show();
        QVERIFY(QTest::qWaitForWindowExposed(&panel));
        const int first = panel.model()->rowCount();
        workspace.setTableText("mesh dp=2\n");
        QVERIFY(workspace.setValue(QStringLiteral("note"), "note/1", "x"));
        QCOMPARE(panel.model()->rowCount(), first + 2);
        const StepId last = workspace.history().current();
        QCOMPARE(panel.list()->currentIndex().row(), static_cast<int>(last));

        QTest::mouseClick(panel.list()->viewport(), Qt::LeftButton, {},
            rectOf(panel.list(), static_cast<int>(last) - 1).center());
        QCOMPARE(workspace.history().current(), last - 1);
        QVERIFY(workspace.canRedo());
        QTest::keyClick(panel.list(), Qt::Key_Down);
        QCOMPARE(workspace.history().current(), last - 1); // arrows only look
        QTest::keyClick(panel.list(), Qt::Key_Return);
        QCOMPARE(workspace.history().current(), last);
    }

    void branchesAreMadeRenamedAndSwitched()
    {
        Workspace workspace;
        open(workspace);
        workspace.setTableText("mesh dp=2\n");
        HistoryPanel panel(&workspace);
        panel.resize(900, 400);
        panel.show();
        QVERIFY(QTest::qWaitForWindowExposed(&panel));
        panel.addBranch();
        QCOMPARE(workspace.history().branches().size(), std::size_t{2});
        QVERIFY(panel.nameBar()->isVisible());
        QLineEdit *line = panel.nameBar()->lineEdit();
        line->setText(QStringLiteral("main"));
        QVERIFY(!panel.nameBar()->remark().isEmpty()); // taken: said at the place
        QTest::keyClick(line, Qt::Key_Return);
        QVERIFY(panel.nameBar()->isVisible());
        line->selectAll();
        QTest::keyClicks(line, QStringLiteral("wide"));
        QTest::keyClick(line, Qt::Key_Return);
        QVERIFY(!panel.nameBar()->isVisible());
        QCOMPARE(workspace.history().branches()[1].name, std::string("wide"));

        auto *branches = panel.findChild<QComboBox *>();
        QCOMPARE(branches->count(), 2);
        QCOMPARE(branches->currentText(), QStringLiteral("wide"));
        branches->setFocus();
        QTest::keyClick(branches, Qt::Key_Up);
        QCOMPARE(workspace.history().branch(), 0);

        panel.focusCurrent();
        QTest::keyClick(panel.list(), Qt::Key_F2);
        QVERIFY(panel.nameBar()->isVisible());
        QTest::keyClicks(line, QStringLiteral("x"));
        QTest::keyClick(line, Qt::Key_Escape);
        QVERIFY(!panel.nameBar()->isVisible());
        QCOMPARE(workspace.history().branches()[0].name, std::string("main"));
    }

    void checkpointsAreNamedAndUnnamed()
    {
        Workspace workspace;
        open(workspace);
        workspace.setTableText("mesh dp=2\n");
        QVERIFY(workspace.setValue(QStringLiteral("note"), "note/1", "x"));
        HistoryPanel panel(&workspace);
        panel.resize(900, 400);
        panel.show();
        QVERIFY(QTest::qWaitForWindowExposed(&panel));
        auto *name = panel.findChild<QAction *>(QStringLiteral("history.nameCheckpoint"));
        QVERIFY(name->isEnabled());
        name->trigger();
        QTest::keyClicks(panel.nameBar()->lineEdit(), QStringLiteral("baseline"));
        QTest::keyClick(panel.nameBar()->lineEdit(), Qt::Key_Return);
        const StepId current = workspace.history().current();
        QCOMPARE(workspace.history().names().at("baseline"), current);
        QCOMPARE(
            panel.model()->index(static_cast<int>(current), 0).data(HistoryModel::NamesRole).toStringList(),
            QStringList{QStringLiteral("baseline")});
        panel.findChild<QAction *>(QStringLiteral("history.removeName"))->trigger();
        QVERIFY(workspace.history().names().empty());
        workspace.goTo(0);
        QVERIFY(!name->isEnabled());
    }

    void theFilterLineKeepsWhatHoldsTheWords()
    {
        Workspace workspace;
        open(workspace);
        QVERIFY(workspace.setValue(QStringLiteral("write a note"), "note/1", "x"));
        QVERIFY(workspace.setValue(QStringLiteral("set a bookmark"), "bookmark/1", "x"));
        HistoryPanel panel(&workspace);
        panel.resize(900, 400);
        panel.show();
        QVERIFY(QTest::qWaitForWindowExposed(&panel));
        const int all = panel.list()->model()->rowCount();
        panel.findChild<QAction *>(QStringLiteral("history.filter"))->trigger();
        auto *line = panel.findChild<QLineEdit *>(QStringLiteral("history.filterLine"));
        QVERIFY(line);
        QTest::keyClicks(line, QStringLiteral("NOTE"));
        QCOMPARE(panel.list()->model()->rowCount(), 1);
        line->clear();
        QCOMPARE(panel.list()->model()->rowCount(), all);
    }

    void everyControlIsNamedAndEveryActionHasText()
    {
        Workspace workspace;
        HistoryPanel panel(&workspace);
        for (const QAction *action : panel.actions()) {
            QVERIFY(!action->objectName().isEmpty());
            QVERIFY(!action->text().isEmpty());
        }
        for (const QToolButton *button : panel.findChildren<QToolButton *>()) {
            if (button->parentWidget() == &panel)
                QVERIFY(!button->accessibleName().isEmpty());
        }
        QVERIFY(!panel.list()->accessibleName().isEmpty());
    }
};

PLANLOOM_QTEST(HistoryPanelTest)
#include "history_panel_test.moc"
