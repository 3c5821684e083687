#include "engine/search/memory/held_moments.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace planloom {
namespace {

/// Bytes of a partition: kept of a micro-batch, held back for gradients of weights, and gradients.
struct Held {
    double kept = 0;
    double deferred = 0;
    double gradients = 0;

    double at(const MixedHeld &moment) const
    {
        return kept * moment.microBatches + deferred * moment.deferred + gradients * moment.gradients;
    }
};

MixedHeld mixedOf(const StageHeld &moment)
{
    return {static_cast<double>(moment.microBatches), static_cast<double>(moment.deferred),
        moment.gradients ? 1.0 : 0.0};
}

/// The moment at which a partition holds most, of those that there are.
const StageHeld &fullest(const Held &partition, const std::vector<StageHeld> &moments)
{
    return *std::max_element(moments.begin(), moments.end(), [&](const StageHeld &a, const StageHeld &b) {
        return partition.at(mixedOf(a)) < partition.at(mixedOf(b));
    });
}

TEST(HeldMoments, BeginsWithTheMomentsThatItIsGiven)
{
    const std::vector<StageHeld> first{{3, 0, false}, {2, 1, true}, {1, 0, true}, {0, 0, true}};
    const HeldMoments moments(2, first);
    for (std::size_t s = 0; s < first.size(); ++s)
        EXPECT_EQ(moments.mixed()[s], mixedOf(first[s])) << s;
}

TEST(HeldMoments, MovesARankAlone)
{
    HeldMoments moments(2, {{3, 0, false}, {2, 0, true}, {1, 0, false}, {1, 0, true}});
    EXPECT_FALSE(moments.shift(0, {{3, 0, false}, {0, 0, false}, {1, 0, false}, {0, 0, false}}));
    EXPECT_TRUE(moments.shift(0, {{1, 0, true}, {0, 0, false}, {1, 0, false}, {0, 0, false}}));
    EXPECT_EQ(moments.mixed()[0], (MixedHeld{2, 0, 0.5}));
    EXPECT_EQ(moments.mixed()[1], (MixedHeld{2, 0, 1}));
    EXPECT_EQ(moments.mixed()[2], (MixedHeld{1, 0, 0}));
    EXPECT_EQ(moments.mixed()[3], (MixedHeld{1, 0, 1}));
}

/// Of two moments the weights end where the cheapest partition asks for nearly as much as at any weights: the
/// best bound on what every partition holds at one of them.
TEST(HeldMoments, FindTheWeightsThatAskForMost)
{
    int mixed = 0;
    for (unsigned seed = 0; seed < 500; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> of(0, 10);
        std::vector<Held> partitions;
        for (unsigned i = 0; i < 2 + seed % 20; ++i)
            partitions.push_back({of(random), of(random), 3 * of(random)});
        const std::vector<StageHeld> all{{3, 0, false}, {1, static_cast<std::int32_t>(seed % 2), true}};
        const auto leastAt = [&](const MixedHeld &moment) {
            return *std::min_element(partitions.begin(), partitions.end(),
                [&](const Held &a, const Held &b) { return a.at(moment) < b.at(moment); });
        };
        double best = 0; // of a fine grid of weights
        for (int i = 0; i <= 1000; ++i) {
            const double weight = i / 1000.0;
            const MixedHeld a = mixedOf(all[0]);
            const MixedHeld b = mixedOf(all[1]);
            const MixedHeld moment{std::lerp(a.microBatches, b.microBatches, weight),
                std::lerp(a.deferred, b.deferred, weight), std::lerp(a.gradients, b.gradients, weight)};
            best = std::max(best, leastAt(moment).at(moment));
        }
        HeldMoments moments(1, {all[seed % 2]});
        double found = 0;
        double most = 0; // that the best partition found holds at once, at the fullest
        int shifts = 0;
        for (bool moves = true; moves; ++shifts) {
            ASSERT_LT(shifts, 20);
            const Held least = leastAt(moments.mixed().front());
            found = std::max(found, least.at(moments.mixed().front()));
            const StageHeld &moment = fullest(least, all);
            const double peak = least.at(mixedOf(moment));
            most = shifts == 0 ? peak : std::min(most, peak);
            EXPECT_LE(found, peak * (1 + 1e-12)); // a bound
            moves = moments.shift(0, {moment});
        }
        EXPECT_LE(found, best * (1 + 1e-3));
        EXPECT_GE(found, best * 0.93);
        mixed += shifts > 1 ? 1 : 0;
    }
    EXPECT_GT(mixed, 100);
}

/// A third moment is weighed against what was found of the first two.
TEST(HeldMoments, TakesInMoreMomentsAsTheyAreFound)
{
    for (unsigned seed = 0; seed < 200; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        std::uniform_real_distribution<double> of(0, 10);
        std::vector<Held> partitions;
        for (unsigned i = 0; i < 2 + seed % 20; ++i)
            partitions.push_back({of(random), 2 * of(random), 3 * of(random)});
        const std::vector<StageHeld> all{{3, 0, false}, {1, 0, true}, {0, 2, false}};
        HeldMoments moments(1, {all[seed % 3]});
        double least = std::numeric_limits<double>::infinity(); // of all, at their fullest
        for (const Held &each : partitions)
            least = std::min(least, each.at(mixedOf(fullest(each, all))));
        int shifts = 0;
        for (bool moves = true; moves; ++shifts) {
            ASSERT_LT(shifts, 40);
            const MixedHeld mean = moments.mixed().front();
            const Held best = *std::min_element(partitions.begin(), partitions.end(),
                [&](const Held &a, const Held &b) { return a.at(mean) < b.at(mean); });
            EXPECT_LE(best.at(mean), least * (1 + 1e-12)); // no partition is below, whatever the weights
            moves = moments.shift(0, {fullest(best, all)});
        }
    }
}

} // namespace
} // namespace planloom
