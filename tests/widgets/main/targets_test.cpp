#include <QtCore/QObject>
#include <QtCore/QTemporaryDir>
#include <QtTest/QTest>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QFileDialog>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTableWidget>

#include "engine/hardware/cluster_json.h"
#include "engine/hardware/framework.h"
#include "tests/qt_test.h"
#include "widgets/design/cluster_values.h"
#include "widgets/frame/application_style.h"
#include "widgets/main/command_registry.h"
#include "widgets/main/main_window.h"
#include "widgets/status/pill_state.h"
#include "widgets/target/cluster_chooser.h"
#include "widgets/target/framework_chooser.h"
#include "widgets/target/measurements_dialog.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <utility>

using namespace planloom;

/// What a design is planned for, as it is chosen in the window.
class TargetsTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase() { applyTheme(*qApp, false); }

    void init()
    {
        m_folder = std::make_unique<QTemporaryDir>();
        m_window = std::make_unique<MainWindow>();
        m_window->workspace().setSessionFolder(m_folder->path());
        m_window->resize(1400, 900);
        m_window->show();
        QVERIFY(QTest::qWaitForWindowExposed(m_window.get()));
        workspace().openWith({"zoo:gpt?layers=4&hidden=64&heads=4&seq=32&vocab=100&batch=8", {}, {}},
            "dgx-a100", 4, "3d:dp=1,tp=2,pp=2,schedule=1f1b,micro-batches=4");
        QTRY_VERIFY_WITH_TIMEOUT(isPlanned(), kLong);
    }

    void cleanup()
    {
        m_window.reset();
        m_folder.reset();
    }

    /// Each says what it takes for granted before it is chosen.
    void frameworksAreListedWithWhatTheyAssume()
    {
        const FrameworkChooser *chooser = frameworks();
        QCOMPARE(chooser->currentText(), QStringLiteral("no framework"));
        QCOMPARE(chooser->count(), static_cast<int>(frameworkNames().size()) + 1);
        for (int i = 1; i < chooser->count(); ++i) {
            const QString tip = chooser->itemData(i, Qt::ToolTipRole).toString();
            const std::string name = chooser->itemText(i).toStdString();
            QVERIFY(tip.contains(QString::fromStdString(meaningOfFramework(name)).toHtmlEscaped()));
            for (const FrameworkAssumption &each : assumptionsOfFramework(name))
                QVERIFY(tip.contains(QString::fromStdString(each.source).toHtmlEscaped()));
        }
    }

    /// A choice plans anew, is one step, and stays when the cluster or its queues change.
    void aFrameworkIsOneStep()
    {
        const double without = step();
        const StepId before = workspace().history().current();
        choose(QStringLiteral("fsdp"));
        QCOMPARE(workspace().history().current(), before + 1);
        QTRY_VERIFY_WITH_TIMEOUT(isPlannedWith("fsdp"), kLong);
        QVERIFY(step() > without); // launches take longer than the kernels of this model
        QCOMPARE(workspace().cluster(), std::string("dgx-a100+fsdp"));
        QCOMPARE(clusters()->currentText(), QStringLiteral("dgx-a100"));
        QVERIFY(statusText(workspace(), {}, kStepPart).contains(QStringLiteral("with fsdp")));
        QVERIFY(statusTipOf(workspace(), kStepPart).contains(QStringLiteral("dgx-a100:4+fsdp")));
        workspace().undo();
        QCOMPARE(frameworks()->currentText(), QStringLiteral("no framework"));
        QTRY_VERIFY_WITH_TIMEOUT(isPlannedWith(""), kLong);
        QCOMPARE(step(), without);
        workspace().redo();
        QCOMPARE(frameworks()->currentText(), QStringLiteral("fsdp"));
        clusters()->setCurrentText(QStringLiteral("dgx-h100"));
        Q_EMIT clusters()->activated(clusters()->currentIndex());
        QCOMPARE(workspace().cluster(), std::string("dgx-h100+fsdp"));
        QTRY_VERIFY_WITH_TIMEOUT(isPlannedWith("fsdp"), kLong);
        choose(QStringLiteral("no framework"));
        QCOMPARE(workspace().cluster(), std::string("dgx-h100"));
        QTRY_VERIFY_WITH_TIMEOUT(isPlannedWith(""), kLong);
    }

    /// A cluster of the design's own, as other queues make one, takes a framework as profiles do.
    void aFrameworkStaysBesideOtherQueues()
    {
        choose(QStringLiteral("megatron"));
        QTRY_VERIFY_WITH_TIMEOUT(isPlannedWith("megatron"), kLong);
        QAction *one = m_window->commands().find(QStringLiteral("plan.oneQueue"));
        one->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(
            isPlannedWith("megatron") && good()->cluster.communicationQueues == CommunicationQueues::One,
            kLong);
        QVERIFY(frameworkOfFile(workspace().clusterJson()).empty()); // it is the design's to choose
        choose(QStringLiteral("nanotron"));
        QTRY_VERIFY_WITH_TIMEOUT(isPlannedWith("nanotron"), kLong);
        QCOMPARE(good()->cluster.communicationQueues, CommunicationQueues::One);
        one->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(isPlannedWith("nanotron"), kLong);
        QCOMPARE(workspace().cluster(), std::string("dgx-a100+nanotron"));
        QVERIFY(workspace().clusterJson().empty());
    }

    void aFrameworkIsKeptInTheSession()
    {
        choose(QStringLiteral("deepspeed"));
        QTRY_VERIFY_WITH_TIMEOUT(isPlannedWith("deepspeed") && workspace().isAcknowledged(), kLong);
        const double expected = step();
        const QString path = workspace().path();
        m_window = std::make_unique<MainWindow>();
        m_window->show();
        workspace().openSession(path);
        QTRY_VERIFY_WITH_TIMEOUT(isPlannedWith("deepspeed"), kLong);
        QCOMPARE(frameworks()->currentText(), QStringLiteral("deepspeed"));
        QCOMPARE(step(), expected);
    }

    /// A file with the figures of a framework leaves nothing to choose, and says so.
    void aFileMayHaveAFrameworkOfItsOwn()
    {
        choose(QStringLiteral("fsdp"));
        QTRY_VERIFY_WITH_TIMEOUT(isPlannedWith("fsdp"), kLong);
        const double expected = step();
        Q_EMIT clusters()->chosen("lab", toJson(good()->cluster));
        QCOMPARE(workspace().cluster(), std::string("lab"));
        QTRY_VERIFY_WITH_TIMEOUT(isPlannedWith("fsdp"), kLong);
        QCOMPARE(step(), expected);
        QVERIFY(!frameworks()->isEnabled());
        QCOMPARE(frameworks()->currentText(), QStringLiteral("fsdp"));
        QVERIFY(frameworks()->toolTip().contains(QStringLiteral("The cluster's file")));
        workspace().undo();
        QVERIFY(frameworks()->isEnabled());
    }

    /// Files about machines are read on a worker; what devices they have is the design's where no file says.
    void aClusterIsMadeOfTopologies()
    {
        writeFile("topo.txt",
            "GPU0 GPU1 GPU2 GPU3\nGPU0 X NV4 NV4 NV4\nGPU1 NV4 X NV4 NV4\n"
            "GPU2 NV4 NV4 X NV4\nGPU3 NV4 NV4 NV4 X\n");
        const StepId before = workspace().history().current();
        m_window->commands().find(QStringLiteral("file.topologyCluster"))->trigger();
        auto *dialog = m_window->findChild<QFileDialog *>();
        QVERIFY(dialog);
        Q_EMIT dialog->filesSelected({path("topo.txt")});
        dialog->close();
        QTRY_COMPARE_WITH_TIMEOUT(workspace().cluster(), std::string("dgx-a100-topology"), kLong);
        QCOMPARE(workspace().history().current(), before + 1);
        QTRY_VERIFY_WITH_TIMEOUT(isPlanned() && good()->cluster.links.devicesPerNode == 4, kLong);
        QCOMPARE(good()->cluster.links.intraBandwidth.value, 12 * 20e9);
        QCOMPARE(good()->deviceCount, 4);
        workspace().undo();
        QCOMPARE(workspace().cluster(), std::string("dgx-a100"));
    }

    /// The fit is shown before it is taken; then it is in a file, and the design's.
    void aClusterIsMadeOfMeasurements()
    {
        workspace().setCluster("dgx-a100:4+fsdp");
        writeFile("kernels.json", kernels(-1));
        MeasurementsDialog *dialog = askForMeasurements();
        QVERIFY(!part<QPushButton>(dialog, "save")->isEnabled());
        part<QLineEdit>(dialog, "kernels")->setText(path("kernels.json"));
        QTRY_VERIFY_WITH_TIMEOUT(!dialog->isFitting(), kLong);
        auto *errors = part<QTableWidget>(dialog, "errors");
        QVERIFY(errors->rowCount() >= 1);
        QCOMPARE(errors->item(0, 0)->text(), QStringLiteral("products, 16 bits and more"));
        QCOMPARE(errors->item(0, 1)->text(), QStringLiteral("6"));
        QVERIFY(errors->item(0, 2)->text().endsWith(QLatin1Char('%')));
        auto *device = part<QComboBox>(dialog, "device");
        QCOMPARE(device->count(), 2);
        QCOMPARE(device->currentText(), QStringLiteral("a100_sxm")); // what the design is planned for
        device->setCurrentText(QStringLiteral("h100_sxm"));
        Q_EMIT device->activated(device->currentIndex());
        QTRY_VERIFY_WITH_TIMEOUT(!dialog->isFitting(), kLong);
        QCOMPARE(part<QLineEdit>(dialog, "path")->text(), path("h100_sxm.json"));
        const StepId before = workspace().history().current();
        part<QPushButton>(dialog, "save")->click();
        QTRY_COMPARE_WITH_TIMEOUT(workspace().cluster(), std::string("h100_sxm+fsdp"), kLong);
        QCOMPARE(workspace().history().current(), before + 1);
        QTRY_VERIFY_WITH_TIMEOUT(isPlannedWith("fsdp"), kLong);
        const double share = good()->cluster.device.productEfficiency.value;
        QVERIFY(std::abs(share - 700.0 / 989) < 0.05);
        const auto file = readClusterFile(path("h100_sxm.json").toStdString());
        QVERIFY(file);
        QCOMPARE(workspace().clusterJson(), file->json);
    }

    /// What is wrong has its place, and nothing is written.
    void wrongMeasurementsAreRefusedWithTheirPlace()
    {
        writeFile("wrong.json", kernels(8));
        writeFile("right.json", kernels(-1));
        writeFile("nccl.txt", "nothing\n");
        MeasurementsDialog *dialog = askForMeasurements();
        auto *words = part<QLabel>(dialog, "words");
        auto *line = part<QLineEdit>(dialog, "kernels");
        line->setText(path("wrong.json"));
        QTRY_VERIFY_WITH_TIMEOUT(
            words->text().contains(path("wrong.json") + "#/matmul/8/microseconds"), kLong);
        QVERIFY(words->text().contains(QStringLiteral("correct the row or leave it out")));
        QVERIFY(!part<QPushButton>(dialog, "save")->isEnabled());
        line->setText(path("missing.json"));
        QTRY_VERIFY_WITH_TIMEOUT(words->text().contains(QStringLiteral("missing.json")), kLong);
        line->clear();
        auto *collectives = part<QLineEdit>(dialog, "collectives");
        collectives->setText(path("nccl.txt"));
        QTRY_VERIFY_WITH_TIMEOUT(words->text().contains(path("nccl.txt")), kLong);
        collectives->clear();
        line->setText(path("right.json"));
        QTRY_VERIFY_WITH_TIMEOUT(part<QPushButton>(dialog, "save")->isEnabled(), kLong);
        // A file that is there is replaced by the second click.
        part<QLineEdit>(dialog, "path")->setText(path("nccl.txt"));
        part<QPushButton>(dialog, "save")->click();
        QTRY_VERIFY_WITH_TIMEOUT(words->text().contains(QStringLiteral("already")), kLong);
        QCOMPARE(workspace().cluster(), std::string("dgx-a100"));
        part<QPushButton>(dialog, "save")->click();
        QTRY_COMPARE_WITH_TIMEOUT(workspace().cluster(), std::string("nccl"), kLong);
    }

    /// The output of nccl-tests alone needs a base, and then gives links.
    void linksAreOfNcclTests()
    {
        std::string table = "# nThread 1 nGpus 8 minBytes 8 maxBytes 134217728 step: 2(factor)\n"
                            "# Collective test starting: all_reduce_perf\n# Using devices\n";
        for (int rank = 0; rank < 8; ++rank)
            table += "#  Rank  " + std::to_string(rank) + " Group  0 Pid   7 on     node-a device  "
                + std::to_string(rank) + " [0x07] NVIDIA H100 80GB HBM3\n";
        for (long bytes = 1 << 20; bytes <= 1 << 28; bytes *= 4) {
            const double seconds = 40e-6 + 1.75 * static_cast<double>(bytes) / 400e9;
            char row[200];
            std::snprintf(row, sizeof row, "%ld %ld float sum -1 %.2f %.2f %.2f 0 %.2f %.2f %.2f 0\n", bytes,
                bytes / 4, 1e6 * seconds, bytes / seconds / 1e9, 1.75 * bytes / seconds / 1e9, 1e6 * seconds,
                bytes / seconds / 1e9, 1.75 * bytes / seconds / 1e9);
            table += row;
        }
        writeFile("nccl.txt", table);
        MeasurementsDialog *dialog = askForMeasurements();
        part<QLineEdit>(dialog, "collectives")->setText(path("nccl.txt"));
        QTRY_VERIFY_WITH_TIMEOUT(
            part<QLabel>(dialog, "words")->text().contains(QStringLiteral("choose a base")), kLong);
        auto *base = part<QComboBox>(dialog, "base");
        base->setCurrentText(QStringLiteral("dgx-h100"));
        Q_EMIT base->activated(base->currentIndex());
        QTRY_VERIFY_WITH_TIMEOUT(part<QPushButton>(dialog, "save")->isEnabled(), kLong);
        QCOMPARE(part<QTableWidget>(dialog, "errors")->rowCount(), 1);
        QCOMPARE(part<QTableWidget>(dialog, "errors")->item(0, 0)->text(), QStringLiteral("all_reduce"));
        QCOMPARE(part<QLineEdit>(dialog, "path")->text(), path("dgx-h100.json"));
    }

