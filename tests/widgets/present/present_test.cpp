#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QToolBar>

#include "tests/widgets/present/talk_window.h"
#include "widgets/main/notice_bar.h"
#include "widgets/present/notes_window.h"
#include "widgets/present/spotlight.h"

#include <algorithm>
#include <set>

using namespace planloom;

namespace {

/// What must be as it was when a talk is over.
struct WindowLooks {
    QByteArray docks{};
    QString perspective{};
    std::set<QString> shownDocks{};
    QRect geometry{};
    Qt::WindowStates state{};
    bool menus = false;
    bool tools = false;
    bool status = false;
    QFont type{};
    StepId step = 0;
    std::int32_t branch = 0;
    std::size_t steps = 0;
    TimelineColouring colouring{};
    std::vector<OperatorId> selected{};
    std::string timeline{};
    bool playhead = false;
};

WindowLooks looksOf(const TalkWindow &at)
{
    WindowLooks looks;
    MainWindow &window = *at.window;
    looks.docks = window.docks().state();
    looks.perspective = window.docks().current();
    for (const QDockWidget *dock : window.docks().docks())
        if (!dock->isHidden())
            looks.shownDocks.insert(dock->objectName());
    looks.geometry = window.geometry();
    looks.state = window.windowState();
    looks.menus = !window.menuBar()->isHidden();
    looks.tools = !window.findChild<QToolBar *>()->isHidden();
    looks.status = !window.statusBar()->isHidden();
    looks.type = window.timeline()->font();
    looks.step = window.workspace().history().current();
    looks.branch = window.workspace().history().branch();
    looks.steps = window.workspace().history().steps().size();
    looks.colouring = window.timeline()->colouring();
    looks.selected = window.selection().selected();
    looks.timeline = window.timeline()->viewState();
    looks.playhead = at.timeline()->hasPlayhead();
    return looks;
}

void compareLooks(const WindowLooks &now, const WindowLooks &before)
{
    QCOMPARE(now.perspective, before.perspective);
    QVERIFY(now.shownDocks == before.shownDocks);
    QCOMPARE(now.geometry, before.geometry);
    QCOMPARE(now.state, before.state);
    QVERIFY(now.menus == before.menus && now.tools == before.tools && now.status == before.status);
    QCOMPARE(now.type, before.type);
    QCOMPARE(now.step, before.step);
    QCOMPARE(now.branch, before.branch);
    QCOMPARE(now.steps, before.steps);
    QCOMPARE(now.colouring, before.colouring);
    QVERIFY(now.selected == before.selected);
    QCOMPARE(now.timeline, before.timeline);
    QCOMPARE(now.playhead, before.playhead);
    QCOMPARE(now.docks, before.docks);
}

} // namespace

/// Scenes are made, ordered and kept; they are presented by keys, and all is as it was when a talk is over.
class PresentTest : public QObject
{
    Q_OBJECT

private:
    /// Three scenes: two plans, a selection, a moment.
    static void makeThree(TalkWindow &at)
    {
        at.openPipeline();
        at.makeScene(QStringLiteral("first"));
        at.workspace().applyGallery("pipeline:schedule=gpipe,micro-batches=4");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && at.workspace().history().current() != kRootStep, kLong);
        at.window->selection().select({OperatorId{2}, OperatorId{3}});
        at.window->setColouring(TimelineColouring::Stage);
        at.makeScene(QStringLiteral("second"));
        QTRY_VERIFY(at.playback().scene() != nullptr);
        at.playback().seek(1000);
        at.makeScene(QStringLiteral("third"));
        at.playback().stop();
        at.window->selection().clear();
        at.window->setColouring(TimelineColouring::Direction);
        QCOMPARE(at.names(), (QStringList{"first", "second", "third"}));
    }

