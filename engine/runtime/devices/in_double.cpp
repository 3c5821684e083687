#include "engine/runtime/devices/in_double.h"

#include <memory>
#include <utility>

namespace planloom {

ExecutionPlan inFloat32(ExecutionPlan plan)
{
    plan.precisions.clear();
    return plan;
}

ExecutionPlan inDouble(const ExecutionPlan &plan)
{
    ExecutionPlan wide = inFloat32(plan);
    Graph graph = *plan.graph;
    for (Tensor &tensor : graph.tensors) {
        if (!isFloating(tensor.type.dataType))
            continue;
        tensor.type.dataType = DataType::Float64;
        tensor.data = nullptr;
        tensor.external.reset();
    }
    wide.graph = std::make_shared<const Graph>(std::move(graph));
    for (DeviceProgram &device : wide.devices)
        for (BufferInfo &buffer : device.buffers.edit())
            if (isFloating(buffer.dataType))
                buffer.dataType = DataType::Float64;
    return wide;
}

} // namespace planloom
