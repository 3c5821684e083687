#include "engine/search/time/reductions.h"

#include "engine/hardware/full_bucket.h"
#include "engine/table/selector_index.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <set>

namespace planloom {

namespace {

/// Of a message whose time is that of its bytes alone.
constexpr std::int64_t kLargeBytes = std::int64_t{1} << 30;
/// No message is larger.
constexpr double kMostBytes = 1e13;

} // namespace

double Ending::seconds() const
{
    const double updates = std::max(computed + update, updatedLast);
    return gather > 0 ? std::max(updates + gather * last, std::max(computed, reduced) + gather) : updates;
}

/// Gradients that are reduced together, as the backward pass completes them
/// (lowering/gradient_buckets.cpp), until their bucket is full (hardware/full_bucket.h).
class Reductions::Buckets
{
public:
    Buckets(const Reductions &reductions, CollectiveKind kind)
        : m_reductions(reductions)
        , m_kind(kind)
    {
    }

    /// @param at  when they are complete, no earlier than those before them
    void add(const StageWeights &weights, double at)
    {
        m_at = at;
        for (auto each = weights.gradients.rbegin(); each != weights.gradients.rend(); ++each) {
            m_filled[indexOf(each->sums)] += each->reducedBytes;
            m_inBucket += each->reducedBytes;
            m_update += each->update / m_reductions.updaters(each->sums);
            if (m_inBucket >= m_reductions.fullAt(each->sums))
                reduce();
        }
    }

    /// What is left.
    void end(Ending &ending)
    {
        reduce();
        ending.reduction = m_seconds;
        ending.reduced = m_reduced;
        ending.updatedLast = m_reduced + m_lastUpdate;
        ending.last = m_all > 0 ? static_cast<double>(m_last) / static_cast<double>(m_all) : 1;
    }

private:
    void reduce()
    {
        double seconds = 0;
        for (std::size_t form = 0; form < m_filled.size(); ++form)
            seconds += m_reductions.reduction(m_kind, m_filled[form], static_cast<ShardAxes>(form));
        if (seconds > 0) {
            m_seconds += seconds;
            m_reduced = std::max(m_reduced, m_at) + seconds;
            m_lastUpdate = m_update;
            m_last = m_inBucket;
            m_all += m_last;
        }
        m_filled = {};
        m_inBucket = 0;
        m_update = 0;
    }

