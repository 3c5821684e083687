#include "engine/runtime/devices/prepared_kernel.h"

#include <utility>
#include <vector>

namespace planloom {

PreparedKernel prepareKernel(const ExecutionPlan &plan, const DeviceProgram &program,
    const Instruction &instruction, float gradientFactor)
{
    PreparedKernel prepared;
    const Graph &graph = *plan.graph;
    const auto index = static_cast<std::size_t>(instruction.op.index);
    const Operator &op = graph.at(instruction.op);
    KernelCall &call = prepared.call;
    call.op = &op;
    const Operator &forward =
        op.direction == Direction::Backward && op.mirror.valid() ? graph.at(op.mirror) : op;
    if (plan.microBatches > 1 && op.attributes.has("count") && !forward.outputs.empty()
        && forward.outputs[0].valid() && plan.batch.operatorDimension[index] >= 0
        && plan.batch.tensorRole[static_cast<std::size_t>(forward.outputs[0].index)] == BatchRole::Local) {
        // Each micro-batch has statistics of its own: its mean divides by its own number of elements.
        prepared.adapted = std::make_unique<Operator>(op);
        prepared.adapted->attributes.set("count", op.attributes.integer("count") / plan.microBatches);
        call.op = prepared.adapted.get();
    }
    const bool once = index < plan.batch.oncePerStep.size() && plan.batch.oncePerStep[index];
    std::vector<Range> outer;
    if (!once && plan.microBatches > 1) {
        outer = microBatchRanges(plan.batch, graph, instruction.op, 0, plan.microBatches);
        const std::int32_t identifier = plan.batch.operatorDimension[index];
        if (identifier >= 0) {
            prepared.batchIdentifier = identifier;
            prepared.batchShift = outer[static_cast<std::size_t>(identifier)].size();
        }
    }
    const PartBox box = partBox(op, plan.partitions[index], instruction.part, outer);
    call.ranges = box.ranges;
    call.value = box.value;
    prepared.isFirstReplica = box.replica == 0;
    KernelRounding rounding{.compute = arithmeticOf(graph, op, precisionOf(plan, instruction.op)),
        .gradientFactor = op.direction == Direction::Optimizer ? gradientFactor : 1.0f};
    const auto add = [&](std::int32_t buffer, std::vector<Buffer> &buffers, std::vector<DataType> &types) {
        if (buffer < 0) {
            buffers.emplace_back();
            types.push_back(Buffer{}.dataType);
            return;
        }
        const BufferInfo &info = program.buffers[static_cast<std::size_t>(buffer)];
        const TensorType &type = graph.at(info.tensor).type;
        buffers.push_back({nullptr, computedAs(type.dataType), shapeOf(info.index), info.index, type.shape});
        types.push_back(info.dataType);
    };
    for (const std::int32_t buffer : instruction.inputs)
        add(buffer, call.inputs, rounding.inputs);
    for (const std::int32_t buffer : instruction.outputs)
        add(buffer, call.outputs, rounding.outputs);
    prepared.rounding = roundingOf(call, std::move(rounding));
    return prepared;
}

} // namespace planloom
