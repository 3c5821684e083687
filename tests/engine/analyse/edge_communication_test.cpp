#include "engine/analyse/edge_communication.h"

#include "engine/analyse/communication.h"

#include "tests/engine/simulate/gallery_plans.h"
#include "tests/engine/simulate/plans_for_tests.h"

#include <algorithm>
#include <map>

namespace planloom {
namespace {

TEST(EdgeCommunications, SendTogetherWhatTheMatrixSays)
{
    std::size_t edges = 0;
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const auto matrix = communicationMatrix(plan.plan, plan.timeline, plan.cluster);
        ASSERT_TRUE(matrix);
        std::map<InstructionKind, std::int64_t> expected;
        for (const Flow &flow : matrix->flows)
            expected[flow.kind] += flow.bytes.count;
        std::map<InstructionKind, std::int64_t> found;
        const auto all = communicationOnEdges(plan.plan);
        for (const EdgeCommunication &edge : all)
            found[edge.kind] += edge.bytes.count;
        std::erase_if(expected, [](const auto &each) { return each.second == 0; });
        std::erase_if(found, [](const auto &each) { return each.second == 0; });
        EXPECT_EQ(found, expected);
        edges += all.size();
    }
    EXPECT_GT(edges, 100u);
}

TEST(EdgeCommunications, EndAtTheOperatorThatTheyServe)
{
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const Graph &graph = *plan.plan.graph;
        const auto edges = communicationOnEdges(plan.plan);
        for (const EdgeCommunication &edge : edges) {
            ASSERT_TRUE(edge.tensor.valid());
            EXPECT_GT(edge.count, 0);
            EXPECT_TRUE(!edge.op.valid() || edge.op == edge.from || edge.op == edge.to);
            if (edge.from.valid()) {
                const auto &made = graph.at(edge.from).outputs;
                EXPECT_NE(std::find(made.begin(), made.end(), edge.tensor), made.end());
            }
            const EdgeCommunication *again = findEdge(edges, edge.op, edge.tensor);
            ASSERT_NE(again, nullptr);
            EXPECT_EQ(again->tensor, edge.tensor);
            EXPECT_EQ(again->op, edge.op);
        }
        EXPECT_EQ(findEdge(edges, OperatorId{1 << 30}, TensorId{0}), nullptr);
    }
}

/// Gradients of one device are summed over four units that do the same.
TEST(EdgeCommunications, AcrossUnitsAreTheDevicesOwn)
{
    constexpr std::int32_t kUnits = 4;
    constexpr std::int32_t kSum = 6; // buffer
    ExecutionPlan plan = test::pipelinePlan({.stages = 1, .microBatches = 2, .optimizer = true});
    plan.units.count = kUnits;
    for (Segment &segment : plan.devices[0].segments.edit())
        if (segment.kind == SegmentKind::Reduce)
            segment.instructions.push_back({.kind = InstructionKind::AllReduce,
                .acrossUnits = true,
                .inputs = {kSum},
                .outputs = {kSum}});
    const Cluster cluster = *clusterNamed("dgx-a100:4");
    const auto timeline = simulate(plan, cluster);
    ASSERT_TRUE(timeline) << describe(timeline.error());
    const auto matrix = communicationMatrix(plan, *timeline, cluster);
    ASSERT_TRUE(matrix);
    ASSERT_EQ(matrix->flows.size(), 1u);
    EXPECT_EQ(matrix->flows[0].from, DeviceId{0});
    EXPECT_EQ(matrix->flows[0].to, DeviceId{0});
    const auto edges = communicationOnEdges(plan);
    ASSERT_EQ(edges.size(), 1u);
    EXPECT_EQ(edges[0].bytes, matrix->flows[0].bytes);
    EXPECT_EQ(edges[0].bytes.count, 256 * 4 * 2 * (kUnits - 1) / kUnits); // a ring
}

TEST(EdgeCommunications, OfOneDeviceAreNone)
{
    EXPECT_TRUE(communicationOnEdges(allPlans().front().plan).empty()); // "single"
    std::stop_source source;
    source.request_stop();
    EXPECT_TRUE(communicationOnEdges(allPlans()[1].plan, source.get_token()).empty());
}

} // namespace
} // namespace planloom
