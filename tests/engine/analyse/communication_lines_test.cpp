#include "engine/analyse/communication_lines.h"

#include "engine/analyse/communication.h"
#include "engine/hardware/cost_model.h"
#include "engine/lowering/program/instruction_cost.h"
#include "tests/engine/gallery/gallery_for_tests.h"
#include "tests/engine/simulate/gallery_plans.h"

#include <algorithm>
#include <map>

namespace planloom {
namespace {

std::vector<CommunicationLine> linesOf(const SimulatedPlan &plan)
{
    auto lines = communicationLines(plan.plan, plan.timeline, plan.cluster);
    EXPECT_TRUE(lines);
    return *std::move(lines);
}

/// Launches and their time, counted span by span of the member that stands first.
TEST(CommunicationLines, CountEveryLaunchOnce)
{
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        std::map<InstructionKind, std::pair<std::int64_t, std::int64_t>> expected;
        const SpanColumns &spans = plan.timeline.spans;
        for (std::size_t row = 0; row < spans.size(); ++row) {
            const DeviceProgram &program = plan.plan.devices[at(spans.device[row])];
            const Instruction &instruction =
                program.segments[at(spans.segment[row])].instructions[at(spans.instruction[row])];
            if (!isCommunication(instruction.kind) || instruction.kind == InstructionKind::Recv)
                continue;
            if (instruction.group >= 0
                && plan.plan.groups[at(instruction.group)].front().index != spans.device[row])
                continue;
            auto &[count, time] = expected[instruction.kind];
            count += instruction.joined ? 0 : 1;
            time += spans.duration[row];
        }
        std::map<InstructionKind, std::pair<std::int64_t, std::int64_t>> found;
        for (const CommunicationLine &line : linesOf(plan)) {
            auto &[count, time] = found[line.kind];
            const auto groups = static_cast<std::int64_t>(line.groups.size());
            count += line.count * groups;
            time += line.time.count() * groups;
            EXPECT_EQ(static_cast<std::int64_t>(line.starts.size()), line.count);
            EXPECT_TRUE(std::is_sorted(line.starts.begin(), line.starts.end()));
            EXPECT_LE(line.starts.back(), plan.timeline.step);
            EXPECT_GE(line.exposed.count(), 0);
            EXPECT_LE(line.exposed, line.time);
            EXPECT_FALSE(line.passes.empty());
        }
        EXPECT_EQ(found, expected);
    }
}

/// A device with one queue of communication has that of its timeline exposed, and nothing else.
TEST(CommunicationLines, ExposeWhatTheTimelineExposes)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=4&hidden=16&batch=16");
    const SimulatedPlan plan = simulated("tensor", galleryPlan(graph, "tensor-parallel", 4));
    std::int64_t exposed = 0;
    for (const CommunicationLine &line : linesOf(plan))
        exposed += line.exposed.count() * static_cast<std::int64_t>(line.groups.size());
    std::int64_t expected = 0;
    for (const Nanoseconds each : plan.timeline.exposedCommunication)
        expected += each.count();
    ASSERT_GT(expected, 0);
    EXPECT_NEAR(static_cast<double>(exposed), static_cast<double>(expected) / 4,
        static_cast<double>(plan.timeline.spans.size()));
}

TEST(CommunicationLines, SayWhatTheCostModelAssumes)
{
    for (const SimulatedPlan &plan : allPlans()) {
        SCOPED_TRACE(plan.name);
        const CostModel costs = costModelOf(plan.cluster);
        for (const CommunicationLine &line : linesOf(plan)) {
            const auto kind = collectiveOf(line.kind);
            ASSERT_TRUE(kind);
            EXPECT_EQ(static_cast<std::size_t>(line.shape.ranks), line.groups.front().size());
            EXPECT_EQ(line.link, line.shape.nodes > 1 ? "between nodes" : "inside a node");
            const bool hasChoice = *kind != CollectiveKind::SendRecv && *kind != CollectiveKind::Shift
                && *kind != CollectiveKind::AllToAll;
            ASSERT_EQ(line.choice.has_value(), hasChoice && line.shape.ranks > 1);
            if (line.choice) {
                EXPECT_NEAR(line.choice->seconds, costs.collective(*kind, line.bytes, line.shape), 1e-12);
                EXPECT_FALSE(algorithmWords(line).empty());
            }
            if (line.time.count() > 0 && line.bytes.count > 0) {
                EXPECT_GT(busBandwidthOf(line), 0);
            }
        }
    }
}

TEST(CommunicationLines, OfOneDeviceAreNone)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=2&hidden=16&batch=16");
    EXPECT_TRUE(linesOf(simulated("single", galleryPlan(graph, "single", 1))).empty());
}

TEST(CommunicationLines, NameGroupsOfAllUnits)
{
    const GraphSnapshot graph = trainingStep("zoo:mlp?layers=4&hidden=16&batch=16");
    const auto table = galleryTable("3d:dp=4,tp=2,micro-batches=1", graph, 8);
    ASSERT_TRUE(table) << describe(table.error());
    const auto completion = completePlan(graph, 8, *table, {.units = UseUnits::WherePossible});
    ASSERT_TRUE(completion && completion->plan.graph);
    const auto cluster = clusterNamed("dgx-a100:8");
    const auto lowered = lower(completion->plan, *cluster);
    ASSERT_TRUE(lowered) << describe(lowered.error());
    ASSERT_FALSE(lowered->units.isOne());
    const auto timeline = simulate(*lowered, *cluster);
    ASSERT_TRUE(timeline);
    const auto lines = communicationLines(*lowered, *timeline, *cluster);
    ASSERT_TRUE(lines);
    ASSERT_FALSE(lines->empty());
    for (const CommunicationLine &line : *lines) {
        EXPECT_EQ(line.groupCount * line.shape.ranks, 8) << nameOf(line.kind);
        for (const auto &group : line.groups)
            for (const DeviceId member : group)
                EXPECT_LT(member.index, 8);
    }
}

} // namespace
} // namespace planloom
