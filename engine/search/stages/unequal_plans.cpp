// Plans whose stages run on groups of devices of different sizes.

#include "engine/search/stages/unequal_stages.h"

#include "engine/binding/stage_numbers.h"
#include "engine/search/time/reductions.h"
#include "engine/search/time/step_estimate.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace planloom {

namespace {

/// Devices are dealt out in units of so many that there are no more of them.
constexpr std::int32_t kMostUnits = 16;
constexpr std::int32_t kMostDevices = 64;
/// Pieces of which stages are made: smaller ones are joined with their neighbours.
constexpr std::size_t kMostPieces = 48;
/// Numbers of micro-batches for which stages are looked for.
constexpr std::size_t kMostCounts = 3;
/// Operators of partition problems that are made for the sake of these plans alone.
constexpr std::size_t kMostNewOperators = 5'000;
/// By so much stages may take longer than the best, in what they are compared by.
constexpr double kTolerance = 0.005;
/// Numbers of micro-batches are worth a look whose perfect stages would gain this.
constexpr double kGain = 0.01;
/// The model is not so exact that plans which are slower by no more than this could not be faster in
/// simulation.
constexpr double kHardlySlower = 0.05;
/// The fastest of them, which compete with others for simulation.
constexpr std::size_t kMostPlans = 3;
/// How often stages are cut anew where a device holds more than was counted.
constexpr int kMostCuts = 3;

} // namespace

class StepEstimator::Unequal
{
public:
    Unequal(StepEstimator &estimator, const StepEstimate &best, const std::stop_token &stop)
        : m_estimator(estimator)
        , m_setting(estimator.m_setting)
        , m_best(best)
        , m_stop(stop)
        , m_index(*m_setting.model.index)
    {
    }

    Result<std::vector<StepEstimate>> find()
    {
        const auto isFree = freeOperators();
        if (std::all_of(isFree.begin(), isFree.begin() + static_cast<std::ptrdiff_t>(m_index.forwardCount()),
                [](bool free) { return free; }))
            return std::vector<StepEstimate>{}; // nothing that a stage could be made of
        findClasses();
        for (const std::int32_t count : promisingCounts()) {
            if (m_stop.stop_requested())
                return cancelled();
            TRY_VOID(findKinds(count));
            for (const bool splits : {false, true})
                TRY_VOID(findPlans(count, splits));
        }
        std::stable_sort(m_found.begin(), m_found.end(),
            [](const StepEstimate &a, const StepEstimate &b) { return a.seconds < b.seconds; });
        m_found.erase(m_found.begin() + static_cast<std::ptrdiff_t>(std::min(m_found.size(), kMostPlans)),
            m_found.end());
        return std::move(m_found);
    }

private:
    /// Devices of one class.
    struct ClassOfDevices {
        std::int32_t number = 0;
        std::int32_t first = 0;
        std::int32_t count = 0;
    };
    /// What goes with a kind of groups. It stays where it is.
    struct Kind {
        Configuration configuration{}; ///< Of its first group.
        const PartitionProblem *problem = nullptr;
        std::shared_ptr<const PartitionAnswer> partition{};
        OperatorTimes times{}; ///< Of all operators, with what replicas wait for one another.
        std::unique_ptr<Reductions> reductions{};
        std::vector<PieceCost> costs{}; ///< By piece, as if gradients of weights were waited for,
        std::vector<double> weights{}; ///< and seconds of making these.
    };
    struct Stage {
        const Kind *kind = nullptr;
        std::unique_ptr<const Configuration> configuration{}; ///< Of its group.
        std::unique_ptr<Reductions> reductions{};
    };

    void findClasses()
    {
        std::map<std::int32_t, ClassOfDevices> classes;
        for (std::int32_t d = 0; d < m_setting.deviceCount; ++d) {
            const std::int32_t number = m_setting.cluster.classOf({d});
            ClassOfDevices &own = classes.try_emplace(number, ClassOfDevices{number, d}).first->second;
            ++own.count;
        }
        for (const auto &[number, own] : classes)
            m_classes.push_back(own);
    }

    Configuration groupOf(
        std::int32_t microBatches, std::int32_t first, std::int32_t replicas, std::int32_t shards) const
    {
        Configuration own{.replicas = replicas, .shards = shards, .microBatches = microBatches};
        own.schedule = ScheduleKind::OneFOneB;
        own.zero = m_setting.space.sharding.isLeft ? std::max(m_best.configuration.zero, 1)
                                                   : m_setting.space.sharding.own;
        own.recompute = m_best.configuration.recompute;
        own.firstDevice = first;
        return own;
    }

