#include "widgets/run/calibration_job.h"

#include "engine/runtime/machine/calibrate.h"
#include "engine/runtime/machine/throughput.h"
#include "widgets/common/format.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QCoreApplication>
#include <QtCore/QElapsedTimer>
#include <QtCore/QPromise>

#include <chrono>
#include <utility>

namespace planloom {

namespace {

/// Translates what belongs to no object.
struct CalibrationTexts {
    Q_DECLARE_TR_FUNCTIONS(CalibrationJob)
};

constexpr double kMostCalibrationSeconds = 120;
constexpr std::int32_t kCalibrationRepeats = 9;

/// What was measured, or why it was not, in a sentence.
QString calibrated(QPromise<QString> &promise, const ExecutionPlan &plan, std::stop_token stop)
{
    const std::string path = profilePath();
    MachineProfile profile;
    if (auto kept = readProfile(path))
        profile = *std::move(kept);
    CalibrateOptions options{
        .seconds = kMostCalibrationSeconds, .repeats = kCalibrationRepeats, .again = true};
    std::size_t measured = 0;
    options.progress = [&](std::size_t done, std::size_t all) {
        measured = done;
        promise.setProgressRange(0, static_cast<int>(all));
        promise.setProgressValue(static_cast<int>(done));
    };
    QElapsedTimer clock;
    clock.start();
    if (const auto done = calibrate(profile, plan, options, std::move(stop)); !done)
        return done.error().code == ErrorCode::Cancelled
            ? CalibrationTexts::tr("Calibration stopped: what was known of this machine stays.")
            : CalibrationTexts::tr("Calibration failed: %1")
                  .arg(QString::fromStdString(done.error().message));
    if (const auto written = writeProfile(path, profile); !written)
        return CalibrationTexts::tr("The profile cannot be kept: %1")
            .arg(QString::fromStdString(written.error().message));
    const QString kernels =
        CalibrationTexts::tr("%1 kernels of this plan measured on %2 in %3, the fastest at %4 GFLOP/s.")
            .arg(measured)
            .arg(QString::fromStdString(profile.machine),
                QString::fromStdString(formatSeconds(static_cast<double>(clock.elapsed()) / 1000)))
            .arg(fastestRate(profile) * 1e-9, 0, 'f', 1);
    const auto predicted = predictRun(plan, profile, true, {.spans = false});
    return predicted ? kernels
            + CalibrationTexts::tr(" A step of it is predicted to take %1 here.")
                  .arg(QString::fromStdString(
                      formatSeconds(std::chrono::duration<double>(predicted->step).count())))
                     : kernels;
}

} // namespace

CalibrationJob::CalibrationJob(QObject *parent)
    : QObject(parent)
{
    connect(&m_watcher, &QFutureWatcherBase::progressValueChanged, this, &CalibrationJob::progressed);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] {
        if (m_watcher.future().resultCount() > 0)
            Q_EMIT finished(m_watcher.result());
    });
}

CalibrationJob::~CalibrationJob()
{
    m_stop.request_stop();
}

void CalibrationJob::start(const std::shared_ptr<const ExecutionPlan> &plan)
{
    if (isRunning() || !plan)
        return;
    m_stop = std::stop_source{};
    m_watcher.setFuture(QtConcurrent::run([plan, stop = m_stop.get_token()](QPromise<QString> &promise) {
        promise.addResult(calibrated(promise, *plan, stop));
    }));
    Q_EMIT progressed();
}

void CalibrationJob::stop()
{
    m_stop.request_stop();
}

} // namespace planloom

#include "moc_calibration_job.cpp"
