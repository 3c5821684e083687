#include "engine/hardware/cluster_json.h"

#include "tests/engine/simulate/gallery_plans.h"
#include "tests/engine/simulate/plans_for_tests.h"

namespace planloom {
namespace {

using test::Order;
using test::PipelineShape;

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
            for (const QueueKind queue : {QueueKind::Data, QueueKind::Pipeline, QueueKind::PipelineBack}) {
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

/// Of activations that are sent: how many begin later than they are made and those before them have been
/// sent and received.
int heldUp(const ExecutionPlan &plan, const Timeline &timeline)
{
    const SpanColumns &spans = timeline.spans;
    const auto segmentOf = [&](std::size_t row) -> const Segment & {
        return plan.devices[static_cast<std::size_t>(spans.device[row])]
            .segments[static_cast<std::size_t>(spans.segment[row])];
    };
    const auto instructionOf = [&](std::size_t row) -> const Instruction & {
        return segmentOf(row).instructions[static_cast<std::size_t>(spans.instruction[row])];
    };
    const auto carriesActivations = [&](std::size_t row) { // as pipelinePlan numbers them
        return instructionOf(row).tag >= 0 && instructionOf(row).tag % 2 == 0;
    };
    int held = 0;
    for (std::size_t row = 0; row < spans.size(); ++row) {
        if (instructionOf(row).kind != InstructionKind::Send || !carriesActivations(row))
            continue;
        std::int64_t earliest = 0;
        for (std::size_t other = 0; other < spans.size(); ++other) {
            const bool own = spans.device[other] == spans.device[row];
            const bool makes = own && segmentOf(other).kind == SegmentKind::Forward
                && spans.microBatch[other] == spans.microBatch[row];
            const bool before = (own || spans.device[other] == instructionOf(row).peer.index)
                && carriesActivations(other) && spans.start[other] < spans.start[row];
            if (makes || before)
                earliest = std::max(earliest, spans.start[other] + spans.duration[other]);
        }
        EXPECT_GE(spans.start[row], earliest);
        held += spans.start[row] > earliest ? 1 : 0;
    }
    return held;
}

/// Gradients come from where activations go to: one queue for both waits for the gradient that is next to
/// come while there is an activation to be sent, and sends nothing while it receives.
TEST(PipelineQueues, AGradientDoesNotHoldUpAnActivation)
{
    CostModel costs = test::unitCosts();
    costs.collective = [](CollectiveKind, Bytes, GroupShape) { return 1200e-9; };
    PipelineShape shape{.stages = 4, .microBatches = 8, .order = Order::OneFOneB};
    const ExecutionPlan both = test::pipelinePlan(shape);
    shape.oneWay = true;
    const ExecutionPlan one = test::pipelinePlan(shape);
    const auto apart = simulate(both, test::clusterOf(both), costs);
    const auto together = simulate(one, test::clusterOf(one), costs);
    ASSERT_TRUE(apart && together);
    EXPECT_EQ(heldUp(both, *apart), 0);
    EXPECT_GT(heldUp(one, *together), 0);
    EXPECT_LT(apart->step, together->step);
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
