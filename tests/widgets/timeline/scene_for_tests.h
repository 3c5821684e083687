#pragma once

#include "widgets/scene/timeline_scene.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// What a made-up timeline looks like.
struct SceneShape {
    std::int32_t devices = 2;
    std::int32_t microBatches = 2;
    std::int32_t operators = 3; ///< In each segment.
    std::int64_t span = 1000; ///< Nanoseconds of a kernel.
    std::int64_t gap = 0; ///< Idle nanoseconds between blocks.
    std::int64_t pause = 0; ///< Idle nanoseconds in each block, behind its first operator.
    bool symmetric = true; ///< All devices alike; else each a class and a stage of its own.
    std::vector<DecidedBy>
        decidedBy{}; ///< By operator: `operators` forward ones, then as many backward ones.
};

/// A scene of `shape`: on each device F0, B0, F1, B1 ... one behind the other, an all-reduce beside each
/// backward block, memory that rises by 1 MiB with each span. Span i of a block runs operator i (forward) or
/// operators + i.
inline TimelineSceneSnapshot sceneForTests(const SceneShape &shape)
{
    auto graph = std::make_shared<Graph>();
    graph->name = "made-up";
    for (std::int32_t i = 0; i < 2 * shape.operators; ++i) {
        Operator op;
        op.name = (i < shape.operators ? "forward_" : "backward_") + std::to_string(i);
        op.kind = OperatorKind::MatMul;
        op.direction = i < shape.operators ? Direction::Forward : Direction::Backward;
        op.scope = ScopeId{0};
        graph->operators.push_back(op);
    }
    auto plan = std::make_shared<ExecutionPlan>();
    plan->graph = graph;
    plan->microBatches = shape.microBatches;
    plan->stageCount = shape.symmetric ? 1 : shape.devices;
    plan->placement.assign(graph->operators.size(), {DeviceId{0}});
    plan->groups = {{}};
    auto timeline = std::make_shared<Timeline>();
    SpanColumns &spans = timeline->spans;
    std::int64_t step = 0;
    for (std::int32_t d = 0; d < shape.devices; ++d) {
        plan->groups.front().push_back(DeviceId{d});
        DeviceProgram program;
        for (const SegmentKind kind : {SegmentKind::Forward, SegmentKind::Backward}) {
            Segment segment{kind, StageId{shape.symmetric ? 0 : d}, {}};
            for (std::int32_t i = 0; i < shape.operators; ++i) {
                Instruction instruction;
                instruction.kind = InstructionKind::Kernel;
                instruction.op = OperatorId{kind == SegmentKind::Forward ? i : shape.operators + i};
                segment.instructions.push_back(instruction);
            }
            if (kind == SegmentKind::Backward) {
                Instruction reduce;
                reduce.kind = InstructionKind::AllReduce;
                reduce.op = OperatorId{shape.operators};
                reduce.group = 0;
                segment.instructions.push_back(reduce);
            }
            program.segments.push_back(std::move(segment));
        }
        plan->devices.push_back(std::move(program));
        timeline->deviceBegin.push_back(spans.size());
        const auto add = [&](QueueKind stream, std::int32_t segment, std::int32_t instruction,
                             std::int32_t batch, std::int64_t start, std::int64_t duration) {
            spans.device.push_back(d);
            spans.queue.push_back(stream);
            spans.segment.push_back(segment);
            spans.instruction.push_back(instruction);
            spans.microBatch.push_back(batch);
            spans.start.push_back(start);
            spans.duration.push_back(duration);
            step = std::max(step, start + duration);
        };
        MemoryCurve curve;
        std::int64_t now = 0;
        std::vector<std::int64_t> backwardEnds;
        for (std::int32_t batch = 0; batch < shape.microBatches; ++batch) {
            for (std::int32_t segment = 0; segment < 2; ++segment) {
                for (std::int32_t i = 0; i < shape.operators; ++i) {
                    add(QueueKind::Compute, segment, i, batch, now, shape.span);
                    curve.time.push_back(now);
                    std::array<std::int64_t, kMemoryKindCount> bytes{};
                    bytes[static_cast<std::size_t>(MemoryKind::Activation)] =
                        static_cast<std::int64_t>(curve.time.size()) << 20;
                    curve.bytes.push_back(bytes);
                    now += shape.span + (i == 0 ? shape.pause : 0);
                }
                if (segment == 1)
                    backwardEnds.push_back(now);
                now += shape.gap;
            }
        }
        for (std::size_t batch = 0; batch < backwardEnds.size(); ++batch)
            add(QueueKind::Tensor, 1, shape.operators, static_cast<std::int32_t>(batch), backwardEnds[batch],
                shape.span);
        curve.atPeak = curve.bytes.back();
        curve.peak = {curve.bytes.back()[static_cast<std::size_t>(MemoryKind::Activation)]};
        timeline->memory.push_back(std::move(curve));
        timeline->busy.push_back(
            Nanoseconds{std::int64_t{2} * shape.operators * shape.microBatches * shape.span});
        timeline->exposedCommunication.push_back(Nanoseconds{0});
        timeline->symmetryClass.push_back(shape.symmetric ? 0 : d);
    }
    timeline->deviceBegin.push_back(spans.size());
    timeline->step = Nanoseconds{step};
    Cluster cluster;
    cluster.name = "made-up";
    cluster.device.memory.value = 80.0 * (1 << 30);
    cluster.deviceCount = shape.devices;
    return makeTimelineScene(timeline, plan, cluster, shape.decidedBy);
}

