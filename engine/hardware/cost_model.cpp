#include "engine/hardware/cost_model.h"

#include "engine/hardware/kernel_cost.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

namespace planloom {

namespace {

/// The figures of a mixed cluster, ready to be asked for.
struct MixedFigures {
    std::vector<DeviceModel> devices{}; ///< By class.
    std::vector<Interconnect> links{}; ///< By set of classes.
};

CostModel mixedCosts(const Cluster &cluster)
{
    auto figures = std::make_shared<MixedFigures>();
    const std::size_t classes = cluster.otherClasses.size() + 1;
    for (std::size_t c = 0; c < classes; ++c)
        figures->devices.push_back(cluster.deviceOfClass(static_cast<std::int32_t>(c)));
    for (std::uint32_t set = 0; set < 1U << classes; ++set)
        figures->links.push_back(jointLinks(cluster, std::max(set, 1U)));
    const std::shared_ptr<const MixedFigures> all = std::move(figures);
    const auto deviceOf = [](const MixedFigures &of, std::int32_t c) -> const DeviceModel & {
        return of.devices[static_cast<std::size_t>(c)];
    };
    CostModel costs{
        [all, deviceOf](
            const KernelQuery &query) { return kernelSeconds(deviceOf(*all, query.deviceClass), query); },
        [all](CollectiveKind kind, Bytes bytes, GroupShape shape) {
            return collectiveSeconds(all->links[shape.classes], kind, bytes, shape);
        },
        [all, deviceOf](Bytes bytes, std::int32_t deviceClass) {
            return copySeconds(deviceOf(*all, deviceClass), bytes);
        },
        [all, deviceOf](const KernelQuery &query) {
            return leastKernelSeconds(deviceOf(*all, query.deviceClass), query);
        },
        [all](CollectiveKind kind, Bytes bytes, GroupShape shape) {
            return collectiveLoad(all->links[shape.classes], kind, bytes, shape);
        },
        {},
        [all, deviceOf](Bytes bytes, std::int32_t deviceClass) {
            return hostCopySeconds(deviceOf(*all, deviceClass), bytes);
        },
    };
    // `cluster` may be one unit of a larger one.
    const std::int32_t devices = cluster.deviceCount * cluster.units.count;
    for (std::int32_t d = 0; d < devices; ++d)
        costs.deviceClasses.push_back(cluster.classAt(d));
    return costs;
}

} // namespace

CostModel costModelOf(const Cluster &cluster)
{
    if (!cluster.otherClasses.empty())
        return mixedCosts(cluster);
    return {
        [device = cluster.device](const KernelQuery &query) { return kernelSeconds(device, query); },
        [links = cluster.links](CollectiveKind kind, Bytes bytes, GroupShape shape) {
            return collectiveSeconds(links, kind, bytes, shape);
        },
        [device = cluster.device](Bytes bytes, std::int32_t) { return copySeconds(device, bytes); },
        [device = cluster.device](const KernelQuery &query) { return leastKernelSeconds(device, query); },
        [links = cluster.links](CollectiveKind kind, Bytes bytes, GroupShape shape) {
            return collectiveLoad(links, kind, bytes, shape);
        },
        {},
        [device = cluster.device](Bytes bytes, std::int32_t) { return hostCopySeconds(device, bytes); },
    };
}

namespace {

/// Of `of(class)` for each class in the set.
template<typename Of> double leastOver(std::uint32_t classes, const Of &of)
{
    double least = std::numeric_limits<double>::infinity();
    for (std::int32_t c = 0; classes >> c != 0; ++c)
        if ((classes >> c & 1) != 0)
            least = std::min(least, of(c));
    return least;
}

} // namespace

CostModel fastestOf(const CostModel &costs, std::uint32_t classes)
{
    const auto kernel = [classes](auto seconds) {
        return [classes, seconds = std::move(seconds)](const KernelQuery &query) {
            KernelQuery each = query;
            return leastOver(classes, [&](std::int32_t c) {
                each.deviceClass = c;
                return seconds(each);
            });
        };
    };
    const auto copy = [classes](auto seconds) {
        return [classes, seconds = std::move(seconds)](Bytes bytes, std::int32_t) {
            return leastOver(classes, [&](std::int32_t c) { return seconds(bytes, c); });
        };
    };
    CostModel least = costs;
    least.kernel = kernel(costs.kernel);
    least.collective = [classes, seconds = costs.collective](
                           CollectiveKind kind, Bytes bytes, GroupShape shape) {
        return leastOver(classes, [&](std::int32_t c) {
            shape.classes = std::uint32_t{1} << c;
            return seconds(kind, bytes, shape);
        });
    };
    least.copy = copy(costs.copy);
    if (costs.leastKernel)
        least.leastKernel = kernel(costs.leastKernel);
    if (costs.hostCopy)
        least.hostCopy = copy(costs.hostCopy);
    return least;
}

double reductionSeconds(
    const CostModel &costs, CollectiveKind kind, Bytes bytes, GroupShape shape, Combination combination)
{
    const double once = costs.collective(kind, bytes, shape);
    if (combination != Combination::LogSumExp)
        return once;
    return costs.collective(CollectiveKind::AllReduce, bytes, shape) + once;
}

double hostCopySeconds(const CostModel &costs, Bytes bytes, std::int32_t deviceClass)
{
    return costs.hostCopy ? costs.hostCopy(bytes, deviceClass) : costs.copy(bytes, deviceClass);
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
