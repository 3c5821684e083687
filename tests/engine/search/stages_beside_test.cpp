#include "engine/search/stages/stages_beside.h"

#include "engine/search/time/step_estimate.h"
#include "tests/engine/table/models.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

StagesBeside of(const char *model)
{
    const Model opened(zooTraining(model));
    return {*opened.graph, opened.index->forwardCount()};
}

TEST(StagesBeside, ADecoderBeginsBesideItsEncoder)
{
    const StagesBeside t5 = of("zoo:t5?layers=4&hidden=64&heads=4&src=16&tgt=16&vocab=64&batch=4");
    EXPECT_FALSE(t5.mayBe(1));
    EXPECT_FALSE(t5.mayBe(2)) << "what is half of all reads the encoder's outputs";
    EXPECT_TRUE(t5.mayBe(8));
    const StagesBeside gpt = of("zoo:gpt?layers=12&hidden=64&heads=4&seq=16&vocab=64&batch=4");
    EXPECT_FALSE(gpt.mayBe(8));
    EXPECT_FALSE(gpt.mayBe(12));
}

/// Stages one after the other are no bound of those that run side by side.
TEST(StagesBeside, IsPricedAsItIsBounded)
{
    const Model model(zooTraining("zoo:t5?layers=4&hidden=256&heads=4&src=64&tgt=64&vocab=1024&batch=8"));
    const Cluster cluster = *clusterNamed("dgx2-v100:8");
    const CostModel costs = costModelOf(cluster);
    const auto space = searchSpaceOf(model, cluster, 8, {});
    ASSERT_TRUE(space);
    auto estimator = StepEstimator::make(model, cluster, 8, {}, *space, costs, PrecisionPreset::Float32);
    ASSERT_TRUE(estimator);
    for (const std::int32_t ranks : {2, 4, 8})
        for (const ScheduleKind schedule : {ScheduleKind::OneFOneB, ScheduleKind::ZeroBubbleH1}) {
            const Configuration configuration{.ranks = ranks, .microBatches = 1, .schedule = schedule};
            SCOPED_TRACE(toString(configuration));
            const auto estimate = (*estimator)->estimate(configuration, 0, {});
            ASSERT_TRUE(estimate);
            const auto bound = (*estimator)->boundOf(configuration, {});
            const auto staged = (*estimator)->stagedBoundOf(configuration, {});
            ASSERT_TRUE(bound && staged);
            EXPECT_EQ(estimate->stages->isChain, ranks < 8);
            EXPECT_LE(*bound, estimate->seconds * (1 + 1e-9));
            EXPECT_LE(staged->seconds, estimate->seconds * (1 + 1e-9));
            EXPECT_GT(staged->seconds, estimate->seconds * 0.95);
        }
}

} // namespace
} // namespace planloom
