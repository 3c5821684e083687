// What a search says of all plans holds of those that a few rows make: the short form of
// tests/bench/bounds_hold.sh.

#include "tests/bound_draws.h"
#include "tests/seeds.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

TEST(BoundsHold, OfRandomRowsOnSmallModels)
{
    Draws draws({}, true);
    int drawn = 0;
    int faster = 0;
    const auto [first, end] = seedsToTry("PLANLOOM_BOUNDS", 24);
    for (std::uint32_t seed = first; seed < end; ++seed)
        draws.draw(seed, [&](const nlohmann::json &line) {
            SCOPED_TRACE(line.dump());
            ++drawn;
            const double seconds = line.at("seconds");
            EXPECT_GE(seconds, line.at("bound").get<double>() * (1 - kSameSeconds));
            faster += seconds < 0.99 * line.at("step").get<double>() ? 1 : 0;
        });
    std::printf("%d draws, %d over 1%% faster than what was found without rows\n", drawn, faster);
    EXPECT_GT(drawn, 40);
    EXPECT_LE(faster * 20, drawn);
}

} // namespace
} // namespace planloom
