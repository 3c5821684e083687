#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QProcess>
#include <QtCore/QString>
#include <QtCore/QTemporaryDir>
#include <QtCore/QThreadPool>
#include <QtCore/QTimer>

#include "widgets/design/plan_update.h"
#include "widgets/run/run_record.h"
#include "widgets/scene/timeline_scene.h"

#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

namespace planloom {

/// Measured over predicted, for the timeline. Predicted on a cluster of CPU devices like those that run, so
/// that the two can be compared at all; on GPUs, on the plan's own cluster.
struct RunOverlay {
    TimelineSceneSnapshot predicted{};
    TimelineSceneSnapshot measured{}; ///< Null before the first span.
    bool complete = false; ///< All of a step, not what of it has happened so far.
};
using RunOverlaySnapshot = std::shared_ptr<const RunOverlay>;

/// Which step's spans are shown.
enum class StepChoice : std::uint8_t {
    Last, ///< The one under way, or the last one.
    Mean, ///< Of all steps but the first, which warms up.
    Worst, ///< The one that took longest.
    One,
};

/// Runs plans on GPUs, on emulated devices of the CPU or a GPU, or by PyTorch, in a process of its own
/// (planloom-exec), one at a time. Lives on the GUI thread, never waits.
///
/// The process gets the plan as files in a temporary folder and answers with events, a line each. Stopping
/// asks, then kills after `kKillMilliseconds`. A process that dies is a failure with a reason, never more.
class RunService : public QObject
{
    Q_OBJECT
public:
    static constexpr int kKillMilliseconds = 2500;
    static constexpr int kTorchKillMilliseconds = 8000; ///< PyTorch's ranks take their time to end.
    static constexpr int kRefreshMilliseconds = 150; ///< Between two reports of a run.

    explicit RunService(QObject *parent = nullptr);
    ~RunService() override; ///< Stops what runs.

    /// The runner's program; by default planloom-exec beside this one.
    void setProgram(const QString &program);
    const QString &program() const { return m_program; }

    /// Lets runs load these libraries of operator files, beside those of the user's folder. Whoever calls
    /// this has asked the user.
    void allowLibraries(const std::vector<std::string> &paths);
    /// The libraries that `plan` would run with and that are not allowed yet. Reads the user's folder.
    std::vector<std::string> librariesToAsk(const ExecutionPlan &plan) const;

    /// Runs the plan of `update` (which must have a timeline). False while another one runs.
    bool start(const PlanUpdateSnapshot &update, const RunSetup &setup);
    /// Ends the run: one that writes checkpoints behind its step, with a checkpoint; else, and if asked
    /// again, at once.
    void stop();
    bool isRunning() const { return m_running; }
    /// The run under way, or the last one.
    const RunRecord &record() const { return m_record; }
    const PlanUpdateSnapshot &update() const { return m_update; }
    RunOverlaySnapshot overlay() const { return m_overlay; }
    /// `step` is for One. Steps whose spans are not known are passed by; the overlay follows.
    void chooseStep(StepChoice choice, int step = 0);
    StepChoice stepChoice() const { return m_choice; }
    /// The step that is shown, from 0; -1 for the mean, or if none is.
    int shownStep() const;
    /// Paused, spans that come are kept but not shown; the run goes on.
    void setViewPaused(bool paused);
    bool isViewPaused() const { return m_viewPaused; }

    /// Shows a stored run over the plan it was made of: overlay and record follow.
    void show(const RunRecord &record, const QByteArray &measured, const PlanUpdateSnapshot &update);

    /// The machine's profile has changed: the run that is shown gets a new prediction.
    void predictAgain();

Q_SIGNALS:
    void recordChanged();
    void overlayChanged();
    void finished(); ///< Done, failed or stopped: `record()` says which.

private:
    struct Prepared {
        std::shared_ptr<QTemporaryDir> folder{};
        TimelineSceneSnapshot predicted{};
        double predictedStepSeconds = 0;
        StepWork work{};
        double fastestRate = 0;
        std::optional<Error> error{};
        RunRecord record{}; ///< Of `show`.
        RunOverlaySnapshot overlay{};
    };
    using PreparedSnapshot = std::shared_ptr<Prepared>;

    void prepared();
    void prepareShown(const RunRecord &record, std::string measured, bool predictsAgain);
    void launch(const PreparedSnapshot &ready);
    void readLines(bool last);
    void parse(QByteArray lines);
    void makeMeasured(ReportedStep reported);
    void endIfRead();
    void processEnded();
    void refresh();
    void requestOverlay();
    void finish(const std::optional<Error> &error);

    QString m_program;
    std::set<std::string> m_allowedLibraries; ///< Absolute paths.
    QThreadPool m_pool;
    QFutureWatcher<PreparedSnapshot> m_prepareWatcher{this};
    QFutureWatcher<RunOverlaySnapshot> m_overlayWatcher{this};
    std::stop_source m_stop;
    std::unique_ptr<QProcess> m_process;
    std::shared_ptr<QTemporaryDir> m_folder;
    QByteArray m_lines; ///< What has not ended in a line yet.
    int m_parsing = 0; ///< Batches of lines that are being read.
    bool m_ended = false; ///< The process has; `m_endError` says how.
    std::optional<Error> m_endError;
    QTimer m_refreshTimer;
    QTimer m_killTimer;
    PlanUpdateSnapshot m_update;
    RunSetup m_setup;
    RunRecord m_record;
    TimelineSceneSnapshot m_predicted;
    RunOverlaySnapshot m_overlay;
    std::size_t m_overlaySpans = 0; ///< Live spans in the last overlay asked for.
    bool m_overlayWanted = false;
    bool m_viewPaused = false;
    StepChoice m_choice = StepChoice::Last;
    int m_chosenStep = 0;
    bool m_running = false;
};

} // namespace planloom
