// What a step holds in memory: what it holds at least, and plans that keep within a limit.

#include "engine/search/memory/held_moments.h"
#include "engine/search/memory/rank_prices.h"
#include "engine/search/memory/stage_room.h"
#include "engine/search/time/reductions.h"
#include "engine/search/time/step_estimate.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

namespace planloom {

namespace {

/// So many times what a micro-batch takes is dear for a device full of memory: nothing but bytes counts then.
constexpr double kDear = 1e4;
/// Partitions that are looked at for one limit.
constexpr int kMostPrices = 10;
/// Of them at most so many that only weigh the moments at which devices are fullest.
constexpr int kMostShifts = 8;
/// Mixtures of two of them.
constexpr int kMostMixtures = 4;
/// Stages for one partition.
constexpr int kMostStagePlans = 3;

} // namespace

/// Partitions of one configuration at prices of bytes.
class StepEstimator::Within
{
public:
    Within(StepEstimator &estimator, const Configuration &configuration, std::int64_t limit,
        const std::stop_token &stop)
        : m_estimator(estimator)
        , m_configuration(configuration)
        , m_limit(limit)
        , m_stop(stop)
    {
    }

    Result<StepEstimate> find()
    {
        TRY(m_fastest, m_estimator.partition(m_configuration, 0, m_stop));
        TRY(m_best, m_estimator.assess(m_configuration, m_fastest));
        TRY(double bound, m_estimator.boundOf(m_configuration, m_stop));
        if (!fits(m_best)) {
            const PartitionProblem &problem = m_estimator.problemOf(m_configuration);
            TRY(const bool isRoom, beginWith(m_best));
            if (isRoom) {
                TRY_VOID(findPartitions(problem, bound));
                TRY_VOID(moveStages(problem));
            } else {
                bound = std::numeric_limits<double>::infinity(); // with these stages
                TRY_VOID(findWithOtherStages(problem));
            }
        }
        m_best.bound = fits(m_best) ? std::min(bound, m_best.seconds) : bound;
        return std::move(m_best);
    }

private:
    Result<StepEstimate> assess(std::shared_ptr<const PartitionAnswer> partition) const
    {
        return m_estimator.assess(m_configuration, std::move(partition), m_plan);
    }

    /// Looks at partitions with the stages of `estimate` from now on.
    /// @return whether there may be one within the limit
    Result<bool> beginWith(const StepEstimate &estimate)
    {
        m_plan = m_estimator.withoutTurns(estimate.stages);
        m_seen = {estimate.partition};
        m_held = m_estimator.heldPricing(m_configuration, m_plan);
        m_moments.emplace(static_cast<std::size_t>(m_configuration.ranks), estimate.heldBy);
        TRY(m_room, m_estimator.heldRoom(m_configuration, m_plan, m_limit));
        return m_room.isRoom;
    }

    /// Where some rank has no room for what every partition holds: stages for which there is, and then
    /// partitions with these.
    Result<void> findWithOtherStages(const PartitionProblem &problem)
    {
        if (!problem.isDecided())
            TRY_VOID(addThatHoldsLeast());
        TRY_VOID(moveStages(problem));
        if (!fits(m_best) || problem.isDecided())
            return {};
        TRY(const bool isRoom, beginWith(StepEstimate(m_best)));
        double bound = 0; // of these stages alone
        return isRoom ? findPartitions(problem, bound) : Result<void>{};
    }

    /// Looks at the partition that holds least in the mean of the moments.
    Result<void> addThatHoldsLeast()
    {
        TRY(const StepProblem *own, m_estimator.m_problems.of(m_configuration));
        PartitionPricing pricing = m_estimator.pricingOf(m_configuration, 0, *own->network);
        auto held = std::make_shared<HeldPricing>(heldAt(m_moments->mixed()));
        for (HeldPricing::Stage &stage : held->stages)
            stage.secondsPerByte = dear();
        pricing.held = std::move(held);
        TRY(const auto answer, m_estimator.cheapest(*own, pricing, m_stop));
        answer->bound = 0;
        m_seen.push_back(answer);
        TRY(StepEstimate estimate, assess(answer));
        consider(std::move(estimate));
        return {};
    }

    double dear() const
    {
        return kDear * m_fastest->seconds / static_cast<double>(m_estimator.m_setting.space.memoryLimit);
    }

