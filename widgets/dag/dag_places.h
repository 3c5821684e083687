#pragma once

#include "engine/base/result.h"
#include "engine/table/table.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// Devices as a person names them.
struct PlaceTarget {
    std::vector<DeviceId> devices {};
    std::vector<AxisCoordinate> coordinates {}; ///< Part of the mesh instead of devices.
    bool free = false; ///< Gives the choice back.
    friend bool operator==(const PlaceTarget &, const PlaceTarget &) = default;
};

/// The hardware that places are named on.
struct PlaceWorld {
    std::int32_t deviceCount = 1;
    std::int32_t devicesPerHost = 8;
    std::vector<MeshAxis> mesh {};
};

/// Reads `3`, `0-3`, `0,2`, `h0` (all devices of a host), `tp:2` or `tp=2` (part of the mesh; several joined by commas), `all`,
/// `free`.
/// @return InvalidInput that says what is there instead of what was typed
Result<PlaceTarget> parsePlace(std::string_view text, const PlaceWorld &world);

/// All devices a target stands for, ascending; none for `free`.
std::vector<DeviceId> devicesOf(const PlaceTarget &target, const PlaceWorld &world);

} // namespace planloom
