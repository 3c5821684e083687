// The parts of the window's frame, each by itself.

#include <QtCore/QObject>
#include <QtCore/QTemporaryDir>
#include <QtGui/QAction>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLabel>
#include <QtWidgets/QMainWindow>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>

#include "sessions/session_lock.h"
#include "tests/qt_test.h"
#include "widgets/frame/application_style.h"
#include "widgets/frame/dock_board.h"
#include "widgets/frame/settings.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/locator.h"
#include "widgets/main/log_panel.h"
#include "widgets/main/notice_bar.h"
#include "widgets/main/recent_list.h"
#include "widgets/main/shortcut_model.h"
#include "widgets/main/start_page.h"

#include <fstream>

using namespace planloom;

class FrameTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void settingsStayInTheirFileAndTellOfChanges()
    {
        const QTemporaryDir folder;
        const QString file = folder.filePath(QStringLiteral("a.ini"));
        {
            Settings settings(file);
            const QSignalSpy spy(&settings, &Settings::changed);
            settings.setValue(QStringLiteral("theme"), QStringLiteral("dark"));
            settings.setValue(QStringLiteral("theme"), QStringLiteral("dark"));
            settings.setValue(QStringLiteral("perspectives/mine"), QByteArray("abc"));
            QCOMPARE(spy.count(), 2);
        }
        Settings again(file);
        QCOMPARE(again.value(QStringLiteral("theme")).toString(), QStringLiteral("dark"));
        QCOMPARE(again.keysUnder(QStringLiteral("perspectives/")), QStringList{QStringLiteral("mine")});
        again.setValue(QStringLiteral("theme"), {});
        QVERIFY(!again.value(QStringLiteral("theme")).isValid());
        Settings memory;
        memory.setValue(QStringLiteral("x/y"), 3);
        QCOMPARE(memory.keysUnder(QStringLiteral("x/")), QStringList{QStringLiteral("y")});
    }

    void theLogIsAProperModelThatKeepsTheLast()
    {
        LogModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        for (int i = 0; i < LogModel::kMostEntries + 5; ++i)
            model.add(LogKind::Plan, QString::number(i));
        QCOMPARE(model.rowCount(), LogModel::kMostEntries);
        QCOMPARE(model.index(0, LogModel::What).data().toString(), QStringLiteral("5"));
        model.add(LogKind::Plan, QString::number(LogModel::kMostEntries + 4)); // the same again
        QCOMPARE(model.rowCount(), LogModel::kMostEntries);
        QVERIFY(model.text().endsWith(QStringLiteral("%1\n").arg(LogModel::kMostEntries + 4)));
        model.clear();
        QCOMPARE(model.rowCount(), 0);
    }

    /// In a small window a long sentence is no narrow column beside its buttons.
    void noticesGiveTheirTextTheWidthItNeeds()
    {
        NoticeBar bar;
        QString sentence = QStringLiteral("One plan takes as long as it takes, and no other one is faster. ");
        sentence += sentence + sentence;
        bar.show({QStringLiteral("searched"), NoticeKind::Info, sentence,
            {{QStringLiteral("Show What Was Searched"), {}, true}, {QStringLiteral("Keep These Rows"), {}}},
            true});
        const auto *button = bar.button(QStringLiteral("searched"), QStringLiteral("Keep These Rows"));
        const auto labels = bar.findChildren<QLabel *>();
        const auto text = std::find_if(
            labels.begin(), labels.end(), [&](const QLabel *label) { return label->text() == sentence; });
        QVERIFY(button && text != labels.end());
        const auto placed = [&](const QWidget *widget) {
            return QRect(widget->mapTo(&bar, QPoint()), widget->size());
        };
        bar.resize(480, 200);
        bar.setVisible(true);
        QTRY_VERIFY(placed(button).top() >= placed(*text).bottom());
        QVERIFY((*text)->height() >= (*text)->heightForWidth((*text)->width()));
        bar.resize(1600, 200);
        QTRY_VERIFY(placed(button).left() > placed(*text).right());
    }

    void noticesWaitWithTheirButtons()
    {
        NoticeBar bar;
        int reloaded = 0;
        bar.show({QStringLiteral("model"), NoticeKind::Warning, QStringLiteral("It changed."),
            {{QStringLiteral("Reload"), [&reloaded] { ++reloaded; }}, {QStringLiteral("Keep"), {}}}, true});
        QCOMPARE(bar.textOf(QStringLiteral("model")), QStringLiteral("It changed."));
        QPushButton *reload = bar.button(QStringLiteral("model"), QStringLiteral("Reload"));
        QVERIFY(reload);
        // The same notice with another text keeps its buttons: one may be held down.
        bar.show({QStringLiteral("model"), NoticeKind::Warning, QStringLiteral("It changed again."),
            {{QStringLiteral("Reload"), [&reloaded] { reloaded += 10; }}, {QStringLiteral("Keep"), {}}},
            true});
        QCOMPARE(bar.button(QStringLiteral("model"), QStringLiteral("Reload")), reload);
        bar.show({QStringLiteral("other"), NoticeKind::Info, QStringLiteral("Something else."), {}, true});
        bar.resize(600, 100);
        QVERIFY(!bar.grab().isNull());
        QTest::mouseClick(reload, Qt::LeftButton);
        QCOMPARE(reloaded, 10);
        QVERIFY(!bar.isShown(QStringLiteral("model")));
        QVERIFY(bar.isShown(QStringLiteral("other")));
        bar.dismiss(QStringLiteral("other"));
        QVERIFY(bar.textOf(QStringLiteral("other")).isEmpty());
    }

    void shortcutsCanBeChangedAndClashesAreSaid()
    {
        QMainWindow window;
        auto settings = std::make_shared<Settings>();
        CommandRegistry registry(&window, settings);
        QAction *now = registry.add("solve.now", QStringLiteral("Solve &Now"), {QKeySequence(Qt::Key_F5)});
        registry.add("solve.live", QStringLiteral("&Live"), {QKeySequence(Qt::Key_F6)});
        auto *canvas = new QWidget(&window);
        auto *other = new QWidget(&window);
        for (QWidget *widget : {canvas, other}) {
            auto *action = new QAction(QStringLiteral("Split"), widget);
            action->setObjectName(
                widget == canvas ? QStringLiteral("dag.split") : QStringLiteral("timeline.split"));
            action->setShortcut(QKeySequence(Qt::Key_T));
            action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
            widget->addAction(action);
        }
        registry.rescan();
        QCOMPARE(registry.commands().size(), std::size_t{4});
        QVERIFY(registry.clashes().empty()); // the two canvases are different places
        ShortcutModel model(&registry);
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        QCOMPARE(model.rowCount(), 4);
        int row = 0;
        while (model.idAt(row) != QLatin1String("solve.now"))
            ++row;
        QVERIFY(model.setData(model.index(row, ShortcutModel::Keys),
            QVariant::fromValue(QKeySequence(Qt::Key_T)), Qt::EditRole));
        QCOMPARE(now->shortcut(), QKeySequence(Qt::Key_T));
        QCOMPARE(registry.clashes().size(), std::size_t{2});
        QVERIFY(
            model.index(row, ShortcutModel::Remark).data().toString().contains(QStringLiteral("neither")));
        // Another window of the same process learns of it.
        QMainWindow second;
        CommandRegistry secondRegistry(&second, settings);
        QCOMPARE(secondRegistry.add("solve.now", QStringLiteral("Solve Now"), {QKeySequence(Qt::Key_F5)})
                     ->shortcut(),
            QKeySequence(Qt::Key_T));
        registry.resetShortcut(QStringLiteral("solve.now"));
        QCOMPARE(now->shortcut(), QKeySequence(Qt::Key_F5));
        QVERIFY(registry.clashes().empty());
        now->trigger();
        QCOMPARE(registry.recent(), QStringList{QStringLiteral("solve.now")});
        QCOMPARE(CommandRegistry::plainText(*now), QStringLiteral("Solve Now"));
    }

    void docksLeaveTheCentreItsShareAndPerspectivesComeBack()
    {
        QMainWindow window;
        window.resize(1200, 800);
        window.setCentralWidget(new QPlainTextEdit);
        auto settings = std::make_shared<Settings>();
        DockBoard board(&window, settings);
        const auto panel = [] {
            auto *panel = new QPlainTextEdit;
            panel->setMinimumSize(20, 20);
            return panel;
        };
        board.add(QStringLiteral("Model"), "model", panel(), Qt::LeftDockWidgetArea);
        board.add(QStringLiteral("Inspector"), "inspector", panel(), Qt::RightDockWidgetArea);
        board.add(QStringLiteral("Rows"), "rows", panel(), Qt::BottomDockWidgetArea);
        board.add(QStringLiteral("Run"), "run", panel(), Qt::BottomDockWidgetArea);
        board.addPerspective({QStringLiteral("design"), QStringLiteral("Design"),
            {QStringLiteral("model"), QStringLiteral("inspector"), QStringLiteral("rows")},
            {QStringLiteral("rows")}});
        board.addPerspective(
            {QStringLiteral("run"), QStringLiteral("Run"), {QStringLiteral("run")}, {QStringLiteral("run")}});
        board.reset();
        window.show();
        QVERIFY(QTest::qWaitForWindowExposed(&window));
        window.resizeDocks({board.find(QStringLiteral("model")), board.find(QStringLiteral("inspector"))},
            {900, 900}, Qt::Horizontal);
        window.resizeDocks({board.find(QStringLiteral("rows"))}, {700}, Qt::Vertical);
        QTRY_VERIFY(window.centralWidget()->width() >= 0.59 * window.width());
        QTRY_VERIFY(window.centralWidget()->height() >= 0.56 * window.height());
        board.apply(QStringLiteral("run"));
        QVERIFY(!board.find(QStringLiteral("model"))->isVisible());
        QVERIFY(board.find(QStringLiteral("run"))->isVisible());
        board.find(QStringLiteral("model"))->show();
        board.saveOwn(QStringLiteral("mine"));
        QCOMPARE(board.ownPerspectives(), QStringList{QStringLiteral("mine")});
        board.apply(QStringLiteral("design"));
        QVERIFY(!board.find(QStringLiteral("run"))->isVisible());
        board.apply(QStringLiteral("mine"));
        QVERIFY(board.find(QStringLiteral("model"))->isVisible());
        QVERIFY(!board.find(QStringLiteral("rows"))->isVisible());
        board.reveal(QStringLiteral("rows"));
        QVERIFY(board.find(QStringLiteral("rows"))->isVisible());
        board.setShown(false);
        QVERIFY(!board.find(QStringLiteral("rows"))->isVisible());
        board.setShown(true);
        QVERIFY(board.find(QStringLiteral("rows"))->isVisible());
        board.removeOwn(QStringLiteral("mine"));
        QVERIFY(board.ownPerspectives().isEmpty());
        QVERIFY(!board.restore(QByteArray("nonsense")));
    }

    void recentSessionsAreShownMissingOnesStay()
    {
        const QTemporaryDir folder;
        const QString there = folder.filePath(QStringLiteral("there.planloom"));
        std::ofstream(there.toStdString()) << "x";
        RecentList list(folder.filePath(QStringLiteral("recent")));
        RecentSession session;
        session.path = there.toStdString();
        session.model = "gpt";
        session.opened = 1'700'000'000'000;
        list.add(session);
        session.path = folder.filePath(QStringLiteral("gone.planloom")).toStdString();
        list.add(session);
        QTRY_COMPARE(list.entries().size(), std::size_t{2});
        StartPage page(&list);
        page.resize(1000, 900);
        auto cards = page.findChildren<RecentCard *>();
        QCOMPARE(cards.size(), 2);
        QVERIFY(cards[0]->isMissing() != cards[1]->isMissing());
        QCOMPARE(page.recentSessions(), QStringList{there});
        const QSignalSpy chosen(&page, &StartPage::sessionChosen);
        const QSignalSpy locate(&page, &StartPage::locateAsked);
        for (RecentCard *card : cards)
            QTest::keyClick(card, Qt::Key_Space);
        QCOMPARE(chosen.count(), 1);
        QCOMPARE(locate.count(), 1);
        QVERIFY(!page.grab().isNull());
        list.remove(folder.filePath(QStringLiteral("gone.planloom")));
        QTRY_COMPARE(page.recentSessions().size(), 1);
        QTRY_COMPARE(list.entries().size(), std::size_t{1});
    }

    void aSessionThatWasCutOffIsOfferedToGoOn()
    {
        const QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("a.planloom"));
        std::ofstream(path.toStdString()) << "x";
        {
            const auto held = SessionLock::take(path.toStdString());
            QVERIFY(held.lock);
            QVERIFY(!wasCutOff(path.toStdString())); // somebody has it
        }
        QVERIFY(!wasCutOff(path.toStdString())); // closed as it should be
        std::ofstream(SessionLock::pathFor(path.toStdString()))
            << "process 1 on elsewhere\n"; // what a killed process leaves
        RecentList list(folder.filePath(QStringLiteral("recent")));
        RecentSession session;
        session.path = path.toStdString();
        session.opened = 1;
        list.add(session);
        StartPage page(&list);
        QTRY_VERIFY(page.findChild<QPushButton *>(QStringLiteral("continueButton")));
        list.refresh(); // looking again forgets nothing
        const QSignalSpy read(&list, &RecentList::changed);
        QTRY_VERIFY(!read.isEmpty());
        auto *button = page.findChild<QPushButton *>(QStringLiteral("continueButton"));
        QVERIFY(button);
        const QSignalSpy chosen(&page, &StartPage::sessionChosen);
        QTest::mouseClick(button, Qt::LeftButton);
        QCOMPARE(chosen.count(), 1);
        QCOMPARE(chosen.front().front().toString(), path);
    }

    void themesFollowTheDesktopOrThePreferences()
    {
        auto settings = std::make_shared<Settings>();
        ThemeKeeper keeper(qApp, settings);
        QVERIFY(keeper.followsDesktop());
        QWidget widget;
        const QSignalSpy spy(&keeper, &ThemeKeeper::themeChanged);
        for (const Theme theme :
            {Theme::Dark, Theme::HighContrastLight, Theme::HighContrastDark, Theme::Light}) {
            keeper.choose(nameForTheme(theme));
            QCOMPARE(keeper.theme(), theme);
            QWidget fresh;
            QCOMPARE(paletteFor(fresh).theme, theme);
            QCOMPARE(themeFromName(nameForTheme(theme)), std::optional<Theme>(theme));
        }
        QVERIFY(spy.count() >= 3);
        keeper.choose(QStringLiteral("system"));
        QVERIFY(keeper.followsDesktop());
        QCOMPARE(keeper.theme(), desktopTheme(*qApp));
        // The desktop says that it changed: nothing breaks, and the answer is still the desktop's.
        QEvent changed(QEvent::ThemeChange);
        QApplication::sendEvent(&widget, &changed);
        QCOMPARE(keeper.theme(), desktopTheme(*qApp));
    }

    void theLocatorsListIsAProperModel()
    {
        LocatorModel model;
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        LocatorEntry entry;
        entry.title = QStringLiteral("Solve Now");
        entry.keys = QStringLiteral("F5");
        LocatorEntry off = entry;
        off.enabled = false;
        model.setEntries({entry, off});
        QCOMPARE(model.rowCount(), 2);
        QVERIFY(model.flags(model.index(0)) & Qt::ItemIsEnabled);
        QVERIFY(!(model.flags(model.index(1)) & Qt::ItemIsEnabled));
        QVERIFY(model.index(0).data(Qt::AccessibleTextRole).toString().contains(QStringLiteral("F5")));
        model.setEntries({});
        QCOMPARE(model.rowCount(), 0);
    }
};

PLANLOOM_QTEST(FrameTest)
#include "frame_test.moc"