    /// Those for which perfect stages would be faster than the best plan, the fastest first: no two of them
    /// wait for one another, but one micro-batch passes through two.
    std::vector<std::int32_t> promisingCounts()
    {
        std::set<std::int32_t> counts;
        for (const Configuration &each : m_setting.space.configurations)
            counts.insert(each.microBatches);
        std::vector<std::pair<double, std::int32_t>> order;
        for (const std::int32_t count : counts) {
            double rate = 0; // micro-batches a second
            for (const ClassOfDevices &each : m_classes) {
                const auto alone = m_estimator.partition(groupOf(count, each.first, 1, 1), 0, m_stop);
                if (alone)
                    rate += each.count / (*alone)->seconds;
            }
            const double seconds = (count + (m_setting.trains ? 1.0 / 3 : 1)) / rate;
            if (seconds < m_best.seconds * (1 - kGain))
                order.emplace_back(seconds, count);
        }
        std::sort(order.begin(), order.end());
        order.resize(std::min(order.size(), kMostCounts));
        std::vector<std::int32_t> promising;
        for (const auto &[seconds, count] : order)
            promising.push_back(count);
        return promising;
    }

    /// Whether so many devices can be a group: of one class, in one node or in whole nodes.
    bool isGroup(std::int32_t first, std::int32_t devices) const
    {
        const Cluster &cluster = m_setting.cluster;
        const std::int32_t node = cluster.links.devicesPerNode;
        if (first + devices > m_setting.deviceCount)
            return false;
        if (first / node != (first + devices - 1) / node && (first % node != 0 || devices % node != 0))
            return false;
        for (std::int32_t d = first; d < first + devices; ++d)
            if (cluster.classOf({d}) != cluster.classOf({first}))
                return false;
        return true;
    }

    /// Groups that stages may have, with what pieces of the model take there.
    Result<void> findKinds(std::int32_t microBatches)
    {
        const std::int32_t all = m_setting.deviceCount;
        const std::int32_t unit = (all + kMostUnits - 1) / kMostUnits;
        m_kinds.clear();
        m_search = {.microBatches = microBatches, .tolerance = kTolerance};
        m_search.startsAt.resize(static_cast<std::size_t>(all));
        std::vector<std::int32_t> shards = usefulShards(m_setting.model, all - 1);
        for (const ClassOfDevices &own : m_classes)
            for (std::int32_t devices = unit; devices < all; devices += unit)
                for (const std::int32_t t : shards) {
                    std::vector<std::int32_t> starts;
                    for (std::int32_t first = 0; first < all; first += unit)
                        if (m_setting.cluster.classOf({first}) == own.number && isGroup(first, devices))
                            starts.push_back(first);
                    const std::int32_t r = devices / t;
                    if (starts.empty() || devices % t != 0
                        || !batchDivides(m_setting.model, std::int64_t{r} * microBatches))
                        continue;
                    TRY(const bool isKind, addKind(groupOf(microBatches, starts.front(), r, t)));
                    for (const std::int32_t first : starts)
                        if (isKind)
                            m_search.startsAt[static_cast<std::size_t>(first)].push_back(
                                static_cast<std::int32_t>(m_kinds.size() - 1));
                }
        return {};
    }

    /// @return whether it was added
    Result<bool> addKind(const Configuration &configuration)
    {
        if (!m_estimator.m_problems.has(configuration)) {
            if (m_newOperators + m_index.forwardCount() > kMostNewOperators)
                return false;
            m_newOperators += m_index.forwardCount();
        }
        auto partition = m_estimator.partition(configuration, 0, m_stop);
        if (!partition && partition.error().code == ErrorCode::Cancelled)
            return partition.error();
        if (!partition)
            return false;
        Kind &kind = *m_kinds.emplace_back(std::make_unique<Kind>());
        kind.configuration = configuration;
        kind.problem = &m_estimator.problemOf(configuration);
        kind.partition = *std::move(partition);
        kind.times = kind.partition->times;
        const OperatorTimes waits = m_estimator.m_problems.replicaTimes(
            configuration, kind.problem->sharesOf(kind.partition->choice));
        kind.times.addWaits(waits);
        kind.reductions = reductionsOf(kind.configuration, *kind.problem);
        if (m_pieces.stageOf.empty())
            findPieces(kind.times);
        findCosts(kind);
        return true;
    }

