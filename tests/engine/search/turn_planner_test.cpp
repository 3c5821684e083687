#include "engine/search/time/step_estimate.h"
#include "tests/engine/search/search_site.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace planloom {
namespace {

/// Fewer bytes pass the more turns there are, and it takes longer; no plan in turns is below the bounds of
/// its configuration, in seconds or bytes, whatever the limit.
TEST(TurnPlanner, TakesNoMoreTurnsThanThereIsNeedFor)
{
    const Site site(zooTraining("zoo:gpt?layers=4&hidden=512&heads=8&seq=2048&vocab=512&batch=4"), 2);
    double before = 0;
    std::int64_t peak = 0;
    for (const double room : {2.0, 0.9, 0.85, 0.8, 0.1}) {
        SCOPED_TRACE(room);
        const std::string rows = peak == 0 ? ""
                                           : "limit memory "
                + std::to_string(static_cast<std::int64_t>(room * static_cast<double>(peak))) + "B\n";
        const auto table = parseTable(rows);
        ASSERT_TRUE(table) << describe(table.error());
        const auto space = searchSpaceOf(site.model, site.cluster, site.devices, *table);
        ASSERT_TRUE(space);
        auto estimator = StepEstimator::make(
            site.model, site.cluster, site.devices, *table, *space, site.costs, PrecisionPreset::Float32);
        ASSERT_TRUE(estimator);
        Configuration configuration{.shards = 2, .recompute = RecomputeWord::Full};
        ASSERT_TRUE((*estimator)->mayTakeTurns(configuration));
        const auto atOnce = (*estimator)->estimate(configuration, 0, {});
        ASSERT_TRUE(atOnce) << describe(atOnce.error());
        configuration.inTurns = true;
        const auto bound = (*estimator)->stagedBoundOf(configuration, {});
        ASSERT_TRUE(bound) << describe(bound.error());
        const auto inTurns = (*estimator)->estimateWith(configuration, atOnce->partition->choice);
        ASSERT_TRUE(inTurns) << describe(inTurns.error());
        EXPECT_GE(inTurns->seconds, before);
        EXPECT_GE(inTurns->seconds, atOnce->seconds);
        EXPECT_GE(inTurns->seconds, bound->seconds * (1 - 1e-9));
        EXPECT_GE(inTurns->peakBytes, bound->peakBytes);
        EXPECT_LE(inTurns->peakBytes, atOnce->peakBytes);
        EXPECT_EQ(inTurns->stages->turns.empty(), peak == 0);
        before = inTurns->seconds;
        if (peak == 0)
            peak = atOnce->peakBytes;
    }
    // With split backward passes no region takes turns.
    const auto space = searchSpaceOf(site.model, site.cluster, site.devices, {});
    auto estimator = StepEstimator::make(
        site.model, site.cluster, site.devices, {}, *space, site.costs, PrecisionPreset::Float32);
    EXPECT_FALSE((*estimator)
                     ->mayTakeTurns({.ranks = 2,
                         .microBatches = 4,
                         .schedule = ScheduleKind::ZeroBubbleH1,
                         .recompute = RecomputeWord::Full}));
    EXPECT_FALSE((*estimator)->mayTakeTurns({.shards = 2}));
}

} // namespace
} // namespace planloom
