#pragma once

#include "engine/base/result.h"
#include "engine/hardware/cluster.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace planloom {

/// What a file of another simulator says of a machine. 0 and empty: it does not.
struct SystemFigures {
    std::string source{}; ///< "SimuMax system file"
    std::string device{}; ///< Words that name it: "a100 bf16".
    std::int32_t devicesPerNode = 0; ///< Of an NVLink domain, where that is larger than a host.
    double float16Flops = 0; ///< FLOP/s
    double float8Flops = 0;
    double productEfficiency = 0; ///< Shares, at most 1.
    double attentionEfficiency = 0;
    double attentionBackwardEfficiency = 0;
    double memory = 0; ///< Bytes.
    double memoryBandwidth = 0; ///< Bytes/s
    double memoryEfficiency = 0;
    double intraBandwidth = 0; ///< Bytes/s of a device and direction, as they are reached.
    double intraLatency = 0; ///< Seconds.
    double interBandwidth = 0; ///< Bytes/s of a device and direction.
    double interLatency = 0;
    friend bool operator==(const SystemFigures &, const SystemFigures &) = default;
};

/// SimuMax's system file (JSON: sys_name, num_per_node, accelerator, networks).
/// @return InvalidInput with its place, also for figures that are not above 0
Result<SystemFigures> readSimumaxSystem(std::string_view text);

/// AIConfigurator's systems/NAME.yaml (gpu, node). @return as `readSimumaxSystem`
Result<SystemFigures> readAiconfiguratorSystem(std::string_view text);

/// Puts what the figures say in place of a profile's, with the file as its source.
void applyFigures(Cluster &cluster, const SystemFigures &figures);

} // namespace planloom
