#pragma once

#include <QtCore/QElapsedTimer>
#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QThreadPool>
#include <QtCore/QTimer>

#include "engine/design/live_solver.h"
#include "widgets/design/plan_update.h"

#include <memory>
#include <stop_token>
#include <vector>

namespace planloom {

/// The best plan of a search that goes on.
struct SearchProgress {
    std::string plan{}; ///< "dp 2, tp 4, zero1"
    double stepSeconds = 0; ///< Simulated.
    double gap = 0; ///< As `SearchResult::gap`.
    bool fits = false;
};

/// Runs the engine off the GUI thread: a worker that opens models and the live solver, immutable snapshots in
/// and out, the newest request wins.
///
/// Lives on the GUI thread and never waits there. Answers arrive in grades, at most ten a second. New
/// timelines, which hands are waiting for, come at once: as many of them a second in the long run, but each
/// rest of the hand gives the next few free way, since an edit is shown as it is and then solved. What is
/// replaced by a newer request is stopped through its token and never heard of again.
class EngineService : public QObject
{
    Q_OBJECT
public:
    static constexpr int kLeastMilliseconds = 100; ///< Between two answers to the views.
    static constexpr int kMostAtOnce = 3; ///< Timelines that are delivered without that, after a rest.

    /// @param leastMilliseconds  between two answers
    explicit EngineService(QObject *parent = nullptr, int leastMilliseconds = kLeastMilliseconds);
    ~EngineService() override;

    /// Opens a model; what was being opened or planned is dropped.
    void open(const ModelSource &source);
    /// Plans; replaces the request before it. @return the revision that the answers will carry
    /// @param begin  as for `makeUpdates`
    std::uint64_t plan(PlanRequest request, PlanUpdateSnapshot begin = {});
    /// Drops everything under way.
    void stop();
    /// Drops the plan under way.
    void stopPlanning();
    /// A search under way ends with the best that it has, and is answered.
    void settle() { m_solver.settle(); }

    void setLeastMilliseconds(int least) { m_leastMilliseconds = least; } ///< Between two answers.

    bool isOpening() const { return m_opening; }
    bool isPlanning() const { return m_planning; }
    /// While it searches, and when that ends: the plan of `PlanRequest::meanwhile`, whether delivered or not;
    /// null before it is there.
    const PlanUpdateSnapshot &meanwhile() const { return m_meanwhile; }

Q_SIGNALS:
    void modelOpened(planloom::ModelSnapshot model);
    void modelFailed(planloom::ModelSource source, planloom::Error error);
    /// The model's inputs have sizes that `source` does not give: those that are 0 in `dimensions`.
    void sizesAsked(
        const planloom::ModelSource &source, const std::vector<planloom::InputDimension> &dimensions);
    void planUpdated(planloom::PlanUpdateSnapshot update);
    /// The search of the newest request has a better plan.
    void searchImproved(const planloom::SearchProgress &progress);
    /// And this is what it makes of the model, with its rows, as `PlanRequest::betterEvery` says.
    void betterPlanned(planloom::PlanUpdateSnapshot update);
    void stateChanged();

private:
    struct Opened {
        Result<ModelSnapshot> model;
        std::vector<InputDimension> missing{}; ///< If the model has them, and sizes are why it did not open.
    };
    using OpenOutcome = std::shared_ptr<const Opened>;

    static Opened opened(const ModelSource &source, const std::stop_token &stop);
    void takeModel();
    void take(std::uint64_t revision, PlanUpdateSnapshot update);
    void deliver();
    bool mayDrawNow();

    QThreadPool m_pool;
    std::stop_source m_openStop;
    QFutureWatcher<OpenOutcome> m_openWatcher{this};
    ModelSource m_source;
    PlanUpdateSnapshot m_meanwhile;
    PlanUpdateSnapshot m_waiting; ///< The newest answer the views have not seen.
    QTimer m_timer;
    QElapsedTimer m_sinceDelivery;
    std::weak_ptr<const TimelineScene> m_drawn; ///< Of the last one with a timeline that was delivered.
    double m_atOnce = kMostAtOnce; ///< Timelines that may be delivered at once, as of `m_sinceCounted`.
    QElapsedTimer m_sinceCounted;
    std::uint64_t m_revision = 0;
    int m_leastMilliseconds;
    bool m_opening = false;
    bool m_planning = false;
    LiveSolver m_solver; ///< The last member: what it reports ends first.
};

} // namespace planloom

Q_DECLARE_METATYPE(planloom::ModelSnapshot)
Q_DECLARE_METATYPE(planloom::ModelSource)
Q_DECLARE_METATYPE(planloom::PlanUpdateSnapshot)
Q_DECLARE_METATYPE(planloom::Error)
Q_DECLARE_METATYPE(planloom::SearchProgress)
