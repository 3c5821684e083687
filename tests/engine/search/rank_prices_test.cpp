#include "engine/search/memory/rank_prices.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace planloom {
namespace {

/// What a rank's partitions take; the cheapest at a price is that of the Lagrangian relaxation.
using Partitions = std::vector<RankLoad>;

const RankLoad &cheapest(const Partitions &partitions, double price)
{
    return *std::min_element(partitions.begin(), partitions.end(), [&](const RankLoad &a, const RankLoad &b) {
        return a.seconds + price * a.bytes < b.seconds + price * b.bytes;
    });
}

Partitions randomPartitions(std::mt19937 &random)
{
    std::uniform_int_distribution<int> of(1, 60);
    Partitions made;
    for (int i = 0, count = of(random); i < count; ++i)
        made.push_back({static_cast<double>(of(random)), static_cast<double>(of(random))});
    return made;
}

/// The bound that the prices give is the best that any give, and what is within the limit the fastest of
/// those that some price finds.
TEST(RankPrices, FindsTheBestPriceOfEachRank)
{
    for (unsigned seed = 0; seed < 500; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937 random(seed);
        const std::size_t ranks = 1 + seed % 3;
        std::vector<Partitions> all;
        for (std::size_t r = 0; r < ranks; ++r)
            all.push_back(randomPartitions(random));
        constexpr double kLimit = 30;
        constexpr double kDear = 1e4;
        RankPrices prices(ranks, kLimit, kDear);
        std::vector<double> bound(ranks, 0);
        bool moves = true;
        int looked = 0;
        for (; moves && looked < 60; ++looked) {
            std::vector<RankLoad> loads;
            for (std::size_t r = 0; r < ranks; ++r) {
                const double price = prices.prices()[r];
                loads.push_back(cheapest(all[r], price));
                bound[r] = std::max(bound[r], loads[r].seconds + price * (loads[r].bytes - kLimit));
            }
            moves = prices.learn(loads);
        }
        EXPECT_LT(looked, 60);
        const bool fit = std::all_of(all.begin(), all.end(), [](const Partitions &own) {
            return std::any_of(
                own.begin(), own.end(), [](const RankLoad &each) { return each.bytes <= kLimit; });
        });
        for (std::size_t r = 0; fit && r < ranks; ++r) {
            double fastest = std::numeric_limits<double>::infinity(); // within the limit, that a price finds
            double highest = 0;
            for (const RankLoad &a : all[r])
                for (const RankLoad &b : all[r]) {
                    const double price =
                        a.bytes == b.bytes ? 0 : std::max(0.0, (a.seconds - b.seconds) / (b.bytes - a.bytes));
                    const RankLoad &found = cheapest(all[r], price);
                    highest = std::max(highest, found.seconds + price * (found.bytes - kLimit));
                    for (const RankLoad &each : all[r]) // those that cost the same
                        if (each.bytes <= kLimit
                            && each.seconds + price * each.bytes
                                <= found.seconds + price * found.bytes + 1e-9)
                            fastest = std::min(fastest, each.seconds);
                }
            ASSERT_TRUE(prices.within(r));
            EXPECT_LE(prices.within(r)->load.bytes, kLimit);
            EXPECT_LE(bound[r], fastest + 1e-9);
            EXPECT_NEAR(bound[r], highest, 1e-6 * highest);
        }
    }
}

TEST(RankPrices, EndsWhereSomethingHoldsTooMuchAtAnyPrice)
{
    RankPrices prices(2, 10, 100);
    EXPECT_TRUE(prices.learn({{1, 5}, {1, 50}}));
    EXPECT_EQ(prices.prices(), (std::vector<double>{0, 100}));
    EXPECT_FALSE(prices.learn({{1, 5}, {3, 20}}));
    EXPECT_FALSE(prices.within(1));
    EXPECT_EQ(prices.beyond(1)->load.bytes, 20);
}

} // namespace
} // namespace planloom
