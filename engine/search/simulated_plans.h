#pragma once

#include "engine/search/plan_trials.h"
#include "engine/search/search_memory.h"
#include "engine/search/solver.h"
#include "engine/search/time/step_estimate.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

namespace planloom {

/// What a search is asked for, and what its parts share. All of it outlives them.
struct SearchRequest {
    const Model &model;
    const Cluster &cluster;
    std::int32_t deviceCount = 1; ///< Of the cluster's.
    const ConstraintTable &rows;
    const SearchOptions &options;
    const std::stop_token &stop;
    const std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();

    double secondsSinceBegin() const
    {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
};

/// The plans of one search that were simulated, what they show of the search's model, and the best of them.
/// For one thread.
class SimulatedPlans
{
public:
    /// A plan that fits.
    struct Fitting {
        double seconds = 0; ///< Simulated.
        StepEstimate estimate{};
    };

    struct Setting { ///< What it refers to outlives them.
        const SearchRequest &request;
        const SearchSpace &space;
        StepEstimator &estimator;
        const CostModel &costs; ///< Of collectives: remembered.
        SearchMemory::Kept *memory = nullptr; ///< Null: nothing is remembered.
        SearchResult &result; ///< The best so far and what was made of it is written here.
        std::function<void()> onBetter{}; ///< Told when that has changed; not empty.
    };
    explicit SimulatedPlans(Setting setting);

    /// Rows that make a plan. @return InvalidInput where there are none
    Result<ConstraintTable> rowsFor(const StepEstimate &estimate) const;

    /// Whether no plan of these rows was asked for before; from now on one was.
    bool isNew(const ConstraintTable &rows);
    bool wasAsked(const ConstraintTable &rows) const;

    enum class Price : std::uint8_t {
        OfThisPlan, ///< The model has priced just this plan.
        OfOther, ///< The estimate's figures are of another plan: those simulated take their place.
        OfNone, ///< Likewise, and the plan lies beside the space.
    };
    /// Simulates a plan. Nothing where it cannot be planned: `problem` has the first reason.
    std::optional<SearchedPlan> simulate(const StepEstimate &estimate, ConstraintTable rows, Price price);

    /// Simulates a plan, and learns by how much the model is wrong about it.
    /// @param proven  seconds in the model that no plan of its configuration is below; 0: not known
    void learnFrom(const StepEstimate &estimate, ConstraintTable rows, double proven);

    /// Begins with a plan that may be asked for next, on another thread, unless its step is known.
    void begin(const ConstraintTable &rows);
    bool isBegun() const { return m_trials.isBegun(); }
    void dropBegun() { m_trials.drop(); }

    bool isEmpty() const { return m_all.empty(); }
    const std::vector<SearchedPlan> &all() const { return m_all; } ///< In the order of time.
    const std::vector<Fitting> &fitting() const { return m_fitting; } ///< Likewise.
    /// Estimates that were simulated for what they teach.
    const std::vector<StepEstimate> &tried() const { return m_tried; }
    void addTried(StepEstimate estimate) { m_tried.push_back(std::move(estimate)); }
    std::int32_t learnt() const { return m_learnt; } ///< Plans of `learnFrom` that could be simulated.
    std::int32_t failed() const { return m_failed; } ///< And that could not be planned.
    /// How far the model may be off where nothing was simulated.
    double trust() const { return m_trust; }
    Correction &correction() { return m_correction; }
    const Correction &correction() const { return m_correction; }
    const std::optional<Error> &problem() const { return m_problem; }

    const SearchedPlan &best() const { return m_setting.result.best; }
    bool isFound() const { return m_isFound; } ///< There is a best.
    bool fits() const { return m_setting.result.fits; } ///< It does.

private:
    /// Links that the cluster does not have are the plan's to complain of.
    bool keepsTraffic(const TimedStep &step) const;
    /// Of a plan's outcome in what is remembered: all its rows.
    std::string keyOf(const ConstraintTable &rows) const;
    /// The plan that rows make; without it where only its step is remembered.
    Result<TriedPlan> carriedOut(const ConstraintTable &rows);
    void takeIfBetter(const SearchedPlan &plan, ConstraintTable rows, TriedPlan made, bool fits);

    const Setting m_setting;
    const std::shared_ptr<PathMemory> m_paths;
    const std::shared_ptr<StepsSeen> m_seen;
    std::vector<SearchedPlan> m_all{};
    std::vector<Fitting> m_fitting{};
    std::set<std::string> m_asked{}; ///< Rows.
    std::vector<StepEstimate> m_tried{};
    std::int32_t m_learnt = 0;
    std::int32_t m_failed = 0; ///< What rows place apart need not go with every schedule.
    double m_trust = kModelTrust;
    Correction m_correction{};
    std::optional<Error> m_problem{};
    bool m_isFound = false;
    PlanTrials m_trials; ///< The last member: it uses what is above.
};

} // namespace planloom
