#include "engine/plan/domain.h"

#include <algorithm>
#include <unordered_set>

namespace planloom {

Domain domainOnMesh(const std::vector<MeshAxis> &mesh, const std::vector<AxisCoordinate> &fixed)
{
    Domain domain;
    domain.onMesh = true;
    std::vector<std::int32_t> numbers {0}; // of devices, as far as the axes so far decide
    for (const MeshAxis &axis : mesh) {
        const auto at = std::find_if(
            fixed.begin(), fixed.end(), [&](const AxisCoordinate &c) { return c.axis == axis.name; });
        std::vector<std::int32_t> next;
        for (const std::int32_t number : numbers) {
            if (at != fixed.end()) {
                next.push_back(number * axis.size + at->index);
                continue;
            }
            for (std::int32_t i = 0; i < axis.size; ++i)
                next.push_back(number * axis.size + i);
        }
        numbers = std::move(next);
        if (at != fixed.end())
            domain.fixed.push_back(*at);
        else if (axis.size > 1)
            domain.axes.push_back(axis);
    }
    for (const std::int32_t number : numbers)
        domain.devices.push_back({number});
    return domain;
}

Domain domainOfList(std::vector<DeviceId> devices)
{
    Domain domain;
    domain.devices = std::move(devices);
    return domain;
}

std::optional<std::vector<std::int32_t>> coordinatesOf(const std::vector<MeshAxis> &mesh, DeviceId device)
{
    std::vector<std::int32_t> coordinates(mesh.size());
    std::int32_t rest = device.index;
    for (std::size_t i = mesh.size(); i-- > 0;) {
        coordinates[i] = rest % mesh[i].size;
        rest /= mesh[i].size;
    }
    if (rest != 0)
        return std::nullopt;
    return coordinates;
}

std::vector<DeviceId> distinct(const std::vector<DeviceId> &devices)
{
    std::vector<DeviceId> result;
    std::unordered_set<DeviceId> seen;
    for (const DeviceId device : devices) {
        if (seen.insert(device).second)
            result.push_back(device);
    }
    return result;
}

std::vector<DeviceId> repeated(const std::vector<DeviceId> &devices, std::int32_t times)
{
    std::vector<DeviceId> result;
    result.reserve(devices.size() * static_cast<std::size_t>(times));
    for (const DeviceId device : devices)
        result.insert(result.end(), static_cast<std::size_t>(times), device);
    return result;
}

} // namespace planloom
