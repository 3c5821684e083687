// PyTorch as a place to run: an interpreter that is a script here, asked and started as a real one is.

#include <QtCore/QElapsedTimer>
#include <QtGui/QAction>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QTabWidget>

#include "planloom_paths.h"
#include "tests/qt_test.h"
#include "tests/widgets/run/fake_python.h"
#include "widgets/run/run_models.h"
#include "widgets/run/run_panel.h"

using namespace planloom;
using testing_support::fakePython;
using testing_support::kProbedTorch;

namespace {

/// Three steps on two devices; of the last one the first instruction of each.
constexpr const char *kTraining = R"(echo '{"v": 1, "t": "hello", "devices": 2, "steps": 3}'
echo '{"v": 1, "t": "ready", "peak_bytes": [1000, 2000]}'
for n in 0 1 2; do
if [ $n = 2 ]; then for d in 0 1; do
echo '{"v": 1, "t": "live", "device": '$d', "step": [2], "segment": [0], "instruction": [0], "micro_batch": [0], "start": [1000], "duration": [500000]}'
done; fi
echo '{"v": 1, "t": "step", "n": '$n', "loss": '$((3 - n))', "seconds": 0.25, "learning_rate": 0.1}'
done
echo '{"v": 1, "t": "done", "losses": [3, 2, 1], "step_seconds": [0.25, 0.25, 0.25], "peak_bytes": [1000, 2000], "first_step": 0, "checkpoint": ""}')";

struct TorchStage {
    QTemporaryDir folder;
    Workspace workspace;
    SelectionModel selection;
    RunPanel panel{&workspace, &selection};

    void open(const QByteArray &probe, const QByteArray &torchrun = {})
    {
        panel.service().setProgram(QStringLiteral(PLANLOOM_BINARY_DIR "/bin/planloom-exec"));
        panel.resize(1200, 500);
        panel.show();
        workspace.openWith({"zoo:mlp?layers=2&hidden=32&batch=8", {}, {}}, "dgx-a100", 2, "data-parallel");
        QTRY_VERIFY_WITH_TIMEOUT(workspace.latest() && workspace.latest()->verdict && !workspace.isPlanning()
                && panel.runAction()->isEnabled(),
            kLong);
        panel.setSetup({.steps = 3, .check = false});
        panel.python()->setPath(fakePython(folder, probe, torchrun));
        auto *backend = panel.findChild<QComboBox *>(QStringLiteral("run.backend"));
        backend->setCurrentIndex(static_cast<int>(RunBackend::Torch));
        QTRY_VERIFY_WITH_TIMEOUT(panel.python()->found() != nullptr, kLong);
    }
    bool isSaid(const QString &words) const
    {
        for (const auto *list : panel.findChildren<QListWidget *>())
            for (int row = 0; row < list->count(); ++row)
                if (list->item(row)->text().contains(words))
                    return true;
        return false;
    }
};

} // namespace

class TorchPlaceTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aRunByPyTorchIsShownAndKept()
    {
        TorchStage stage;
        stage.open(kProbedTorch, kTraining);
        QTRY_VERIFY_WITH_TIMEOUT(
            stage.isSaid(QStringLiteral("PyTorch 2.15.0 runs it in 2 processes on CPUs")), kLong);
        QVERIFY(stage.panel.python()->isVisible());
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
        QSignalSpy said(&stage.panel, &RunPanel::said);
        stage.panel.runAction()->trigger();
        QVERIFY(stage.panel.service().isRunning());
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        const RunRecord &record = stage.panel.service().record();
        QVERIFY2(record.state == RunState::Done, record.sentence().c_str());
        QCOMPARE(record.losses, (std::vector<double>{3, 2, 1}));
        QCOMPARE(record.peakBytes, (std::vector<std::int64_t>{1000, 2000}));
        QVERIFY(record.measured());
        QCOMPARE(record.measured()->spans.size(), std::size_t{2});
        QTRY_VERIFY_WITH_TIMEOUT(
            stage.panel.service().overlay() && stage.panel.service().overlay()->complete, kLong);
        QTRY_COMPARE_WITH_TIMEOUT(stage.workspace.runs().front().state, std::string("done"), kLong);
        QVERIFY(stage.workspace.runs().front().title.find("processes of PyTorch") != std::string::npos);
        const auto kept = RunRecord::fromJson(stage.workspace.runs().front().details);
        QVERIFY(kept);
        QCOMPARE(kept->setup.backend, RunBackend::Torch);
        QCOMPARE(kept->setup.python, stage.folder.filePath(QStringLiteral("python")).toStdString());
        QCOMPARE(said.count(), 2); // that it began, and how it ended
        QVERIFY(!said.last().at(1).toBool());
    }

    void whyAPythonDoesNotRunItIsSaidAndTheProcessorOffered()
    {
        TorchStage stage;
        stage.open(
            R"(echo 'PLANLOOM {"python": "3.9.1", "torch": "2.1.0", "distributed": true, "gloo": true}')");
        QTRY_VERIFY_WITH_TIMEOUT(stage.isSaid(QStringLiteral("need 2.6 or newer")), kLong);
        QVERIFY(!stage.panel.runAction()->isEnabled());
        QVERIFY(stage.panel.refusal().contains(QStringLiteral("need 2.6 or newer")));
        auto *offer = stage.panel.findChild<QAction *>(QStringLiteral("run.takeOffer"));
        QTRY_VERIFY_WITH_TIMEOUT(offer->isVisible(), kLong);
    }

    void aRankThatFailsIsNamed()
    {
        TorchStage stage;
        stage.open(kProbedTorch,
            R"(echo '{"v": 1, "t": "hello", "devices": 2, "steps": 3}'
echo '{"v": 1, "t": "error", "code": "internal", "message": "all-reduce of fc1: connection closed", "advice": "", "where": "rank 1"}'
exit 1)");
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
        QSignalSpy said(&stage.panel, &RunPanel::said);
        stage.panel.runAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        const RunRecord &record = stage.panel.service().record();
        QCOMPARE(record.state, RunState::Failed);
        QVERIFY2(record.sentence().find("all-reduce of fc1: connection closed") != std::string::npos,
            record.sentence().c_str());
        QCOMPARE(record.error->where, std::string("rank 1"));
        QVERIFY(said.last().at(1).toBool());
        QTRY_COMPARE_WITH_TIMEOUT(stage.workspace.runs().front().state, std::string("failed"), kLong);
    }

    void stopEndsThePyTorchProcesses()
    {
        TorchStage stage;
        const QString mark = stage.folder.filePath(QStringLiteral("ended"));
        stage.open(kProbedTorch,
            "echo '{\"v\": 1, \"t\": \"hello\", \"devices\": 2, \"steps\": 3}'\n"
            "echo '{\"v\": 1, \"t\": \"ready\", \"peak_bytes\": [1, 1]}'\n"
            "trap 'touch \""
                + mark.toUtf8() + "\"; exit 1' TERM; sleep 600 & wait");
        QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
        stage.panel.runAction()->trigger();
        QTRY_COMPARE_WITH_TIMEOUT(stage.panel.service().record().state, RunState::Running, kLong);
        stage.panel.stopAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning(), kLong);
        QCOMPARE(stage.panel.service().record().state, RunState::Stopped);
        QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(mark), kLong);
    }

    void aClosedWindowEndsThem()
    {
        QTemporaryDir folder;
        const QString mark = folder.filePath(QStringLiteral("ended"));
        {
            TorchStage stage;
            stage.open(kProbedTorch,
                "echo '{\"v\": 1, \"t\": \"ready\", \"peak_bytes\": [1, 1]}'\n"
                "trap 'touch \""
                    + mark.toUtf8() + "\"; exit 1' TERM; sleep 600 & wait");
            QTRY_VERIFY_WITH_TIMEOUT(stage.panel.runAction()->isEnabled(), kLong);
            stage.panel.runAction()->trigger();
            QTRY_COMPARE_WITH_TIMEOUT(stage.panel.service().record().state, RunState::Running, kLong);
        }
        QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(mark), kLong);
    }

    void whatWasTypedWrongIsSaidBelowTheFields()
    {
        TorchStage stage;
        stage.open(kProbedTorch, kTraining);
        QLineEdit *rate = nullptr;
        for (auto *edit : stage.panel.findChildren<QLineEdit *>())
            if (edit->accessibleName() == QStringLiteral("Learning rate"))
                rate = edit;
        QVERIFY(rate);
        auto *problem = stage.panel.findChild<QLabel *>(QStringLiteral("training.problem"));
        QVERIFY(problem->isHidden());
        QTest::keyClicks(rate, QStringLiteral("nicde"));
        QVERIFY(!problem->isHidden());
        QVERIFY2(problem->text().contains(QStringLiteral("not “nicde”")), qPrintable(problem->text()));
        QVERIFY(!stage.panel.runAction()->isEnabled());
        rate->setText(QStringLiteral("1e-3"));
        QVERIFY(problem->isHidden());
    }

    void runsComeFirstAndTheLastOneIsTold()
    {
        TorchStage stage;
        stage.open(kProbedTorch, kTraining);
        stage.panel.runAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!stage.panel.service().isRunning() && !stage.workspace.runs().empty()
                && stage.workspace.runs().front().state == "done",
            kLong);
        RunPanel later(&stage.workspace, &stage.selection); // as if the session were opened again
        auto *tabs = later.findChild<QTabWidget *>();
        QCOMPARE(tabs->tabText(0), QStringLiteral("Runs"));
        QCOMPARE(tabs->currentIndex(), 0);
        bool isTold = false;
        for (const auto *label : later.findChildren<QLabel *>())
            isTold = isTold || label->text().startsWith(QStringLiteral("The last run, "));
        QVERIFY(isTold);
    }
};

PLANLOOM_QTEST(TorchPlaceTest)
#include "torch_place_test.moc"
