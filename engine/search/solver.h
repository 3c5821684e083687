#pragma once

#include "engine/hardware/cost_model.h"
#include "engine/lowering/order/sequence.h"
#include "engine/plan/complete.h"
#include "engine/search/search_space.h"
#include "engine/simulate/summary.h"
#include "engine/simulate/timeline.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

namespace planloom {

/// One configuration that the search looked at.
struct SearchedPlan {
    Configuration configuration{};
    /// Of a step, in the search's model; as simulated, of a plan that the model did not price.
    double seconds = 0;
    std::int64_t peakBytes = 0; ///< Likewise.
    /// Simulated, where it was: step and largest peak; 0 elsewhere.
    double simulatedSeconds = 0;
    std::int64_t simulatedPeak = 0;
    double at = 0; ///< Seconds after the search began.
    bool isBeside =
        false; ///< It is none of the search's space (plans_beside.h), as nothing is that it bounds.
    /// That make it, where it was simulated; null elsewhere.
    std::shared_ptr<const ConstraintTable> rows{};
};

/// How far a search was, in its model.
struct SearchMoment {
    double at = 0; ///< Seconds after it began.
    double best = 0; ///< Seconds of the fastest plan priced that fits; 0 before there is one.
    double bound = 0; ///< Seconds that no plan is below; 0 before all were bounded.
    friend bool operator==(const SearchMoment &, const SearchMoment &) = default;
};

/// The best plan that was found, and what is known of all others.
struct SearchResult {
    ConstraintTable rows{}; ///< That make it, behind those that were asked for.
    SearchedPlan best{};
    bool fits = false; ///< In the devices' memory.
    /// Seconds of a simulated step that no plan of the search's space is likely to be below, and never above
    /// the best plan's, which may be none of the space's (`isOfOthers`).
    ///
    /// The least of all configurations: what is proven of each in the search's model, or nearly what the best
    /// plan of it that was priced takes there, by how far simulations of it, of those alike or of its
    /// schedule have shown the model to be off (by a tenth where there is none); no less than what its
    /// kernels take.
    double bound = 0;
    /// Seconds in the search's model that none of its partitions is below: what is proven there.
    double modelBound = 0;
    std::int64_t configurations = 0; ///< That the rows allow.
    std::int64_t leastPeak = 0; ///< Where nothing fits: the least peak of all in the search's model.
    /// Bytes that some device holds at least, in every configuration: where it is above the limit, it is
    /// proven that nothing fits.
    std::int64_t leastNeeded = 0;
    std::int64_t memoryLimit = 0;
    std::vector<SearchedPlan> seen{}; ///< All that were priced, the fastest first.
    std::vector<SearchMoment> course{}; ///< Where best or bound changed, in the order of time.
    double searchSeconds = 0;
    /// The best plan and what was made of it: whoever goes on with it need not do that again.
    std::shared_ptr<const Plan> plan{};
    std::shared_ptr<const MaterializedPlan> materialized{}; ///< The first half of its lowering.
    TimelineSnapshot figures{}; ///< Its simulation, without spans.

    bool cannotFit() const { return leastNeeded > memoryLimit; }
    /// The bound is of other plans than the best is one of, and more like the best may be below it: of plans
    /// with equal stages, where it has others; of those that are priced, where it lies beside them.
    bool isOfOthers() const { return best.configuration.isUnequal() || best.isBeside; }
    /// By how much of its step a better plan could be shorter: one of those that the bound is of.
    double gap() const
    {
        return best.simulatedSeconds > 0 ? std::max(0.0, 1 - bound / best.simulatedSeconds) : 0;
    }
};

/// What searches of one model remember for the next: prices of partitions and stages, and simulated plans.
/// Rows that do not touch what was worked out leave it as it is. One search uses it at a time; another that
/// comes meanwhile goes without.
class SearchMemory
{
public:
    SearchMemory();
    ~SearchMemory();
    struct Kept; ///< search_memory.h

private:
    friend class PlanSearch;
    std::unique_ptr<Kept> m_kept;
};

struct SearchOptions {
    std::shared_ptr<SearchMemory> memory{}; ///< May be null.
    PrecisionPreset precision = PrecisionPreset::Float32; ///< As `CompletionOptions`.
    /// Of work (`WorkClock`) before the last simulation begins; pricing is not cut short.
    double mostSeconds = 1.5;
    std::int32_t mostSimulated = 12;
    /// On two, the next plan is simulated beside one, before it is known whether it will be needed. What is
    /// found does not depend on it.
    std::int32_t threads = 1;
    std::function<void(const SearchResult &)> onBetter{}; ///< On the searching thread.
};

/// The best plan of `model` within `rows`, which have no errors and leave something to decide
/// (`nothingToSearch`).
///
/// 1. Every configuration that rows, devices and batch allow, and that may fit, is priced (step_estimate.h)
///    unless its likely bound is above the best price: partitions by elimination, exactly where tables stay
///    small; stages where they balance the configuration's fastest partition; blocks of the schedule played
///    one by one. Then those with a second shard axis whose like with one is near the best, where that axis
///    does not divide a dimension that matters (nested_meshes.h): a few, which count as configurations of the
///    space from then on. What is computed again only takes time where all fits without it: then it is not
///    looked at.
///    Where rows leave open which devices stages have, plans on groups of different sizes are priced beside
///    them (unequal_stages.h), and compete in 3 if they are faster in the model: they are no configurations
///    of the space, and nothing is proven of others like them. After an edit only where one was best before.
/// 2. Bounds in the model are made tighter where they are lowest (path_bound.h) until all are near the
///    best price: of all partitions of each configuration, with these stages. After an edit (some bounds
///    are known) that comes behind 3.
/// 3. The cheapest that fit are completed, lowered and simulated, the most promising first: by how much the
///    model was wrong is learned for those alike. It ends where none may be faster than the best simulated
///    step. The fastest that fits in simulation is the answer. After an edit, so are the plans that were
///    found before it, as far as they hold with the rows. Where nobody waits, those whose bounds are lowest
///    are simulated, too, so that what is said of all comes nearer to the best step; and of the best plans
///    the stages are moved, a layer at a time, as long as that makes them faster.
/// 4. Where nothing fits, partitions are searched again at higher and higher prices of memory, as are those
///    that would be faster than the best if they fitted; and stages move to where there is room for what
///    they hold (stage_room.h). Where what fits in the model does not in simulation,
///    of each mesh that which likely needs least is looked at, and simulated first.
/// 5. Where nothing fits, a few of those of which too much passes for a moment are looked at with layers in
///    turns (turn_planner.h), as few as memory asks for: those that are computed again anyway. They count as
///    configurations of the space where one of them is the best.
/// 6. Where it is proven that nothing fits, all of this again for devices that hold little more than the plan
///    found to need least: the fastest of what would fit those is shown, with its bound, if it is much
///    faster.
/// @return InvalidInput where the rows leave nothing; Cancelled if stopped before a plan was found
Result<SearchResult> searchPlan(const Model &model, const Cluster &cluster, std::int32_t deviceCount,
    const ConstraintTable &rows, const CostModel &costs, const SearchOptions &options = {},
    const std::stop_token &stop = {});

} // namespace planloom
