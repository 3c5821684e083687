#pragma once

#include "engine/base/ids.h"
#include "engine/base/result.h"
#include "engine/base/scale_units.h"
#include "engine/base/units.h"
#include "engine/graph/shape.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// A figure with where it comes from.
struct Sourced {
    double value = 0;
    std::string source{};
    friend bool operator==(const Sourced &, const Sourced &) = default;
};

/// One kind of device.
struct DeviceModel {
    std::string name{};
    Sourced float32Flops{}; ///< Peak, FLOP/s, dense.
    Sourced tensorFloat32Flops{};
    Sourced float16Flops{}; ///< Also bfloat16.
    Sourced float64Flops{};
    Sourced float8Flops{}; ///< 0 where the device has no such units; files may leave it out.
    Sourced productEfficiency{}; ///< Achieved share of peak on large products, 0..1.
    Sourced multiprocessors{}; ///< That share the tiles of a product out; 0 if products have no tiles.
    /// Achieved share of peak of attention whose scores stay on the chip, 0..1; 0 is `productEfficiency`.
    Sourced attentionEfficiency{};
    Sourced attentionBackwardEfficiency{};
    Sourced memory{}; ///< Bytes.
    Sourced memoryBandwidth{}; ///< Bytes/s.
    Sourced memoryEfficiency{}; ///< Achieved share of it, 0..1.
    Sourced launchLatency{}; ///< Seconds per kernel.
    friend bool operator==(const DeviceModel &, const DeviceModel &) = default;
};

/// The architecture whose constants NCCL's model uses.
enum class LinkArchitecture : std::uint8_t { Volta, Ampere, Hopper, Blackwell, PcieOnly, SharedMemory };

/// How devices are joined: `devicesPerNode` over `intra` links inside a node, nodes over `inter`.
struct Interconnect {
    LinkArchitecture architecture = LinkArchitecture::Hopper;
    std::int32_t devicesPerNode = 8;
    Sourced intraBandwidth{}; ///< Bytes/s per device and direction, as NCCL's graph search would find it.
    Sourced intraChannels{};
    Sourced intraLatency{}; ///< Seconds per hop (send/recv).
    Sourced interBandwidth{}; ///< Bytes/s per node and direction.
    Sourced interLatency{};
    friend bool operator==(const Interconnect &, const Interconnect &) = default;
};

/// A cluster: `deviceCount` devices of one model, device d on node d / devicesPerNode.
struct Cluster {
    std::string name{}; ///< "dgx-h100:16"
    DeviceModel device{};
    Interconnect links{};
    std::int32_t deviceCount = 1;
    /// Devices are numbered as inside one of so many scale units: see `unitOf`.
    ScaleUnits units{};
    friend bool operator==(const Cluster &, const Cluster &) = default;

    /// Of unit 0's device, where there are units.
    std::int32_t nodeOf(DeviceId d) const { return units.deviceOf(0, d).index / links.devicesPerNode; }
};

/// The devices of one scale unit of `cluster`, with their places in it.
Cluster unitOf(Cluster cluster, const ScaleUnits &units);

/// A profile with a size ("dgx-h100:8", "cpu:4") or the path of a JSON file of the same schema as
/// resources/clusters/*.json. The profiles are compiled in from resources/.
/// @return NotFound listing the known names; InvalidInput with the JSON pointer of what is wrong
Result<Cluster> clusterNamed(std::string_view nameOrPath);

/// Names of the compiled-in profiles, sorted.
std::vector<std::string> clusterNames();

} // namespace planloom
