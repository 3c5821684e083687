#include "engine/simulate/beside_collectives.h"

#include "tests/dice.h"
#include "tests/engine/simulate/gallery_plans.h"
#include "tests/engine/simulate/plans_for_tests.h"
#include "tests/engine/simulate/same_timeline.h"

#include <algorithm>

namespace planloom {
namespace {

TEST(BesideCollectives, AComputationRunsSlowerWhileOneRuns)
{
    BesideCollectives collectives;
    EXPECT_EQ(collectives.stretched(7, 100), 100);
    collectives.add(50, 70, 0.5);
    EXPECT_EQ(collectives.stretched(0, 50), 50); // over before it begins
    EXPECT_EQ(collectives.stretched(70, 50), 50); // begins when it is over
    EXPECT_EQ(collectives.stretched(0, 100), 110); // 20 of it at half the speed
    EXPECT_EQ(collectives.stretched(60, 5), 10); // all of it
    EXPECT_TRUE(collectives.meets(60, 61));
    EXPECT_FALSE(collectives.meets(70, 90));
    EXPECT_FALSE(collectives.meets(0, 50));
}

TEST(BesideCollectives, StretchesAreJoinedAndForgotten)
{
    Dice dice(5);
    for (int draw = 0; draw < 300; ++draw) {
        BesideCollectives collectives;
        std::vector<double> speeds(200, 1); // by moment
        for (std::int64_t i = dice.below(12); i > 0; --i) {
            const std::int64_t begin = dice.below(190);
            const std::int64_t end = begin + dice.below(10);
            const double speed = dice.below(2) == 0 ? 0.5 : 0.75;
            collectives.add(begin, end, speed);
            for (auto moment = speeds.begin() + begin; moment != speeds.begin() + end; ++moment)
                *moment = std::min(*moment, speed);
        }
        const std::int64_t start = dice.below(150);
        collectives.forgetBefore(start);
        const std::int64_t duration = dice.below(40);
        const auto speedAt = [&speeds](std::int64_t moment) {
            return moment < 200 ? speeds[static_cast<std::size_t>(moment)] : 1;
        };
        auto left = static_cast<double>(duration);
        std::int64_t now = start;
        for (; left > 0; ++now)
            left -= speedAt(now);
        // Parts of moments are rounded at every end of a stretch.
        EXPECT_NEAR(
            static_cast<double>(collectives.stretched(start, duration)), static_cast<double>(now - start), 8)
            << draw;
        bool meets = false;
        for (std::int64_t moment = start; moment < start + 10; ++moment)
            meets = meets || speedAt(moment) < 1;
        EXPECT_EQ(collectives.meets(start, start + 10), meets) << draw;
    }
}

/// Whatever a plan computes takes as long as alone, and longer only beside a collective: at most by the share
/// that these leave. However it is simulated.
TEST(BesideCollectives, PlansTakeLongerJustThere)
{
    constexpr double kShare = 0.75;
    int slower = 0;
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        Cluster cluster = plan.cluster;
        SimulateOptions options;
        options.sharedLinks = false; // what shares a link takes longer for another reason
        const auto alone = simulate(plan.plan, cluster, options);
        cluster.device.besideCollectives = {kShare, "made up"};
        const auto beside = simulate(plan.plan, cluster, options);
        ASSERT_TRUE(alone && beside);
        EXPECT_GE(beside->step, alone->step);
        for (std::size_t d = 0; d < plan.plan.devices.size(); ++d) {
            const auto [begin, end] = rowsOf(*beside, d, QueueKind::Compute);
            ASSERT_EQ(rowsOf(*alone, d, QueueKind::Compute), std::pair(begin, end));
            for (std::size_t row = begin; row < end; ++row) {
                const auto own = static_cast<double>(alone->spans.duration[row]);
                const std::int64_t start = beside->spans.start[row];
                const std::int64_t takes = beside->spans.duration[row];
                EXPECT_GE(static_cast<double>(takes), own);
                EXPECT_LE(static_cast<double>(takes), own / kShare + 1);
                if (static_cast<double>(takes) == own)
                    continue;
                ++slower;
                bool meets = false;
                for (std::size_t other = beside->deviceBegin[d]; other < beside->deviceBegin[d + 1]; ++other)
                    meets = meets
                        || (beside->spans.queue[other] != QueueKind::Compute
                            && beside->spans.start[other] < start + takes
                            && start < beside->spans.start[other] + beside->spans.duration[other]);
                EXPECT_TRUE(meets);
            }
        }
        for (const bool chains : {false, true})
            for (const bool merged : {false, true}) {
                options.chains = chains;
                options.mergeSymmetric = merged;
                auto again = simulate(plan.plan, cluster, options);
                ASSERT_TRUE(again);
                again->symmetryClass = beside->symmetryClass; // that is what was asked for
                expectSameTimeline(*beside, *again);
            }
    }
    EXPECT_GT(slower, 20);
}

} // namespace
} // namespace planloom
