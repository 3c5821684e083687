#include "engine/search/partition/cost_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace planloom {
namespace {

CostTable tableOf(std::vector<double> costs)
{
    return std::make_shared<const std::vector<double>>(std::move(costs));
}

/// A network of `variables` with factors over one to three of them; some choices cannot be.
CostNetwork randomNetwork(std::mt19937 &random, std::int32_t variables)
{
    const auto draw = [&](int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); };
    CostNetwork network;
    for (std::int32_t v = 0; v < variables; ++v)
        network.domains.push_back(draw(1, 3));
    const int factors = draw(1, 2 * variables);
    for (int f = 0; f < factors; ++f) {
        std::vector<std::int32_t> scope;
        for (int i = draw(1, 3); i > 0; --i)
            scope.push_back(draw(0, variables - 1));
        std::sort(scope.begin(), scope.end());
        scope.erase(std::unique(scope.begin(), scope.end()), scope.end());
        std::size_t entries = 1;
        for (const std::int32_t v : scope)
            entries *= static_cast<std::size_t>(network.domains[static_cast<std::size_t>(v)]);
        std::vector<double> costs;
        for (std::size_t e = 0; e < entries; ++e)
            costs.push_back(draw(0, 9) == 0 ? std::numeric_limits<double>::infinity() : draw(0, 20));
        network.factors.push_back({std::move(scope), tableOf(std::move(costs))});
    }
    return network;
}

double bestOfAll(const CostNetwork &network)
{
    std::vector<std::int32_t> choice(network.domains.size(), 0);
    double best = std::numeric_limits<double>::infinity();
    while (true) {
        best = std::min(best, costOf(network, choice));
        std::size_t v = 0;
        while (v < choice.size() && ++choice[v] == network.domains[v])
            choice[v++] = 0;
        if (v == choice.size())
            return best;
    }
}

TEST(CostNetwork, FindsTheCheapestChoiceOfRandomNetworks)
{
    for (unsigned seed = 0; seed < 2000; ++seed) {
        std::mt19937 random(seed);
        const CostNetwork network = randomNetwork(random, 1 + static_cast<std::int32_t>(seed % 7));
        const auto answer = cheapestChoice(network);
        ASSERT_TRUE(answer);
        const double best = bestOfAll(network);
        ASSERT_TRUE(answer->exact);
        ASSERT_EQ(answer->cost, best) << "seed " << seed;
        ASSERT_EQ(answer->bound, best) << "seed " << seed;
        ASSERT_EQ(costOf(network, answer->choice), best) << "seed " << seed;
    }
}

TEST(CostNetwork, BoundsWhatIsTooWideAndStaysAboveTheBound)
{
    int inexact = 0;
    for (unsigned seed = 0; seed < 1000; ++seed) {
        std::mt19937 random(seed);
        const CostNetwork network = randomNetwork(random, 7);
        const auto answer = cheapestChoice(network, {.mostEntries = 8});
        ASSERT_TRUE(answer);
        const double best = bestOfAll(network);
        inexact += !answer->exact;
        ASSERT_LE(answer->bound, best) << "seed " << seed;
        ASSERT_GE(answer->cost, best) << "seed " << seed;
        if (answer->exact) {
            ASSERT_EQ(answer->cost, best);
        }
    }
    EXPECT_GT(inexact, 100);
}

/// A chain of equal layers: what was worked out for one is taken for the others.
TEST(CostNetwork, SolvesALongChainOfEqualLayers)
{
    CostNetwork network;
    const CostTable own = tableOf({3, 1, 2});
    const CostTable next = tableOf({0, 5, 9, 5, 0, 5, 9, 5, 0});
    constexpr std::int32_t kLayers = 20'000;
    for (std::int32_t v = 0; v < kLayers; ++v) {
        network.domains.push_back(3);
        network.factors.push_back({{v}, own});
        if (v > 0)
            network.factors.push_back({{v - 1, v}, next});
    }
    network.factors.push_back({{0}, tableOf({0, 7, 0})}); // the first layer keeps away from the best
    const auto answer = cheapestChoice(network);
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->exact);
    EXPECT_EQ(answer->cost, kLayers + 6); // all but the first at 1, which takes 2 + 5 for the change
    EXPECT_EQ(answer->choice.front(), 2);
    EXPECT_EQ(answer->choice.back(), 1);
}

TEST(CostNetwork, SaysWhereNothingCanBe)
{
    CostNetwork network{{2, 2}, {}};
    const double never = std::numeric_limits<double>::infinity();
    network.factors.push_back({{0, 1}, tableOf({never, never, never, never})});
    const auto answer = cheapestChoice(network);
    ASSERT_TRUE(answer);
    EXPECT_TRUE(std::isinf(answer->cost));
}

TEST(CostNetwork, StopsWhenAsked)
{
    std::stop_source source;
    source.request_stop();
    const auto answer = cheapestChoice({{2}, {{{0}, tableOf({1, 2})}}}, {}, source.get_token());
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::Cancelled);
}

/// Eliminating one of two variables takes a table of all 12 choices, the other one of its own 3: 144 and 9
/// where domains are squared, and no more than allowed.
TEST(CostNetwork, CountsTablesOfSquaredDomains)
{
    const CostNetwork network{{3, 4}, {{{0, 1}, tableOf(std::vector<double>(12, 1))}}};
    EXPECT_DOUBLE_EQ(cheapestChoice(network)->squaredEntries, 144 + 9);
    EXPECT_DOUBLE_EQ(cheapestChoice(network, {.mostEntries = 100})->squaredEntries, 100 + 9);
}

/// A network that has taken all its work is bounded and improved from then on.
TEST(CostNetwork, TakesNoMoreWorkThanIsLeft)
{
    std::mt19937 random(45);
    for (int trial = 0; trial < 3; ++trial) {
        constexpr std::int32_t kSide = 10;
        CostNetwork grid;
        grid.domains.assign(kSide * kSide, 3);
        const auto meet = [&](std::int32_t a, std::int32_t b) {
            std::vector<double> costs(9);
            for (double &cost : costs)
                cost = static_cast<double>(random() % 100);
            grid.factors.push_back({{a, b}, std::make_shared<const std::vector<double>>(std::move(costs))});
        };
        for (std::int32_t row = 0; row < kSide; ++row)
            for (std::int32_t column = 0; column < kSide; ++column) {
                const std::int32_t own = row * kSide + column;
                if (column + 1 < kSide)
                    meet(own, own + 1);
                if (row + 1 < kSide)
                    meet(own, own + kSide);
            }
        const auto exact = cheapestChoice(grid, {.mostEntries = std::size_t{1} << 24});
        ASSERT_TRUE(exact && exact->exact);
        NetworkWork spent;
        spent.add(1e12);
        const auto within = cheapestChoice(grid, {.work = &spent});
        ASSERT_TRUE(within);
        EXPECT_FALSE(within->exact);
        EXPECT_LE(within->bound, exact->cost);
        EXPECT_GE(within->cost, exact->cost);
        EXPECT_LE(within->cost, 2 * exact->cost);
        EXPECT_DOUBLE_EQ(within->cost, costOf(grid, within->choice));
    }
}

} // namespace
} // namespace planloom
