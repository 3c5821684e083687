#include "engine/hardware/cost_model.h"

#include <algorithm>

namespace planloom {

CostModel costModelOf(const Cluster &cluster)
{
    DeviceModel unlaunched = cluster.device;
    unlaunched.launchLatency.value = 0;
    const auto seconds = [](const DeviceModel &device, const KernelQuery &query) {
        return operatorSeconds(device, categoryOf(query.op.kind),
            workOf(query.op, query.inputs, query.outputs), query.computeType);
    };
    return {
        [device = cluster.device, seconds](const KernelQuery &query) { return seconds(device, query); },
        [links = cluster.links](CollectiveKind kind, Bytes bytes, GroupShape shape) {
            return collectiveSeconds(links, kind, bytes, shape);
        },
        [device = cluster.device](Bytes bytes) { return copySeconds(device, bytes); },
        [unlaunched, seconds](const KernelQuery &query) { return seconds(unlaunched, query); },
    };
}

DataType computeTypeOf(const std::vector<TensorType> &inputs, const std::vector<TensorType> &outputs)
{
    for (const auto *list : {&outputs, &inputs}) {
        const auto found = std::find_if(list->begin(), list->end(),
            [](const TensorType &type) { return isFloating(type.dataType) && !type.shape.empty(); });
        if (found != list->end())
            return found->dataType;
    }
    return DataType::Float32;
}

} // namespace planloom
