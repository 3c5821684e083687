#include "engine/analyse/communication.h"

#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/simulate/gallery_plans.h"

#include <map>
#include <set>

namespace planloom {
namespace {

CommunicationMatrix matrixOf(const SimulatedPlan &plan)
{
    const auto matrix = communicationMatrix(plan.plan, plan.timeline, plan.cluster);
    EXPECT_TRUE(matrix);
    return *matrix;
}

TEST(Communication, RowsOfTheMatrixSumToWhatThePlanSends)
{
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const CommunicationMatrix matrix = matrixOf(plan);
        std::map<std::pair<DeviceId, InstructionKind>, std::int64_t> expected;
        for (const Traffic &traffic : plan.timeline.traffic)
            expected[{traffic.from, traffic.kind}] += traffic.bytes.count;
        std::map<std::pair<DeviceId, InstructionKind>, std::int64_t> found;
        for (const Flow &flow : matrix.flows) {
            found[{flow.from, flow.kind}] += flow.bytes.count;
            EXPECT_NE(flow.from, flow.to);
        }
        std::erase_if(expected, [](const auto &entry) { return entry.second == 0; });
        std::erase_if(found, [](const auto &entry) { return entry.second == 0; });
        EXPECT_EQ(found, expected);
        for (std::int32_t d = 0; d < matrix.deviceCount; ++d) {
            std::int64_t row = 0;
            std::int64_t cells = 0;
            for (const auto &[key, bytes] : expected)
                row += key.first == DeviceId{d} ? bytes : 0;
            for (std::int32_t to = 0; to < matrix.deviceCount; ++to)
                cells += matrix.bytesBetween(DeviceId{d}, DeviceId{to}).count;
            EXPECT_EQ(matrix.sentBy(DeviceId{d}).count, row);
            EXPECT_EQ(cells, row);
        }
    }
}

TEST(Communication, SendsGoWhereThePlanSaysAndCollectivesStayInTheirGroups)
{
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const CommunicationMatrix matrix = matrixOf(plan);
        for (const Traffic &traffic : plan.timeline.traffic)
            if (traffic.kind == InstructionKind::Send) {
                EXPECT_EQ(
                    matrix.bytesBetween(traffic.from, traffic.to, InstructionKind::Send), traffic.bytes);
            }
        std::set<std::pair<DeviceId, DeviceId>> together;
        for (const auto &group : plan.plan.groups)
            for (const DeviceId a : group)
                for (const DeviceId b : group)
                    together.emplace(a, b);
        for (const Flow &flow : matrix.flows)
            if (flow.kind != InstructionKind::Send) {
                EXPECT_TRUE(together.count({flow.from, flow.to}));
            }
    }
}

TEST(Communication, TimesAddUpToTheSendersSpans)
{
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const CommunicationMatrix matrix = matrixOf(plan);
        std::int64_t expected = 0;
        const SpanColumns &spans = plan.timeline.spans;
        for (std::size_t s = 0; s < spans.size(); ++s) {
            const Instruction &instruction =
                plan.plan.devices[static_cast<std::size_t>(spans.device[s])]
                    .segments[static_cast<std::size_t>(spans.segment[s])]
                    .instructions[static_cast<std::size_t>(spans.instruction[s])];
            const bool sends = instruction.kind == InstructionKind::Send
                || (instruction.group >= 0
                    && !(instruction.kind == InstructionKind::Broadcast
                        && plan.plan.groups[static_cast<std::size_t>(instruction.group)].back().index
                            == spans.device[s]));
            expected += sends ? spans.duration[s] : 0;
        }
        std::int64_t found = 0;
        for (const Flow &flow : matrix.flows)
            found += flow.time.count();
        EXPECT_EQ(found, expected);
    }
}

TEST(Communication, LinksCarryWhatCrossesThem)
{
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const CommunicationMatrix matrix = matrixOf(plan);
        std::int64_t onLinks = 0;
        for (const LinkLoad &link : matrix.links) {
            onLinks += link.bytes.count;
            EXPECT_EQ(link.share > 0, link.bytes.count > 0);
        }
        std::int64_t sent = 0;
        bool crosses = false;
        for (const Flow &flow : matrix.flows) {
            sent += flow.bytes.count;
            crosses = crosses || plan.cluster.nodeOf(flow.from) != plan.cluster.nodeOf(flow.to);
        }
        EXPECT_EQ(onLinks, sent);
        EXPECT_EQ(std::any_of(matrix.links.begin(), matrix.links.end(),
                      [](const LinkLoad &link) { return link.betweenNodes && link.bytes.count > 0; }),
            crosses);
    }
    EXPECT_TRUE(std::any_of(allPlans().begin(), allPlans().end(),
        [](const SimulatedPlan &plan) { return plan.plan.devices.size() > 8; }));
}

TEST(Communication, RowsBehindItAreThoseOfTheOperatorsServed)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=4&hidden=16&batch=16");
    const auto table = galleryTable("data-parallel", graph, 2);
    ASSERT_TRUE(table);
    const auto completion = completePlan(graph, 2, *table);
    ASSERT_TRUE(completion);
    const auto plan = simulated("data-parallel", *lower(completion->plan, *clusterNamed("dgx-a100:2")));
    const CommunicationMatrix matrix = matrixOf(plan);
    const auto rows = rowsBehind(completion->plan, matrix);
    ASSERT_FALSE(rows.empty());
    std::int64_t all = 0;
    for (const Flow &flow : matrix.flows)
        all += flow.bytes.count;
    std::int64_t most = 0;
    for (const RowTraffic &row : rows) {
        if (row.row.valid()) {
            EXPECT_LT(row.row.index, static_cast<std::int32_t>(table->rows.size()));
        }
        EXPECT_LE(row.bytes.count, all);
        most = std::max(most, row.bytes.count);
    }
    EXPECT_GT(most, 0);
    ASSERT_FALSE(matrix.flows.empty());
    for (const RowTraffic &row : rowsBehind(completion->plan, matrix, &matrix.flows.front()))
        EXPECT_EQ(row.bytes, matrix.flows.front().bytes);
}

} // namespace
} // namespace planloom
