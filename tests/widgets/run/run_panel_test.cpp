#include <QtCore/QFile>
#include <QtCore/QObject>
#include <QtCore/QStandardPaths>
#include <QtCore/QTemporaryDir>
#include <QtGui/QAction>
#include <QtTest/QAbstractItemModelTester>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QMessageBox>
#include <QtWidgets/QSlider>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QToolButton>

#include "planloom_paths.h"
#include "tests/engine/check/swish_for_tests.h"
#include "tests/engine/check/swish_model.h"
#include "tests/qt_test.h"
#include "widgets/run/run_charts.h"
#include "widgets/run/run_difference.h"
#include "widgets/run/run_models.h"
#include "widgets/run/run_panel.h"
#include "widgets/run/training_form.h"

#include <csignal>

using namespace planloom;

namespace {

constexpr const char *kSmall = "zoo:mlp?layers=2&hidden=32&batch=8";

const QString kProgram = QStringLiteral(PLANLOOM_BINARY_DIR "/bin/planloom-exec");

bool settled(const Workspace &workspace)
{
    return workspace.latest() && workspace.latest()->verdict && !workspace.isStale()
        && !workspace.isPlanning();
}

struct Stage {
    Workspace workspace;
    SelectionModel selection;
    RunPanel panel{&workspace, &selection};

    void open(const char *model, int devices, const char *gallery)
    {
        panel.service().setProgram(kProgram);
        panel.resize(1200, 300);
        panel.show();
        workspace.openWith({model, {}, {}}, "dgx-a100", devices, gallery);
        QTRY_VERIFY_WITH_TIMEOUT(settled(workspace) && panel.runAction()->isEnabled(), kLong);
    }
};

} // namespace

class RunPanelTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aRunFromTheKeyboardEndsEqualToTheModelAndIsKept()
    {
        Stage stage;
        stage.open(kSmall, 4, "data-parallel");
        QSignalSpy overlays(&stage.panel, &RunPanel::overlayChanged);
        QSignalSpy errors(&stage.panel, &RunPanel::errorsChanged);
        stage.panel.activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(&stage.panel));
        QTest::keyClick(&stage.panel, Qt::Key_F9);
        QVERIFY(stage.panel.service().isRunning());
        QVERIFY(!stage.panel.runAction()->isEnabled());
        QVERIFY(stage.panel.stopAction()->isEnabled());
        QCOMPARE(stage.workspace.runs().size(), std::size_t{1});
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        const RunRecord &record = stage.panel.service().record();
        QVERIFY2(record.state == RunState::Done, record.sentence().c_str());
        QVERIFY(record.check && record.check->ok);
        QCOMPARE(record.losses.size(), std::size_t{3});
        QTRY_VERIFY_WITH_TIMEOUT(errors.count() > 0, kLong);
        const RunOverlaySnapshot overlay = stage.panel.service().overlay();
        QVERIFY(overlay && overlay->complete && overlay->measured && overlay->predicted);
        QCOMPARE(overlay->measured->timeline->spans.size(), overlay->predicted->timeline->spans.size());
        QCOMPARE(overlay->predicted->cluster.name, std::string("cpu:4"));
        QTRY_COMPARE_WITH_TIMEOUT(stage.workspace.runs().front().state, std::string("done"), kLong);
        QVERIFY(RunRecord::fromJson(stage.workspace.runs().front().details)->check->ok);
        QVERIFY(stage.panel.findChild<QLabel *>(QStringLiteral("run.badge"))->isVisible());
        QVERIFY(stage.panel.againAction()->isEnabled());
    }

    void aLibraryOfAFileBesideTheModelRunsOnceItIsAllowed()
    {
        QTemporaryDir folder;
        qputenv("XDG_CONFIG_HOME", folder.path().toUtf8()); // no operator files of the user
        const auto write = [&folder](const char *name, const std::string &bytes) {
            QFile file(folder.filePath(QLatin1String(name)));
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(bytes.data(), static_cast<qint64>(bytes.size()));
        };
        write("model.onnx", testing_support::modelWith("LibrarySwish"));
        write("model.ops", testing_support::swishFile());
        Stage stage;
        stage.open(folder.filePath(QStringLiteral("model.onnx")).toUtf8().constData(), 2, "data-parallel");
        for (const bool allowed : {false, true}) {
            stage.panel.runAction()->trigger();
            QVERIFY(!stage.panel.service().isRunning());
            auto *box = stage.panel.findChild<QMessageBox *>();
            QVERIFY(box != nullptr);
            QVERIFY(box->text().contains(QString::fromStdString(testing_support::testLibrary())));
            for (QAbstractButton *button : box->buttons())
                if ((box->buttonRole(button) == QMessageBox::AcceptRole) == allowed)
                    button->click();
            QTRY_VERIFY_WITH_TIMEOUT(stage.panel.findChild<QMessageBox *>() == nullptr, kLong);
            QCOMPARE(stage.panel.service().isRunning(), allowed);
        }
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        const RunRecord &record = stage.panel.service().record();
        QVERIFY2(record.check && record.check->ok, record.sentence().c_str());
        stage.panel.againAction()->trigger(); // asked once
        QVERIFY(stage.panel.service().isRunning());
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
    }

    void severalStepsOfATransformerAreEqualToTheModel()
    {
        // AdamW turns rounding noise of the first step into full steps of some weights: that is no difference
        // of the plan.
        Stage stage;
        stage.open("zoo:gpt?layers=2&hidden=64&heads=4&seq=32&vocab=300&batch=8", 4,
            "3d:dp=1,tp=2,pp=2,micro-batches=4,schedule=1f1b");
        stage.panel.setSetup({.steps = 3, .check = true, .live = true, .seed = 1});
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
        stage.panel.runAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        const RunRecord &record = stage.panel.service().record();
        QVERIFY2(record.check && record.check->ok, record.sentence().c_str());
    }

    void runAgainRepeatsExactly()
    {
        Stage stage;
        stage.open(kSmall, 2, "single");
        stage.panel.setSetup({.steps = 2, .check = false, .live = false, .seed = 11});
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
        stage.panel.runAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        const std::vector<double> losses = stage.panel.service().record().losses;
        QCOMPARE(losses.size(), std::size_t{2});
        QVERIFY(!stage.panel.service().record().check);
        stage.panel.setSetup({.steps = 5, .check = true, .live = true, .seed = 3});
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.againAction()->isEnabled(), kLong);
        stage.panel.againAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        QCOMPARE(stage.panel.service().record().losses, losses);
        QCOMPARE(stage.workspace.runs().size(), std::size_t{2});
    }

    void runAgainTakesTheOldPlanWhateverTheRowsHaveBecome()
    {
        Stage stage;
        stage.open(kSmall, 2, "data-parallel");
        stage.panel.setSetup({.steps = 2, .check = false, .live = false, .seed = 5});
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
        stage.panel.runAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        const PlanUpdateSnapshot ran = stage.panel.service().update();
        const StepId step = stage.workspace.runs().front().step;
        stage.workspace.setTableText("split nothing at all\n"); // no plan follows from this
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.runAction()->isEnabled(), kLong);
        QVERIFY(stage.panel.againAction()->isEnabled());
        stage.panel.againAction()->trigger();
        QVERIFY(stage.panel.service().update() == ran);
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        QVERIFY(stage.panel.service().record().state == RunState::Done);
        QCOMPARE(stage.workspace.runs().size(), std::size_t{2});
        QCOMPARE(stage.workspace.runs().back().step, step);
    }

    void theStepThatIsShownIsChosen()
    {
        Stage stage;
        stage.open(kSmall, 4, "data-parallel");
        QVERIFY(stage.panel.findChild<QLabel *>(QStringLiteral("run.badge"))->isVisible());
        auto *choice = stage.panel.findChild<QComboBox *>();
        auto *slider = stage.panel.findChild<QSlider *>();
        QVERIFY(choice && slider && !slider->isEnabled());
        stage.panel.setSetup({.steps = 4, .check = false, .live = true, .seed = 1});
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
        stage.panel.runAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.service().overlay()->complete, kLong);
        RunService &service = stage.panel.service();
        const std::size_t spans = service.overlay()->measured->timeline->spans.size();
        QCOMPARE(service.record().steps().size(), std::size_t{4});
        QCOMPARE(slider->maximum(), 4);
        QCOMPARE(slider->value(), 4);
        // One step, by the keyboard.
        slider->setFocus();
        QTest::keyClick(slider, Qt::Key_Left);
        QCOMPARE(service.stepChoice(), StepChoice::One);
        QCOMPARE(service.shownStep(), 2);
        const auto shows = [&](const StepSpans &step) {
            const RunOverlaySnapshot overlay = service.overlay();
            std::int64_t sum = 0;
            for (const auto &device : step) {
                for (const LiveSpan &span : device)
                    sum += span.duration;
            }
            for (const std::int64_t duration : overlay->measured->timeline->spans.duration)
                sum -= duration;
            return sum == 0;
        };
        QTRY_VERIFY_WITH_TIMEOUT(shows(*service.record().steps()[2]), kLong);
        QCOMPARE(service.overlay()->measured->timeline->spans.size(), spans);
        choice->setCurrentIndex(2);
        const int worst = static_cast<int>(worstStep(service.record().stepSeconds));
        QCOMPARE(service.shownStep(), worst);
        QTRY_VERIFY_WITH_TIMEOUT(shows(*service.record().steps()[static_cast<std::size_t>(worst)]), kLong);
        choice->setCurrentIndex(1);
        const StepSpans mean = meanOf({service.record().steps()[1].get(), service.record().steps()[2].get(),
            service.record().steps()[3].get()});
        QTRY_VERIFY_WITH_TIMEOUT(shows(mean), kLong);
        choice->setCurrentIndex(0);
        QTRY_VERIFY_WITH_TIMEOUT(service.overlay()->measured->timeline == service.record().measured(), kLong);
    }

    void theDifferenceAddsUpAndCollectivesHaveABandwidth()
    {
        Stage stage;
        stage.open(kSmall, 4, "data-parallel");
        QAbstractItemModelTester tester(
            stage.panel.collectives(), QAbstractItemModelTester::FailureReportingMode::QtTest);
        stage.panel.setSetup({.steps = 2, .check = false, .live = false, .seed = 1});
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
        stage.panel.runAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.difference()->waterfall().has_value(), kLong);
        const Waterfall &waterfall = *stage.panel.difference()->waterfall();
        std::int64_t sum = waterfall.from.step();
        for (const std::int64_t delta : waterfall.delta.nanoseconds)
            sum += delta;
        QCOMPARE(sum, waterfall.to.step());
        QCOMPARE(waterfall.to.step(),
            static_cast<std::int64_t>(stage.panel.service().overlay()->measured->timeline->step.count()));
        QVERIFY(stage.panel.collectives()->rowCount() > 0);
        QCOMPARE(stage.panel.collectives()->index(0, CollectivesModel::Kind).data().toString(),
            QStringLiteral("all-reduce"));
        QVERIFY(stage.panel.collectives()
                    ->index(0, CollectivesModel::Bandwidth)
                    .data()
                    .toString()
                    .endsWith(QStringLiteral("B/s")));
    }

    void theViewIsPausedAndTheRunGoesOn()
    {
        Stage stage;
        stage.open(kSmall, 2, "data-parallel");
        stage.panel.setSetup({.steps = 100'000, .check = false, .live = true, .seed = 1});
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
        QVERIFY(!stage.panel.pauseAction()->isEnabled());
        stage.panel.runAction()->trigger();
        RunService &service = stage.panel.service();
        QTRY_VERIFY_WITH_TIMEOUT(
            service.overlay() && service.overlay()->measured && service.record().losses.size() > 1, kLong);
        stage.panel.pauseAction()->trigger();
        QVERIFY(service.isViewPaused());
        // What was on its way may still come; after that nothing does.
        const std::size_t before = service.record().losses.size();
        QTRY_VERIFY_WITH_TIMEOUT(service.record().losses.size() > before + 20, kLong);
        const RunOverlaySnapshot shown = service.overlay();
        const std::size_t then = service.record().losses.size();
        QTRY_VERIFY_WITH_TIMEOUT(service.record().losses.size() > then + 20, kLong);
        QVERIFY(service.overlay() == shown);
        stage.panel.pauseAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(service.overlay() != shown, kLong);
        stage.panel.stopAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!service.isRunning(), kLong);
        QVERIFY(!stage.panel.pauseAction()->isEnabled());
    }

    void stopEndsALongRunSoon()
    {
        Stage stage;
        stage.open("zoo:mlp?layers=4&hidden=256&batch=64", 2, "data-parallel");
        stage.panel.setSetup({.steps = 100'000, .check = false, .live = true, .seed = 1});
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
        stage.panel.runAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.service().record().losses.size() > 2, kLong);
        QTRY_VERIFY_WITH_TIMEOUT(
            stage.panel.service().overlay() && stage.panel.service().overlay()->measured, kLong);
        stage.panel.stopAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), 5000);
        QCOMPARE(stage.panel.service().record().state, RunState::Stopped);
        QTRY_COMPARE_WITH_TIMEOUT(stage.workspace.runs().front().state, std::string("stopped"), kLong);
    }

    void aStoppedRunWritesItsCheckpointAndIsContinuedUnderAnotherPlan()
    {
        Stage stage;
        const QTemporaryDir folder;
        stage.open(kSmall, 2, "data-parallel");
        QVERIFY(!stage.panel.continueAction()->isEnabled());
        RunSetup setup{.steps = 100'000, .check = false, .live = false, .seed = 1};
        setup.training.batches = BatchSource::Drawn;
        setup.training.learningRate = 0.01;
        setup.training.checkpoints = folder.filePath(QStringLiteral("run")).toStdString();
        stage.panel.setSetup(setup);
        QCOMPARE(stage.panel.setup(), setup);
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
        stage.panel.runAction()->trigger();
        const RunService &service = stage.panel.service();
        QTRY_VERIFY_WITH_TIMEOUT(service.record().losses.size() > 2, kLong);
        stage.panel.stopAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!service.isRunning(), kLong);
        QCOMPARE(service.record().state, RunState::Stopped);
        const auto done = static_cast<std::int64_t>(service.record().losses.size());
        QCOMPARE(service.record().checkpointStep, done);
        QVERIFY(QFile::exists(QString::fromStdString(service.record().checkpoint)));
        QTRY_COMPARE_WITH_TIMEOUT(
            RunRecord::fromJson(stage.workspace.runs().front().details)->checkpointStep, done, kLong);

        stage.workspace.setTableText("place all : devices 0\n"); // another plan
        setup.steps = 3;
        stage.panel.setSetup(setup);
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.continueAction()->isEnabled(), kLong);
        stage.panel.continueAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!service.isRunning(), kLong);
        QVERIFY2(service.record().state == RunState::Done, service.record().sentence().c_str());
        QCOMPARE(service.record().firstStep, done);
        QCOMPARE(service.record().checkpointStep, done + 3);
    }

    void aRunThatCannotBeSaysWhy()
    {
        Stage stage;
        stage.open(kSmall, 2, "data-parallel");
        QVERIFY(stage.panel.refusal().isEmpty());
        QSignalSpy refusals(&stage.panel, &RunPanel::refusalChanged);
        RunSetup setup;
        setup.training.batches = BatchSource::Files;
        setup.training.data = "/no/such/folder";
        stage.panel.setSetup(setup);
        auto *form = stage.panel.findChild<TrainingForm *>();
        Q_EMIT form->changed();
        QVERIFY(!stage.panel.runAction()->isEnabled());
        QVERIFY(refusals.count() > 0);
        QVERIFY(stage.panel.refusal().contains(QStringLiteral("/no/such/folder")));
        QVERIFY(stage.panel.runAction()->toolTip().contains(stage.panel.refusal()));
        stage.panel.setSetup({});
        Q_EMIT form->changed();
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.refusal().isEmpty(), kLong);
    }

    void calibrationTellsItsProgressAndIsKept()
    {
        QTemporaryDir cache;
        qputenv("XDG_CACHE_HOME", cache.path().toUtf8());
        Stage stage;
        stage.open(kSmall, 2, "data-parallel");
        QVERIFY(stage.panel.calibrateAction()->isEnabled());
        stage.panel.calibrateAction()->trigger();
        QVERIFY(!stage.panel.runAction()->isEnabled());
        QVERIFY(stage.panel.stopAction()->isEnabled());
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
        QVERIFY(QFile::exists(cache.filePath(QStringLiteral("planloom/cpu-profile.json"))));
        qunsetenv("XDG_CACHE_HOME");
    }

    void stoppingAtOnceIsSafe()
    {
        Stage stage;
        stage.open(kSmall, 2, "single");
        stage.panel.runAction()->trigger();
        stage.panel.stopAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        QCOMPARE(stage.panel.service().record().state, RunState::Stopped);
    }

    void whatDoesNotFitTheGpusIsEmulatedByAClick()
    {
        QTemporaryDir folder;
        // Another machine: one without GPUs, whatever this one has.
        const QString program = folder.filePath(QStringLiteral("planloom-exec"));
        QFile script(program);
        QVERIFY(script.open(QIODevice::WriteOnly));
        script.write(
            "#!/bin/sh\nif [ \"$1\" = probe ]; then echo '"
            R"({"v":1,"cpu":{"cores":2,"free_bytes":0,"memory_bytes":0,"name":"","vector_units":""},)"
            R"("cuda":"","driver":"","gpu_problem":"there are none","gpus":[],"libraries":[]})"
            "'; else exec '"
            + kProgram.toUtf8() + "' \"$@\"; fi\n");
        script.close();
        QVERIFY(script.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner));
        Stage stage;
        stage.panel.service().setProgram(program);
        stage.panel.resize(1200, 500);
        stage.panel.show();
        stage.workspace.openWith({kSmall, {}, {}}, "dgx-a100", 2, "data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(settled(stage.workspace) && stage.panel.runAction()->isEnabled(), kLong);
        auto *offer = stage.panel.findChild<QAction *>(QStringLiteral("run.takeOffer"));
        auto *backend = stage.panel.findChild<QComboBox *>(QStringLiteral("run.backend"));
        QVERIFY(offer && backend);
        QToolButton *button = nullptr;
        for (auto *each : stage.panel.findChildren<QToolButton *>())
            if (each->defaultAction() == offer)
                button = each;
        QVERIFY(button && !button->isVisible());
        backend->setCurrentIndex(static_cast<int>(RunBackend::Cuda));
        QTRY_VERIFY_WITH_TIMEOUT(button->isVisible(), kLong);
        QVERIFY(!stage.panel.runAction()->isEnabled());
        QCOMPARE(button->accessibleName(), QStringLiteral("Emulate on the Processor Instead"));
        QTest::mouseClick(button, Qt::LeftButton);
        QCOMPARE(backend->currentIndex(), static_cast<int>(RunBackend::Cpu));
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled() && !button->isVisible(), kLong);
        stage.panel.runAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        QVERIFY2(stage.panel.service().record().state == RunState::Done,
            stage.panel.service().record().sentence().c_str());
    }

    void aMissingRunnerIsAReason()
    {
        Stage stage;
        stage.open(kSmall, 2, "single");
        stage.panel.service().setProgram(QStringLiteral("/no/such/planloom-exec"));
        stage.panel.runAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        QCOMPARE(stage.panel.service().record().state, RunState::Failed);
        QVERIFY(stage.panel.service().record().sentence().find("cannot be started") != std::string::npos);
        QCOMPARE(stage.workspace.runs().front().state, std::string("failed"));
    }

    void aRunnerThatTalksNonsenseIsAFailureWithAReason()
    {
        const QString shell = QStandardPaths::findExecutable(QStringLiteral("yes"));
        if (shell.isEmpty())
            QSKIP("there is no program that only talks");
        Stage stage;
        stage.open(kSmall, 2, "single");
        stage.panel.service().setProgram(QStringLiteral("/bin/echo"));
        stage.panel.runAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        QCOMPARE(stage.panel.service().record().state, RunState::Failed);
        QVERIFY(!stage.panel.service().record().warnings.empty());
    }

    void changedRowsAreNotRunUntilTheyArePlanned()
    {
        Stage stage;
        stage.open(kSmall, 2, "data-parallel");
        stage.workspace.setTableText("split nonsense\n");
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.runAction()->isEnabled(), kLong);
        stage.workspace.undo();
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
    }

    void modelsKeepTheRules()
    {
        RunFiguresModel figures;
        RunListModel list;
        const QAbstractItemModelTester testFigures(
            &figures, QAbstractItemModelTester::FailureReportingMode::QtTest);
        const QAbstractItemModelTester testList(
            &list, QAbstractItemModelTester::FailureReportingMode::QtTest);
        RunRecord record;
        record.devices.resize(3);
        figures.setRun(record, nullptr);
        QCOMPARE(figures.rowCount(), 7);
        record.predictedStepSeconds = 0.1;
        record.stepSeconds = {0.2, 0.12};
        figures.setRun(record, nullptr);
        QCOMPARE(figures.index(0, RunFiguresModel::Difference).data().toString(), QStringLiteral("+20%"));
        QCOMPARE(figures.headerData(RunFiguresModel::Measured, Qt::Horizontal, Qt::ToolTipRole).toString(),
            QStringLiteral("Measured on this machine: step 2"));
        record.work = {.samples = 12, .tokens = 0, .flops = 6e9};
        record.fastestRate = 1e11;
        figures.setRun(record, nullptr);
        QCOMPARE(figures.rowCount(), 9);
        QCOMPARE(figures.index(1, RunFiguresModel::Measured).data().toString(), QStringLiteral("100"));
        QCOMPARE(figures.index(2, RunFiguresModel::Figure).data().toString(),
            QStringLiteral("MFU of 100 GFLOP/s"));
        QCOMPARE(figures.index(2, RunFiguresModel::Predicted).data().toString(), QStringLiteral("60.0%"));
        QCOMPARE(figures.index(2, RunFiguresModel::Measured).data().toString(), QStringLiteral("50.0%"));
        SessionRun first;
        first.id = 1;
        first.details = record.toJson();
        SessionRun second = first;
        second.id = 2;
        second.details = "garbage";
        list.setRuns({first, second});
        QCOMPARE(list.runAt(0), 2); // the newest first
        QCOMPARE(list.runAt(1), 1);
        QCOMPARE(list.runAt(5), 0);
        QCOMPARE(list.index(1, RunListModel::Step).data().toString(), QStringLiteral("120 ms"));
    }

    void theWorstOperatorsAreNamed()
    {
        std::vector<OperatorPoint> points;
        for (int i = 0; i < 50; ++i)
            points.push_back({OperatorId{i}, "op" + std::to_string(i), 1e-3,
                1e-3
                    * (i == 17        ? 9
                            : i == 30 ? 0.25
                                      : 1.1)});
        QCOMPARE(OperatorScatter::outliers(points, 2), (std::vector<std::size_t>{17, 30}));
        OperatorScatter scatter;
        scatter.resize(500, 300);
        scatter.setPoints(points);
        scatter.show();
        QSignalSpy chosen(&scatter, &OperatorScatter::chosen);
        QTest::keyClick(&scatter, Qt::Key_Right);
        QCOMPARE(chosen.count(), 1);
        QTest::mouseClick(&scatter, Qt::LeftButton, {}, {1, 1});
        QCOMPARE(chosen.count(), 1);
    }
};

PLANLOOM_QTEST(RunPanelTest)
#include "run_panel_test.moc"
