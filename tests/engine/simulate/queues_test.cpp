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

/// Sends that block are as blocks of computation: nothing is computed beside them, and nothing is faster.
TEST(BlockingSends, ComputeNothingBesideThem)
{
    SimulateOptions options;
    options.sharedLinks = false;
    int slower = 0;
    for (const SimulatedPlan &plan : allPlans())
        for (const CommunicationQueues queues : {CommunicationQueues::Own, CommunicationQueues::One}) {
            SCOPED_TRACE(plan.name);
            Cluster cluster = plan.cluster;
            cluster.communicationQueues = queues;
            const auto beside = simulate(plan.plan, cluster, options);
            cluster.blockingSends = true;
            const auto blocking = simulate(plan.plan, cluster, options);
            ASSERT_TRUE(beside && blocking);
            EXPECT_GE(blocking->step, beside->step);
            slower += blocking->step > beside->step ? 1 : 0;
            EXPECT_EQ(blocking->busy, beside->busy);
            const SpanColumns &spans = blocking->spans;
            for (std::size_t d = 0; d < plan.plan.devices.size(); ++d) {
                std::vector<std::pair<std::int64_t, std::int64_t>> runs; // of what computes or sends
                for (std::size_t row = blocking->deviceBegin[d]; row < blocking->deviceBegin[d + 1]; ++row) {
                    const Instruction &instruction =
                        plan.plan.devices[d]
                            .segments[static_cast<std::size_t>(spans.segment[row])]
                            .instructions[static_cast<std::size_t>(spans.instruction[row])];
                    if ((spans.queue[row] == QueueKind::Compute || sendsToStage(instruction))
                        && spans.duration[row] > 0)
                        runs.emplace_back(spans.start[row], spans.start[row] + spans.duration[row]);
                }
                std::sort(runs.begin(), runs.end());
                for (std::size_t i = 1; i < runs.size(); ++i)
                    EXPECT_GE(runs[i].first, runs[i - 1].second);
            }
            // Contention is worked out from the same waits.
            EXPECT_TRUE(simulate(plan.plan, cluster));
        }
    EXPECT_GT(slower, 3);
}

TEST(BlockingSends, AreWrittenIntoAClusterFile)
{
    Cluster cluster = *clusterNamed("dgx-a100:8");
    EXPECT_EQ(toJson(cluster).find("blockingSends"), std::string::npos);
    cluster.blockingSends = true;
    const auto again = clusterFromJson(toJson(cluster));
    ASSERT_TRUE(again) << describe(again.error());
    EXPECT_EQ(*again, cluster);
    std::string wrong = toJson(cluster);
    wrong.replace(wrong.find("true"), 4, "1");
    const auto refused = clusterFromJson(wrong);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().where, "/blockingSends");
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