    /// @param configuration  must outlive it
    std::unique_ptr<Reductions> reductionsOf(
        const Configuration &configuration, const PartitionProblem &problem) const
    {
        return std::make_unique<Reductions>(
            configuration, m_estimator.placesOf(configuration), m_setting.costs, m_setting.cluster, problem);
    }

    /// Operators that run wherever others are: no stage is made of them alone.
    std::vector<bool> freeOperators() const
    {
        return planloom::freeOperators(
            m_index, std::vector<bool>(m_index.graph().operators.size(), false), true);
    }

    /// Layers, and the operators between them; operators alone where there are few layers. Of many, those
    /// that take least are joined.
    void findPieces(const OperatorTimes &times)
    {
        const std::size_t operators = m_index.forwardCount();
        const auto isFree = freeOperators();
        std::vector<std::size_t> links;
        for (std::size_t i = 0; i < operators; ++i)
            if (!isFree[i])
                links.push_back(i);
        const auto begin = [&](bool inLayers) {
            std::vector<std::size_t> begins; // in `links`
            for (std::size_t p = 0; p < links.size(); ++p) {
                const std::int32_t layer = m_index.layerOf({static_cast<std::int32_t>(links[p])});
                if (inLayers || p == 0 || layer < 0
                    || layer != m_index.layerOf({static_cast<std::int32_t>(links[p - 1])}))
                    begins.push_back(p);
            }
            return begins;
        };
        std::vector<std::size_t> begins = begin(false);
        if (begins.size() < 2 * static_cast<std::size_t>(std::min(m_setting.deviceCount, kMostUnits)))
            begins = begin(true);
        std::vector<double> seconds;
        for (std::size_t b = 0; b < begins.size(); ++b) {
            double &own = seconds.emplace_back(0);
            const std::size_t end = b + 1 < begins.size() ? begins[b + 1] : links.size();
            for (std::size_t p = begins[b]; p < end; ++p)
                own += times.forward[links[p]] + times.backward[links[p]];
        }
        while (begins.size() > kMostPieces) {
            std::size_t least = 1;
            for (std::size_t b = 2; b < begins.size(); ++b)
                if (seconds[b - 1] + seconds[b] < seconds[least - 1] + seconds[least])
                    least = b;
            seconds[least - 1] += seconds[least];
            seconds.erase(seconds.begin() + static_cast<std::ptrdiff_t>(least));
            begins.erase(begins.begin() + static_cast<std::ptrdiff_t>(least));
        }
        m_pieces = m_setting.recomputed.at(m_best.configuration.recompute);
        m_pieces.stages = static_cast<std::int32_t>(begins.size());
        m_pieces.stageOf.assign(m_index.graph().operators.size(), 0);
        std::size_t piece = 0;
        for (std::size_t p = 0; p < links.size(); ++p) {
            while (piece + 1 < begins.size() && p >= begins[piece + 1])
                ++piece;
            m_pieces.stageOf[links[p]] = static_cast<std::int32_t>(piece);
        }
        joinConsumers(m_index, isFree, m_pieces.stageOf);
        m_pieces.stageOf.resize(operators);
    }

    double kept(std::int64_t whole, int from, const Configuration &configuration) const
    {
        return static_cast<double>(whole) * m_setting.keptShare(configuration, from);
    }

    double statesOf(const StageFigures &stage, const Reductions &reductions) const
    {
        double bytes = 0;
        for (const WeightPiece &piece : stage.weights)
            bytes += static_cast<double>(piece.count * piece.stateBytes / reductions.updaters(piece.sums));
        return bytes;
    }

