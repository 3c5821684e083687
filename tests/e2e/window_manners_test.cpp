// How the window behaves towards a person: it fits the screen, its keys act where they are shown, the
// keyboard never falls into a control that changes the plan, and what can't be done is said where it was
// asked for and changes nothing.

#include <QtCore/QFile>
#include <QtCore/QObject>
#include <QtGui/QAction>
#include <QtGui/QScreen>
#include <QtTest/QTest>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QMenu>
#include <QtWidgets/QMenuBar>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QTabBar>
#include <QtWidgets/QToolBar>

#include "engine/table/table_json.h"
#include "tests/e2e/window_for_tests.h"
#include "tests/qt_test.h"
#include "widgets/compare/compare_view.h"
#include "widgets/design/row_sentences.h"
#include "widgets/exchange/drop_reader.h"
#include "widgets/frame/window_place.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/gallery_panel.h"
#include "widgets/main/notice_bar.h"
#include "widgets/problems/problems_panel.h"
#include "widgets/status/status_pill.h"
#include "widgets/table/rows_view.h"
#include "widgets/table/table_panel.h"
#include "widgets/timeline/timeline_panel.h"

#include <nlohmann/json.hpp>

#include <memory>

using namespace planloom;

namespace {

constexpr const char *kTensorAndPipeline = "3d:dp=1,tp=2,pp=2,schedule=1f1b,micro-batches=4";

QString nameOf(const QWidget *widget)
{
    return widget
        ? QStringLiteral("%1 %2").arg(QLatin1String(widget->metaObject()->className()), widget->objectName())
        : QStringLiteral("nothing");
}

/// Where a digit typed without looking would change the plan.
bool changesThePlan(const QWidget *widget)
{
    for (; widget; widget = widget->parentWidget()) {
        if (qobject_cast<const QSpinBox *>(widget) || qobject_cast<const QComboBox *>(widget)
            || qobject_cast<const QToolBar *>(widget))
            return true;
    }
    return false;
}

void leaves(const QMenu *menu, std::vector<QAction *> &actions)
{
    for (QAction *action : menu->actions()) {
        if (action->menu())
            leaves(action->menu(), actions);
        else if (!action->isSeparator())
            actions.push_back(action);
    }
}

} // namespace

class WindowMannersTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        m_at = std::make_unique<WindowForTests>();
        open(kSmallGpt, kTensorAndPipeline);
    }
    void cleanup() { m_at.reset(); }

    // --- the screen
    // --------------------------------------------------------------------------------------------------------

    void aPlaceIsMovedAndMadeSmallerAsLittleAsThatTakes()
    {
        const QMargins frame(4, 28, 4, 4);
        const QRect screen(0, 0, 1600, 1000);
        QCOMPARE(placeWithin({100, 100, 800, 600}, screen, frame), QRect(100, 100, 800, 600));
        QCOMPARE(placeWithin({0, 0, 1600, 1000}, screen, frame), QRect(4, 28, 1592, 968));
        QCOMPARE(placeWithin({1200, 700, 800, 600}, screen, frame), QRect(796, 396, 800, 600));
        QCOMPARE(placeWithin({0, 0, 1600, 1000}, {1600, 40, 1024, 660}, frame),
            QRect(1604, 68, 1016, 628)); // a second screen
    }

    void theWindowOpensInsideItsScreen()
    {
        MainWindow window;
        window.showOnScreen();
        const QRect screen = window.screen()->availableGeometry();
        QVERIFY2(screen.width() < 1600, "this screen is too large to tell");
        QVERIFY(window.isMaximized());
        QTRY_VERIFY_WITH_TIMEOUT(screen.contains(window.geometry()), kPatience);
        window.workspace().openWith({kSmallGpt, {}, {}}, "dgx-a100", 4, kTensorAndPipeline);
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().lastGood() && window.isSettled(), kPatience);
        // Docks, canvases and bars go with what there is, and the state stays in sight.
        QVERIFY2(screen.contains(window.geometry()),
            qPrintable(QStringLiteral("%1 x %2").arg(window.width()).arg(window.height())));
        QVERIFY(window.minimumSizeHint().width() <= screen.width());
    }

    // --- the keyboard
    // ------------------------------------------------------------------------------------------------------

    void aTabThatIsClickedTakesTheKeyboardAlong()
    {
        m_at->window->docks().reveal(QStringLiteral("constraints"));
        QTabBar *tabs = tabsWith(QStringLiteral("Constraints"));
        QVERIFY(tabs);
        const int devices = m_at->workspace().deviceCount();
        const std::string rows = m_at->workspace().tableText();
        for (int tab = 0; tab < tabs->count(); ++tab) {
            QTest::mouseClick(tabs, Qt::LeftButton, {}, tabs->tabRect(tab).center());
            QTRY_COMPARE(tabs->currentIndex(), tab);
            const QDockWidget *dock = frontOf(tabs);
            QVERIFY2(dock, qPrintable(tabs->tabText(tab)));
            if (tab > 0) // the canvas keeps what it has; from a dock the keyboard goes along
                QTRY_VERIFY2(
                    dock->isAncestorOf(QApplication::focusWidget()) || isCanvas(QApplication::focusWidget()),
                    qPrintable(
                        tabs->tabText(tab) + QStringLiteral(": ") + nameOf(QApplication::focusWidget())));
            QVERIFY2(
                !inToolBar(QApplication::focusWidget()), qPrintable(nameOf(QApplication::focusWidget())));
            if (QWidget *line = dock->findChild<QPlainTextEdit *>(); line && line->isVisible())
                line->setFocus();
            else
                m_at->window->docks().reveal(dock->objectName());
        }
        // From text that is being written to another tab: the finding itself.
        m_at->window->docks().reveal(QStringLiteral("constraints"));
        QVERIFY(m_at->window->trigger(QStringLiteral("rows.textMode")));
        QVERIFY(QApplication::focusWidget());
        const int history = indexOf(tabs, QStringLiteral("History"));
        QTest::mouseClick(tabs, Qt::LeftButton, {}, tabs->tabRect(history).center());
        QCoreApplication::processEvents();
        QVERIFY2(
            m_at->window->docks().find(QStringLiteral("history"))->isAncestorOf(QApplication::focusWidget()),
            qPrintable(nameOf(QApplication::focusWidget())));
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_6);
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Return);
        QCoreApplication::processEvents();
        QCOMPARE(m_at->workspace().deviceCount(), devices);
        QCOMPARE(m_at->workspace().tableText(), rows);
    }

    void aDockThatIsClosedLeavesTheKeyboardToTheCanvas()
    {
        for (const char *name : {"history", "model", "gallery", "constraints"}) {
            m_at->window->docks().reveal(QLatin1String(name));
            QDockWidget *dock = m_at->window->docks().find(QLatin1String(name));
            QVERIFY2(dock->isAncestorOf(QApplication::focusWidget()), name);
            dock->close();
            QCoreApplication::processEvents();
            QVERIFY2(QApplication::focusWidget() && !changesThePlan(QApplication::focusWidget()),
                qPrintable(nameOf(QApplication::focusWidget())));
        }
    }

    void whatIsDeletedOrDisabledLeavesTheKeyboardToTheCanvas()
    {
        auto *button = new QPushButton(QStringLiteral("a way out"), m_at->window->problems());
        m_at->window->docks().reveal(QStringLiteral("problems"), false);
        button->show();
        button->setFocus();
        QCOMPARE(QApplication::focusWidget(), button);
        button->setEnabled(false);
        QVERIFY2(isCanvas(QApplication::focusWidget()), qPrintable(nameOf(QApplication::focusWidget())));
        button->setEnabled(true);
        button->setFocus();
        delete button;
        QTRY_VERIFY2(isCanvas(QApplication::focusWidget()), qPrintable(nameOf(QApplication::focusWidget())));
    }

    void atTheStartAndAfterAnotherWindowTheCanvasHasTheKeyboard()
    {
        QVERIFY2(isCanvas(QApplication::focusWidget()), qPrintable(nameOf(QApplication::focusWidget())));
        m_at->window->docks().reveal(QStringLiteral("history"));
        m_at->window->docks().find(QStringLiteral("history"))->findChild<QWidget *>()->clearFocus();
        if (QWidget *focus = QApplication::focusWidget())
            focus->clearFocus();
        QWidget other;
        other.show();
        QApplication::setActiveWindow(&other);
        QTRY_COMPARE(QApplication::activeWindow(), &other);
        other.hide();
        QApplication::setActiveWindow(m_at->window.get());
        QTRY_VERIFY2(isCanvas(QApplication::focusWidget()), qPrintable(nameOf(QApplication::focusWidget())));
    }

    /// Return ends what is typed there: the keys behind it are the canvas'.
    void aNumberOfDevicesThatIsEnteredCanBeUndone()
    {
        open(kSmallGpt, "data-parallel");
        const int before = m_at->workspace().deviceCount();
        QVERIFY(m_at->window->trigger(QStringLiteral("plan.deviceCount")));
        auto *field = qobject_cast<QSpinBox *>(QApplication::focusWidget());
        QVERIFY2(field, qPrintable(nameOf(QApplication::focusWidget())));
        QTest::keyClicks(field, QString::number(2 * before));
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(m_at->workspace().deviceCount(), 2 * before);
        QTRY_VERIFY2(
            !changesThePlan(QApplication::focusWidget()), qPrintable(nameOf(QApplication::focusWidget())));
        QTest::keyClick(QApplication::focusWidget(), Qt::Key_Z, Qt::ControlModifier);
        QCOMPARE(m_at->workspace().deviceCount(), before);
    }

    void theComparisonHasAWayBack()
    {
        open(kSmallGpt, "data-parallel");
        for (const bool byKey : {true, false}) {
            m_at->window->docks().apply(QStringLiteral("compare"));
            QTRY_VERIFY_WITH_TIMEOUT(
                m_at->window->compare() && m_at->window->compare()->isVisible(), kPatience);
            QVERIFY(!m_at->timeline()->isVisible());
            if (byKey)
                QTest::keyClick(m_at->window->compare(), Qt::Key_Escape);
            else
                QVERIFY(m_at->window->trigger(QStringLiteral("compare.done")));
            QTRY_VERIFY_WITH_TIMEOUT(m_at->timeline()->isVisible(), kPatience);
            QVERIFY(!m_at->window->compare()->isVisible());
        }
    }

    /// A message and the fields take turns in the status bar.
    void fieldsStayHiddenUnderAMessage()
    {
        open(kSmallGpt, "data-parallel");
        QStatusBar *bar = m_at->window->statusBar();
        const auto fields = [bar] { // but those at the right
            std::vector<QLabel *> seen;
            for (QLabel *label : bar->findChildren<QLabel *>())
                if (label->isVisible() && label->x() < bar->width() / 3)
                    seen.push_back(label);
            return seen;
        };
        QTRY_VERIFY(!fields().empty());
        bar->showMessage(QStringLiteral("Not moved: there is no room for it"));
        QVERIFY(fields().empty());
        m_at->workspace().setTableText(m_at->workspace().tableText() + "# more\n");
        QTRY_VERIFY_WITH_TIMEOUT(m_at->settled(), kPatience);
        QCoreApplication::processEvents();
        QVERIFY(fields().empty());
        bar->clearMessage();
        QTRY_VERIFY(!fields().empty());
    }

    void tabStillLeadsToEveryControl()
    {
        m_at->dag()->setFocus();
        bool reached = false;
        for (int press = 0; press < 300 && !reached; ++press) {
            QTest::keyClick(QApplication::focusWidget(), Qt::Key_Tab);
            reached = changesThePlan(QApplication::focusWidget());
        }
        QVERIFY(reached);
    }

    void keysOfTheMenusActOnBothCanvases()
    {
        QAction *path = m_at->window->commands().find(QStringLiteral("timeline.criticalPath"));
        QAction *communication = m_at->window->commands().find(QStringLiteral("timeline.communication"));
        QVERIFY(path && communication);
        for (QWidget *canvas :
            {static_cast<QWidget *>(m_at->dag()), static_cast<QWidget *>(m_at->timeline())}) {
            canvas->setFocus();
            for (const auto &[key, action] : {std::pair{Qt::Key_K, path}, {Qt::Key_X, communication}}) {
                const bool before = action->isChecked();
                QTest::keyClick(canvas, key);
                QVERIFY2(action->isChecked() != before,
                    qPrintable(action->text() + QLatin1Char(' ') + nameOf(canvas)));
                QTest::keyClick(canvas, key);
                QCOMPARE(action->isChecked(), before);
            }
        }
    }

    /// Whatever key a menu shows: it is the whole window's, or each canvas has an action for it.
    void noKeyOfAMenuIsDeadOnACanvas()
    {
        const auto has = [](const QWidget *canvas, const QKeySequence &keys) {
            const auto actions = canvas->actions();
            return std::any_of(actions.begin(), actions.end(), [&keys](const QAction *action) {
                return action->shortcuts().contains(keys)
                    || action->property("planloom.keys").value<QKeySequence>() == keys;
            });
        };
        // These are about what only one of them, or a dock, has.
        const QStringList own{QStringLiteral("rows."), QStringLiteral("history."), QStringLiteral("plans."),
            QStringLiteral("compare.")};
        QStringList dead;
        for (const QAction *top : m_at->window->menuBar()->actions()) {
            std::vector<QAction *> actions;
            leaves(top->menu(), actions);
            for (const QAction *action : actions) {
                const QString id = action->objectName();
                if (std::any_of(own.begin(), own.end(),
                        [&id](const QString &prefix) { return id.startsWith(prefix); }))
                    continue;
                QKeySequence keys = action->shortcut();
                const QString shown =
                    action->text().section(QLatin1Char('\t'), 1); // of both canvases, shown in words
                if (keys.isEmpty() && !shown.isEmpty())
                    keys = QKeySequence(shown, QKeySequence::NativeText);
                if (keys.isEmpty() || (action->shortcutContext() == Qt::WindowShortcut && shown.isEmpty()))
                    continue;
                for (const QWidget *canvas :
                    {static_cast<QWidget *>(m_at->dag()), static_cast<QWidget *>(m_at->timeline())}) {
                    if (!has(canvas, keys))
                        dead.append(
                            QStringLiteral("%1 (%2) on %3").arg(id, keys.toString(), canvas->objectName()));
                }
            }
        }
        QVERIFY2(dead.isEmpty(), qPrintable(dead.join(QLatin1Char('\n'))));
    }

    // --- the timeline
    // ------------------------------------------------------------------------------------------------------

    void aBoxWithoutWidthIsNothing()
    {
        TimelineView *timeline = m_at->timeline();
        QWidget *on = timeline->viewport();
        m_at->window->selection().select({m_at->named("h.0.mlp.c_fc")});
        const auto selected = m_at->window->selection().selected();
        const QPoint below(
            on->width() - 40, on->height() - 40); // behind the step, or idle: on nothing that can be taken
        pressAt(on, below);
        moveTo(on, below - QPoint(0, 40));
        moveTo(on, below - QPoint(0, 120));
        releaseAt(on, below - QPoint(0, 120));
        QTest::qWait(50);
        QVERIFY(!timeline->panel().isVisible());
        QCOMPARE(m_at->window->selection().selected(), selected);
    }

    void figuresStandBesideTheLanesAndGoOnUndo()
    {
        TimelineView *timeline = m_at->timeline();
        m_at->workspace().setTableText(m_at->workspace().tableText() + "# a remark\n");
        QTRY_VERIFY_WITH_TIMEOUT(m_at->settled(), kPatience);
        QWidget *on = timeline->viewport();
        const int wide = on->width();
        const QPoint from(on->width() - 30, on->height() - 35);
        const auto draw = [&] {
            pressAt(on, from);
            moveTo(on, from - QPoint(60, 30));
            moveTo(on, QPoint(timeline->axisLeft() + 2, timeline->lanesTop() + 2));
            releaseAt(on, QPoint(timeline->axisLeft() + 2, timeline->lanesTop() + 2));
        };
        draw();
        QTRY_VERIFY_WITH_TIMEOUT(timeline->panel().isVisible(), kPatience);
        QTRY_VERIFY(on->width() < wide);
        const QRect panel(timeline->panel().mapTo(timeline, QPoint()), timeline->panel().size());
        QVERIFY(!panel.intersects(on->geometry()));
        QVERIFY(timeline->rect().contains(panel));
        // The remark changes no plan: nothing arrives that would take the figures away.
        QTest::keyClick(m_at->dag(), Qt::Key_Z, Qt::ControlModifier);
        QVERIFY(!timeline->panel().isVisible());
        QTRY_COMPARE(on->width(), wide);
    }

    // --- what can't be done
    // ------------------------------------------------------------------------------------------------

    void aGalleryPlanThatDoesNotFitLeavesEverythingAsItIs()
    {
        open("zoo:gpt?layers=2&hidden=64&heads=4&seq=16&vocab=64&batch=1", "tensor-parallel");
        const std::string rows = m_at->workspace().tableText();
        const PlanUpdateSnapshot plan = m_at->workspace().latest();
        const QString pill = m_at->window->pill()->text();
        const QString binds = bindsColumn();
        QVERIFY(binds.contains(QStringLiteral("ops")));
        m_at->window->docks().reveal(QStringLiteral("gallery"));
        GalleryPanel *gallery = m_at->window->gallery();
        gallery->line()->setFocus();
        gallery->line()->clear();
        QTest::keyClicks(gallery->line(), QStringLiteral("zero1"));
        QTest::keyClick(gallery->line(), Qt::Key_Return);
        QTRY_VERIFY_WITH_TIMEOUT(!gallery->refusal().isEmpty() && m_at->settled(), kPatience);
        QVERIFY2(gallery->refusal().contains(QStringLiteral("batch")), qPrintable(gallery->refusal()));
        QCOMPARE(m_at->workspace().tableText(), rows);
        QCOMPARE(m_at->workspace().latest(), plan);
        QCOMPARE(m_at->window->pill()->text(), pill);
        QCOMPARE(bindsColumn(), binds);
        QCOMPARE(m_at->window->problems()->count(), 0);
        QVERIFY(!m_at->workspace().canUndo());
        // Editing what was refused takes the reason away; a plan that fits is applied.
        gallery->line()->clear();
        QVERIFY(gallery->refusal().isEmpty());
        QTest::keyClicks(gallery->line(), QStringLiteral("single"));
        QTest::keyClick(gallery->line(), Qt::Key_Return);
        QTRY_VERIFY_WITH_TIMEOUT(m_at->settled() && m_at->workspace().tableText() != rows, kPatience);
        QTest::keyClick(m_at->dag(), Qt::Key_Z, Qt::ControlModifier);
        QTRY_VERIFY_WITH_TIMEOUT(m_at->settled(), kPatience);
        QCOMPARE(bindsColumn(), binds); // the refusal was not taken for their plan
    }

    void aFileOfAnotherKindIsNamedForWhatItIs_data()
    {
        QTest::addColumn<QString>("name");
        QTest::addColumn<QByteArray>("content");
        QTest::addColumn<QString>("said");
        QTest::newRow("text") << "README.md" << QByteArray("# A heading\n\nand text\n")
                              << "README.md: this is plain text";
        QTest::newRow("empty") << "empty.onnx" << QByteArray() << "empty.onnx: the file is empty";
        QTest::newRow("plan") << "plan.json"
                              << QByteArray("{\"devices\":[],\"format\":\"planloom-execution-plan\"}")
                              << "plan.json: this is an execution plan of Planloom";
        QTest::newRow("rows") << "rows.txt" << QByteArray("place all : devices 0\n")
                              << "rows.txt: this is a table of rows";
        QTest::newRow("cluster") << "cluster.json" << QByteArray("{\"format\": \"planloom-cluster\"}")
                                 << "cluster.json: this is the description of a cluster";
        QTest::newRow("arrays") << "inputs.npz"
                                << QByteArray(
                                       "PK\x03\x04\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0x.npy",
                                       35)
                                << "inputs.npz: this is an archive of NumPy arrays";
        QTest::newRow("cut") << "cut.onnx" << QByteArray("\x08\x07\x3a\x7fxyz", 7)
                             << "cut.onnx: this is no ONNX model, or one that is cut off or damaged";
    }

    void aFileOfAnotherKindIsNamedForWhatItIs()
    {
        QFETCH(QString, name);
        QFETCH(QByteArray, content);
        QFETCH(QString, said);
        const QTemporaryDir folder;
        QFile file(folder.filePath(name));
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write(content) == content.size());
        file.close();
        MainWindow window;
        window.show();
        window.openHere(file.fileName());
        QTRY_VERIFY_WITH_TIMEOUT(
            !window.workspace().isOpening() && window.notices().isShown(QStringLiteral("open")), kPatience);
        const QString text = window.notices().textOf(QStringLiteral("open"));
        QVERIFY2(text.startsWith(said), qPrintable(text));
        QVERIFY2(!text.contains(QStringLiteral("model.onnx")), qPrintable(text));
        QVERIFY2(text.contains(QLatin1Char('(')), qPrintable(text)); // and what to do with it
    }

    void rowsInEitherFormAreImportedWherePlansAreNot()
    {
        const QTemporaryDir folder;
        const auto file = [&folder](const char *name, const QByteArray &content) {
            QFile written(folder.filePath(QLatin1String(name)));
            if (!written.open(QIODevice::WriteOnly) || written.write(content) != content.size())
                qFatal("%s can't be written", name);
            return written.fileName();
        };
        const Dropped rows = readDroppedFile(
            file("rows.json", QByteArray::fromStdString(toJson(m_at->workspace().table().table()).dump(2))));
        QVERIFY2(rows.kind == DropKind::Rows, qPrintable(rows.reason));
        QCOMPARE(TableDocument(rows.text.toStdString()).table().rows.size(),
            m_at->workspace().table().table().rows.size());
        const Dropped plan = readDroppedFile(file("plan.json", "{\"format\": \"planloom-execution-plan\"}"));
        QVERIFY(plan.kind == DropKind::Unsupported);
        QVERIFY2(
            plan.reason.contains(QStringLiteral("an execution plan of Planloom")), qPrintable(plan.reason));
    }

    void aSessionUnderAnotherNameOpens()
    {
        const QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("work.onnx"));
        m_at->workspace().saveAs(path);
        QTRY_VERIFY_WITH_TIMEOUT(
            m_at->workspace().path() == path && m_at->workspace().isAcknowledged(), kPatience);
        const std::string rows = m_at->workspace().tableText();
        m_at.reset();
        MainWindow window;
        window.show();
        window.openHere(path);
        QTRY_VERIFY_WITH_TIMEOUT(window.workspace().model() && window.isSettled(), kPatience);
        QCOMPARE(window.workspace().tableText(), rows);
    }

    void rowsAreCalledRowsAndCountedAsTheTableCountsThem()
    {
        // A remark stands before the rows: the second one is on the third line.
        m_at->workspace().setTableText("# a remark\nmicro-batches 2\nmesh dp=3 tp=2\n");
        const auto *model = m_at->window->problems()->list()->model();
        QTRY_COMPARE_WITH_TIMEOUT(model->rowCount(), 1, kPatience);
        QCOMPARE(model->index(0, ProblemsModel::Where).data().toString(), QStringLiteral("Row 3"));
        QCOMPARE(model->index(0, ProblemsModel::What).data().toString(),
            QStringLiteral("The mesh needs 3 x 2 = 6 devices, the plan has 4."));
        QCOMPARE(model->index(0, ProblemsModel::Advice).data().toString(),
            QStringLiteral("Make an axis smaller, or plan for more devices."));
        // The history says which rows were written.
        QCOMPARE(
            QString::fromStdString(m_at->workspace().history().undoWords()).left(5), QStringLiteral("edit "));
        m_at->workspace().setTableText("# a remark\nmicro-batches 2\nmesh dp=2 tp=2\n");
    }

    void clausesOfTheEngineBecomeSentences()
    {
        PlanUpdate update;
        update.rows = {{RowId{0}, 1, "mesh dp=2", {}, {}},
            {RowId{1}, 4, "micro-batches 2", {}, {}}}; // on the second and the fifth line
        QCOMPARE(withLineNumbers("given already, by row 2", update), std::string("given already, by row 5"));
        QCOMPARE(withLineNumbers("row 1 and row 2 (must); row 3, arrow 1", update),
            std::string("row 2 and row 5 (must); row 3, arrow 1"));
        QCOMPARE(sentences({"the mesh needs 6 devices", "make an axis smaller"}),
            QStringLiteral("The mesh needs 6 devices. Make an axis smaller."));
        QCOMPARE(sentences({"a plan needs at least one micro-batch", {}}),
            QStringLiteral("A plan needs at least one micro-batch."));
        QCOMPARE(sentences({"k can't be split", "dp=2 is too much", "3 parts."}),
            QStringLiteral("k can't be split. dp=2 is too much. 3 parts."));
        QCOMPARE(sentences({}), QString());
    }

    void theHistorySaysWhichRowsWereWritten()
    {
        const auto words = [](std::vector<TableSplice> splices) {
            return wordsOfTextEdit({std::move(splices)});
        };
        QCOMPARE(words({{2, {"mesh dp=2"}, {"mesh dp=4"}}}), QStringLiteral("edit row 3"));
        QCOMPARE(words({{2, {}, {"a", "b", "c"}}}), QStringLiteral("write rows 3-5"));
        QCOMPARE(words({{0, {"a", "b"}, {}}}), QStringLiteral("remove rows 1-2"));
        QCOMPARE(words({{1, {"a"}, {"b"}}, {5, {}, {"c"}}}), QStringLiteral("edit rows 2-6"));
    }

