#pragma once

#include "engine/base/result.h"
#include "engine/gesture/gesture.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

// How a person names devices: on both canvases, in their line editors and in what is dropped on them.

/// The hardware that places are named on.
struct PlaceWorld {
    std::int32_t deviceCount = 1;
    std::int32_t devicesPerHost = 8; ///< At least 1; the last host may have fewer.
    std::vector<MeshAxis> mesh{}; ///< Empty without one.
    std::string device{"GPU"}; ///< What a device is called.

    std::int32_t hostCount() const { return (deviceCount + devicesPerHost - 1) / devicesPerHost; }
    /// All devices of a host that is there.
    std::vector<DeviceId> devicesOfHost(std::int32_t host) const;
};
PlaceWorld placeWorldOf(const GestureContext &context);

/// Devices as a person names them.
struct PlaceTarget {
    std::vector<DeviceId> devices{}; ///< In the order they were named.
    std::vector<AxisCoordinate> coordinates{}; ///< Part of the mesh instead of devices.
    bool free = false; ///< Gives the choice back.
    friend bool operator==(const PlaceTarget &, const PlaceTarget &) = default;
};

/// Reads, joined by commas, devices `3`, `0-3`, `h0` (all devices of host 0), or instead of them the part of
/// the mesh at `tp:2` or `tp=2`; or one of `all` and `free`. Letters may be large or small, but for the names
/// of axes.
/// @return InvalidInput that says what is there instead of what was typed; its place is "place"
Result<PlaceTarget> placeFromText(std::string_view text, const PlaceWorld &world);

/// The gesture that puts `operators` there.
PlaceGesture placeGesture(const PlaceTarget &target, std::vector<OperatorId> operators);

/// All devices a target stands for, ascending; none for `free`.
std::vector<DeviceId> devicesOf(const PlaceTarget &target, const PlaceWorld &world);

} // namespace planloom
