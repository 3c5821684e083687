#include "widgets/run/run_service.h"

#include "engine/design/models/operator_files.h"
#include "engine/design/models/reference.h"
#include "engine/hardware/cluster.h"
#include "engine/hardware/cost.h"
#include "engine/interop/torch/launch/torch_probe.h"
#include "engine/kernels/custom/operator_library.h"
#include "engine/runtime/live_timeline.h"
#include "engine/runtime/machine/calibrate.h"
#include "engine/runtime/processes/run_folder.h"
#include "engine/simulate/simulate.h"
#include "widgets/run/readiness.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QCoreApplication>

#include <algorithm>
#include <chrono>
#include <utility>

namespace planloom {

namespace {

struct Prediction {
    TimelineSceneSnapshot scene{};
    double seconds = 0;
    StepWork work{};
    double fastestRate = 0;
};

/// What is expected of GPUs: the plan's own times, on the cluster that it was made for.
Prediction predictOnCluster(TimelineSceneSnapshot scene)
{
    Prediction prediction;
    const ExecutionPlan &plan = *scene->plan;
    prediction.work = stepWorkOf(plan);
    DataType type = DataType::Float32;
    for (const Precision &precision : plan.precisions)
        type = precision.compute != DataType::Float32 ? precision.compute : type;
    prediction.fastestRate =
        static_cast<double>(plan.devices.size()) * matrixFlopsOf(scene->deviceModel(DeviceId{0}), type);
    prediction.seconds = std::chrono::duration<double>(scene->timeline->step).count();
    prediction.scene = std::move(scene);
    return prediction;
}

/// Processors are predicted by what was measured of this machine's, unless the plan is for processors whose
/// figures say how PyTorch does on them.
bool isPredictedHere(const TimelineScene &scene, const RunSetup &setup)
{
    if (setup.backend != RunBackend::Torch)
        return setup.backend == RunBackend::Cpu;
    if (scene.cluster.links.architecture == LinkArchitecture::SharedMemory)
        return false;
    const auto probe = torchProbeIn(setup.pythonSaid, setup.python);
    const auto place = probe ? torchPlaceOf(*probe, processesOf(*scene.plan)) : probe.error();
    return !place || !place->onGpus;
}

Result<Prediction> predict(const TimelineSceneSnapshot &scene, const RunSetup &setup, std::stop_token stop)
{
    if (!isPredictedHere(*scene, setup))
        return predictOnCluster(scene);
    const std::shared_ptr<const ExecutionPlan> &plan = scene->plan;
    TRY(const Cluster cluster, clusterNamed("cpu:" + std::to_string(plan->devices.size())));
    TRY(const MachineProfile profile, profileFor(*plan, profilePath(), {}, stop));
    TRY(Timeline timeline,
        predictRun(
            *plan, profile, setup.ranks <= 1 && setup.backend == RunBackend::Cpu, {}, std::move(stop)));
    Prediction prediction;
    prediction.work = stepWorkOf(*plan);
    prediction.fastestRate = fastestRate(profile);
    prediction.seconds = std::chrono::duration<double>(timeline.step).count();
    prediction.scene =
        makeTimelineScene(std::make_shared<const Timeline>(std::move(timeline)), plan, cluster);
    return prediction;
}

Result<void> writeRun(const std::string &folder, const std::shared_ptr<const ExecutionPlan> &plan,
    const RunSetup &setup, double predictedStepSeconds, const std::set<std::string> &allowed)
{
    RunRequest request;
    TRY(request.options.libraries, trustedLibraries({}));
    request.options.libraries.insert(request.options.libraries.end(), allowed.begin(), allowed.end());
    request.plan = *plan;
    request.options.steps = setup.steps;
    request.options.seed = static_cast<std::uint64_t>(setup.seed);
    request.options.randomWeights = true;
    request.options.training = setup.training;
    request.options.poison = setup.check;
    request.options.keepGradients = setup.check;
    request.predictedStepSeconds = predictedStepSeconds;
    request.liveSpans = setup.live;
    request.temporary = true; // nothing is left of it if this program is killed
    request.backend = nameOf(setup.backend);
    request.python = setup.python;
    request.pythonSaid = setup.pythonSaid;
    request.ranks = setup.backend != RunBackend::Cpu
        ? 1 // the runner knows better
        : std::clamp(setup.ranks, 1, static_cast<std::int32_t>(plan->devices.size()));
    if (setup.check) {
        TRY(request.reference, referenceOf(*plan));
    }
    return writeRunFolder(folder, request);
}

RunOverlaySnapshot overlayOf(
    TimelineSceneSnapshot predicted, std::shared_ptr<const Timeline> measured, bool complete)
{
    auto overlay = std::make_shared<RunOverlay>();
    overlay->complete = complete;
    if (measured)
        overlay->measured = makeTimelineScene(std::move(measured), predicted->plan, predicted->cluster);
    overlay->predicted = std::move(predicted);
    return overlay;
}

} // namespace

RunService::RunService(QObject *parent)
    : QObject(parent)
    , m_program(QCoreApplication::applicationDirPath() + QStringLiteral("/planloom-exec"))
{
    m_pool.setMaxThreadCount(1);
    m_refreshTimer.setInterval(kRefreshMilliseconds);
    connect(&m_refreshTimer, &QTimer::timeout, this, &RunService::refresh);
    m_killTimer.setSingleShot(true);
    connect(&m_killTimer, &QTimer::timeout, this, [this] {
        if (m_process)
            m_process->kill();
    });
    connect(&m_prepareWatcher, &QFutureWatcherBase::finished, this, &RunService::prepared);
    connect(&m_overlayWatcher, &QFutureWatcherBase::finished, this, [this] {
        if (m_overlayWatcher.future().resultCount() == 0)
            return;
        if (const RunOverlaySnapshot made = m_overlayWatcher.result()) {
            m_overlay = made;
            Q_EMIT overlayChanged();
        }
        if (std::exchange(m_overlayWanted, false))
            requestOverlay();
    });
}

RunService::~RunService()
{
    m_stop.request_stop();
    if (!m_process)
        return;
    m_process->disconnect(this);
    if (m_setup.backend == RunBackend::Torch) { // the runner ends PyTorch's processes, and then itself
        m_process->terminate();
        m_process.release();
        return;
    }
    m_process->kill(); // the ranks die with their supervisor
    m_process->waitForFinished(kKillMilliseconds);
}

void RunService::allowLibraries(const std::vector<std::string> &paths)
{
    m_allowedLibraries.insert(paths.begin(), paths.end());
}

std::vector<std::string> RunService::librariesToAsk(const ExecutionPlan &plan) const
{
    std::vector<std::string> paths = librariesOf(*plan.graph);
    if (paths.empty())
        return paths;
    std::set<std::string> known = m_allowedLibraries;
    if (const auto trusted = trustedLibraries({}))
        known.insert(trusted->begin(), trusted->end());
    std::erase_if(paths, [&](const std::string &path) { return known.contains(path); });
    return paths;
}

void RunService::setProgram(const QString &program)
{
    m_program = program;
}

bool RunService::start(const PlanUpdateSnapshot &update, const RunSetup &setup)
{
    if (m_running || !update || !update->scene)
        return false;
    m_running = true;
    m_update = update;
    m_setup = setup;
    m_killTimer.setInterval(setup.backend == RunBackend::Torch ? kTorchKillMilliseconds : kKillMilliseconds);
    m_stop = std::stop_source{};
    m_predicted.reset();
    m_overlay.reset();
    m_overlaySpans = 0;
    m_ended = false;
    m_endError.reset();
    m_choice = StepChoice::Last;
    m_viewPaused = false;
    m_record = RunRecord(update->scene->plan, setup, 0);
    m_prepareWatcher.setFuture(QtConcurrent::run(&m_pool,
        [scene = update->scene, plan = update->scene->plan, setup, allowed = m_allowedLibraries,
            stop = m_stop.get_token()]() -> PreparedSnapshot {
            auto ready = std::make_shared<Prepared>();
            auto prediction = predict(scene, setup, stop);
            if (!prediction) {
                ready->error = prediction.error();
                return ready;
            }
            ready->predicted = prediction->scene;
            ready->predictedStepSeconds = prediction->seconds;
            ready->work = prediction->work;
            ready->fastestRate = prediction->fastestRate;
            ready->folder = std::make_shared<QTemporaryDir>();
            if (!ready->folder->isValid()) {
                ready->error = Error{ErrorCode::Io,
                    "no folder for the run can be made: " + ready->folder->errorString().toStdString(),
                    "make room on the disk of temporary files", {}};
                return ready;
            }
            if (const auto written =
                    writeRun(ready->folder->path().toStdString(), plan, setup, prediction->seconds, allowed);
                !written)
                ready->error = written.error();
            return ready;
        }));
    m_refreshTimer.start();
    Q_EMIT recordChanged();
    Q_EMIT overlayChanged();
    return true;
}

void RunService::prepared()
{
    if (m_prepareWatcher.future().resultCount() == 0)
        return;
    const PreparedSnapshot ready = m_prepareWatcher.result();
    m_prepareWatcher.setFuture({});
    if (ready->overlay) { // of `show`
        m_record = std::move(ready->record);
        m_overlay = ready->overlay;
        m_predicted = m_overlay->predicted;
        Q_EMIT recordChanged();
        Q_EMIT overlayChanged();
        return;
    }
    if (!m_running)
        return;
    if (m_stop.stop_requested()) {
        m_record.cancelling = true;
        finish({});
    } else if (ready->error) {
        finish(ready->error);
    } else {
        launch(ready);
    }
}

void RunService::launch(const PreparedSnapshot &ready)
{
    m_folder = ready->folder;
    m_predicted = ready->predicted;
    m_record.predictedStepSeconds = ready->predictedStepSeconds;
    m_record.work = ready->work;
    m_record.fastestRate = ready->fastestRate;
    m_lines.clear();
    m_process = std::make_unique<QProcess>();
    m_process->setProgram(m_program);
    m_process->setArguments(
        {QStringLiteral("run"), QStringLiteral("--plan"), m_folder->filePath(QStringLiteral("plan.json")),
            QStringLiteral("--options"), m_folder->filePath(QStringLiteral("options.json"))});
    connect(m_process.get(), &QProcess::readyReadStandardOutput, this, [this] { readLines(false); });
    connect(m_process.get(), &QProcess::finished, this, &RunService::processEnded);
    connect(m_process.get(), &QProcess::errorOccurred, this, [this](QProcess::ProcessError error) {
        if (error != QProcess::FailedToStart)
            return; // others end in `finished`
        finish(Error{ErrorCode::NotFound,
            "the runner " + m_program.toStdString()
                + " cannot be started: " + m_process->errorString().toStdString(),
            "install planloom-exec beside planloom", {}});
    });
    m_process->start(QIODevice::ReadWrite);
    requestOverlay();
}

void RunService::stop()
{
    if (!m_running)
        return;
    const bool endsBehindStep = !m_setup.training.checkpoints.empty() && m_setup.backend != RunBackend::Torch;
    if (endsBehindStep && m_record.state == RunState::Running && !m_record.finishing && m_process
        && m_process->state() != QProcess::NotRunning) {
        m_record.finishing = true;
        m_process->write("finish\n");
        Q_EMIT recordChanged();
        return;
    }
    m_stop.request_stop();
    m_record.cancelling = true;
    if (m_process && m_process->state() != QProcess::NotRunning) {
        m_process->write("cancel\n");
        m_killTimer.start();
    }
    Q_EMIT recordChanged();
}

void RunService::readLines(bool last)
{
    m_lines += m_process->readAllStandardOutput();
    const qsizetype end = last ? m_lines.size() : m_lines.lastIndexOf('\n') + 1;
    if (end <= 0)
        return;
    parse(m_lines.left(end));
    m_lines.remove(0, end);
}

void RunService::parse(QByteArray lines)
{
    // Events of a whole step's spans have megabytes: they are read on the worker, in order (it is one
    // thread).
    using Batch = std::shared_ptr<std::vector<RunEvent>>;
    auto *watcher = new QFutureWatcher<Batch>(this);
    ++m_parsing;
    connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher] {
        watcher->deleteLater();
        --m_parsing;
        for (RunEvent &event : *watcher->result())
            m_record.apply(std::move(event));
        if (auto reported = m_record.takeReported())
            makeMeasured(std::move(*reported));
        endIfRead();
    });
    watcher->setFuture(QtConcurrent::run(&m_pool, [lines]() -> Batch {
        auto batch = std::make_shared<std::vector<RunEvent>>();
        qsizetype begin = 0;
        while (begin < lines.size()) {
            qsizetype end = lines.indexOf('\n', begin);
            if (end < 0)
                end = lines.size();
            if (end > begin)
                batch->push_back(
                    readRunEvent({lines.constData() + begin, static_cast<std::size_t>(end - begin)}));
            begin = end + 1;
        }
        return batch;
    }));
}

