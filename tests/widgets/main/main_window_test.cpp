#include <QtCore/QMimeData>
#include <QtCore/QObject>
#include <QtCore/QTemporaryDir>
#include <QtCore/QXmlStreamReader>
#include <QtGui/QDropEvent>
#include <QtGui/QPainter>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QApplication>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QDockWidget>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStatusBar>

#include "engine/hardware/cluster_json.h"
#include "planloom_paths.h"
#include "tests/qt_test.h"
#include "widgets/frame/application_style.h"
#include "widgets/frame/dock_board.h"
#include "widgets/frame/settings.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/gallery_panel.h"
#include "widgets/main/log_panel.h"
#include "widgets/main/main_window.h"
#include "widgets/main/model_options_dialog.h"
#include "widgets/main/notice_bar.h"
#include "widgets/main/picture_dialog.h"
#include "widgets/main/start_page.h"
#include "widgets/problems/problems_panel.h"
#include "widgets/run/run_panel.h"
#include "widgets/status/status_pill.h"
#include "widgets/table/constraint_table_model.h"
#include "widgets/table/table_panel.h"
#include "widgets/target/cluster_chooser.h"

#include <filesystem>
#include <fstream>
#include <set>

using namespace planloom;

namespace {

Sample small()
{
    return {"small", "A small one", "For tests",
        "zoo:gpt?layers=3&hidden=64&heads=4&seq=16&vocab=100&batch=8", "dgx-a100", 4,
        "3d:dp=1,tp=2,pp=2,schedule=1f1b,micro-batches=4"};
}

} // namespace

class MainWindowTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { applyTheme(*qApp, false); }

    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        m_window = std::make_unique<MainWindow>(services());
        m_window->resize(1400, 900);
        m_window->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_window.get()));
    }

    void cleanup()
    {
        m_window.reset();
        m_folder.reset();
    }

    void theStartPageOpensASampleWithOneClick()
    {
        const auto cards = m_window->findChildren<SampleCard *>();
        QCOMPARE(static_cast<std::size_t>(cards.size()), samples().size());
        QVERIFY(!m_window->docks().find(QStringLiteral("constraints"))->isVisible());
        QTest::mouseClick(cards.last(), Qt::LeftButton); // the perceptron: quick
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        QCOMPARE(m_window->workspace().deviceCount(), 2);
        QVERIFY(m_window->timeline()->scene() != nullptr);
        QVERIFY(m_window->timeline()->isVisible());
        QVERIFY(m_window->docks().find(QStringLiteral("constraints"))->isVisible());
        QVERIFY(m_window->log()->model()->rowCount() >= 2);
        QVERIFY(!m_window->grab().isNull());
    }

    void aPlanFromTheGalleryIsOneStepAndUndoTakesItBack()
    {
        open();
        const std::string before = m_window->workspace().tableText();
        QListWidget *list = m_window->gallery()->list();
        for (int row = 0; row < list->count(); ++row) {
            if (list->item(row)->data(Qt::UserRole).toString() == QLatin1String("data-parallel"))
                list->setCurrentRow(row);
        }
        QVERIFY(m_window->trigger(QStringLiteral("gallery.apply")));
        QTRY_VERIFY_WITH_TIMEOUT(
            proven() && m_window->workspace().tableText().find("mesh dp=4") != std::string::npos, kLong);
        QAction *undo = m_window->commands().find(QStringLiteral("edit.undo"));
        QVERIFY(CommandRegistry::plainText(*undo).contains(QStringLiteral("gallery plan data-parallel")));
        QTest::keyClick(m_window->dag(), Qt::Key_Z, Qt::ControlModifier);
        QCOMPARE(m_window->workspace().tableText(), before);
        QVERIFY(CommandRegistry::plainText(*m_window->commands().find(QStringLiteral("edit.redo")))
                    .contains(QStringLiteral("gallery")));
        QTest::keyClick(m_window->dag(), Qt::Key_Y, Qt::ControlModifier);
        QVERIFY(m_window->workspace().tableText() != before);
    }

    void aRowInErrorIsSaidAndTheLastPlanStays()
    {
        open();
        addRow("split nonsense");
        QTRY_COMPARE_WITH_TIMEOUT(m_window->pill()->mood(), StatusPill::Mood::Wrong, kLong);
        QCOMPARE(m_window->problems()->count(), 1);
        QCOMPARE(m_window->docks().find(QStringLiteral("problems"))->windowTitle(),
            QStringLiteral("Problems (1)"));
        QVERIFY(m_window->timeline()->scene() != nullptr);
        QTest::keyClick(m_window->dag(), Qt::Key_F8);
        QCOMPARE(m_window->constraints()->selectedLines().size(), std::size_t{1});
        m_window->workspace().undo();
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        QCOMPARE(m_window->problems()->count(), 0);
    }

    /// Partition constraints of autodist: over the axis that the mesh has, with what they could not say.
    void constraintsOfAutodistAreImportedWithTheirNotes()
    {
        open();
        Workspace &workspace = m_window->workspace();
        workspace.setTableText("mesh dp=2 mp=2\n");
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        const QString path = m_folder->filePath(QStringLiteral("constraints.yaml"));
        std::ofstream(path.toStdString())
            << "- name: torch.nn.functional.linear\n  parent_module: mlp\n"
               "  allowed_partition_dims: ['1,0']\n  replica_allowed: false\n"
               "- {name: torch.nn.functional.linear, parent_module: mlp, allowed_partition_dims: []}\n"
               "- name: torch.nn.functional.layer_norm\n  allowed_partition_dims: []\n";
        drop(*m_window, path);
        QPushButton *import =
            m_window->notices().button(QStringLiteral("drop"), QStringLiteral("Import Rows"));
        QVERIFY(import);
        import->click();
        const std::string rows = workspace.tableText();
        QVERIFY2(rows.find("over mp  @import") != std::string::npos, rows.c_str());
        const QString said = m_window->notices().textOf(QStringLiteral("drop"));
        QVERIFY2(said.startsWith(QStringLiteral("constraints.yaml gave 2 rows over mp.")), qPrintable(said));
        QVERIFY(said.contains(QStringLiteral("Not taken, line 5: an earlier entry")));
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
    }

    /// A limit is no conflict: there is a plan, and a button for whatever brings it within.
    void aLimitThatIsExceededHasAButtonForEveryWayOut()
    {
        open();
        addRow("limit memory 100KiB");
        QTRY_COMPARE_WITH_TIMEOUT(m_window->pill()->mood(), StatusPill::Mood::Wrong, kLong);
        QVERIFY(m_window->pill()->text().startsWith(QStringLiteral("1 limit exceeded · ")));
        QCOMPARE(m_window->problems()->count(), 1);
        const auto solver = m_window->constraints()
                                ->rows()
                                ->index(m_window->constraints()->rows()->rowCount() - 1, 0)
                                .siblingAtColumn(static_cast<int>(TableColumn::Price));
        QTRY_COMPARE_WITH_TIMEOUT(solver.data().toString(), QStringLiteral("exceeded"), kLong);
        m_window->docks().reveal(QStringLiteral("problems"));
        const auto find = [this](const QString &begin) {
            for (QPushButton *button : m_window->problems()->findChildren<QPushButton *>())
                if (button->accessibleName().startsWith(begin))
                    return button;
            return static_cast<QPushButton *>(nullptr);
        };
        QTRY_VERIFY_WITH_TIMEOUT(find(QStringLiteral("add ")), kLong); // tried meanwhile
        QVERIFY(find(QStringLiteral("switch row ")));
        QPushButton *raise = find(QStringLiteral("make row "));
        QVERIFY(raise);
        QVERIFY(raise->accessibleName().contains(QStringLiteral("limit memory ")));
        raise->click();
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
        QCOMPARE(m_window->problems()->count(), 0);
        QVERIFY(!find(QStringLiteral("add ")));
    }

    void liveOffGathersEdits()
    {
        open();
        QTest::keyClick(m_window->dag(), Qt::Key_F6);
        QVERIFY(!m_window->workspace().isLive());
        addRow("recompute layer:0 per layer");
        addRow("recompute layer:1 per layer");
        QCOMPARE(m_window->pill()->mood(), StatusPill::Mood::Paused);
        QVERIFY(m_window->pill()->text().contains(QStringLiteral("2 edits")));
        QTest::keyClick(m_window->dag(), Qt::Key_F5);
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
    }

    void theStatusBarTellsTheDeltaAndWhatIsSaved()
    {
        open();
        addRow("recompute layer:0 per layer");
        QTRY_VERIFY_WITH_TIMEOUT(proven() && m_window->workspace().history().current() == 1, kLong);
        addRow("recompute layer:1 per layer");
        QTRY_VERIFY_WITH_TIMEOUT(proven() && m_window->workspace().isAcknowledged(), kLong);
        QString all;
        for (const QLabel *label : m_window->statusBar()->findChildren<QLabel *>())
            all += label->text() + QLatin1Char('\n');
        QVERIFY2(all.contains(QStringLiteral("step ")) && all.contains(QLatin1Char('%')), qPrintable(all));
        QVERIFY2(all.contains(QStringLiteral("● saved")), qPrintable(all));
        QVERIFY(!m_window->workspace().path().isEmpty());
    }

    void aClickInTheTimelineSelectsInAllViews()
    {
        open();
        QTRY_VERIFY_WITH_TIMEOUT(m_window->isSettled(), kLong);
        TimelineView *timeline = m_window->timeline();
        const SpanColumns &spans = timeline->scene()->timeline->spans;
        std::size_t longest = 0;
        for (std::size_t row = 0; row < spans.size(); ++row) {
            if (spans.queue[row] == QueueKind::Compute && spans.duration[row] > spans.duration[longest])
                longest = row;
        }
        const auto rect = timeline->rectOf(longest);
        QVERIFY(rect.has_value());
        QTest::mouseClick(timeline->viewport(), Qt::LeftButton, {}, rect->center());
        QVERIFY(!m_window->selection().selected().empty());
        QVERIFY(m_window->dag()->selectionModel()->contains(m_window->selection().selected().front()));
    }

    void droppedFilesAskWithoutStoppingAnybody()
    {
        const QString session = m_folder->filePath(QStringLiteral("kept.planloom"));
        open();
        addRow("recompute layer:0 per layer");
        m_window->workspace().saveCopyAs(session);
        QTRY_VERIFY_WITH_TIMEOUT(std::filesystem::exists(session.toStdString()), kLong);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().isAcknowledged(), kLong);
        // On the start page it opens at once.
        MainWindow other(services());
        other.show();
        drop(other, session);
        QTRY_VERIFY_WITH_TIMEOUT(other.workspace().latest() && other.workspace().latest()->verdict, kLong);
        QCOMPARE(other.workspace().path(), session);
        QVERIFY(other.workspace().tableText().find("recompute layer:0") != std::string::npos);
        // On an open session it asks.
        drop(*m_window, session);
        QVERIFY(m_window->notices().isShown(QStringLiteral("drop")));
        QVERIFY(m_window->workspace().path() != session);
        QTest::mouseClick(
            m_window->notices().button(QStringLiteral("drop"), QStringLiteral("Cancel")), Qt::LeftButton);
        QVERIFY(!m_window->notices().isShown(QStringLiteral("drop")));
        // Rows are taken in as one step.
        const QString rows = m_folder->filePath(QStringLiteral("rows.txt"));
        std::ofstream(rows.toStdString()) << "recompute layer:1 per layer\nrecompute layer:2 per layer\n";
        drop(*m_window, rows);
        QPushButton *take = m_window->notices().button(QStringLiteral("drop"), QStringLiteral("Import Rows"));
        QVERIFY(take);
        const StepId before = m_window->workspace().history().current();
        QTest::mouseClick(take, Qt::LeftButton);
        QCOMPARE(m_window->workspace().history().current(), before + 1);
        QVERIFY(m_window->workspace().tableText().find("recompute layer:2") != std::string::npos);
        // A cluster is taken into the design, with as many devices as it has.
        const QString lab = m_folder->filePath(QStringLiteral("lab.json"));
        Cluster cluster = *clusterNamed("dgx-a100:4");
        cluster.device.memory.value = 12e9;
        std::ofstream(lab.toStdString()) << toJson(cluster);
        drop(*m_window, lab);
        QTest::mouseClick(m_window->notices().button(QStringLiteral("drop"), QStringLiteral("Plan for It")),
            Qt::LeftButton);
        QTRY_COMPARE_WITH_TIMEOUT(m_window->workspace().cluster(), std::string("lab"), kLong);
        QCOMPARE(m_window->workspace().deviceCount(), 4);
        QTRY_VERIFY_WITH_TIMEOUT(
            proven() && m_window->workspace().lastGood()->cluster.device.memory.value == 12e9, kLong);
        auto *chooser = m_window->findChild<ClusterChooser *>();
        QCOMPARE(chooser->currentText(), QStringLiteral("lab (file)"));
        chooser->setFocus();
        QTest::keyClick(chooser, Qt::Key_Up); // a profile, and back
        QVERIFY(m_window->workspace().clusterJson().empty());
        chooser->setCurrentIndex(chooser->findText(QStringLiteral("lab (file)")));
        Q_EMIT chooser->activated(chooser->currentIndex());
        QCOMPARE(m_window->workspace().clusterJson(), toJson(cluster));
        // One that is broken is said, and nothing changes.
        const QString broken = m_folder->filePath(QStringLiteral("broken.json"));
        std::ofstream(broken.toStdString()) << R"({"format": "planloom-cluster", "version": 1})";
        drop(*m_window, broken);
        QTest::mouseClick(m_window->notices().button(QStringLiteral("drop"), QStringLiteral("Plan for It")),
            Qt::LeftButton);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->notices().isShown(QStringLiteral("cluster")), kLong);
        QCOMPARE(m_window->workspace().cluster(), std::string("lab"));
        // What can't be used is said in a sentence.
        const QString picture = m_folder->filePath(QStringLiteral("a.png"));
        std::ofstream(picture.toStdString(), std::ios::binary) << std::string("\x89PNG\0\0", 6);
        drop(*m_window, picture);
        QVERIFY(m_window->notices().textOf(QStringLiteral("drop")).contains(QStringLiteral("neither")));
    }

    void thisMachineIsAClusterToPlanFor()
    {
        open();
        m_window->run()->service().setProgram(QStringLiteral(PLANLOOM_BINARY_DIR "/bin/planloom-exec"));
        const std::int32_t devices = m_window->workspace().deviceCount();
        auto *chooser = m_window->findChild<ClusterChooser *>();
        const QString before = chooser->currentText();
        const int entry = chooser->findText(QStringLiteral("This Machine…"));
        QVERIFY(entry > 0);
        chooser->setCurrentIndex(entry);
        Q_EMIT chooser->activated(entry);
        QCOMPARE(chooser->currentText(), before); // until it is known
        QTRY_COMPARE_WITH_TIMEOUT(m_window->workspace().cluster(), std::string("this machine"), kLong);
        QTRY_VERIFY_WITH_TIMEOUT(
            proven() && m_window->workspace().lastGood()->cluster.name == "this machine", kLong);
        QCOMPARE(chooser->currentText(), QStringLiteral("this machine"));
        if (!m_window->run()->machine().hasGpus()) {
            QCOMPARE(m_window->workspace().deviceCount(), devices); // emulated: as many as one likes
        }
    }

    void theModelsOptionsAreChosenAndTakenBack()
    {
        open();
        Workspace &workspace = m_window->workspace();
        const ModelOptions before = workspace.modelOptions();
        QAction *ask = m_window->commands().find(QStringLiteral("file.modelOptions"));
        QVERIFY(ask && ask->isEnabled());
        ask->trigger();
        auto *dialog = m_window->findChild<ModelOptionsDialog *>();
        QVERIFY(dialog && dialog->isVisible());
        auto *optimizer = dialog->findChild<QComboBox *>();
        const auto fields = dialog->findChildren<QLineEdit *>();
        QCOMPARE(fields.size(), 4);
        QPushButton *anew = nullptr;
        for (QPushButton *button : dialog->findChildren<QPushButton *>())
            anew = button->isDefault() ? button : anew;
        QVERIFY(anew);
        optimizer->setCurrentIndex(optimizer->findText(QStringLiteral("SGD")));
        fields[0]->setText(QStringLiteral("fast"));
        QVERIFY(!anew->isEnabled()); // and a sentence says why
        fields[0]->setText(QStringLiteral("0.5"));
        fields[2]->setText(QStringLiteral("-1"));
        QVERIFY(!anew->isEnabled());
        fields[2]->setText(QStringLiteral("2.5"));
        fields[3]->setText(QStringLiteral("much"));
        QVERIFY(!anew->isEnabled());
        fields[3]->setText(QStringLiteral("1.25x"));
        QVERIFY(anew->isEnabled());
        QTest::mouseClick(anew, Qt::LeftButton);
        QCOMPARE(workspace.modelOptions().optimizer, Optimizer::Sgd);
        QCOMPARE(workspace.modelOptions().learningRate, 0.5);
        QCOMPARE(workspace.modelOptions().clipNorm, 2.5);
        QCOMPARE(workspace.modelOptions().capacities.at("*").factor, 1.25);
        QTRY_VERIFY_WITH_TIMEOUT(
            proven() && workspace.model()->source.options == workspace.modelOptions(), kLong);
        workspace.undo();
        QVERIFY(workspace.modelOptions() == before);
        QTRY_VERIFY_WITH_TIMEOUT(proven() && workspace.model()->source.options == before, kLong);
    }

    void theStatusBarHasRoomForWhatItShows()
    {
        open();
        const auto shown = [this] {
            int count = 0;
            for (const QLabel *label :
                m_window->statusBar()->findChildren<QLabel *>(Qt::FindDirectChildrenOnly)) {
                if (!label->isVisible())
                    continue;
                ++count;
                if (label->width() < label->sizeHint().width()
                    || label->geometry().right() > m_window->statusBar()->width())
                    return -1; // cut off
            }
            return count;
        };
        m_window->resize(2000, 900);
        QTRY_VERIFY(shown() >= 9);
        int before = 100;
        for (const int width : {1400, 1200, 1000, 850}) {
            m_window->resize(std::max(width, m_window->minimumSizeHint().width()), 800);
            QTRY_VERIFY(shown() > 0);
            QVERIFY(shown() <= before);
            before = shown();
        }
        QVERIFY(before < 9);
    }

    void aFileThatDoesNotOpenSaysSoOnTheStartPage()
    {
        m_window->openHere(QStringLiteral("/no/such/file.onnx"));
        QTRY_VERIFY_WITH_TIMEOUT(m_window->notices().isShown(QStringLiteral("open")), kLong);
        QCOMPARE(m_window->workspace().model(), nullptr);
        QVERIFY(m_window->findChild<StartPage *>()->isVisible());
    }

    void openingCanBeCancelled()
    {
        m_window->openHere(QStringLiteral("zoo:gpt?layers=96&hidden=12288&heads=96"));
        QVERIFY(m_window->workspace().isOpening());
        m_window->workspace().cancelOpening();
        QVERIFY(!m_window->workspace().isOpening());
        QVERIFY(m_window->findChild<StartPage *>()->isVisible());
        open();
    }

    void aChangedModelFileAsks()
    {
        open();
        Q_EMIT m_window->workspace().modelFileChanged(QStringLiteral(PLANLOOM_SOURCE_DIR "/README.md"));
        QVERIFY(m_window->notices().button(QStringLiteral("model"), QStringLiteral("Reload")));
        QTest::mouseClick(
            m_window->notices().button(QStringLiteral("model"), QStringLiteral("Keep")), Qt::LeftButton);
        QVERIFY(!m_window->notices().isShown(QStringLiteral("model")));
        Q_EMIT m_window->workspace().modelFileChanged(QStringLiteral("/no/such/file.onnx"));
        QVERIFY(m_window->notices().textOf(QStringLiteral("model")).contains(QStringLiteral("gone")));
    }

    void perspectivesShowTheirDocksAndTheComparison()
    {
        open();
        DockBoard &docks = m_window->docks();
        QTest::keyClick(m_window->dag(), Qt::Key_2, Qt::ControlModifier | Qt::AltModifier);
        QCOMPARE(docks.current(), QStringLiteral("compare"));
        QVERIFY(m_window->compare() != nullptr);
        QVERIFY(!m_window->dag()->isVisible());
        QVERIFY(!docks.find(QStringLiteral("model"))->isVisible());
        QVERIFY(m_window->trigger(QStringLiteral("view.perspectiveRun")));
        QVERIFY(m_window->dag()->isVisible());
        QVERIFY(docks.find(QStringLiteral("run"))->isVisible());
        QVERIFY(m_window->trigger(QStringLiteral("view.perspectiveDesign")));
        QVERIFY(docks.find(QStringLiteral("model"))->isVisible());
        docks.find(QStringLiteral("inspector"))->hide();
        QTest::keyClick(m_window->dag(), Qt::Key_4, Qt::ControlModifier);
        QVERIFY(docks.find(QStringLiteral("inspector"))->isVisible());
        docks.find(QStringLiteral("model"))->hide();
        QVERIFY(m_window->trigger(QStringLiteral("view.resetLayout")));
        QVERIFY(docks.find(QStringLiteral("model"))->isVisible());
    }

    void everyPerspectiveHasALowerHeightOfItsOwn()
    {
        m_window->resize(1600, 1000);
        open();
        DockBoard &docks = m_window->docks();
        const auto enter = [&](const char *perspective) {
            docks.apply(QLatin1String(perspective));
            QCoreApplication::processEvents();
        };
        const auto height = [&](const char *dock) { return docks.find(QLatin1String(dock))->height(); };
        docks.reset();
        enter("design");
        const int design = height("constraints");
        enter("compare");
        const int compare = height("plans");
        QVERIFY2(compare < design, qPrintable(QStringLiteral("%1 of %2").arg(compare).arg(design)));
        m_window->resizeDocks({docks.find(QStringLiteral("plans"))}, {compare + 60}, Qt::Vertical);
        QCoreApplication::processEvents();
        const int chosen = height("plans");
        QVERIFY(chosen > compare);
        enter("design");
        QCOMPARE(height("constraints"), design);
        enter("compare");
        QCOMPARE(height("plans"), chosen);
        docks.reset(); // what a person chose goes as well
        QCoreApplication::processEvents();
        QCOMPARE(height("plans"), compare);
    }

    void theSessionRemembersItsView()
    {
        open();
        addRow("recompute layer:0 per layer"); // from here on there is a file
        QVERIFY(m_window->trigger(QStringLiteral("view.beside")));
        m_window->docks().find(QStringLiteral("model"))->hide();
        m_window->setColouring(TimelineColouring::Stage);
        QTRY_VERIFY_WITH_TIMEOUT(m_window->workspace().isAcknowledged(), kLong);
        const QString path = m_window->workspace().path();
        QVERIFY(!path.isEmpty());
        m_window->close();
        m_window.reset();
        m_window = std::make_unique<MainWindow>(services());
        m_window->show();
        m_window->openHere(path);
        QTRY_VERIFY_WITH_TIMEOUT(
            m_window->workspace().latest() && m_window->workspace().latest()->verdict, kLong);
        QCOMPARE(m_window->timeline()->colouring(), TimelineColouring::Stage);
        QVERIFY(!m_window->docks().find(QStringLiteral("model"))->isVisible());
        QCOMPARE(m_window->findChild<QSplitter *>(QStringLiteral("window.splitter"))->orientation(),
            Qt::Horizontal);
        QVERIFY(m_window->workspace().canUndo());
        // And the start page of the next window knows it.
        MainWindow other(services());
        QTRY_VERIFY(!other.findChildren<RecentCard *>().isEmpty());
        QCOMPARE(other.findChildren<RecentCard *>().front()->path(), path);
    }

    void twoWindowsHaveTwoSessions()
    {
        open();
        MainWindow *second = m_window->openWindow();
        second->openSample(small());
        QTRY_VERIFY_WITH_TIMEOUT(second->workspace().latest() && second->workspace().latest()->scene, kLong);
        second->workspace().editTable(QStringLiteral("a row"),
            insertText(second->workspace().table(), 0, "recompute layer:0 per layer"));
        QVERIFY(second->workspace().canUndo());
        QVERIFY(!m_window->workspace().canUndo());
        second->close();
    }

    void picturesAreWrittenInAllFormatsAndThemes()
    {
        open();
        QTRY_VERIFY_WITH_TIMEOUT(m_window->isSettled(), kLong);
        m_window->selection().select({OperatorId{8}});
        QTRY_VERIFY(m_window->timeline()->partOfSelection());
        std::set<QByteArray> different;
        for (const bool timeline : {false, true}) {
            for (const PictureTheme theme : {PictureTheme::Light, PictureTheme::Dark, PictureTheme::Print}) {
                for (const PicturePart part :
                    {PicturePart::Whole, PicturePart::InSight, PicturePart::Selection}) {
                    for (const char *suffix : {"png", "svg", "pdf"}) {
                        PictureChoice choice;
                        choice.timeline = timeline;
                        choice.theme = theme;
                        choice.part = part;
                        choice.scale = 1.5;
                        choice.suffix = QLatin1String(suffix);
                        const QString path =
                            m_folder->filePath(QStringLiteral("picture.%1").arg(choice.suffix));
                        QVERIFY(saved(choice, path));
                        QFile file(path);
                        QVERIFY(file.open(QIODevice::ReadOnly));
                        const QByteArray bytes = file.readAll();
                        different.insert(bytes);
                        if (choice.suffix == QLatin1String("svg")) {
                            QVERIFY2(textsOf(bytes) > 3, path.toUtf8()); // selectable, not outlines
                        } else if (choice.suffix == QLatin1String("pdf")) {
                            QVERIFY(bytes.startsWith("%PDF"));
                            QVERIFY(bytes.contains("/Font"));
                        } else if (part == PicturePart::InSight) {
                            const QSize size =
                                timeline ? m_window->timeline()->viewport()->size() : m_window->dag()->size();
                            QCOMPARE(QImage(path).width(), qRound(size.width() * 1.5));
                        }
                    }
                }
            }
        }
        QCOMPARE(different.size(), std::size_t{54}); // each is a picture of its own
    }

    void whatIsWrongWithAPictureIsSaid()
    {
        open();
        QTRY_VERIFY_WITH_TIMEOUT(m_window->isSettled(), kLong);
        PictureChoice choice;
        QVERIFY(!saved(choice, m_folder->filePath(QStringLiteral("picture.bmp"))));
        QCOMPARE(m_window->problems()->count(), 1);
        QVERIFY(!saved(choice, QStringLiteral("/no/such/folder/picture.png")));
        QCOMPARE(m_window->problems()->count(), 2);
    }

    /// Tile by tile: the same as in one piece, and larger than a painter reaches.
    void picturesHaveNoLimit()
    {
        const QSizeF size(3000, 700);
        const auto paint = [](QPainter &painter) {
            painter.setRenderHint(QPainter::Antialiasing, false);
            for (int i = 0; i < 40; ++i)
                painter.fillRect(QRect(i * 75, i * 17, 60, 300), QColor::fromHsv(i * 9, 200, 200));
        };
        PictureSource source;
        source.size = size;
        source.ground = Qt::white;
        source.paint = paint;
        int tiles = 0;
        source.pixels = [&](const QRectF &tile, double scale) {
            ++tiles;
            return pixelsOf(tile, scale, Qt::white, paint);
        };
        const QString path = m_folder->filePath(QStringLiteral("tiles.png"));
        QVERIFY(writePicture(path, source, 1));
        QVERIFY(tiles > 4);
        QCOMPARE(QImage(path).convertToFormat(QImage::Format_RGB32),
            pixelsOf(QRectF(QPointF(), size), 1, Qt::white, paint));
        source.size = QSizeF(40'000, 40);
        QVERIFY(writePicture(path, source, 1));
        const QImage wide(path);
        QCOMPARE(wide.size(), QSize(40'000, 40));
        QCOMPARE(wide.pixel(30, 20), QColor::fromHsv(0, 200, 200).rgb());
        QCOMPARE(wide.pixel(39'999, 39), QColor(Qt::white).rgb());
        std::stop_source stop;
        stop.request_stop();
        const auto given =
            writePicture(m_folder->filePath(QStringLiteral("never.png")), source, 1, stop.get_token());
        QVERIFY(!given && given.error().code == ErrorCode::Cancelled);
        QVERIFY(!QFile::exists(m_folder->filePath(QStringLiteral("never.png"))));
    }

    void allThemesAndColouringsPaint()
    {
        open();
        for (const Theme theme : kThemes) {
            applyTheme(*qApp, theme);
            for (int number = 0; number < kTimelineColouringCount; ++number) {
                const auto colouring = static_cast<TimelineColouring>(number);
                m_window->setColouring(colouring);
                QCOMPARE(m_window->timeline()->colouring(), colouring);
            }
            QVERIFY(!m_window->grab().isNull());
        }
        applyTheme(*qApp, Theme::Light);
    }

private:
    WindowServices services()
    {
        if (!m_settings)
            m_settings = std::make_shared<Settings>();
        WindowServices services;
        services.settings = m_settings;
        services.sessionFolder = m_folder->filePath(QStringLiteral("sessions"));
        services.recentFolder = services.sessionFolder;
        return services;
    }

    void open()
    {
        m_window->openSample(small());
        QTRY_VERIFY_WITH_TIMEOUT(proven(), kLong);
    }

    void addRow(const char *row)
    {
        Workspace &workspace = m_window->workspace();
        workspace.editTable(
            QString::fromLatin1(row), insertText(workspace.table(), workspace.table().lineCount(), row));
    }

    static void drop(MainWindow &window, const QString &path)
    {
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(path)});
        QDragEnterEvent enter({100, 100}, Qt::CopyAction, &data, Qt::LeftButton, {});
        QApplication::sendEvent(&window, &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent event({100, 100}, Qt::CopyAction, &data, Qt::LeftButton, {});
        QApplication::sendEvent(&window, &event);
    }

    bool saved(const PictureChoice &choice, const QString &path)
    {
        QSignalSpy spy(m_window.get(), &MainWindow::pictureSaved);
        m_window->savePicture(choice, path);
        return (!spy.isEmpty() || spy.wait(kLong)) && spy.at(0).at(1).toBool();
    }
    static int textsOf(const QByteArray &svg)
    {
        QXmlStreamReader reader(svg);
        int texts = 0;
        while (!reader.atEnd()) {
            if (reader.readNext() == QXmlStreamReader::StartElement && reader.name() == QLatin1String("text"))
                ++texts;
        }
        return reader.hasError() ? -1 : texts;
    }
    bool proven() const
    {
        return m_window->pill()->mood() == StatusPill::Mood::Proven && !m_window->workspace().isStale();
    }

    std::unique_ptr<QTemporaryDir> m_folder;
    std::shared_ptr<Settings> m_settings;
    std::unique_ptr<MainWindow> m_window;
};

PLANLOOM_QTEST(MainWindowTest)
#include "main_window_test.moc"