    /// Others that hold less. @param bound  of all within the limit, with these stages
    Result<void> findPartitions(const PartitionProblem &problem, double &bound)
    {
        if (problem.isDecided())
            return {};
        RankPrices prices(m_room.held.size(), static_cast<double>(m_limit), dear());
        RankPrices ofLeast = prices;
        TRY_VOID(follow(prices, problem, Load::Peak));
        TRY_VOID(mix(prices, problem));
        const auto seen = m_seen;
        if (!fits(m_best) && std::isfinite(m_leastSeconds))
            TRY_VOID(follow(ofLeast, problem, Load::Least)); // the others are of what no partition does
        m_seen.insert(m_seen.end(), seen.begin(), seen.end());
        if (m_estimator.m_setting.space.sharding.isMixed())
            return {};
        TRY(const double ofStages, boundOfStages(fits(m_best) ? prices : ofLeast, problem));
        bound = std::max({bound, ofStages,
            m_estimator.boundOf(m_configuration, LeastWork{.seconds = m_leastSeconds}, *m_fastest)});
        return {};
    }

    /// The fastest partition that fits with other stages: a rank that keeps many micro-batches, or has a
    /// large embedding, may do with fewer layers.
    Result<void> moveStages(const PartitionProblem &problem)
    {
        TRY(const StageRows rows, m_estimator.m_problems.stageRowsFor(m_configuration));
        if (m_configuration.ranks == 1 || !rows.isEmpty() || m_estimator.placesOf(m_configuration).isMixed())
            return {};
        std::map<double, StepEstimate> bySeconds;
        for (const auto &partition : m_seen) {
            TRY(StepEstimate estimate, assess(partition));
            if (!fits(estimate))
                bySeconds.try_emplace(estimate.seconds, std::move(estimate));
        }
        for (const auto &[seconds, estimate] : bySeconds) {
            if (fits(m_best) && seconds >= m_best.seconds)
                break;
            TRY(const bool found, moveStagesFor(estimate, problem));
            if (found)
                break;
        }
        return {};
    }

    /// @return whether it fits with other stages
    Result<bool> moveStagesFor(const StepEstimate &estimate, const PartitionProblem &problem)
    {
        std::vector<double> room(static_cast<std::size_t>(m_configuration.ranks));
        const HeldPricing held = heldAt(HeldMoments(room.size(), estimate.heldBy).mixed());
        const StageRoom stages(
            problem, held, estimate.partition->choice, estimate.partition->times, m_configuration.ranks);
        // What passes, and what is not an operator's own, stays as it is.
        double left = 0;
        for (std::size_t r = 0; r < room.size(); ++r) {
            room[r] = static_cast<double>(m_limit - estimate.rankPeaks[r]);
            left += room[r];
        }
        if (left < 0)
            return false;
        const std::vector<std::int32_t> &choice = estimate.partition->choice;
        for (std::size_t i = 0; i < choice.size(); ++i)
            room[rankOf(i)] += heldBytes(problem, i, problem.choiceOf(i, choice[i]), held);
        for (int attempt = 0; attempt < kMostStagePlans; ++attempt) {
            auto plan = stages.within(room);
            if (!plan)
                return false;
            TRY(StepEstimate moved,
                m_estimator.assess(m_configuration, estimate.partition,
                    std::make_shared<const StagePlan>(*std::move(plan))));
            for (std::size_t r = 0; r < room.size(); ++r)
                room[r] -= std::max<double>(0, static_cast<double>(moved.rankPeaks[r] - m_limit));
            const bool found = fits(moved);
            consider(std::move(moved));
            if (found)
                return true;
        }
        return false;
    }

    bool fits(const StepEstimate &estimate) const { return estimate.peakBytes <= m_limit; }

    void consider(StepEstimate estimate)
    {
        const bool better = fits(estimate) != fits(m_best) ? fits(estimate)
            : fits(estimate)                               ? estimate.seconds < m_best.seconds
                                                           : estimate.peakBytes < m_best.peakBytes;
        if (better)
            m_best = std::move(estimate);
    }

    std::size_t rankOf(std::size_t op) const
    {
        return static_cast<std::size_t>(m_plan->stageOf[op] % m_configuration.ranks);
    }

    /// Of the bytes that count for a limit: those of a partition's peak, or those that its operators have to
    /// answer for, one by one, in the mean of the moments, beside what passes in every partition.
    enum class Load : std::uint8_t { Peak, Least };