/// A device whose queues run side by side, and whose last backward block is interrupted by the reduction of
/// gradients, in two buckets; times in microseconds, an operator in each of the kernels:
///
///              0     3     6     9   10  11  12        14  15
///     compute  F0....B0....F1....B1..B1..R.  B1        O   O        the third of B1 begins at 12
///     tensor                     a                a                 B0's at 6-7, B1's at 13-14
///     data                           ...r1........r2..              10-10.8, 10.8-11 (joined); 12-14
///
/// Rows 0 to 14 are compute, 15 and 16 tensor, 17 to 19 data.
inline TimelineSceneSnapshot slicedSceneForTests()
{
    auto graph = std::make_shared<Graph>();
    graph->name = "made-up";
    for (std::int32_t i = 0; i < 8; ++i) {
        Operator op;
        op.name = (i < 3 ? "forward_" : i < 6 ? "backward_" : "step_") + std::to_string(i);
        op.kind = OperatorKind::MatMul;
        op.direction = i < 3 ? Direction::Forward : i < 6 ? Direction::Backward : Direction::Optimizer;
        op.scope = ScopeId{0};
        if (i >= 3 && i < 6)
            op.mirror = OperatorId{i - 3};
        graph->operators.push_back(op);
    }
    const auto kernel = [](std::int32_t op, bool joined = false) {
        Instruction instruction;
        instruction.kind = InstructionKind::Kernel;
        instruction.op = OperatorId{op};
        instruction.joined = joined;
        return instruction;
    };
    const auto other = [](InstructionKind kind, std::int32_t op, std::optional<QueueKind> queue,
                           bool joined = false) {
        Instruction instruction;
        instruction.kind = kind;
        instruction.op = OperatorId{op};
        instruction.group = isCommunication(kind) ? 0 : -1;
        instruction.queue = queue;
        instruction.joined = joined;
        return instruction;
    };
    DeviceProgram program;
    program.segments = {
        {SegmentKind::Forward, StageId{0}, {kernel(0), kernel(1), kernel(2)}},
        {SegmentKind::Backward, StageId{0},
            {kernel(3), kernel(4), kernel(5), other(InstructionKind::AllReduce, 3, {})}},
        {SegmentKind::Reduce, StageId{0},
            {other(InstructionKind::AllReduce, 6, QueueKind::Data),
                other(InstructionKind::AllReduce, 6, QueueKind::Data, true),
                other(InstructionKind::Select, 6, {})}},
        {SegmentKind::Reduce, StageId{0}, {other(InstructionKind::AllReduce, 7, QueueKind::Data)}},
        {SegmentKind::Optimizer, StageId{0}, {kernel(6), kernel(7, true)}},
    };
    program.schedule = {{0, 0}, {1, 0}, {0, 1}, {1, 1, 0, 2}, {2, 0}, {1, 1, 2, -1}, {3, 0}, {4, 0}};
    auto plan = std::make_shared<ExecutionPlan>();
    plan->graph = graph;
    plan->microBatches = 2;
    plan->placement.assign(graph->operators.size(), {DeviceId{0}});
    plan->groups = {{DeviceId{0}, DeviceId{1}}};
    plan->devices.push_back(std::move(program));
    auto timeline = std::make_shared<Timeline>();
    SpanColumns &spans = timeline->spans;
    const auto add = [&](QueueKind queue, std::int32_t segment, std::int32_t instruction, std::int32_t batch,
                         std::int64_t start, std::int64_t end) {
        spans.device.push_back(0);
        spans.queue.push_back(queue);
        spans.segment.push_back(segment);
        spans.instruction.push_back(instruction);
        spans.microBatch.push_back(batch);
        spans.start.push_back(start);
        spans.duration.push_back(end - start);
    };
    for (std::int32_t block = 0; block < 3; ++block) {
        for (std::int32_t i = 0; i < 3; ++i)
            add(QueueKind::Compute, block % 2, i, block / 2, 3000 * block + 1000 * i,
                3000 * block + 1000 * (i + 1));
    }
    add(QueueKind::Compute, 1, 0, 1, 9000, 10'000);
    add(QueueKind::Compute, 1, 1, 1, 10'000, 11'000);
    add(QueueKind::Compute, 2, 2, 0, 11'000, 11'500);
    add(QueueKind::Compute, 1, 2, 1, 12'000, 13'000);
    add(QueueKind::Compute, 4, 0, 0, 14'000, 15'000);
    add(QueueKind::Compute, 4, 1, 0, 15'000, 16'000);
    add(QueueKind::Tensor, 1, 3, 0, 6000, 7000);
    add(QueueKind::Tensor, 1, 3, 1, 13'000, 14'000);
    add(QueueKind::Data, 2, 0, 0, 10'000, 10'800);
    add(QueueKind::Data, 2, 1, 0, 10'800, 11'000);
    add(QueueKind::Data, 3, 0, 0, 12'000, 14'000);
    timeline->deviceBegin = {0, spans.size()};
    timeline->step = Nanoseconds{16'000};
    MemoryCurve curve;
    curve.time.push_back(0);
    curve.bytes.push_back({});
    timeline->memory.push_back(std::move(curve));
    timeline->busy.push_back(Nanoseconds{14'500});
    timeline->exposedCommunication.push_back(Nanoseconds{1000});
    timeline->symmetryClass.push_back(0);
    Cluster cluster;
    cluster.name = "made-up";
    cluster.device.memory.value = 80.0 * (1 << 30);
    cluster.deviceCount = 1;
    return makeTimelineScene(timeline, plan, cluster, {});
}

/// A scene all of whose segments are of one kind.
inline TimelineSceneSnapshot sceneOfOneKind(SegmentKind kind)
{
    const TimelineSceneSnapshot scene = sceneForTests({.devices = 1, .microBatches = 1, .operators = 8});
    auto plan = std::make_shared<ExecutionPlan>(*scene->plan);
    for (DeviceProgram &program : plan->devices) {
        for (Segment &segment : program.segments.edit())
            segment.kind = kind;
    }
    return makeTimelineScene(scene->timeline, plan, scene->cluster, {});
}

} // namespace planloom