private Q_SLOTS:
    void scenesAreMadeByKeyOrderedAndKept()
    {
        const QTemporaryDir folder;
        QString path;
        {
            TalkWindow at(folder.path());
            makeThree(at);
            at.window->docks().reveal(QStringLiteral("scenes"));
            QListView *list = at.panel()->list();
            QTRY_VERIFY(list->isVisible());
            at.panel()->setCurrentRow(0);
            QTest::keyClick(list, Qt::Key_Down, Qt::AltModifier);
            QCOMPARE(at.names(), (QStringList{"second", "first", "third"}));
            QCOMPARE(at.panel()->currentRow(), 1);
            QTest::keyClick(list, Qt::Key_Up, Qt::AltModifier);
            QTest::keyClick(list, Qt::Key_Delete);
            QCOMPARE(at.names(), (QStringList{"second", "third"}));
            QVERIFY(at.window->notices().isShown(QStringLiteral("scene")));
            const StepId step = at.workspace().history().current();
            list->setFocus();
            QTest::keyClick(list, Qt::Key_Z, Qt::ControlModifier);
            QCOMPARE(at.names(), (QStringList{"first", "second", "third"}));
            QCOMPARE(at.workspace().history().current(), step); // the design has its own Undo
            at.panel()->setCurrentRow(1);
            QTest::keyClicks(at.panel()->note(), QStringLiteral("what to say"));
            QTest::keyClick(list, Qt::Key_F2);
            auto *editor = list->findChild<QLineEdit *>();
            QVERIFY(editor);
            editor->selectAll();
            QTest::keyClicks(editor, QStringLiteral("renamed"));
            QTest::keyClick(editor, Qt::Key_Return);
            QTRY_COMPARE(at.names(), (QStringList{"first", "renamed", "third"}));
            QTRY_VERIFY(!at.workspace().path().isEmpty());
            path = at.workspace().path();
            QTest::qWait(600); // for the view's timer
            QVERIFY(at.workspace().finishSaving(std::chrono::seconds(20)));
        }
        TalkWindow again(folder.path());
        again.workspace().openSession(path);
        QTRY_VERIFY_WITH_TIMEOUT(again.settled(), kLong);
        QCOMPARE(again.names(), (QStringList{"first", "renamed", "third"}));
        const Scene &scene = again.scenes()->scenes()[1];
        QCOMPARE(scene.note, QStringLiteral("what to say"));
        QVERIFY(scene.selected == (std::vector<std::pair<std::int32_t, std::int32_t>>{{2, 2}}));
        QCOMPARE(scene.colouring, static_cast<int>(TimelineColouring::Stage));
        QCOMPARE(again.scenes()->scenes()[2].moment, std::optional<double>(1000));
    }

    void scenesAloneAreWorthAFile()
    {
        const QTemporaryDir folder;
        TalkWindow at(folder.path());
        at.openPipeline();
        QVERIFY(at.workspace().path().isEmpty());
        at.makeScene(QStringLiteral("only"));
        QVERIFY(!at.workspace().path().isEmpty());
        QVERIFY(at.workspace().finishSaving(std::chrono::seconds(20)));
    }

    void aSceneGoesToItsStepAndAddsNothing()
    {
        TalkWindow at;
        makeThree(at);
        const History &history = at.workspace().history();
        const StepId last = history.current();
        const std::size_t steps = history.steps().size();
        const QString rows = QString::fromStdString(at.workspace().tableText());
        QSignalSpy shown(at.stage(), &SceneStage::shown);
        at.stage()->show(at.scenes()->scenes()[0]);
        QTRY_COMPARE_WITH_TIMEOUT(shown.count(), 1, kLong);
        QVERIFY(history.current() != last);
        QVERIFY(QString::fromStdString(at.workspace().tableText()) != rows);
        QCOMPARE(history.steps().size(), steps);
        QVERIFY(at.workspace().canRedo());
        QVERIFY(!at.timeline()->hasPlayhead());
        at.stage()->show(at.scenes()->scenes()[2]);
        QTRY_COMPARE_WITH_TIMEOUT(shown.count(), 2, kLong);
        QCOMPARE(history.current(), last);
        QCOMPARE(QString::fromStdString(at.workspace().tableText()), rows);
        QCOMPARE(at.timeline()->colouring(), TimelineColouring::Stage);
        QVERIFY(at.window->selection().selected() == (std::vector<OperatorId>{{2}, {3}}));
        QCOMPARE(*at.playback().time(), 1000.0);
        Scene gone = at.scenes()->scenes()[0];
        gone.step = 999;
        QSignalSpy refused(at.stage(), &SceneStage::refused);
        at.stage()->show(gone);
        QCOMPARE(refused.count(), 1);
        QCOMPARE(history.current(), last);
    }

    void presentedByKeysAllIsAsBefore()
    {
        TalkWindow at;
        makeThree(at);
        at.scenes()->change(1, {}, [](Scene &scene) { scene.canvases = SceneCanvases::Timeline; });
        at.window->docks().reveal(QStringLiteral("memory"), false);
        at.window->selection().select({OperatorId{1}});
        at.window->dag()->setFocus();
        QTest::qWait(50);
        const WindowLooks before = looksOf(at);
        at.panel()->setCurrentRow(0);
        at.press(Qt::Key_F5, Qt::ShiftModifier);
        QVERIFY(at.presenter()->isPresenting());
        QVERIFY(at.window->isFullScreen());
        QVERIFY(at.window->menuBar()->isHidden() && at.window->statusBar()->isHidden());
        for (const QDockWidget *dock : at.window->docks().docks())
            QVERIFY2(dock->isHidden(), qPrintable(dock->objectName()));
        QVERIFY(at.timeline()->font().pointSizeF() > 1.3 * before.type.pointSizeF());
        QCOMPARE(at.presenter()->current(), 0);
        QTRY_VERIFY_WITH_TIMEOUT(!at.stage()->isShowing(), kLong);
        QVERIFY2(at.presenter()->strip()->text().contains(QStringLiteral("1 of 3")),
            qPrintable(at.presenter()->strip()->text()));
        at.press(Qt::Key_Right);
        QCOMPARE(at.presenter()->current(), 1);
        QTRY_VERIFY_WITH_TIMEOUT(!at.stage()->isShowing(), kLong);
        QVERIFY(!at.dag()->isVisible() && at.timeline()->isVisible());
        at.press(Qt::Key_1);
        QVERIFY(at.dag()->isVisible());
        at.press(Qt::Key_Space);
        at.press(Qt::Key_PageDown);
        QCOMPARE(at.presenter()->current(), 2);
        QTRY_VERIFY_WITH_TIMEOUT(!at.stage()->isShowing(), kLong);
        QVERIFY(at.timeline()->hasPlayhead());
        at.press(Qt::Key_P);
        QVERIFY(at.playback().isPlaying());
        at.press(Qt::Key_P);
        QVERIFY(!at.playback().isPlaying());
        at.press(Qt::Key_Home);
        QCOMPARE(at.presenter()->current(), 0);
        at.press(Qt::Key_End);
        at.press(Qt::Key_Left);
        QCOMPARE(at.presenter()->current(), 1);
        at.press(Qt::Key_F11); // does nothing in a talk
        QVERIFY(at.window->isFullScreen());
        at.press(Qt::Key_Escape);
        QVERIFY(!at.presenter()->isPresenting());
        QTRY_VERIFY_WITH_TIMEOUT(!at.stage()->isShowing(), kLong);
        QTRY_COMPARE(at.window->geometry(), before.geometry);
        QTest::qWait(100);
        compareLooks(looksOf(at), before);
    }

    void fullScreenStaysFullScreen()
    {
        TalkWindow at;
        at.openPipeline();
        at.window->trigger(QStringLiteral("view.fullScreen"));
        QVERIFY(at.window->isFullScreen());
        QVERIFY(at.window->trigger(QStringLiteral("view.present")));
        at.press(Qt::Key_Escape);
        QVERIFY(!at.presenter()->isPresenting() && at.window->isFullScreen());
        at.window->trigger(QStringLiteral("view.fullScreen"));
        QVERIFY(!at.window->isFullScreen());
    }

    void withoutScenesTheWindowIsPresentedAsItIs()
    {
        TalkWindow at;
        at.openPipeline();
        const WindowLooks before = looksOf(at);
        QVERIFY(at.window->trigger(QStringLiteral("view.present")));
        QVERIFY(at.presenter()->isPresenting());
        QCOMPARE(at.presenter()->current(), -1);
        QVERIFY(at.presenter()->strip()->text().contains(at.workspace().title()));
        for (const Qt::Key which : {Qt::Key_Right, Qt::Key_Left, Qt::Key_End, Qt::Key_A})
            at.press(which);
        QCOMPARE(at.presenter()->current(), -1);
        at.press(Qt::Key_F5, Qt::ShiftModifier);
        QVERIFY(!at.presenter()->isPresenting());
        QTest::qWait(100);
        compareLooks(looksOf(at), before);
        const TalkWindow none;
        QVERIFY(!none.window->trigger(QStringLiteral("view.present"))); // nothing is open
    }

    void scenesPlayOneAfterTheOther()
    {
        TalkWindow at;
        makeThree(at);
        for (int row = 0; row < 3; ++row)
            at.scenes()->change(row, {}, [](Scene &scene) { scene.seconds = 1; });
        QVERIFY(at.window->trigger(QStringLiteral("view.playScenes")));
        QCOMPARE(at.presenter()->current(), 0);
        QVERIFY(at.presenter()->isRunning());
        QTRY_COMPARE_WITH_TIMEOUT(at.presenter()->current(), 2, kLong);
        QTRY_VERIFY_WITH_TIMEOUT(!at.presenter()->isRunning(), kLong); // it stays at the last
        QCOMPARE(at.presenter()->current(), 2);
        at.press(Qt::Key_Escape);
    }

    void notesFollowAndTheTimerHides()
    {
        TalkWindow at;
        makeThree(at);
        at.scenes()->change(0, {}, [](Scene &scene) { scene.note = QStringLiteral("say this"); });
        at.panel()->setCurrentRow(0);
        at.window->trigger(QStringLiteral("view.present"));
        at.press(Qt::Key_N);
        NotesWindow *notes = at.presenter()->notes();
        QVERIFY(notes && notes->isVisible() && notes->isWindow());
        QCOMPARE(notes->noteText(), QStringLiteral("say this"));
        QVERIFY(notes->nextText().contains(QStringLiteral("second")));
        QCOMPARE(notes->timeText(), QStringLiteral("0:00 of 3:00"));
        QTest::keyClick(notes, Qt::Key_Right); // its keys are those of the talk
        QCOMPARE(at.presenter()->current(), 1);
        QCOMPARE(notes->noteText(), QString());
        QVERIFY(at.presenter()->strip()->isTimerShown());
        at.press(Qt::Key_T);
        QVERIFY(!at.presenter()->strip()->isTimerShown());
        at.press(Qt::Key_B);
        QVERIFY(at.presenter()->strip()->isHidden());
        at.press(Qt::Key_Escape);
        QVERIFY(!notes->isVisible());
    }

    void theSpotlightIsBrightAroundThePointerAlone()
    {
        TalkWindow at;
        at.openPipeline();
        at.window->trigger(QStringLiteral("view.present"));
        QTRY_VERIFY(at.dag()->isSettled());
        Spotlight *light = at.presenter()->spotlight();
        at.press(Qt::Key_S);
        QVERIFY(light->isOn());
        QVERIFY(light->testAttribute(Qt::WA_TransparentForMouseEvents));
        QCOMPARE(light->size(), at.window->size());
        const QPoint place = at.window->rect().center();
        QCursor::setPos(at.window->mapToGlobal(place));
        QTRY_COMPARE(light->place(), place);
        QTest::qWait(50);
        const QImage lit = at.window->grab().toImage();
        at.press(Qt::Key_S);
        QVERIFY(!light->isOn());
        QTest::qWait(50);
        const QImage plain = at.window->grab().toImage();
        const auto lightness = [](const QImage &image, QPoint at) {
            return QColor(image.pixel(at)).lightness();
        };
        QCOMPARE(lightness(lit, place), lightness(plain, place));
        const QPoint corner(4, 4);
        QVERIFY(lightness(lit, corner) < lightness(plain, corner) * 3 / 4);
        at.press(Qt::Key_Escape);
    }

    void brokenScenesOfASessionAreSaid()
    {
        const QTemporaryDir folder;
        QString path;
        {
            TalkWindow at(folder.path());
            at.openPipeline();
            at.makeScene(QStringLiteral("one"));
            at.workspace().setView(SceneList::kViewKey, "{\"version\":1,\"scenes\":[{\"name\":7}]}");
            path = at.workspace().path();
            QTest::qWait(600);
            QVERIFY(at.workspace().finishSaving(std::chrono::seconds(20)));
        }
        TalkWindow again(folder.path());
        again.workspace().openSession(path);
        QTRY_VERIFY_WITH_TIMEOUT(again.settled(), kLong);
        QCOMPARE(again.scenes()->rowCount(), 0);
        QVERIFY(again.scenes()->problem().contains(QStringLiteral("scene 1 has no name")));
    }
};

PLANLOOM_QTEST(PresentTest)
#include "present_test.moc"
