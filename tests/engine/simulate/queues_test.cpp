#include "engine/hardware/cluster_json.h"

#include "tests/engine/simulate/gallery_plans.h"
#include "tests/engine/simulate/plans_for_tests.h"

namespace planloom {
namespace {

TEST(CommunicationQueues, OneQueueIsNeverFasterThanSeveral)
{
    SimulateOptions options;
    options.sharedLinks = false; // what shares a link slows others down, whatever the queues
    int slower = 0;
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        Cluster cluster = plan.cluster;
        const auto several = simulate(plan.plan, cluster, options);
        cluster.communicationQueues = CommunicationQueues::One;
        const auto one = simulate(plan.plan, cluster, options);
        ASSERT_TRUE(several && one);
        EXPECT_GE(one->step, several->step);
        slower += one->step > several->step ? 1 : 0;
        // The same is done, in one queue in order.
        EXPECT_EQ(one->spans.size(), several->spans.size());
        EXPECT_EQ(one->traffic.size(), several->traffic.size());
        EXPECT_EQ(one->busy, several->busy);
        for (std::size_t d = 0; d < plan.plan.devices.size(); ++d) {
            for (const QueueKind queue : {QueueKind::Data, QueueKind::Pipeline}) {
                const auto [begin, end] = rowsOf(*one, d, queue);
                EXPECT_EQ(begin, end);
            }
            const auto [begin, end] = rowsOf(*one, d, QueueKind::Tensor);
            for (std::size_t row = begin + 1; row < end; ++row)
                EXPECT_GE(one->spans.start[row], one->spans.start[row - 1] + one->spans.duration[row - 1]);
        }
    }
    EXPECT_GT(slower, 3);
}

/// A stage of two replicas with sums over shards: what is sent to the next stage waits behind an all-reduce
/// where both share a queue.
TEST(CommunicationQueues, ATransferWaitsBehindACollectiveInTheSameQueueAlone)
{
    CostModel costs = test::unitCosts();
    costs.collective = [](CollectiveKind kind, Bytes, GroupShape) {
        return kind == CollectiveKind::SendRecv ? 400e-9 : 900e-9;
    };
    const ExecutionPlan plan = test::pipelinePlan({.stages = 2, .microBatches = 4, .shards = 2});
    Cluster cluster = test::clusterOf(plan);
    const auto several = simulate(plan, cluster, costs);
    cluster.communicationQueues = CommunicationQueues::One;
    const auto one = simulate(plan, cluster, costs);
    ASSERT_TRUE(several && one);
    EXPECT_GT(one->step, several->step);
}

TEST(CommunicationQueues, AreWrittenIntoAClusterFile)
{
    Cluster cluster = *clusterNamed("dgx-a100:8");
    EXPECT_EQ(toJson(cluster).find("communicationQueues"), std::string::npos);
    cluster.communicationQueues = CommunicationQueues::One;
    const auto again = clusterFromJson(toJson(cluster));
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(*again, cluster);
    std::string wrong = toJson(cluster);
    wrong.replace(wrong.find("\"one\""), 5, "\"two\"");
    const auto refused = clusterFromJson(wrong);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("expected \"own\" or \"one\""), std::string::npos);
    EXPECT_EQ(refused.error().where, "/communicationQueues");
}

} // namespace
} // namespace planloom
