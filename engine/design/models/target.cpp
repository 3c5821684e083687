#include "engine/design/models/target.h"

#include "engine/hardware/cluster_json.h"
#include "engine/hardware/framework.h"

#include <algorithm>
#include <optional>

namespace planloom {

namespace {

bool isPath(const std::string &cluster)
{
    return cluster.find('/') != std::string::npos;
}

Result<Cluster> clusterOf(const TargetChoice &choice)
{
    const auto count = choice.deviceCount > 0 ? std::optional(choice.deviceCount) : std::nullopt;
    if (!choice.clusterJson.empty() && !isPath(choice.cluster))
        return clusterFromJson(choice.clusterJson, count);
    const auto profiles = clusterNames();
    if (count && std::find(profiles.begin(), profiles.end(), choice.cluster) != profiles.end())
        return clusterNamed(choice.cluster + ":" + std::to_string(*count));
    auto named = clusterNamed(choice.cluster);
    if (!named && named.error().code == ErrorCode::NotFound && !choice.clusterJson.empty())
        return clusterFromJson(choice.clusterJson, count); // the file is gone; what it held was kept
    return named;
}

} // namespace

PrecisionPreset usualPrecision(const Cluster &cluster)
{
    switch (cluster.links.architecture) {
    case LinkArchitecture::SharedMemory:
        return PrecisionPreset::Float32;
    case LinkArchitecture::Volta:
        return PrecisionPreset::Float16;
    default:
        return PrecisionPreset::BFloat16;
    }
}

Result<Target> resolve(const TargetChoice &choice)
{
    Target target;
    TargetChoice device = choice;
    const auto [cluster, framework] = splitFramework(choice.cluster);
    device.cluster = cluster;
    TRY(target.cluster, clusterOf(device));
    TRY(target.cluster, withFramework(std::move(target.cluster), framework));
    target.deviceCount = choice.deviceCount > 0 ? choice.deviceCount : target.cluster.deviceCount;
    if (target.deviceCount > target.cluster.deviceCount)
        return Error{ErrorCode::InvalidInput,
            "the cluster " + target.cluster.name + " has " + std::to_string(target.cluster.deviceCount)
                + " devices, asked for were " + std::to_string(target.deviceCount),
            "ask for fewer, or name a larger cluster", "--devices"};
    return target;
}

} // namespace planloom
