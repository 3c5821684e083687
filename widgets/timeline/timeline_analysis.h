#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QThreadPool>

#include "engine/analyse/critical_path.h"
#include "engine/analyse/idle_times.h"
#include "engine/analyse/steady_state.h"
#include "widgets/scene/timeline_scene.h"

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// What is known of a timeline beyond its picture. Immutable.
struct TimelineAnalysis {
    TimelineSceneSnapshot scene{}; ///< Of which.
    std::optional<SteadyState> steady{}; ///< Of pipelines.
    bool deep = false; ///< The rest is there.
    TimelineDependencies dependencies{};
    CriticalPath path{};
    std::vector<std::int64_t> slack{}; ///< By row of the spans, nanoseconds.
    IdleTimes idle{}; ///< Why devices compute nothing.

    /// Rows of the path that run at some time in [begin, end), as indices into it. O(log path)
    LaneRows pathIn(double begin, double end) const;
};
using TimelineAnalysisSnapshot = std::shared_ptr<const TimelineAnalysis>;

/// `deep` finds dependencies, critical path, slack and idle times too. O(spans): not for the GUI thread.
/// @param plan  whose rows bound the micro-batches in flight; may be null
/// @return null once `stop` is requested
TimelineAnalysisSnapshot analyse(TimelineSceneSnapshot scene, bool deep,
    const std::shared_ptr<const Plan> &plan = {}, std::stop_token stop = {});

/// Analyses the newest timeline on a worker: at once how its pipeline is filled, and, from the first time
/// that someone asks for it, what its spans wait for.
class TimelineAnalyst : public QObject
{
    Q_OBJECT
public:
    explicit TimelineAnalyst(QObject *parent = nullptr);
    ~TimelineAnalyst() override;

    void setScene(TimelineSceneSnapshot scene);
    /// Someone wants dependencies and what follows from them; `ready` follows unless they are there.
    /// @param plan  of the scene, as far as it is known
    void needDeep(std::shared_ptr<const Plan> plan = {});
    /// Of the present scene; null while nothing is known.
    const TimelineAnalysisSnapshot &analysis() const { return m_analysis; }
    /// `analysis()` with all that `needDeep` asks for; null otherwise.
    const TimelineAnalysis *deep() const
    {
        return m_analysis && m_analysis->deep ? m_analysis.get() : nullptr;
    }

Q_SIGNALS:
    void ready();

private:
    void start(bool deep);
    void take();

    QThreadPool m_pool;
    QFutureWatcher<TimelineAnalysisSnapshot> m_watcher{this};
    std::stop_source m_stop;
    TimelineSceneSnapshot m_scene;
    std::shared_ptr<const Plan> m_plan;
    TimelineAnalysisSnapshot m_analysis;
    bool m_asked = false; ///< For the present scene.
};

} // namespace planloom