    void findCosts(Kind &kind) const
    {
        const Configuration &own = kind.configuration;
        const std::vector<StageFigures> figures =
            stageFigures(*kind.problem, kind.partition->choice, kind.times, m_pieces);
        for (const StageFigures &piece : figures) {
            StageTime time = piece.time;
            kind.reductions->addTo(piece, time);
            kind.weights.push_back(time.weights);
            PieceCost &cost = kind.costs.emplace_back();
            cost.seconds = cost.fill = time.forward + time.backward + time.weights;
            cost.hiding = time.backward + time.weights;
            for (const WeightPiece &each : piece.weights) {
                const double count = each.count;
                const auto perByte = [&](const WeightTraffic &traffic) {
                    return traffic.perReducedByte * static_cast<double>(each.reducedBytes)
                        + traffic.perModelByte * static_cast<double>(each.modelBytes);
                };
                if (each.reducedBytes > 0) {
                    if (own.zero < 2)
                        cost.reduction +=
                            count * perByte(kind.reductions->leastReduction(each.sums, ReducedAs::AsOne));
                    cost.update += count * perByte(kind.reductions->leastGathering(each.sums));
                }
                cost.update += count * each.update / kind.reductions->updaters(each.sums);
            }
            cost.bytes = kept(piece.modelBytes, 3, own)
                + kept(piece.gradientBytes, own.gradientsCutFrom(), own) + statesOf(piece, *kind.reductions);
            cost.kept = static_cast<double>(piece.keptBytes);
        }
        addSends(kind);
    }

    void addSends(Kind &kind) const
    {
        const std::int32_t first = kind.configuration.firstDevice;
        const GroupShape beside = groupShape(m_setting.cluster, {{first}, {first > 0 ? first - 1 : 1}});
        for (const Meeting &meeting : kind.problem->meetings()) {
            if (meeting.producer < 0)
                continue;
            const auto p = at(meeting.producer);
            const std::int32_t from = m_pieces.stageOf[p];
            std::int32_t to = from;
            for (const auto &[reader, slot] : meeting.readers)
                to = std::max(to, m_pieces.stageOf[static_cast<std::size_t>(reader)]);
            if (to == from)
                continue;
            const std::int64_t parts = partsSent(
                *kind.problem, kind.problem->choiceOf(p, kind.partition->choice[p]).outputs[meeting.output]);
            double seconds = 0;
            for (const std::int64_t bytes : {meeting.bytes, meeting.gradientBytes})
                if (bytes > 0)
                    seconds +=
                        m_setting.costs.collective(CollectiveKind::SendRecv, Bytes{bytes / parts}, beside);
            for (std::int32_t piece = from; piece < to; ++piece)
                kind.costs[static_cast<std::size_t>(piece)].sent += seconds;
        }
    }

    std::set<ScheduleKind> schedules(bool splits) const
    {
        std::set<ScheduleKind> allowed;
        for (const Configuration &each : m_setting.space.configurations)
            if (each.ranks > 1 && each.stagesPerRank == 1 && splitsBackward(each.schedule) == splits)
                allowed.insert(each.schedule);
        return allowed;
    }

    /// The best stages, and others where some device has no room for them, under the best schedule.
    Result<void> findPlans(std::int32_t microBatches, bool splits)
    {
        const std::set<ScheduleKind> allowed = schedules(splits);
        if (allowed.empty() || m_kinds.empty())
            return {};
        m_search.kinds.clear();
        for (const auto &kind : m_kinds) {
            GroupKind &group =
                m_search.kinds.emplace_back(GroupKind{kind->configuration.devices(), kind->costs});
            for (std::size_t p = 0; splits && p < group.pieces.size(); ++p)
                group.pieces[p].fill -= kind->weights[p];
        }
        m_search.room = static_cast<double>(m_setting.space.memoryLimit);
        m_search.most = m_best.seconds * (1 + kHardlySlower);
        for (int cut = 0; cut < kMostCuts; ++cut) {
            const std::vector<UnequalStage> stages = unequalStages(m_search);
            if (stages.size() < 2 || areAlike(stages))
                return {};
            std::optional<StepEstimate> best;
            double beyond = std::numeric_limits<double>::infinity();
            for (const ScheduleKind schedule : allowed)
                for (const std::int32_t zero : zeros()) {
                    TRY(StepEstimate estimate, assess(stages, microBatches, schedule, zero));
                    beyond = std::min(
                        beyond, static_cast<double>(estimate.peakBytes - m_setting.space.memoryLimit));
                    if (estimate.peakBytes <= m_setting.space.memoryLimit
                        && estimate.seconds < (best ? best->seconds : m_search.most))
                        best = std::move(estimate);
                }
            if (best)
                m_found.push_back(*std::move(best));
            if (beyond <= 0)
                return {};
            m_search.room -= beyond;
        }
        return {};
    }

