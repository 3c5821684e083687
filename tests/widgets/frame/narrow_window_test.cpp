// What becomes of docks and tool bars where a window has no room for all of them.

#include <QtGui/QAction>
#include <QtTest/QTest>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLabel>
#include <QtWidgets/QMainWindow>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QToolBar>

#include "tests/qt_test.h"
#include "widgets/frame/dock_board.h"
#include "widgets/frame/settings.h"
#include "widgets/frame/tool_bars.h"

#include <memory>

using namespace planloom;

namespace {

/// A window with docks on three sides.
struct Docked {
    Docked()
        : board(&window, std::make_shared<Settings>())
    {
        window.setCentralWidget(new QPlainTextEdit);
        for (const char *name : {"model", "gallery"})
            board.add(QLatin1String(name), name, panel(), Qt::LeftDockWidgetArea, nullptr,
                name == std::string("gallery"));
        board.add(QStringLiteral("inspector"), "inspector", panel(), Qt::RightDockWidgetArea);
        board.add(QStringLiteral("rows"), "rows", panel(), Qt::BottomDockWidgetArea);
        board.addPerspective({QStringLiteral("design"), QStringLiteral("Design"),
            {QStringLiteral("model"), QStringLiteral("gallery"), QStringLiteral("inspector"),
                QStringLiteral("rows")},
            {QStringLiteral("rows")}});
    }
    void show(int width)
    {
        window.resize(width, 800);
        board.reset();
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
    }
    QDockWidget *dock(const char *name) const { return board.find(QLatin1String(name)); }
    bool areTabs() const
    {
        return window.tabifiedDockWidgets(dock("inspector")).size() == 2
            && window.dockWidgetArea(dock("model")) == window.dockWidgetArea(dock("inspector"));
    }
    static QWidget *panel()
    {
        auto *panel = new QPlainTextEdit;
        panel->setMinimumSize(20, 20);
        return panel;
    }

    QMainWindow window;
    DockBoard board;
};

} // namespace

class NarrowWindowTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void docksOfBothSidesBecomeTabsAndComeBack()
    {
        Docked at;
        at.show(1600);
        QVERIFY(!at.board.isFolded());
        QVERIFY(!at.areTabs());
        at.window.resize(1024, 700);
        QTRY_VERIFY(at.board.isFolded());
        QVERIFY(at.areTabs());
        // What is selected is told of in front; the centre has what two columns left it at 1,600.
        QTRY_VERIFY(!at.dock("inspector")->visibleRegion().isEmpty());
        QTRY_VERIFY(at.window.centralWidget()->width() >= 0.6 * at.window.width());
        QCOMPARE(at.window.dockWidgetArea(at.dock("rows")), Qt::BottomDockWidgetArea);
        at.dock("gallery")->close();
        at.window.resize(1600, 1000);
        QTRY_VERIFY(!at.board.isFolded());
        QVERIFY(!at.areTabs());
        QCOMPARE(at.window.dockWidgetArea(at.dock("model")), Qt::LeftDockWidgetArea);
        QVERIFY(at.dock("model")->isVisible());
        QVERIFY(at.dock("gallery")->isHidden()); // it was closed meanwhile
    }

    void whatIsRememberedOfANarrowWindowSuitsAWideOne()
    {
        QByteArray remembered;
        {
            Docked narrow;
            narrow.show(1024);
            QTRY_VERIFY(narrow.board.isFolded());
            narrow.dock("gallery")->close();
            remembered = narrow.board.state();
        }
        Docked wide;
        wide.show(1600);
        QVERIFY(wide.board.restore(remembered));
        QVERIFY(!wide.board.isFolded());
        QCOMPARE(wide.window.dockWidgetArea(wide.dock("model")), Qt::LeftDockWidgetArea);
        QVERIFY(wide.dock("gallery")->isHidden());
        Docked again;
        again.show(1024);
        QVERIFY(again.board.restore(remembered));
        QVERIFY(again.board.isFolded());
        QVERIFY(again.areTabs());
        QVERIFY(!again.board.restore(QByteArray("FOLDed and cut")));
    }

    void aPerspectiveOfANarrowWindowStaysNarrow()
    {
        Docked at;
        at.show(1024);
        at.board.reset();
        QTRY_VERIFY(at.board.isFolded());
        QVERIFY(at.areTabs());
        at.board.setShown(false);
        QVERIFY(at.dock("model")->isHidden());
        at.window.resize(1600, 800);
        QCoreApplication::processEvents();
        at.board.setShown(true);
        QVERIFY(!at.board.isFolded());
        QVERIFY(at.dock("model")->isVisible());
    }

    void deedsAndStateAreNeverBehindAnArrow()
    {
        QMainWindow window;
        ToolBars bars(&window);
        QAction tool(QStringLiteral("Tool with a long name"));
        QAction deed(QStringLiteral("Do It"));
        for (int i = 0; i < 6; ++i)
            bars.addChoice(QStringLiteral("&Choice %1").arg(i),
                new QLabel(QStringLiteral("something that is chosen")), i >= 4 ? 6 - i : 0);
        bars.addTool(&tool);
        bars.addDeed(&deed);
        auto *state = new QLabel(QStringLiteral("State"));
        state->setAccessibleName(QStringLiteral("state"));
        bars.addState(state, 20);
        QAction last(QStringLiteral("Run"));
        bars.addDeed(&last);
        window.show();
        for (const int width : {2400, 1200, 900, 600}) {
            window.resize(width, 300);
            QVERIFY(QTest::qWaitForWindowExposed(&window));
            bars.fit();
            QCoreApplication::processEvents();
            for (QWidget *always : {static_cast<QWidget *>(state), bars.deeds()->widgetForAction(&deed),
                     bars.deeds()->widgetForAction(&last)}) {
                QTRY_VERIFY2(always->isVisible(), qPrintable(QString::number(width)));
                const QRect place(always->mapTo(&window, QPoint()), always->size());
                QVERIFY2(window.rect().contains(place), qPrintable(QString::number(width)));
            }
            QCOMPARE(window.width(), width); // they don't make it larger
        }
        state->setText(QString(400, QLatin1Char('x'))); // too long for any window
        bars.fitState();
        QCoreApplication::processEvents();
        QVERIFY(state->width() < 0.5 * window.width());
        QVERIFY(window.rect().contains(
            QRect(bars.deeds()->widgetForAction(&last)->mapTo(&window, QPoint()), QSize(1, 1))));
    }
};

PLANLOOM_QTEST(NarrowWindowTest)

#include "narrow_window_test.moc"
