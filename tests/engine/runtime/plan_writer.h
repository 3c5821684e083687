#pragma once

// Execution plans written by hand, for the tests of this folder.

#include "engine/frontend/zoo/graph_builder.h"
#include "engine/runtime/processes/run_folder.h"
#include "engine/runtime/run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace planloom {

inline TensorData floats(const Shape &shape, const std::vector<float> &values)
{
    return *floatData(shape, values);
}

inline std::vector<float> valuesOf(const TensorData &data)
{
    std::vector<float> values(data.bytes.size() / sizeof(float));
    std::memcpy(values.data(), data.bytes.data(), data.bytes.size());
    return values;
}

inline std::vector<float> drawn(std::int64_t count, std::uint32_t seed)
{
    std::mt19937 random(seed);
    std::vector<float> values;
    for (std::int64_t i = 0; i < count; ++i)
        values.push_back(static_cast<float>(static_cast<int>(random() % 17) - 8) / 4.0F);
    return values;
}

inline IndexMask box(std::vector<Range> ranges)
{
    return {std::move(ranges)};
}

/// Writes an execution plan by hand.
class PlanWriter
{
public:
    PlanWriter(Graph graph, std::int32_t devices, std::int32_t microBatches = 1)
    {
        plan.graph = std::make_shared<const Graph>(std::move(graph));
        plan.batch = analyseBatch(*plan.graph);
        plan.microBatches = microBatches;
        plan.partitions.resize(plan.graph->operators.size());
        plan.placement.resize(plan.graph->operators.size(), {DeviceId{0}});
        plan.devices.resize(static_cast<std::size_t>(devices));
        for (DeviceProgram &device : plan.devices) {
            device.segments.push_back({.stage = StageId{0}});
            for (std::int32_t m = 0; m < microBatches; ++m)
                device.schedule.push_back({0, m});
        }
    }

    TensorId tensor(const std::string &name) const
    {
        for (std::size_t i = 0; i < plan.graph->tensors.size(); ++i)
            if (plan.graph->tensors[i].name == name)
                return {static_cast<std::int32_t>(i)};
        ADD_FAILURE() << "no tensor " << name;
        return {};
    }

    IndexMask whole(TensorId id) const { return wholeMask(plan.graph->at(id).type.shape); }

    /// A buffer of micro-batch 0.
    std::int32_t buffer(
        std::size_t device, TensorId id, std::optional<IndexMask> mask = {}, BufferInfo base = {})
    {
        base.tensor = id;
        base.dataType = plan.graph->at(id).type.dataType;
        base.index = mask ? *mask : whole(id);
        plan.devices[device].buffers.push_back(base);
        return static_cast<std::int32_t>(plan.devices[device].buffers.size()) - 1;
    }

    void setup(std::size_t device, std::int32_t out)
    {
        plan.devices[device].setup.push_back({.kind = InstructionKind::Load, .outputs = {out}});
    }

    Instruction &emit(std::size_t device, Instruction instruction)
    {
        plan.devices[device].segments.edit()[0].instructions.push_back(std::move(instruction));
        return plan.devices[device].segments.edit()[0].instructions.back();
    }

    ExecutionPlan plan{};
};

inline const BufferInfo kPersistent{.perMicroBatch = false, .persistent = true, .memory = MemoryKind::Weight};

/// loss = sum(x w), y = x w. x [4 4], w [4 2].
inline Graph productGraph()
{
    GraphBuilder builder;
    const TensorId x = builder.input("x", {DataType::Float32, {4, 4}});
    const TensorId w = builder.weight("w", {4, 2}, drawn(8, 1));
    const TensorId y = builder.one(OperatorKind::MatMul, {x, w}, {}, "product");
    const TensorId loss = builder.one(OperatorKind::ReduceSum, {y},
        attributesOf({{"axes", std::vector<std::int64_t>{0, 1}}, {"keepdims", std::int64_t{0}}}), "total");
    auto graph = builder.finish({y}, loss);
    EXPECT_TRUE(graph);
    return *std::move(graph);
}

inline std::vector<float> product(const std::vector<float> &x, const std::vector<float> &w)
{
    std::vector<float> y(8);
    for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 0; j < 2; ++j)
            for (std::size_t k = 0; k < 4; ++k)
                y[i * 2 + j] += x[i * 4 + k] * w[k * 2 + j];
    return y;
}

inline float total(const std::vector<float> &values)
{
    float sum = 0;
    for (const float value : values)
        sum += value;
    return sum;
}

/// One device: load, product, sum, store.
inline PlanWriter oneDevice(std::int32_t microBatches)
{
    PlanWriter writer{productGraph(), 1, microBatches};
    const TensorId x = writer.tensor("x");
    const OperatorId matmul{0};
    const OperatorId sum{1};
    const TensorId y = writer.plan.graph->at(matmul).outputs[0];
    const std::int64_t rows = 4 / microBatches;
    const auto bx = writer.buffer(0, x, box({{0, rows}, {0, 4}}));
    const auto bw = writer.buffer(0, writer.tensor("w"), {}, kPersistent);
    const auto by = writer.buffer(0, y, box({{0, rows}, {0, 2}}));
    const auto bl = writer.buffer(0, writer.plan.graph->loss);
    writer.setup(0, bw);
    writer.emit(0, {.kind = InstructionKind::Load, .outputs = {bx}});
    writer.emit(0, {.op = matmul, .inputs = {bx, bw}, .outputs = {by}, .deaths = {bx}});
    writer.emit(0, {.kind = InstructionKind::Store, .op = matmul, .inputs = {by}});
    writer.emit(0, {.op = sum, .inputs = {by}, .outputs = {bl}, .deaths = {by}});
    writer.emit(0, {.kind = InstructionKind::Store, .op = sum, .inputs = {bl}, .deaths = {bl}});
    return writer;
}

inline RunRequest requestOf(const PlanWriter &writer)
{
    RunRequest request;
    request.plan = writer.plan;
    return request;
}

/// Device 1 waits for a message that nobody sends.
inline RunRequest waitingForEver()
{
    PlanWriter writer{productGraph(), 2};
    const auto never = writer.buffer(1, writer.tensor("x"));
    writer.emit(1, {.kind = InstructionKind::Recv, .op = {0}, .peer = {0}, .tag = 1, .outputs = {never}});
    return requestOf(writer);
}

} // namespace planloom