    std::vector<RankLoad> loadsOf(const StepEstimate &estimate, Load load, const HeldPricing &held) const
    {
        const PartitionProblem &problem = m_estimator.problemOf(m_configuration);
        std::vector<RankLoad> loads(static_cast<std::size_t>(m_configuration.ranks));
        for (std::size_t r = 0; r < loads.size(); ++r)
            loads[r].bytes = load == Load::Peak ? static_cast<double>(estimate.rankPeaks[r])
                                                : static_cast<double>(m_limit) - m_room.held[r];
        const std::vector<std::int32_t> &choice = estimate.partition->choice;
        for (std::size_t i = 0; load == Load::Least && i < choice.size(); ++i)
            loads[rankOf(i)].bytes += heldBytes(problem, i, problem.choiceOf(i, choice[i]), held);
        const OperatorTimes &times = estimate.partition->times;
        for (std::size_t i = 0; i < times.forward.size(); ++i)
            loads[rankOf(i)].seconds += times.backward[i] + times.forward[i] * (1 + m_plan->runsAgain[i]);
        return loads;
    }

    /// What operators hold at these moments, by stage; bytes cost nothing.
    HeldPricing heldAt(const std::vector<MixedHeld> &moments) const
    {
        HeldPricing held = m_held;
        for (const MixedHeld &moment : moments) {
            held.stages.push_back({.held = moment});
            held.stages.back().held.gradients *= m_estimator.keptOfGradients(m_configuration);
        }
        return held;
    }

    /// What a byte costs where; the rest is as the schedule has it, whatever the partition.
    std::shared_ptr<const HeldPricing> heldAt(const RankPrices &prices) const
    {
        auto held = std::make_shared<HeldPricing>(heldAt(m_moments->mixed()));
        for (std::size_t s = 0; s < held->stages.size(); ++s) {
            held->stages[s].secondsPerByte = prices.prices()[s % prices.prices().size()];
            held->stages[s].mostPassing = m_room.passing[s % m_room.passing.size()];
        }
        return held;
    }

    /// Where a rank holds too much at any price, but was fullest at another moment than those that had one.
    /// @return whether there is such a rank
    bool shiftMoments(const RankPrices &prices, const StepEstimate &estimate)
    {
        bool shifted = false;
        for (std::size_t r = 0; r < m_room.held.size(); ++r)
            if (prices.isDear(r) && estimate.rankPeaks[r] > m_limit)
                shifted = m_moments->shift(r, estimate.heldBy) || shifted;
        return shifted;
    }

    /// Looks at the cheapest partition at one price after the other.
    Result<void> follow(RankPrices &prices, const PartitionProblem &problem, Load load)
    {
        TRY(const StepProblem *own, m_estimator.m_problems.of(m_configuration));
        PartitionPricing pricing = m_estimator.pricingOf(m_configuration, 0, problem);
        TRY(const StepEstimate fastest, assess(m_fastest));
        m_seen = {m_fastest};
        bool isOther = prices.learn(loadsOf(fastest, load, *heldAt(prices)));
        int shifts = load == Load::Peak ? 0 : kMostShifts;
        for (int i = 0; i < kMostPrices && isOther; ++i) {
            pricing.held = heldAt(prices);
            auto found = m_estimator.cheapest(*own, pricing, m_stop);
            if (!found && found.error().code == ErrorCode::Cancelled)
                return found.error();
            if (!found) { // too much passes in all
                m_leastSeconds = std::numeric_limits<double>::infinity();
                return {};
            }
            const std::shared_ptr<PartitionAnswer> answer = *std::move(found);
            double least = answer->bound;
            for (std::size_t r = 0; r < m_room.held.size(); ++r)
                least -= prices.prices()[r] * m_room.held[r];
            m_leastSeconds = std::max(m_leastSeconds, least);
            answer->bound = 0; // at no price of bytes
            m_seen.push_back(answer);
            TRY(StepEstimate estimate, assess(answer));
            if (shifts < kMostShifts && shiftMoments(prices, estimate)) {
                ++shifts;
                --i;
                m_seen.pop_back(); // prices did not learn it
            } else {
                isOther = prices.learn(loadsOf(estimate, load, *pricing.held));
            }
            consider(std::move(estimate));
        }
        return {};
    }

