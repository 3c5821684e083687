#include "engine/simulate/shared_links.h"

#include <map>

namespace planloom {

namespace {

SharedLevel sharedLevel(const Cluster &unit, std::size_t devices, std::size_t level, std::int32_t size)
{
    SharedLevel shared{.level = level};
    std::map<std::int32_t, std::int32_t> linkAt; // by place in the cluster
    for (std::size_t d = 0; d < devices; ++d) {
        const std::int32_t place =
            unit.units.deviceOf(0, DeviceId{static_cast<std::int32_t>(d)}).index / size;
        shared.linkOf.push_back(
            linkAt.emplace(place, static_cast<std::int32_t>(linkAt.size())).first->second);
    }
    shared.users.resize(linkAt.size());
    for (std::int32_t u = 0; u < unit.units.count; ++u)
        for (std::size_t d = 0; d < devices; ++d) {
            const auto local = static_cast<std::int32_t>(d);
            const auto found = linkAt.find(unit.units.deviceOf(u, DeviceId{local}).index / size);
            if (found != linkAt.end())
                shared.users[static_cast<std::size_t>(found->second)].push_back(local);
        }
    return shared;
}

} // namespace

std::vector<SharedLevel> sharedLevels(const Cluster &unit, std::size_t devices)
{
    const Interconnect &links = unit.links;
    std::vector<SharedLevel> levels;
    if (links.sharesPorts())
        levels.push_back(
            sharedLevel(unit, devices, kNetworkLevel, links.devicesPerNode / links.portsPerNode()));
    for (std::size_t l = 0; l < links.outer.size(); ++l)
        levels.push_back(
            sharedLevel(unit, devices, kOuterLevel + l, links.devicesPerNode * nodesOf(links, l)));
    return levels;
}

} // namespace planloom
