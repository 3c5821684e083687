#include "engine/simulate/summary.h"
#include "tests/engine/simulate/by_definition.h"
#include "tests/engine/simulate/plans_for_tests.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace planloom {
namespace {

using test::Order;
using test::PipelineShape;
using test::startsByDefinition;

/// Durations that differ from operator to operator and from size to size.
CostModel variedCosts(std::uint32_t seed)
{
    const auto draw = [seed](std::uint64_t value) {
        std::mt19937_64 generator(seed * 1000003ULL + value);
        return static_cast<double>(generator() % 40) * 1e-7;
    };
    return {
        [draw](const KernelQuery &query) { return draw(std::hash<std::string>{}(query.op.name)); },
        [draw](CollectiveKind kind, Bytes bytes, GroupShape shape) {
            return draw(static_cast<std::uint64_t>(kind) * 7919 + static_cast<std::uint64_t>(bytes.count) * 31
                + static_cast<std::uint64_t>(shape.ranks * 64 + shape.nodes));
        },
        [draw](Bytes bytes, std::int32_t) { return draw(static_cast<std::uint64_t>(bytes.count) + 5); },
    };
}

TEST(Simulate, StartsEveryInstructionWhenTheDefinitionSays)
{
    std::mt19937 random(7);
    for (int round = 0; round < 40; ++round) {
        const PipelineShape shape{.stages = 1 + static_cast<std::int32_t>(random() % 4),
            .microBatches = 1 + static_cast<std::int32_t>(random() % (round < 24 ? 5 : 12)),
            .order = random() % 2 == 0 ? Order::GPipe : Order::OneFOneB,
            .replicas = 1 + static_cast<std::int32_t>(random() % 3),
            .shards = 1 + static_cast<std::int32_t>(random() % 3),
            .kernels = 1 + static_cast<std::int32_t>(random() % (round < 24 ? 3 : 7)),
            .stores = random() % 2 == 0,
            .optimizer = random() % 2 == 0};
        SCOPED_TRACE(testing::Message()
            << "round " << round << ": " << shape.stages << " x " << shape.replicas << " x " << shape.shards
            << ", " << shape.microBatches);
        auto plan = test::pipelinePlan(shape);
        if (round % 2 == 1) // some wait for the compute queue
            for (DeviceProgram &device : plan.devices)
                for (Segment &segment : device.segments.edit())
                    for (Instruction &instruction : segment.instructions)
                        instruction.waits = queueOf(instruction) != QueueKind::Compute && random() % 2 == 0;
        const auto cluster = test::clusterOf(plan);
        const auto costs = variedCosts(random());
        const auto timeline = simulate(plan, cluster, costs);
        ASSERT_TRUE(timeline) << describe(timeline.error());
        const auto expected = startsByDefinition(plan, cluster, costs);
        const SpanColumns &spans = timeline->spans;
        ASSERT_EQ(spans.size(), expected.size());
        ASSERT_EQ(static_cast<std::int64_t>(spans.size()), instructionCount(plan));
        for (std::size_t row = 0; row < spans.size(); ++row) {
            const auto d = static_cast<std::size_t>(spans.device[row]);
            const auto &schedule = plan.devices[d].schedule;
            const auto entry = std::find(
                schedule.begin(), schedule.end(), ScheduleEntry{spans.segment[row], spans.microBatch[row]});
            ASSERT_NE(entry, schedule.end());
            const auto found = expected.find({d, static_cast<std::size_t>(entry - schedule.begin()),
                static_cast<std::size_t>(spans.instruction[row])});
            ASSERT_NE(found, expected.end());
            ASSERT_EQ(spans.start[row], found->second) << "row " << row;
        }
    }
}

TEST(Simulate, SortsSpansByDeviceQueueAndStart)
{
    const auto plan = test::pipelinePlan({.stages = 2, .microBatches = 3, .replicas = 2, .optimizer = true});
    const auto timeline = simulate(plan, test::clusterOf(plan));
    ASSERT_TRUE(timeline) << describe(timeline.error());
    const SpanColumns &spans = timeline->spans;
    ASSERT_EQ(timeline->deviceBegin.size(), 5U);
    for (std::size_t row = 1; row < spans.size(); ++row) {
        const auto key = [&](std::size_t r) {
            return std::tuple{spans.device[r], spans.queue[r], spans.start[r]};
        };
        ASSERT_LE(key(row - 1), key(row));
    }
    for (std::size_t d = 0; d < 4; ++d) {
        for (std::size_t row = timeline->deviceBegin[d]; row < timeline->deviceBegin[d + 1]; ++row)
            ASSERT_EQ(spans.device[row], static_cast<std::int32_t>(d));
    }
    EXPECT_EQ(timeline->deviceBegin.back(), spans.size());
}

TEST(Simulate, TimesCollectivesByTheClusterAndHidesWhatItCan)
{
    const auto plan =
        test::pipelinePlan({.microBatches = 2, .replicas = 8, .optimizer = true, .width = 1 << 20});
    const auto cluster = test::clusterOf(plan, "dgx-h100");
    const auto timeline = simulate(plan, cluster);
    ASSERT_TRUE(timeline) << describe(timeline.error());
    std::vector<DeviceId> all;
    for (std::int32_t d = 0; d < 8; ++d)
        all.push_back(DeviceId{d});
    const double seconds = collectiveSeconds(cluster, CollectiveKind::AllReduce, Bytes{4 << 20}, all);
    // Nothing else runs meanwhile: the whole of it is exposed.
    EXPECT_EQ(timeline->exposedCommunication[3].count(), std::llround(seconds * 1e9));
    EXPECT_EQ(timeline->step.count(), timeline->busy[3].count() + timeline->exposedCommunication[3].count());
    for (const std::int32_t c : timeline->symmetryClass)
        EXPECT_EQ(c, 0);
}

TEST(Simulate, CountsWhatEveryDeviceSends)
{
    const auto plan =
        test::pipelinePlan({.stages = 2, .microBatches = 3, .replicas = 4, .optimizer = true, .width = 1024});
    const auto timeline = simulate(plan, test::clusterOf(plan));
    ASSERT_TRUE(timeline) << describe(timeline.error());
    ASSERT_EQ(timeline->traffic.size(), 16U); // Per device an all-reduce and a send.
    for (const Traffic &traffic : timeline->traffic) {
        if (traffic.kind == InstructionKind::Send) {
            EXPECT_EQ(traffic.bytes, Bytes{3 * 4096});
            EXPECT_EQ(traffic.count, 3);
            EXPECT_EQ(std::abs(traffic.from.index - traffic.to.index), 4);
            EXPECT_EQ(traffic.group, -1);
        } else {
            EXPECT_EQ(traffic.kind, InstructionKind::AllReduce);
            EXPECT_EQ(traffic.bytes, Bytes{4096 * 2 * 3 / 4});
            EXPECT_EQ(traffic.count, 1);
            EXPECT_FALSE(traffic.to.valid());
            const auto &group = plan.groups[static_cast<std::size_t>(traffic.group)];
            EXPECT_NE(std::find(group.begin(), group.end(), traffic.from), group.end());
        }
    }
    const auto summary = summaryOf(*timeline);
    EXPECT_EQ(summary.sent, Bytes{8 * (3 * 4096 + 6144)});
    EXPECT_EQ(summary.devices[5].sent, Bytes{3 * 4096 + 6144});
    EXPECT_EQ(summary.devices.size(), 8U);
    EXPECT_DOUBLE_EQ(summary.bubble, bubbleRatio(*timeline));
}

TEST(Simulate, RingBytesAddUp)
{
    EXPECT_EQ(ringBytesSent(CollectiveKind::AllReduce, Bytes{1000}, 4, 0), Bytes{1500});
    EXPECT_EQ(ringBytesSent(CollectiveKind::AllGather, Bytes{1000}, 4, 0), Bytes{750});
    EXPECT_EQ(ringBytesSent(CollectiveKind::Broadcast, Bytes{1000}, 4, 2), Bytes{1000});
    EXPECT_EQ(ringBytesSent(CollectiveKind::Broadcast, Bytes{1000}, 4, 3), Bytes{0});
    EXPECT_EQ(ringBytesSent(CollectiveKind::SendRecv, Bytes{1000}, 2, 0), Bytes{1000});
    EXPECT_EQ(ringBytesSent(CollectiveKind::AllReduce, Bytes{1000}, 1, 0), Bytes{0});
}

TEST(Simulate, SaysThatCrossedOrdersDeadlock)
{
    auto plan = test::pipelinePlan({.stages = 2, .microBatches = 2});
    // Device 1 wants micro-batch 1 first, device 0 sends it last.
    auto &schedule = plan.devices[1].schedule;
    std::vector<std::size_t> receives;
    for (std::size_t e = 0; e < schedule.size(); ++e) {
        const auto &segment = plan.devices[1].segments[static_cast<std::size_t>(schedule[e].segment)];
        if (segment.kind == SegmentKind::Transfer && segment.instructions[0].kind == InstructionKind::Recv)
            receives.push_back(e);
    }
    ASSERT_EQ(receives.size(), 2U);
    std::swap(schedule[receives[0]], schedule[receives[1]]);
    const auto timeline = simulate(plan, test::clusterOf(plan));
    ASSERT_FALSE(timeline);
    EXPECT_EQ(timeline.error().code, ErrorCode::InvalidInput);
    EXPECT_NE(timeline.error().message.find("cannot make progress"), std::string::npos);
    EXPECT_NE(timeline.error().message.find("device 0 at a send"), std::string::npos);
    EXPECT_EQ(timeline.error().where.substr(0, 9), "device:0/");
}

TEST(Simulate, SaysThatAMemberNeverComes)
{
    auto plan = test::pipelinePlan({.shards = 3});
    for (Segment &segment : plan.devices[2].segments.edit())
        std::erase_if(
            segment.instructions, [](const Instruction &i) { return i.kind == InstructionKind::AllReduce; });
    const auto timeline = simulate(plan, test::clusterOf(plan));
    ASSERT_FALSE(timeline);
    EXPECT_EQ(timeline.error().code, ErrorCode::InvalidInput);
}

TEST(Simulate, RefusesAReadBeforeTheWrite)
{
    auto plan = test::pipelinePlan({});
    auto &instructions = plan.devices[0].segments.edit()[0].instructions;
    std::swap(instructions[0], instructions[1]);
    const auto timeline = simulate(plan, test::clusterOf(plan));
    ASSERT_FALSE(timeline);
    EXPECT_EQ(timeline.error().where, "device:0/segment:0/instruction:0");
}

TEST(Simulate, RefusesIndicesOutOfRange)
{
    const auto good = test::pipelinePlan({.stages = 2, .microBatches = 2, .replicas = 2, .optimizer = true});
    const auto cluster = test::clusterOf(good);
    ASSERT_TRUE(simulate(good, cluster));
    int refused = 0;
    const auto refuses = [&](auto &&change) {
        ExecutionPlan plan = good;
        change(plan);
        const auto timeline = simulate(plan, cluster);
        EXPECT_FALSE(timeline) << refused;
        if (!timeline) {
            EXPECT_EQ(timeline.error().code, ErrorCode::InvalidInput);
        }
        ++refused;
    };
    const auto instructionOf = [](ExecutionPlan &plan, InstructionKind kind) -> Instruction & {
        for (Segment &segment : plan.devices[0].segments.edit())
            for (Instruction &instruction : segment.instructions)
                if (instruction.kind == kind)
                    return instruction;
        ADD_FAILURE();
        return plan.devices[0].segments.edit()[0].instructions[0];
    };
    using enum InstructionKind;
    refuses([&](ExecutionPlan &plan) { instructionOf(plan, Kernel).inputs[0] = 99; });
    refuses([&](ExecutionPlan &plan) { instructionOf(plan, Kernel).outputs[0] = -2; });
    refuses([&](ExecutionPlan &plan) { instructionOf(plan, Kernel).deaths = {-1}; });
    refuses([&](ExecutionPlan &plan) { instructionOf(plan, Kernel).op = OperatorId{}; });
    refuses([&](ExecutionPlan &plan) { instructionOf(plan, AllReduce).group = 77; });
    refuses([&](ExecutionPlan &plan) { instructionOf(plan, AllReduce).group += 1; });
    refuses([&](ExecutionPlan &plan) { instructionOf(plan, Send).peer = DeviceId{9}; });
    refuses([&](ExecutionPlan &plan) { instructionOf(plan, Send).peer = DeviceId{0}; });
    refuses([&](ExecutionPlan &plan) { instructionOf(plan, Send).peer = DeviceId{3}; });
    refuses([&](ExecutionPlan &plan) { instructionOf(plan, Send).tag = -1; });
    refuses([&](ExecutionPlan &plan) { instructionOf(plan, Send).tag += 2; });
    refuses([&](ExecutionPlan &plan) { plan.devices[0].schedule[0].segment = 50; });
    refuses([&](ExecutionPlan &plan) { plan.devices[0].schedule[0].microBatch = 2; });
    refuses([&](ExecutionPlan &plan) { plan.devices[0].buffers.edit()[0].tensor = TensorId{1000}; });
    refuses([&](ExecutionPlan &plan) { plan.groups.back()[0] = DeviceId{4}; });
    refuses([&](ExecutionPlan &plan) { plan.groups.back()[0] = plan.groups.back()[1]; });
    refuses([&](ExecutionPlan &plan) { plan.graph = nullptr; });
    refuses([&](ExecutionPlan &plan) { plan.microBatches = 0; });
    refuses([&](ExecutionPlan &plan) { plan.devices.resize(5); });
}

TEST(Simulate, StopsWhenAsked)
{
    const auto plan = test::pipelinePlan({.stages = 2, .microBatches = 2});
    std::stop_source source;
    source.request_stop();
    const auto timeline = simulate(plan, test::clusterOf(plan), SimulateOptions{}, source.get_token());
    ASSERT_FALSE(timeline);
    EXPECT_EQ(timeline.error().code, ErrorCode::Cancelled);
}

TEST(Simulate, GivesFiguresOnceBeforeTheSpans)
{
    const auto plan = test::pipelinePlan({.stages = 2, .microBatches = 3, .replicas = 2, .optimizer = true});
    int calls = 0;
    Timeline figures;
    SimulateOptions options;
    options.onFigures = [&](const Timeline &timeline) {
        ++calls;
        figures = timeline;
    };
    const auto timeline = simulate(plan, test::clusterOf(plan), options);
    ASSERT_TRUE(timeline) << describe(timeline.error());
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(figures.spans.size(), 0U);
    EXPECT_EQ(summaryOf(figures), summaryOf(*timeline));
    EXPECT_EQ(figures.step, timeline->step);
    // By kind, what is sent adds up to the whole.
    std::int64_t bytes = 0;
    for (const KindTraffic &kind : summaryOf(figures).kinds) {
        EXPECT_GT(kind.count, 0);
        bytes += kind.bytes.count;
    }
    EXPECT_EQ(bytes, summaryOf(figures).sent.count);
    EXPECT_GT(bytes, 0);
}

TEST(LocalDuration, CountsTheBytesTouched)
{
    Graph graph;
    const TensorId tensor = test::addTensor(graph, "t", 100, TensorRole::Activation);
    ExecutionPlan plan;
    DeviceProgram program;
    program.buffers = {test::bufferOf(graph, tensor, MemoryKind::Activation),
        test::bufferOf(graph, tensor, MemoryKind::Activation),
        test::bufferOf(graph, tensor, MemoryKind::Activation)};
    program.buffers.edit()[2].index.ranges[0] = {0, 50};
    plan.graph = std::make_shared<const Graph>(graph);
    CostModel costs = test::unitCosts();
    costs.copy = [](Bytes bytes, std::int32_t) { return static_cast<double>(bytes.count) * 1e-9; };
    const auto duration = [&](const Instruction &instruction) {
        return localDuration(plan, program, instruction, costs);
    };
    using enum InstructionKind;
    EXPECT_EQ(duration({.kind = Accumulate, .inputs = {0}, .outputs = {1}}).usual.count(), 600);
    EXPECT_EQ(duration({.kind = Accumulate, .inputs = {0}, .outputs = {1}}).first.count(), 400);
    EXPECT_EQ(duration({.kind = Select, .inputs = {0}, .outputs = {2}}).usual.count(), 200);
    EXPECT_EQ(duration({.kind = Select, .inputs = {0}, .outputs = {1}}).usual.count(), 0);
    EXPECT_EQ(duration({.kind = Concat, .inputs = {2, 2}, .outputs = {1}}).usual.count(), 400);
    EXPECT_EQ(duration({.kind = Sum, .inputs = {0, 1}, .outputs = {0}}).usual.count(), 600);
    EXPECT_EQ(duration({.kind = Update, .inputs = {0}, .outputs = {1}}).usual.count(), 400);
    EXPECT_EQ(duration({.kind = Update, .inputs = {0}, .outputs = {1}, .deaths = {0}}).usual.count(), 0);
    EXPECT_EQ(duration({.kind = Load, .outputs = {1}}).usual.count(), 0);
    EXPECT_EQ(duration({.kind = Store, .inputs = {1}}).usual.count(), 0);

    program.buffers.edit()[1].dataType = DataType::BFloat16;
    EXPECT_EQ(duration({.kind = Cast, .inputs = {0}, .outputs = {1}}).usual.count(), 300);
    EXPECT_EQ(duration({.kind = Accumulate, .inputs = {1}, .outputs = {0}}).usual.count(), 500);
    EXPECT_EQ(collectiveBytes(program, {.kind = AllReduce, .inputs = {1}, .outputs = {1}}), Bytes{200});
}

} // namespace
} // namespace planloom
