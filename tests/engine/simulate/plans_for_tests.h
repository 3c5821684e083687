#pragma once

#include "engine/simulate/simulate.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace planloom::test {

enum class Order { GPipe, OneFOneB };

/// A pipeline of equal stages over replicas and shards, written by hand: device (stage, replica, shard) is
/// (stage * replicas + replica) * shards + shard.
struct PipelineShape {
    std::int32_t stages = 1;
    std::int32_t microBatches = 1;
    Order order = Order::GPipe;
    std::int32_t replicas = 1; ///< Gradients are summed over them once per step.
    std::int32_t shards = 1; ///< Activations are summed over them in every block.
    std::int32_t kernels = 1; ///< In each block.
    bool stores = false; ///< The first device of the last stage stores what the stage makes.
    bool optimizer = false; ///< Gradients, their sum over replicas, and an update of the weight.
    bool oneWay = false; ///< What is sent back waits in one queue with what is sent on, as in older files.
    std::int64_t width = 256; ///< Elements of an activation of one micro-batch; also of a stage's weight.
};

/// When each block runs if transfers take no time: [stage][micro-batch] = start, forward 1 long, backward 2.
struct BlockTimes {
    std::vector<std::vector<std::int64_t>> forward, backward;
};

inline std::vector<std::pair<bool, std::int32_t>> blockOrder(const PipelineShape &shape, std::int32_t stage)
{
    std::vector<std::pair<bool, std::int32_t>> blocks; // (backward, micro-batch)
    const std::int32_t m = shape.microBatches;
    const std::int32_t warm = shape.order == Order::GPipe ? m : std::min(shape.stages - stage, m);
    for (std::int32_t i = 0; i < warm; ++i)
        blocks.emplace_back(false, i);
    for (std::int32_t i = 0; i < m; ++i) {
        blocks.emplace_back(true, i);
        if (warm + i < m)
            blocks.emplace_back(false, warm + i);
    }
    return blocks;
}

inline BlockTimes blockTimes(const PipelineShape &shape)
{
    const auto p = static_cast<std::size_t>(shape.stages);
    const auto m = static_cast<std::size_t>(shape.microBatches);
    BlockTimes times{{p, std::vector<std::int64_t>(m, -1)}, {p, std::vector<std::int64_t>(m, -1)}};
    std::vector<std::size_t> next(p, 0);
    std::vector<std::int64_t> free(p, 0);
    for (bool progress = true; progress;) {
        progress = false;
        for (std::size_t s = 0; s < p; ++s) {
            const auto order = blockOrder(shape, static_cast<std::int32_t>(s));
            while (next[s] < order.size()) {
                const auto [backward, i] = order[next[s]];
                const auto mb = static_cast<std::size_t>(i);
                std::int64_t start = free[s];
                if (!backward && s > 0) {
                    if (times.forward[s - 1][mb] < 0)
                        break;
                    start = std::max(start, times.forward[s - 1][mb] + 1);
                }
                if (backward && s + 1 < p) {
                    if (times.backward[s + 1][mb] < 0)
                        break;
                    start = std::max(start, times.backward[s + 1][mb] + 2);
                }
                (backward ? times.backward : times.forward)[s][mb] = start;
                free[s] = start + (backward ? 2 : 1);
                ++next[s];
                progress = true;
            }
        }
    }
    return times;
}

/// Adds a float32 tensor.
inline TensorId addTensor(Graph &graph, std::string name, std::int64_t width, TensorRole role)
{
    graph.tensors.push_back({.name = std::move(name), .type = {DataType::Float32, {width}}, .role = role});
    return TensorId{static_cast<std::int32_t>(graph.tensors.size()) - 1};
}

inline OperatorId addOperator(Graph &graph, std::string name, Direction direction,
    std::vector<TensorId> inputs, std::vector<TensorId> outputs)
{
    Operator op;
    op.name = std::move(name);
    op.kind = OperatorKind::Unknown;
    op.direction = direction;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    graph.operators.push_back(std::move(op));
    return OperatorId{static_cast<std::int32_t>(graph.operators.size()) - 1};
}

