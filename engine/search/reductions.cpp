#include "engine/search/reductions.h"

#include "engine/plan/complete.h"

#include <algorithm>
#include <cmath>

namespace planloom {

namespace {

/// Of a message whose time is that of its bytes alone.
constexpr std::int64_t kLargeBytes = std::int64_t{1} << 30;

} // namespace

std::vector<DeviceId> devicesApart(std::int32_t count, std::int32_t stride)
{
    std::vector<DeviceId> devices;
    for (std::int32_t i = 0; i < count; ++i)
        devices.push_back({i * stride});
    return devices;
}

double Ending::seconds() const
{
    const double reduced =
        reduction > 0 ? std::max(begin + reduction, computed + reduction / buckets) : computed;
    const double updated = std::max(computed + update, reduced + update / buckets);
    return gather > 0 ? std::max(updated + gather / buckets, reduced + update / buckets + gather) : updated;
}

Reductions::Reductions(
    const Configuration &configuration, const CostModel &costs, const Cluster &cluster, double widest)
    : m_configuration(configuration)
    , m_costs(costs)
    , m_widest(widest)
{
    std::vector<DeviceId> replicas;
    std::vector<DeviceId> all;
    for (std::int32_t r = 0; r < configuration.replicas; ++r) {
        replicas.push_back({r * configuration.ranks * configuration.shards});
        for (std::int32_t s = 0; s < configuration.shards; ++s)
            all.push_back({r * configuration.ranks * configuration.shards + s});
    }
    m_replicas = groupShape(cluster, replicas);
    m_all = groupShape(cluster, all);
    // Replicas that are scale units share out what each of them has added up by itself.
    if (configuration.replicas > 1
        && configuration.replicas * configuration.ranks * configuration.shards > kMostExplicitDevices) {
        m_all = m_replicas;
        m_inUnit = groupShape(cluster, devicesApart(configuration.shards, 1));
    }
}

void Reductions::addTo(const StageFigures &stage, StageTime &time) const
{
    const double microBatches = m_configuration.microBatches;
    if (m_configuration.zero < 2) {
        time.weights += (stage.firstAccumulation + stage.accumulation * (microBatches - 1)) / microBatches;
        return;
    }
    // One by one, as they are made, beside what is computed.
    double reduce = 0;
    double gather = 0;
    for (const WeightPiece &piece : stage.weights) {
        reduce +=
            piece.count * reduction(CollectiveKind::ReduceScatter, piece.reducedBytes, piece.overShards);
        if (m_configuration.zero == 3)
            gather += piece.count * seconds(CollectiveKind::AllGather, piece.modelBytes, m_replicas);
    }
    // Shards are added up at the end of each layer, where computation waits for the last of them.
    double shards = 0;
    for (const WeightPiece &piece : stage.weights)
        if (piece.reducedBytes > 0)
            shards += piece.count
                * m_costs.copy(Bytes{piece.reducedBytes / std::max(1, shape(piece.overShards).ranks)}, 0);
    double last = 0;
    for (const WeightPiece &piece : stage.largest)
        last += reduction(CollectiveKind::ReduceScatter, piece.reducedBytes, piece.overShards);
    time.weights += stage.castGradients + shards + last;
    const double backward = time.backward + time.weights;
    time.backward = std::max(backward, reduce + gather) - time.weights;
    time.forward = std::max(time.forward, gather);
}

void Reductions::addTo(const StageFigures &stage, double lastBackward, double end, Ending &ending) const
{
    ending.begin = std::min(ending.begin, lastBackward);
    ending.computed = std::max(ending.computed, end);
    for (const WeightPiece &piece : stage.weights)
        ending.update += piece.count * piece.update / updaters(piece.overShards);
    if (m_configuration.zero >= 2) {
        if (m_configuration.zero == 2)
            ending.gather += inBuckets(stage, CollectiveKind::AllGather, false, ending);
        return;
    }
    const CollectiveKind kind =
        m_configuration.zero == 1 ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
    ending.reduction += inBuckets(stage, kind, false, ending) + inBuckets(stage, kind, true, ending);
    if (m_configuration.zero == 1)
        ending.gather += inBuckets(stage, CollectiveKind::AllGather, false, ending)
            + inBuckets(stage, CollectiveKind::AllGather, true, ending);
}

std::int32_t Reductions::updaters(bool overShards) const
{
    return m_configuration.zero >= 1 ? shape(overShards).ranks : 1;
}

Reductions::Least Reductions::leastOf(const PartitionProblem &problem, const LeastStage &stage) const
{
    Least least;
    for (const LeastWeight &weight : stage.weights) {
        const auto cheapest = [&](auto of) {
            const double apart = weight.alwaysSums ? std::numeric_limits<double>::infinity() : of(false);
            return std::min(apart, weight.maySum ? of(true) : std::numeric_limits<double>::infinity());
        };
        const auto traffic = [&](const WeightTraffic &each) {
            return problem.secondsOf(weight.weight, each, weight.share, 1);
        };
        least.reduction += cheapest([&](bool sums) { return traffic(leastReduction(sums)); });
        least.gather += cheapest([&](bool sums) { return traffic(leastGathering(sums)); });
        least.update += problem.updateSeconds(weight.weight) * weight.share / updaters(weight.maySum);
        least.reducedBytes += problem.secondsOf(weight.weight, {.perReducedByte = 1}, weight.share, 1);
        least.maySum = least.maySum || weight.maySum;
    }
    return least;
}

double Reductions::leastLastBucket(double bytes, bool maySum) const
{
    if (m_configuration.zero >= 2 || bytes <= 0)
        return 0;
    const CollectiveKind kind =
        m_configuration.zero == 1 ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce;
    double least = std::numeric_limits<double>::infinity();
    for (const bool sums : {false, true}) {
        if (sums && !maySum)
            continue;
        // Several buckets are each at least half as large as the largest may be. Two of different groups take
        // no less than one of the cheaper.
        const double half = static_cast<double>(bucketBytes(shape(sums), kLargeBytes)) / 2;
        least = std::min(least, reduction(kind, static_cast<std::int64_t>(std::min(bytes, half)), sums));
    }
    return least;
}

template<typename Make> WeightTraffic Reductions::once(int which, bool overShards, const Make &make) const
{
    const auto [known, fresh] = m_traffic.try_emplace({which, overShards});
    if (fresh)
        make(known->second);
    return known->second;
}

WeightTraffic Reductions::leastReduction(bool overShards) const
{
    return once(0, overShards, [&](WeightTraffic &traffic) {
        add(m_configuration.zero >= 1 ? CollectiveKind::ReduceScatter : CollectiveKind::AllReduce,
            shape(overShards), shape(overShards), traffic);
        if (overShards)
            add(CollectiveKind::AllReduce, m_inUnit, m_all, traffic);
        if (m_configuration.zero == 3)
            add(CollectiveKind::AllGather, m_replicas, m_replicas, traffic);
    });
}

WeightTraffic Reductions::leastGatheringAgain() const
{
    return once(1, false, [&](WeightTraffic &traffic) {
        if (m_configuration.zero == 3)
            add(CollectiveKind::AllGather, m_replicas, m_replicas, traffic);
    });
}

WeightTraffic Reductions::leastShardSum(bool overShards) const
{
    return once(2, overShards, [&](WeightTraffic &traffic) {
        add(CollectiveKind::ReduceScatter, shape(overShards), shape(overShards), traffic);
        if (overShards)
            add(CollectiveKind::AllReduce, m_inUnit, m_all, traffic);
    });
}

WeightTraffic Reductions::leastGathering(bool overShards) const
{
    return once(3, overShards, [&](WeightTraffic &traffic) {
        if (m_configuration.zero == 1 || (m_configuration.zero == 2 && !overShards)) {
            add(CollectiveKind::AllGather, shape(overShards), shape(overShards), traffic);
            traffic.fixed = 0;
        }
    });
}

/// A byte takes no less than in a larger message, of which a bucket is the largest.
void Reductions::add(CollectiveKind kind, GroupShape over, GroupShape buckets, WeightTraffic &traffic) const
{
    if (over.ranks < 2)
        return;
    double &perByte = kind == CollectiveKind::AllGather ? traffic.perModelByte : traffic.perReducedByte;
    if (m_configuration.zero < 2) {
        // None is larger than this.
        const double bucket = static_cast<double>(bucketBytes(buckets, kLargeBytes))
            * (kind == CollectiveKind::AllGather ? m_widest : 1);
        perByte += seconds(kind, static_cast<std::int64_t>(bucket), over) / bucket;
        return;
    }
    const double first = seconds(kind, 1, over);
    traffic.fixed += first;
    perByte += std::max(0.0, seconds(kind, kLargeBytes, over) - first) / static_cast<double>(kLargeBytes);
}

double Reductions::reduction(CollectiveKind kind, std::int64_t bytes, bool overShards) const
{
    return seconds(kind, bytes, overShards ? m_all : m_replicas)
        + (overShards ? seconds(CollectiveKind::AllReduce, bytes, m_inUnit) : 0);
}

double Reductions::seconds(CollectiveKind kind, std::int64_t bytes, GroupShape shape) const
{
    return shape.ranks < 2 || bytes == 0 ? 0 : m_costs.collective(kind, Bytes{bytes}, shape);
}

/// Gradients are reduced in buckets whose latency is a tenth of their time (lowering/lower_gradients.cpp).
std::int64_t Reductions::bucketBytes(GroupShape group, std::int64_t all) const
{
    constexpr double kLatencyShare = 0.1;
    const double latency = m_costs.collective(CollectiveKind::AllReduce, Bytes{1}, group);
    std::int64_t bucket = 1 << 16;
    while (bucket < all
        && m_costs.collective(CollectiveKind::AllReduce, Bytes{bucket}, group) * kLatencyShare < latency)
        bucket *= 2;
    return bucket;
}

double Reductions::inBuckets(
    const StageFigures &stage, CollectiveKind kind, bool overShards, Ending &ending) const
{
    std::int64_t bytes = 0;
    std::int64_t reduced = 0;
    for (const WeightPiece &piece : stage.weights)
        if (piece.overShards == overShards && piece.reducedBytes > 0) {
            bytes +=
                piece.count * (kind == CollectiveKind::AllGather ? piece.modelBytes : piece.reducedBytes);
            reduced += piece.count * piece.reducedBytes;
        }
    const GroupShape group = overShards ? m_all : m_replicas;
    if (bytes == 0 || (group.ranks < 2 && !(overShards && m_inUnit.ranks > 1)))
        return 0;
    const double buckets = std::max(
        1.0, std::ceil(static_cast<double>(reduced) / static_cast<double>(bucketBytes(group, reduced))));
    ending.buckets = std::max(ending.buckets, buckets);
    const auto each = static_cast<std::int64_t>(static_cast<double>(bytes) / buckets);
    return buckets
        * (kind == CollectiveKind::AllGather ? seconds(kind, each, group)
                                             : reduction(kind, each, overShards));
}

} // namespace planloom