void RunService::makeMeasured(ReportedStep reported)
{
    using Made = std::shared_ptr<const Timeline>;
    auto *watcher = new QFutureWatcher<Made>(this);
    ++m_parsing;
    connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher] {
        watcher->deleteLater();
        --m_parsing;
        m_record.setMeasured(watcher->result());
        endIfRead();
    });
    watcher->setFuture(QtConcurrent::run(&m_pool,
        [plan = m_record.plan(), kept = std::make_shared<const ReportedStep>(std::move(reported))]() -> Made {
            return std::make_shared<const Timeline>(measuredTimelineOf(*plan, *kept));
        }));
}

void RunService::endIfRead()
{
    if (!m_ended || m_parsing != 0)
        return;
    if (auto live = m_record.takeLive())
        return makeMeasured(std::move(*live)); // and comes back
    finish(m_endError);
}

void RunService::processEnded()
{
    readLines(true);
    std::optional<Error> error;
    if (m_process->exitStatus() == QProcess::CrashExit)
        error = Error{ErrorCode::Internal, "the runner crashed", "run again; the plan is unchanged", {}};
    else if (m_process->exitCode() != 0) {
        const QString text = QString::fromUtf8(m_process->readAllStandardError()).trimmed();
        error = Error{ErrorCode::Internal,
            "the runner ended with status " + std::to_string(m_process->exitCode())
                + (text.isEmpty() ? std::string{}
                                  : ": " + text.section(QLatin1Char('\n'), 0, 0).toStdString()),
            {}, {}};
    }
    m_ended = true;
    m_endError = error;
    endIfRead();
}