private:
    void open(const char *model, const char *gallery)
    {
        m_at->workspace().openWith({model, {}, {}}, "dgx-a100", 4, gallery);
        QTRY_VERIFY_WITH_TIMEOUT(m_at->workspace().model()
                && m_at->workspace().model()->source.source == model && m_at->settled()
                && m_at->dag()->isSettled(),
            kPatience);
        QVERIFY(QTest::qWaitForWindowActive(m_at->window.get()));
    }

    bool isCanvas(const QWidget *widget) const
    {
        return widget
            && (widget == m_at->dag() || widget == m_at->timeline() || m_at->dag()->isAncestorOf(widget)
                || m_at->timeline()->isAncestorOf(widget));
    }
    bool inToolBar(const QWidget *widget) const
    {
        return widget && m_at->window->findChild<QToolBar *>()->isAncestorOf(widget);
    }

    static int indexOf(const QTabBar *tabs, const QString &text)
    {
        for (int tab = 0; tab < tabs->count(); ++tab) {
            if (tabs->tabText(tab).startsWith(text))
                return tab;
        }
        return -1;
    }
    QTabBar *tabsWith(const QString &text) const
    {
        for (QTabBar *tabs : m_at->window->findChildren<QTabBar *>()) {
            if (tabs->isVisible() && indexOf(tabs, text) >= 0
                && indexOf(tabs, QStringLiteral("History")) >= 0)
                return tabs;
        }
        return nullptr;
    }
    /// The dock whose tab is the current one.
    QDockWidget *frontOf(const QTabBar *tabs) const
    {
        for (QDockWidget *dock : m_at->window->docks().docks()) {
            if (dock->windowTitle() == tabs->tabText(tabs->currentIndex()))
                return dock;
        }
        return nullptr;
    }
    QString bindsColumn() const
    {
        const QAbstractItemModel *model = m_at->window->constraints()->grid()->model();
        QStringList cells;
        for (int row = 0; row < model->rowCount(); ++row) {
            for (int column = 0; column < model->columnCount(); ++column) {
                if (model->headerData(column, Qt::Horizontal).toString() == QLatin1String("Binds"))
                    cells.append(model->index(row, column).data().toString());
            }
        }
        return cells.join(QLatin1Char('\n'));
    }

    std::unique_ptr<WindowForTests> m_at;
};

PLANLOOM_QTEST(WindowMannersTest)
#include "window_manners_test.moc"
