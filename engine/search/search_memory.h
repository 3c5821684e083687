#pragma once

#include "engine/lowering/layout/path_finder.h"
#include "engine/search/solver.h"
#include "engine/search/steps_seen.h"
#include "engine/search/time/step_estimate.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom {

/// The model may be wrong by so much, before anything was simulated.
constexpr double kModelTrust = 0.1;

/// By what the model's seconds are to be multiplied to be those simulated, as far as simulations have shown.
class Correction
{
public:
    struct Range {
        double least = 1;
        double likely = 1;
    };
    /// @param proven  seconds in the model that no plan of the configuration is below; 0 or infinite:
    /// not known
    void learn(const Configuration &configuration, double modelled, double simulated, double proven = 0);
    /// @param trust  how far the model may be off where nothing was simulated
    Range of(const Configuration &configuration, double trust) const;
    /// What is proven in the model of a configuration times this is likely proven of its simulated plans. Of
    /// one that was simulated, or one alike, nearly what was seen; else nearly the least by which simulations
    /// with its schedule were above what was proven of them; else as far off as the model may be.
    double leastOf(const Configuration &configuration) const;

    /// Other stages than those that were priced made a plan of the configuration faster, by this factor. What
    /// is proven is of stages that were priced: a pipeline whose stages were not moved may gain as much.
    void learnMoved(const Configuration &configuration, double factor);

    /// Likewise of the model's bytes; 1 where none alike was simulated.
    void learnPeak(const Configuration &configuration, double modelled, double simulated);
    double peakOf(const Configuration &configuration) const;

private:
    /// Of plans with one schedule: how they are wrong in the mean.
    struct Family {
        double sum = 0;
        std::int32_t count = 0;
        void add(double each)
        {
            sum += each;
            ++count;
        }
        double mean() const { return sum / count; }
    };
    std::map<Configuration, double> m_same{};
    std::map<Configuration, double> m_alike{};
    /// By schedule, over how many axes they have shards, whether stages differ in their devices, and whether
    /// gradients are reduced in every micro-batch.
    using FamilyKey = std::tuple<ScheduleKind, int, bool, bool>;
    std::map<FamilyKey, Family> m_families{};
    std::map<FamilyKey, double> m_leastProven{}; ///< As `leastOf` says.
    std::set<Configuration> m_moved{}; ///< Those whose stages were moved,
    double m_leastMoved = 1; ///< and the least factor by which that made one of them faster.
    std::map<Configuration, double> m_samePeak{};
    std::map<std::array<bool, 7>, Family> m_peaks{}; ///< By what decides what is held for a while.
};

/// What was found of a configuration.
struct KnownBound {
    double proven = 0; ///< Seconds that no partition is below.
    double likely = 0; ///< As `StepEstimator::likelyBoundOf`.
    bool fits = true; ///< False: it is proven that none of its partitions does.
    std::int64_t needed =
        0; ///< Bytes that some device holds in all of its plans, where none fits; 0: not known.
    /// A partition of it that holds less than the fastest fitted, and was worth looking at.
    bool isWorthFitting = false;
    double fitted = 0; ///< Seconds, in the model, of the fastest of its plans that fitted; 0 where none did.
    double priced = 0; ///< And of the fastest of all of its plans that were priced.
    /// Seconds that its plans were not taken to be below when simulated, by what simulations had shown of it
    /// and of others when the search was over; 0: it was not priced.
    double simulatedLeast = 0;
    bool isNeedless =
        false; ///< `StepEstimator::mayNeedRecompute` says so, at the memory limit that there was.
};
using KnownBounds = std::map<Configuration, KnownBound>;

/// What searches of one model remember. One search uses it at a time.
struct SearchMemory::Kept {
    std::mutex inUse{};

    /// Forgets all if it is of something else.
    void use(const GraphSnapshot &graph, const Cluster &cluster, std::int32_t deviceCount,
        PrecisionPreset precision, const CostModel &costs);

    /// Those of the cluster; what collectives take is remembered.
    const CostModel &costs() const { return m_costs; }
    const std::shared_ptr<UsualPartitions> &usual() const { return m_usual; }
    const std::shared_ptr<PathMemory> &paths() const { return m_paths; }
    const std::shared_ptr<StepsSeen> &seen() const { return m_seen; }

    StepEstimator *estimatorOf(const std::string &rows);
    void remember(std::string rows, std::unique_ptr<StepEstimator> estimator);

    /// By all rows of a plan.
    const TimedStep *outcomeOf(const std::string &rows) const;
    void remember(std::string rows, TimedStep outcome);

    /// What the same rows led to, without its plan: an edit that is undone brings the plan back that was
    /// there.
    const SearchResult *resultOf(const ConstraintTable &rows) const;
    void remember(const ConstraintTable &rows, SearchResult result);
    /// Plans that were found for some of these rows, or for more, the newest first: they may hold with these.
    std::vector<const SearchResult *> relativesOf(const ConstraintTable &rows);

    /// What was found for some of the rows, and holds for all of them.
    /// @param keptBy  bytes that a batch no longer keeps, at most, where a row has something computed again
    KnownBounds boundsFor(const ConstraintTable &rows, const std::vector<Configuration> &configurations,
        std::int64_t memoryLimit, const std::function<double(const Row &)> &keptBy);
    /// @param known  before the search; @param found  proven by it; infinite: no partition fits
    void remember(
        const ConstraintTable &rows, KnownBounds known, const std::map<Configuration, double> &found);
    /// By configuration: `KnownBound::simulatedLeast`. Of rows whose bounds were remembered last.
    void rememberSimulated(const ConstraintTable &rows, const std::map<Configuration, double> &least);

    /// Whether the best plan of the last search that was no edit had stages on unequal groups of devices.
    bool unequalHelped() const { return m_unequalHelped; }
    void rememberUnequal(bool helped) { m_unequalHelped = helped; }

    /// For tables that differ in rows that only restrict plans.
    Correction &correctionFor(const ConstraintTable &rows);

private:
    using Rows = std::vector<std::string>; ///< Enabled ones as text, sorted.
    static Rows enabled(const ConstraintTable &rows);

    GraphSnapshot m_graph{};
    Cluster m_cluster{};
    std::int32_t m_deviceCount = 0;
    PrecisionPreset m_precision{};
    CostModel m_costs{};
    std::shared_ptr<UsualPartitions> m_usual{};
    std::shared_ptr<PathMemory> m_paths{}; ///< Of lowering.
    std::shared_ptr<StepsSeen> m_seen{}; ///< Of plans, by whatever rows.
    /// By rows; the last used first.
    std::deque<std::pair<std::string, std::unique_ptr<StepEstimator>>> m_estimators{};
    std::map<std::string, TimedStep> m_outcomes{};
    struct TableBounds {
        Rows rows{};
        KnownBounds bounds{};
        std::uint64_t used =
            0; ///< Of those that are kept the longest unused goes: not what all edits add to.
    };
    std::deque<TableBounds> m_bounds{}; ///< The newest first, as the next.
    struct TableResult {
        Rows rows{};
        SearchResult result{};
        std::uint64_t used = 0; ///< As of `TableBounds`.
    };
    std::deque<TableResult> m_results{};
    std::uint64_t m_uses = 0;
    bool m_unequalHelped = false;
    std::map<std::string, Correction> m_corrections{}; ///< By rows that change what plans are.
};

} // namespace planloom