void RunService::finish(const std::optional<Error> &error)
{
    if (!m_running)
        return;
    m_running = false;
    m_killTimer.stop();
    m_refreshTimer.stop();
    m_record.end(error);
    if (m_process) {
        m_process->disconnect(this);
        m_process.release()->deleteLater(); // it may be the sender of what brought us here
    }
    m_folder.reset();
    m_overlaySpans = 0;
    m_viewPaused = false;
    requestOverlay();
    Q_EMIT recordChanged();
    Q_EMIT finished();
}

void RunService::refresh()
{
    if (m_record.liveSpans() != m_overlaySpans && !m_viewPaused)
        requestOverlay();
    Q_EMIT recordChanged();
}

void RunService::requestOverlay()
{
    if (!m_predicted)
        return;
    if (m_overlayWatcher.isRunning()) {
        m_overlayWanted = true;
        return;
    }
    m_overlaySpans = m_record.liveSpans();
    if (m_choice != StepChoice::Last) {
        std::vector<std::shared_ptr<const StepSpans>> steps;
        if (m_choice == StepChoice::Mean) {
            const auto &all = m_record.steps();
            const std::size_t finished =
                m_running ? std::min(all.size(), m_record.losses.size()) : all.size();
            for (std::size_t i = finished > 1 ? 1 : 0; i < finished; ++i)
                steps.push_back(all[i]);
        } else if (const int step = shownStep(); step >= 0) {
            steps.push_back(m_record.steps()[static_cast<std::size_t>(step)]);
        }
        steps.erase(std::remove(steps.begin(), steps.end(), nullptr), steps.end());
        if (!steps.empty()) {
            m_overlayWatcher.setFuture(QtConcurrent::run(&m_pool,
                [predicted = m_predicted, steps = std::move(steps), measured = m_record.measured(),
                    complete = !m_running] {
                    std::vector<const StepSpans *> each;
                    for (const auto &step : steps)
                        each.push_back(step.get());
                    Timeline timeline = timelineOfSpans(
                        *predicted->plan, steps.size() == 1 ? *steps.front() : meanOf(each), Nanoseconds{0});
                    if (measured) // memory is that of the last step: it is reported alone
                        timeline.memory = measured->memory;
                    return overlayOf(
                        predicted, std::make_shared<const Timeline>(std::move(timeline)), complete);
                }));
            return;
        }
    }
    if (m_record.measured()) {
        m_overlayWatcher.setFuture(
            QtConcurrent::run(&m_pool, [predicted = m_predicted, measured = m_record.measured()] {
                return overlayOf(predicted, measured, true);
            }));
        return;
    }
    m_overlayWatcher.setFuture(QtConcurrent::run(
        &m_pool, [predicted = m_predicted, live = m_record.live(), any = m_record.liveSpans() > 0] {
            return overlayOf(predicted,
                any ? std::make_shared<const Timeline>(
                    timelineOfSpans(*predicted->plan, live, Nanoseconds{0}))
                    : nullptr,
                false);
        }));
}

