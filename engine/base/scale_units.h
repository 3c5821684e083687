#pragma once

#include "engine/base/ids.h"

#include <cstdint>

namespace planloom {

/// Whole replicas of a plan, written once: `count` units run one program, each on micro-batches of its own
/// (nnScaler, OSDI '24, section 5, calls them scale units). Micro-batch i of unit u is number i x count + u
/// of all.
///
/// Devices inside a unit are numbered without the others; the units lie side by side in the cluster at one
/// place of its mesh, with `inner` devices of a unit between one unit and the next:
///
///     count = 2, inner = 2     local   0 1    2 3
///                              unit 0  0 1    4 5
///                              unit 1  2 3    6 7
struct ScaleUnits {
    std::int32_t count = 1;
    std::int32_t inner = 1;
    friend bool operator==(const ScaleUnits &, const ScaleUnits &) = default;

    /// Where device `local` of unit `unit` is in the cluster.
    DeviceId deviceOf(std::int32_t unit, DeviceId local) const
    {
        return DeviceId{local.index / inner * inner * count + unit * inner + local.index % inner};
    }
    bool isOne() const { return count == 1; }
};

} // namespace planloom