    const Reductions &m_reductions;
    const CollectiveKind m_kind;
    BySums<std::int64_t> m_filled{}; ///< Bytes of this bucket,
    std::int64_t m_inBucket = 0; ///< and of all forms.
    double m_update = 0; ///< Seconds of what waits for it.
    double m_at = 0;
    double m_seconds = 0;
    double m_reduced = 0;
    double m_lastUpdate = 0;
    std::int64_t m_last = 0;
    std::int64_t m_all = 0;
};

Reductions::Reductions(const Configuration &configuration, const MeshPlaces &places, const CostModel &costs,
    const Cluster &cluster, const PartitionProblem &problem, std::int32_t rank)
    : m_configuration(configuration)
    , m_places(places)
    , m_costs(costs)
    , m_cluster(cluster)
    , m_problem(problem)
    , m_largest(problem.weights().largestReduced())
    , m_sums(configuration.shardSums())
{
    const auto of = static_cast<std::size_t>(rank < 0 ? places.nearestRank : rank);
    for (const ShardAxes sums : m_sums)
        m_groups[indexOf(sums)] = places.weightGroups[of][indexOf(sums)];
    // Replicas that are scale units share out what each of them has added up by itself.
    if (places.hasUnits) {
        for (const ShardAxes sums : m_sums) {
            m_groups[indexOf(sums)] = m_groups[indexOf(ShardAxes::None)];
            m_inUnit[indexOf(sums)] = groupShape(cluster, places.shardsOver(0, rank, sums));
        }
        // Of masters; what is updated itself is gathered at once (lowering, `gatheredAhead`).
        m_ahead = (configuration.zero == 1 || configuration.zero == 2) && problem.weights().hasMasters();
    }
}

Reductions::Longer Reductions::addTo(const StageFigures &stage, StageTime &time) const
{
    const double microBatches = m_configuration.microBatches;
    time.ahead = aheadOf(stage).seconds;
    if (splitsBackward(m_configuration.schedule))
        time.backward += stage.splitMore;
    if (m_configuration.zero < 2) {
        time.weights += stage.accumulation.mean(microBatches);
        time.backward += stage.withInputs.mean(microBatches);
        return {};
    }
    double shards = 0;
    for (const WeightPiece &piece : stage.weights)
        if (piece.reducedBytes > 0)
            shards += piece.count
                * m_costs.copy(Bytes{piece.reducedBytes / std::max(1, shape(piece.sums).ranks)},
                    m_problem.setting().deviceClass);
    time.weights += stage.accumulation.cast + shards;
    time.backward += stage.withInputs.cast;
    const double backward = time.backward + time.weights;
    const std::vector<TrafficLayer> layers = layersOf(stage, time.forward);
    double gather = 0;
    double reduce = 0;
    for (const TrafficLayer &layer : layers) {
        gather += layer.gather;
        reduce += layer.reduce;
    }
    const Longer longer{.gathers = gather > time.forward, .reduces = reduce + gather > backward};
    // Scale units cast what a layer made before they send it.
    const bool asMade = !m_places.hasUnits || stage.accumulation.cast + stage.withInputs.cast == 0;
    time.forward = forwardSeconds(layers, time.forward);
    if (splitsBackward(
            m_configuration.schedule)) { // weights are read in the one part, gradients made in the other
        time.backward = backwardSeconds(layers, time.backward, {.gathers = true});
        time.weights = backwardSeconds(layers, time.weights, {.reduces = true, .asMade = asMade});
    } else {
        time.backward =
            backwardSeconds(layers, backward, {.gathers = true, .reduces = true, .asMade = asMade})
            - time.weights;
    }
    return longer;
}

/// Those outside of any layer are one for each operator that is the first to read some. What other stages
/// read, too, is reduced at the end of the step.
std::vector<TrafficLayer> Reductions::layersOf(const StageFigures &stage, double forward) const
{
    struct BytesOf {
        BySums<std::int64_t> model{};
        BySums<std::int64_t> reduced{};
    };
    std::vector<TrafficLayer> layers;
    std::vector<BytesOf> bytes; // by layer, as the next
    std::map<std::int32_t, std::size_t> byNumber;
    double begun = 0;
    for (std::size_t w = 0; w < stage.inOrder.size() && forward > 0; ++w) {
        const StageWeights &weights = stage.inOrder[w];
        const std::int32_t number = m_problem.setting().model->index->layerOf(OperatorId{weights.reader});
        const auto [known, fresh] =
            byNumber.try_emplace(number < 0 ? -1 - weights.reader : number, layers.size());
        if (fresh) {
            layers.emplace_back();
            bytes.emplace_back();
        }
        BytesOf &own = bytes[known->second];
        for (const ShardAxes sums : m_sums) {
            own.model[indexOf(sums)] += weights.ownModelBytes[indexOf(sums)];
            own.reduced[indexOf(sums)] += weights.reducedBytes[indexOf(sums)];
        }
        const double end = w + 1 < stage.inOrder.size() ? forward - stage.inOrder[w + 1].rest : forward;
        TrafficLayer::Reading &reading = layers[known->second].readings.emplace_back();
        reading.share = (end - begun) / forward;
        for (const ShardAxes sums : m_sums) {
            reading.gather += static_cast<double>(weights.ownModelBytes[indexOf(sums)]);
            reading.reduce += static_cast<double>(weights.reducedBytes[indexOf(sums)]);
        }
        begun = end;
    }
    for (std::size_t l = 0; l < layers.size(); ++l) {
        for (const ShardAxes sums : m_sums) {
            if (m_configuration.zero == 3)
                layers[l].gather +=
                    seconds(CollectiveKind::AllGather, bytes[l].model[indexOf(sums)], shape(sums));
            layers[l].reduce +=
                reduction(CollectiveKind::ReduceScatter, bytes[l].reduced[indexOf(sums)], sums);
        }
        const double model = std::accumulate(bytes[l].model.begin(), bytes[l].model.end(), 0.0);
        const double reduced = std::accumulate(bytes[l].reduced.begin(), bytes[l].reduced.end(), 0.0);
        for (TrafficLayer::Reading &each : layers[l].readings) {
            each.reduce *= layers[l].reduce / std::max(1.0, reduced);
            each.gather *= layers[l].gather / std::max(1.0, model);
        }
    }
    return layers;
}

Reductions::Ahead Reductions::aheadOf(const StageFigures &stage) const
{
    Ahead ahead;
    if (!m_ahead)
        return ahead;
    BySums<double> rates{};
    for (const ShardAxes sums : m_sums)
        rates[indexOf(sums)] = gathering(stage, sums).perByte;
    double gathered = 0;
    for (const StageWeights &weights : stage.inOrder) {
        for (std::size_t i = 0; i < rates.size(); ++i)
            gathered += rates[i] * static_cast<double>(weights.modelBytes[i]);
        if (gathered > 0 && gathered + weights.rest > ahead.seconds)
            ahead = {gathered + weights.rest, weights.lastReader};
    }
    return ahead;
}

Ending Reductions::endingOf(
    std::size_t rank, const std::vector<StageFigures> &figures, const PipelineTime &played) const
{
    Ending ending;
    struct Complete { // gradients, and when
        double at = 0;
        const StageWeights *weights = nullptr;
        std::int32_t reader = -1;
        bool isLast = false;
    };
    std::vector<Complete> complete;
    const bool splits = splitsBackward(m_configuration.schedule);
    for (std::size_t s = rank; s < figures.size(); s += static_cast<std::size_t>(m_configuration.ranks)) {
        const StageFigures &stage = figures[s];
        ending.begin = std::min(ending.begin, played.lastBackward[s]);
        ending.computed = std::max(ending.computed, played.end[s]);
        for (const WeightPiece &piece : stage.weights)
            ending.update += piece.count * piece.update / updaters(piece.sums);
        for (const ShardAxes sums : m_sums)
            if (gathersAtEnd())
                ending.gather += gathering(stage, sums).seconds;
        for (const StageWeights &weights : stage.inOrder) {
            if (m_configuration.zero >= 2) // reduced in every pass
                continue;
            const double left = splits ? weights.leftApart : weights.left;
            complete.push_back({played.end[s] - left * (played.end[s] - played.lastBackward[s]), &weights,
                left == 0      ? weights.reader
                    : left < 1 ? weights.lastReader
                               : -1,
                left == 0});
        }
    }
    double sharedUpdate = 0;
    for (const StageFigures &first : figures)
        for (const SharedWeight &weight : first.shared) {
            const auto own = std::find_if(weight.stages.begin(), weight.stages.end(),
                [&](std::int32_t s) { return static_cast<std::size_t>(s % m_configuration.ranks) == rank; });
            if (own == weight.stages.end())
                continue;
            ending.shared +=
                sharedSeconds(weight.stages, static_cast<double>(weight.reducedBytes), weight.sums);
            sharedUpdate += weight.update / updaters(weight.sums);
        }
    std::stable_sort(
        complete.begin(), complete.end(), [](const Complete &a, const Complete &b) { return a.at < b.at; });
    Buckets buckets(*this, reductionKind());
    for (const Complete &each : complete)
        buckets.add(*each.weights, each.at);
    buckets.end(ending);
    BySums<std::array<WeightTraffic, kReducedAs>> least;
    for (const ShardAxes sums : m_sums)
        for (std::size_t as = 0; as < kReducedAs; ++as)
            least[indexOf(sums)][as] = leastReduction(sums, static_cast<ReducedAs>(as));
    std::array<double, kReducedAs> seconds{}; // of reductions, at least
    for (auto each = complete.rbegin(); each != complete.rend(); ++each) {
        if (each->weights->gradients.empty())
            continue;
        for (const StageWeights::Gradient &gradient : each->weights->gradients) {
            const auto bytes = static_cast<double>(gradient.reducedBytes);
            for (std::size_t as = 0; as < kReducedAs; ++as) {
                const WeightTraffic &own = least[indexOf(gradient.sums)][as];
                seconds[as] += bytes < own.launchedFrom
                    ? own.perReducedByte * bytes
                    : reduction(own.launches.front().kind, gradient.reducedBytes, gradient.sums)
                        - own.launchLess;
            }
        }
        const auto [behind, as] = longestOf(seconds);
        if (each->at + behind <= ending.leastReduced)
            continue;
        ending.leastReduced = each->at + behind;
        ending.behind = each->reader;
        ending.behindAll = each->isLast;
        ending.as = as;
    }
    std::tie(ending.leastReduction, ending.allAs) = longestOf(seconds);
    if (ending.shared > 0) {
        ending.reduced = std::max(ending.reduced, played.makespan) + ending.shared;
        ending.updatedLast = std::max(ending.updatedLast, ending.reduced + sharedUpdate);
    }
    ending.reduction += ending.shared;
    return ending;
}

double Reductions::sharedSeconds(const std::vector<std::int32_t> &stages, double bytes, ShardAxes sums) const
{
    const auto [known, fresh] = m_sharing.try_emplace({stages, sums});
    if (fresh) {
        std::set<std::int32_t> ranks;
        for (const std::int32_t s : stages)
            ranks.insert(s % m_configuration.ranks);
        std::vector<DeviceId> devices;
        for (std::int32_t r = 0; r < (m_places.hasUnits ? 1 : m_configuration.replicas); ++r)
            for (const std::int32_t rank : ranks)
                for (const DeviceId device : m_places.shardsOver(r, rank, sums))
                    devices.push_back(device);
        known->second = groupShape(m_cluster, devices);
    }
    const GroupShape group = known->second;
    const auto whole = static_cast<std::int64_t>(bytes);
    const CollectiveKind kind = reductionKind();
    return m_places.hasUnits
        ? seconds(CollectiveKind::AllReduce, whole, group) + seconds(kind, whole, shape(ShardAxes::None))
        : seconds(kind, whole, group);
}

std::int32_t Reductions::updaters(ShardAxes sums) const
{
    return m_configuration.zero >= 1 ? shape(sums).ranks : 1;
}

template<typename Make> WeightTraffic Reductions::once(int which, ShardAxes sums, const Make &make) const
{
    const auto [known, fresh] = m_traffic.try_emplace({which, sums});
    if (fresh)
        make(known->second);
    return known->second;
}

WeightTraffic Reductions::leastReduction(ShardAxes sums) const
{
    if (m_configuration.zero < 2)
        return leastReduction(sums, ReducedAs::InBuckets);
    WeightTraffic traffic = leastReducing(sums, m_problem.weights().largestLayer());
    traffic.perModelByte = leastGatheringAgain(sums, m_problem.weights().largestLayer()).perModelByte;
    return traffic;
}

WeightTraffic Reductions::leastReduction(ShardAxes sums, ReducedAs as) const
{
    if (m_configuration.zero >= 2)
        return {};
    return once(5 + static_cast<int>(as), sums, [&](WeightTraffic &traffic) {
        const CollectiveKind kind = reductionKind();
        if (as == ReducedAs::InBuckets) {
            const double largest = largestReduction(shape(sums));
            add(kind, shape(sums), largest, traffic);
            if (sums != ShardAxes::None)
                add(CollectiveKind::AllReduce, m_inUnit[indexOf(sums)], largest, traffic);
            return;
        }
        const double least = perByte(kind, shape(sums))
            + (sums != ShardAxes::None ? perByte(CollectiveKind::AllReduce, m_inUnit[indexOf(sums)]) : 0);
        traffic.perReducedByte = least;
        if (as == ReducedAs::AsOne)
            return;
        const auto full = static_cast<double>(fullAt(sums));
        reduceApart(sums, full, traffic);
        if (as != ReducedAs::Filled || full > kMostBytes)
            return;
        traffic.perReducedByte = reduction(kind, 2 * fullAt(sums), sums) / (2 * full);
        traffic.launchLess = (traffic.perReducedByte - least) * full;
    });
}

std::pair<double, ReducedAs> Reductions::longestOf(std::array<double, kReducedAs> reduced) const
{
    if (reduced[static_cast<std::size_t>(ReducedAs::AsOne)] > 0)
        reduced[static_cast<std::size_t>(ReducedAs::AsOne)] += leastLaunch();
    const auto most = std::max_element(reduced.begin(), reduced.end());
    return {*most, static_cast<ReducedAs>(most - reduced.begin())};
}

/// @param from  bytes
void Reductions::reduceApart(ShardAxes sums, double from, WeightTraffic &traffic) const
{
    traffic.launchedFrom = from;
    traffic.launches[0] = {reductionKind(), shape(sums)};
    if (sums != ShardAxes::None)
        traffic.launches[1] = {CollectiveKind::AllReduce, m_inUnit[indexOf(sums)]};
}

CollectiveKind Reductions::reductionKind() const
{
    return m_configuration.zero >= 1 ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
}

double Reductions::leastLaunch() const
{
    if (m_configuration.zero >= 2)
        return 0;
    double least = std::numeric_limits<double>::infinity();
    for (const ShardAxes sums : m_sums)
        least = std::min(least,
            firstByte(reductionKind(), shape(sums))
                + (sums != ShardAxes::None ? firstByte(CollectiveKind::AllReduce, m_inUnit[indexOf(sums)])
                                           : 0));
    return least;
}

double Reductions::leastGatheringLaunch() const
{
    if (!gathersAtEnd())
        return 0;
    double least = std::numeric_limits<double>::infinity();
    for (const ShardAxes sums : m_sums)
        least = std::min(least, firstByte(CollectiveKind::AllGather, shape(sums)));
    return least;
}

/// What a byte adds to a message of any size, at least: large ones use the links best.
double Reductions::perByte(CollectiveKind kind, GroupShape over) const
{
    return over.ranks < 2
        ? 0
        : (seconds(kind, static_cast<std::int64_t>(kMostBytes), over) - seconds(kind, 1, over)) / kMostBytes;
}

double Reductions::firstByte(CollectiveKind kind, GroupShape over) const
{
    return std::max(0.0, seconds(kind, 1, over) - perByte(kind, over));
}

double Reductions::launchedByte(CollectiveKind kind, ShardAxes sums, double bytes) const
{
    const auto [known, fresh] = m_launched.try_emplace({kind, sums, bytes});
    if (const auto all = static_cast<std::int64_t>(bytes); fresh && all > 0)
        known->second =
            (kind == CollectiveKind::AllGather ? seconds(kind, all, shape(sums)) : reduction(kind, all, sums))
            / bytes;
    return known->second;
}

WeightTraffic Reductions::leastReducing(ShardAxes sums, LayerBytes layer) const
{
    return {.perReducedByte = launchedByte(reductionKind(), sums, layer.reducedBytes)};
}

WeightTraffic Reductions::leastGatheringAgain(ShardAxes sums, LayerBytes layer) const
{
    if (m_configuration.zero != 3)
        return {};
    return {.perModelByte = launchedByte(CollectiveKind::AllGather, sums, layer.modelBytes)};
}

double Reductions::inPassSeconds(TensorId weight, ShardAxes sums, double share, double readers) const
{
    const double bytes = m_problem.weights().secondsOf(weight, {.perReducedByte = 1}, share * readers, 1);
    if (bytes < 1)
        return 0;
    return m_costs.copy(Bytes{static_cast<std::int64_t>(bytes) / std::max(1, shape(sums).ranks)},
               m_problem.setting().deviceClass)
        / readers;
}

WeightTraffic Reductions::leastGatheringAhead(ShardAxes sums) const
{
    return once(4, sums, [&](WeightTraffic &traffic) {
        if (m_ahead) {
            add(CollectiveKind::AllGather, shape(sums), kMostBytes, traffic);
            traffic.fixed = 0;
        }
    });
}

WeightTraffic Reductions::leastGathering(ShardAxes sums) const
{
    return once(3, sums, [&](WeightTraffic &traffic) {
        if (gathersAtEnd()) {
            add(CollectiveKind::AllGather, shape(sums), kMostBytes, traffic);
            traffic.fixed = 0;
        }
    });
}

/// Of a bucket: full but for one byte, before the last gradient joined it.
double Reductions::largestReduction(GroupShape buckets) const
{
    return static_cast<double>(bucketBytes(buckets, kLargeBytes)) + m_largest;
}

/// A byte takes no less than in a larger message.
void Reductions::add(CollectiveKind kind, GroupShape over, double largest, WeightTraffic &traffic) const
{
    if (over.ranks < 2)
        return;
    double &perByte = kind == CollectiveKind::AllGather ? traffic.perModelByte : traffic.perReducedByte;
    if (m_configuration.zero < 2) {
        perByte += seconds(kind, static_cast<std::int64_t>(largest), over) / std::floor(largest);
        return;
    }
    const double first = seconds(kind, 1, over);
    traffic.fixed += first;
    perByte += std::max(0.0, seconds(kind, kLargeBytes, over) - first) / static_cast<double>(kLargeBytes);
}

double Reductions::reduction(CollectiveKind kind, std::int64_t bytes, ShardAxes sums) const
{
    return seconds(kind, bytes, shape(sums))
        + (sums != ShardAxes::None ? seconds(CollectiveKind::AllReduce, bytes, m_inUnit[indexOf(sums)]) : 0);
}

double Reductions::seconds(CollectiveKind kind, std::int64_t bytes, GroupShape shape) const
{
    return shape.ranks < 2 || bytes == 0 ? 0 : m_costs.collective(kind, Bytes{bytes}, shape);
}

bool Reductions::isFull(GroupShape group, std::int64_t bytes) const
{
    const auto reduced = [&](std::int64_t each) {
        return m_costs.collective(CollectiveKind::AllReduce, Bytes{each}, group);
    };
    return isFullBucket(reduced(0), reduced(bytes));
}

std::int64_t Reductions::fullAt(ShardAxes sums) const
{
    std::int64_t &full = m_full[indexOf(sums)];
    if (full > 0)
        return full;
    const GroupShape group = shape(sums);
    if (group.ranks < 2)
        return full = std::numeric_limits<std::int64_t>::max() / 4;
    full = bucketBytes(group, kLargeBytes);
    std::int64_t least = full / 2;
    while (full - least > full / 64) {
        const std::int64_t between = least + (full - least) / 2;
        (isFull(group, between) ? full : least) = between;
    }
    return full;
}

/// Of a full bucket, no less, and less than twice as many.
std::int64_t Reductions::bucketBytes(GroupShape group, std::int64_t all) const
{
    std::int64_t bucket = 1 << 16;
    while (bucket < all && !isFull(group, bucket))
        bucket *= 2;
    return bucket;
}

Reductions::Gathering Reductions::gathering(const StageFigures &stage, ShardAxes sums) const
{
    const GroupShape group = shape(sums);
    Gathering result;
    if (group.ranks < 2)
        return result;
    std::int64_t bytes = 0;
    for (const WeightPiece &piece : stage.weights)
        if (piece.sums == sums && piece.reducedBytes > 0)
            bytes += piece.count * piece.modelBytes;
    if (bytes == 0)
        return result;
    result.seconds = seconds(CollectiveKind::AllGather, bytes, group);
    result.perByte = result.seconds / static_cast<double>(bytes);
    return result;
}

} // namespace planloom