void RunService::chooseStep(StepChoice choice, int step)
{
    if (choice == m_choice && step == m_chosenStep)
        return;
    m_choice = choice;
    m_chosenStep = step;
    requestOverlay();
    Q_EMIT recordChanged();
}

int RunService::shownStep() const
{
    const auto known = [this](std::size_t step) {
        return step < m_record.steps().size() && m_record.steps()[step] ? static_cast<int>(step) : -1;
    };
    switch (m_choice) {
    case StepChoice::Mean:
        return -1;
    case StepChoice::Worst:
        return known(worstStep(m_record.stepSeconds));
    case StepChoice::One:
        return m_chosenStep < 0 ? -1 : known(static_cast<std::size_t>(m_chosenStep));
    case StepChoice::Last:
        break;
    }
    return m_record.losses.empty() ? -1 : static_cast<int>(m_record.losses.size()) - 1;
}

void RunService::setViewPaused(bool paused)
{
    if (paused == m_viewPaused || (paused && !m_running))
        return;
    m_viewPaused = paused;
    if (!paused)
        requestOverlay();
    Q_EMIT recordChanged();
}

void RunService::show(const RunRecord &record, const QByteArray &measured, const PlanUpdateSnapshot &update)
{
    if (m_running || !update || !update->scene)
        return;
    m_update = update;
    m_choice = StepChoice::Last;
    prepareShown(record, measured.toStdString(), false);
}

