// Nothing but painting keeps the GUI thread: GPT-2 small on eight devices, worked on with
// mouse and keyboard while the watchdog measures every event.
//
// What counts is processor time of the GUI thread, so that a busy machine makes nothing slow. The bound is
// that of an optimised build on a fast machine, times two: the tests are built with -O1, and processors
// differ. tests/bench/latency_bench holds the bound itself. Without optimisation, or with sanitisers,
// GuiWatchdog::buildFactor() multiplies it.
//
// Other sizes, by hand: PLANLOOM_GUI_MODEL, a gpt of the zoo with at least 12 layers, PLANLOOM_GUI_PLAN and
// PLANLOOM_GUI_DEVICES.

#include <QtCore/QObject>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLineEdit>

#include "tests/e2e/window_for_tests.h"
#include "tests/qt_test.h"
#include "widgets/common/gui_watchdog.h"
#include "widgets/compare/compare_view.h"
#include "widgets/main/locator.h"
#include "widgets/main/picture_dialog.h"
#include "widgets/table/rows_view.h"
#include "widgets/table/table_panel.h"

using namespace planloom;

namespace {

constexpr const char *kGpt2Small = "zoo:gpt?layers=12&hidden=768&heads=12&seq=1024&batch=16&vocab=50257";
constexpr int kAttempts = 3;
constexpr double kAllowance = 2;
constexpr const char *kPlan = "3d:dp=2,tp=2,pp=2,schedule=1f1b,micro-batches=8";

bool isGiven()
{
    return qEnvironmentVariableIsSet("PLANLOOM_GUI_MODEL");
}

std::string givenOr(const char *variable, const char *otherwise)
{
    return qEnvironmentVariable(variable, QString::fromLatin1(otherwise)).toStdString();
}

} // namespace

class GuiThreadTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        watchdog().setAllowance(kAllowance * GuiWatchdog::buildFactor());
        QVERIFY(QTest::qWaitForWindowExposed(m_at.window.get()));
        watchdog().watch(true);
    }
    void cleanupTestCase() { watchdog().watch(false); }

    void openingAModelAndPlanningIt()
    {
        measured([this] { doOpeningAModelAndPlanningIt(); });
    }
    void lookingAround()
    {
        measured([this] { doLookingAround(); });
    }
    void selecting()
    {
        measured([this] { doSelecting(); });
    }
    void dragsOnTheDag()
    {
        measured([this] { doDragsOnTheDag(); });
    }
    void dragsOnTheTimeline()
    {
        measured([this] { doDragsOnTheTimeline(); });
    }
    void undoAndRedo()
    {
        measured([this] { doUndoAndRedo(); });
    }
    void editingTheTable()
    {
        measured([this] { doEditingTheTable(); });
    }
    void everyDock()
    {
        measured([this] { doEveryDock(); });
    }
    void findingAndGoing()
    {
        measured([this] { doFindingAndGoing(); });
    }
    void anotherPlan()
    {
        measured([this] { doAnotherPlan(); });
    }
    void searching()
    {
        int attempt = 0;
        measured([this, &attempt] { doSearching(attempt++); });
        m_at.workspace().applyGallery(kPlan);
        QTRY_VERIFY_WITH_TIMEOUT(rests(), kPatience);
    }
    void pictures()
    {
        measured([this] { doPictures(); });
    }
    void comparing()
    {
        measured([this] { doComparing(); });
    }

