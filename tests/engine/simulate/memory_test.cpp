#include "engine/simulate/summary.h"
#include "tests/engine/simulate/memory_peak.h"
#include "tests/engine/simulate/plans_for_tests.h"

#include <gtest/gtest.h>

namespace planloom {
namespace {

using test::Order;

TEST(Memory, OfGPipeHoldsAllMicroBatchesAndOfOneFOneBAsManyAsStagesFollow)
{
    constexpr std::int64_t kBytes = 256 * 4;
    for (const Order order : {Order::GPipe, Order::OneFOneB}) {
        const std::int32_t p = 4, m = 8;
        const auto plan = test::pipelinePlan({.stages = p, .microBatches = m, .order = order});
        const auto timeline = simulate(plan, test::clusterOf(plan), test::unitCosts());
        ASSERT_TRUE(timeline) << describe(timeline.error());
        // Stage 0 keeps its inputs from forward to backward.
        const std::int64_t held = order == Order::GPipe ? m : p;
        EXPECT_EQ(most(timeline->memory[0], MemoryKind::Input), held * kBytes);
        for (std::size_t s = 0; s < 4; ++s) {
            EXPECT_EQ(most(timeline->memory[s], MemoryKind::Weight), kBytes);
            const auto &last = timeline->memory[s].bytes.back();
            std::array<std::int64_t, kMemoryKindCount> weightOnly{};
            weightOnly[static_cast<std::size_t>(MemoryKind::Weight)] = kBytes;
            EXPECT_EQ(last, weightOnly); // Everything else has died.
        }
    }
}

/// A two-layer MLP x [b 8] -> linear 8x16 -> relu -> linear 16x4, trained by AdamW on one device, by hand.
struct Mlp {
    ExecutionPlan plan;

