// What the window keeps in sight, what it remembers, and what it offers where there is no plan.

#include <QtCore/QObject>
#include <QtGui/QAction>
#include <QtTest/QTest>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QToolBar>

#include "tests/e2e/window_for_tests.h"
#include "tests/qt_test.h"
#include "widgets/common/format.h"
#include "widgets/compare/compare_view.h"
#include "widgets/inspector/kind_meanings.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/gallery_panel.h"
#include "widgets/main/inspector_panel.h"
#include "widgets/main/locator.h"
#include "widgets/main/preferences_dialog.h"
#include "widgets/main/start_page.h"
#include "widgets/problems/problems_panel.h"
#include "widgets/status/status_pill.h"

#include <algorithm>
#include <memory>

using namespace planloom;

namespace {

constexpr const char *kTwoByTwo = "3d:dp=1,tp=2,pp=2,schedule=1f1b,micro-batches=4";

void openIn(MainWindow &window, const std::string &gallery, int devices = 4)
{
    window.workspace().openWith({kSmallGpt, {}, {}}, "dgx-a100", devices, gallery);
    QTRY_VERIFY_WITH_TIMEOUT(window.isSettled() && window.workspace().latest()
            && window.workspace().latest()->final && !window.workspace().isStale(),
        kPatience);
}

/// Words of the ways out that the panel offers, in their order.
QStringList offered(const MainWindow &window)
{
    QStringList words;
    for (const QPushButton *button : window.problems()->findChildren<QPushButton *>())
        if (!button->isHidden())
            words << button->accessibleName();
    return words;
}

QPushButton *way(const MainWindow &window, const QString &words)
{
    for (QPushButton *button : window.problems()->findChildren<QPushButton *>())
        if (button->accessibleName().startsWith(words))
            return button;
    return nullptr;
}

} // namespace

class WindowChoicesTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    // --- in sight

    void inASmallWindowStateAndRunStayAndDocksAreTabs()
    {
        WindowForTests at;
        at.window->resize(1024, 700);
        openIn(*at.window, kTwoByTwo);
        QCOMPARE(at.window->width(), 1024);
        const auto isInSight = [&](const QWidget *widget) {
            return widget && widget->isVisible()
                && at.window->rect().contains(
                    QRect(widget->mapTo(at.window.get(), QPoint()), widget->size()));
        };
        auto *bar = at.window->findChild<QToolBar *>(QStringLiteral("stateToolBar"));
        QVERIFY(bar);
        QTRY_VERIFY(isInSight(at.window->pill()));
        QVERIFY(isInSight(bar->widgetForAction(at.window->commands().find(QStringLiteral("run.run")))));
        QTRY_VERIFY(at.window->docks().isFolded());
        const QDockWidget *inspector = at.window->docks().find(QStringLiteral("inspector"));
        QVERIFY(!inspector->visibleRegion().isEmpty());
        QVERIFY(at.dag()->width() > 0.6 * at.window->width());
        QCOMPARE(at.timeline()->verticalScrollBar()->maximum(), 0); // every lane is there
        at.window->resize(1600, 1000);
        QTRY_VERIFY(!at.window->docks().isFolded());
        QVERIFY(isInSight(at.window->pill()));
    }

    // --- ways out

    void fewerDevicesThanTheRowsNeedLeadBackOrToASearch()
    {
        WindowForTests at;
        openIn(*at.window, kTwoByTwo);
        const auto three = [&] {
            at.workspace().setDeviceCount(3);
            QTRY_VERIFY_WITH_TIMEOUT(at.workspace().latest() && at.workspace().latest()->final
                    && !at.workspace().latest()->conflicts.empty() && at.window->isSettled(),
                kPatience);
            at.window->docks().reveal(QStringLiteral("problems"));
            QTRY_VERIFY_WITH_TIMEOUT(way(*at.window, QStringLiteral("undo")), kPatience);
            QTRY_VERIFY_WITH_TIMEOUT(way(*at.window, QStringLiteral("find best plan")), kPatience);
        };
        three();
        QCOMPARE(offered(*at.window).first(), QStringLiteral("find best plan"));
        QVERIFY(offered(*at.window)[1].startsWith(QStringLiteral("undo")));
        for (const QPushButton *button : at.window->problems()->findChildren<QPushButton *>())
            QVERIFY2(!button->accessibleName().endsWith(QStringLiteral("row 1 off")), // then there is no mesh
                qPrintable(button->accessibleName()));
        way(*at.window, QStringLiteral("undo"))->click();
        QTRY_VERIFY_WITH_TIMEOUT(
            at.settled() && at.workspace().deviceCount() == 4 && !at.workspace().latest()->error, kPatience);
        QVERIFY(at.workspace().latest()->conflicts.empty());
        three();
        way(*at.window, QStringLiteral("find best plan"))->click();
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && at.workspace().latest()->scene, kPatience);
        QCOMPARE(at.workspace().deviceCount(), 3);
        QVERIFY(at.workspace().latest()->conflicts.empty());
        QVERIFY(!at.workspace().latest()->firstError());
    }

    void wherePlansNeedTooMuchASearchIsAmongTheWaysAndHalfWaysAreNot()
    {
        WindowForTests at;
        openIn(*at.window, "single");
        const auto whole = at.workspace().lastGood()->summary.largestPeak.count;
        const auto limit = std::to_string(whole * 6 / 10 / 1024) + "KiB";
        at.workspace().setTableText(at.workspace().tableText() + "limit memory " + limit + "\n");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && at.workspace().latest()->brokenLimitCount() == 1, kPatience);
        at.window->docks().reveal(QStringLiteral("problems"));
        QTRY_VERIFY_WITH_TIMEOUT(way(*at.window, QStringLiteral("find best plan")), kPatience);
        QVERIFY(way(*at.window, QStringLiteral("undo")));
        QTRY_VERIFY_WITH_TIMEOUT(offered(*at.window).size() >= 2, kPatience);
        way(*at.window, QStringLiteral("find best plan"))->click();
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && at.workspace().latest()->scene
                && at.workspace().latest()->brokenLimitCount() == 0,
            kPatience);
    }

    // --- one window a session

    void aSessionThatIsOpenInAnotherWindowComesToTheFront()
    {
        const QTemporaryDir folder;
        WindowForTests first(folder.path());
        openIn(*first.window, kTwoByTwo);
        first.workspace().setTableText(first.workspace().tableText() + "# mine\n");
        QTRY_VERIFY_WITH_TIMEOUT(!first.workspace().path().isEmpty() && first.settled(), kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(first.workspace().isAcknowledged(), kPatience);
        WindowForTests second(folder.path());
        second.window->openHere(first.workspace().path());
        QVERIFY(!second.workspace().isOpening());
        QTRY_COMPARE(QApplication::activeWindow(), first.window.get());
        QVERIFY(!second.workspace().model());
    }

    // --- what is remembered

    void aNewSessionBeginsAsTheLastOneWasLeft()
    {
        WindowServices services;
        services.settings = std::make_shared<Settings>();
        {
            MainWindow window(services);
            window.resize(1600, 1000);
            window.show();
            openIn(window, kTwoByTwo);
            QVERIFY(window.trigger(QStringLiteral("view.perspectiveRun")));
            window.docks().find(QStringLiteral("inspector"))->close();
            QVERIFY(window.trigger(QStringLiteral("view.beside")));
            window.setColouring(TimelineColouring::Stage);
            QVERIFY(window.trigger(QStringLiteral("view.reducedMotion")));
            QVERIFY(window.close());
        }
        MainWindow window(services);
        window.resize(1600, 1000);
        window.show();
        QVERIFY(window.commands().find(QStringLiteral("view.reducedMotion"))->isChecked());
        openIn(window, kTwoByTwo);
        QCOMPARE(window.docks().current(), QStringLiteral("run"));
        QVERIFY(window.docks().find(QStringLiteral("run"))->isVisible());
        QVERIFY(window.docks().find(QStringLiteral("inspector"))->isHidden());
        QCOMPARE(
            window.findChild<QSplitter *>(QStringLiteral("window.splitter"))->orientation(), Qt::Horizontal);
        QCOMPARE(window.timeline()->colouring(), TimelineColouring::Stage);
    }

    void whatWasClosedInTheComparisonBeginsWithItsPlan()
    {
        WindowServices services;
        services.settings = std::make_shared<Settings>();
        {
            MainWindow window(services);
            window.resize(1600, 1000);
            window.show();
            openIn(window, kTwoByTwo);
            window.docks().find(QStringLiteral("model"))->close();
            QTRY_VERIFY(services.settings->keysUnder(QStringLiteral("view/"))
                            .contains(QStringLiteral("window.docks")));
            window.docks().apply(QStringLiteral("compare"));
            QTRY_VERIFY(window.compare() && window.compare()->isVisible());
            QVERIFY(window.close());
        }
        MainWindow window(services);
        window.resize(1600, 1000);
        window.show();
        openIn(window, kTwoByTwo);
        QCOMPARE(window.docks().current(), QStringLiteral("design"));
        QVERIFY(window.dag()->isVisible());
        QVERIFY(window.docks().find(QStringLiteral("gallery"))->isVisible());
        QVERIFY(window.docks().find(QStringLiteral("model"))->isHidden());
    }

    void fullScreenGivesBackWhatWas()
    {
        WindowForTests at;
        openIn(*at.window, kTwoByTwo);
        for (const bool maximized : {false, true}) {
            maximized ? at.window->showMaximized() : at.window->showNormal();
            const QSize before = at.window->size();
            QVERIFY(at.window->trigger(QStringLiteral("view.fullScreen")));
            QTRY_VERIFY(at.window->isFullScreen());
            QVERIFY(at.window->trigger(QStringLiteral("view.fullScreen")));
            QTRY_VERIFY(!at.window->isFullScreen());
            QCOMPARE(at.window->isMaximized(), maximized);
            QTRY_COMPARE(at.window->size(), before);
        }
    }

    void motionIsReducedByMenuAndPreferences()
    {
        WindowForTests at;
        openIn(*at.window, kTwoByTwo);
        QTRY_VERIFY_WITH_TIMEOUT(at.dag()->isSettled() && at.dag()->picture(), kPatience);
        QAction *still = at.window->commands().find(QStringLiteral("view.reducedMotion"));
        QVERIFY(still && !still->isChecked());
        QVERIFY(at.window->trigger(QStringLiteral("edit.preferences")));
        auto *box = at.window->preferences()->findChild<QCheckBox *>();
        QVERIFY(box && !box->isChecked());
        box->click();
        QVERIFY(still->isChecked());
        // What opens is where it belongs in the first picture that has it.
        const auto before = at.dag()->picture();
        at.dag()->expandAll();
        QTRY_VERIFY_WITH_TIMEOUT(at.dag()->picture() != before, kPatience);
        const QRectF first = at.dag()->viewRect(boxOf(at, "h.0.mlp.c_fc"));
        QTest::qWait(400); // longer than nodes move
        QCOMPARE(at.dag()->viewRect(boxOf(at, "h.0.mlp.c_fc")), first);
        QVERIFY(at.window->trigger(QStringLiteral("view.reducedMotion")));
        QVERIFY(!box->isChecked());
        at.window->preferences()->close();
    }

    // --- what is said stays true

    void theInspectorSaysWhatAKindDoesAndHowThePlanKeepsItsTensors()
    {
        WindowForTests at;
        openIn(*at.window, kTwoByTwo);
        at.window->selection().select({at.named("h.1.mlp.c_fc")});
        const auto told = [&] { return at.window->inspector()->toPlainText(); };
        QTRY_VERIFY(told().contains(meaningOfKind(OperatorKind::Linear)));
        QTRY_VERIFY2(told().contains(QStringLiteral(", in this plan bfloat16")), qPrintable(told()));
        at.workspace().setTableText(at.workspace().tableText() + "precision all : fp32\n");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        QTRY_VERIFY2(!told().contains(QStringLiteral("in this plan")), qPrintable(told()));
    }

    void theGallerySpeaksOfThePlanAndModelThatThereAre()
    {
        WindowForTests at;
        openIn(*at.window, "single");
        GalleryPanel *gallery = at.window->gallery();
        gallery->setSpec(QStringLiteral("data-parallel"));
        const auto now = [&] {
            return QStringLiteral(", now %1 ")
                .arg(QString::fromStdString(formatSeconds(at.workspace().lastGood()->summary.stepSeconds)));
        };
        QTRY_VERIFY2_WITH_TIMEOUT(
            gallery->effect().contains(now()), qPrintable(gallery->effect()), kPatience);
        const QString before = now();
        at.workspace().setTableText(at.workspace().tableText() + "recompute layer:0-3 per layer\n");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled() && now() != before, kPatience);
        QTRY_VERIFY2_WITH_TIMEOUT(
            gallery->effect().contains(now()), qPrintable(gallery->effect()), kPatience);
        // A reason not to apply it belongs to the model that it was said of.
        gallery->setRefusal(QStringLiteral("Not applied."));
        at.workspace().openWith(
            {"zoo:gpt?layers=2&hidden=64&heads=4&seq=16&vocab=64&batch=8", {}, {}}, "dgx-a100", 4, "single");
        QTRY_VERIFY_WITH_TIMEOUT(at.settled(), kPatience);
        QVERIFY(gallery->refusal().isEmpty());
    }

    void thePaletteSaysThatNothingIsCalledSo()
    {
        WindowForTests at;
        openIn(*at.window, kTwoByTwo);
        Locator *locator = at.window->locator();
        locator->open(true);
        QTRY_VERIFY(locator->isVisible());
        const auto first = [locator] {
            return locator->model()->entries().empty() ? QString()
                                                       : locator->model()->entries().front().title;
        };
        QTest::keyClicks(locator->line(), QStringLiteral("qqzzxx"));
        QTRY_COMPARE_WITH_TIMEOUT(first(), QStringLiteral("Nothing is called \"qqzzxx\""), kPatience);
        locator->line()->clear();
        QTest::keyClicks(locator->line(), QStringLiteral("export picture"));
        QTRY_VERIFY_WITH_TIMEOUT(locator->isSettled(), kPatience);
        QTRY_COMPARE_WITH_TIMEOUT(
            locator->model()->entries().front().command, QStringLiteral("file.exportPicture"), kPatience);
        locator->close();
    }

    // --- the start page by keyboard

    void returnOpensTheCardThatHasTheKeyboard()
    {
        WindowForTests at;
        auto *card = at.window->findChild<SampleCard *>();
        QVERIFY(card && card->isVisible());
        card->setFocus();
        QTest::keyClick(card, Qt::Key_Return);
        QTRY_VERIFY_WITH_TIMEOUT(at.workspace().model() != nullptr, kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(at.window->isSettled(), kPatience);
    }
};

PLANLOOM_QTEST(WindowChoicesTest)

#include "window_choices_test.moc"