private:
    void doOpeningAModelAndPlanningIt()
    {
        later([this] {
            m_at.workspace().openWith({givenOr("PLANLOOM_GUI_MODEL", kGpt2Small), {}, {}}, "dgx-a100",
                std::stoi(givenOr("PLANLOOM_GUI_DEVICES", "8")), givenOr("PLANLOOM_GUI_PLAN", kPlan));
        });
        QTRY_VERIFY_WITH_TIMEOUT(rests(), 2 * kPatience);
        QVERIFY(m_at.graph().operators.size() > 300);
    }

    void doLookingAround()
    {
        for (QWidget *canvas : {static_cast<QWidget *>(m_at.dag()), m_at.timeline()->viewport()}) {
            for (int i = 1; i < 40; ++i) {
                hover(canvas, QPoint(canvas->width() * i / 40, canvas->height() * (i % 7 + 1) / 9));
                wheel(canvas, canvas->rect().center(), i % 2 == 0 ? 120 : -120,
                    i % 3 == 0 ? Qt::ControlModifier : Qt::NoModifier);
                QCoreApplication::processEvents();
            }
        }
        m_at.dag()->setFocus();
        for (const char *id : {"view.expandAll", "view.collapseAll", "view.fitAll", "view.zoomIn",
                 "view.unrolled", "view.forwardOnly", "view.folded"}) {
            run(id);
            QTRY_VERIFY_WITH_TIMEOUT(m_at.dag()->isSettled(), kPatience);
        }
    }

    void doSelecting()
    {
        for (const char *name : {"h.0.mlp.c_fc", "h.11.attn.c_proj", "lm_head"}) {
            later([this, name] { m_at.window->selection().select({m_at.named(name)}); });
            QTest::qWait(50);
        }
        for (const char *id : {"select.similar", "select.successors", "select.sameDevice", "select.all",
                 "select.none", "select.invert"}) {
            run(id);
            QTest::qWait(50);
        }
    }

    void doDragsOnTheDag()
    {
        selectOperator(m_at, "h.0.mlp.c_fc");
        QTest::qWait(50);
        const std::int32_t box = boxOf(m_at, "h.0.mlp.c_fc");
        const QPoint from = middleOf(m_at, box);
        pressAt(m_at.dag(), from);
        moveTo(m_at.dag(), from + QPoint(0, 20));
        QCoreApplication::processEvents();
        QVERIFY(!m_at.dag()->gestures().tiles().empty());
        for (std::int32_t tile = 0; tile < 8; ++tile) {
            moveTo(m_at.dag(), m_at.dag()->gestures().tileRect(tile).center().toPoint());
            QTest::qWait(60);
        }
        QTest::keyClick(m_at.dag(), Qt::Key_Escape);
        releaseAt(m_at.dag(), from);
        // A chip, pulled and let go.
        const std::int32_t chip = freeChip(m_at);
        QVERIFY(chip >= 0);
        const std::string before = m_at.workspace().tableText();
        const QPoint start = chipAt(m_at, chip);
        pressAt(m_at.dag(), start);
        for (int i = 1; i < 20; ++i) {
            moveTo(m_at.dag(), start + QPoint(i % 3, 4 * i));
            QCoreApplication::processEvents();
        }
        QTest::keyClick(m_at.dag(), Qt::Key_2);
        moveTo(m_at.dag(), start + QPoint(1, 60));
        QTest::qWait(300);
        releaseAt(m_at.dag(), start + QPoint(1, 60));
        QVERIFY(isGiven() || m_at.workspace().tableText() != before); // another plan may refuse it
        QTRY_VERIFY_WITH_TIMEOUT(rests(), kPatience);
    }

    void doDragsOnTheTimeline()
    {
        QWidget *canvas = m_at.timeline()->viewport();
        m_at.timeline()->setFocus();
        int drags = 0;
        for (std::int32_t lane = 0; lane < 8 && drags < 3; ++lane) {
            const auto late = m_at.timeline()->rectOfBlock(lane, 3);
            const auto early = m_at.timeline()->rectOfBlock(lane, 1);
            if (!late || !early || late->width() < 4)
                continue;
            ++drags;
            pressAt(canvas, late->center());
            for (int i = 1; i <= 10; ++i) {
                moveTo(canvas,
                    late->center()
                        + (QPoint(early->left() + 1, late->center().y()) - late->center()) * i / 10);
                QTest::qWait(20);
            }
            QTest::qWait(200);
            if (drags == 1) {
                releaseAt(canvas, QPoint(early->left() + 1, late->center().y()));
                QTRY_VERIFY_WITH_TIMEOUT(answered(), kPatience);
            } else {
                QTest::keyClick(m_at.timeline(), Qt::Key_Escape);
                releaseAt(canvas, late->center());
            }
        }
        QVERIFY(isGiven() || drags > 0);
        for (const int each : {Qt::Key_Right, Qt::Key_Down, Qt::Key_W, Qt::Key_D, Qt::Key_S, Qt::Key_K,
                 Qt::Key_X, Qt::Key_X, Qt::Key_Home})
            QTest::keyClick(m_at.timeline(), static_cast<Qt::Key>(each));
        QTest::qWait(200);
    }

    void doUndoAndRedo()
    {
        for (int i = 0; i < 2; ++i) {
            QTest::keyClick(m_at.dag(), Qt::Key_Z, Qt::ControlModifier);
            QTRY_VERIFY_WITH_TIMEOUT(answered(), kPatience);
        }
        QTest::keyClick(m_at.dag(), Qt::Key_Y, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(answered(), kPatience);
        QTest::keyClick(m_at.dag(), Qt::Key_Z, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(rests(), kPatience);
    }

    void doEditingTheTable()
    {
        later([this] { m_at.window->docks().reveal(QStringLiteral("constraints")); });
        RowsView *grid = m_at.window->constraints()->grid();
        QTRY_VERIFY(grid->isVisible());
        grid->setFocus();
        grid->setCurrentIndex(grid->model()->index(grid->model()->rowCount() - 2, 2));
        const std::string before = m_at.workspace().tableText();
        QTest::keyClick(grid, Qt::Key_Space);
        QVERIFY(m_at.workspace().tableText() != before);
        QTRY_VERIFY_WITH_TIMEOUT(answered(), kPatience);
        QTest::keyClick(grid, Qt::Key_Space);
        QTRY_VERIFY_WITH_TIMEOUT(rests(), kPatience);
        // A cell typed into, and left.
        QTest::keyClick(grid, Qt::Key_F2);
        QCoreApplication::processEvents();
        if (QWidget *editor = QApplication::focusWidget(); editor && editor != grid)
            QTest::keyClick(editor, Qt::Key_Escape);
        later([this] {
            m_at.workspace().editTable(QStringLiteral("a row"),
                insertText(m_at.workspace().table(), m_at.workspace().table().lineCount(),
                    "recompute layer:0-3 per layer"));
        });
        QTest::qWait(50);
        QTRY_VERIFY_WITH_TIMEOUT(rests(), kPatience);
    }

    void doEveryDock()
    {
        later([this] { m_at.window->selection().select({m_at.named("h.0.mlp.c_fc")}); });
        QTest::qWait(50);
        for (const char *dock : {"model", "devices", "gallery", "inspector", "constraints", "problems",
                 "memory", "communication", "history", "plans", "run", "log"}) {
            later([this, dock] { m_at.window->docks().reveal(QLatin1String(dock)); });
            QTest::qWait(100);
        }
    }

    void doFindingAndGoing()
    {
        run("help.palette");
        QTRY_VERIFY(m_at.window->locator()->isVisible());
        type(m_at.window->locator()->line(), "split h.0.mlp");
        QTRY_VERIFY_WITH_TIMEOUT(m_at.window->locator()->isSettled(), kPatience);
        QTest::keyClick(m_at.window->locator()->line(), Qt::Key_Escape);
        run("help.goTo");
        QTRY_VERIFY(m_at.window->locator()->isVisible());
        type(m_at.window->locator()->line(), "@mlp");
        QTRY_VERIFY_WITH_TIMEOUT(m_at.window->locator()->isSettled(), kPatience);
        QTest::keyClick(m_at.window->locator()->line(), Qt::Key_Return);
        QTest::qWait(200);
        run("edit.find");
        if (auto *line = qobject_cast<QLineEdit *>(QApplication::focusWidget())) {
            type(line, "attn");
            QTest::keyClick(line, Qt::Key_Return);
            QTest::qWait(100);
            QTest::keyClick(line, Qt::Key_Escape);
        }
    }

    void doAnotherPlan()
    {
        later([this] { m_at.workspace().applyGallery("3d:dp=1,tp=4,pp=2,schedule=1f1b,micro-batches=8"); });
        QTest::qWait(50);
        QTRY_VERIFY_WITH_TIMEOUT(rests(), kPatience);
        for (const TimelineColouring colouring :
            {TimelineColouring::Device, TimelineColouring::Time, TimelineColouring::Direction}) {
            later([this, colouring] { m_at.window->setColouring(colouring); });
            QTest::qWait(100);
        }
    }

    /// Better plans take the place of what is shown, as often as they may.
    void doSearching(int attempt)
    {
        Workspace &workspace = m_at.workspace();
        workspace.setHandAtWork({});
        // Other rows each time: what a search found is remembered.
        later([&] { workspace.setTableText("degree stages at most " + std::to_string(8 - attempt) + "\n"); });
        QTRY_VERIFY_WITH_TIMEOUT(rests(), kPatience);
        run("solve.best");
        QTRY_VERIFY_WITH_TIMEOUT(!workspace.isSearching(), 4 * kPatience);
        QTRY_VERIFY_WITH_TIMEOUT(rests(), kPatience);
    }

    void doPictures()
    {
        const QTemporaryDir folder;
        m_at.window->selection().select({m_at.named("h.0.mlp.c_fc")});
        for (const bool timeline : {false, true}) {
            for (const QString &suffix : {QStringLiteral("png")}) {
                PictureChoice choice;
                choice.timeline = timeline;
                choice.suffix = suffix;
                QSignalSpy saved(m_at.window.get(), &MainWindow::pictureSaved);
                later([&] {
                    m_at.window->savePicture(
                        choice, folder.filePath(QStringLiteral("p.%1").arg(choice.suffix)));
                });
                QTRY_COMPARE_WITH_TIMEOUT(saved.count(), 1, kPatience);
                QVERIFY(saved.at(0).at(1).toBool());
            }
        }
    }

    void doComparing()
    {
        run("plans.compareWithPrevious");
        CompareView *compare = nullptr;
        QTRY_VERIFY_WITH_TIMEOUT((compare = m_at.window->compare()) && compare->isVisible()
                && !compare->isComparing() && compare->result(),
            kPatience);
        QTest::qWait(500);
        for (const char *id : {"compare.difference", "compare.butterfly", "compare.sideBySide"}) {
            run(id);
            QTest::qWait(100);
        }
        later([this] { m_at.window->docks().apply(QStringLiteral("design")); });
        QTest::qWait(200);
    }

    /// Fails if something is slow, and names it. What else the machine does costs an event its caches, and
    /// with them time: what is slow is done again, and has to be slow each time.
    void measured(const std::function<void()> &work)
    {
        for (int attempt = 1; attempt <= kAttempts; ++attempt) {
            watchdog().clear();
            work();
            QCoreApplication::processEvents();
            if (QTest::currentTestFailed())
                return;
            QVERIFY(watchdog().events() > 0);
            for (const SlowEvent &frame : watchdog().slowFrames())
                qWarning().noquote() << "frame:" << describe(frame);
            for (const SlowEvent &event : watchdog().slowEvents())
                qWarning().noquote() << "event:" << describe(event);
            if (watchdog().slowEvents().empty())
                return;
        }
        QFAIL(qPrintable(describe(watchdog().slowEvents().front())));
    }
    static GuiWatchdog &watchdog() { return *qobject_cast<GuiWatchdog *>(QCoreApplication::instance()); }
    /// Nothing is under way, down to the last picture.
    bool rests() const
    {
        return m_at.settled() && m_at.dag()->isSettled() && m_at.dag()->picture() && m_at.timeline()->scene();
    }
    bool answered() const
    {
        return !m_at.workspace().isPlanning() && m_at.workspace().latest()
            && m_at.workspace().latest()->final;
    }
    /// Within an event, so that it is measured.
    void later(std::function<void()> act)
    {
        QMetaObject::invokeMethod(m_at.window.get(), std::move(act), Qt::QueuedConnection);
        QCoreApplication::processEvents();
    }
    void run(const char *id)
    {
        bool done = false;
        later([this, id, &done] { done = m_at.window->trigger(QLatin1String(id)); });
        QVERIFY2(done, id);
        QCoreApplication::processEvents();
    }
    static void hover(QWidget *canvas, QPoint at)
    {
        QMouseEvent event(
            QEvent::MouseMove, QPointF(at), canvas->mapToGlobal(QPointF(at)), Qt::NoButton, Qt::NoButton, {});
        QApplication::sendEvent(canvas, &event);
    }
    static void wheel(QWidget *canvas, QPoint at, int angle, Qt::KeyboardModifiers held)
    {
        QWheelEvent event(QPointF(at), canvas->mapToGlobal(QPointF(at)), {}, {0, angle}, Qt::NoButton, held,
            Qt::NoScrollPhase, false);
        QApplication::sendEvent(canvas, &event);
    }
    static void type(QWidget *line, const char *text)
    {
        for (const char *letter = text; *letter; ++letter) {
            QTest::keyClick(line, *letter);
            QCoreApplication::processEvents();
        }
    }

    WindowForTests m_at;
};

static int runGuiThreadTest(int argc, char **argv)
{
    GuiWatchdog application(argc, argv);
    GuiThreadTest test;
    return QTest::qExec(&test, argc, argv);
}

PLANLOOM_QTEST_RUN_BY(GuiThreadTest, runGuiThreadTest)

#include "gui_thread_test.moc"
