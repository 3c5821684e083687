#pragma once

#include "engine/base/ids.h"
#include "engine/table/table.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// The devices an operator's parts are dealt out to: a part of the mesh, or a list.
struct Domain {
    bool onMesh = false;
    std::vector<MeshAxis>
        axes{}; ///< On the mesh: the axes that are not fixed and larger than 1, outermost first.
    std::vector<AxisCoordinate> fixed{}; ///< On the mesh: the others' coordinates, in mesh order.
    std::vector<DeviceId> devices{}; ///< In part order; a list may repeat devices.
    friend bool operator==(const Domain &, const Domain &) = default;
};

/// The part of `mesh` with the given coordinates, which must be in range.
Domain domainOnMesh(const std::vector<MeshAxis> &mesh, const std::vector<AxisCoordinate> &fixed);

Domain domainOfList(std::vector<DeviceId> devices);

/// All of the mesh, or all devices where there is none.
Domain everywhere(const std::vector<MeshAxis> &mesh, std::int32_t deviceCount);

/// Whether so many parts can be dealt out to so many devices: as many, several parts on each, or replicas of
/// each part.
bool canDealOut(std::int64_t parts, std::int64_t devices);

/// Coordinate of `device` along each axis of `mesh`; nothing if the mesh does not reach it.
std::optional<std::vector<std::int32_t>> coordinatesOf(const std::vector<MeshAxis> &mesh, DeviceId device);

/// The part of the mesh that is exactly these devices in this order.
std::optional<std::vector<AxisCoordinate>> partOfMesh(
    const std::vector<MeshAxis> &mesh, const std::vector<DeviceId> &devices);

/// The devices without repetition, in order of first appearance.
std::vector<DeviceId> distinct(const std::vector<DeviceId> &devices);

/// Each device `times` times in a row.
std::vector<DeviceId> repeated(const std::vector<DeviceId> &devices, std::int32_t times);

} // namespace planloom