    /// Then they are a mesh, which is looked at as such.
    bool areAlike(const std::vector<UnequalStage> &stages) const
    {
        return std::all_of(stages.begin(), stages.end(), [&](const UnequalStage &each) {
            const Configuration &own = m_kinds[static_cast<std::size_t>(each.kind)]->configuration;
            const Configuration &first =
                m_kinds[static_cast<std::size_t>(stages.front().kind)]->configuration;
            return own.replicas == first.replicas && own.shards == first.shards;
        });
    }

    std::set<std::int32_t> zeros() const
    {
        if (!m_setting.space.sharding.isLeft)
            return {m_setting.space.sharding.own};
        return {0, 1, m_best.configuration.zero};
    }

    Result<StepEstimate> assess(const std::vector<UnequalStage> &stages, std::int32_t microBatches,
        ScheduleKind schedule, std::int32_t zero)
    {
        StepEstimate result;
        Configuration &configuration = result.configuration;
        configuration.ranks = static_cast<std::int32_t>(stages.size());
        configuration.microBatches = microBatches;
        configuration.schedule = schedule;
        configuration.zero = zero;
        configuration.recompute = m_best.configuration.recompute;
        StagePlan plan = m_pieces;
        plan.isChain = false; // no bound is claimed of it
        plan.stages = configuration.ranks;
        for (std::int32_t &stage : plan.stageOf) {
            const auto next = std::upper_bound(stages.begin(), stages.end(), stage,
                [](std::int32_t piece, const UnequalStage &each) { return piece < each.firstPiece; });
            stage = static_cast<std::int32_t>(next - stages.begin()) - 1;
        }
        std::vector<Stage> groups;
        for (const UnequalStage &each : stages) {
            groups.push_back({m_kinds[static_cast<std::size_t>(each.kind)].get()});
            const Configuration &own = groups.back().kind->configuration;
            configuration.groups.push_back({each.firstDevice, own.replicas, own.shards});
            result.byStage.push_back(groups.back().kind->partition);
        }
        for (std::size_t s = 0; s < groups.size(); ++s) {
            groups[s].configuration = std::make_unique<const Configuration>(configuration.ofStage(s));
            groups[s].reductions = reductionsOf(*groups[s].configuration, *groups[s].kind->problem);
        }
        TRY_VOID(price(groups, plan, result));
        result.stages = std::make_shared<const StagePlan>(std::move(plan));
        return result;
    }

    /// As `StepEstimator::assess`, each stage by the problem of its own devices.
    Result<void> price(const std::vector<Stage> &groups, const StagePlan &plan, StepEstimate &result)
    {
        std::vector<StageFigures> figures;
        std::vector<std::vector<StageLink>> links; // as each stage has what is sent
        std::map<const Kind *, std::pair<std::vector<StageFigures>, std::vector<StageLink>>> known;
        for (std::size_t s = 0; s < groups.size(); ++s) {
            const Kind &own = *groups[s].kind;
            const auto [found, fresh] = known.try_emplace(&own);
            if (fresh)
                found->second = {stageFigures(*own.problem, own.partition->choice, own.times, plan),
                    stageLinks(*own.problem, plan, own.partition->choice, own.times)};
            figures.push_back(found->second.first[s]);
            links.push_back(found->second.second);
        }
        std::vector<StageTime> times;
        for (std::size_t s = 0; s < groups.size(); ++s) {
            const Configuration &own = *groups[s].configuration;
            StageTime &time = times.emplace_back(figures[s].time);
            groups[s].reductions->addTo(figures[s], time);
            time.kept = figures[s].keptBytes;
            time.deferred = figures[s].deferredBytes;
            time.gradients =
                static_cast<std::int64_t>(kept(figures[s].gradientBytes, own.gradientsCutFrom(), own));
        }
        const Configuration &all = result.configuration;
        TRY(const PipelineTime played,
            playPipeline(all.schedule, times, sendsOf(links, all), SendOrder::Queued, all.ranks,
                all.microBatches, m_setting.trains));
        result.seconds = played.makespan;
        result.heldBy = played.heldBy;
        for (std::size_t s = 0; s < groups.size(); ++s) {
            const Configuration &own = *groups[s].configuration;
            const StageFigures &stage = figures[s];
            const double bytes = static_cast<double>(played.held[s]) + kept(stage.modelBytes, 3, own)
                + statesOf(stage, *groups[s].reductions)
                + static_cast<double>(stage.passingBytes + m_estimator.passingBeside(own, stage));
            result.rankPeaks.push_back(static_cast<std::int64_t>(bytes));
            result.peakBytes = std::max(result.peakBytes, result.rankPeaks.back());
            if (m_setting.trains)
                result.seconds = std::max(result.seconds, endOf(s, groups, figures, played, all));
        }
        return {};
    }