    /// Of every rank the layers at its beginning as the faster of the two nearest partitions has them, which
    /// holds too much, as many as there is room for: layers that are alike change all at once with a price.
    Result<void> mix(const RankPrices &prices, const PartitionProblem &problem)
    {
        const std::size_t operators = problem.operatorCount();
        const auto held = heldAt(prices);
        const SelectorIndex &index = *m_estimator.m_setting.model.index;
        std::vector<double> room;
        for (std::size_t r = 0; r < prices.prices().size(); ++r) {
            if (!prices.within(r))
                return {};
            room.push_back(static_cast<double>(m_limit) - prices.within(r)->load.bytes);
        }
        for (int attempt = 0; attempt < kMostMixtures; ++attempt) {
            std::vector<std::int32_t> choice(operators);
            std::vector<double> left = room;
            std::vector<bool> isFull(room.size(), false);
            for (std::size_t begin = 0; begin < operators;) {
                // The operators of a layer, or of none, that follow one another.
                const std::size_t rank = rankOf(begin);
                const std::int32_t layer = index.layerOf({static_cast<std::int32_t>(begin)});
                const std::vector<std::int32_t> &slow = m_seen[prices.within(rank)->partition]->choice;
                const std::vector<std::int32_t> &fast =
                    prices.beyond(rank) ? m_seen[prices.beyond(rank)->partition]->choice : slow;
                std::size_t end = begin;
                double more = 0;
                for (; end < operators && rankOf(end) == rank
                     && index.layerOf({static_cast<std::int32_t>(end)}) == layer;
                     ++end)
                    if (fast[end] != slow[end])
                        more += heldBytes(problem, end, problem.choiceOf(end, fast[end]), *held)
                            - heldBytes(problem, end, problem.choiceOf(end, slow[end]), *held);
                isFull[rank] = isFull[rank] || more > left[rank];
                const bool isFast = !isFull[rank];
                left[rank] -= isFast ? more : 0;
                for (; begin < end; ++begin)
                    choice[begin] = isFast ? fast[begin] : slow[begin];
            }
            if (!std::isfinite(problem.costOf({}, choice)))
                return {};
            TRY(StepEstimate estimate, assess(answerOf(std::move(choice), problem)));
            bool fit = true;
            for (std::size_t r = 0; r < room.size(); ++r)
                if (const double beyond = static_cast<double>(estimate.rankPeaks[r] - m_limit); beyond > 0) {
                    room[r] -= beyond;
                    fit = false;
                }
            consider(std::move(estimate));
            if (fit)
                break;
        }
        return {};
    }

    /// Rank by rank, with what is before its first micro-batch and behind its last one.
    Result<double> boundOfStages(const RankPrices &prices, const PartitionProblem &problem)
    {
        if (m_configuration.ranks == 1 || m_estimator.placesOf(m_configuration).isMixed())
            return 0.0;
        TRY(const auto *least, m_estimator.least(m_configuration, m_stop));
        TRY(const std::vector<double> seconds,
            leastSecondsHolding(problem, *m_plan, *heldAt(prices), m_configuration.zero < 2, m_stop));
        const auto ranks = static_cast<std::size_t>(m_configuration.ranks);
        double bound = 0;
        double around = 0;
        for (std::size_t r = 0; r < ranks; ++r) {
            double own = -prices.prices()[r] * m_room.held[r];
            double alone = 0;
            for (std::size_t s = r; s < seconds.size(); s += ranks) {
                own += seconds[s];
                alone += (*least)[s].time.forward + (*least)[s].time.backward + (*least)[s].time.weights;
            }
            bound = std::max(bound, around + m_configuration.microBatches * std::max(own, alone));
            const StageTime &first = (*least)[r].time;
            around += first.forward + (splitsBackward(m_configuration.schedule) ? 0 : first.backward);
        }
        return bound;
    }