inline BufferInfo bufferOf(const Graph &graph, TensorId tensor, MemoryKind memory)
{
    BufferInfo buffer;
    buffer.tensor = tensor;
    buffer.dataType = graph.at(tensor).type.dataType;
    buffer.index = wholeMask(graph.at(tensor).type.shape);
    buffer.memory = memory;
    return buffer;
}

/// Builds the plan of `shape`. Transfers stand in the order of one global order of time, as lowering would
/// put them.
inline ExecutionPlan pipelinePlan(const PipelineShape &shape)
{
    const std::int32_t p = shape.stages;
    Graph graph;
    std::vector<TensorId> activations, gradients, weights, weightGradients, newWeights;
    for (std::int32_t s = 0; s <= p; ++s) {
        activations.push_back(addTensor(graph, "x" + std::to_string(s), shape.width,
            s == 0 ? TensorRole::Input : TensorRole::Activation));
        gradients.push_back(addTensor(graph, "dx" + std::to_string(s), shape.width, TensorRole::Gradient));
    }
    for (std::int32_t s = 0; s < p; ++s) {
        weights.push_back(addTensor(graph, "w" + std::to_string(s), shape.width, TensorRole::Weight));
        weightGradients.push_back(
            addTensor(graph, "dw" + std::to_string(s), shape.width, TensorRole::Gradient));
        newWeights.push_back(
            addTensor(graph, "w" + std::to_string(s) + "'", shape.width, TensorRole::Weight));
    }
    std::vector<std::vector<OperatorId>> forward, backward;
    std::vector<OperatorId> updates;
    for (std::int32_t s = 0; s < p; ++s) {
        const auto i = static_cast<std::size_t>(s);
        forward.emplace_back();
        backward.emplace_back();
        for (std::int32_t k = 0; k < shape.kernels; ++k) {
            const std::string name = std::to_string(s) + "." + std::to_string(k);
            forward.back().push_back(addOperator(
                graph, "f" + name, Direction::Forward, {activations[i], weights[i]}, {activations[i + 1]}));
            backward.back().push_back(addOperator(graph, "b" + name, Direction::Backward,
                {gradients[i + 1], activations[i]}, {gradients[i], weightGradients[i]}));
        }
        updates.push_back(addOperator(graph, "u" + std::to_string(s), Direction::Optimizer,
            {weights[i], weightGradients[i]}, {newWeights[i]}));
    }

    ExecutionPlan plan;
    plan.microBatches = shape.microBatches;
    plan.stageCount = p;
    const std::int32_t perStage = shape.replicas * shape.shards;
    plan.devices.resize(static_cast<std::size_t>(p * perStage));
    const auto deviceAt = [&](std::int32_t s, std::int32_t r, std::int32_t t) {
        return DeviceId{(s * shape.replicas + r) * shape.shards + t};
    };
    const BlockTimes times = blockTimes(shape);
    for (std::int32_t s = 0; s < p; ++s) {
        for (std::int32_t r = 0; r < shape.replicas; ++r) {
            plan.groups.emplace_back();
            for (std::int32_t t = 0; t < shape.shards; ++t)
                plan.groups.back().push_back(deviceAt(s, r, t));
        }
    }
    const auto firstReplicaGroup = static_cast<std::int32_t>(plan.groups.size());
    for (std::int32_t s = 0; s < p; ++s) {
        for (std::int32_t t = 0; t < shape.shards; ++t) {
            plan.groups.emplace_back();
            for (std::int32_t r = 0; r < shape.replicas; ++r)
                plan.groups.back().push_back(deviceAt(s, r, t));
        }
    }

    for (std::int32_t s = 0; s < p; ++s) {
        for (std::int32_t r = 0; r < shape.replicas; ++r) {
            for (std::int32_t t = 0; t < shape.shards; ++t) {
                const auto i = static_cast<std::size_t>(s);
                const std::int32_t device = deviceAt(s, r, t).index;
                DeviceProgram &program = plan.devices[static_cast<std::size_t>(device)];
                const auto addBuffer = [&](TensorId tensor, MemoryKind memory) {
                    program.buffers.push_back(bufferOf(graph, tensor, memory));
                    return static_cast<std::int32_t>(program.buffers.size()) - 1;
                };
                const std::int32_t in =
                    addBuffer(activations[i], s == 0 ? MemoryKind::Input : MemoryKind::Activation);
                const std::int32_t out = addBuffer(activations[i + 1], MemoryKind::Activation);
                const std::int32_t outGradient = addBuffer(gradients[i + 1], MemoryKind::Activation);
                const std::int32_t inGradient = addBuffer(gradients[i], MemoryKind::Activation);
                const std::int32_t weight = addBuffer(weights[i], MemoryKind::Weight);
                program.buffers.edit().back().persistent = true;
                program.buffers.edit().back().perMicroBatch = false;
                const std::int32_t partial = addBuffer(weightGradients[i], MemoryKind::Gradient);
                const std::int32_t sum = addBuffer(weightGradients[i], MemoryKind::Gradient);
                program.buffers.edit().back().perMicroBatch = false;
                const std::int32_t total = addBuffer(weightGradients[i], MemoryKind::Communication);
                program.buffers.edit().back().perMicroBatch = false;
                const std::int32_t fresh = addBuffer(newWeights[i], MemoryKind::Weight);
                program.buffers.edit().back().perMicroBatch = false;

                const auto group = s * shape.replicas + r;
                const auto addSegment = [&](SegmentKind kind) -> Segment & {
                    program.segments.push_back({kind, StageId{s}, {}});
                    return program.segments.edit().back();
                };
                const auto sumOverShards = [&](Segment &segment, std::int32_t buffer) {
                    if (shape.shards > 1)
                        segment.instructions.push_back({.kind = InstructionKind::AllReduce,
                            .group = group,
                            .inputs = {buffer},
                            .outputs = {buffer}});
                };
                Segment &f = addSegment(SegmentKind::Forward);
                if (s == 0)
                    f.instructions.push_back({.kind = InstructionKind::Load, .outputs = {in}});
                for (const OperatorId op : forward[i])
                    f.instructions.push_back({.kind = InstructionKind::Kernel,
                        .op = op,
                        .part = t,
                        .inputs = {in, weight},
                        .outputs = {out}});
                sumOverShards(f, out);
                if (s + 1 == p) { // The loss' gradient is made where the output is.
                    if (shape.stores && r == 0 && t == 0)
                        f.instructions.push_back({.kind = InstructionKind::Store, .inputs = {out}});
                    f.instructions.back().deaths = {out};
                    f.instructions.push_back({.kind = InstructionKind::Load, .outputs = {outGradient}});
                }
                Segment &b = addSegment(SegmentKind::Backward);
                for (const OperatorId op : backward[i])
                    b.instructions.push_back({.kind = InstructionKind::Kernel,
                        .op = op,
                        .part = t,
                        .inputs = {outGradient, in},
                        .outputs = {inGradient, shape.optimizer ? partial : -1}});
                b.instructions.back().deaths = {in, outGradient};
                sumOverShards(b, inGradient);
                if (s == 0)
                    b.instructions.back().deaths.push_back(inGradient);
                if (shape.optimizer)
                    b.instructions.push_back({.kind = InstructionKind::Accumulate,
                        .inputs = {partial},
                        .outputs = {sum},
                        .deaths = {partial}});

                // (time, transfers before blocks, tag) is the same order on all devices.
                std::vector<std::tuple<std::int64_t, int, std::int32_t, ScheduleEntry>> entries;
                const auto addTransfer = [&](bool sends, std::int32_t buffer, std::int32_t peer,
                                             bool backwards) {
                    const std::int32_t lower = backwards == sends ? peer : device;
                    const std::int32_t tag = 2 * lower + (backwards ? 1 : 0);
                    Segment &segment = addSegment(SegmentKind::Transfer);
                    segment.instructions.push_back(
                        {.kind = sends ? InstructionKind::Send : InstructionKind::Recv,
                            .peer = DeviceId{peer},
                            .tag = tag,
                            .queue = backwards && !shape.oneWay ? std::optional(QueueKind::PipelineBack)
                                                                : std::nullopt});
                    auto &instruction = segment.instructions.back();
                    (sends ? instruction.inputs : instruction.outputs) = {buffer};
                    if (sends)
                        instruction.deaths = {buffer};
                    const std::int32_t producer = sends ? s : backwards ? s + 1 : s - 1;
                    for (std::int32_t mb = 0; mb < shape.microBatches; ++mb) {
                        const auto q = static_cast<std::size_t>(producer);
                        const std::int64_t at = backwards
                            ? times.backward[q][static_cast<std::size_t>(mb)] + 2
                            : times.forward[q][static_cast<std::size_t>(mb)] + 1;
                        entries.emplace_back(at, 0, tag,
                            ScheduleEntry{static_cast<std::int32_t>(program.segments.size()) - 1, mb});
                    }
                };
                for (std::int32_t mb = 0; mb < shape.microBatches; ++mb) {
                    entries.emplace_back(
                        times.forward[i][static_cast<std::size_t>(mb)], 1, 0, ScheduleEntry{0, mb});
                    entries.emplace_back(
                        times.backward[i][static_cast<std::size_t>(mb)], 1, 0, ScheduleEntry{1, mb});
                }
                if (s > 0) {
                    addTransfer(false, in, deviceAt(s - 1, r, t).index, false);
                    addTransfer(true, inGradient, deviceAt(s - 1, r, t).index, true);
                }
                if (s + 1 < p) {
                    addTransfer(true, out, deviceAt(s + 1, r, t).index, false);
                    addTransfer(false, outGradient, deviceAt(s + 1, r, t).index, true);
                }
                if (shape.optimizer) {
                    const auto last = static_cast<std::int32_t>(program.segments.size());
                    Segment &reduce = addSegment(SegmentKind::Reduce);
                    if (shape.replicas > 1)
                        reduce.instructions.push_back({.kind = InstructionKind::AllReduce,
                            .group = firstReplicaGroup + s * shape.shards + t,
                            .inputs = {sum},
                            .outputs = {total},
                            .deaths = {sum}});
                    const std::int32_t gradient = shape.replicas > 1 ? total : sum;
                    Segment &optimizer = addSegment(SegmentKind::Optimizer);
                    optimizer.instructions.push_back({.kind = InstructionKind::Kernel,
                        .op = updates[i],
                        .inputs = {weight, gradient},
                        .outputs = {fresh},
                        .deaths = {gradient}});
                    optimizer.instructions.push_back({.kind = InstructionKind::Update,
                        .op = updates[i],
                        .inputs = {fresh},
                        .outputs = {weight},
                        .deaths = {fresh}});
                    const std::int64_t never = std::numeric_limits<std::int64_t>::max();
                    entries.emplace_back(never, 0, 0, ScheduleEntry{last, 0});
                    entries.emplace_back(never, 1, 0, ScheduleEntry{last + 1, 0});
                }
                std::stable_sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) {
                    return std::tie(std::get<0>(a), std::get<1>(a), std::get<2>(a))
                        < std::tie(std::get<0>(b), std::get<1>(b), std::get<2>(b));
                });
                for (const auto &entry : entries)
                    program.schedule.push_back(std::get<3>(entry));
            }
        }
    }
    plan.graph = std::make_shared<const Graph>(std::move(graph));
    return plan;
}

/// Forward kernels take 1000 ns, backward ones 2000; everything else takes no time.
inline CostModel unitCosts()
{
    return {
        [](const KernelQuery &query) {
            const Direction direction = query.op.direction;
            return direction == Direction::Forward ? 1e-6 : direction == Direction::Backward ? 2e-6 : 0;
        },
        [](CollectiveKind, Bytes, GroupShape) { return 0.0; },
        [](Bytes, std::int32_t) { return 0.0; },
    };
}

inline Cluster clusterOf(const ExecutionPlan &plan, const char *profile = "dgx-a100")
{
    auto cluster = clusterNamed(std::string(profile) + ":" + std::to_string(plan.devices.size()));
    return *cluster;
}

} // namespace planloom::test
