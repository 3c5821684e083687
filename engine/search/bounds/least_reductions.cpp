#include "engine/search/bounds/least_reductions.h"

#include "engine/schedule/schedule_templates.h"

#include <algorithm>
#include <limits>

namespace planloom {

LeastReductions leastReductions(
    const Reductions &reductions, const std::vector<LeastStage> &stages, std::size_t number)
{
    const Configuration &configuration = reductions.configuration();
    const ModelWeights &weights = reductions.problem().weights();
    const std::vector<ShardAxes> allSums = configuration.shardSums();
    const auto rankOf = [&](auto s) { return static_cast<std::int32_t>(s) % configuration.ranks; };
    LeastReductions least;
    for (const LeastWeight &weight : stages[number].weights) {
        const auto cheapest = [&](auto of) {
            double least = std::numeric_limits<double>::infinity();
            for (const ShardAxes sums : allSums)
                if (weight.shares[indexOf(sums)])
                    least = std::min(least, of(sums));
            return least;
        };
        const auto shareOf = [&](ShardAxes sums) { return *weight.shares[indexOf(sums)]; };
        const auto traffic = [&](const WeightTraffic &each, ShardAxes sums) {
            return weights.secondsOf(weight.weight, each, shareOf(sums), 1);
        };
        const auto bytes = [&](ShardAxes sums) { return traffic({.perReducedByte = 1}, sums); };
        const bool isShared = weight.stages.size() > 1;
        const auto reduced = [&](ReducedAs as) {
            return cheapest(
                [&](ShardAxes sums) { return traffic(reductions.leastReduction(sums, as), sums); });
        };
        if (!isShared) {
            least.reduction +=
                cheapest([&](ShardAxes sums) { return traffic(reductions.leastReduction(sums), sums); });
            for (std::size_t as = 0; as < kReducedAs; ++as)
                least.reduced[as] += reduced(static_cast<ReducedAs>(as));
        }
        least.gather +=
            cheapest([&](ShardAxes sums) { return traffic(reductions.leastGathering(sums), sums); });
        least.update += cheapest([&](ShardAxes sums) {
            return weights.updateSeconds(weight.weight) * shareOf(sums) / reductions.updaters(sums);
        });
        const auto first = std::find_if(weight.stages.begin(), weight.stages.end(),
            [&](std::int32_t s) { return rankOf(s) == rankOf(number); });
        if (isShared)
            least.shared += at(*first) == number ? cheapest([&](ShardAxes sums) {
                return reductions.sharedSeconds(weight.stages, bytes(sums), sums);
            })
                                                 : 0;
        else if (configuration.zero < 2 && weight.isFirst && !splitsBackward(configuration.schedule))
            least.last += reduced(ReducedAs::AsOne);
        const double ahead =
            cheapest([&](ShardAxes sums) { return traffic(reductions.leastGatheringAhead(sums), sums); });
        least.ahead += ahead;
        least.aheadOfAll += weight.isFirst ? ahead : 0;
    }
    return least;
}

double leastBehind(const Reductions &reductions, const std::vector<LeastStage> &stages, std::size_t rank)
{
    double shared = 0;
    double last = 0;
    const std::size_t ranks = at(reductions.configuration().ranks);
    for (std::size_t s = rank; s < stages.size(); s += ranks) {
        const LeastReductions weights = leastReductions(reductions, stages, s);
        shared += weights.shared;
        if (stages.size() <= ranks) // else it is not known which of them ends last
            last += weights.last;
    }
    return std::max(last > 0 ? last + reductions.leastLaunch() : 0, shared);
}

} // namespace planloom