    explicit Mlp(std::int32_t microBatches)
    {
        Graph graph;
        const auto tensor = [&](std::int64_t width, TensorRole role) {
            return test::addTensor(graph, "t" + std::to_string(graph.tensors.size()), width, role);
        };
        const std::int64_t rows = 2; // Of one micro-batch.
        const TensorId x = tensor(rows * 8, TensorRole::Input), h = tensor(rows * 16, TensorRole::Activation),
                       a = tensor(rows * 16, TensorRole::Activation),
                       y = tensor(rows * 4, TensorRole::Activation),
                       dy = tensor(rows * 4, TensorRole::Gradient),
                       da = tensor(rows * 16, TensorRole::Gradient),
                       dh = tensor(rows * 16, TensorRole::Gradient);
        std::array<TensorId, 2> w{tensor(128, TensorRole::Weight), tensor(64, TensorRole::Weight)};
        std::array<TensorId, 2> dw{tensor(128, TensorRole::Gradient), tensor(64, TensorRole::Gradient)};
        std::array<TensorId, 4> state{tensor(128, TensorRole::OptimizerState),
            tensor(128, TensorRole::OptimizerState), tensor(64, TensorRole::OptimizerState),
            tensor(64, TensorRole::OptimizerState)};
        const OperatorId op = test::addOperator(graph, "op", Direction::Forward, {}, {});

        plan.microBatches = microBatches;
        DeviceProgram &program = plan.devices.emplace_back();
        const auto buffer = [&](TensorId id, MemoryKind memory, bool perMicroBatch, bool persistent) {
            program.buffers.push_back(test::bufferOf(graph, id, memory));
            program.buffers.edit().back().perMicroBatch = perMicroBatch;
            program.buffers.edit().back().persistent = persistent;
            return static_cast<std::int32_t>(program.buffers.size()) - 1;
        };
        const auto bx = buffer(x, MemoryKind::Input, true, false),
                   bh = buffer(h, MemoryKind::Activation, true, false),
                   ba = buffer(a, MemoryKind::Activation, true, false),
                   by = buffer(y, MemoryKind::Activation, true, false),
                   bdy = buffer(dy, MemoryKind::Activation, true, false),
                   bda = buffer(da, MemoryKind::Activation, true, false),
                   bdh = buffer(dh, MemoryKind::Activation, true, false);
        std::array<std::int32_t, 2> bw{}, bg{}, bp{};
        for (std::size_t i = 0; i < 2; ++i) {
            bw[i] = buffer(w[i], MemoryKind::Weight, false, true);
            bg[i] = buffer(dw[i], MemoryKind::Gradient, false, false);
            bp[i] = buffer(dw[i], MemoryKind::Gradient, true, false);
        }
        for (const TensorId id : state)
            buffer(id, MemoryKind::OptimizerState, false, true);

        Segment forward{.kind = SegmentKind::Forward}, backward{.kind = SegmentKind::Backward},
            optimizer{.kind = SegmentKind::Optimizer};
        using enum InstructionKind;
        const auto add = [&](Segment &segment, InstructionKind kind, std::vector<std::int32_t> inputs,
                             std::vector<std::int32_t> outputs, std::vector<std::int32_t> deaths) {
            segment.instructions.push_back({.kind = kind,
                .op = op,
                .inputs = std::move(inputs),
                .outputs = std::move(outputs),
                .deaths = std::move(deaths)});
        };
        add(forward, Load, {}, {bx}, {});
        add(forward, Kernel, {bx, bw[0]}, {bh}, {});
        add(forward, Kernel, {bh}, {ba}, {});
        add(forward, Kernel, {ba, bw[1]}, {by}, {});
        add(backward, Kernel, {by}, {bdy}, {by});
        add(backward, Kernel, {bdy, ba, bw[1]}, {bda, bp[1]}, {bdy, ba});
        add(backward, Accumulate, {bp[1]}, {bg[1]}, {bp[1]});
        add(backward, Kernel, {bda, bh}, {bdh}, {bda, bh});
        add(backward, Kernel, {bdh, bx}, {bp[0]}, {bdh, bx});
        add(backward, Accumulate, {bp[0]}, {bg[0]}, {bp[0]});
        add(optimizer, Kernel, {bw[0], bg[0]}, {bw[0]}, {bg[0]});
        add(optimizer, Kernel, {bw[1], bg[1]}, {bw[1]}, {bg[1]});
        program.segments = {forward, backward, optimizer};
        for (std::int32_t i = 0; i < microBatches; ++i) {
            program.schedule.push_back({0, i});
            program.schedule.push_back({1, i});
        }
        program.schedule.push_back({2, 0});
        plan.graph = std::make_shared<const Graph>(std::move(graph));
    }
};

CostModel anyCosts()
{
    return {
        [](const KernelQuery &) { return 1e-6; },
        [](CollectiveKind, Bytes, GroupShape) { return 1e-6; },
        [](Bytes, std::int32_t) { return 1e-6; },
    };
}

TEST(Memory, OfAnMlpIsCountedByHand)
{
    for (const std::int32_t m : {1, 3}) {
        SCOPED_TRACE(m);
        const Mlp mlp(m);
        const auto timeline = simulate(mlp.plan, test::clusterOf(mlp.plan), anyCosts());
        ASSERT_TRUE(timeline) << describe(timeline.error());
        const MemoryCurve &curve = timeline->memory[0];
        EXPECT_EQ(most(curve, MemoryKind::Weight), (128 + 64) * 4);
        EXPECT_EQ(most(curve, MemoryKind::OptimizerState), 2 * (128 + 64) * 4);
        EXPECT_EQ(most(curve, MemoryKind::Input), 16 * 4);
        // Both accumulators, and the larger partial gradient beside them.
        EXPECT_EQ(most(curve, MemoryKind::Gradient), (128 + 64 + 128) * 4);
        // h, a, dy and da while the second linear's backward runs; with dh, h and da it is less.
        EXPECT_EQ(most(curve, MemoryKind::Activation), (32 + 32 + 8 + 32) * 4);
        EXPECT_EQ(curve.bytes.front()[static_cast<std::size_t>(MemoryKind::OptimizerState)], 2 * 192 * 4);
        // Peak: the first linear's backward with both accumulators (m > 1), its partial, x and dh.
        std::int64_t total = 0;
        for (const std::int64_t bytes : curve.atPeak)
            total += bytes;
        EXPECT_EQ(curve.peak.count, total);
        std::int64_t highest = 0;
        for (const auto &bytes : curve.bytes) {
            std::int64_t sum = 0;
            for (const std::int64_t b : bytes)
                sum += b;
            highest = std::max(highest, sum);
        }
        EXPECT_EQ(curve.peak.count, highest);
        EXPECT_TRUE(std::is_sorted(curve.time.begin(), curve.time.end()));
        EXPECT_EQ(summaryOf(*timeline).devices[0].peak, curve.peak);
    }
}

TEST(Memory, IsThatOfTheBuffersTypes)
{
    Mlp mlp(2);
    for (BufferInfo &buffer : mlp.plan.devices[0].buffers.edit())
        if (buffer.memory == MemoryKind::Activation || buffer.memory == MemoryKind::Input)
            buffer.dataType = DataType::BFloat16;
    const auto timeline = simulate(mlp.plan, test::clusterOf(mlp.plan), anyCosts());
    ASSERT_TRUE(timeline) << describe(timeline.error());
    const MemoryCurve &curve = timeline->memory[0];
    EXPECT_EQ(most(curve, MemoryKind::Weight), 192 * 4);
    EXPECT_EQ(most(curve, MemoryKind::OptimizerState), 384 * 4);
    EXPECT_EQ(most(curve, MemoryKind::Gradient), 320 * 4);
    EXPECT_EQ(most(curve, MemoryKind::Input), 16 * 2);
    EXPECT_EQ(most(curve, MemoryKind::Activation), 104 * 2);
}

TEST(Memory, PeakIsKnownWithoutSpans)
{
    const Mlp mlp(2);
    const auto cluster = test::clusterOf(mlp.plan);
    const auto with = simulate(mlp.plan, cluster, anyCosts());
    const auto without = simulate(mlp.plan, cluster, anyCosts(), {.spans = false});
    ASSERT_TRUE(with && without);
    EXPECT_EQ(with->memory[0].peak, without->memory[0].peak);
    EXPECT_EQ(with->memory[0].atPeak, without->memory[0].atPeak);
    EXPECT_TRUE(without->memory[0].time.empty());
    EXPECT_EQ(without->spans.size(), 0U);
    EXPECT_EQ(with->step, without->step);
}

} // namespace
} // namespace planloom
