#pragma once

#include "widgets/scene/timeline_scene.h"

#include <memory>
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

/// A scene all of whose segments are of one kind.
inline TimelineSceneSnapshot sceneOfOneKind(SegmentKind kind)
{
    const TimelineSceneSnapshot scene = sceneForTests({.devices = 1, .microBatches = 1, .operators = 8});
    auto plan = std::make_shared<ExecutionPlan>(*scene->plan);
    for (DeviceProgram &program : plan->devices) {
        for (Segment &segment : program.segments)
            segment.kind = kind;
    }
    return makeTimelineScene(scene->timeline, plan, scene->cluster, {});
}

} // namespace planloom
