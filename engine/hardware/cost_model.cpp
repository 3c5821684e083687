#include "engine/hardware/cost_model.h"

#include "engine/hardware/kernel_cost.h"

#include <algorithm>

namespace planloom {

CostModel costModelOf(const Cluster &cluster)
{
    return {
        [device = cluster.device](const KernelQuery &query) { return kernelSeconds(device, query); },
        [links = cluster.links](CollectiveKind kind, Bytes bytes, GroupShape shape) {
            return collectiveSeconds(links, kind, bytes, shape);
        },
        [device = cluster.device](Bytes bytes) { return copySeconds(device, bytes); },
        [device = cluster.device](const KernelQuery &query) { return leastKernelSeconds(device, query); },
    };
}

double reductionSeconds(
    const CostModel &costs, CollectiveKind kind, Bytes bytes, GroupShape shape, Combination combination)
{
    const double once = costs.collective(kind, bytes, shape);
    if (combination != Combination::LogSumExp)
        return once;
    return costs.collective(CollectiveKind::AllReduce, bytes, shape) + once;
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
