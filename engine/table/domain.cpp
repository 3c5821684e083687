#include "engine/table/domain.h"

#include <algorithm>
#include <unordered_set>

namespace planloom {

Domain domainOnMesh(const std::vector<MeshAxis> &mesh, const std::vector<AxisCoordinate> &fixed)
{
    Domain domain;
    domain.onMesh = true;
    std::vector<std::int32_t> numbers{0}; // of devices, as far as the axes so far decide
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

Domain everywhere(const std::vector<MeshAxis> &mesh, std::int32_t deviceCount)
{
    if (!mesh.empty())
        return domainOnMesh(mesh, {});
    std::vector<DeviceId> all;
    for (std::int32_t d = 0; d < deviceCount; ++d)
        all.push_back({d});
    return domainOfList(std::move(all));
}

bool canDealOut(std::int64_t parts, std::int64_t devices)
{
    return devices > 0 && parts > 0 && (parts % devices == 0 || devices % parts == 0);
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

std::optional<std::vector<AxisCoordinate>> partOfMesh(
    const std::vector<MeshAxis> &mesh, const std::vector<DeviceId> &devices)
{
    if (mesh.empty() || devices.empty())
        return std::nullopt;
    // Coordinates that all devices share are fixed; then these must be all devices there.
    const auto common = coordinatesOf(mesh, devices.front());
    if (!common)
        return std::nullopt;
    std::vector<char> shared(mesh.size(), 1);
    for (const DeviceId device : devices) {
        const auto coordinates = coordinatesOf(mesh, device);
        if (!coordinates)
            return std::nullopt;
        for (std::size_t i = 0; i < mesh.size(); ++i)
            shared[i] &= (*coordinates)[i] == (*common)[i];
    }
    std::vector<AxisCoordinate> fixed;
    for (std::size_t i = 0; i < mesh.size(); ++i) {
        if (shared[i] && mesh[i].size > 1)
            fixed.push_back({mesh[i].name, (*common)[i]});
    }
    if (domainOnMesh(mesh, fixed).devices != devices)
        return std::nullopt;
    return fixed;
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