    /// When stage `s` has updated its weights.
    double endOf(std::size_t s, const std::vector<Stage> &groups, const std::vector<StageFigures> &figures,
        const PipelineTime &played, const Configuration &all) const
    {
        PipelineTime alone;
        alone.makespan = played.makespan;
        alone.lastBackward = {played.lastBackward[s]};
        alone.begin = {played.begin[s]};
        alone.lastInput = {played.lastInput[s]};
        alone.end = {played.end[s]};
        std::vector<StageFigures> own{figures[s]};
        own.front().shared.clear();
        Ending ending = groups[s].reductions->endingOf(0, own, alone);
        // What several stages make of one gradient is added up over the devices of all of them.
        const double before = ending.shared;
        for (const StageFigures &each : figures)
            for (const SharedWeight &weight : each.shared) {
                if (std::find(weight.stages.begin(), weight.stages.end(), static_cast<std::int32_t>(s))
                    == weight.stages.end())
                    continue;
                std::vector<DeviceId> devices;
                for (const std::int32_t stage : weight.stages) {
                    const StageGroup &group = all.groups[static_cast<std::size_t>(stage)];
                    for (std::int32_t d = 0; d < group.devices(); ++d)
                        devices.push_back({group.first + d});
                }
                ending.shared += m_setting.costs.collective(
                    all.zero >= 1 ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce,
                    Bytes{weight.reducedBytes}, groupShape(m_setting.cluster, devices));
                ending.updatedLast = std::max(ending.updatedLast,
                    played.makespan + ending.shared
                        + weight.update / groups[s].reductions->updaters(weight.sums));
            }
        if (ending.shared > before)
            ending.reduced = std::max(ending.reduced, played.makespan) + ending.shared;
        return ending.seconds();
    }

    /// As the group sends it or as the other has it, which takes longer.
    std::vector<StageSend> sendsOf(
        const std::vector<std::vector<StageLink>> &links, const Configuration &all) const
    {
        std::vector<StageSend> sends;
        for (std::size_t number = 0; number < links.front().size(); ++number) {
            const StageLink &ends = links.front()[number];
            const auto from = static_cast<std::size_t>(ends.from);
            const auto to = static_cast<std::size_t>(ends.to);
            const GroupShape shape =
                groupShape(m_setting.cluster, {{all.groups[from].first}, {all.groups[to].first}});
            StageSend &send = sends.emplace_back(StageSend{ends.from, ends.to});
            const auto takes = [&](const std::vector<StageLink::Sent> &sent,
                                   const std::vector<StageLink::Sent> &received, double &seconds,
                                   double &ahead) {
                std::vector<double> each;
                for (std::size_t i = 0; i < sent.size(); ++i)
                    seconds += each.emplace_back(m_setting.costs.collective(
                        CollectiveKind::SendRecv, Bytes{std::max(sent[i].bytes, received[i].bytes)}, shape));
                ahead = sentAhead(received, each).seconds;
            };
            send.gradients = ends.isChain || !ends.backward.empty();
            takes(links[from][number].forward, links[to][number].forward, send.forward, send.forwardAhead);
            takes(
                links[to][number].backward, links[from][number].backward, send.backward, send.backwardAhead);
        }
        return sends;
    }

    StepEstimator &m_estimator;
    const StepSetting &m_setting;
    const StepEstimate &m_best;
    const std::stop_token &m_stop;
    const SelectorIndex &m_index;
    std::vector<ClassOfDevices> m_classes{};
    StagePlan m_pieces{}; ///< Every piece as a stage of its own.
    std::vector<std::unique_ptr<Kind>> m_kinds{};
    UnequalSetting m_search{};
    std::size_t m_newOperators = 0;
    std::vector<StepEstimate> m_found{};
};

Result<std::vector<StepEstimate>> StepEstimator::unequalPlans(
    const StepEstimate &best, const std::stop_token &stop)
{
    if (!m_setting.space.leavesGroups || m_setting.space.sharding.isMixed() || m_setting.deviceCount < 3
        || m_setting.deviceCount > kMostDevices)
        return std::vector<StepEstimate>{};
    return Unequal(*this, best, stop).find();
}

} // namespace planloom