private:
    static constexpr int kLong = 20'000;

    Workspace &workspace() const { return m_window->workspace(); }
    PlanUpdateSnapshot good() const { return workspace().lastGood(); }
    double step() const { return good()->summary.stepSeconds; }
    bool isPlanned() const
    {
        return good() && good()->scene && !workspace().isPlanning() && !workspace().isStale();
    }
    bool isPlannedWith(const std::string &framework) const
    {
        return isPlanned() && good()->cluster.framework == framework;
    }
    FrameworkChooser *frameworks() const { return m_window->findChild<FrameworkChooser *>(); }
    ClusterChooser *clusters() const { return m_window->findChild<ClusterChooser *>(); }
    QString path(const char *name) const { return m_folder->filePath(QLatin1String(name)); }
    void writeFile(const char *name, const std::string &text) const
    {
        std::ofstream(path(name).toStdString()) << text;
    }
    /// Times of an H100 and of an A100; the row of number `wrong` takes a negative time.
    static std::string kernels(int wrong)
    {
        std::string rows;
        int number = 0;
        for (const auto &[device, rate] : {std::pair{"h100_sxm", 700e6}, {"a100_sxm", 250e6}})
            for (const int m : {256, 2048, 16384})
                for (const int k : {2048, 8192}) {
                    const double time = 2.0 * m * 8192 * k / rate + 5;
                    rows += std::string(rows.empty() ? "" : ",") + "[\"" + device + "\",\"bfloat16\","
                        + std::to_string(m) + ",8192," + std::to_string(k) + ","
                        + std::to_string(number++ == wrong ? -time : time) + "]";
                }
        return R"({"matmul_columns": ["device", "precision", "m", "n", "k", "microseconds"], "matmul": [)"
            + rows + "]}";
    }
    MeasurementsDialog *askForMeasurements() const
    {
        m_window->commands().find(QStringLiteral("file.measuredCluster"))->trigger();
        return m_window->findChild<MeasurementsDialog *>();
    }
    template<typename Part> static Part *part(const MeasurementsDialog *dialog, const char *name)
    {
        return dialog->findChild<Part *>(QLatin1String(name));
    }
    /// As a person does in the tool bar.
    void choose(const QString &framework)
    {
        frameworks()->setCurrentText(framework);
        Q_EMIT frameworks()->activated(frameworks()->currentIndex());
    }

    std::unique_ptr<QTemporaryDir> m_folder;
    std::unique_ptr<MainWindow> m_window;
};

PLANLOOM_QTEST(TargetsTest)
#include "targets_test.moc"
