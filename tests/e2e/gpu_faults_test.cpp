// Runs on a GPU as a person meets them, where there is none: the runner, its processes, and the window are
// the real ones, CUDA and NVIDIA's management library are fakes that break on demand.

#include <QtCore/QElapsedTimer>
#include <QtCore/QFile>
#include <QtCore/QObject>
#include <QtCore/QTemporaryDir>

#include "tests/e2e/runs_in_window.h"

#include <memory>

using namespace planloom;

namespace {

constexpr int kNamedWithin = 15'000; ///< ms.
constexpr int kFreedWithin = 5'000;

void breakCuda(const char *how)
{
    qputenv("PLANLOOM_FAKE_CUDA", how);
}

} // namespace

class GpuFaultsTest : public QObject
{
    Q_OBJECT

private:
    /// A machine with GPUs: a runner with the fakes where it looks for the real ones.
    QTemporaryDir m_machine;

    std::unique_ptr<RunStage> stage() const
    {
        auto made = std::make_unique<RunStage>();
        made->program = m_machine.filePath(QStringLiteral("planloom-exec"));
        made->setup.backend = RunBackend::CudaEmulated;
        made->setup.ranks = 1;
        made->processes = 2;
        made->model = "zoo:gpt?layers=1&hidden=16&heads=4&seq=8&vocab=24&batch=8"; // the fake takes its time
        return made;
    }

private Q_SLOTS:
    void initTestCase()
    {
        QVERIFY(QFile::copy(QStringLiteral(PLANLOOM_BINARY_DIR "/bin/planloom-exec"),
            m_machine.filePath(QStringLiteral("planloom-exec"))));
        QVERIFY(QFile::copy(QStringLiteral(PLANLOOM_BINARY_DIR "/tests/fake_gpu/planloom-cuda.so"),
            m_machine.filePath(QStringLiteral("planloom-cuda.so"))));
        QVERIFY(QFile::copy(QStringLiteral(PLANLOOM_BINARY_DIR "/tests/libplanloom_fake_nvidia.so"),
            m_machine.filePath(QStringLiteral("libnvidia-ml.so.1"))));
        qputenv("LD_LIBRARY_PATH", m_machine.path().toLocal8Bit());
        qputenv("XDG_CACHE_HOME", m_machine.path().toLocal8Bit());
    }
    void init() { breakCuda(""); }

    void aPlanRunsAndIsCheckedAgainstTheUnpartitionedModel()
    {
        const auto at = stage();
        at->open();
        at->setup.check = true;
        at->start(4);
        QTRY_VERIFY_WITH_TIMEOUT(!at->run->service().isRunning(), 4 * kLong);
        const RunRecord &record = at->run->service().record();
        QVERIFY2(record.state == RunState::Done, record.sentence().c_str());
        QCOMPARE(record.losses.size(), std::size_t{4});
        QVERIFY2(
            at->said().contains(QStringLiteral("Equal to the unpartitioned model")), qPrintable(at->said()));
    }

    void aRunThatIsStoppedEndsWithAllItsProcesses()
    {
        const auto at = stage();
        at->begin();
        QElapsedTimer timer;
        timer.start();
        at->run->stopAction()->trigger();
        QTRY_VERIFY_WITH_TIMEOUT(!at->run->service().isRunning() && runners().empty(), kLong);
        QVERIFY2(timer.elapsed() < kFreedWithin, qPrintable(QString::number(timer.elapsed())));
        at->expectOver(RunState::Stopped, kFreedWithin);
        at->expectTheNextToRun();
    }

    void whatBreaksIsNamed_data()
    {
        QTest::addColumn<QByteArray>("fault");
        QTest::addColumn<QString>("said");
        QTest::newRow("the GPU falls off the bus")
            << QByteArray("fail-after=3000 failure=719") << QStringLiteral("719");
        QTest::newRow("memory runs out within a step")
            << QByteArray("fail-after=1500 failure=2") << QStringLiteral("use a smaller batch");
        QTest::newRow("there is too little memory")
            << QByteArray("free-bytes=100000") << QStringLiteral("MiB free");
        QTest::newRow("nothing ends any more")
            << QByteArray("stuck-after=300") << QStringLiteral(" has ended for ");
        QTest::newRow("the driver is too old") << QByteArray("driver=11040") << QStringLiteral("driver");
        QTest::newRow("the plugin is of another version")
            << QByteArray("version=1") << QStringLiteral("is of another version than this program");
    }
    void whatBreaksIsNamed()
    {
        QFETCH(QByteArray, fault);
        QFETCH(QString, said);
        const auto at = stage();
        at->open();
        breakCuda(fault.constData());
        QElapsedTimer timer;
        timer.start();
        at->start(100'000);
        QTRY_VERIFY_WITH_TIMEOUT(!at->run->service().isRunning(), kLong);
        QVERIFY2(at->said().contains(said), qPrintable(at->said()));
        QVERIFY2(timer.elapsed() < kNamedWithin, qPrintable(QString::number(timer.elapsed())));
        at->expectOver(RunState::Failed, kFreedWithin);
        breakCuda("");
        at->expectTheNextToRun();
    }

    void aPluginThatIsNotThereIsNamed()
    {
        const auto at = stage();
        at->open();
        const QString plugin = m_machine.filePath(QStringLiteral("planloom-cuda.so"));
        QVERIFY(QFile::rename(plugin, plugin + QStringLiteral(".away")));
        at->start(1);
        QTRY_VERIFY_WITH_TIMEOUT(!at->run->service().isRunning(), kLong);
        const bool isBack = QFile::rename(plugin + QStringLiteral(".away"), plugin);
        QVERIFY2(
            at->said().contains(QStringLiteral("the CUDA plugin was not found")), qPrintable(at->said()));
        QVERIFY(isBack);
        at->expectTheNextToRun();
    }
};

PLANLOOM_QTEST(GpuFaultsTest)
#include "gpu_faults_test.moc"
