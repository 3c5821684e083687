#pragma once

#include "engine/hardware/cluster.h"
#include "engine/hardware/cost_model.h"
#include "engine/lowering/order/sequence.h"
#include "engine/plan/complete.h"
#include "engine/search/steps_seen.h"
#include "engine/simulate/timeline.h"

#include <memory>
#include <stop_token>

namespace planloom {

class PathMemory;

/// A plan carried out: what it takes, and what was made on the way.
struct TriedPlan {
    TimedStep step{};
    /// Null where the step was known of an equal plan, as those below.
    std::shared_ptr<const Plan> plan{};
    std::shared_ptr<const MaterializedPlan> materialized{};
    TimelineSnapshot figures{}; ///< Without spans.
};

/// What is tried: plans of `model` that more rows make with `rows`.
struct TrialSetting {
    const Model &model;
    const Cluster &cluster;
    std::int32_t deviceCount = 1; ///< Of the cluster's.
    const ConstraintTable &rows;
    const CostModel &costs;
    PrecisionPreset precision = PrecisionPreset::Float32;
    const std::stop_token &stop;
    const std::shared_ptr<PathMemory> &paths; ///< Of the cluster and the costs; may be null.
    const std::shared_ptr<StepsSeen> &seen; ///< Likewise; not null.
};

/// The plan of `asked` and, behind them, `found`, as it is tried.
/// @return the error of a row that does not hold
Result<Completion> completedWith(const Model &model, const Cluster &cluster, std::int32_t deviceCount,
    const ConstraintTable &asked, const ConstraintTable &found, PrecisionPreset precision);

/// Completes, lowers and simulates plans of one search, one after the other; the next one on another thread
/// meanwhile, if it is told which that may be. For one thread.
class PlanTrials
{
public:
    explicit PlanTrials(const TrialSetting &setting); ///< What it refers to must outlive it.
    ~PlanTrials();
    PlanTrials(const PlanTrials &) = delete;
    PlanTrials &operator=(const PlanTrials &) = delete;

    /// The plan is there where its step was not seen before.
    /// @return the error of a row that does not hold; Cancelled if stopped
    Result<TriedPlan> of(const ConstraintTable &rows);

    /// Begins with rows that may be asked for next. What `of` returns does not depend on it.
    void begin(const ConstraintTable &rows);
    bool isBegun() const { return m_begun != nullptr; }
    /// Drops what has begun.
    void drop();

private:
    struct Begun;
    Result<TriedPlan> tried(const ConstraintTable &rows, const std::stop_token &stop) const;
    Result<TriedPlan> carriedOut(Plan plan, const std::stop_token &stop) const;

    const TrialSetting m_setting;
    std::unique_ptr<Begun> m_begun{}; ///< The last member: it uses what is above.
};

} // namespace planloom