void RunService::predictAgain()
{
    if (!m_running && m_update && m_predicted)
        prepareShown(m_record, {}, true);
}

void RunService::prepareShown(const RunRecord &record, std::string measured, bool predictsAgain)
{
    m_prepareWatcher.setFuture(QtConcurrent::run(&m_pool,
        [record, bytes = std::move(measured), scene = m_update->scene, plan = m_update->scene->plan,
            predictsAgain, stop = m_stop.get_token()]() -> PreparedSnapshot {
            auto ready = std::make_shared<Prepared>();
            ready->record = record;
            auto prediction = predict(scene, record.setup, stop);
            if (!prediction) {
                ready->error = prediction.error();
                ready->overlay = std::make_shared<RunOverlay>();
                return ready;
            }
            if (!bytes.empty()) {
                auto measured = measuredFromJson(bytes, *plan);
                if (measured)
                    ready->record.setMeasured(std::make_shared<const Timeline>(*std::move(measured)));
                else
                    ready->record.warnings.push_back(measured.error().message);
            }
            if (predictsAgain)
                ready->record.predictedStepSeconds = prediction->seconds;
            ready->record.work = prediction->work;
            ready->record.fastestRate = prediction->fastestRate;
            ready->overlay = overlayOf(prediction->scene, ready->record.measured(), true);
            return ready;
        }));
}

} // namespace planloom

#include "moc_run_service.cpp"