    StepEstimator &m_estimator;
    const Configuration &m_configuration;
    const std::int64_t m_limit;
    const std::stop_token &m_stop;
    std::shared_ptr<const PartitionAnswer> m_fastest{};
    std::shared_ptr<const StagePlan> m_plan{}; ///< That its partitions share.
    std::vector<std::shared_ptr<const PartitionAnswer>> m_seen{};
    HeldPricing m_held{}; ///< Without stages.
    std::optional<HeldMoments> m_moments{}; ///< With a value where the fastest does not fit.
    HeldRoom m_room{};
    double m_leastSeconds = 0; ///< Of a micro-batch, all operators, of partitions within the limit.
    StepEstimate m_best{};
};

Result<StepEstimate> StepEstimator::estimateWithin(
    const Configuration &configuration, std::int64_t limit, const std::stop_token &stop)
{
    return Within(*this, configuration, limit, stop).find();
}

Result<std::int64_t> StepEstimator::leastPeakOf(const Configuration &configuration)
{
    TRY(const StepProblem *own, m_problems.of(configuration));
    const WeightBytes &weights = own->leastWeights;
    const double whole =
        weightBytes(configuration, static_cast<double>(weights.model), static_cast<double>(weights.state));
    if (!m_setting.trains)
        return static_cast<std::int64_t>(whole / configuration.ranks);
    // As `PipelineTime::held` counts, whatever the order of blocks: what some micro-batch keeps is held in
    // all stages of a rank at once; and beside the gradients of a rank's only stage, where another
    // micro-batch follows or is still held as they come.
    const double kept = own->leastKept.at(configuration.recompute);
    const double gradients = gradientBytes(configuration, static_cast<double>(weights.gradient));
    const bool holdsAll = configuration.ranks > 1 && configuration.schedule == ScheduleKind::GPipe;
    const std::int32_t atOnce = holdsAll ? configuration.microBatches : 1;
    // Split backward passes make them later: no more micro-batches than so many are begun before.
    const std::int32_t before = splitsBackward(configuration.schedule) ? 2 * configuration.ranks : 1;
    const std::int32_t beside = configuration.stagesPerRank > 1 || configuration.microBatches <= before ? 0
        : holdsAll ? configuration.microBatches - 1
                   : 1;
    return static_cast<std::int64_t>(
        (whole + std::max(kept * atOnce, kept * beside + gradients)) / configuration.ranks);
}

Result<std::int64_t> StepEstimator::weightBytesOfAll()
{
    TRY(const StepProblem *own, m_problems.of(Configuration{}));
    return own->leastWeights.model + own->leastWeights.state;
}

const std::vector<LeastStage> &StepEstimator::leastHeldOf(
    const PartitionProblem &problem, const std::shared_ptr<const StagePlan> &plan)
{
    std::vector<LeastStage> &stages = m_leastHeld[plan];
    if (stages.empty())
        stages = leastHeld(problem, *plan);
    return stages;
}

Result<std::int64_t> StepEstimator::stagedPeakOf(
    const Configuration &configuration, const std::stop_token &stop)
{
    TRY(std::int64_t peak, leastPeakOf(configuration));
    if (m_setting.space.sharding.isMixed())
        return peak;
    TRY(const auto plan, stages(configuration, stop));
    TRY(const std::vector<double> held, leastOfRanks(configuration, plan));
    const std::vector<LeastStage> &least = leastHeldOf(problemOf(configuration), plan);
    for (std::size_t s = 0; s < least.size(); ++s)
        peak = std::max(peak,
            static_cast<std::int64_t>(
                held[s % held.size()] + least[s].passingBytes + passingBeside(configuration, least[s])));
    return peak;
}

Result<std::vector<double>> StepEstimator::leastOfRanks(
    const Configuration &configuration, const std::shared_ptr<const StagePlan> &plan)
{
    const std::vector<LeastStage> &stages = leastHeldOf(problemOf(configuration), plan);
    std::vector<StageTime> held;
    for (const LeastStage &stage : stages)
        held.push_back({.kept = static_cast<std::int64_t>(stage.keptBytes),
            .gradients = static_cast<std::int64_t>(gradientBytes(configuration, stage.gradientBytes))});
    TRY(const PipelineTime played,
        playPipeline(configuration.schedule, held, {}, SendOrder::Any, configuration.ranks,
            configuration.microBatches, m_setting.trains));
    std::vector<double> bytes;
    for (std::size_t rank = 0; rank < played.held.size(); ++rank) {
        bytes.push_back(static_cast<double>(played.held[rank]));
        for (std::size_t s = rank; s < stages.size(); s += played.held.size())
            bytes.back() += weightBytes(configuration, stages[s].modelBytes, stages[s].stateBytes);
    }
    return bytes;
}

HeldPricing StepEstimator::heldPricing(
    const Configuration &configuration, const std::shared_ptr<const StagePlan> &plan) const
{
    const PartitionProblem &problem = problemOf(configuration);
    HeldPricing held(problem, plan, splitsBackward(configuration.schedule));
    held.model = m_setting.keptShare(configuration, 3);
    held.states.fill(m_setting.keptShare(configuration, 1));
    if (configuration.zero >= 1)
        for (const ShardAxes sums : configuration.shardSums())
            held.states[indexOf(sums)] /= problem.setting().devicesOver(sums);
    return held;
}

Result<StepEstimator::HeldRoom> StepEstimator::heldRoom(
    const Configuration &configuration, const std::shared_ptr<const StagePlan> &plan, std::int64_t limit)
{
    const std::vector<LeastStage> &least = leastHeldOf(problemOf(configuration), plan);
    TRY(const std::vector<double> held, leastOfRanks(configuration, plan));
    HeldRoom room;
    for (std::size_t r = 0; r < held.size(); ++r) {
        double passing = 0;
        double beside = std::numeric_limits<double>::infinity();
        for (std::size_t s = r; s < least.size(); s += held.size()) {
            const double own = passingBeside(configuration, least[s]);
            beside = std::min(beside, own);
            passing = std::max(passing, least[s].passingBytes + own);
        }
        room.held.push_back(static_cast<double>(limit) - passing);
        room.passing.push_back(static_cast<double>(limit) - held[r] - beside);
        room.isRoom = room.isRoom && held[r] + passing <= static_cast<double>(limit);
    }
    return room;
}

bool StepEstimator::stagesAreDecided(const Configuration &configuration) const
{
    if (configuration.ranks == 1)
        return true;
    const auto rows = m_problems.stageRowsFor(configuration);
    return rows && !rows->byRow.empty()
        && std::find(rows->byRow.begin(), rows->byRow.end(), -1) == rows->byRow.end();
}

bool StepEstimator::mayFitWithOtherStages(const Configuration &configuration, const std::stop_token &stop)
{
    const auto plan = stages(configuration, stop);
    if (!plan || stagesAreDecided(configuration))
        return false;
    const auto held = leastOfRanks(configuration, *plan);
    double passing = std::numeric_limits<double>::infinity(); // wherever stages begin, most likely
    for (const LeastStage &least : leastHeldOf(problemOf(configuration), *plan))
        passing = std::min(passing, least.passingBytes + passingBeside(configuration, least));
    return held
        && std::accumulate(held->begin(), held->end(), 0.0) + configuration.ranks * passing
        <= static_cast<double>(configuration.ranks) * static_cast<double>(m_setting.space.memoryLimit);
}

bool StepEstimator::mayNeedRecompute(const Configuration &configuration, const std::stop_token &stop)
{
    if (!m_whole) {
        m_whole.emplace();
        m_whole->rest = std::numeric_limits<double>::infinity();
        const auto one = estimate({}, 0, stop);
        const auto known = one ? m_figures.find({one->partition, one->stages, 1}) : m_figures.end();
        if (known != m_figures.end()) {
            const StageFigures &figures = known->second.stages.front();
            m_whole->kept = static_cast<double>(figures.keptBytes);
            m_whole->rest =
                static_cast<double>(figures.modelBytes + figures.gradientBytes + figures.passingBytes);
            for (const WeightPiece &piece : figures.weights)
                m_whole->rest += static_cast<double>(piece.count) * static_cast<double>(piece.stateBytes);
        }
    }
    return m_whole->rest + m_whole->kept / configuration.replicas
        > static_cast<double>(m_setting.space.memoryLimit);
}

double StepEstimator::weightBytes(const Configuration &configuration, double model, double state) const
{
    // Where stages differ from weight to weight, as if all had the furthest.
    const std::int32_t zero = std::max(configuration.zero, m_setting.space.sharding.own);
    const auto share = [&](double bytes, int from) {
        return bytes / (zero >= from ? configuration.replicas : 1);
    };
    return share(model, 3) + share(state, 1);
}

double StepEstimator::gradientBytes(const Configuration &configuration, double whole) const
{
    const std::int32_t zero = std::max(configuration.zero, m_setting.space.sharding.own);
    return whole / (zero >= configuration.gradientsCutFrom() ? configuration.replicas : 1);
}

} // namespace planloom
